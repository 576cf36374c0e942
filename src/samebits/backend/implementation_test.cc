// The CPU's tables of implementations, and where KvView says a key lies.
#include "samebits/backend/implementation.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace sb {
namespace {

struct Claims {
  std::map<ContractId, int> count;  // of (contract, profile) pairs, by contract
  std::set<std::string> ids;
  int rows = 0;

  template <class Args>
  void add() {
    for (const auto& i : cpu_implementations<Args>()) {
      ++rows;
      ids.insert(i.id);
      EXPECT_EQ(i.device, DeviceId::kCpu);
      EXPECT_TRUE(i.run && i.schedule && i.split && i.arch);
      for (const Profile p : kProfiles) count[i.contract] += (i.profiles & profile_bit(p)) != 0;
    }
  }
};

TEST(Implementations, TheCpuClaimsEveryContractInEveryProfile) {
  Claims c;
  c.add<EmbedArgs>();
  c.add<RmsNormArgs>();
  c.add<GemmArgs>();
  c.add<GemmPartialArgs>();
  c.add<GemmFinishArgs>();
  c.add<RopeArgs>();
  c.add<KvWriteArgs>();
  c.add<AttentionArgs>();
  c.add<ResidualArgs>();
  c.add<LayerScaleArgs>();
  c.add<GeluMulArgs>();
  c.add<HeadArgs>();
  c.add<HeadFinishArgs>();
  c.add<SampleArgs>();
  EXPECT_EQ(static_cast<int>(c.ids.size()), c.rows);  // no two share an ID
  for (int i = 0; i < kNumContracts; ++i) {
    const auto id = static_cast<ContractId>(i);
    // The tree product and the head are two operators each.
    const int operators = id == ContractId::kGemmTree || id == ContractId::kHead ? 2 : 1;
    EXPECT_EQ(c.count[id], 3 * operators) << contract(id).name;
  }
}

TEST(Implementations, ABackendThatIsNotBuiltSaysSo) {
  if (cuda_absence()) {
    EXPECT_NE(std::string(cuda_absence()).find("CUDA"), std::string::npos);
    EXPECT_TRUE(cuda_implementations<GemmArgs>().empty());
  } else {
    EXPECT_FALSE(cuda_implementations<GemmArgs>().empty());
  }
  EXPECT_NE(std::string(hip_absence()).find("HIP"), std::string::npos);
}

TEST(KvViews, APagedKeyLiesInItsPageOfTheTable) {
  KvView kv;
  kv.kind = KvView::kPaged;
  kv.page_size = 16;
  kv.page_stride = 1000;
  kv.token_stride = 10;
  const int32_t table[] = {7, 0, 2000000000};
  EXPECT_EQ(kv_offset(kv, table, 0), 7000);
  EXPECT_EQ(kv_offset(kv, table, 15), 7150);
  EXPECT_EQ(kv_offset(kv, table, 16), 0);
  EXPECT_EQ(kv_offset(kv, table, 33), 2000000000ll * 1000 + 10);  // no 32-bit overflow
}

TEST(KvViews, ALinearKeyLiesBehindItsSequencesFirstRow) {
  KvView kv;
  kv.token_stride = 4096;
  const int32_t base[] = {1000000};
  EXPECT_EQ(kv_offset(kv, base, 0), 4096000000ll);
  EXPECT_EQ(kv_offset(kv, base, 5), 4096020480ll);
}

}  // namespace
}  // namespace sb
