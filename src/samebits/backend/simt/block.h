// The seam between kernels and what runs them. A kernel is written once, for a whole thread block:
//
//   struct Kernel {
//     using Args = …Args;                       // as in backend/op_args.h, passed by value
//     static constexpr int kThreads = 128;
//     template <class B> struct Shared {…};     // the block's shared memory
//     template <class B> static void item(B& b, const Args& a, int64_t i);   // work item i
//   };
//
// B is GpuBlock (gpu_block.h: CUDA, HIP) or EmulatedBlock (emulated_block.h: the CPU). Each has
//
//   B::kThreads, B::kWarp, B::kWarps, B::Map    the launch and the lane map of its matrix step
//   B::Reg<T>              a register: one value on a GPU, one for each thread on the CPU; r[t]
//   b.each(f)              f(t) for each thread t: once on a GPU, a loop on the CPU
//   b.shared<S>()          shared memory as an S; NaN at the start of an item under emulation
//   b.sync()               barrier; what `each` wrote to shared memory is visible after it
//   b.shuffle_xor(v, mask) v of lane t ^ mask of the same warp
//   b.mma<Order>(acc, f)   acc = matrix step of the tiles f(warp) returns, per warp
//   b.fail()               raises the launch's error flag, e.g. for a page that does not exist
//
// Rules. Registers keep their values between calls of `each`; nothing else does. Loops and branches
// around b.… calls depend only on the item and the arguments, so that they are the same for all
// threads of a block. Work items are independent: any grid may walk them in any order.
#pragma once

#include <cstdint>

#include "samebits/backend/simt/lane_map.h"
#include "samebits/base/bf16.h"
#include "samebits/base/view.h"

namespace sb::simt {

// How B lies in shared memory: k neighbours together (weights, keys), or n neighbours (values).
enum class Order { kKInner, kNInner };

// One warp's operands of a matrix step, in shared memory. A is [16][lda], k inner; B is [N][ldb] or
// [16][ldb] by Order. a and lda·2 bytes are multiples of 4, likewise B's when k is inner. A null a
// lets the warp sit out.
struct Tiles {
  const bf16* a = nullptr;
  int lda = 0;
  const bf16* b = nullptr;
  int ldb = 0;
};

// Results of one matrix step of a warp: element i of lane l is C at Map::c(l, i).
template <class B>
struct Acc {
  typename B::template Reg<float> v[B::Map::kC];
};

// The typed pointer behind a view; ops/ has checked the dtype.
template <class T>
SB_SIMT T* ptr(const View& v) {
  return static_cast<T*>(v.ptr);
}

template <class B>
SB_SIMT void clear(B& b, Acc<B>& acc) {
  b.each([&](int t) {
    SB_UNROLL
    for (int i = 0; i < B::Map::kC; ++i) acc.v[i][t] = 0.0f;
  });
}

}  // namespace sb::simt
