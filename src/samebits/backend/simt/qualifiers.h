// SB_SIMT marks what runs on a GPU's threads, and in the CPU emulation of them. No includes.
#pragma once

#if defined(__CUDACC__) || defined(__HIP__)
#define SB_SIMT __host__ __device__ inline
#define SB_UNROLL _Pragma("unroll")
#else
#define SB_SIMT inline
#define SB_UNROLL
#endif
