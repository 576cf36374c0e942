// launch: select → run → record, the same for every operator. Selection is exact: (contract,
// profile, device, architecture) names one implementation, or the result is a Refusal that lists
// every candidate and the first condition it failed. There is no second choice.
#pragma once

#include <string>
#include <vector>

#include "samebits/backend/implementation.h"
#include "samebits/ops/ctx.h"

namespace sb {

// What selection reads of one candidate.
struct Candidate {
  const char* id;
  ContractId contract;
  uint8_t profiles;
  DeviceId::Kind device;
  const char* arch = "cpu";
};

// Index of the one matching candidate.
Result<size_t> select_candidate(const std::vector<Candidate>& candidates, ContractId contract,
                                Profile profile, DeviceId::Kind device, const char* arch = "cpu");

// What the record says of a launch besides the implementation.
struct LaunchInfo {
  const char* op;
  Site site;
  ContractId contract;
  Dtype dtype;  // of the output
  int64_t rows;
  const char* d0 = nullptr;  // names and sizes of the fixed dimensions
  int64_t n0 = 0;
  const char* d1 = nullptr;
  int64_t n1 = 0;
};

// The record of a launch; `chosen` fields come from the implementation that ran.
void record_launch(Ctx& ctx, const LaunchInfo& info, const char* id, const char* schedule,
                   const char* split);

template <class Args>
Status launch(Ctx& ctx, const LaunchInfo& info, const Args& args) {
  const auto& table = implementations<Args>();
  std::vector<Candidate> candidates;
  candidates.reserve(table.size());
  for (const auto& i : table)
    candidates.push_back({i.id, i.contract, i.profiles, i.device, i.arch});
  SB_TRY(chosen, select_candidate(candidates, info.contract, ctx.exec.profile, ctx.backend.device,
                                  ctx.exec.arch));
  const auto& impl = table[chosen];
  if (info.rows > 0) {
    DeviceScope open(*ctx.exec.device);
    SB_DO(impl.run(ctx.exec, args));
  }
  record_launch(ctx, info, impl.id, impl.schedule, impl.split);
  return {};
}

}  // namespace sb
