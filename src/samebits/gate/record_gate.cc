#include "samebits/gate/record_gate.h"

#include <map>
#include <nlohmann/json.hpp>

#include "samebits/backend/implementation.h"
#include "samebits/base/file.h"
#include "samebits/chain/rank_plan.h"
#include "samebits/contract/boundary.h"

namespace sb {
namespace {

// What one launch site must say: operator, contract, dtype and shape of the value it makes.
struct Expected {
  std::string op;
  ContractId contract;
  std::string dtype, shape;
};

using Key = std::pair<std::string, std::string>;  // site, op
using Launches = std::map<Key, Expected>;

std::string dims(const char* a, int64_t n) { return std::string(a) + "=" + std::to_string(n); }
std::string dims(const char* a, int64_t n, const char* b, int64_t m) {
  return dims(a, n) + " " + dims(b, m);
}

void expect_layer(Launches& all, const Architecture& arch, const RankPlan& plan, int i,
                  bool paged) {
  const LayerType type = arch.layers[i];
  const bool sliding = type == LayerType::kSliding;
  const int64_t d = arch.attention(type).head_dim, heads = plan.heads, kv = plan.kv(type).heads;
  auto add = [&](Tap tap, const char* op, ContractId id, std::string shape,
                 const char* dtype = "bf16") {
    all[{boundary_name({tap, i}), op}] = {op, id, dtype, std::move(shape)};
  };
  const std::string row = dims("heads", 1, "D", arch.hidden), hidden = dims("hidden", arch.hidden);
  for (Tap t : {Tap::kAttnNorm, Tap::kAttnPostNorm, Tap::kMlpNorm, Tap::kMlpPostNorm}) {
    add(t, "rmsnorm", ContractId::kRmsNorm, row);
  }
  add(Tap::kAttnQNorm, "rmsnorm", ContractId::kRmsNorm, dims("heads", heads, "D", d));
  add(Tap::kAttnKNorm, "rmsnorm", ContractId::kRmsNorm, dims("heads", kv, "D", d));
  add(Tap::kAttnVNorm, "rmsnorm", ContractId::kRmsNorm, dims("heads", kv, "D", d));
  add(Tap::kAttnQ, "gemm", ContractId::kGemm,
      dims("N", (heads + (sliding ? 2 : 1) * kv) * d, "K", arch.hidden));
  add(Tap::kMlpGate, "gemm", ContractId::kGemm, dims("N", 2 * plan.inter, "K", arch.hidden));
  add(Tap::kAttnQRope, "rope", ContractId::kRope, dims("heads", heads, "D", d));
  add(Tap::kAttnKRope, "rope", ContractId::kRope, dims("heads", kv, "D", d));
  if (paged) {
    add(Tap::kAttnKRope, "kv_write", ContractId::kKvWrite, dims("heads", kv, "D", d));
  }
  add(Tap::kAttnCtx, "attention",
      sliding ? ContractId::kAttentionSliding : ContractId::kAttentionGlobal,
      dims("heads", heads, "D", d));
  for (Tap t : {Tap::kAttnO, Tap::kMlpDown}) {
    const int64_t k = t == Tap::kAttnO ? heads * d : plan.inter;
    add(t, "gemm_partial", ContractId::kGemmTree, dims("N", arch.hidden, "K", k), "f32");
    add(t, "gemm_finish", ContractId::kGemmTree, dims("N", arch.hidden));
  }
  add(Tap::kAttnResid, "residual", ContractId::kResidual, hidden);
  add(Tap::kMlpResid, "residual", ContractId::kResidual, hidden);
  add(Tap::kMlpAct, "gelu_mul", ContractId::kGeluMul, dims("N", plan.inter));
  add(Tap::kLayerOut, "layer_scale", ContractId::kLayerScale, hidden);
}

Launches expected_launches(const Architecture& arch, const RankPlan& plan,
                           const RecordExpectation& e) {
  Launches all;
  auto add = [&](Tap tap, const char* op, ContractId id, std::string shape, const char* dtype) {
    all[{boundary_name({tap, -1}), op}] = {op, id, dtype, std::move(shape)};
  };
  add(Tap::kEmbed, "embed", ContractId::kEmbed, dims("hidden", arch.hidden), "bf16");
  for (int i = 0; i < arch.num_layers(); ++i) expect_layer(all, arch, plan, i, e.paged);
  add(Tap::kFinalNorm, "rmsnorm", ContractId::kRmsNorm, dims("heads", 1, "D", arch.hidden), "bf16");
  add(Tap::kLogp, "head", ContractId::kHead, dims("V", plan.vocab_rows, "K", arch.hidden), "f32");
  add(Tap::kLogp, "head_finish", ContractId::kHead, "", "f32");
  if (e.sampled) {
    add(Tap::kLogp, "sample", ContractId::kSample, dims("V", plan.vocab_rows), "i32");
  }
  return all;
}

std::map<std::string, Record> known_implementations() {
  std::map<std::string, Record> known;
  auto add = [&](const auto& table) {
    for (const auto& i : table) {
      Record r;
      r.contract = contract(i.contract).name;
      r.schedule = i.schedule;
      r.split = i.split;
      known[i.id] = r;
    }
  };
#define SB_ADD(Args) add(sb::implementations<Args>());
  SB_OPERATORS(SB_ADD)
#undef SB_ADD
  return known;
}

const std::map<std::string, Record>& known_by_id() {
  static const auto known = known_implementations();
  return known;
}

tl::unexpected<Refusal> red(const Record& r, const std::string& field, const std::string& is,
                            const std::string& must) {
  return refuse(Code::kDrift, "trust the record of " + r.op + " at " + r.site,
                field + " is '" + is + "', must be '" + must + "'");
}

Status check_one(const Record& r, const Expected& want, const Architecture& arch,
                 const RecordExpectation& e) {
  const Contract& c = contract(want.contract);
  const auto boundary = parse_boundary(r.site);
  const int layer = boundary ? boundary->layer : -1;
  const std::string type = layer >= 0 ? layer_type_name(arch.layers[layer]) : "";
  if (r.layer != layer) return red(r, "layer", std::to_string(r.layer), std::to_string(layer));
  const auto known = known_by_id().find(r.implementation);
  if (known == known_by_id().end()) {
    return red(r, "implementation", r.implementation, "one that this build has");
  }
  const std::pair<const char*, std::pair<std::string, std::string>> fields[] = {
      {"contract", {r.contract, c.name}},
      {"contract_digest", {r.contract_digest, c.digest}},
      {"implementation's contract", {known->second.contract, c.name}},
      {"schedule", {r.schedule, known->second.schedule}},
      {"split", {r.split, known->second.split}},
      {"layer_type", {r.layer_type, type}},
      {"accumulator", {r.accumulator, "f32"}},
      {"profile", {r.profile, e.profile}},
      {"backend_requested", {r.backend_requested, e.backend}},
      {"backend_actual", {r.backend_actual, e.backend}},
      {"device", {r.device, e.backend + ":0"}},
      {"dtype", {r.dtype, want.dtype}},
      {"shape", {r.shape, want.shape}},
      {"fallback", {r.fallback ? "true" : "false", "false"}},
  };
  for (const auto& [name, value] : fields) {
    if (value.first != value.second) return red(r, name, value.first, value.second);
  }
  if (r.launches < 1 || r.rows < r.launches) {
    return red(r, "launches and rows",
               std::to_string(r.launches) + " and " + std::to_string(r.rows),
               "at least one row a launch");
  }
  return {};
}

}  // namespace

Status check_records(const std::vector<Record>& records, const Architecture& arch,
                     const RecordExpectation& expect) {
  if (records.empty()) return refuse(Code::kBrokenData, "trust a run", "it left no records");
  SB_TRY(plan, plan_rank(arch, 0, expect.tp));
  const auto want = expected_launches(arch, plan, expect);
  std::map<Key, const Record*> seen;
  for (const auto& r : records) {
    const auto expected = want.find({r.site, r.op});
    if (expected == want.end()) {
      return refuse(Code::kDrift, "trust a run", "no operator " + r.op + " belongs at " + r.site);
    }
    if (!seen.emplace(Key{r.site, r.op}, &r).second) {
      return refuse(
          Code::kDrift, "trust a run",
          r.op + " at " + r.site + " ran in two ways: " + r.implementation + " " + r.shape);
    }
    SB_DO(check_one(r, expected->second, arch, expect));
  }
  for (const auto& [key, expected] : want) {
    if (!seen.contains(key)) {
      return refuse(Code::kDrift, "trust a run", key.second + " at " + key.first + " did not run");
    }
  }
  // Every layer ran as often, over as many rows, as the embedding did.
  const Record& embed = *seen.at({"embed", "embed"});
  for (const auto& [key, r] : seen) {
    if (r->layer < 0) continue;
    if (r->launches != embed.launches || r->rows != embed.rows) {
      return red(*r, "launches and rows",
                 std::to_string(r->launches) + " and " + std::to_string(r->rows),
                 std::to_string(embed.launches) + " and " + std::to_string(embed.rows));
    }
  }
  const Record& final_norm = *seen.at({"final_norm", "rmsnorm"});
  if (final_norm.launches != embed.launches || final_norm.rows != embed.rows) {
    return red(final_norm, "launches and rows",
               std::to_string(final_norm.launches) + " and " + std::to_string(final_norm.rows),
               std::to_string(embed.launches) + " and " + std::to_string(embed.rows));
  }
  const Record& head = *seen.at({"logp", "head"});
  for (const char* op : {"head_finish", "sample"}) {
    const auto other = seen.find({"logp", op});
    if (other == seen.end()) continue;
    if (other->second->rows != head.rows || other->second->launches != head.launches) {
      return red(*other->second, "rows", std::to_string(other->second->rows),
                 std::to_string(head.rows));
    }
  }
  return {};
}

Status check_sealed(const std::vector<SealedRecord>& records, const Architecture& arch,
                    const RecordExpectation& expect) {
  std::vector<Record> lines;
  for (const auto& s : records) lines.push_back(s.record);
  const auto again = seal_records(lines);
  for (size_t i = 0; i < records.size(); ++i) {
    if (records[i].chain != again[i].chain) {
      return refuse(Code::kBrokenData, "trust a run's records",
                    "the chain breaks at record " + std::to_string(i) + " (" +
                        records[i].record.op + " at " + records[i].record.site + ")");
    }
  }
  return check_records(lines, arch, expect);
}

nlohmann::ordered_json sealed_json(const SealedRecord& r) {
  auto j = nlohmann::ordered_json::parse(record_line(r.record));
  j["chain"] = r.chain;
  return j;
}

Result<std::vector<SealedRecord>> read_run_records(const std::string& path) {
  SB_TRY(text, read_text(path));
  const auto broken = [&](const std::string& why) {
    return refuse(Code::kBrokenData, "read the records of " + path, why);
  };
  const auto j = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!j.is_object() || j.value("samebits", nlohmann::json()) != "run/1") {
    return broken("it is not a run/1 file");
  }
  const auto records = j.find("records");
  if (records == j.end() || !records->is_array()) return broken("it has no records");
  std::vector<SealedRecord> out;
  for (const auto& line : *records) {
    try {
      SealedRecord s;
      Record& r = s.record;
      line.at("op").get_to(r.op);
      line.at("site").get_to(r.site);
      line.at("layer").get_to(r.layer);
      line.at("layer_type").get_to(r.layer_type);
      line.at("contract").get_to(r.contract);
      line.at("contract_digest").get_to(r.contract_digest);
      line.at("implementation").get_to(r.implementation);
      line.at("schedule").get_to(r.schedule);
      line.at("split").get_to(r.split);
      line.at("accumulator").get_to(r.accumulator);
      line.at("profile").get_to(r.profile);
      line.at("backend_requested").get_to(r.backend_requested);
      line.at("backend_actual").get_to(r.backend_actual);
      line.at("device").get_to(r.device);
      line.at("dtype").get_to(r.dtype);
      line.at("shape").get_to(r.shape);
      line.at("fallback").get_to(r.fallback);
      line.at("launches").get_to(r.launches);
      line.at("rows").get_to(r.rows);
      line.at("chain").get_to(s.chain);
      // The conversions above are lenient (1.5 and true become 1); what was chained is not.
      nlohmann::json bare = line;
      bare.erase("chain");
      if (bare.dump() != record_line(r)) {
        return broken("record " + std::to_string(out.size()) + ": a value of the wrong type, or " +
                      "a key that does not belong there");
      }
      out.push_back(std::move(s));
    } catch (const nlohmann::json::exception& e) {
      return broken("record " + std::to_string(out.size()) + ": " + e.what());
    }
  }
  return out;
}

Result<size_t> check_run_file(const std::string& path, const Architecture& arch,
                              const std::string& profile, const std::string& backend) {
  SB_TRY(records, read_run_records(path));
  SB_TRY(text, read_text(path));
  const auto j = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  RecordExpectation expect;
  expect.profile = profile;
  expect.backend = backend;
  try {
    expect.tp = j.at("tp").get<int>();
    expect.paged = j.at("schedule").get<std::string>() != "train";
    expect.sampled = j.at("command").get<std::string>() == "rollout";
  } catch (const nlohmann::json::exception& e) {
    return refuse(Code::kBrokenData, "read the records of " + path, e.what());
  }
  SB_DO(check_sealed(records, arch, expect));
  return records.size();
}

}  // namespace sb
