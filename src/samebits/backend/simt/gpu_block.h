// GpuBlock: a thread block of CUDA or HIP behind the names of block.h. Include from device code
// only. The matrix step is mma.sync m16n8k16 on sm_90a and v_mfma_f32_16x16x16_bf16 on gfx942; in
// profile ieee each lane runs the fused chain of its own outputs from shared memory.
#pragma once

#include "samebits/arith/step.h"
#include "samebits/backend/simt/block.h"

namespace sb::simt {

#if defined(__HIP__)
SB_SIMT int thread_index() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
SB_SIMT int64_t block_index() { return __builtin_amdgcn_workgroup_id_x(); }
using GpuMap = Gfx942Map;
#else
SB_SIMT int thread_index() {
#if defined(__CUDA_ARCH__)
  return static_cast<int>(threadIdx.x);
#else
  return 0;
#endif
}
SB_SIMT int64_t block_index() {
#if defined(__CUDA_ARCH__)
  return blockIdx.x;
#else
  return 0;
#endif
}
using GpuMap = Sm90Map;
#endif

// c += a · b of one warp, fragments as the map says.
SB_SIMT void matrix_step(float (&c)[GpuMap::kC], const uint32_t (&a)[GpuMap::kA / 2],
                         const uint32_t (&b)[GpuMap::kB / 2]) {
#if defined(__CUDA_ARCH__)
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif defined(__HIP_DEVICE_COMPILE__)
  typedef short Short4 __attribute__((ext_vector_type(4)));
  typedef float Float4 __attribute__((ext_vector_type(4)));
  Short4 x, y;
  Float4 z;
  __builtin_memcpy(&x, a, 8);
  __builtin_memcpy(&y, b, 8);
  __builtin_memcpy(&z, c, 16);
  z = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x, y, z, 0, 0, 0);
  __builtin_memcpy(c, &z, 16);
#else
  (void)c, (void)a, (void)b;
#endif
}

template <int Threads, Profile P>
class GpuBlock {
 public:
  using Map = GpuMap;
  static constexpr int kThreads = Threads, kWarp = Map::kWarp, kWarps = Threads / kWarp;

  template <class T>
  struct Reg {
    T value;
    SB_SIMT T& operator[](int) { return value; }
    SB_SIMT const T& operator[](int) const { return value; }
  };

  SB_SIMT GpuBlock(char* shared, int32_t* failed) : shared_(shared), failed_(failed) {}

  template <class F>
  SB_SIMT void each(F f) {
    f(thread_index());
  }
  template <class S>
  SB_SIMT S& shared() {
    return *reinterpret_cast<S*>(shared_);
  }
  SB_SIMT void sync() {
#if defined(__CUDA_ARCH__)
    __syncthreads();
#elif defined(__HIP_DEVICE_COMPILE__)
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#endif
  }
  SB_SIMT void fail() { *failed_ = 1; }

  // T of 4 or 8 bytes.
  template <class T>
  SB_SIMT Reg<T> shuffle_xor(const Reg<T>& v, int mask) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    uint32_t w[sizeof(T) / 4];
    __builtin_memcpy(w, &v.value, sizeof(T));
    for (uint32_t& word : w) {
#if defined(__CUDA_ARCH__)
      word = __shfl_xor_sync(0xffffffffu, word, mask);
#elif defined(__HIP_DEVICE_COMPILE__)
      const int lane = thread_index() % kWarp;
      word = static_cast<uint32_t>(
          __builtin_amdgcn_ds_bpermute(4 * (lane ^ mask), static_cast<int>(word)));
#else
      (void)mask;
#endif
    }
    Reg<T> out;
    __builtin_memcpy(&out.value, w, sizeof(T));
    return out;
  }

  template <Order O, class F>
  SB_SIMT void mma(Acc<GpuBlock>& acc, F tiles) {
    const int lane = thread_index() % kWarp;
    const Tiles t = tiles(thread_index() / kWarp);
    if (!t.a) return;
    if constexpr (P == Profile::kIeee) {
      SB_UNROLL
      for (int i = 0; i < Map::kC; ++i) {
        const Place at = Map::c(lane, i);
        bf16 b[16];
        for (int k = 0; k < 16; ++k)
          b[k] = t.b[O == Order::kKInner ? at.col * t.ldb + k : k * t.ldb + at.col];
        acc.v[i].value = arith::ieee_step(t.a + at.row * t.lda, b, acc.v[i].value);
      }
    } else {
      uint32_t a[Map::kA / 2], b[Map::kB / 2];
      SB_UNROLL
      for (int i = 0; i < Map::kA / 2; ++i) {
        const Place at = Map::a(lane, 2 * i);
        a[i] = *reinterpret_cast<const uint32_t*>(t.a + at.row * t.lda + at.col);
      }
      SB_UNROLL
      for (int i = 0; i < Map::kB / 2; ++i) {
        const Place at = Map::b(lane, 2 * i);
        if constexpr (O == Order::kKInner) {
          b[i] = *reinterpret_cast<const uint32_t*>(t.b + at.col * t.ldb + at.row);
        } else {
          const bf16* p = t.b + at.row * t.ldb + at.col;
          b[i] = p[0].bits | uint32_t{p[t.ldb].bits} << 16;
        }
      }
      float c[Map::kC];
      SB_UNROLL
      for (int i = 0; i < Map::kC; ++i) c[i] = acc.v[i].value;
      matrix_step(c, a, b);
      SB_UNROLL
      for (int i = 0; i < Map::kC; ++i) acc.v[i].value = c[i];
    }
  }

 private:
  char* shared_;
  int32_t* failed_;
};

}  // namespace sb::simt
