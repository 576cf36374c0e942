// Selection and records: the one implementation that matches, or a refusal that lists all; and the
// provenance line of what really ran, chained so that no field can be altered unseen.
#include "samebits/ops/records.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "samebits/base/digest.h"
#include "samebits/ops/launch.h"
#include "samebits/ops/op_testing.h"
#include "samebits/ops/ops.h"

namespace sb::ops_testing {
namespace {

Status norm(Ctx& ctx, int64_t rows = 3, int layer = 2, LayerType type = LayerType::kSliding,
            int64_t width = 32) {
  const auto x = random_tensor(1, {rows, 2, width});
  Tensor<bf16> out({rows, 2, width});
  return ops::rmsnorm(ctx, {{Tap::kAttnQNorm, layer}, type}, {x.view(), View{}, out.view(), 1e-6f});
}

TEST(Selection, ABackendThatIsNotBuiltIsRefusedWithEveryCandidateAndTheReason) {
  Rig rig;
  rig.ctx.backend = *find_backend("cuda");
  const auto status = norm(rig.ctx);
  EXPECT_TRUE(refused(status, "cpu.rmsnorm.row.v1: runs on cpu"));
  EXPECT_TRUE(refused(status, cuda_absence() ? cuda_absence() : "is built for sm_90a"));
  EXPECT_NE(status.error().asked.find("rmsnorm.v1 with profile sm90 on cuda"), std::string::npos);
  rig.ctx.backend = *find_backend("hip");
  EXPECT_TRUE(refused(norm(rig.ctx), "no HIP backend"));
  EXPECT_TRUE(rig.records.lines().empty());
}

const std::vector<Candidate> kCandidates = {
    {"a", ContractId::kGemm, profile_bit(Profile::kSm90), DeviceId::kCpu},
    {"b", ContractId::kGemm, profile_bit(Profile::kIeee), DeviceId::kCpu},
    {"c", ContractId::kGemm, profile_bit(Profile::kSm90), DeviceId::kCuda},
    {"d", ContractId::kGemmTree, kAllProfiles, DeviceId::kCpu},
};

TEST(Selection, IsExactInContractProfileAndDevice) {
  const auto pick = [](ContractId id, Profile p, DeviceId::Kind d) {
    return select_candidate(kCandidates, id, p, d);
  };
  EXPECT_EQ(*pick(ContractId::kGemm, Profile::kSm90, DeviceId::kCpu), 0u);
  EXPECT_EQ(*pick(ContractId::kGemm, Profile::kIeee, DeviceId::kCpu), 1u);
  EXPECT_EQ(*pick(ContractId::kGemm, Profile::kSm90, DeviceId::kCuda), 2u);
  EXPECT_EQ(*pick(ContractId::kGemmTree, Profile::kGfx942, DeviceId::kCpu), 3u);
}

TEST(Selection, ARefusalNamesEachCandidateAndItsFirstFailedCondition) {
  const auto none =
      select_candidate(kCandidates, ContractId::kGemm, Profile::kGfx942, DeviceId::kCpu);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kRefused);
  EXPECT_EQ(none.error().reasons,
            (std::vector<std::string>{"a: does not cover profile gfx942",
                                      "b: does not cover profile gfx942", "c: runs on cuda",
                                      "d: claims gemm_tree.v1"}));
}

TEST(SelectionDeathTest, TwoImplementationsOfOneSelectionAreABugOfOurs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto twice = kCandidates;
  twice.push_back(kCandidates[0]);
  EXPECT_DEATH(
      static_cast<void>(select_candidate(twice, ContractId::kGemm, Profile::kSm90, DeviceId::kCpu)),
      "two implementations");
}

TEST(Records, SayWhatRanInEveryField) {
  Rig rig({Profile::kGfx942, arith::best_isa()});
  ASSERT_TRUE(ran(norm(rig.ctx)));
  ASSERT_EQ(rig.records.lines().size(), 1u);
  const Record& r = rig.records.lines()[0];
  EXPECT_EQ(r.op, "rmsnorm");
  EXPECT_EQ(r.site, "layers.2.attn.q_norm");
  EXPECT_EQ(r.layer, 2);
  EXPECT_EQ(r.layer_type, "sliding");
  EXPECT_EQ(r.contract, "rmsnorm.v1");
  EXPECT_EQ(r.contract_digest, contract(ContractId::kRmsNorm).digest);
  EXPECT_EQ(r.implementation, "cpu.rmsnorm.row.v1");
  EXPECT_EQ(r.schedule, "row");
  EXPECT_EQ(r.split, "none");
  EXPECT_EQ(r.accumulator, "f32");
  EXPECT_EQ(r.profile, "gfx942");
  EXPECT_EQ(r.backend_requested, "cpu");
  EXPECT_EQ(r.backend_actual, "cpu");
  EXPECT_EQ(r.device, "cpu:0");
  EXPECT_EQ(r.dtype, "bf16");
  EXPECT_EQ(r.shape, "heads=2 D=32");
  EXPECT_FALSE(r.fallback);
  EXPECT_EQ(r.launches, 1);
  EXPECT_EQ(r.rows, 3);
}

TEST(Records, LaunchesThatAgreeAreOneLineAndOthersAreNot) {
  Rig rig;
  for (const int64_t rows : {3, 1, 4}) ASSERT_TRUE(ran(norm(rig.ctx, rows)));
  ASSERT_EQ(rig.records.lines().size(), 1u);
  EXPECT_EQ(rig.records.lines()[0].launches, 3);
  EXPECT_EQ(rig.records.lines()[0].rows, 8);
  ASSERT_TRUE(ran(norm(rig.ctx, 3, 3)));                           // another layer
  ASSERT_TRUE(ran(norm(rig.ctx, 3, 2, LayerType::kGlobal)));       // another type
  ASSERT_TRUE(ran(norm(rig.ctx, 3, 2, LayerType::kSliding, 64)));  // another width
  rig.ctx.exec.profile = Profile::kIeee;
  ASSERT_TRUE(ran(norm(rig.ctx)));
  EXPECT_EQ(rig.records.lines().size(), 5u);
  int64_t launches = 0;
  for (const Record& r : rig.records.lines()) launches += r.launches;
  EXPECT_EQ(launches, 7);
  rig.records.clear();
  EXPECT_TRUE(rig.records.lines().empty());
}

TEST(Records, EveryOperatorOfAContractLeavesOne) {
  Rig rig;
  const auto x = random_tensor(2, {2, 32}), w = random_tensor(3, {32, 32});
  Tensor<bf16> out({2, 32});
  GemmArgs g;
  g.x = x.view(), g.count = 1, g.w[0] = {w.data(), 32, 32, 32}, g.out[0] = out.view();
  ASSERT_TRUE(ran(ops::gemm(rig.ctx, kNowhere, g)));
  ASSERT_TRUE(ran(ops::residual(rig.ctx, kNowhere, {x.view(), x.view(), out.view()})));
  EXPECT_EQ(rig.records.lines().size(), 2u);
  EXPECT_EQ(rig.records.lines()[0].shape, "N=32 K=32");
  rig.ctx.records = nullptr;  // records are optional
  EXPECT_TRUE(ran(ops::residual(rig.ctx, kNowhere, {x.view(), x.view(), out.view()})));
}

TEST(Records, ARefusedCallLeavesNone) {
  Rig rig;
  const auto x = random_tensor(4, {2, 2, 32});
  EXPECT_FALSE(ops::rmsnorm(rig.ctx, kNowhere, {x.view(), View{}, x.view(), 1e-6f}));
  EXPECT_TRUE(rig.records.lines().empty());
}

std::vector<Record> three_records() {
  Rig rig;
  for (const int layer : {0, 1, 2}) EXPECT_TRUE(ran(norm(rig.ctx, 3, layer)));
  return rig.records.lines();
}

TEST(Records, TheChainIsTheSameForTheSameLines) {
  const auto lines = three_records();
  const auto a = seal_records(lines), b = seal_records(lines);
  ASSERT_EQ(a.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(a[i].chain, b[i].chain);
    EXPECT_EQ(a[i].chain.size(), 64u);
    EXPECT_EQ(a[i].record, lines[i]);
  }
  const std::string first = std::string(64, '0') + "\n" + record_line(lines[0]);
  EXPECT_EQ(a[0].chain, sha256_hex(first));
  EXPECT_EQ(a[1].chain, sha256_hex(a[0].chain + "\n" + record_line(lines[1])));
}

TEST(Records, AlteringAnyFieldChangesEveryLaterLink) {
  const auto lines = three_records();
  const auto clean = seal_records(lines);
  const auto fields = nlohmann::json::parse(record_line(lines[1]));
  EXPECT_EQ(fields.size(), 19u);  // a new field of Record needs a line below
  const std::vector<void (*)(Record&)> alter = {
      [](Record& r) { r.op += "x"; },
      [](Record& r) { r.site += "x"; },
      [](Record& r) { r.layer += 1; },
      [](Record& r) { r.layer_type = "global"; },
      [](Record& r) { r.contract += "x"; },
      [](Record& r) { r.contract_digest[5] ^= 1; },
      [](Record& r) { r.implementation += "x"; },
      [](Record& r) { r.schedule += "x"; },
      [](Record& r) { r.split += "x"; },
      [](Record& r) { r.accumulator = "bf16"; },
      [](Record& r) { r.profile = "ieee"; },
      [](Record& r) { r.backend_requested = "cuda"; },
      [](Record& r) { r.backend_actual = "cuda"; },
      [](Record& r) { r.device = "cpu:1"; },
      [](Record& r) { r.dtype = "f32"; },
      [](Record& r) { r.shape += " "; },
      [](Record& r) { r.fallback = true; },
      [](Record& r) { r.launches += 1; },
      [](Record& r) { r.rows -= 1; },
  };
  EXPECT_EQ(alter.size(), fields.size());
  for (size_t i = 0; i < alter.size(); ++i) {
    auto changed = lines;
    alter[i](changed[1]);
    const auto sealed = seal_records(changed);
    EXPECT_EQ(sealed[0].chain, clean[0].chain) << i;
    EXPECT_NE(sealed[1].chain, clean[1].chain) << i;
    EXPECT_NE(sealed[2].chain, clean[2].chain) << i;
  }
}

TEST(Records, RemovingOrReorderingLinesChangesTheChain) {
  auto lines = three_records();
  const auto last = seal_records(lines).back().chain;
  auto fewer = lines;
  fewer.erase(fewer.begin() + 1);
  EXPECT_NE(seal_records(fewer).back().chain, last);
  std::swap(lines[0], lines[1]);
  EXPECT_NE(seal_records(lines).back().chain, last);
}

}  // namespace
}  // namespace sb::ops_testing
