// Recordings of matrix steps. Beside the reader this compares arithmetic: with the outputs that the
// scalar model gives put in place of the recorded ones, every kernel of this CPU must agree to the
// bit, whatever the operands are (NaN, infinities and subnormal values too).
#include "samebits/arith/mma_golden.h"

#include <cstring>

#include "fuzz/harness.h"
#include "samebits/arith/step.h"

namespace sb::fuzz {
namespace {

constexpr size_t kHeader = 12, kRows = 16, kCols = 8, kDepth = 16;
constexpr size_t kBytesA = kRows * kDepth * 2, kBytesB = kCols * kDepth * 2;
constexpr size_t kBytesC = kRows * kCols * 4, kTrial = kBytesA + kBytesB + 2 * kBytesC;

std::string with_outputs_of_the_model(std::string_view bytes) {
  std::string out(bytes);
  for (size_t at = kHeader; at + kTrial <= out.size(); at += kTrial) {
    bf16 a[kRows][kDepth], b[kCols][kDepth];
    float c[kRows][kCols];
    std::memcpy(a, &out[at], kBytesA);
    std::memcpy(b, &out[at + kBytesA], kBytesB);
    std::memcpy(c, &out[at + kBytesA + kBytesB], kBytesC);
    for (size_t i = 0; i < kRows; ++i) {
      for (size_t j = 0; j < kCols; ++j) c[i][j] = arith::sm90_step(a[i], b[j], c[i][j]);
    }
    std::memcpy(&out[at + kBytesA + kBytesB + kBytesC], c, kBytesC);
  }
  return out;
}

}  // namespace

void mma_golden(std::string_view bytes) {
  const auto report = arith::check_mma_golden_bytes(bytes, "in.bin");
  if (!accepted(report, "in.bin")) return;
  FUZZ_CHECK(report->trials > 0 && report->outputs == report->trials * int64_t{kRows * kCols},
             "128 outputs a trial");
  FUZZ_CHECK(report->mismatches <= report->outputs, "an output misses once");
  FUZZ_CHECK(report->first.has_value() == (report->mismatches > 0), "the first miss is named");
  const auto sound = arith::check_mma_golden_bytes(with_outputs_of_the_model(bytes), "in.bin");
  FUZZ_CHECK(sound, "other outputs are no fault of the file");
  FUZZ_CHECK(sound->mismatches == 0, "kernels equal the scalar model, not so " + sound->first->who);
}

}  // namespace sb::fuzz
