// CUDA's return codes as refusals, and what kernels need of their device.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "samebits/base/device.h"

namespace sb {

Status cuda_status(const std::string& asked, cudaError_t code);

// The device's error flag, in its memory: kernels raise it, sync() reads it.
int32_t* cuda_failure_flag(Device& device);

}  // namespace sb
