// RMSNorm kernel: an item is one (row, head). 128 threads hold two neighbouring slots each, so the
// adjacent tree begins in a register, goes on by shuffles of neighbours and ends over the warps.
#pragma once

#include "samebits/backend/simt/kernel_load.h"
#include "samebits/contract/rules.h"

namespace sb::simt {

template <RmsNormRule C>
struct RmsNorm {
  static_assert(C.tree == Tree::kAdjacent && C.slots == 256);
  using Args = RmsNormArgs;
  static constexpr int kThreads = C.slots / 2;
  template <class B>
  struct Shared {
    float warp[B::kWarps];
  };

  static int64_t items(const Args& a) { return a.x.shape[0] * a.x.shape[1]; }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t i) {
    const int64_t t0 = i / a.x.shape[1], h = i % a.x.shape[1], width = a.x.shape[2];
    const bf16* x = ptr<bf16>(a.x) + t0 * a.x.stride[0] + h * a.x.stride[1];
    const bf16* w = ptr<bf16>(a.w);
    bf16* out = ptr<bf16>(a.out) + t0 * a.out.stride[0] + h * a.out.stride[1];
    auto& s = b.template shared<Shared<B>>();

    typename B::template Reg<float> sum;
    b.each([&](int t) {
      float slot[2] = {0.0f, 0.0f};
      for (int64_t e = 2 * t; e < width; e += C.slots) {
        for (int j = 0; j < 2 && e + j < width; ++j) {
          const float v = widen(x[e + j]);
          slot[j] = arith::fma(v, v, slot[j]);
        }
      }
      sum[t] = arith::add(slot[0], slot[1]);
    });
    for (int mask = 1; mask < B::kWarp; mask *= 2) {
      const auto other = b.shuffle_xor(sum, mask);
      b.each([&](int t) { sum[t] = arith::add(sum[t], other[t]); });
    }
    b.each([&](int t) {
      if (t % B::kWarp == 0) s.warp[t / B::kWarp] = sum[t];
    });
    b.sync();
    b.each([&](int t) {
      float v[B::kWarps];
      for (int j = 0; j < B::kWarps; ++j) v[j] = s.warp[j];
      const float mean = arith::div(arith::tree_adjacent<B::kWarps>(v), static_cast<float>(width));
      const float r = arith::div(1.0f, arith::sqrt(arith::add(mean, a.eps)));
      for (int64_t e = t; e < width; e += kThreads) {
        const float y = arith::mul(widen(x[e]), r);
        float weight = w ? widen(w[e]) : 1.0f;
        if (w && a.deviation == Deviation::kNormOnePlusW) weight = arith::add(1.0f, weight);
        out[e] = round_bf16(w ? arith::mul(y, weight) : y);
      }
    });
  }
};

}  // namespace sb::simt
