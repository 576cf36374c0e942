// The operands are random and b is a [64, 5376] slice of a weight in checkpoint layout, 0.7 MB: it
// stays in the L2, so the figures are those of the arithmetic. (One row against a weight that comes
// from memory is bound by the memory: 2 bytes a product are 50 GB/s at 25 GMAC/s.) Time is this
// thread's CPU time and the fastest call counts, because everything that disturbs a call (other
// processes, clock changes) only slows it.
#include "samebits/arith/chain_speed.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "samebits/arith/chain.h"
#include "samebits/base/result.h"
#include "samebits/base/rng.h"

namespace sb::arith {
namespace {

constexpr int kDepth = 5376, kColumns = 64, kMostRows = 16;
constexpr int kPlainColumns = 8;  // plain calls are slow
constexpr int kCheckColumns = 48;
constexpr int kRowCounts[] = {1, 4, kMostRows};

// Sum of two uniforms in (−1, 1): mixed signs, exponents as in real weights, a few very small.
std::vector<bf16> random_matrix(int rows, uint64_t stream) {
  CounterRng rng(0x5eed, stream);
  std::vector<bf16> out(static_cast<size_t>(rows) * kDepth);
  for (bf16& x : out) x = round_bf16(rng.uniform() - rng.uniform());
  return out;
}

std::vector<const bf16*> row_pointers(const std::vector<bf16>& matrix) {
  std::vector<const bf16*> out;
  for (size_t at = 0; at < matrix.size(); at += kDepth) out.push_back(&matrix[at]);
  return out;
}

struct Problem {
  std::vector<bf16> a_data = random_matrix(kMostRows, 1), b_data = random_matrix(kColumns, 2);
  std::vector<const bf16*> a = row_pointers(a_data), b = row_pointers(b_data);
  std::vector<float> c = std::vector<float>(size_t{kMostRows} * kColumns);
};

std::vector<float> check_outputs(const Problem& p, const ChainKernels& kernels) {
  std::vector<float> out(size_t{kMostRows} * kCheckColumns);
  kernels.b_rows(p.a.data(), kMostRows, p.b.data(), kCheckColumns, kDepth, out.data(),
                 kCheckColumns);
  return out;
}

void assert_equal_bits(const Problem& p, Profile profile) {
  const std::vector<float> expect = check_outputs(p, *chain_kernels(profile, Isa::kPlain));
  for (const Isa isa : kIsas) {
    const ChainKernels* kernels = chain_kernels(profile, isa);
    if (kernels == nullptr) continue;
    const std::vector<float> got = check_outputs(p, *kernels);
    SB_ASSERT(std::memcmp(expect.data(), got.data(), expect.size() * sizeof(float)) == 0,
              "the chain kernels of this CPU differ from the scalar model");
  }
}

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double fastest_call(Problem& p, const ChainKernels& kernels, int rows, int columns,
                    double seconds) {
  double best = 0, total = 0;
  do {
    std::fill(p.c.begin(), p.c.end(), 0.0f);
    const double start = cpu_seconds();
    kernels.b_rows(p.a.data(), rows, p.b.data(), columns, kDepth, p.c.data(), kColumns);
    const double took = cpu_seconds() - start;
    best = total == 0 ? took : std::min(best, took);
    total += took;
  } while (total < seconds);
  return best;
}

}  // namespace

std::vector<ChainSpeed> measure_chain_speed(double seconds_each) {
  Problem problem;
  std::vector<ChainSpeed> out;
  for (const Profile profile : kProfiles) {
    assert_equal_bits(problem, profile);
    for (const Isa isa : kIsas) {
      const ChainKernels* kernels = chain_kernels(profile, isa);
      if (kernels == nullptr) continue;
      for (const int rows : kRowCounts) {
        const int columns = isa == Isa::kPlain ? kPlainColumns : kColumns;
        const double seconds = fastest_call(problem, *kernels, rows, columns, seconds_each);
        out.push_back({profile, isa, rows, 1e-9 * rows * columns * kDepth / seconds});
      }
    }
  }
  return out;
}

}  // namespace sb::arith
