// One-leaf and 8-leaf matrix products against scalar matrix steps, on the bits before rounding too.
#include <gtest/gtest.h>

#include <cmath>

#include "samebits/ops/op_testing.h"
#include "samebits/ops/ops.h"
#include "samebits/ops/reference_testing.h"

namespace sb::ops_testing {
namespace {

WeightView weight_of(const Tensor<bf16>& w, int64_t first = 0, int64_t count = -1) {
  return {w.row(first), count < 0 ? w.size(0) : count, w.size(1), w.view().stride[0]};
}

struct Product {
  Tensor<bf16> out;
  Tensor<float> acc;
  Product(int64_t rows, int64_t n) : out({rows, n}, 3), acc({rows, n}, 1) {}
};

Product gemm(Rig& rig, const Tensor<bf16>& x, const WeightView& w) {
  Product y(x.size(0), w.n);
  GemmArgs a;
  a.x = x.view(), a.count = 1, a.w[0] = w;
  a.out[0] = y.out.view(), a.acc[0] = y.acc.view();
  EXPECT_TRUE(ran(ops::gemm(rig.ctx, kNowhere, a)));
  EXPECT_TRUE(y.out.gaps_untouched() && y.acc.gaps_untouched());
  return y;
}

// The whole 8-leaf product as `ranks` ranks make it: each its columns of x and w, then all partial
// sums laid side by side and finished.
Product gemm_tree(Arithmetic arithmetic, const Tensor<bf16>& x, const Tensor<bf16>& w, int ranks,
                  Deviation deviation = Deviation::kNone) {
  Rig rig(arithmetic, 2, ranks);
  const int64_t rows = x.size(0), n = w.size(0), k = x.size(1) / ranks;
  Tensor<float> partials({ranks, rows, n});
  for (int p = 0; p < ranks; ++p) {
    View part = x.view();
    part.ptr = static_cast<bf16*>(part.ptr) + p * k;
    part.shape[1] = k;
    View to = make_view(partials.row(p), Dtype::kF32, {rows, n});
    const WeightView columns{w.data() + p * k, n, k, w.view().stride[0]};
    const int leaves = ops::gemm_leaves(x.size(1)) / ranks;
    EXPECT_TRUE(ran(ops::gemm_partial(rig.ctx, kNowhere, {part, columns, leaves, to, deviation})));
  }
  Product y(rows, n);
  EXPECT_TRUE(
      ran(ops::gemm_finish(rig.ctx, kNowhere, {partials.view(), y.out.view(), y.acc.view()})));
  return y;
}

// Adjacent pairs of the leaves' chains.
float tree_reference(Profile profile, const bf16* x, const bf16* w, int64_t k) {
  if (k % 128 != 0) return reference::dot(profile, x, w, k);
  std::vector<float> leaves;
  for (int l = 0; l < 8; ++l) {
    leaves.push_back(reference::dot(profile, x + l * (k / 8), w + l * (k / 8), k / 8));
  }
  return reference::adjacent(leaves);
}

TEST(Gemm, EqualsScalarStepsForEveryDepthOnEveryInstructionSet) {
  for (const Arithmetic& arithmetic : arithmetics()) {
    Rig rig(arithmetic, 2);
    for (const int64_t k : {1, 15, 16, 17, 20, 100, 128, 333}) {
      const auto x = random_tensor(1, {5, k}, 2.0f, 1), w = random_tensor(2, {70, k}, 1.0f, 5);
      const auto y = gemm(rig, x, weight_of(w));
      Product expected(5, 70);
      for (int r = 0; r < 5; ++r) {
        for (int j = 0; j < 70; ++j) {
          expected.acc(r, j) = reference::dot(arithmetic.profile, x.row(r), w.row(j), k);
          expected.out(r, j) = round_bf16(expected.acc(r, j));
        }
      }
      const std::string what = arithmetic.name() + ", K = " + std::to_string(k);
      expect_same_bits(y.acc.values(), expected.acc.values(), what + ", acc");
      expect_same_bits(y.out.values(), expected.out.values(), what);
    }
  }
}

TEST(Gemm, TheTreeEqualsScalarLeavesAddedInPairs) {
  for (const Arithmetic& arithmetic : arithmetics()) {
    for (const int64_t k : {128, 384, 100, 144}) {
      const auto x = random_tensor(3, {3, k}, 2.0f, 1), w = random_tensor(4, {9, k}, 1.0f, 2);
      const auto y = gemm_tree(arithmetic, x, w, 1);
      for (int r = 0; r < 3; ++r) {
        for (int j = 0; j < 9; ++j) {
          const float sum = tree_reference(arithmetic.profile, x.row(r), w.row(j), k);
          ASSERT_EQ(bits_of(y.acc(r, j)), bits_of(sum)) << arithmetic.name() << " K " << k;
          ASSERT_EQ(y.out(r, j), round_bf16(sum));
        }
      }
    }
  }
}

TEST(Gemm, DepthsThatAreNoMultipleOf128HaveOneLeaf) {
  EXPECT_EQ(ops::gemm_leaves(128), 8);
  EXPECT_EQ(ops::gemm_leaves(21504), 8);
  EXPECT_EQ(ops::gemm_leaves(144), 1);
  EXPECT_EQ(ops::gemm_leaves(64), 1);
  Rig rig;
  const auto x = random_tensor(5, {4, 144}), w = random_tensor(6, {10, 144});
  const auto one_leaf = gemm(rig, x, weight_of(w));
  const auto tree = gemm_tree({Profile::kSm90, arith::best_isa()}, x, w, 1);
  expect_same_bits(tree.acc.values(), one_leaf.acc.values(), "one leaf");
}

TEST(Gemm, TwoFourAndEightRanksGiveTheBitsOfOne) {
  for (const Profile profile : kProfiles) {
    const Arithmetic arithmetic{profile, arith::best_isa()};
    const auto x = random_tensor(7, {33, 256}, 3.0f), w = random_tensor(8, {67, 256});
    const auto whole = gemm_tree(arithmetic, x, w, 1);
    for (const int ranks : {2, 4, 8}) {
      const auto split = gemm_tree(arithmetic, x, w, ranks);
      const std::string what = arithmetic.name() + ", ranks " + std::to_string(ranks);
      expect_same_bits(split.acc.values(), whole.acc.values(), what + ", acc");
      expect_same_bits(split.out.values(), whole.out.values(), what);
    }
  }
}

TEST(Gemm, OneChainInsteadOfLeavesGivesOtherBits) {
  const Arithmetic arithmetic{Profile::kSm90, arith::best_isa()};
  const auto x = random_tensor(9, {16, 256}, 3.0f), w = random_tensor(10, {64, 256});
  const auto clean = gemm_tree(arithmetic, x, w, 1).acc.values();
  const auto fault = gemm_tree(arithmetic, x, w, 1, Deviation::kLeafOrder).acc.values();
  int moved = 0;
  for (size_t i = 0; i < clean.size(); ++i) moved += bits_of(clean[i]) != bits_of(fault[i]);
  EXPECT_GT(moved, 300);
}

TEST(Gemm, OneLeafAndEightLeavesAreDifferentContracts) {
  const Arithmetic arithmetic{Profile::kSm90, arith::best_isa()};
  Rig rig(arithmetic);
  const auto x = random_tensor(11, {8, 256}), w = random_tensor(12, {32, 256});
  EXPECT_FALSE(same_bits(gemm(rig, x, weight_of(w)).acc.values(),
                         gemm_tree(arithmetic, x, w, 1).acc.values()));
}

TEST(Gemm, RowRangesOfAFusedWeightAreThreeSeparateWeights) {
  Rig rig({Profile::kSm90, arith::best_isa()}, 2);
  const auto x = random_tensor(13, {7, 96}, 1.0f, 2), fused = random_tensor(14, {200, 96});
  const int64_t first[] = {0, 100, 165}, count[] = {100, 65, 35};
  std::vector<Product> y;
  GemmArgs a;
  a.x = x.view(), a.count = 3;
  for (size_t i = 0; i < 3; ++i) {
    y.emplace_back(7, count[i]);
    a.w[i] = weight_of(fused, first[i], count[i]);
    a.out[i] = y[i].out.view(), a.acc[i] = y[i].acc.view();
  }
  ASSERT_TRUE(ran(ops::gemm(rig.ctx, kNowhere, a)));
  const auto whole = gemm(rig, x, weight_of(fused));
  for (size_t i = 0; i < 3; ++i) {
    Tensor<bf16> own({count[i], 96}, 11);  // the same rows with memory of their own
    for (int64_t j = 0; j < count[i]; ++j) {
      std::copy(fused.row(first[i] + j), fused.row(first[i] + j) + 96, own.row(j));
    }
    expect_same_bits(y[i].acc.values(), gemm(rig, x, weight_of(own)).acc.values(), "own memory");
    for (int r = 0; r < 7; ++r) {
      for (int64_t j = 0; j < count[i]; ++j) {
        ASSERT_EQ(bits_of(y[i].acc(r, j)), bits_of(whole.acc(r, first[i] + j)));
        ASSERT_EQ(y[i].out(r, j), whole.out(r, first[i] + j));
      }
    }
  }
}

TEST(Gemm, WithoutAccTheRoundedOutputIsTheSame) {
  Rig rig;
  const auto x = random_tensor(15, {3, 64}), w = random_tensor(16, {20, 64});
  Tensor<bf16> out({3, 20});
  GemmArgs a;
  a.x = x.view(), a.count = 1, a.w[0] = weight_of(w), a.out[0] = out.view();
  ASSERT_TRUE(ran(ops::gemm(rig.ctx, kNowhere, a)));
  expect_same_bits(out.values(), gemm(rig, x, weight_of(w)).out.values(), "no acc");
}

TEST(Gemm, IsCloseToTheTruthInEveryProfile) {
  for (const Profile profile : kProfiles) {
    const Arithmetic arithmetic{profile, arith::best_isa()};
    const auto x = random_tensor(17, {4, 1024}), w = random_tensor(18, {16, 1024});
    const auto y = gemm_tree(arithmetic, x, w, 1);
    for (int r = 0; r < 4; ++r) {
      for (int j = 0; j < 16; ++j) {
        double truth = 0, size = 0;
        for (int k = 0; k < 1024; ++k) {
          truth += double{widen(x(r, k))} * widen(w(j, k));
          size += std::abs(double{widen(x(r, k))} * widen(w(j, k)));
        }
        // tolerance: fp64 reference; 2^-22 of the sum of magnitudes for cut products and sums
        EXPECT_NEAR(y.acc(r, j), truth, size * 0x1p-22);
      }
    }
  }
}

TEST(Gemm, OutliersSubnormalsAndZerosFollowTheSteps) {
  auto x = random_tensor(19, {4, 64});
  auto w = random_tensor(20, {24, 64});
  for (int i = 0; i < 64; ++i) {
    x(1, i) = bf16{static_cast<uint16_t>(i % 2 ? 0x8000 : 0)};  // zeros of both signs
    x(2, i) = bf16{static_cast<uint16_t>(1 + i)};               // subnormals
    if (i % 16 == 3) x(3, i) = round_bf16(i % 32 == 3 ? 4096.0f : -4096.0f);
    w(5, i) = bf16{static_cast<uint16_t>(0x8000 + i)};
  }
  for (const Arithmetic& arithmetic : arithmetics()) {
    Rig rig(arithmetic);
    const auto y = gemm(rig, x, weight_of(w));
    for (int r = 0; r < 4; ++r) {
      for (int j = 0; j < 24; ++j) {
        ASSERT_EQ(bits_of(y.acc(r, j)),
                  bits_of(reference::dot(arithmetic.profile, x.row(r), w.row(j), 64)))
            << arithmetic.name() << " " << r << " " << j;
      }
    }
    for (int j = 0; j < 24; ++j) EXPECT_EQ(bits_of(y.acc(1, j)), 0u);  // never −0
  }
}

TEST(Gemm, ARowDoesNotDependOnItsBatch) {
  const auto x = random_tensor(21, {65, 80}, 2.0f, 3), w = random_tensor(22, {70, 80}, 1.0f, 1);
  expect_rows_do_not_depend_on_the_batch([&](Rig& rig, int first, int count) {
    Product y(count, 70);
    GemmArgs a;
    a.x = x.rows(first, count), a.count = 1, a.w[0] = weight_of(w);
    a.out[0] = y.out.view(), a.acc[0] = y.acc.view();
    EXPECT_TRUE(ran(ops::gemm(rig.ctx, kNowhere, a)));
    std::vector<RowBits> rows(static_cast<size_t>(count));
    for (int r = 0; r < count; ++r) append_bits(rows[static_cast<size_t>(r)], y.acc.row(r), 70);
    return rows;
  });
}

TEST(Gemm, ARowOfTheTreeDoesNotDependOnItsBatch) {
  const auto x = random_tensor(23, {65, 128}, 2.0f, 3), w = random_tensor(24, {66, 128});
  expect_rows_do_not_depend_on_the_batch([&](Rig& rig, int first, int count) {
    Tensor<float> partial({1, count, 66});
    const View one = make_view(partial.data(), Dtype::kF32, {count, 66});
    Product y(count, 66);
    EXPECT_TRUE(
        ran(ops::gemm_partial(rig.ctx, kNowhere, {x.rows(first, count), weight_of(w), 8, one})));
    EXPECT_TRUE(
        ran(ops::gemm_finish(rig.ctx, kNowhere, {partial.view(), y.out.view(), y.acc.view()})));
    std::vector<RowBits> rows(static_cast<size_t>(count));
    for (int r = 0; r < count; ++r) append_bits(rows[static_cast<size_t>(r)], y.acc.row(r), 66);
    return rows;
  });
}

TEST(Gemm, ANanRowPoisonsItselfOnly) {
  Rig rig;
  auto x = random_tensor(25, {5, 96});
  const auto w = random_tensor(26, {40, 96});
  const auto clean = gemm(rig, x, weight_of(w));
  for (int k = 0; k < 96; ++k) x(2, k) = bf16{kBf16Nan};
  for (int k = 0; k < 96; ++k) x(4, k) = round_bf16(1e4f);
  const auto y = gemm(rig, x, weight_of(w));
  for (int j = 0; j < 40; ++j) {
    for (const int r : {0, 1, 3}) ASSERT_EQ(bits_of(y.acc(r, j)), bits_of(clean.acc(r, j)));
    ASSERT_EQ(bits_of(y.acc(2, j)), kCanonicalNan);
    ASSERT_EQ(y.out(2, j).bits, kBf16Nan);
  }
}

TEST(Gemm, ZeroRowsRun) {
  Rig rig;
  EXPECT_EQ(
      gemm(rig, Tensor<bf16>({0, 32}), weight_of(random_tensor(27, {8, 32}))).acc.values().size(),
      0u);
}

}  // namespace
}  // namespace sb::ops_testing
