// Head kernels. HeadTiles: a block makes the logits of 16 rows × one tile of 256 columns, caps them
// and leaves (m, S) of the tile in scratch; four threads own a row, one for each value of index
// bits 1 and 2, so T256 needs two shuffles. HeadShards merges a shard's tiles in adjacent pairs;
// HeadFinish merges the shards and makes the log-probability.
#pragma once

#include "samebits/arith/log.h"
#include "samebits/arith/tree.h"
#include "samebits/backend/head_math.h"
#include "samebits/backend/simt/gemm.h"
#include "samebits/contract/head_shape.h"

namespace sb::simt {

template <HeadRule C>
struct HeadTiles {
  static_assert(C.tile == 256 && C.tile_sum == Tree::kFold256 && C.step_k == 16);
  using Args = HeadArgs;
  static constexpr int kThreads = 128, kRows = 16;
  static constexpr int kPitch = C.tile + 4;
  template <class B>
  using Tile = GemmTile<B, 1, C.tile>;
  template <class B>
  struct Shared {
    typename Tile<B>::Shared operands;
    float c[kRows * kPitch];
  };

  static int64_t items(const Args& a) {
    return ceil_div(a.z.shape[0], kRows) * a.shards * head_shape(a.vocab).tiles_per_shard;
  }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t i) {
    const int64_t rows = a.z.shape[0], down = ceil_div(rows, kRows);
    const int64_t row0 = i % down * kRows, tile_index = i / down, col0 = tile_index * C.tile;
    const int64_t left = a.w.n - col0;
    const int count = left < 0 ? 0 : left < C.tile ? static_cast<int>(left) : C.tile;
    auto& s = b.template shared<Shared<B>>();
    if (count > 0) {
      Tile<B> tile;
      tile.chain(b, s.operands, rows_from(a.z, row0), rows_from(a.w, col0), 0, a.w.k);
      tile.outputs(b, [&](int r, int n, float z) { s.c[r * kPitch + n] = z; });
      b.sync();
      cap(b, s, a, row0, col0, count);
    }
    reduce(b, s, a, row0, tile_index, count);
  }

  // Logits → c/T in place; stores what was asked for on the way.
  template <class B>
  SB_SIMT static void cap(B& b, Shared<B>& s, const Args& a, int64_t row0, int64_t col0,
                          int count) {
    b.each([&](int t) {
      for (int e = t; e < kRows * C.tile; e += kThreads) {
        const int r = e / C.tile, n = e % C.tile;
        const int64_t row = row0 + r;
        if (row >= a.z.shape[0] || n >= count) continue;
        float& c = s.c[r * kPitch + n];
        if (a.logit.ptr) ptr<float>(a.logit)[row * a.logit.stride[0] + col0 + n] = c;
        c = cap_logit(c, a.softcap, a.deviation);
        if (a.capped.ptr) ptr<float>(a.capped)[row * a.capped.stride[0] + col0 + n] = c;
        c = arith::div(c, a.temperature);
        const int64_t y = ptr<int32_t>(a.target)[row];
        if (y >= 0 && y == a.vocab_begin + col0 + n) ptr<float>(a.c_target)[row] = c;
      }
    });
    b.sync();
  }

  // Column x of the quarter q of a row: bits 1 and 2 are q, the others x.
  SB_SIMT static constexpr int column(int q, int x) { return (x & 1) | q << 1 | (x & 62) << 2; }

  template <class B>
  SB_SIMT static void reduce(B& b, Shared<B>& s, const Args& a, int64_t row0, int64_t tile_index,
                             int count) {
    const uint8_t* suppress =
        a.suppress.ptr ? ptr<uint8_t>(a.suppress) + a.vocab_begin + tile_index * C.tile : nullptr;
    typename B::template Reg<float> m, sum;
    typename B::template Reg<int32_t> any;
    b.each([&](int t) {
      m[t] = bits_float(0xff800000u);
      any[t] = 0;
      if (t >= 4 * kRows) return;
      for (int x = 0; x < C.tile / 4; ++x) {
        const int n = column(t % 4, x);
        if (n >= count || (suppress && suppress[n])) continue;
        any[t] = 1;
        m[t] = arith::select_max(m[t], s.c[t / 4 * kPitch + n]);
      }
    });
    for (int mask = 1; mask <= 2; mask *= 2) {
      const auto other = b.shuffle_xor(m, mask);
      const auto more = b.shuffle_xor(any, mask);
      b.each([&](int t) {
        m[t] = arith::select_max(m[t], other[t]);
        any[t] |= more[t];
      });
    }
    b.each([&](int t) {
      sum[t] = 0.0f;
      if (t >= 4 * kRows || !any[t]) return;
      m[t] = arith::add(m[t], 0.0f);  // −0 → +0, as the contract has it
      float v[C.tile / 4];
      for (int x = 0; x < C.tile / 4; ++x) {
        const int n = column(t % 4, x);
        const bool present = n < count && !(suppress && suppress[n]);
        v[x] = present ? arith::exp(arith::sub(s.c[t / 4 * kPitch + n], m[t])) : 0.0f;
      }
      // Index bits 0, 3, 4, 5, 6, 7 are x's bits 0 … 5, folded in this order.
      sum[t] = arith::tree_adjacent<C.tile / 4>(v);
    });
    for (int mask = 1; mask <= 2; mask *= 2) {
      const auto other = b.shuffle_xor(sum, mask);
      b.each([&](int t) { sum[t] = arith::add(sum[t], other[t]); });
    }
    b.each([&](int t) {
      const int64_t row = row0 + t / 4;
      if (t >= 4 * kRows || t % 4 != 0 || row >= a.z.shape[0]) return;
      float* out =
          ptr<float>(a.tile_ms) + row * a.tile_ms.stride[0] + tile_index * a.tile_ms.stride[1];
      out[0] = m[t];
      out[1] = sum[t];
    });
  }
};

// An item is one (row, shard).
template <HeadRule C>
struct HeadShards {
  using Args = HeadArgs;
  static constexpr int kThreads = 128, kMost = 1024;  // tiles of a shard that fit
  template <class B>
  struct Shared {
    MaxSum v[2][kMost];
  };

  static int64_t items(const Args& a) { return a.z.shape[0] * a.shards; }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t i) {
    const int64_t row = i / a.shards, shard = i % a.shards;
    int n = static_cast<int>(head_shape(a.vocab).tiles_per_shard);
    const float* from =
        ptr<float>(a.tile_ms) + row * a.tile_ms.stride[0] + shard * n * a.tile_ms.stride[1];
    auto& s = b.template shared<Shared<B>>();
    b.each([&](int t) {
      for (int k = t; k < n; k += kThreads) {
        s.v[0][k] = {from[k * a.tile_ms.stride[1]], from[k * a.tile_ms.stride[1] + 1]};
      }
    });
    b.sync();
    int at = 0;
    for (; n > 1; n /= 2, at = 1 - at) {
      b.each([&](int t) {
        for (int k = t; k < n / 2; k += kThreads) {
          s.v[1 - at][k] = merge(s.v[at][2 * k], s.v[at][2 * k + 1]);
        }
      });
      b.sync();
    }
    b.each([&](int t) {
      if (t != 0) return;
      float* out =
          ptr<float>(a.shard_ms) + row * a.shard_ms.stride[0] + shard * a.shard_ms.stride[1];
      out[0] = s.v[at][0].m;
      out[1] = s.v[at][0].s;
    });
  }
};

// An item is kThreads rows.
template <HeadRule C>
struct HeadFinish {
  using Args = HeadFinishArgs;
  static constexpr int kThreads = 64;
  template <class B>
  struct Shared {};

  static int64_t items(const Args& a) { return ceil_div(a.shard_ms.shape[1], kThreads); }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t i) {
    const int64_t ranks = a.shard_ms.shape[0], per_rank = a.shard_ms.shape[2];
    b.each([&](int t) {
      const int64_t r = i * kThreads + t;
      if (r >= a.shard_ms.shape[1]) return;
      MaxSum v[C.shards];
      for (int64_t p = 0; p < ranks; ++p) {
        const float* from =
            ptr<float>(a.shard_ms) + p * a.shard_ms.stride[0] + r * a.shard_ms.stride[1];
        for (int64_t s = 0; s < per_rank; ++s) v[p * per_rank + s] = {from[2 * s], from[2 * s + 1]};
      }
      for (int n = C.shards; n > 1; n /= 2) {
        for (int k = 0; k < n / 2; ++k) v[k] = merge(v[2 * k], v[2 * k + 1]);
      }
      const MaxSum all = v[0];
      const float log_s = arith::log(all.s);
      if (a.max_sum.ptr) {
        float* ms = ptr<float>(a.max_sum) + r * a.max_sum.stride[0];
        ms[0] = all.m;
        ms[1] = all.s;
      }
      if (a.lse.ptr) ptr<float>(a.lse)[r] = arith::add(all.m, log_s);
      const int32_t owner = ptr<int32_t>(a.owner)[r];
      if (a.logp.ptr && owner >= 0) {
        const float c = ptr<float>(a.c_target)[owner * a.c_target.stride[0] + r];
        ptr<float>(a.logp)[r] = arith::sub(arith::sub(c, all.m), log_s);
      }
    });
  }
};

}  // namespace sb::simt
