// The registry of contracts: one entry per rule, with an ID, a canonical JSON text made from the
// rule's value, and a SHA-256 digest of all that. Records, score files and `samebits contract` read
// it here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sb {

enum class ContractId : uint8_t {
  kEmbed,
  kRmsNorm,
  kGemm,
  kGemmTree,
  kRope,
  kKvWrite,
  kAttentionSliding,
  kAttentionGlobal,
  kResidual,
  kLayerScale,
  kGeluMul,
  kHead,
  kSample,
};
inline constexpr int kNumContracts = static_cast<int>(ContractId::kSample) + 1;

struct Contract {
  ContractId id;
  std::string name;     // "rmsnorm.v1"
  std::string formula;  // one line a person reads
  std::string json;     // canonical: sorted keys, no spaces
  std::string digest;   // SHA-256 hex of name, formula and json
};

const Contract& contract(ContractId id);
const std::vector<Contract>& all_contracts();
std::optional<ContractId> find_contract(std::string_view name);

// "gemma4.strict.v1:" and the first 16 hex digits of the SHA-256 over all contracts.
const std::string& contract_set();

}  // namespace sb
