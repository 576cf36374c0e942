#include "samebits/backend/devices.h"

#include <string_view>

#include "samebits/backend/implementation.h"

namespace sb {

std::span<const BackendInfo> backends() {
  static constexpr BackendInfo kAll[] = {
      {"cpu", DeviceId::kCpu, kCpuArch, "the oracle, with AVX-512 or AVX2 where there is one"},
      {"cuda", DeviceId::kCuda, kSm90a, "an NVIDIA H100 or H200"},
      {"hip", DeviceId::kHip, "gfx942", "an AMD MI300; kernels compile, nothing runs them yet"},
      {"emulated-sm90a", DeviceId::kCpu, kEmulatedSm90a, "the CUDA kernels, emulated on the CPU"},
      {"emulated-gfx942", DeviceId::kCpu, kEmulatedGfx942, "the AMD kernels, emulated on the CPU"},
  };
  return kAll;
}

BackendInfo cpu_backend() { return backends()[0]; }

const char* backend_name(DeviceId::Kind device, const char* arch) {
  for (const auto& b : backends()) {
    if (b.device == device && std::string_view(b.arch) == arch) return b.name;
  }
  return "none";
}

Result<BackendInfo> find_backend(const std::string& name) {
  std::string known;
  for (const auto& b : backends()) {
    if (name == b.name) return b;
    known += (known.empty() ? "" : ", ") + std::string(b.name);
  }
  return refuse(Code::kUsage, "run on backend " + name, "there is no backend of this name", known);
}

Result<std::unique_ptr<Device>> open_device(const BackendInfo& backend) {
  switch (backend.device) {
    case DeviceId::kCpu: return make_cpu_device();
    case DeviceId::kCuda: return make_cuda_device(0);
    case DeviceId::kHip: break;
  }
  return refuse(Code::kEnvironment, std::string("run on backend ") + backend.name, hip_absence(),
                "--backend cpu");
}

}  // namespace sb
