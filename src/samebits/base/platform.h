// SB_HD marks functions that compile for host and device alike. No includes: these headers go
// unchanged through g++, nvcc and clang HIP.
#pragma once

#if defined(__CUDACC__) || defined(__HIP__)
#define SB_HD __host__ __device__
#else
#define SB_HD
#endif
