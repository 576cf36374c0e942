// Oracle of the matrix products: chains of the profile's matrix step over K from +0. One-leaf GEMMs
// run one chain; o and down run a subtree of leaves per rank, and `finish` adds the ranks'
// subtrees. Work is cut into tiles of rows × columns; a tile never shares a sum, so cutting changes
// no bit.
#include <algorithm>
#include <vector>

#include "samebits/arith/chain.h"
#include "samebits/backend/implementation.h"
#include "samebits/base/bits.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

constexpr int kTileRows = 64, kTileCols = 64;

struct Tile {
  int64_t t0, n0;
  int rows, cols;
};

// Runs body(tile) over all tiles of a [rows, cols] output; cost counts products per output.
Status for_tiles(const Exec& exec, int64_t rows, int64_t cols, int64_t k,
                 const std::function<void(const Tile&)>& body) {
  const int64_t across = ceil_div(cols, kTileCols), down = ceil_div(rows, kTileRows);
  const double cost = 0.1 * static_cast<double>(std::min<int64_t>(rows, kTileRows) *
                                                std::min<int64_t>(cols, kTileCols) * k);
  return for_rows(exec, across * down, cost, [&](int64_t i) {
    const int64_t t0 = (i / across) * kTileRows, n0 = (i % across) * kTileCols;
    body({t0, n0, static_cast<int>(std::min<int64_t>(kTileRows, rows - t0)),
          static_cast<int>(std::min<int64_t>(kTileCols, cols - n0))});
  });
}

// c[r][j] = chain over columns [k0, k0 + k) from +0.
void chain_tile(const arith::ChainKernels& kernels, const View& x, const WeightView& w,
                const Tile& tile, int64_t k0, int64_t k, float* c) {
  const bf16 *a[kTileRows], *b[kTileCols];
  const bf16* base = static_cast<const bf16*>(x.ptr);
  for (int r = 0; r < tile.rows; ++r) a[r] = base + (tile.t0 + r) * x.stride[0] + k0;
  for (int j = 0; j < tile.cols; ++j) b[j] = w.ptr + (tile.n0 + j) * w.ld + k0;
  std::fill(c, c + kTileRows * kTileCols, 0.0f);
  kernels.b_rows(a, tile.rows, b, tile.cols, static_cast<int>(k), c, kTileCols);
}

template <GemmRule C>
Status gemm(const Exec& exec, const GemmArgs& a) {
  static_assert(C.leaves == 1 && C.step_k == 16 && C.round_out);
  const auto& kernels = *arith::chain_kernels(exec.profile, exec.isa);
  for (int g = 0; g < a.count; ++g) {
    const WeightView& w = a.w[g];
    SB_DO(for_tiles(exec, a.x.shape[0], w.n, w.k, [&](const Tile& tile) {
      float c[kTileRows * kTileCols];
      chain_tile(kernels, a.x, w, tile, 0, w.k, c);
      for (int r = 0; r < tile.rows; ++r) {
        const float* from = c + r * kTileCols;
        bf16* out = a.out[g].as<bf16>() + (tile.t0 + r) * a.out[g].stride[0] + tile.n0;
        for (int j = 0; j < tile.cols; ++j) out[j] = round_bf16(from[j]);
        if (!a.acc[g]) continue;
        float* acc = a.acc[g].as<float>() + (tile.t0 + r) * a.acc[g].stride[0] + tile.n0;
        std::copy(from, from + tile.cols, acc);
      }
    }));
  }
  return {};
}

// Adjacent pairs, level by level, of n values `stride` floats apart (n a power of two).
inline float add_pairs(const float* v, int n, int64_t stride) {
  if (n == 1) return v[0];
  return add_pairs(v, n / 2, stride) + add_pairs(v + (n / 2) * stride, n / 2, stride);
}

// Planted fault kLeafOrder: one chain runs through all leaves of a rank and ranks are added left to
// right, as a kernel does that knows nothing of leaves.
template <GemmRule C>
Status gemm_partial(const Exec& exec, const GemmPartialArgs& a) {
  static_assert(C.leaves == 8 && C.tree == Tree::kAdjacent && C.step_k == 16);
  const auto& kernels = *arith::chain_kernels(exec.profile, exec.isa);
  const int leaves = a.deviation == Deviation::kLeafOrder ? 1 : a.leaves;
  const int64_t leaf_k = a.w.k / leaves;
  return for_tiles(exec, a.x.shape[0], a.w.n, a.w.k, [&](const Tile& tile) {
    constexpr int kArea = kTileRows * kTileCols;
    thread_local std::vector<float> c(C.leaves * kArea);
    for (int l = 0; l < leaves; ++l) {
      chain_tile(kernels, a.x, a.w, tile, l * leaf_k, leaf_k, c.data() + l * kArea);
    }
    for (int r = 0; r < tile.rows; ++r) {
      float* out = a.partial.as<float>() + (tile.t0 + r) * a.partial.stride[0] + tile.n0;
      for (int j = 0; j < tile.cols; ++j) {
        out[j] = add_pairs(c.data() + r * kTileCols + j, leaves, kArea);
      }
    }
  });
}

template <GemmRule C>
Status gemm_finish(const Exec& exec, const GemmFinishArgs& a) {
  const int64_t rows = a.out.shape[0], cols = a.out.shape[1];
  const int ranks = static_cast<int>(a.partials.shape[0]);
  return for_rows(exec, rows, static_cast<double>(cols), [&](int64_t t) {
    const float* p = a.partials.as<float>() + t * a.partials.stride[1];
    bf16* out = a.out.as<bf16>() + t * a.out.stride[0];
    float* acc = a.acc ? a.acc.as<float>() + t * a.acc.stride[0] : nullptr;
    for (int64_t j = 0; j < cols; ++j) {
      float sum = p[j];
      if (a.deviation == Deviation::kLeafOrder) {
        for (int r = 1; r < ranks; ++r) sum = sum + p[j + r * a.partials.stride[0]];
      } else {
        sum = add_pairs(p + j, ranks, a.partials.stride[0]);
      }
      out[j] = round_bf16(sum);
      if (acc) acc[j] = sum;
    }
  });
}

constexpr Implementation<GemmArgs> kGemm[] = {
    {"cpu.gemm.tile64.v1", ContractId::kGemm, kAllProfiles, DeviceId::kCpu, "cpu", "tile64x64",
     "none", gemm<kGemmRule>},
};
constexpr Implementation<GemmPartialArgs> kPartial[] = {
    {"cpu.gemm_partial.tile64.v1", ContractId::kGemmTree, kAllProfiles, DeviceId::kCpu, "cpu",
     "tile64x64", "leaves", gemm_partial<kGemmTreeRule>},
};
constexpr Implementation<GemmFinishArgs> kFinish[] = {
    {"cpu.gemm_finish.row.v1", ContractId::kGemmTree, kAllProfiles, DeviceId::kCpu, "cpu", "row",
     "ranks", gemm_finish<kGemmTreeRule>},
};

}  // namespace

template <>
std::span<const Implementation<GemmArgs>> cpu_implementations<GemmArgs>() {
  return kGemm;
}
template <>
std::span<const Implementation<GemmPartialArgs>> cpu_implementations<GemmPartialArgs>() {
  return kPartial;
}
template <>
std::span<const Implementation<GemmFinishArgs>> cpu_implementations<GemmFinishArgs>() {
  return kFinish;
}

}  // namespace sb
