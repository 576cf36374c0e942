// The backends a user can ask for, and the devices they run on.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "samebits/base/device.h"

namespace sb {

struct BackendInfo {
  const char* name;  // as given to --backend
  DeviceId::Kind device;
  const char* arch;  // Exec::arch of what it runs
  const char* summary;
};
std::span<const BackendInfo> backends();
BackendInfo cpu_backend();

// The name of the backend that runs on this device with this architecture.
const char* backend_name(DeviceId::Kind device, const char* arch);

// Refuses unknown names, listing the known ones.
Result<BackendInfo> find_backend(const std::string& name);

// The device of a backend: code 7 where this build or machine lacks it.
Result<std::unique_ptr<Device>> open_device(const BackendInfo& backend);

// Defined by the CUDA backend, or by cuda_none.cc.
Result<std::unique_ptr<Device>> make_cuda_device(int index);

}  // namespace sb
