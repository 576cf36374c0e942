// The portable header set for NVIDIA. tools/compile_portable.py compiles and scans it; as a program
// it runs every function over its inputs on the GPU and prints one line "NAME HASH" each, which
// must be the hashes "all" of goldens/functions.json.
#include <cstdio>
#include <vector>

#include "samebits/arith/portable_compile.h"

using namespace sb::arith;

constexpr int kBlocks = 4096, kThreads = 256;

// Thread sums of digests; sums wrap and have no order, so no atomics are needed to be exact.
extern "C" __global__ void portable_functions(int function, uint64_t first, uint64_t last,
                                              uint64_t* sums) {
  const uint64_t thread = blockIdx.x * kThreads + threadIdx.x;
  uint64_t sum = 0;
  for (uint64_t u = first + thread; u <= last; u += kBlocks * kThreads) {
    sum += portable_digest(function, static_cast<uint32_t>(u));
  }
  sums[thread] = sum;
}

extern "C" __global__ void portable_mixed_kernel(uint64_t* sums) {
  const uint32_t thread = blockIdx.x * kThreads + threadIdx.x;
  sums[thread] = thread < kPortableMixed ? portable_mixed(thread) : 0;
}

// Without -fmad=false this becomes one fma; the scan requires that it does not.
extern "C" __global__ void contraction_canary(float* p) { p[3] = p[0] * p[1] + p[2]; }

static bool print_sum(const char* name, const uint64_t* device) {
  std::vector<uint64_t> sums(kBlocks * kThreads);
  const cudaError_t error =
      cudaMemcpy(sums.data(), device, sums.size() * sizeof(uint64_t), cudaMemcpyDeviceToHost);
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s: %s\n", name, cudaGetErrorString(error));
    return false;
  }
  uint64_t total = 0;
  for (uint64_t s : sums) total += s;
  std::printf("%s %016llx\n", name, static_cast<unsigned long long>(total));
  return true;
}

int main() {
  uint64_t* sums = nullptr;
  if (cudaMalloc(&sums, kBlocks * kThreads * sizeof(uint64_t)) != cudaSuccess) {
    std::fprintf(stderr, "no usable CUDA device\n");
    return 1;
  }
  bool ok = true;
  for (int f = 0; f < kPortableFunctionCount; ++f) {
    const PortableFunction& p = kPortableFunctions[f];
    portable_functions<<<kBlocks, kThreads>>>(f, p.first, p.last, sums);
    ok = print_sum(p.name, sums) && ok;
  }
  portable_mixed_kernel<<<kBlocks, kThreads>>>(sums);
  ok = print_sum("portable_mixed", sums) && ok;
  cudaFree(sums);
  return ok ? 0 : 1;
}
