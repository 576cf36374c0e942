// The registry of contracts: every one has an entry, its JSON is canonical, and its digest is
// frozen in goldens/contracts.json.
#include "samebits/contract/contract.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "samebits/base/digest.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

const char* kGoldens = SB_SOURCE_DIR "/goldens/contracts.json";

TEST(Contract, EveryIdHasItsEntry) {
  ASSERT_EQ(all_contracts().size(), size_t{kNumContracts});
  std::set<std::string> names, digests;
  for (int i = 0; i < kNumContracts; ++i) {
    const Contract& c = contract(static_cast<ContractId>(i));
    EXPECT_EQ(static_cast<int>(c.id), i);
    EXPECT_TRUE(c.name.ends_with(".v1")) << c.name;
    EXPECT_FALSE(c.formula.empty());
    EXPECT_EQ(find_contract(c.name), c.id);
    names.insert(c.name);
    digests.insert(c.digest);
  }
  EXPECT_EQ(names.size(), size_t{kNumContracts});
  EXPECT_EQ(digests.size(), size_t{kNumContracts});
  EXPECT_FALSE(find_contract("rmsnorm.v2").has_value());
  EXPECT_FALSE(find_contract("").has_value());
}

TEST(Contract, TheJsonIsCanonical) {
  for (const Contract& c : all_contracts()) {
    const auto parsed = nlohmann::json::parse(c.json, nullptr, false);
    ASSERT_FALSE(parsed.is_discarded()) << c.json;
    EXPECT_TRUE(parsed.is_object());
    // nlohmann sorts keys and writes no spaces: equal text means ours is sorted and free of them.
    EXPECT_EQ(parsed.dump(), c.json) << c.name;
    EXPECT_EQ(c.digest, sha256_hex(c.name + "\n" + c.formula + "\n" + c.json));
  }
}

TEST(Contract, TheTextIsMadeFromTheRules) {
  const auto of = [](ContractId id) { return nlohmann::json::parse(contract(id).json); };
  EXPECT_EQ(of(ContractId::kRmsNorm)["slots"], kRmsNormRule.slots);
  EXPECT_EQ(of(ContractId::kGemm)["leaves"], 1);
  EXPECT_EQ(of(ContractId::kGemmTree)["leaves"], 8);
  EXPECT_EQ(of(ContractId::kGemmTree)["tree"], "adjacent-pairs");
  EXPECT_EQ(of(ContractId::kAttentionSliding)["segments"], "none");
  EXPECT_EQ(of(ContractId::kAttentionGlobal)["segments"], "left fold");
  EXPECT_EQ(of(ContractId::kAttentionGlobal)["log2e"], "0x3fb8aa3b");
  EXPECT_EQ(of(ContractId::kGeluMul)["k0"], "0x3f4c422a");
  EXPECT_EQ(of(ContractId::kHead)["shards"], kHeadRule.shards);
  EXPECT_EQ(of(ContractId::kSample)["uniform_bits"], 23);
}

TEST(Contract, DigestsAreTheFrozenOnes) {
  nlohmann::json now;
  for (const Contract& c : all_contracts()) now[c.name] = c.digest;
  now["contract_set"] = contract_set();
  if (std::getenv("SB_UPDATE_GOLDENS")) std::ofstream(kGoldens) << now.dump(1) << "\n";
  std::ifstream file(kGoldens);
  ASSERT_TRUE(file) << kGoldens;
  const auto frozen = nlohmann::json::parse(file);
  EXPECT_EQ(frozen.size(), now.size());
  for (const auto& [name, digest] : now.items()) {
    EXPECT_EQ(frozen.value(name, ""), digest.get<std::string>()) << name;
  }
}

TEST(Contract, TheSetHasANameAndChangesWithAnyDigest) {
  EXPECT_TRUE(contract_set().starts_with("gemma4.strict.v1:"));
  EXPECT_EQ(contract_set().size(), std::string("gemma4.strict.v1:").size() + 16);
  std::string text;
  for (const Contract& c : all_contracts()) text += c.name + ":" + c.digest + "\n";
  EXPECT_TRUE(contract_set().ends_with(sha256_hex(text).substr(0, 16)));
}

}  // namespace
}  // namespace sb
