// Oracle of the head: fp32 logits, softcap, temperature and the log-sum-exp of the whole vocabulary
// in one fixed tree of 256-column tiles, so that a shard of the vocabulary owns a subtree.
//
// Per tile: m = max c, S = T256(exp(c − m)); absent and suppressed columns are −∞ before the max
// and +0 after exp. Tiles merge in adjacent pairs; a side without any column is empty (m = −∞).
#include <algorithm>
#include <limits>
#include <vector>

#include "samebits/arith/chain.h"
#include "samebits/arith/fp.h"
#include "samebits/arith/log.h"
#include "samebits/arith/tree.h"
#include "samebits/backend/head_math.h"
#include "samebits/backend/implementation.h"
#include "samebits/base/bits.h"
#include "samebits/contract/head_shape.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr int kTileRows = 32;

// Adjacent pairs, level by level, of n tiles `stride` floats apart; n is a power of two.
MaxSum merge_pairs(const float* v, int64_t n, int64_t stride) {
  if (n == 1) return {v[0], v[1]};
  return merge(merge_pairs(v, n / 2, stride), merge_pairs(v + n / 2 * stride, n / 2, stride));
}

// (m, S) of one tile of c/T; the columns [0, count) exist, suppressed ones are left out.
template <HeadRule C>
MaxSum tile_max_sum(const float* c, const uint8_t* suppressed, int count) {
  static_assert(C.tile == 256 && C.tile_sum == Tree::kFold256);
  float v[C.tile];
  float m = kMinusInf;
  bool any = false;
  for (int i = 0; i < C.tile; ++i) {
    const bool present = i < count && !(suppressed && suppressed[i]);
    any |= present;
    v[i] = present ? c[i] : kMinusInf;
    m = arith::select_max(m, v[i]);
  }
  if (!any) return no_columns();
  m = m + 0.0f;  // −0 → +0: the maximum then does not depend on the order of comparison
  for (int i = 0; i < C.tile; ++i) v[i] = arith::exp(v[i] - m);  // exp(−∞) = +0
  return {m, arith::tree256(v)};
}

template <HeadRule C>
Status head(const Exec& exec, const HeadArgs& a) {
  const auto& kernels = *arith::chain_kernels(exec.profile, exec.isa);
  const int64_t rows = a.z.shape[0], hidden = a.z.shape[1], cols = a.w.n;
  const HeadShape shape = head_shape(a.vocab);
  const int64_t tiles = a.shards * shape.tiles_per_shard, down = ceil_div(rows, kTileRows);
  const int32_t* target = a.target.as<int32_t>();
  const uint8_t* suppress = a.suppress ? a.suppress.as<uint8_t>() : nullptr;

  SB_DO(for_rows(exec, tiles * down, 0.1 * C.tile * hidden, [&](int64_t item) {
    const int64_t tile = item / down, r0 = item % down * kTileRows, col0 = tile * C.tile;
    const int count = static_cast<int>(std::clamp<int64_t>(cols - col0, 0, C.tile));
    const int m = static_cast<int>(std::min<int64_t>(kTileRows, rows - r0));
    const auto store = [&](int64_t row, MaxSum part) {
      float* to = a.tile_ms.as<float>() + row * a.tile_ms.stride[0] + tile * a.tile_ms.stride[1];
      to[0] = part.m;
      to[1] = part.s;
    };
    if (count == 0) {
      for (int r = 0; r < m; ++r) store(r0 + r, no_columns());
      return;
    }
    const bf16 *x[kTileRows], *w[C.tile];
    for (int r = 0; r < m; ++r) x[r] = a.z.as<bf16>() + (r0 + r) * a.z.stride[0];
    for (int j = 0; j < count; ++j) w[j] = a.w.ptr + (col0 + j) * a.w.ld;
    thread_local std::vector<float> z;
    z.assign(kTileRows * C.tile, 0.0f);
    kernels.b_rows(x, m, w, count, static_cast<int>(hidden), z.data(), C.tile);
    for (int r = 0; r < m; ++r) {
      const int64_t row = r0 + r;
      float* c = z.data() + r * C.tile;
      if (a.logit) {
        std::copy(c, c + count, a.logit.as<float>() + row * a.logit.stride[0] + col0);
      }
      for (int j = 0; j < count; ++j) c[j] = cap_logit(c[j], a.softcap, a.deviation);
      if (a.capped) {
        std::copy(c, c + count, a.capped.as<float>() + row * a.capped.stride[0] + col0);
      }
      for (int j = 0; j < count; ++j) c[j] = c[j] / a.temperature;
      const int64_t id0 = a.vocab_begin + col0, y = target[row] - id0;
      if (target[row] >= 0 && y >= 0 && y < count) a.c_target.as<float>()[row] = c[y];
      store(row, tile_max_sum<C>(c, suppress ? suppress + id0 : nullptr, count));
    }
  }));

  for (int64_t r = 0; r < rows; ++r) {
    for (int s = 0; s < a.shards; ++s) {
      const MaxSum part = merge_pairs(a.tile_ms.as<float>() + r * a.tile_ms.stride[0] +
                                          s * shape.tiles_per_shard * a.tile_ms.stride[1],
                                      shape.tiles_per_shard, a.tile_ms.stride[1]);
      float* out = a.shard_ms.as<float>() + r * a.shard_ms.stride[0] + s * a.shard_ms.stride[1];
      out[0] = part.m;
      out[1] = part.s;
    }
  }
  return {};
}

template <HeadRule C>
Status head_finish(const Exec& exec, const HeadFinishArgs& a) {
  const int64_t ranks = a.shard_ms.shape[0], rows = a.shard_ms.shape[1];
  const int64_t per_rank = a.shard_ms.shape[2];
  return for_rows(exec, rows, 100.0, [&](int64_t r) {
    float shard[C.shards][2];
    for (int64_t p = 0; p < ranks; ++p) {
      const float* from =
          a.shard_ms.as<float>() + p * a.shard_ms.stride[0] + r * a.shard_ms.stride[1];
      std::copy(from, from + 2 * per_rank, shard[p * per_rank]);
    }
    const MaxSum all = merge_pairs(&shard[0][0], C.shards, 2);
    const float log_s = arith::log(all.s);
    if (a.max_sum) {
      float* ms = a.max_sum.as<float>() + r * a.max_sum.stride[0];
      ms[0] = all.m;
      ms[1] = all.s;
    }
    if (a.lse) a.lse.as<float>()[r] = all.m + log_s;
    const int32_t owner = a.owner.as<int32_t>()[r];
    if (a.logp && owner >= 0) {
      const float c = a.c_target.as<float>()[owner * a.c_target.stride[0] + r];
      a.logp.as<float>()[r] = (c - all.m) - log_s;
    }
  });
}

constexpr Implementation<HeadArgs> kHead[] = {
    {"cpu.head.tile256.v1", ContractId::kHead, kAllProfiles, DeviceId::kCpu, "cpu",
     "32 rows x 256 columns", "vocabulary tiles", head<kHeadRule>},
};
constexpr Implementation<HeadFinishArgs> kFinish[] = {
    {"cpu.head_finish.row.v1", ContractId::kHead, kAllProfiles, DeviceId::kCpu, "cpu", "row",
     "shards", head_finish<kHeadRule>},
};

}  // namespace

template <>
std::span<const Implementation<HeadArgs>> cpu_implementations<HeadArgs>() {
  return kHead;
}
template <>
std::span<const Implementation<HeadFinishArgs>> cpu_implementations<HeadFinishArgs>() {
  return kFinish;
}

}  // namespace sb
