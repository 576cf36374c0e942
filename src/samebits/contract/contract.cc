#include "samebits/contract/contract.h"

#include "samebits/base/digest.h"
#include "samebits/base/result.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

// A canonical JSON object, built with keys in ascending order (asserted).
class Canonical {
 public:
  Canonical& add(const std::string& key, const std::string& raw) {
    SB_ASSERT(last_ < key, "contract keys must ascend");
    text_ += (text_.empty() ? "{\"" : ",\"") + key + "\":" + raw;
    last_ = key;
    return *this;
  }
  Canonical& add(const std::string& key, int v) { return add(key, std::to_string(v)); }
  Canonical& add(const std::string& key, bool v) {
    return add(key, std::string(v ? "true" : "false"));
  }
  Canonical& bits(const std::string& key, uint32_t v) {
    return add(key, "\"0x" + hex64(v).substr(8) + "\"");
  }
  Canonical& text(const std::string& key, const std::string& v) {
    return add(key, "\"" + v + "\"");
  }
  std::string str() const { return text_ + "}"; }

 private:
  std::string text_, last_;
};

std::string tree_name(Tree t) {
  constexpr const char* kNames[] = {"chain", "adjacent-pairs", "fold-bits-0-3-4-5-1-2",
                                    "fold-bits-0-3-4-5-6-7-1-2"};
  return kNames[static_cast<int>(t)];
}

Contract make(ContractId id, const std::string& op, int version, std::string formula,
              const std::string& json) {
  Contract c{id, op + ".v" + std::to_string(version), std::move(formula), json, {}};
  c.digest = sha256_hex(c.name + "\n" + c.formula + "\n" + json);
  return c;
}

Contract gemm(ContractId id, const std::string& op, const GemmRule& r, std::string formula) {
  return make(id, op, r.version, std::move(formula),
              Canonical()
                  .text("accumulator", "f32")
                  .add("leaves", r.leaves)
                  .text("pad", "zero products to a multiple of step_k")
                  .add("round_out", r.round_out)
                  .add("step_k", r.step_k)
                  .text("tree", tree_name(r.tree))
                  .str());
}

Contract attention(ContractId id, const std::string& op, const AttentionRule& r,
                   const std::string& visible) {
  const std::string merge =
      r.segmented ? "; segments: M = max; l = lA*a + lB*b; O = OA*a + OB*b, a, b = E2((m-M)L)" : "";
  return make(id, op, r.version,
              "per 64-key block: s = q.k; m' = max; a = m'=m ? 1 : E2((m-m')L); p = E2((s-m')L); "
              "l = fma(l,a,T64(p)); O = O*a then matrix steps of R(p).v" +
                  merge + "; out = R((O + 0)*(1/l))",
              Canonical()
                  .add("block_keys", r.block_keys)
                  .text("exp", "E2")
                  .bits("log2e", r.log2e_bits)
                  .text("p", "bf16 for the product with v, fp32 for the sum")
                  .text("row_sum", tree_name(r.row_sum))
                  .text("scale", "1")
                  .text("segments", r.segmented ? "left fold" : "none")
                  .add("step_k", r.step_k)
                  .text("visible", visible)
                  .str());
}

std::vector<Contract> build() {
  std::vector<Contract> all;
  all.push_back(make(ContractId::kEmbed, "embed", kEmbedRule.version,
                     "x = R(E[id] * R(sqrt(hidden)))",
                     Canonical().add("round_scale", kEmbedRule.round_scale).str()));
  all.push_back(make(ContractId::kRmsNorm, "rmsnorm", kRmsNormRule.version,
                     "r = 1/sqrt(sum(x*x)/D + eps); y = R((x*r)*w), without w where weightless",
                     Canonical()
                         .text("accumulator", "f32 fma into slot e mod slots, e ascending")
                         .add("slots", kRmsNormRule.slots)
                         .text("tree", tree_name(kRmsNormRule.tree))
                         .text("weight", "w, not 1+w")
                         .str()));
  all.push_back(
      gemm(ContractId::kGemm, "gemm", kGemmRule, "y = R(chain of matrix steps over K from +0)"));
  all.push_back(gemm(ContractId::kGemmTree, "gemm_tree", kGemmTreeRule,
                     "8 leaves of K/8, each a chain from +0; "
                     "y = R(((0+1)+(2+3))+((4+5)+(6+7))); one leaf if K mod 128 != 0"));
  all.push_back(make(ContractId::kRope, "rope", kRopeRule.version,
                     "out = R(a*c - b*s), R(b*c + a*s) on pairs (i, i+D/2); other dims copied",
                     Canonical()
                         .text("angle", "fp32 product inv_freq*p")
                         .text("inv_freq", "RN32(theta^(-2i/D))")
                         .text("table", "sin and cos in double, rounded once to fp32")
                         .str()));
  all.push_back(make(ContractId::kKvWrite, "kv_write", kKvWriteRule.version, "cache[slot] = k, v",
                     Canonical().text("dtype", "bf16").str()));
  all.push_back(attention(ContractId::kAttentionSliding, "attention_sliding", kSlidingAttentionRule,
                          "i-W < j <= i"));
  all.push_back(
      attention(ContractId::kAttentionGlobal, "attention_global", kGlobalAttentionRule, "j <= i"));
  all.push_back(make(ContractId::kResidual, "residual", kResidualRule.version, "h = R(x + p)",
                     Canonical().text("stream", "bf16").str()));
  all.push_back(make(ContractId::kLayerScale, "layer_scale", kLayerScaleRule.version,
                     "y = R(x * s)", Canonical().text("scalar", "bf16 buffer").str()));
  all.push_back(
      make(ContractId::kGeluMul, "gelu_mul", kGeluMulRule.version,
           "u2 = (x*x)*x; t = k0*fma(k1,u2,x); g = x/(1+exp(-2t)); y = R(R(g)*up)",
           Canonical().bits("k0", kGeluMulRule.k0_bits).bits("k1", kGeluMulRule.k1_bits).str()));
  all.push_back(
      make(ContractId::kHead, "head", kHeadRule.version,
           "c = cap*tanh(z/cap)/T; tiles (m,S) merged in pairs; "
           "logp = (c_y - m) - log S",
           Canonical()
               .text("logit", "f32, never bf16")
               .text("max", "max c + 0, so that a zero maximum is +0")
               .text("merge", "M = max; S = SA*exp(mA-M) + SB*exp(mB-M); empty side: other")
               .add("shards", kHeadRule.shards)
               .add("step_k", kHeadRule.step_k)
               .add("tile", kHeadRule.tile)
               .text("tile_sum", tree_name(kHeadRule.tile_sum))
               .str()));
  all.push_back(make(ContractId::kSample, "sample", kSampleRule.version,
                     "argmax of c/T - log(-log u), lowest id on ties; greedy: largest c",
                     Canonical()
                         .text("counter", "xxh64(row id) lo, hi, position, id div 4")
                         .text("rng", "philox4x32-10, word id mod 4")
                         .add("uniform_bits", kSampleRule.uniform_bits)
                         .str()));
  SB_ASSERT(all.size() == size_t{kNumContracts}, "a contract is missing from the registry");
  return all;
}

}  // namespace

const std::vector<Contract>& all_contracts() {
  static const std::vector<Contract> all = build();
  return all;
}

const Contract& contract(ContractId id) { return all_contracts()[static_cast<size_t>(id)]; }

std::optional<ContractId> find_contract(std::string_view name) {
  for (const auto& c : all_contracts()) {
    if (c.name == name) return c.id;
  }
  return {};
}

const std::string& contract_set() {
  static const std::string set = [] {
    std::string text;
    for (const auto& c : all_contracts()) text += c.name + ":" + c.digest + "\n";
    return "gemma4.strict.v1:" + sha256_hex(text).substr(0, 16);
  }();
  return set;
}

}  // namespace sb
