// RMSNorm: 256 slots, one tree, weight as w, one rounding, against a straight scalar version of the
// contract (bits) and against double arithmetic (accuracy).
#include <gtest/gtest.h>

#include <cmath>

#include "samebits/ops/op_testing.h"
#include "samebits/ops/ops.h"
#include "samebits/ops/reference_testing.h"

namespace sb::ops_testing {
namespace {

constexpr float kEps = 1e-6f;
constexpr int64_t kWidths[] = {5376, 512, 336, 257, 256, 255, 96, 16, 1};

// x is [rows, heads, D]; w may be absent.
Tensor<bf16> rmsnorm(Rig& rig, const Tensor<bf16>& x, const Tensor<bf16>* w, int64_t gap = 0) {
  Tensor<bf16> out({x.size(0), x.size(1), x.size(2)}, gap);
  EXPECT_TRUE(
      ran(ops::rmsnorm(rig.ctx, kNowhere, {x.view(), w ? w->view() : View{}, out.view(), kEps})));
  EXPECT_TRUE(out.gaps_untouched());
  return out;
}

Tensor<bf16> weight(int64_t width) { return random_tensor(99, {width}, 1.0f); }

// Ones with one value of 4096 at `at`.
Tensor<bf16> outlier_row(int64_t width, int64_t at) {
  Tensor<bf16> x({1, 1, width});
  for (int64_t i = 0; i < width; ++i) x(0, 0, i) = round_bf16(i == at ? 4096.0f : 1.0f);
  return x;
}

TEST(RmsNorm, EqualsTheContractWrittenOutForEveryWidth) {
  Rig rig;
  for (const int64_t width : kWidths) {
    const auto x = random_tensor(10 + static_cast<uint64_t>(width), {3, 2, width}, 2.0f);
    const auto w = weight(width);
    const auto with = rmsnorm(rig, x, &w), without = rmsnorm(rig, x, nullptr);
    for (int r = 0; r < 3; ++r) {
      for (int h = 0; h < 2; ++h) {
        const bf16* row = x.row(r) + h * width;
        const std::string what = "D = " + std::to_string(width);
        expect_same_bits(std::vector(with.row(r) + h * width, with.row(r) + (h + 1) * width),
                         reference::rmsnorm(row, w.data(), width, kEps), what);
        expect_same_bits(std::vector(without.row(r) + h * width, without.row(r) + (h + 1) * width),
                         reference::rmsnorm(row, nullptr, width, kEps), what + ", weightless");
      }
    }
  }
}

// One bf16 output in some ten thousands shows another order of the products, so there are millions.
TEST(RmsNorm, TheOrderOfTheProductsIsThatOfTheContract) {
  Rig rig({Profile::kSm90, arith::best_isa()}, 2);
  const int64_t width = 5376;
  const auto x = random_tensor(11, {500, 1, width}, 2.0f);
  const auto w = weight(width);
  const auto y = rmsnorm(rig, x, &w);
  for (int r = 0; r < 500; ++r) {
    if (!expect_same_bits(std::vector(y.row(r), y.row(r) + width),
                          reference::rmsnorm(x.row(r), w.data(), width, kEps), "many")) {
      return;
    }
  }
}

TEST(RmsNorm, EpsilonIsAddedToTheMeanInsideTheRoot) {
  Rig rig;
  for (const float scale : {1e-2f, 1e-3f, 1e-4f}) {  // squares around epsilon
    const auto x = random_tensor(12, {1, 1, 512}, scale);
    const auto y = rmsnorm(rig, x, nullptr);
    expect_same_bits(y.values(), reference::rmsnorm(x.data(), nullptr, 512, kEps), "small");
    double sum = 0;
    for (const bf16 v : x.values()) sum += double{widen(v)} * widen(v);
    const double r = 1.0 / std::sqrt(sum / 512 + 1e-6);
    for (int i = 0; i < 512; ++i) {
      const double truth = widen(x(0, 0, i)) * r;
      // tolerance: fp64 reference
      ASSERT_NEAR(widen(y(0, 0, i)), truth, std::abs(truth) * (0x1p-8 + 0x1p-20));
    }
  }
}

TEST(RmsNorm, IsOneRoundingFromTheTruth) {
  Rig rig;
  for (const int64_t width : kWidths) {
    const auto x = random_tensor(20, {4, 1, width}, 3.0f);
    const auto w = weight(width);
    const auto y = rmsnorm(rig, x, &w);
    for (int r = 0; r < 4; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += std::pow(widen(x(r, 0, i)), 2.0);
      const double scale = 1.0 / std::sqrt(sum / static_cast<double>(width) + 1e-6);
      for (int64_t i = 0; i < width; ++i) {
        const double truth = widen(x(r, 0, i)) * scale * widen(w(i));
        // tolerance: fp64 reference; half a bf16 ulp and the error of fp32 before it
        ASSERT_NEAR(widen(y(r, 0, i)), truth, std::abs(truth) * (0x1p-8 + 0x1p-20) + 1e-30);
      }
    }
  }
}

// In one running fp32 sum 4096² swallows the ones that follow it; a fixed tree gives the same sum
// class wherever the outlier stands, and its bits are those of the contract.
TEST(RmsNorm, AnOutlierOf4096AmongOnesKeepsTheOnes) {
  Rig rig;
  for (const int64_t width : {5376, 512, 336, 256, 96, 16}) {
    const auto w = weight(width);
    for (const int64_t at : {int64_t{0}, width / 2, width - 1}) {
      const auto x = outlier_row(width, at);
      const auto y = rmsnorm(rig, x, &w);
      expect_same_bits(y.values(), reference::rmsnorm(x.data(), w.data(), width, kEps),
                       "outlier at " + std::to_string(at));
      const double mean =
          (4096.0 * 4096.0 + static_cast<double>(width - 1)) / static_cast<double>(width);
      const double truth = 4096.0 / std::sqrt(mean + 1e-6) * widen(w(at));
      // tolerance: fp64 reference
      EXPECT_NEAR(widen(y(0, 0, at)), truth, std::abs(truth) * (0x1p-8 + 0x1p-20));
    }
  }
}

TEST(RmsNorm, TheSumKeepsOnesThatASerialSumLoses) {
  // 4096² = 2^24, where fp32 cannot count by ones: a serial sum that starts with it stays there.
  float serial = 4096.0f * 4096.0f;
  for (int i = 1; i < 5376; ++i) serial = serial + 1.0f;
  EXPECT_EQ(serial, 16777216.0f);
  std::vector<float> slots(256, 0.0f);
  const auto x = outlier_row(5376, 0);
  for (int64_t e = 0; e < 5376; ++e) {
    float& slot = slots[static_cast<size_t>(e % 256)];
    slot = __builtin_fmaf(widen(x(0, 0, e)), widen(x(0, 0, e)), slot);
  }
  EXPECT_GT(reference::adjacent(slots), 16777216.0f + 5300.0f);
}

TEST(RmsNorm, AWeightOfZeroGivesZeroAndAWeightOfOneGivesTheWeightlessNorm) {
  Rig rig;
  const auto x = random_tensor(30, {2, 1, 336});
  Tensor<bf16> zero({336}), one({336});
  for (int i = 0; i < 336; ++i) zero(i) = bf16{}, one(i) = round_bf16(1.0f);
  for (const bf16 y : rmsnorm(rig, x, &zero).values()) ASSERT_EQ(y.bits & 0x7fff, 0);
  expect_same_bits(rmsnorm(rig, x, &one).values(), rmsnorm(rig, x, nullptr).values(), "w = 1");
}

// Zero-centred gamma: a weight of 0 passes the row on, a weight of 1 doubles it.
TEST(RmsNorm, AWeightReadAsOnePlusWHasItsSignature) {
  Rig rig;
  const auto x = random_tensor(33, {2, 1, 336});
  Tensor<bf16> zero({336}), one({336}), out({2, 1, 336});
  for (int i = 0; i < 336; ++i) zero(i) = bf16{}, one(i) = round_bf16(1.0f);
  const auto plain = rmsnorm(rig, x, nullptr);
  for (const auto& [w, gain] : {std::pair{&zero, 1.0f}, std::pair{&one, 2.0f}}) {
    ASSERT_TRUE(ran(ops::rmsnorm(
        rig.ctx, kNowhere, {x.view(), w->view(), out.view(), kEps, Deviation::kNormOnePlusW})));
    for (size_t i = 0; i < plain.values().size(); ++i) {
      ASSERT_EQ(widen(out.values()[i]), gain * widen(plain.values()[i])) << gain << " " << i;
    }
  }
}

// K = V on global layers: both norms read u, but only k̂'s has a weight.
TEST(RmsNorm, ChangingTheWeightOfKLeavesVAlone) {
  Rig rig;
  const auto u = random_tensor(31, {5, 4, 512});
  const auto w1 = weight(512), w2 = random_tensor(98, {512});
  const auto k1 = rmsnorm(rig, u, &w1), v1 = rmsnorm(rig, u, nullptr);
  const auto k2 = rmsnorm(rig, u, &w2), v2 = rmsnorm(rig, u, nullptr);
  EXPECT_FALSE(same_bits(k1.values(), k2.values()));
  expect_same_bits(v2.values(), v1.values(), "v");
  const auto moved = rmsnorm(rig, random_tensor(32, {5, 4, 512}), nullptr);
  EXPECT_FALSE(same_bits(v1.values(), moved.values()));
}

TEST(RmsNorm, ZeroRowsOfValuesGiveZerosAndSignsAreKept) {
  Rig rig;
  Tensor<bf16> x({1, 1, 96});
  for (int i = 0; i < 96; ++i) x(0, 0, i) = bf16{static_cast<uint16_t>(i % 2 ? 0x8000 : 0)};
  const auto y = rmsnorm(rig, x, nullptr);
  for (int i = 0; i < 96; ++i) EXPECT_EQ(y(0, 0, i).bits, i % 2 ? 0x8000 : 0);
}

TEST(RmsNorm, ANanRowPoisonsItselfOnly) {
  Rig rig;
  auto x = random_tensor(33, {3, 1, 336});
  const auto clean = rmsnorm(rig, x, nullptr);
  x(1, 0, 200) = bf16{kBf16Nan};
  const auto y = rmsnorm(rig, x, nullptr);
  for (int i = 0; i < 336; ++i) {
    ASSERT_EQ(y(0, 0, i), clean(0, 0, i));
    ASSERT_EQ(y(1, 0, i).bits, kBf16Nan);
    ASSERT_EQ(y(2, 0, i), clean(2, 0, i));
  }
}

TEST(RmsNorm, HeadsMayStandApartInAWiderBuffer) {
  Rig rig;
  const auto fused = random_tensor(34, {6, 10, 32}, 1.0f, 7);  // heads 2 … 5 are the ones normed
  View x = fused.view();
  x.ptr = static_cast<bf16*>(x.ptr) + 2 * 32;
  x.shape[1] = 4;
  Tensor<bf16> out({6, 4, 32}, 9);
  const auto w = weight(32);
  ASSERT_TRUE(ran(ops::rmsnorm(rig.ctx, kNowhere, {x, w.view(), out.view(), kEps})));
  EXPECT_TRUE(out.gaps_untouched());
  for (int r = 0; r < 6; ++r) {
    for (int h = 0; h < 4; ++h) {
      expect_same_bits(std::vector(out.row(r) + h * 32, out.row(r) + (h + 1) * 32),
                       reference::rmsnorm(fused.row(r) + (h + 2) * 32, w.data(), 32, kEps),
                       "head " + std::to_string(h));
    }
  }
}

TEST(RmsNorm, ARowDoesNotDependOnItsBatch) {
  const auto x = random_tensor(35, {65, 2, 336}, 1.0f, 3);
  const auto w = weight(336);
  expect_rows_do_not_depend_on_the_batch([&](Rig& rig, int first, int count) {
    Tensor<bf16> out({count, 2, 336}, 1);
    EXPECT_TRUE(
        ran(ops::rmsnorm(rig.ctx, kNowhere, {x.rows(first, count), w.view(), out.view(), kEps})));
    std::vector<RowBits> rows(static_cast<size_t>(count));
    for (int r = 0; r < count; ++r) append_bits(rows[static_cast<size_t>(r)], out.row(r), 672);
    return rows;
  });
}

TEST(RmsNorm, ZeroRowsRun) {
  Rig rig;
  EXPECT_EQ(rmsnorm(rig, Tensor<bf16>({0, 2, 16}), nullptr).values().size(), 0u);
}

}  // namespace
}  // namespace sb::ops_testing
