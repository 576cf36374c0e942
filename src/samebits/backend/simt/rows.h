// Kernels that reduce a row without rounding: drawing a token (the largest score, lowest id on
// ties) and row digests (a wrapping sum). Their results have no order, so the block may cut rows as
// it likes. An item is one row.
#pragma once

#include "samebits/arith/log.h"
#include "samebits/backend/simt/kernel_load.h"
#include "samebits/base/digest.h"
#include "samebits/base/rng.h"
#include "samebits/contract/rules.h"

namespace sb::simt {

template <SampleRule C>
struct Sample {
  static_assert(C.uniform_bits == 23);
  using Args = SampleArgs;
  static constexpr int kThreads = 256;
  struct Best {
    float value;
    int32_t id;  // −1: none
  };
  template <class B>
  struct Shared {
    Best best[kThreads];
  };

  // Whether b replaces a.
  SB_SIMT static bool better(const Best& a, const Best& b) {
    if (b.id < 0 || a.id < 0) return b.id >= 0;
    return b.value > a.value || (!(a.value > b.value) && b.id < a.id);
  }
  SB_SIMT static float gumbel(uint32_t word) {
    const float n = arith::add(static_cast<float>(word >> 9), 0.5f);
    return -arith::log(-arith::log(arith::mul(n, 0x1p-23f)));
  }

  static int64_t items(const Args& a) { return a.capped.shape[0]; }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t r) {
    const int64_t cols = a.capped.shape[1], begin = a.vocab_begin, end = begin + cols;
    const float* c = ptr<float>(a.capped) + r * a.capped.stride[0];
    const uint8_t* suppress = ptr<uint8_t>(a.suppress);
    const uint64_t hash = ptr<uint64_t>(a.row_hash)[r];
    const uint32_t position = static_cast<uint32_t>(ptr<int32_t>(a.position)[r]);
    auto& s = b.template shared<Shared<B>>();
    b.each([&](int t) {
      Best best{bits_float(0xff800000u), -1};
      for (int64_t four = begin / 4 + t; 4 * four < end; four += kThreads) {
        Philox4 words{};
        if (!a.greedy) {
          words =
              philox4x32_10(Philox4{{static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32),
                                     position, static_cast<uint32_t>(four)}},
                            a.seed);
        }
        for (int j = 0; j < 4; ++j) {
          const int64_t id = 4 * four + j;
          if (id < begin || id >= end || (suppress && suppress[id])) continue;
          const float capped = c[id - begin];
          // Greedy compares c itself: a division can make two different values equal.
          const float value =
              a.greedy ? capped : arith::add(arith::div(capped, a.temperature), gumbel(words.v[j]));
          const Best candidate{value, static_cast<int32_t>(id)};
          if (better(best, candidate)) best = candidate;
        }
      }
      s.best[t] = best;
    });
    b.sync();
    for (int n = kThreads / 2; n >= 1; n /= 2) {
      b.each([&](int t) {
        if (t < n && better(s.best[t], s.best[t + n])) s.best[t] = s.best[t + n];
      });
      b.sync();
    }
    b.each([&](int t) {
      if (t != 0) return;
      const Best best = s.best[0];
      ptr<float>(a.best)[r] = best.value;
      ptr<int32_t>(a.token)[r] = best.id;
      ptr<float>(a.c_token)[r] =
          best.id < 0 ? best.value : arith::div(c[best.id - begin], a.temperature);
    });
  }
};

struct Digest {
  using Args = DigestArgs;
  static constexpr int kThreads = 256;
  template <class B>
  struct Shared {
    uint64_t sum[B::kWarps];
    uint32_t bad[B::kWarps];
  };

  static int64_t items(const Args& a) { return a.x.shape[0]; }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t row) {
    const int64_t width = a.x.shape[1];
    auto& s = b.template shared<Shared<B>>();
    typename B::template Reg<uint64_t> sum;
    typename B::template Reg<uint32_t> bad;
    b.each([&](int t) {
      sum[t] = 0;
      bad[t] = 0;
      for (int64_t i = t; i < width; i += kThreads) {
        uint32_t bits;
        if (a.x.dtype == Dtype::kBf16) {
          bits = ptr<bf16>(a.x)[row * a.x.stride[0] + i].bits;
          bad[t] |= (bits & 0x7f80u) == 0x7f80u;
        } else {
          bits = float_bits(ptr<float>(a.x)[row * a.x.stride[0] + i]);
          bad[t] |= !is_finite_bits(bits);
        }
        sum[t] += digest_element(bits, static_cast<uint64_t>(a.column_begin + i));
      }
    });
    for (int mask = 1; mask < B::kWarp; mask *= 2) {
      const auto other = b.shuffle_xor(sum, mask);
      const auto more = b.shuffle_xor(bad, mask);
      b.each([&](int t) {
        sum[t] += other[t];
        bad[t] |= more[t];
      });
    }
    b.each([&](int t) {
      if (t % B::kWarp != 0) return;
      s.sum[t / B::kWarp] = sum[t];
      s.bad[t / B::kWarp] = bad[t];
    });
    b.sync();
    b.each([&](int t) {
      if (t != 0) return;
      uint64_t total = 0;
      uint32_t any = 0;
      for (int w = 0; w < B::kWarps; ++w) {
        total += s.sum[w];
        any |= s.bad[w];
      }
      ptr<uint64_t>(a.digest)[row] = total;
      ptr<uint8_t>(a.non_finite)[row] = static_cast<uint8_t>(any);
    });
  }
};

}  // namespace sb::simt
