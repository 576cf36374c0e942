// EmulatedBlock: a thread block of block.h on the CPU. Each collective runs for all threads before
// the next begins, so what it cannot show is a missing barrier; everything else it shows harder
// than a GPU does: shared memory starts as NaN, ends in guard zones that are checked, and registers
// start as NaN.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "samebits/backend/simt/emulated_mma.h"

namespace sb::simt {

inline constexpr size_t kGuardBytes = 64;
inline constexpr unsigned char kGuardByte = 0xa5;

template <int Threads, class MapT, Profile P>
class EmulatedBlock {
 public:
  using Map = MapT;
  static constexpr int kThreads = Threads, kWarp = Map::kWarp, kWarps = Threads / kWarp;
  static_assert(Threads % kWarp == 0);

  template <class T>
  class Reg {
   public:
    Reg() { std::memset(v_, 0xff, sizeof(v_)); }
    T& operator[](int t) { return v_[t]; }
    const T& operator[](int t) const { return v_[t]; }

   private:
    T v_[Threads];
  };

  // `bytes` of shared memory; `chains` are the profile's matrix steps.
  EmulatedBlock(size_t bytes, const arith::ChainKernels& chains)
      : bytes_(bytes), memory_(bytes + 2 * kGuardBytes + 64), chains_(chains) {
    const auto at = reinterpret_cast<uintptr_t>(memory_.data()) + kGuardBytes;
    shared_ = memory_.data() + ((at + 63) / 64 * 64 - (at - kGuardBytes));
  }

  void begin_item() {
    std::memset(memory_.data(), kGuardByte, memory_.size());
    std::memset(shared_, 0xff, bytes_);
  }
  // A kernel that wrote outside its shared memory is a bug of ours.
  void end_item() const {
    for (const unsigned char* p = memory_.data(); p < memory_.data() + memory_.size(); ++p) {
      if (p == shared_) p += bytes_;
      SB_ASSERT(p == memory_.data() + memory_.size() || *p == kGuardByte,
                "a kernel wrote outside its shared memory");
      if (p == memory_.data() + memory_.size()) break;
    }
  }
  bool failed() const { return failed_; }

  template <class F>
  void each(F f) {
    for (int t = 0; t < Threads; ++t) f(t);
  }
  template <class S>
  S& shared() {
    SB_ASSERT(sizeof(S) <= bytes_, "more shared memory than the launch asked for");
    return *reinterpret_cast<S*>(shared_);
  }
  void sync() {}
  void fail() { failed_ = true; }

  template <class T>
  Reg<T> shuffle_xor(const Reg<T>& v, int mask) {
    SB_ASSERT(mask > 0 && mask < kWarp, "a shuffle leaves its warp");
    Reg<T> out;
    for (int t = 0; t < Threads; ++t) out[t] = v[t ^ mask];
    return out;
  }

  template <Order O, class F>
  void mma(Acc<EmulatedBlock>& acc, F tiles) {
    for (int w = 0; w < kWarps; ++w) {
      const Tiles t = tiles(w);
      if (!t.a) continue;
      Fragments<Map> frag;
      for (int lane = 0; lane < kWarp; ++lane) {
        for (int i = 0; i < Map::kA; ++i) {
          const Place at = Map::a(lane, i);
          frag.a[lane][i] = t.a[at.row * t.lda + at.col];
        }
        for (int i = 0; i < Map::kB; ++i) {
          const Place at = Map::b(lane, i);
          frag.b[lane][i] =
              t.b[O == Order::kKInner ? at.col * t.ldb + at.row : at.row * t.ldb + at.col];
        }
        for (int i = 0; i < Map::kC; ++i) frag.c[lane][i] = acc.v[i][w * kWarp + lane];
      }
      emulate_mma(frag, chains_);
      for (int lane = 0; lane < kWarp; ++lane) {
        for (int i = 0; i < Map::kC; ++i) acc.v[i][w * kWarp + lane] = frag.c[lane][i];
      }
    }
  }

 private:
  size_t bytes_;
  std::vector<unsigned char> memory_;
  unsigned char* shared_;
  const arith::ChainKernels& chains_;
  bool failed_ = false;
};

}  // namespace sb::simt
