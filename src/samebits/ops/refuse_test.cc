// What operators refuse before anything runs: the message names the argument and what it has to be,
// and no output is touched.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "samebits/ops/attention_testing.h"
#include "samebits/ops/head_testing.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sb::ops_testing {
namespace {

// A valid call of each operator with many ways to go wrong, to be bent by one test each.
struct NormCall {
  Tensor<bf16> x = random_tensor(1, {3, 2, 32}), w = random_tensor(2, {32});
  Tensor<bf16> out = Tensor<bf16>({3, 2, 32});
  RmsNormArgs args{x.view(), w.view(), out.view(), 1e-6f};
};

struct AttentionCall {
  AttentionSetup s{4, 2, 32, 24, 0};
  Keys keys{1, s, {40}};
  Cache cache = filled_cache(s, keys, Layout::kPageKv, 16, 1);
  Tensor<bf16> q = random_tensor(3, {2, 4, 32}), out = Tensor<bf16>({2, 4, 32});
  Tensor<int32_t> pos = int_tensor({39, 3}), seq = int_tensor({0, 0});
  AttentionArgs args;
  AttentionCall() {
    args.q = q.view(), args.pos = pos.view(), args.seq = seq.view(), args.kv = cache.view;
    args.num_kv_heads = 2, args.window = 24, args.out = out.view();
  }
};

struct HeadCall {
  Tensor<bf16> z = random_tensor(4, {2, 32}), w = random_tensor(5, {300, 32});
  Tensor<int32_t> target = int_tensor({1, 2});
  Tensor<float> tiles = Tensor<float>({2, 8, 2}), ms = Tensor<float>({2, 8, 2}),
                c = Tensor<float>({2});
  HeadArgs args;
  HeadCall() {
    args.z = z.view(), args.w = {w.data(), 300, 32, 32}, args.vocab = 300;
    args.target = target.view(), args.tile_ms = tiles.view();
    args.shard_ms = ms.view(), args.c_target = c.view();
  }
};

TEST(OpsRefuse, TheValidCallsRun) {
  Rig rig;
  EXPECT_TRUE(ran(ops::rmsnorm(rig.ctx, kNowhere, NormCall().args)));
  AttentionCall attention;
  EXPECT_TRUE(ran(ops::attention(rig.ctx, attention.s.site(), attention.args)));
  HeadCall head;
  EXPECT_TRUE(ran(ops::head(rig.ctx, kNowhere, head.args)));
}

TEST(OpsRefuse, WrongDtypesRanksAndShapes) {
  Rig rig;
  NormCall c;
  RmsNormArgs a = c.args;
  a.x.dtype = Dtype::kF32;
  EXPECT_TRUE(refused(ops::rmsnorm(rig.ctx, kNowhere, a), "x is f32[3, 2, 32], needs bf16"));
  a = c.args;
  a.out.shape[2] = 31;
  EXPECT_TRUE(refused(ops::rmsnorm(rig.ctx, kNowhere, a), "out is bf16[3, 2, 31], needs"));
  a = c.args;
  a.w.shape[0] = 33;
  EXPECT_TRUE(refused(ops::rmsnorm(rig.ctx, kNowhere, a), "w is bf16[33], needs bf16[32]"));
  a = c.args;
  a.x.rank = 2;
  EXPECT_TRUE(refused(ops::rmsnorm(rig.ctx, kNowhere, a), "x is bf16[3, 2]"));
  a = c.args;
  a.eps = 0;
  EXPECT_TRUE(refused(ops::rmsnorm(rig.ctx, kNowhere, a), "eps"));
  for (const bf16 x : c.out.values()) ASSERT_EQ(x.bits, 0xffff);  // nothing ran
}

TEST(OpsRefuse, StridesAddressesAndNullPointers) {
  Rig rig;
  NormCall c;
  RmsNormArgs a = c.args;
  a.x.stride[2] = 2;
  EXPECT_TRUE(refused(ops::rmsnorm(rig.ctx, kNowhere, a), "last dimension has stride 2"));
  a = c.args;
  a.x.ptr = static_cast<char*>(a.x.ptr) + 1;
  EXPECT_TRUE(refused(ops::rmsnorm(rig.ctx, kNowhere, a), "not a multiple of its element size"));
  a = c.args;
  a.out.ptr = nullptr;
  EXPECT_TRUE(refused(ops::rmsnorm(rig.ctx, kNowhere, a), "null pointer"));
  a = c.args;
  a.out.stride[0] = 0;  // all rows on top of each other
  EXPECT_TRUE(refused(ops::rmsnorm(rig.ctx, kNowhere, a), "let elements share memory"));
  a = c.args;
  a.out.stride[1] = 16;  // heads half on top of each other
  EXPECT_TRUE(refused(ops::rmsnorm(rig.ctx, kNowhere, a), "let elements share memory"));
}

TEST(OpsRefuse, OutputsOnTopOfInputs) {
  Rig rig;
  NormCall c;
  RmsNormArgs a = c.args;
  a.out = a.x;
  EXPECT_TRUE(refused(ops::rmsnorm(rig.ctx, kNowhere, a), "out overlaps x"));
  auto x = random_tensor(6, {4, 64});
  View shifted = x.rows(1, 3);
  EXPECT_TRUE(refused(ops::residual(rig.ctx, kNowhere, {x.rows(0, 3), x.rows(0, 3), shifted}),
                      "overlaps a part of x"));
  // Column ranges of one buffer cross in their spans and share no byte.
  View left = x.view(), right = x.view();
  left.shape[1] = right.shape[1] = 32;
  right.ptr = static_cast<bf16*>(right.ptr) + 32;
  EXPECT_TRUE(ran(ops::residual(rig.ctx, kNowhere, {left, left, right})));
  right.ptr = static_cast<bf16*>(right.ptr) - 1;
  EXPECT_TRUE(refused(ops::residual(rig.ctx, kNowhere, {left, left, right}), "overlaps a part"));
}

TEST(OpsRefuse, MemoryOfAnotherDevice) {
  Rig rig;
  NormCall c;
  c.args.w.device = {DeviceId::kCuda, 0};
  EXPECT_TRUE(refused(ops::rmsnorm(rig.ctx, kNowhere, c.args), "w lies on another device"));
}

TEST(OpsRefuse, KeysOfOtherWeights) {
  Rig rig;
  AttentionCall c;
  c.args.kv.epoch = 8;
  EXPECT_TRUE(refused(ops::attention(rig.ctx, c.s.site(), c.args), "other weights"));
  Tensor<int32_t> slot = int_tensor({0, 1});
  const auto k = random_tensor(7, {2, 2, 32});
  EXPECT_TRUE(
      refused(ops::kv_write(rig.ctx, kNowhere, {k.view(), k.view(), slot.view(), c.args.kv}),
              "other weights"));
  KvView linear = c.args.kv;
  linear.epoch = 7;
  linear.kind = KvView::kLinear;
  EXPECT_TRUE(refused(ops::kv_write(rig.ctx, kNowhere, {k.view(), k.view(), slot.view(), linear}),
                      "paged cache"));
}

TEST(OpsRefuse, WindowsSegmentsAndHeadsThatFitNoLayer) {
  Rig rig;
  AttentionCall c;
  const Site sliding = c.s.site(), global{sliding.boundary, LayerType::kGlobal};
  EXPECT_TRUE(refused(ops::attention(rig.ctx, global, c.args), "a global layer has no window"));
  AttentionArgs a = c.args;
  a.window = 0;
  EXPECT_TRUE(refused(ops::attention(rig.ctx, sliding, a), "needs a window"));
  for (const int segment : {0, -64, 100}) {
    a.segment = segment;
    EXPECT_TRUE(refused(ops::attention(rig.ctx, global, a), "positive multiple of 64"));
  }
  a = c.args;
  a.segment = 64;
  EXPECT_TRUE(refused(ops::attention(rig.ctx, sliding, a), "no segment"));
  for (const int heads : {0, 3, -2}) {
    a = c.args;
    a.num_kv_heads = heads;
    EXPECT_TRUE(refused(ops::attention(rig.ctx, sliding, a), "do not divide into"));
  }
  a = c.args;
  a.kv.k = nullptr;
  EXPECT_TRUE(refused(ops::attention(rig.ctx, sliding, a), "no memory"));
  a = c.args;
  a.kv.table = View{};
  EXPECT_TRUE(refused(ops::attention(rig.ctx, sliding, a), "no i32 table"));
}

TEST(OpsRefuse, BlockTablesThatLeadAVisibleKeyToNoPage) {
  Rig rig({Profile::kSm90, arith::best_isa()}, 2);
  for (const int32_t page : {-1, 0x7fffffff}) {
    AttentionCall c;
    c.cache.table(0, 0) = page;  // keys 0 … 15: seen from position 3, not from 39
    EXPECT_TRUE(refused(ops::attention(rig.ctx, c.s.site(), c.args), "page that does not exist"));
    c.pos(1) = 39;
    EXPECT_TRUE(ran(ops::attention(rig.ctx, c.s.site(), c.args)));
  }
}

TEST(OpsRefuse, TemperaturesThatAreNotFiniteAndPositive) {
  Rig rig;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float t : {0.0f, -1.0f, kInf, -kInf, std::nanf("")}) {
    HeadCall c;
    c.args.temperature = t;
    EXPECT_TRUE(refused(ops::head(rig.ctx, kNowhere, c.args), "temperature")) << t;
    SampleArgs s;
    s.temperature = t;
    EXPECT_TRUE(refused(ops::sample(rig.ctx, kNowhere, s), "temperature")) << t;
  }
  HeadCall c;
  c.args.softcap = 0;
  EXPECT_TRUE(refused(ops::head(rig.ctx, kNowhere, c.args), "softcap"));
}

TEST(OpsRefuse, HeadWeightsThatAreNotThoseOfTheShards) {
  Rig rig;
  HeadCall c;
  c.args.w.n = 299;
  EXPECT_TRUE(refused(ops::head(rig.ctx, kNowhere, c.args), "not those of the shards"));
  HeadCall d;
  d.args.shard_begin = 4;
  EXPECT_TRUE(refused(ops::head(rig.ctx, kNowhere, d.args), "outside the 8"));
  HeadCall e;
  e.args.w.k = 31;
  EXPECT_TRUE(refused(ops::head(rig.ctx, kNowhere, e.args), "columns"));
}

TEST(OpsRefuse, LeavesThatAreNotThoseOfTheDepth) {
  const auto x = random_tensor(8, {2, 128}), w = random_tensor(9, {4, 128});
  Tensor<float> partial({2, 4});
  const WeightView weight{w.data(), 4, 128, 128};
  Rig one;
  for (const int leaves : {1, 4, 0, 16}) {  // K = 128 has eight
    EXPECT_TRUE(
        refused(ops::gemm_partial(one.ctx, kNowhere, {x.view(), weight, leaves, partial.view()}),
                "leaves of K = 128"));
  }
  for (const int ranks : {3, 5, 16}) {
    Rig rig({}, 1, ranks);
    EXPECT_TRUE(refused(ops::gemm_partial(rig.ctx, kNowhere, {x.view(), weight, 2, partial.view()}),
                        "do not divide the 8 leaves"));
  }
  Rig two({}, 1, 2);
  const auto narrow = random_tensor(10, {2, 72});
  const WeightView narrow_weight{w.data(), 4, 72, 72};
  EXPECT_TRUE(refused(
      ops::gemm_partial(two.ctx, kNowhere, {narrow.view(), narrow_weight, 1, partial.view()}),
      "several ranks need K mod 128 = 0"));
}

TEST(OpsRefuse, WeightsWithoutRowsOrOfAnotherDepth) {
  Rig rig;
  const auto x = random_tensor(11, {2, 64}), w = random_tensor(12, {8, 64});
  Tensor<bf16> out({2, 8});
  const auto call = [&](const WeightView& weight, int count = 1) {
    GemmArgs a;
    a.x = x.view(), a.count = count, a.w[0] = weight, a.out[0] = out.view();
    return ops::gemm(rig.ctx, kNowhere, a);
  };
  EXPECT_TRUE(ran(call({w.data(), 8, 64, 64})));
  EXPECT_TRUE(refused(call({w.data(), 8, 63, 64}), "needs 64 columns"));
  EXPECT_TRUE(refused(call({w.data(), 8, 64, 63}), "rows overlap"));
  EXPECT_TRUE(refused(call({nullptr, 8, 64, 64}), "without rows"));
  EXPECT_TRUE(refused(call({w.data(), 8, 64, 64}, 0), "1 to 3 weights"));
  EXPECT_TRUE(refused(call({w.data(), 8, 64, 64}, 4), "1 to 3 weights"));
}

TEST(OpsRefuse, EveryReasonIsListedAtOnce) {
  Rig rig;
  NormCall c;
  c.args.x.dtype = Dtype::kF32;
  c.args.eps = -1;
  const auto status = ops::rmsnorm(rig.ctx, kNowhere, c.args);
  ASSERT_FALSE(status);
  EXPECT_GE(status.error().reasons.size(), 2u);
  EXPECT_NE(status.error().asked.find("rmsnorm"), std::string::npos);
  EXPECT_NE(status.error().asked.find("layers.0.attn.norm"), std::string::npos);
}

#if defined(__x86_64__)
// A library built with fast-math may set FTZ and DAZ for a whole thread.
TEST(OpsRefuse, FlushedSubnormalsInTheCallingThread) {
  Rig rig;
  NormCall c;
  const unsigned clean = _mm_getcsr();
  for (const unsigned bit : {0x8000u, 0x0040u}) {
    _mm_setcsr(clean | bit);
    const auto status = ops::rmsnorm(rig.ctx, kNowhere, c.args);
    _mm_setcsr(clean);
    EXPECT_TRUE(refused(status, "subnormal", Code::kEnvironment));
    EXPECT_TRUE(rig.records.lines().empty());
  }
  EXPECT_TRUE(ran(ops::rmsnorm(rig.ctx, kNowhere, c.args)));
}
#endif

TEST(OpsRefuse, AnotherRoundingMode) {
  Rig rig;
  NormCall c;
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const auto status = ops::rmsnorm(rig.ctx, kNowhere, c.args);
  std::fesetround(FE_TONEAREST);
  EXPECT_TRUE(refused(status, "rounding mode", Code::kEnvironment));
}

}  // namespace
}  // namespace sb::ops_testing
