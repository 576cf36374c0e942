// Keys and values of several sequences laid out as an engine may lay them out, for the tests of
// attention and of the cache.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "samebits/ops/op_testing.h"
#include "samebits/ops/ops.h"
#include "samebits/ops/reference_testing.h"

namespace sb::ops_testing {

struct AttentionSetup {
  int heads = 4, kv_heads = 2, width = 32;
  int window = 0;   // sliding if positive
  int segment = 0;  // global otherwise
  LayerType type() const { return window > 0 ? LayerType::kSliding : LayerType::kGlobal; }
  Site site() const { return {{Tap::kAttnCtx, 0}, type()}; }
};

// Logical keys and values: one [length, kv_heads, D] tensor a sequence.
struct Keys {
  std::vector<Tensor<bf16>> k, v;
  Keys(uint64_t seed, const AttentionSetup& s, const std::vector<int64_t>& lengths,
       float scale = 1.0f) {
    for (const int64_t n : lengths) {
      k.push_back(random_tensor(seed++ * 2 + 1, {n, s.kv_heads, s.width}, scale));
      v.push_back(random_tensor(seed++ * 2 + 2, {n, s.kv_heads, s.width}));
    }
  }
  int64_t length(size_t seq) const { return k[seq].size(0); }
};

enum class Layout {
  kLinear,     // packed [tokens, H, D], keys and values apart
  kPageKv,     // [blocks, 2, page, H, D]
  kHeadMajor,  // [blocks, H, page, 2D]
};

// Memory and table of one layer's cache. Everything no key lives in is NaN, unused table entries
// are 0x7fffffff, and pages of all sequences are dealt out in a random order.
struct Cache {
  std::vector<bf16> memory;
  Tensor<int32_t> table;
  KvView view;
  // Element offset of head 0 of key j.
  int64_t at(size_t seq, int64_t j) const {
    return kv_offset(view, table.row(static_cast<int64_t>(seq)), j);
  }
};

inline Cache empty_cache(const AttentionSetup& s, const std::vector<int64_t>& lengths,
                         Layout layout, int page, uint64_t seed) {
  Cache c;
  const int64_t sequences = static_cast<int64_t>(lengths.size());
  const int64_t row = int64_t{s.kv_heads} * s.width;
  c.view.epoch = 7;
  if (layout == Layout::kLinear) {
    const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{3}) + 2;
    c.memory.assign(static_cast<size_t>(2 * tokens * row), bf16{0xffff});
    c.table = Tensor<int32_t>({sequences});
    int64_t base = 3;
    for (int64_t q = 0; q < sequences; ++q) {
      c.table(q) = static_cast<int32_t>(base);
      base += lengths[static_cast<size_t>(q)];
    }
    c.view.kind = KvView::kLinear;
    c.view.k = c.memory.data();
    c.view.v = c.memory.data() + tokens * row;
    c.view.token_stride = row;
    c.view.head_stride = s.width;
    c.view.table = c.table.view();
    return c;
  }
  int64_t pages = 3, most = 1;
  for (const int64_t n : lengths) {
    pages += ceil_div(n, page);
    most = std::max(most, ceil_div(n, page));
  }
  c.memory.assign(static_cast<size_t>(pages * 2 * page * row), bf16{0xffff});
  std::vector<int32_t> order(static_cast<size_t>(pages));
  std::iota(order.begin(), order.end(), 0);
  CounterRng rng(seed, 1);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[rng.below(static_cast<uint32_t>(i))]);
  }
  c.table = Tensor<int32_t>({sequences, most + 2}, 1);
  size_t next = 0;
  for (int64_t q = 0; q < sequences; ++q) {
    const int64_t used = ceil_div(lengths[static_cast<size_t>(q)], page);
    for (int64_t i = 0; i < most + 2; ++i) {
      c.table(q, i) = i < used ? order[next++] : 0x7fffffff;
    }
  }
  c.view.kind = KvView::kPaged;
  c.view.page_size = page;
  c.view.num_pages = pages;
  c.view.page_stride = 2 * page * row;
  c.view.k = c.memory.data();
  if (layout == Layout::kPageKv) {
    c.view.v = c.memory.data() + page * row;
    c.view.token_stride = row;
    c.view.head_stride = s.width;
  } else {
    c.view.v = c.memory.data() + s.width;
    c.view.token_stride = 2 * s.width;
    c.view.head_stride = int64_t{2} * page * s.width;
  }
  c.view.table = c.table.view();
  return c;
}

inline Cache filled_cache(const AttentionSetup& s, const Keys& keys,
                          Layout layout = Layout::kLinear, int page = 0, uint64_t seed = 0) {
  std::vector<int64_t> lengths;
  for (size_t q = 0; q < keys.k.size(); ++q) lengths.push_back(keys.length(q));
  Cache c = empty_cache(s, lengths, layout, page, seed);
  for (size_t q = 0; q < keys.k.size(); ++q) {
    for (int64_t j = 0; j < keys.length(q); ++j) {
      for (int g = 0; g < s.kv_heads; ++g) {
        const int64_t to = c.at(q, j) + g * c.view.head_stride;
        const bf16 *k = keys.k[q].row(j) + g * s.width, *v = keys.v[q].row(j) + g * s.width;
        std::copy(k, k + s.width, c.view.k + to);
        std::copy(v, v + s.width, c.view.v + to);
      }
    }
  }
  return c;
}

struct Query {
  int32_t seq, pos;
};

// Every position of every sequence, sequence by sequence.
inline std::vector<Query> all_rows(const Keys& keys) {
  std::vector<Query> rows;
  for (size_t q = 0; q < keys.k.size(); ++q) {
    for (int64_t j = 0; j < keys.length(q); ++j) {
      rows.push_back({static_cast<int32_t>(q), static_cast<int32_t>(j)});
    }
  }
  return rows;
}

struct Attended {
  Tensor<bf16> out;
  Tensor<float> acc, lse;
  RowBits row_bits(int64_t r) const {
    RowBits bits;
    append_bits(bits, out.row(r), out.row_size());
    append_bits(bits, acc.row(r), acc.row_size());
    append_bits(bits, lse.row(r), lse.row_size());
    return bits;
  }
};

// q is [rows, heads, D].
inline Attended attend(Rig& rig, const AttentionSetup& s, const Tensor<bf16>& q,
                       const std::vector<Query>& rows, const KvView& kv,
                       Deviation deviation = Deviation::kNone) {
  const int64_t n = static_cast<int64_t>(rows.size());
  Attended y{Tensor<bf16>({n, s.heads, s.width}, 5), Tensor<float>({n, s.heads, s.width}, 1),
             Tensor<float>({n, s.heads}, 2)};
  Tensor<int32_t> pos({n}), seq({n});
  for (int64_t r = 0; r < n; ++r) {
    pos(r) = rows[static_cast<size_t>(r)].pos;
    seq(r) = rows[static_cast<size_t>(r)].seq;
  }
  AttentionArgs a;
  a.q = q.view(), a.pos = pos.view(), a.seq = seq.view(), a.kv = kv;
  a.num_kv_heads = s.kv_heads, a.window = s.window, a.segment = s.segment;
  a.out = y.out.view(), a.acc = y.acc.view(), a.lse = y.lse.view(), a.deviation = deviation;
  EXPECT_TRUE(ran(ops::attention(rig.ctx, s.site(), a)));
  EXPECT_TRUE(y.out.gaps_untouched() && y.acc.gaps_untouched() && y.lse.gaps_untouched());
  return y;
}

// The reference for one row and head; extra_blocks of invisible keys are processed on both sides
// (as far as keys of a sequence reach to the left).
inline reference::AttentionRow reference_row(Profile profile, const AttentionSetup& s,
                                             const bf16* q, Query row, int head, const Keys& keys,
                                             int extra_blocks = 0) {
  const int g = head / (s.heads / s.kv_heads);
  const auto& k = keys.k[static_cast<size_t>(row.seq)];
  const auto& v = keys.v[static_cast<size_t>(row.seq)];
  const int64_t first = s.window > 0 ? std::max(0, row.pos - s.window + 1) : 0;
  reference::AttentionShape shape{s.width, s.window, s.segment};
  shape.first_block = std::max<int64_t>(0, first / 64 - extra_blocks);
  shape.last_block = row.pos / 64 + extra_blocks;
  return reference::attention(
      profile, q, row.pos, [&](int64_t j) { return k.row(j) + g * s.width; },
      [&](int64_t j) { return v.row(j) + g * s.width; }, shape);
}

inline void expect_reference(Profile profile, const AttentionSetup& s, const Tensor<bf16>& q,
                             const std::vector<Query>& rows, const Keys& keys, const Attended& y,
                             const std::string& what, int extra_blocks = 0) {
  for (size_t r = 0; r < rows.size(); ++r) {
    const int64_t t = static_cast<int64_t>(r);
    RowBits expected_out, expected_acc, expected_lse;
    for (int h = 0; h < s.heads; ++h) {
      const auto want =
          reference_row(profile, s, q.row(t) + h * s.width, rows[r], h, keys, extra_blocks);
      append_bits(expected_out, want.out.data(), s.width);
      append_bits(expected_acc, want.acc.data(), s.width);
      append_bits(expected_lse, &want.lse, 1);
    }
    RowBits expected = expected_out;
    expected.insert(expected.end(), expected_acc.begin(), expected_acc.end());
    expected.insert(expected.end(), expected_lse.begin(), expected_lse.end());
    if (!expect_same_bits(y.row_bits(t), expected,
                          what + ", position " + std::to_string(rows[r].pos))) {
      return;
    }
  }
}

}  // namespace sb::ops_testing
