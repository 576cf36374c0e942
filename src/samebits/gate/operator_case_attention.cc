#include "samebits/gate/operator_case_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "samebits/base/digest.h"
#include "samebits/gate/operator_case_build.h"
#include "samebits/model/rope_table.h"

namespace sb {
namespace {

constexpr int kPage = 16;

// Page tables of sequences of these lengths, pages dealt out in an order that jumps; one unused
// column of 0x7fffffff at the end of every row.
struct Pages {
  int64_t count = 0, columns = 1;
  std::vector<int32_t> table;
};

Pages deal_pages(const std::vector<int64_t>& lengths) {
  Pages p;
  for (const int64_t n : lengths) {
    p.columns = std::max(p.columns, (n + kPage - 1) / kPage + 1);
    p.count += (n + kPage - 1) / kPage;
  }
  std::vector<int32_t> order(static_cast<size_t>(p.count));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[mix64(i) % i]);
  size_t next = 0;
  for (const int64_t n : lengths) {
    for (int64_t c = 0; c < p.columns; ++c) {
      p.table.push_back(c * kPage < n ? order[next++] : 0x7fffffff);
    }
  }
  return p;
}

KvView paged_view(const CasePlace& p, int k, int v, int table, const Pages& pages, int64_t heads,
                  int64_t width) {
  KvView kv;
  kv.kind = KvView::kPaged;
  kv.k = reinterpret_cast<bf16*>(p.base[static_cast<size_t>(k)]);
  kv.v = reinterpret_cast<bf16*>(p.base[static_cast<size_t>(v)]);
  kv.page_stride = kPage * heads * width;
  kv.token_stride = heads * width;
  kv.head_stride = width;
  kv.page_size = kPage;
  kv.num_pages = pages.count;
  kv.table = p.view(table);
  return kv;
}

// Lengths at which blocks, windows and segments begin and end.
std::vector<int64_t> context_lengths(const Architecture& arch) {
  std::vector<int64_t> n = {1, 63, 64, 65};
  for (const int64_t edge : {int64_t{arch.window}, int64_t{arch.segment}}) {
    for (const int64_t d : {-1, 0, 1}) n.push_back(edge + d);
  }
  n.push_back(1025);
  n.push_back(4097);
  for (int64_t& x : n) x = std::clamp<int64_t>(x, 1, arch.max_position);
  return n;
}

}  // namespace

OperatorCase rope_case(const Architecture& arch, LayerType type, const CaseOptions& o,
                       ThreadPool& pool) {
  const AttentionSpec s = arch.attention(type);
  const int64_t heads = arch.num_heads, width = s.head_dim;
  CaseBuilder b("rope", std::string(layer_type_name(type)) + " D=" + std::to_string(width), o.rows,
                o.seed, pool);
  // Two blocks of the true table: positions 0 … 2047, or as many as the model has.
  const RopeTable rope(arch);
  const int64_t blocks = std::min<int64_t>(2, rope.num_blocks());
  std::vector<int32_t> pos, seq;
  for (int64_t r = 0; r < o.rows; ++r) {
    pos.push_back(
        static_cast<int32_t>(r * 37 % std::min<int64_t>(blocks * kRopeBlock, arch.max_position)));
    seq.push_back(r % 13 == 6 ? -1 : 0);
  }
  const int64_t pairs = s.rotary_pairs;
  const int table = b.floats("table", {blocks, 2, kRopeBlock, pairs}, 0.0f);
  const int x = b.random("x", {o.rows, heads, width}, 1.0f);
  const int at = b.ints("pos", pos, {o.rows}), live = b.ints("seq", seq, {o.rows});
  const int out = b.output("out", Dtype::kBf16, {o.rows, heads, width});
  OperatorCase c = b.done([=](Ctx& ctx, const CasePlace& p, int64_t rows) {
    return ops::rope(
        ctx, {{Tap::kAttnQRope, 0}, type},
        {p.view(x, rows), p.view(table), p.view(at, rows), p.view(live, rows), p.view(out, rows)});
  });
  float* to = reinterpret_cast<float*>(c.buffers[static_cast<size_t>(table)].bytes.data());
  for (int64_t i = 0; i < blocks; ++i) {
    const RopeBlock& block = rope.block(type, i);
    std::copy(block.values.begin(), block.values.end(), to + i * 2 * kRopeBlock * pairs);
  }
  return c;
}

OperatorCase kv_write_case(const Architecture& arch, LayerType type, const CaseOptions& o,
                           ThreadPool& pool) {
  const AttentionSpec s = arch.attention(type);
  const int64_t heads = s.num_kv_heads, width = s.head_dim;
  CaseBuilder b("kv_write", std::string(layer_type_name(type)) + " D=" + std::to_string(width),
                o.rows, o.seed, pool);
  const Pages pages = deal_pages({o.rows});
  std::vector<int32_t> slot;
  for (int64_t r = 0; r < o.rows; ++r) {
    const int32_t page = pages.table[static_cast<size_t>(r / kPage)];
    slot.push_back(r % 9 == 4 ? -1 : page * kPage + static_cast<int32_t>(r % kPage));
  }
  const int k = b.random("k", {o.rows, heads, width}, 1.0f);
  const int v = b.random("v", {o.rows, heads, width}, 1.0f);
  const int at = b.ints("slot", slot, {o.rows});
  const int table = b.ints("table", pages.table, {1, pages.columns});
  const int kc =
      b.output("cache k", Dtype::kBf16, {pages.count, kPage, heads, width}, CaseRole::kWhole);
  const int vc =
      b.output("cache v", Dtype::kBf16, {pages.count, kPage, heads, width}, CaseRole::kWhole);
  return b.done(
      [=](Ctx& ctx, const CasePlace& p, int64_t rows) {
        return ops::kv_write(ctx, {{Tap::kAttnKRope, 0}, type},
                             {p.view(k, rows), p.view(v, rows), p.view(at, rows),
                              paged_view(p, kc, vc, table, pages, heads, width)});
      },
      false);
}

OperatorCase attention_case(const Architecture& arch, LayerType type, AttentionLayout layout,
                            const CaseOptions& o, ThreadPool& pool) {
  const AttentionSpec s = arch.attention(type);
  const int64_t heads = arch.num_heads, groups = s.num_kv_heads, width = s.head_dim;
  const bool sliding = type == LayerType::kSliding;
  std::vector<int64_t> lengths;
  std::vector<int32_t> pos, seq;
  std::string what = layer_type_name(type);
  if (layout == AttentionLayout::kContexts) {
    lengths = context_lengths(arch);
    for (size_t i = 0; i < lengths.size(); ++i) {
      pos.push_back(static_cast<int32_t>(lengths[i] - 1));
      seq.push_back(static_cast<int32_t>(i));
    }
    what += " contexts";
  } else if (layout == AttentionLayout::kPacked) {
    lengths = {o.rows / 3 + 1, o.rows - o.rows / 3};
    for (size_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < lengths[i]; ++j) {
        pos.push_back(static_cast<int32_t>(j));
        seq.push_back(j % 17 == 16 ? -1 : static_cast<int32_t>(i));  // padding inside
      }
    }
    what += " packed";
  } else {
    lengths = {std::min<int64_t>(arch.max_position, std::max<int64_t>(4097, o.rows))};
    const int64_t queries = std::min(lengths[0], o.rows);
    for (int64_t j = 0; j < queries; ++j) {
      pos.push_back(static_cast<int32_t>(lengths[0] - queries + j));
      seq.push_back(0);
    }
    what += " chunk";
  }
  const int64_t rows = static_cast<int64_t>(pos.size());
  const bool linear = layout == AttentionLayout::kPacked;
  CaseBuilder b("attention", what + " D=" + std::to_string(width), rows, o.seed, pool);
  const float sigma = std::sqrt(2.0f) / std::sqrt(std::sqrt(static_cast<float>(width)));
  const int q = b.random("q", {rows, heads, width}, sigma);
  Pages pages = deal_pages(lengths);
  const int64_t tokens = linear ? rows : pages.count * kPage;
  const int k = b.random("k", {tokens, groups, width}, sigma);
  const int v = b.random("v", {tokens, groups, width}, 1.0f);
  const int at = b.ints("pos", pos, {rows}), live = b.ints("seq", seq, {rows});
  std::vector<int32_t> base = {0, static_cast<int32_t>(lengths[0])};
  const int table =
      linear ? b.ints("base", base, {2})
             : b.ints("table", pages.table, {static_cast<int64_t>(lengths.size()), pages.columns});
  const int out = b.output("out", Dtype::kBf16, {rows, heads, width});
  const int acc = b.output("acc", Dtype::kF32, {rows, heads, width});
  const int lse = b.output("lse", Dtype::kF32, {rows, heads});
  OperatorCase c = b.done([=](Ctx& ctx, const CasePlace& p, int64_t n) {
    AttentionArgs a;
    a.q = p.view(q, n);
    a.pos = p.view(at, n);
    a.seq = p.view(live, n);
    if (linear) {
      a.kv.k = reinterpret_cast<bf16*>(p.base[static_cast<size_t>(k)]);
      a.kv.v = reinterpret_cast<bf16*>(p.base[static_cast<size_t>(v)]);
      a.kv.token_stride = groups * width;
      a.kv.head_stride = width;
      a.kv.table = p.view(table);
    } else {
      a.kv = paged_view(p, k, v, table, pages, groups, width);
    }
    a.num_kv_heads = static_cast<int>(groups);
    a.window = sliding ? arch.window : 0;
    a.segment = sliding ? 0 : arch.segment;
    a.out = p.view(out, n);
    a.acc = p.view(acc, n);
    a.lse = p.view(lse, n);
    return ops::attention(ctx, {{Tap::kAttnCtx, 0}, type}, a);
  });
  if (!linear) {  // what lies behind the last key of a sequence is NaN
    for (size_t i = 0; i < lengths.size(); ++i) {
      const int64_t n = lengths[i];
      const int32_t page =
          pages
              .table[i * static_cast<size_t>(pages.columns) + static_cast<size_t>((n - 1) / kPage)];
      for (int64_t j = (n - 1) % kPage + 1; j < kPage; ++j) {
        for (const int buffer : {k, v}) {
          uint8_t* to = c.buffers[static_cast<size_t>(buffer)].bytes.data() +
                        (page * kPage + j) * groups * width * 2;
          std::fill(to, to + groups * width * 2, 0xff);
        }
      }
    }
  }
  return c;
}

}  // namespace sb
