// Every kernel of every Isa against chains of the scalar model, bit for bit.
#include "samebits/arith/chain.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <string>

#include "samebits/arith/chain_cases.h"
#include "samebits/arith/step.h"
#include "samebits/base/thread_pool.h"

namespace sb::arith {
namespace {

// What the data of a sweep reached, so that a test cannot pass on data that never asks.
struct Reached {
  std::atomic<int64_t> steps{0};
  std::atomic<int64_t> floored{0};       // sm90: the largest exponent was below −133
  std::atomic<int64_t> zero_results{0};  // from non-zero products
  std::atomic<int64_t> kept_c{0};        // only zero products
  std::atomic<int64_t> non_finite{0};    // results
};

// The definition of a chain, step by step; counts what it meets.
std::vector<float> reference(Profile profile, const ChainProblem& p, Reached& reached) {
  std::vector<float> c = p.c;
  int64_t floored = 0, zeros = 0, kept = 0, non_finite = 0;
  for (int r = 0; r < p.m; ++r) {
    for (int j = 0; j < p.n; ++j) {
      float& out = c[static_cast<size_t>(r) * p.ldc + j];
      for (int k0 = 0; k0 < p.k; k0 += 16) {
        bf16 a[16] = {}, b[16] = {};
        int largest = kNoExponent;
        for (int i = 0; i < 16 && k0 + i < p.k; ++i) {
          a[i] = p.a[r][k0 + i];
          b[i] = p.columns ? p.b[k0 + i][j] : p.b[j][k0 + i];
          const StepTerm x = product_term(a[i], b[i]);
          if (x.significand != 0) largest = std::max(largest, x.exponent);
        }
        const bool c_is_zero = out == 0;
        out = step(profile, a, b, out);
        floored += c_is_zero && largest != kNoExponent && largest < kSm90MinExponent;
        zeros += out == 0 && largest != kNoExponent;
        kept += largest == kNoExponent;
        non_finite += !is_finite_bits(float_bits(out));
      }
    }
  }
  reached.steps += int64_t{p.m} * p.n * ceil_div(p.k, 16);
  reached.floored += floored;
  reached.zero_results += zeros;
  reached.kept_c += kept;
  reached.non_finite += non_finite;
  return c;
}

std::vector<float> run(const ChainKernels& kernels, const ChainProblem& p) {
  std::vector<float> c = p.c;
  (p.columns ? kernels.b_cols : kernels.b_rows)(p.a.data(), p.m, p.b.data(), p.n, p.k, c.data(),
                                                p.ldc);
  return c;
}

// Empty if equal, else the first difference.
std::string difference(const std::vector<float>& expect, const std::vector<float>& got, int ldc) {
  for (size_t i = 0; i < expect.size(); ++i) {
    const uint32_t x = float_bits(expect[i]), y = float_bits(got[i]);
    if (x == y) continue;
    char text[96];
    std::snprintf(text, sizeof(text), "c[%zu][%zu] = %08x, expected %08x", i / ldc, i % ldc, y, x);
    return text;
  }
  return {};
}

// Compares every Isa with the reference on one problem; the reference is computed once.
std::string check(Profile profile, const ChainProblem& p, Reached& reached, bool with_plain) {
  const std::vector<float> expect = reference(profile, p, reached);
  for (const Isa isa : kIsas) {
    const ChainKernels* kernels = chain_kernels(profile, isa);
    if (kernels == nullptr || (isa == Isa::kPlain && !with_plain)) continue;
    const std::string found = difference(expect, run(*kernels, p), p.ldc);
    if (!found.empty()) {
      return std::string(profile_name(profile)) + " " + isa_name(isa) +
             (p.columns ? " b_cols" : " b_rows") + " m=" + std::to_string(p.m) +
             " n=" + std::to_string(p.n) + " k=" + std::to_string(p.k) + ": " + found;
    }
  }
  return {};
}

// At least `steps` random steps through every SIMD Isa, over all distributions and both layouts.
void sweep(Profile profile, int64_t steps) {
  constexpr int kRows = 9, kColumns = 75, kMostDepth = 70;  // 2, 3 or 5 steps: 3.2 on average
  Reached reached;
  std::mutex mutex;
  std::string failure;
  ThreadPool pool(0);
  const int64_t problems = ceil_div(steps, int64_t{kRows} * kColumns * 3);
  const Status status = pool.parallel_for(problems, [&](int64_t i) {
    CounterRng rng(0xc4a1, static_cast<uint64_t>(i));
    const auto operands = static_cast<Operands>(i % kOperandKinds);
    const int depths[] = {32, 48, kMostDepth};
    const int k = depths[rng.below(3)];
    const ChainProblem p(operands, rng.below(2) != 0, kRows, kColumns, k, rng);
    const std::string found = check(profile, p, reached, false);
    if (found.empty()) return;
    const std::lock_guard lock(mutex);
    if (failure.empty()) failure = "problem " + std::to_string(i) + ": " + found;
  });
  ASSERT_TRUE(status);
  EXPECT_EQ(failure, "");
  EXPECT_GE(reached.steps, steps);
  EXPECT_GE(reached.floored, steps / 200);
  EXPECT_GE(reached.zero_results, steps / 200);
  EXPECT_GE(reached.kept_c, steps / 200);
  EXPECT_GE(reached.non_finite, steps / 50);
}

class ChainSweep : public testing::TestWithParam<Profile> {};
INSTANTIATE_TEST_SUITE_P(Profiles, ChainSweep, testing::ValuesIn(kProfiles),
                         [](const auto& profile) { return profile_name(profile.param); });

TEST_P(ChainSweep, TenMillionSteps) { sweep(GetParam(), 10'000'000); }

TEST(Chain, ABillionSm90StepsFull) { sweep(Profile::kSm90, 1'000'000'000); }
TEST(Chain, ABillionGfx942StepsFull) { sweep(Profile::kGfx942, 1'000'000'000); }
TEST(Chain, ABillionIeeeStepsFull) { sweep(Profile::kIeee, 1'000'000'000); }

TEST_P(ChainSweep, EveryRaggedShape) {
  Reached reached;
  CounterRng rng(7);
  const auto check_shape = [&](int m, int n, int k) {
    for (const bool columns : {false, true}) {
      const auto operands = static_cast<Operands>(rng.below(kOperandKinds));
      const ChainProblem p(operands, columns, m, n, k, rng);
      ASSERT_EQ(check(GetParam(), p, reached, true), "");
    }
  };
  for (int m = 1; m <= 9; ++m) {
    for (int n : {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 47, 63, 64, 65, 81}) check_shape(m, n, 35);
  }
  for (int m : {1, 3}) {
    for (int k = 1; k <= 64; ++k) check_shape(m, 19, k);
  }
  for (int m : {1, 5}) {
    for (int k : {127, 129, 143, 144, 145, 257}) check_shape(m, 70, k);
  }
}

// Panels of rows, chunks of k and both together; the chain's state passes through c between chunks.
TEST_P(ChainSweep, ManyRowsAndLongChains) {
  Reached reached;
  CounterRng rng(8);
  for (const bool columns : {false, true}) {
    const ChainProblem tall(Operands::kNarrow, columns, 131, 21, 40, rng);
    EXPECT_EQ(check(GetParam(), tall, reached, false), "");
    const ChainProblem both(Operands::kWide, columns, 67, 5, 2600, rng);
    EXPECT_EQ(check(GetParam(), both, reached, false), "");
    const ChainProblem one(Operands::kNarrow, columns, 1, 35, 5376 * 16 + 50, rng);
    EXPECT_EQ(check(GetParam(), one, reached, false), "");
    const ChainProblem deep(Operands::kNarrow, columns, 5, 3, 21504, rng);
    EXPECT_EQ(check(GetParam(), deep, reached, false), "");
  }
}

TEST_P(ChainSweep, EmptyDimensionsTouchNothing) {
  const float before = -0.0f;
  const bf16 x[16] = {};
  const bf16* row = x;
  for (const Isa isa : kIsas) {
    const ChainKernels* kernels = chain_kernels(GetParam(), isa);
    if (kernels == nullptr) continue;
    for (const auto call : {kernels->b_rows, kernels->b_cols}) {
      float c = before;
      call(&row, 0, &row, 1, 16, &c, 1);
      call(&row, 1, &row, 0, 16, &c, 1);
      call(&row, 1, &row, 1, 0, &c, 1);
      call(nullptr, 0, nullptr, 0, 0, nullptr, 0);
      EXPECT_EQ(float_bits(c), float_bits(before)) << isa_name(isa);
    }
  }
}

// A chain cut anywhere between steps is the same chain.
TEST_P(ChainSweep, CuttingAChainChangesNothing) {
  CounterRng rng(9);
  const ChainProblem p(Operands::kWide, false, 6, 40, 160, rng);
  const ChainKernels& kernels = *chain_kernels(GetParam(), best_isa());
  const std::vector<float> whole = run(kernels, p);
  for (int cut = 16; cut < p.k; cut += 16) {
    std::vector<float> c = p.c;
    kernels.b_rows(p.a.data(), p.m, p.b.data(), p.n, cut, c.data(), p.ldc);
    std::vector<const bf16*> a = p.a, b = p.b;
    for (const bf16*& row : a) row += cut;
    for (const bf16*& row : b) row += cut;
    kernels.b_rows(a.data(), p.m, b.data(), p.n, p.k - cut, c.data(), p.ldc);
    EXPECT_EQ(difference(whole, c, p.ldc), "") << cut;
  }
}

TEST(Chain, ThePlainKernelsExistEverywhereAndTheBestIsaToo) {
  for (const Profile p : kProfiles) {
    EXPECT_NE(chain_kernels(p, Isa::kPlain), nullptr);
    EXPECT_NE(chain_kernels(p, best_isa()), nullptr);
  }
}

}  // namespace
}  // namespace sb::arith
