// Exec: what an implementation gets besides its arguments.
#pragma once

#include <functional>

#include "samebits/arith/profile.h"
#include "samebits/base/device.h"
#include "samebits/base/thread_pool.h"

namespace sb {

// What Exec::arch can be. The emulated ones are the GPU kernels run on the CPU, in its memory.
inline constexpr const char* kCpuArch = "cpu";
inline constexpr const char* kEmulatedSm90a = "emulated sm_90a";
inline constexpr const char* kEmulatedGfx942 = "emulated gfx942";
inline constexpr const char* kSm90a = "sm_90a";

struct Exec {
  Device* device = nullptr;
  void* stream = nullptr;  // a GPU's stream; CPU work runs at once
  ThreadPool* pool = nullptr;
  Profile profile = Profile::kSm90;
  Isa isa = Isa::kPlain;
  const char* arch = kCpuArch;  // part of the selection
  int64_t grid_cap = 0;         // most blocks of a grid, for tests; 0: as many as there is work
};

// body(i) for i in [0, n) on the pool. Small work (`cost` per item, in roughly nanoseconds) runs on
// the caller: waking threads costs some ten microseconds.
inline Status for_rows(const Exec& exec, int64_t n, double cost,
                       const std::function<void(int64_t)>& body) {
  if (n > 1 && cost * static_cast<double>(n) < 2e4) {
    return exec.pool->parallel_for(1, [&](int64_t) {
      for (int64_t i = 0; i < n; ++i) body(i);
    });
  }
  return exec.pool->parallel_for(n, body);
}

}  // namespace sb
