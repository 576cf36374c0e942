// Running the head whole or as ranks that own shards of the vocabulary, for its tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "samebits/contract/head_shape.h"
#include "samebits/ops/op_testing.h"
#include "samebits/ops/ops.h"

namespace sb::ops_testing {

struct HeadSetup {
  float softcap = 30.0f, temperature = 1.0f;
  std::vector<uint8_t> suppress;  // empty, or one byte an id
  int ranks = 1;
  Arithmetic arithmetic = {Profile::kSm90, arith::best_isa()};
  Deviation deviation = Deviation::kNone;
};

struct Scored {
  Tensor<float> logp, lse;
  Tensor<float> logit, capped;  // [R, V], put together from all ranks
  Tensor<float> shard_ms;       // [R, 16]: (m, S) of the 8 shards
};

// z [R, H]; w [≥ vocab, H], rows from `vocab` on do not exist for the model.
inline Scored score(const Tensor<bf16>& z, const Tensor<bf16>& w, int64_t vocab,
                    const std::vector<int32_t>& targets, const HeadSetup& s = {}) {
  Rig rig(s.arithmetic, 2, s.ranks);
  const int64_t rows = z.size(0);
  const int shards = 8 / s.ranks;
  Tensor<float> shard_ms({s.ranks, rows * shards * 2}), c_target({s.ranks, rows});
  const auto target = int_tensor(targets);
  std::vector<int32_t> owners;
  for (const int32_t y : targets) {
    owners.push_back(y < 0 ? -1 : head_shape(vocab).shard_of(y) / shards);
  }
  Scored out{Tensor<float>({rows}), Tensor<float>({rows}), Tensor<float>({rows, vocab}, 1),
             Tensor<float>({rows, vocab}, 2), Tensor<float>()};
  Tensor<uint8_t> suppress({vocab});
  if (!s.suppress.empty()) std::copy(s.suppress.begin(), s.suppress.end(), suppress.data());

  for (int p = 0; p < s.ranks; ++p) {
    const ColumnRange range = shard_columns(vocab, p * shards, shards);
    const int64_t n = range.end - range.begin;
    HeadArgs a;
    a.z = z.view();
    a.w = {w.data() + range.begin * w.view().stride[0], n, w.size(1), w.view().stride[0]};
    a.vocab = vocab, a.vocab_begin = range.begin;
    a.shard_begin = p * shards, a.shards = shards;
    a.target = target.view();
    if (!s.suppress.empty()) a.suppress = suppress.view();
    a.softcap = s.softcap, a.temperature = s.temperature, a.deviation = s.deviation;
    Tensor<float> tiles({rows, head_tiles(vocab, shards) * 2});
    a.tile_ms = make_view(tiles.data(), Dtype::kF32, {rows, head_tiles(vocab, shards), 2});
    a.shard_ms = make_view(shard_ms.row(p), Dtype::kF32, {rows, shards, 2});
    a.c_target = make_view(c_target.row(p), Dtype::kF32, {rows});
    const auto part = [&](Tensor<float>& whole) {
      View v = whole.view();
      v.ptr = whole.data() + range.begin;
      v.shape[1] = n;
      return v;
    };
    a.logit = part(out.logit), a.capped = part(out.capped);
    EXPECT_TRUE(ran(ops::head(rig.ctx, kNowhere, a)));
  }
  const auto owner = int_tensor(owners);
  const View all = make_view(shard_ms.data(), Dtype::kF32, {s.ranks, rows, shards, 2});
  EXPECT_TRUE(ran(ops::head_finish(
      rig.ctx, kNowhere, {all, c_target.view(), owner.view(), out.logp.view(), out.lse.view()})));
  out.shard_ms = Tensor<float>({rows, 16});
  for (int p = 0; p < s.ranks; ++p) {
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = shard_ms.row(p) + r * shards * 2;
      std::copy(from, from + shards * 2, out.shard_ms.row(r) + p * shards * 2);
    }
  }
  EXPECT_TRUE(out.logit.gaps_untouched() && out.capped.gaps_untouched());
  return out;
}

// z and w whose logits are exactly the given bf16 values: a unit vector picks column 0.
struct Crafted {
  Tensor<bf16> z, w;
};
inline Crafted crafted(const std::vector<float>& logits, int64_t rows = 1) {
  Crafted c{Tensor<bf16>({rows, 16}), Tensor<bf16>({static_cast<int64_t>(logits.size()), 16})};
  for (int64_t r = 0; r < rows; ++r) {
    for (int i = 0; i < 16; ++i) c.z(r, i) = round_bf16(i == 0 ? 1.0f : 0.0f);
  }
  for (size_t v = 0; v < logits.size(); ++v) {
    for (int i = 0; i < 16; ++i) {
      c.w(static_cast<int64_t>(v), i) = round_bf16(i == 0 ? logits[v] : 0.0f);
    }
  }
  return c;
}

}  // namespace sb::ops_testing
