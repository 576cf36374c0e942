// GEMM kernels: a block makes 16·MTiles rows × 64 columns of one output. Operands pass through
// shared memory in pieces of 64 k; K past its end and rows past theirs are zeros, which change no
// bit. Each output is one chain of k16 steps from +0; a tree GEMM runs a chain for each leaf and
// adds leaves in adjacent pairs, keeping the left halves that wait for their right ones in
// registers.
#pragma once

#include "samebits/backend/simt/kernel_load.h"
#include "samebits/contract/rules.h"

namespace sb::simt {

inline constexpr int kGemmColumns = 64;  // of a block
inline constexpr int kGemmPiece = 64;    // k of a piece
inline constexpr int kGemmPitch = kGemmPiece + 8;

// Operand pieces and the fragments of one block.
template <class B, int MTiles, int Columns = kGemmColumns>
struct GemmTile {
  static constexpr int kRows = 16 * MTiles;
  static constexpr int kNTiles = Columns / (B::kWarps * B::Map::kN);  // of a warp
  static_assert(kNTiles * B::kWarps * B::Map::kN == Columns);
  struct Shared {
    alignas(16) bf16 a[kRows * kGemmPitch];
    alignas(16) bf16 b[Columns * kGemmPitch];
  };
  Acc<B> acc[MTiles][kNTiles];

  // First column of n-tile j of a warp.
  SB_SIMT static int column(int warp, int j) { return (warp * kNTiles + j) * B::Map::kN; }

  // acc = chain over k [begin, end) from +0.
  SB_SIMT void chain(B& b, Shared& s, const MatrixRows& x, const MatrixRows& w, int64_t begin,
                     int64_t end) {
    SB_UNROLL
    for (int m = 0; m < MTiles; ++m) {
      SB_UNROLL
      for (int j = 0; j < kNTiles; ++j) clear(b, acc[m][j]);
    }
    for (int64_t k = begin; k < end; k += kGemmPiece) {
      load_piece<kRows, kGemmPiece, kGemmPitch>(b, s.a, x, k, end);
      load_piece<Columns, kGemmPiece, kGemmPitch>(b, s.b, w, k, end);
      b.sync();
      const int steps = static_cast<int>(((end - k < kGemmPiece ? end - k : kGemmPiece) + 15) / 16);
      for (int step = 0; step < steps; ++step) {
        SB_UNROLL
        for (int m = 0; m < MTiles; ++m) {
          SB_UNROLL
          for (int j = 0; j < kNTiles; ++j) {
            b.template mma<Order::kKInner>(acc[m][j], [&](int warp) {
              return Tiles{s.a + 16 * m * kGemmPitch + 16 * step, kGemmPitch,
                           s.b + column(warp, j) * kGemmPitch + 16 * step, kGemmPitch};
            });
          }
        }
      }
      b.sync();
    }
  }

  // f(row of the block, column of the block, value) for every output.
  template <class F>
  SB_SIMT void outputs(B& b, F f) {
    b.each([&](int t) {
      SB_UNROLL
      for (int m = 0; m < MTiles; ++m) {
        SB_UNROLL
        for (int j = 0; j < kNTiles; ++j) {
          SB_UNROLL
          for (int i = 0; i < B::Map::kC; ++i) {
            const Place at = B::Map::c(t % B::kWarp, i);
            f(16 * m + at.row, column(t / B::kWarp, j) + at.col, acc[m][j].v[i][t]);
          }
        }
      }
    });
  }

  // acc = left + acc.
  SB_SIMT void add_left(B& b, const GemmTile& left) {
    b.each([&](int t) {
      SB_UNROLL
      for (int m = 0; m < MTiles; ++m) {
        SB_UNROLL
        for (int j = 0; j < kNTiles; ++j) {
          SB_UNROLL
          for (int i = 0; i < B::Map::kC; ++i) {
            acc[m][j].v[i][t] = arith::add(left.acc[m][j].v[i][t], acc[m][j].v[i][t]);
          }
        }
      }
    });
  }
};

// Position of one output block among all of them.
struct GemmBlock {
  int64_t row = 0, column = 0;
};

SB_SIMT int64_t gemm_blocks(int64_t rows, int64_t columns, int block_rows) {
  return ceil_div(rows, block_rows) * ceil_div(columns, kGemmColumns);
}

// Blocks that share weights lie next to each other.
SB_SIMT GemmBlock gemm_block(int64_t i, int64_t rows, int block_rows) {
  const int64_t down = ceil_div(rows, block_rows);
  return {i % down * block_rows, i / down * kGemmColumns};
}

template <GemmRule C, int MTiles>
struct Gemm {
  static_assert(C.leaves == 1 && C.step_k == 16 && C.round_out);
  using Args = GemmArgs;
  static constexpr int kThreads = 128;
  template <class B>
  using Shared = typename GemmTile<B, MTiles>::Shared;

  static int64_t items(const Args& a) {
    int64_t n = 0;
    for (int g = 0; g < a.count; ++g) n += gemm_blocks(a.x.shape[0], a.w[g].n, 16 * MTiles);
    return n;
  }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t i) {
    const int64_t rows = a.x.shape[0];
    int g = 0;
    for (; g < a.count - 1; ++g) {
      const int64_t blocks = gemm_blocks(rows, a.w[g].n, 16 * MTiles);
      if (i < blocks) break;
      i -= blocks;
    }
    const WeightView w = a.w[g];
    const GemmBlock at = gemm_block(i, rows, 16 * MTiles);
    GemmTile<B, MTiles> tile;
    tile.chain(b, b.template shared<Shared<B>>(), rows_from(a.x, at.row), rows_from(w, at.column),
               0, w.k);
    bf16* out = ptr<bf16>(a.out[g]);
    float* acc = ptr<float>(a.acc[g]);
    tile.outputs(b, [&](int row, int column, float value) {
      const int64_t r = at.row + row, n = at.column + column;
      if (r >= rows || n >= w.n) return;
      out[r * a.out[g].stride[0] + n] = round_bf16(value);
      if (acc) acc[r * a.acc[g].stride[0] + n] = value;
    });
  }
};

template <GemmRule C, int MTiles>
struct GemmPartial {
  static_assert(C.leaves == 8 && C.tree == Tree::kAdjacent && C.step_k == 16);
  using Args = GemmPartialArgs;
  static constexpr int kThreads = 128;
  template <class B>
  using Shared = typename GemmTile<B, MTiles>::Shared;

  static int64_t items(const Args& a) { return gemm_blocks(a.x.shape[0], a.w.n, 16 * MTiles); }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t i) {
    const int64_t rows = a.x.shape[0];
    const int leaves = a.deviation == Deviation::kLeafOrder ? 1 : a.leaves;
    const int64_t leaf_k = a.w.k / leaves;
    const GemmBlock at = gemm_block(i, rows, 16 * MTiles);
    auto& shared = b.template shared<Shared<B>>();
    GemmTile<B, MTiles> tile, pair, quad, half;
    for (int leaf = 0; leaf < leaves; ++leaf) {
      tile.chain(b, shared, rows_from(a.x, at.row), rows_from(a.w, at.column), leaf * leaf_k,
                 (leaf + 1) * leaf_k);
      if ((leaf & 1) == 0) {
        pair = tile;
        continue;
      }
      tile.add_left(b, pair);
      if ((leaf & 2) == 0) {
        quad = tile;
        continue;
      }
      tile.add_left(b, quad);
      if ((leaf & 4) == 0) {
        half = tile;
        continue;
      }
      tile.add_left(b, half);
    }
    float* out = ptr<float>(a.partial);
    tile.outputs(b, [&](int row, int column, float value) {
      const int64_t r = at.row + row, n = at.column + column;
      if (r < rows && n < a.w.n) out[r * a.partial.stride[0] + n] = value;
    });
  }
};

// Sums of the ranks' subtrees, rounded once. An item is up to 512 columns of a row.
template <GemmRule C>
struct GemmFinish {
  using Args = GemmFinishArgs;
  static constexpr int kThreads = 128, kColumns = 512;
  template <class B>
  struct Shared {};

  static int64_t items(const Args& a) {
    return a.out.shape[0] * ceil_div(a.out.shape[1], kColumns);
  }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t i) {
    const int64_t across = ceil_div(a.out.shape[1], kColumns);
    const int64_t row = i / across, begin = i % across * kColumns;
    const int64_t end = begin + kColumns < a.out.shape[1] ? begin + kColumns : a.out.shape[1];
    const int ranks = static_cast<int>(a.partials.shape[0]);
    const float* p = ptr<float>(a.partials) + row * a.partials.stride[1];
    bf16* out = ptr<bf16>(a.out) + row * a.out.stride[0];
    float* acc = a.acc.ptr ? ptr<float>(a.acc) + row * a.acc.stride[0] : nullptr;
    b.each([&](int t) {
      for (int64_t n = begin + t; n < end; n += kThreads) {
        float v[C.leaves];
        for (int r = 0; r < C.leaves; ++r) {
          v[r] = r < ranks ? p[n + r * a.partials.stride[0]] : 0.0f;
        }
        float sum = v[0];
        if (a.deviation == Deviation::kLeafOrder) {
          for (int r = 1; r < ranks; ++r) sum = arith::add(sum, v[r]);
        } else if (ranks > 1) {
          // A level adds neighbours; levels beyond the ranks are not run.
          for (int n_left = ranks; n_left > 1; n_left /= 2) {
            for (int r = 0; r < n_left / 2; ++r) v[r] = arith::add(v[2 * r], v[2 * r + 1]);
          }
          sum = v[0];
        }
        out[n] = round_bf16(sum);
        if (acc) acc[n] = sum;
      }
    });
  }
};

}  // namespace sb::simt
