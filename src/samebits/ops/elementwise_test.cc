// Residual add, layer_scalar and gelu(gate)·up: one fp32 operation and one rounding at each cast
// point.
#include <gtest/gtest.h>

#include <cmath>

#include "samebits/arith/exp.h"
#include "samebits/ops/op_testing.h"
#include "samebits/ops/ops.h"

namespace sb::ops_testing {
namespace {

Tensor<bf16> row_of(const std::vector<float>& values) {
  Tensor<bf16> t({1, static_cast<int64_t>(values.size())});
  t.set_row(0, bf16s(values));
  return t;
}

Tensor<bf16> layer_scale(Rig& rig, const Tensor<bf16>& x, float scalar,
                         Deviation deviation = Deviation::kNone) {
  Tensor<bf16> s({1}), out({x.size(0), x.size(1)}, 2);
  s(0) = round_bf16(scalar);
  EXPECT_TRUE(
      ran(ops::layer_scale(rig.ctx, kNowhere, {x.view(), s.view(), out.view(), deviation})));
  EXPECT_TRUE(out.gaps_untouched());
  return out;
}

struct Activated {
  Tensor<bf16> gelu, out;
};
Activated gelu_mul(Rig& rig, const Tensor<bf16>& gate, const Tensor<bf16>& up) {
  Activated a{Tensor<bf16>({gate.size(0), gate.size(1)}, 1),
              Tensor<bf16>({gate.size(0), gate.size(1)}, 3)};
  EXPECT_TRUE(
      ran(ops::gelu_mul(rig.ctx, kNowhere, {gate.view(), up.view(), a.gelu.view(), a.out.view()})));
  EXPECT_TRUE(a.gelu.gaps_untouched() && a.out.gaps_untouched());
  return a;
}

TEST(Residual, IsOneSumRoundedOnce) {
  Rig rig;
  const auto x = random_tensor(1, {5, 100}, 40.0f, 1), p = random_tensor(2, {5, 100}, 1.0f, 2);
  Tensor<bf16> out({5, 100}, 3);
  ASSERT_TRUE(ran(ops::residual(rig.ctx, kNowhere, {x.view(), p.view(), out.view()})));
  EXPECT_TRUE(out.gaps_untouched());
  for (int r = 0; r < 5; ++r) {
    for (int i = 0; i < 100; ++i) {
      // The sum of two bf16 values this close in exponent is exact in double.
      const double exact = double{widen(x(r, i))} + widen(p(r, i));
      ASSERT_EQ(out(r, i), round_bf16(static_cast<float>(exact)));
    }
  }
}

TEST(Residual, ZerosNansAndInfinitiesFollowIeee) {
  Rig rig;
  constexpr float kInf = HUGE_VALF;
  const auto x = row_of({-0.0f, -0.0f, 1.0f, kInf, kInf, std::nanf("")});
  const auto p = row_of({-0.0f, 0.0f, -1.0f, -1.0f, -kInf, 2.0f});
  Tensor<bf16> out({1, 6});
  ASSERT_TRUE(ran(ops::residual(rig.ctx, kNowhere, {x.view(), p.view(), out.view()})));
  const uint16_t expected[] = {0x8000, 0, 0, 0x7f80, kBf16Nan, kBf16Nan};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(out(0, i).bits, expected[i]) << i;
}

TEST(Residual, MayRunInPlace) {
  Rig rig;
  auto x = random_tensor(3, {4, 64});
  const auto p = random_tensor(4, {4, 64});
  Tensor<bf16> apart({4, 64});
  ASSERT_TRUE(ran(ops::residual(rig.ctx, kNowhere, {x.view(), p.view(), apart.view()})));
  ASSERT_TRUE(ran(ops::residual(rig.ctx, kNowhere, {x.view(), p.view(), x.view()})));
  expect_same_bits(x.values(), apart.values(), "in place");
}

TEST(LayerScale, IsOneProductRoundedOnce) {
  Rig rig;
  const auto x = random_tensor(5, {4, 77}, 3.0f, 1);
  const auto y = layer_scale(rig, x, 0.62f);
  for (int r = 0; r < 4; ++r) {
    for (int i = 0; i < 77; ++i) {
      const double exact = double{widen(x(r, i))} * rounded(0.62f);
      ASSERT_EQ(y(r, i), round_bf16(static_cast<float>(exact)));
    }
  }
}

TEST(LayerScale, ADroppedScalarCopiesTheStream) {
  Rig rig;
  const auto x = random_tensor(6, {3, 50});
  expect_same_bits(layer_scale(rig, x, 0.62f, Deviation::kScalarDropped).values(), x.values(),
                   "dropped");
  EXPECT_FALSE(same_bits(layer_scale(rig, x, 0.62f).values(), x.values()));
}

// gelu(x) = x / (1 + exp(−2t)), each operation of the contract by itself.
bf16 gelu_by_contract(bf16 gate) {
  const float x = widen(gate);
  const float square = x * x;
  const float u2 = square * x;
  const float t = bits_float(0x3f4c422au) * __builtin_fmaf(bits_float(0x3d372713u), u2, x);
  return round_bf16(x / (1.0f + arith::exp(-2.0f * t)));
}

TEST(GeluMul, EqualsTheContractForEveryGate) {
  Rig rig;
  Tensor<bf16> gate({256, 256}), up({256, 256});
  CounterRng rng(7);
  for (int r = 0; r < 256; ++r) {
    for (int i = 0; i < 256; ++i) {
      gate(r, i) = bf16{static_cast<uint16_t>(r * 256 + i)};
      up(r, i) = random_bf16(rng, 2.0f);
    }
  }
  const auto y = gelu_mul(rig, gate, up);
  for (int r = 0; r < 256; ++r) {
    for (int i = 0; i < 256; ++i) {
      const bf16 g = gelu_by_contract(gate(r, i));
      ASSERT_EQ(y.gelu(r, i), g) << std::hex << gate(r, i).bits;
      ASSERT_EQ(y.out(r, i), round_bf16(widen(g) * widen(up(r, i))));
    }
  }
}

TEST(GeluMul, IsWithinOneRoundingOfTheTanhForm) {
  Rig rig;
  std::vector<float> gates;
  for (float x = -12.0f; x <= 12.0f; x += 0.03125f) gates.push_back(x);
  const auto gate = row_of(gates), up = row_of(std::vector<float>(gates.size(), 1.0f));
  const auto y = gelu_mul(rig, gate, up);
  for (size_t i = 0; i < gates.size(); ++i) {
    const long double x = widen(gate(0, static_cast<int64_t>(i)));
    const long double t = std::sqrt(2.0L / 3.14159265358979323846L) * (x + 0.044715L * x * x * x);
    const long double truth = x / (1.0L + std::exp(-2.0L * t));  // = x/2·(1 + tanh t)
    const double error = static_cast<double>(truth) * (0x1p-8 + 0x1p-16);
    // tolerance: fp64 reference; half a bf16 ulp, and fp32's error in exp(−2t) for large t
    EXPECT_NEAR(widen(y.gelu(0, static_cast<int64_t>(i))), static_cast<double>(truth),
                std::abs(error) + 1e-30);
  }
}

TEST(GeluMul, HasTheValuesOfTheTanhFormAndNotOfErfOrSilu) {
  EXPECT_EQ(gelu_by_contract(round_bf16(1.0f)), round_bf16(0.841192f));
  EXPECT_EQ(gelu_by_contract(round_bf16(-3.0f)), round_bf16(-0.003637f));
  EXPECT_NE(gelu_by_contract(round_bf16(-3.0f)), round_bf16(-0.004050f));  // erf
  EXPECT_NE(gelu_by_contract(round_bf16(-3.0f)), round_bf16(-0.142278f));  // SiLU
  Rig rig;
  const auto y = gelu_mul(rig, row_of({1.0f, -3.0f}), row_of({1.0f, 1.0f}));
  EXPECT_EQ(y.gelu(0, 0), round_bf16(0.841192f));
  EXPECT_EQ(y.gelu(0, 1), round_bf16(-0.003637f));
}

TEST(GeluMul, RoundsTheGateBeforeTheProduct) {
  Rig rig;
  const auto gate = random_tensor(8, {20, 200}), up = random_tensor(9, {20, 200});
  const auto y = gelu_mul(rig, gate, up);
  int differs = 0;
  for (int r = 0; r < 20; ++r) {
    for (int i = 0; i < 200; ++i) {
      const float x = widen(gate(r, i));
      const float t =
          bits_float(0x3f4c422au) * __builtin_fmaf(bits_float(0x3d372713u), x * x * x, x);
      const float unrounded = x / (1.0f + arith::exp(-2.0f * t)) * widen(up(r, i));
      differs += y.out(r, i) != round_bf16(unrounded);
    }
  }
  EXPECT_GT(differs, 400);  // dropping the inner rounding would move one output in several
}

TEST(GeluMul, WorksOnTheHalvesOfAFusedBufferAndInPlace) {
  Rig rig;
  auto fused = random_tensor(10, {6, 64});
  View gate = fused.view(), up = fused.view();
  gate.shape[1] = up.shape[1] = 32;
  up.ptr = static_cast<bf16*>(up.ptr) + 32;
  Tensor<bf16> apart({6, 32});
  ASSERT_TRUE(ran(ops::gelu_mul(rig.ctx, kNowhere, {gate, up, View{}, apart.view()})));
  ASSERT_TRUE(ran(ops::gelu_mul(rig.ctx, kNowhere, {gate, up, View{}, gate})));
  for (int r = 0; r < 6; ++r) {
    for (int i = 0; i < 32; ++i) ASSERT_EQ(fused(r, i), apart(r, i));
  }
}

TEST(GeluMul, ARowDoesNotDependOnItsBatch) {
  const auto gate = random_tensor(11, {65, 640}, 1.5f, 1), up = random_tensor(12, {65, 640});
  expect_rows_do_not_depend_on_the_batch([&](Rig& rig, int first, int count) {
    Tensor<bf16> gelu({count, 640}), out({count, 640}, 1), sum({count, 640});
    EXPECT_TRUE(ran(
        ops::gelu_mul(rig.ctx, kNowhere,
                      {gate.rows(first, count), up.rows(first, count), gelu.view(), out.view()})));
    EXPECT_TRUE(
        ran(ops::residual(rig.ctx, kNowhere, {gate.rows(first, count), out.view(), sum.view()})));
    std::vector<RowBits> rows(static_cast<size_t>(count));
    for (int r = 0; r < count; ++r) {
      append_bits(rows[static_cast<size_t>(r)], gelu.row(r), 640);
      append_bits(rows[static_cast<size_t>(r)], out.row(r), 640);
      append_bits(rows[static_cast<size_t>(r)], sum.row(r), 640);
    }
    return rows;
  });
}

TEST(Residual, ZeroRowsRun) {
  Rig rig;
  const Tensor<bf16> none({0, 8});
  EXPECT_TRUE(ran(ops::residual(rig.ctx, kNowhere, {none.view(), none.view(), none.view()})));
  EXPECT_TRUE(ran(ops::gelu_mul(rig.ctx, kNowhere, {none.view(), none.view(), {}, none.view()})));
}

}  // namespace
}  // namespace sb::ops_testing
