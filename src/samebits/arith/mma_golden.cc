// Reads the recording by offsets: header (8 bytes of magic, u32 trials), then per trial A[16][16]
// and B[8][16] as bf16, C[16][8] and D[16][8] as fp32, all little endian and without padding.
#include "samebits/arith/mma_golden.h"

#include <bit>
#include <cstring>
#include <functional>

#include "samebits/arith/chain.h"
#include "samebits/arith/step.h"
#include "samebits/base/file.h"

namespace sb::arith {
namespace {

static_assert(std::endian::native == std::endian::little, "the recording is read in place");

constexpr char kMagic[8] = {'S', 'B', 'M', 'M', 'A', 'V', '1', '\0'};
constexpr size_t kHeaderBytes = 12;
constexpr int kRows = 16, kCols = 8, kDepth = 16;

struct Trial {
  bf16 a[kRows][kDepth];
  bf16 b[kCols][kDepth];
  float c[kRows][kCols];
  float d[kRows][kCols];
};
static_assert(sizeof(Trial) == 1792);

struct Checker {
  std::string who;
  std::function<void(const Trial&, float (&out)[kRows][kCols])> run;
};

void run_model(const Trial& t, float (&out)[kRows][kCols]) {
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kCols; ++j) out[i][j] = sm90_step(t.a[i], t.b[j], t.c[i][j]);
  }
}

void run_kernel(const ChainKernels& kernels, bool columns, const Trial& t,
                float (&out)[kRows][kCols]) {
  bf16 transposed[kDepth][kCols];
  const bf16 *a[kRows], *rows[kCols], *cols[kDepth];
  for (int i = 0; i < kRows; ++i) a[i] = t.a[i];
  for (int j = 0; j < kCols; ++j) rows[j] = t.b[j];
  for (int k = 0; k < kDepth; ++k) {
    cols[k] = transposed[k];
    for (int j = 0; j < kCols; ++j) transposed[k][j] = t.b[j][k];
  }
  std::memcpy(out, t.c, sizeof(out));
  if (columns) {
    kernels.b_cols(a, kRows, cols, kCols, kDepth, out[0], kCols);
  } else {
    kernels.b_rows(a, kRows, rows, kCols, kDepth, out[0], kCols);
  }
}

std::vector<Checker> checkers() {
  std::vector<Checker> all = {{"step", run_model}};
  for (const Isa isa : kIsas) {
    const ChainKernels* kernels = chain_kernels(Profile::kSm90, isa);
    if (kernels == nullptr) continue;
    for (const bool columns : {false, true}) {
      all.push_back({std::string(isa_name(isa)) + (columns ? " b_cols" : " b_rows"),
                     [kernels, columns](const Trial& t, float(&out)[kRows][kCols]) {
                       run_kernel(*kernels, columns, t, out);
                     }});
    }
  }
  return all;
}

}  // namespace

Result<MmaGoldenReport> check_mma_golden(const std::string& path) {
  SB_TRY(file, MappedFile::open(path));
  return check_mma_golden_bytes(file.text(), path);
}

Result<MmaGoldenReport> check_mma_golden_bytes(std::string_view file, const std::string& where) {
  const std::string asked = "read recorded matrix steps from " + where;
  const char* data = file.data();
  if (file.size() < kHeaderBytes || std::memcmp(data, kMagic, sizeof(kMagic)) != 0) {
    return refuse(Code::kBrokenData, asked, "it does not begin with SBMMAV1");
  }
  uint32_t trials = 0;
  std::memcpy(&trials, data + sizeof(kMagic), sizeof(trials));
  if (trials == 0) return refuse(Code::kBrokenData, asked, "it holds no trials");
  const uint64_t bytes = kHeaderBytes + uint64_t{trials} * sizeof(Trial);
  if (file.size() != bytes) {
    return refuse(Code::kBrokenData, asked,
                  std::to_string(trials) + " trials take " + std::to_string(bytes) +
                      " bytes, the file has " + std::to_string(file.size()));
  }

  MmaGoldenReport report;
  report.trials = trials;
  report.outputs = int64_t{trials} * kRows * kCols;
  const std::vector<Checker> all = checkers();
  for (const Checker& checker : all) report.checked.push_back(checker.who);
  for (int64_t t = 0; t < report.trials; ++t) {
    Trial trial;
    std::memcpy(&trial, data + kHeaderBytes + t * sizeof(Trial), sizeof(Trial));
    bool missed[kRows][kCols] = {};
    for (const Checker& checker : all) {
      float out[kRows][kCols];
      checker.run(trial, out);
      for (int i = 0; i < kRows; ++i) {
        for (int j = 0; j < kCols; ++j) {
          const uint32_t expect = float_bits(trial.d[i][j]), got = float_bits(out[i][j]);
          if (expect == got) continue;
          if (!report.first) report.first = {checker.who, t, i, j, expect, got};
          report.mismatches += missed[i][j] ? 0 : 1;
          missed[i][j] = true;
        }
      }
    }
  }
  return report;
}

}  // namespace sb::arith
