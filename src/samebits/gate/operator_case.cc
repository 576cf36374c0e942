// The list of cases: each operator as the decoder calls it (chain/layer.cc, chain/decoder.cc), with
// every optional output asked for.
#include "samebits/gate/operator_case.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "samebits/contract/head_shape.h"
#include "samebits/gate/operator_case_attention.h"
#include "samebits/gate/operator_case_build.h"

namespace sb {
namespace {

using Run = std::function<Status(Ctx&, const CasePlace&, int64_t)>;

std::string text(const char* name, int64_t n) {
  return std::string(name) + "=" + std::to_string(n);
}

// One to three weights over one input, as the decoder fuses q/k/v and gate/up.
OperatorCase gemm_case(const std::string& what, int64_t k, std::vector<int64_t> ns,
                       const CaseOptions& o, ThreadPool& pool) {
  int64_t columns = 0;
  for (const int64_t n : ns) columns += n;
  CaseBuilder b("gemm", what + " " + text("K", k) + " " + text("N", columns), o.rows, o.seed, pool);
  const int x = b.random("x", {o.rows, k}, 1.0f);
  std::vector<int> w, out, acc;
  for (const int64_t n : ns) {
    w.push_back(b.random("w", {n, k}, 1.0f / std::sqrt(static_cast<float>(k))));
    out.push_back(b.output("out", Dtype::kBf16, {o.rows, n}));
    acc.push_back(b.output("acc", Dtype::kF32, {o.rows, n}));
  }
  return b.done([=](Ctx& ctx, const CasePlace& p, int64_t rows) {
    GemmArgs a;
    a.x = p.view(x, rows);
    a.count = static_cast<int>(ns.size());
    for (int i = 0; i < a.count; ++i) {
      a.w[i] = {p.weights(w[i]), ns[i], k, k};
      a.out[i] = p.view(out[i], rows);
      a.acc[i] = p.view(acc[i], rows);
    }
    return ops::gemm(ctx, {{Tap::kAttnQ, 0}}, a);
  });
}

// Partial and finish of one rank, as o and down.
OperatorCase tree_case(const std::string& what, int64_t k, int64_t n, const CaseOptions& o,
                       ThreadPool& pool) {
  CaseBuilder b("gemm_tree", what + " " + text("K", k) + " " + text("N", n), o.rows, o.seed, pool);
  const int x = b.random("x", {o.rows, k}, 1.0f);
  const int w = b.random("w", {n, k}, 1.0f / std::sqrt(static_cast<float>(k)));
  const int partial = b.output("partial", Dtype::kF32, {1, o.rows, n}, CaseRole::kWhole);
  const int out = b.output("out", Dtype::kBf16, {o.rows, n});
  const int acc = b.output("acc", Dtype::kF32, {o.rows, n});
  return b.done([=](Ctx& ctx, const CasePlace& p, int64_t rows) -> Status {
    View all = p.view(partial);
    all.shape[1] = rows;
    View one = make_view(all.ptr, Dtype::kF32, {rows, n}, all.device);
    SB_DO(ops::gemm_partial(ctx, {{Tap::kMlpDown, 0}},
                            {p.view(x, rows), {p.weights(w), n, k, k}, ops::gemm_leaves(k), one}));
    return ops::gemm_finish(ctx, {{Tap::kMlpDown, 0}}, {all, p.view(out, rows), p.view(acc, rows)});
  });
}

OperatorCase norm_case(const std::string& what, int64_t heads, int64_t width, bool weighted,
                       const CaseOptions& o, ThreadPool& pool) {
  CaseBuilder b("rmsnorm", what + " " + text("heads", heads) + " " + text("D", width), o.rows,
                o.seed, pool);
  const int x = b.random("x", {o.rows, heads, width}, 2.0f);
  const int w = b.random("w", {width}, 0.25f, 1.0f);
  const int out = b.output("out", Dtype::kBf16, {o.rows, heads, width});
  return b.done([=](Ctx& ctx, const CasePlace& p, int64_t rows) {
    return ops::rmsnorm(ctx, {{Tap::kAttnNorm, 0}},
                        {p.view(x, rows), weighted ? p.view(w) : View{}, p.view(out, rows), 1e-6f});
  });
}

OperatorCase embed_case(const Architecture& arch, const CaseOptions& o, ThreadPool& pool) {
  const int64_t vocab = std::min(arch.vocab, o.vocab_rows);
  CaseBuilder b("embed", text("hidden", arch.hidden), o.rows, o.seed, pool);
  std::vector<int32_t> token, seq;
  for (int64_t r = 0; r < o.rows; ++r) {
    token.push_back(static_cast<int32_t>(mix64(static_cast<uint64_t>(r) + o.seed) %
                                         static_cast<uint64_t>(vocab)));
    seq.push_back(r % 11 == 7 ? -1 : 0);  // padding rows stay untouched
  }
  const int table = b.random("table", {vocab, arch.hidden}, 0.05f);
  const int t = b.ints("token", token, {o.rows}), s = b.ints("seq", seq, {o.rows});
  const int out = b.output("out", Dtype::kBf16, {o.rows, arch.hidden});
  return b.done([=](Ctx& ctx, const CasePlace& p, int64_t rows) {
    return ops::embed(ctx, {{Tap::kEmbed, -1}},
                      {p.view(table), p.view(t, rows), p.view(s, rows), p.view(out, rows)});
  });
}

// residual, layer_scale and gelu_mul over rows of one width.
OperatorCase pointwise_case(const std::string& op, int64_t width, const CaseOptions& o,
                            ThreadPool& pool) {
  CaseBuilder b(op, text("width", width), o.rows, o.seed, pool);
  const int x = b.random("x", {o.rows, width}, 2.0f), y = b.random("y", {o.rows, width}, 2.0f);
  const int s = b.random("scalar", {1}, 0.0f, 0.37f);
  const int out = b.output("out", Dtype::kBf16, {o.rows, width});
  const int gelu = b.output("gelu", Dtype::kBf16, {op == "gelu_mul" ? o.rows : 0, width});
  return b.done([=](Ctx& ctx, const CasePlace& p, int64_t rows) {
    const View a = p.view(x, rows), c = p.view(y, rows), to = p.view(out, rows);
    if (op == "residual") return ops::residual(ctx, {{Tap::kAttnResid, 0}}, {a, c, to});
    if (op == "layer_scale") {
      return ops::layer_scale(ctx, {{Tap::kLayerOut, 0}}, {a, p.view(s), to});
    }
    return ops::gelu_mul(ctx, {{Tap::kMlpAct, 0}}, {a, c, p.view(gelu, rows), to});
  });
}

// The whole head with a temperature and suppressed ids, then its finish.
OperatorCase head_case(const Architecture& arch, const CaseOptions& o, ThreadPool& pool) {
  const int64_t rows = o.head_rows, v = arch.vocab, h = arch.hidden;
  CaseBuilder b("head", text("V", v) + " " + text("K", h), rows, o.seed, pool);
  std::vector<int32_t> target, owner;
  std::vector<uint8_t> suppress(static_cast<size_t>(v), 0);
  for (int64_t i = 0; i < v; i += 97) suppress[static_cast<size_t>(i)] = 1;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t y = r == 0 ? v - 1 : (r * 7919 + 1) % v;
    target.push_back(r % 7 == 5 ? -1 : static_cast<int32_t>(y));
    owner.push_back(r % 7 == 5 ? -1 : 0);
  }
  const int z = b.random("z", {rows, h}, 1.0f);
  const int w = b.random("w", {v, h}, 8.0f / std::sqrt(static_cast<float>(h)));
  const int y = b.ints("target", target, {rows}), own = b.ints("owner", owner, {rows});
  const int mask = b.bytes("suppress", suppress);
  const int64_t tiles = head_tiles(v, kHeadRule.shards);
  const int tile_ms = b.output("tile_ms", Dtype::kF32, {rows, tiles, 2});
  const int ms =
      b.output("shard_ms", Dtype::kF32, {1, rows, kHeadRule.shards, 2}, CaseRole::kWhole);
  const int c = b.output("c_target", Dtype::kF32, {1, rows}, CaseRole::kWhole);
  const int logit = b.output("logit", Dtype::kF32, {rows, v});
  const int capped = b.output("capped", Dtype::kF32, {rows, v});
  const int logp = b.output("logp", Dtype::kF32, {rows}),
            lse = b.output("lse", Dtype::kF32, {rows});
  const int max_sum = b.output("max_sum", Dtype::kF32, {rows, 2});
  return b.done([=](Ctx& ctx, const CasePlace& p, int64_t n) -> Status {
    HeadArgs a;
    a.z = p.view(z, n);
    a.w = {p.weights(w), v, h, h};
    a.vocab = v;
    a.target = p.view(y, n);
    a.suppress = p.view(mask);
    a.temperature = 0.7f;
    a.tile_ms = p.view(tile_ms, n);
    View all_ms = p.view(ms), all_c = p.view(c);
    a.shard_ms = make_view(all_ms.ptr, Dtype::kF32, {n, kHeadRule.shards, 2}, all_ms.device);
    a.c_target = make_view(all_c.ptr, Dtype::kF32, {n}, all_c.device);
    a.logit = p.view(logit, n);
    a.capped = p.view(capped, n);
    SB_DO(ops::head(ctx, {{Tap::kHeadSoftcap, -1}}, a));
    all_ms.shape[1] = all_c.shape[1] = n;
    return ops::head_finish(
        ctx, {{Tap::kLogp, -1}},
        {all_ms, all_c, p.view(own, n), p.view(logp, n), p.view(lse, n), p.view(max_sum, n)});
  });
}

OperatorCase sample_case(const Architecture& arch, bool greedy, const CaseOptions& o,
                         ThreadPool& pool) {
  const int64_t rows = o.head_rows;
  CaseBuilder b("sample", std::string(greedy ? "greedy " : "gumbel ") + text("V", arch.vocab), rows,
                o.seed, pool);
  const int capped = b.floats("capped", {rows, arch.vocab}, 5.0f);
  const int hash = b.words("row_hash", rows);
  std::vector<int32_t> at;
  for (int64_t r = 0; r < rows; ++r) at.push_back(static_cast<int32_t>(3 * r + 1));
  const int position = b.ints("position", at, {rows});
  const int best = b.output("best", Dtype::kF32, {rows});
  const int token = b.output("token", Dtype::kI32, {rows});
  const int c = b.output("c_token", Dtype::kF32, {rows});
  return b.done([=](Ctx& ctx, const CasePlace& p, int64_t n) {
    SampleArgs a;
    a.capped = p.view(capped, n);
    a.row_hash = p.view(hash, n);
    a.position = p.view(position, n);
    a.temperature = 0.7f;
    a.seed = 11;
    a.greedy = greedy;
    a.best = p.view(best, n);
    a.token = p.view(token, n);
    a.c_token = p.view(c, n);
    return ops::sample(ctx, {{Tap::kLogp, -1}}, a);
  });
}

// Row digests of bf16 and fp32, and gathered rows.
OperatorCase moves_case(const Architecture& arch, const CaseOptions& o, ThreadPool& pool) {
  const int64_t rows = o.rows, h = arch.hidden;
  CaseBuilder b("moves", text("hidden", h), rows, o.seed, pool);
  const int x = b.random("x", {rows, h}, 1.0f), f = b.floats("f", {rows, h}, 1.0f);
  std::vector<int32_t> index;
  for (int64_t r = 0; r < rows; ++r) index.push_back(static_cast<int32_t>(r * 31 % rows));
  const int at = b.ints("index", index, {rows});
  const int d0 = b.output("digest bf16", Dtype::kU64, {rows});
  const int d1 = b.output("digest f32", Dtype::kU64, {rows});
  const int n0 = b.output("non_finite bf16", Dtype::kU8, {rows});
  const int n1 = b.output("non_finite f32", Dtype::kU8, {rows});
  const int out = b.output("gathered", Dtype::kBf16, {rows, h});
  return b.done([=](Ctx& ctx, const CasePlace& p, int64_t n) -> Status {
    const Site site{{Tap::kFinalNorm, -1}};
    SB_DO(ops::digest(ctx, site, {p.view(x, n), 5, p.view(d0, n), p.view(n0, n)}));
    SB_DO(ops::digest(ctx, site, {p.view(f, n), 0, p.view(d1, n), p.view(n1, n)}));
    return ops::gather(ctx, site, {p.view(x), p.view(at, n), p.view(out, n)});
  });
}

}  // namespace

OperatorCases::OperatorCases(const Architecture& arch, const CaseOptions& o, ThreadPool& pool) {
  const auto add = [&](const std::string& op, std::function<OperatorCase()> make) {
    if ((", " + names_ + ",").find(", " + op + ",") == std::string::npos) {
      names_ += (names_.empty() ? "" : ", ") + op;
    }
    if (o.only.empty() || o.only == op) makers_.push_back(std::move(make));
  };
  add("embed", [=, &pool] { return embed_case(arch, o, pool); });
  add("rmsnorm", [=, &pool] { return norm_case("hidden", 1, arch.hidden, true, o, pool); });
  for (const LayerType type : {LayerType::kSliding, LayerType::kGlobal}) {
    const AttentionSpec s = arch.attention(type);
    const std::string name = layer_type_name(type);
    const int64_t q = int64_t{arch.num_heads} * s.head_dim,
                  kv = int64_t{s.num_kv_heads} * s.head_dim;
    std::vector<int64_t> qkv = {q, kv};
    if (type == LayerType::kSliding) qkv.push_back(kv);
    add("gemm", [=, &pool] { return gemm_case(name + " q/k/v", arch.hidden, qkv, o, pool); });
    add("rmsnorm", [=, &pool] {
      return norm_case(name + " q_norm", arch.num_heads, s.head_dim, true, o, pool);
    });
    add("rmsnorm", [=, &pool] {
      return norm_case(name + " v_norm", s.num_kv_heads, s.head_dim, false, o, pool);
    });
    add("rope", [=, &pool] { return rope_case(arch, type, o, pool); });
    add("kv_write", [=, &pool] { return kv_write_case(arch, type, o, pool); });
    for (const AttentionLayout layout :
         {AttentionLayout::kContexts, AttentionLayout::kPacked, AttentionLayout::kChunk}) {
      add("attention", [=, &pool] { return attention_case(arch, type, layout, o, pool); });
    }
    add("gemm_tree", [=, &pool] { return tree_case(name + " o", q, arch.hidden, o, pool); });
  }
  add("residual", [=, &pool] { return pointwise_case("residual", arch.hidden, o, pool); });
  add("gemm", [=, &pool] {
    return gemm_case("gate/up", arch.hidden, {arch.intermediate, arch.intermediate}, o, pool);
  });
  add("gelu_mul", [=, &pool] { return pointwise_case("gelu_mul", arch.intermediate, o, pool); });
  add("gemm_tree",
      [=, &pool] { return tree_case("down", arch.intermediate, arch.hidden, o, pool); });
  add("layer_scale", [=, &pool] { return pointwise_case("layer_scale", arch.hidden, o, pool); });
  add("head", [=, &pool] { return head_case(arch, o, pool); });
  add("sample", [=, &pool] { return sample_case(arch, false, o, pool); });
  add("sample", [=, &pool] { return sample_case(arch, true, o, pool); });
  add("moves", [=, &pool] { return moves_case(arch, o, pool); });
}

}  // namespace sb
