// Attention kernel: an item is one (row, KV head); its group of query heads fills the 16 rows of a
// matrix step. Keys pass in blocks of 64 at absolute multiples of 64, in pieces of 128 dims that
// fit AMD's 64 KiB of shared memory; scores and p lie in shared memory, O in fragments. Invisible
// keys are never read: their rows are zeros, their scores are selected away. Four threads hold a
// row of scores, one for each value of index bits 1 and 2, so T64 needs two shuffles.
//
// Refused before launch: groups above 16, head dims above 512.
#pragma once

#include "samebits/arith/exp2.h"
#include "samebits/arith/log.h"
#include "samebits/arith/tree.h"
#include "samebits/backend/simt/kernel_load.h"
#include "samebits/contract/rules.h"

namespace sb::simt {

inline constexpr int kMaxGroup = 16;

template <AttentionRule C, int MaxD>
struct Attention {
  static_assert(C.block_keys == 64 && C.step_k == 16 && C.row_sum == Tree::kFold64);
  using Args = AttentionArgs;
  static constexpr int kThreads = 128, kBlock = C.block_keys;
  static constexpr int kPiece = MaxD < 128 ? MaxD : 128;  // dims of a piece of K or V
  static constexpr int kPitch = kPiece + 8, kQPitch = MaxD + 8, kPPitch = kBlock + 8;
  static constexpr uint32_t kMinusInf = 0xff800000u;

  template <class B>
  struct Shared {
    alignas(16) bf16 q[16 * kQPitch];
    alignas(16) bf16 kv[kBlock * kPitch];
    alignas(16) float s[16 * kBlock];
    alignas(16) bf16 p[16 * kPPitch];
    float m[16], l[16], alpha[16];  // of the state the block is added to
    float run_m[16], run_l[16], a[16], b[16];
  };
  // O of the group, [16][MaxD]: n-tile j of a warp holds columns (warp + kWarps·j)·N ….
  template <class B>
  struct Output {
    static constexpr int kTiles = MaxD / (B::kWarps * B::Map::kN);
    Acc<B> tile[kTiles];
    SB_SIMT static int column(int warp, int j) { return (warp + B::kWarps * j) * B::Map::kN; }
  };

  // Everything an item's steps share.
  struct Row {
    int64_t t0, g, first, last;
    const int32_t* table;
    int group, width, window_first_block, last_block;
    bool leak;
  };

  static int64_t items(const Args& a) { return a.q.shape[0] * a.num_kv_heads; }

  SB_SIMT static bool dropped_block(const Args& a) {
    if (a.deviation != Deviation::kDropLastBlock) return false;
    int live = 0;
    for (int64_t r = 0; r < a.q.shape[0]; ++r) live += ptr<int32_t>(a.seq)[r] >= 0;
    return live == 1;
  }

  SB_SIMT static Row row_of(const Args& a, int64_t i) {
    Row r;
    r.t0 = i / a.num_kv_heads;
    r.g = i % a.num_kv_heads;
    r.group = static_cast<int>(a.q.shape[1] / a.num_kv_heads);
    r.width = static_cast<int>(a.q.shape[2]);
    const int64_t pos = ptr<int32_t>(a.pos)[r.t0], seq = ptr<int32_t>(a.seq)[r.t0];
    r.table = ptr<int32_t>(a.kv.table) + seq * a.kv.table.stride[0];
    int64_t window = a.window;
    if (a.deviation == Deviation::kWindowMinusOne) window -= 1;
    if (a.deviation == Deviation::kWindowPlusOne) window += 1;
    r.first = a.window == 0 || pos - window + 1 < 0 ? 0 : pos - window + 1;
    r.last = pos;
    r.leak = a.deviation == Deviation::kKeyLeak && a.kv.kind == KvView::kLinear && r.table[0] > 0;
    r.window_first_block = static_cast<int>(r.first / kBlock);
    r.last_block = static_cast<int>(r.last / kBlock);
    if (r.last_block > r.window_first_block && dropped_block(a)) --r.last_block;
    return r;
  }

  // kv piece: keys [block·64, +64) × dims [d0, d0 + kPiece), invisible keys as +0.
  template <class B>
  SB_SIMT static void load_keys(B& b, Shared<B>& s, const Args& a, const Row& r, const bf16* base,
                                int64_t block, int d0) {
    const int dims = r.width - d0 < kPiece ? r.width - d0 : kPiece;
    b.each([&](int t) {
      for (int i = t; i < kBlock * (kPiece / 8); i += kThreads) {
        const int j = i / (kPiece / 8), d = i % (kPiece / 8) * 8;
        const int64_t key = block * kBlock + j;
        Vector8 v{};
        if (key >= r.first && key <= r.last && d < dims) {
          const int64_t read = r.leak && key == 0 ? -1 : key;
          const bf16* from =
              base + kv_offset(a.kv, r.table, read) + r.g * a.kv.head_stride + d0 + d;
          if (reinterpret_cast<uintptr_t>(from) % 16 == 0 && d + 8 <= dims) {
            v = *reinterpret_cast<const Vector8*>(from);
          } else {
            for (int e = 0; e < 8 && d + e < dims; ++e) v.v[e] = from[e];
          }
        }
        *reinterpret_cast<Vector8*>(s.kv + j * kPitch + d) = v;
      }
    });
    b.sync();
  }

  // s = q · k of one block.
  template <class B>
  SB_SIMT static void scores(B& b, Shared<B>& s, const Args& a, const Row& r, int64_t block) {
    constexpr int kTiles = kBlock / (B::kWarps * B::Map::kN);
    Acc<B> acc[kTiles];
    SB_UNROLL
    for (int j = 0; j < kTiles; ++j) clear(b, acc[j]);
    for (int d0 = 0; d0 < r.width; d0 += kPiece) {
      load_keys(b, s, a, r, a.kv.k, block, d0);
      const int end = r.width - d0 < kPiece ? r.width - d0 : kPiece;
      for (int d = 0; d < end; d += 16) {
        SB_UNROLL
        for (int j = 0; j < kTiles; ++j) {
          b.template mma<Order::kKInner>(acc[j], [&](int warp) {
            return Tiles{s.q + d0 + d, kQPitch,
                         s.kv + (warp * kTiles + j) * B::Map::kN * kPitch + d, kPitch};
          });
        }
      }
      b.sync();
    }
    b.each([&](int t) {
      SB_UNROLL
      for (int j = 0; j < kTiles; ++j) {
        SB_UNROLL
        for (int i = 0; i < B::Map::kC; ++i) {
          const Place at = B::Map::c(t % B::kWarp, i);
          s.s[at.row * kBlock + ((t / B::kWarp) * kTiles + j) * B::Map::kN + at.col] =
              acc[j].v[i][t];
        }
      }
    });
    b.sync();
  }

  // Column of score x of thread quarter q: bits 1 and 2 are q, the others x.
  SB_SIMT static constexpr int score_column(int q, int x) {
    return (x & 1) | q << 1 | (x & 14) << 2;
  }

  // m, l, alpha and p of one block. Threads 4·h … 4·h + 3 own row h.
  template <class B>
  SB_SIMT static void softmax(B& b, Shared<B>& s, const Row& r, int64_t block) {
    const float log2e = bits_float(C.log2e_bits);
    typename B::template Reg<float> m, sum;
    b.each([&](int t) {
      m[t] = bits_float(kMinusInf);
      if (t >= 64) return;
      for (int x = 0; x < 16; ++x) {
        const int j = score_column(t % 4, x);
        const int64_t key = block * kBlock + j;
        const bool visible = key >= r.first && key <= r.last;
        if (visible) m[t] = arith::select_max(m[t], s.s[t / 4 * kBlock + j]);
      }
    });
    for (int mask = 1; mask <= 2; mask *= 2) {
      const auto other = b.shuffle_xor(m, mask);
      b.each([&](int t) { m[t] = arith::select_max(m[t], other[t]); });
    }
    b.each([&](int t) {
      sum[t] = 0.0f;
      if (t >= 64) return;
      const int h = t / 4;
      m[t] = arith::select_max(s.m[h], m[t]);
      float v[16];
      for (int x = 0; x < 16; ++x) {
        const int j = score_column(t % 4, x);
        const int64_t key = block * kBlock + j;
        const bool visible = key >= r.first && key <= r.last;
        const float e =
            arith::exp2_nonpos(arith::mul(arith::sub(s.s[h * kBlock + j], m[t]), log2e));
        v[x] = visible ? e : 0.0f;
        s.p[h * kPPitch + j] = round_bf16(v[x]);
      }
      // Index bits 0, 3, 4, 5 are x's bits 0 … 3, folded in this order.
      sum[t] = arith::tree_adjacent<16>(v);
    });
    for (int mask = 1; mask <= 2; mask *= 2) {
      const auto other = b.shuffle_xor(sum, mask);
      b.each([&](int t) { sum[t] = arith::add(sum[t], other[t]); });
    }
    b.each([&](int t) {
      if (t >= 64 || t % 4 != 0) return;
      const int h = t / 4;
      const float alpha =
          m[t] == s.m[h] ? 1.0f : arith::exp2_nonpos(arith::mul(arith::sub(s.m[h], m[t]), log2e));
      s.l[h] = arith::fma(s.l[h], alpha, sum[t]);
      s.alpha[h] = alpha;
      s.m[h] = m[t];
    });
    b.sync();
  }

  // O = O·alpha, then O accumulates p · v.
  template <class B>
  SB_SIMT static void values(B& b, Shared<B>& s, const Args& a, const Row& r, int64_t block,
                             Output<B>& o) {
    b.each([&](int t) {
      SB_UNROLL
      for (int j = 0; j < Output<B>::kTiles; ++j) {
        SB_UNROLL
        for (int i = 0; i < B::Map::kC; ++i) {
          float& v = o.tile[j].v[i][t];
          v = arith::mul(v, s.alpha[B::Map::c(t % B::kWarp, i).row]);
        }
      }
    });
    constexpr int kPieces = MaxD / kPiece, kPerPiece = Output<B>::kTiles / kPieces;
    SB_UNROLL
    for (int piece = 0; piece < kPieces; ++piece) {
      if (piece * kPiece >= r.width) break;
      load_keys(b, s, a, r, a.kv.v, block, piece * kPiece);
      for (int k = 0; k < kBlock; k += 16) {
        SB_UNROLL
        for (int j = 0; j < kPerPiece; ++j) {
          b.template mma<Order::kNInner>(o.tile[piece * kPerPiece + j], [&](int warp) {
            const int column = Output<B>::column(warp, j);
            if (piece * kPiece + column >= r.width) return Tiles{};
            return Tiles{s.p + k, kPPitch, s.kv + k * kPitch + column, kPitch};
          });
        }
      }
      b.sync();
    }
  }

  template <class B>
  SB_SIMT static void start(B& b, Shared<B>& s, Output<B>& o) {
    b.each([&](int t) {
      if (t < 16) {
        s.m[t] = bits_float(kMinusInf);
        s.l[t] = 0.0f;
      }
    });
    SB_UNROLL
    for (int j = 0; j < Output<B>::kTiles; ++j) clear(b, o.tile[j]);
    b.sync();
  }

  // running ← running merged with (s.m, s.l, o); `first`: taken as it is.
  template <class B>
  SB_SIMT static void merge(B& b, Shared<B>& s, Output<B>& running, const Output<B>& o,
                            bool first) {
    const float log2e = bits_float(C.log2e_bits);
    b.each([&](int t) {
      if (t >= 16) return;
      if (first) {
        s.run_m[t] = s.m[t];
        s.run_l[t] = s.l[t];
        return;
      }
      const float m = arith::select_max(s.run_m[t], s.m[t]);
      s.a[t] =
          s.run_m[t] == m ? 1.0f : arith::exp2_nonpos(arith::mul(arith::sub(s.run_m[t], m), log2e));
      s.b[t] = s.m[t] == m ? 1.0f : arith::exp2_nonpos(arith::mul(arith::sub(s.m[t], m), log2e));
      s.run_l[t] = arith::add(arith::mul(s.run_l[t], s.a[t]), arith::mul(s.l[t], s.b[t]));
      s.run_m[t] = m;
    });
    b.sync();
    b.each([&](int t) {
      SB_UNROLL
      for (int j = 0; j < Output<B>::kTiles; ++j) {
        SB_UNROLL
        for (int i = 0; i < B::Map::kC; ++i) {
          const int h = B::Map::c(t % B::kWarp, i).row;
          const float x = running.tile[j].v[i][t], y = o.tile[j].v[i][t];
          running.tile[j].v[i][t] =
              first ? y : arith::add(arith::mul(x, s.a[h]), arith::mul(y, s.b[h]));
        }
      }
    });
    b.sync();
  }

  // False where a visible key has no page. One answer for the block.
  template <class B>
  SB_SIMT static bool pages_exist(const Args& a, const Row& r) {
    if (a.kv.kind == KvView::kLinear) return true;
    for (int64_t page = r.first / a.kv.page_size; page <= r.last / a.kv.page_size; ++page) {
      if (!kv_page_exists(a.kv, r.table, page * a.kv.page_size)) return false;
    }
    return true;
  }

  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t i) {
    if (ptr<int32_t>(a.seq)[i / a.num_kv_heads] < 0) return;
    const Row r = row_of(a, i);
    if (!pages_exist<B>(a, r)) {
      b.fail();
      return;
    }
    auto& s = b.template shared<Shared<B>>();
    const bf16* q = ptr<bf16>(a.q) + r.t0 * a.q.stride[0] + r.g * r.group * a.q.stride[1];
    b.each([&](int t) {
      for (int e = t; e < 16 * kQPitch; e += kThreads) {
        const int h = e / kQPitch, d = e % kQPitch;
        s.q[e] = h < r.group && d < r.width ? q[h * a.q.stride[1] + d] : bf16{};
      }
    });
    Output<B> o, running;
    start(b, s, o);
    bool merged = false;
    const int per_segment = C.segmented ? a.segment / kBlock : 0;
    for (int block = r.window_first_block; block <= r.last_block; ++block) {
      if (C.segmented && block % per_segment == 0 && block != r.window_first_block) {
        merge(b, s, running, o, !merged);
        merged = true;
        start(b, s, o);
      }
      scores(b, s, a, r, block);
      softmax(b, s, r, block);
      values(b, s, a, r, block, o);
    }
    merge(b, s, running, o, !merged);
    write(b, s, a, r, running);
  }

  template <class B>
  SB_SIMT static void write(B& b, Shared<B>& s, const Args& a, const Row& r, const Output<B>& o) {
    bf16* out = ptr<bf16>(a.out) + r.t0 * a.out.stride[0] + r.g * r.group * a.out.stride[1];
    float* acc = a.acc.ptr
                     ? ptr<float>(a.acc) + r.t0 * a.acc.stride[0] + r.g * r.group * a.acc.stride[1]
                     : nullptr;
    b.each([&](int t) {
      SB_UNROLL
      for (int j = 0; j < Output<B>::kTiles; ++j) {
        SB_UNROLL
        for (int i = 0; i < B::Map::kC; ++i) {
          const Place at = B::Map::c(t % B::kWarp, i);
          const int d = Output<B>::column(t / B::kWarp, j) + at.col;
          if (at.row >= r.group || d >= r.width) continue;
          const float l = s.run_l[at.row];
          const float inv = arith::div(1.0f, l);
          const float y = l != 0.0f ? arith::mul(arith::add(o.tile[j].v[i][t], 0.0f), inv) : 0.0f;
          out[at.row * a.out.stride[1] + d] = round_bf16(y);
          if (acc) acc[at.row * a.acc.stride[1] + d] = y;
        }
      }
      if (a.lse.ptr && t < r.group) {
        ptr<float>(a.lse)[r.t0 * a.lse.stride[0] + r.g * r.group + t] =
            s.run_l[t] != 0.0f ? arith::add(s.run_m[t], arith::log(s.run_l[t]))
                               : bits_float(kMinusInf);
      }
    });
  }
};

}  // namespace sb::simt
