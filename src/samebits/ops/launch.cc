#include "samebits/ops/launch.h"

#include <string_view>

#include "samebits/base/digest.h"

namespace sb {
namespace {

const char* device_name(DeviceId::Kind k) {
  constexpr const char* kNames[] = {"cpu", "cuda", "hip"};
  return kNames[static_cast<int>(k)];
}

}  // namespace

Result<size_t> select_candidate(const std::vector<Candidate>& candidates, ContractId id,
                                Profile profile, DeviceId::Kind device, const char* arch) {
  size_t found = candidates.size();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto& c = candidates[i];
    if (c.contract != id || !(c.profiles & profile_bit(profile)) || c.device != device) continue;
    if (std::string_view(c.arch) != arch) continue;
    SB_ASSERT(found == candidates.size(), "two implementations claim one selection");
    found = i;
  }
  if (found < candidates.size()) return found;
  Refusal r{Code::kRefused,
            "run " + contract(id).name + " with profile " + profile_name(profile) + " on " +
                device_name(device),
            {},
            "a backend and profile listed by `samebits doctor`"};
  for (const auto& c : candidates) {
    std::string why;
    if (c.contract != id) {
      why = "claims " + contract(c.contract).name;
    } else if (c.device != device) {
      why = std::string("runs on ") + device_name(c.device);
    } else if (std::string_view(c.arch) != arch) {
      why = std::string("is built for ") + c.arch + ", the device is " + arch;
    } else {
      why = std::string("does not cover profile ") + profile_name(profile);
    }
    r.reasons.push_back(std::string(c.id) + ": " + why);
  }
  if (device == DeviceId::kCuda && cuda_absence()) r.reasons.push_back(cuda_absence());
  if (device == DeviceId::kHip && hip_absence()) r.reasons.push_back(hip_absence());
  return tl::unexpected(std::move(r));
}

void record_launch(Ctx& ctx, const LaunchInfo& info, const char* id, const char* schedule,
                   const char* split) {
  if (!ctx.records) return;
  // Everything that varies between launches of one process goes into the key.
  uint64_t key = mix64(reinterpret_cast<uintptr_t>(id));
  for (const uint64_t part :
       {static_cast<uint64_t>(info.site.boundary.tap),
        static_cast<uint64_t>(info.site.boundary.layer + 1), static_cast<uint64_t>(info.site.type),
        static_cast<uint64_t>(info.contract), static_cast<uint64_t>(info.n0),
        static_cast<uint64_t>(info.n1), static_cast<uint64_t>(ctx.exec.profile),
        static_cast<uint64_t>(info.dtype),
        static_cast<uint64_t>(reinterpret_cast<uintptr_t>(ctx.backend.name)),
        static_cast<uint64_t>(reinterpret_cast<uintptr_t>(ctx.exec.arch)),
        static_cast<uint64_t>(ctx.exec.device->id().kind),
        static_cast<uint64_t>(ctx.exec.device->id().index)}) {
    key = mix64(key ^ part) + 0x9E3779B97F4A7C15ull;
  }
  ctx.records->add(key, info.rows, [&] {
    const Contract& c = contract(info.contract);
    Record r;
    r.op = info.op;
    r.site = boundary_name(info.site.boundary);
    r.layer = info.site.boundary.layer;
    r.layer_type = r.layer >= 0 ? layer_type_name(info.site.type) : "";
    r.contract = c.name;
    r.contract_digest = c.digest;
    r.implementation = id;
    r.schedule = schedule;
    r.split = split;
    r.profile = profile_name(ctx.exec.profile);
    r.backend_requested = ctx.backend.name;
    r.backend_actual = backend_name(ctx.exec.device->id().kind, ctx.exec.arch);
    r.device = r.backend_actual + ":" + std::to_string(ctx.exec.device->id().index);
    r.dtype = dtype_name(info.dtype);
    if (info.d0) r.shape = std::string(info.d0) + "=" + std::to_string(info.n0);
    if (info.d1) r.shape += std::string(" ") + info.d1 + "=" + std::to_string(info.n1);
    return r;
  });
}

}  // namespace sb
