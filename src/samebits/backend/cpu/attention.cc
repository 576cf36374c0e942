// Oracle of attention: for each (row, KV head) its group of query heads walks 64-key blocks at
// absolute multiples of 64 in ascending order, whatever the schedule and page size. Invisible keys
// and unused slots may hold anything: their values are never read, they are selected away.
//
// Per head: m = −∞, l = +0, O = +0. Block: s = q·k chain from +0; m' = max(m, visible s);
// α = (m' = m) ? 1 : E2((m − m')L); p = visible ? E2((s − m')L) : +0; l = fma(l, α, T64(p));
// O = O·α, then four matrix steps of R(p)·v. Global layers fold the states of segments from the
// left. out = R((O + 0)·(1/l)); a row that sees no key gives +0.
#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "samebits/arith/chain.h"
#include "samebits/arith/exp2.h"
#include "samebits/arith/fp.h"
#include "samebits/arith/log.h"
#include "samebits/arith/tree.h"
#include "samebits/backend/implementation.h"
#include "samebits/base/bits.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// Running softmax of the group's heads: m and l per head, O as [group, D].
struct State {
  std::vector<float> m, l, o;
  bool empty = true;
  void start(int group, int width) {
    m.assign(group, kMinusInf);
    l.assign(group, 0.0f);
    o.assign(static_cast<size_t>(group) * width, 0.0f);
    empty = true;
  }
};

// Scratch of one thread.
struct Scratch {
  State running, segment;
  std::vector<const bf16*> q, k, v, p_rows;
  std::vector<float> s;
  std::vector<bf16> p, zeros;
};

template <AttentionRule C>
void add_block(const arith::ChainKernels& kernels, Scratch& w, State& state, int group, int width,
               const bool* visible) {
  constexpr int kBlock = C.block_keys;
  const float log2e = bits_float(C.log2e_bits);
  w.s.assign(static_cast<size_t>(group) * kBlock, 0.0f);
  kernels.b_rows(w.q.data(), group, w.k.data(), kBlock, width, w.s.data(), kBlock);
  for (int h = 0; h < group; ++h) {
    float* s = w.s.data() + h * kBlock;
    float m = state.m[h];
    for (int j = 0; j < kBlock; ++j) m = visible[j] ? arith::select_max(m, s[j]) : m;
    const float alpha = m == state.m[h] ? 1.0f : arith::exp2_nonpos((state.m[h] - m) * log2e);
    float p[kBlock];
    for (int j = 0; j < kBlock; ++j) {
      const float e = arith::exp2_nonpos((s[j] - m) * log2e);
      p[j] = visible[j] ? e : 0.0f;
    }
    for (int j = 0; j < kBlock; ++j) w.p[h * kBlock + j] = round_bf16(p[j]);
    state.l[h] = arith::fma(state.l[h], alpha, arith::tree64(p));
    state.m[h] = m;
    float* o = state.o.data() + static_cast<size_t>(h) * width;
    for (int d = 0; d < width; ++d) o[d] = o[d] * alpha;
  }
  kernels.b_cols(w.p_rows.data(), group, w.v.data(), width, kBlock, state.o.data(), width);
  state.empty = false;
}

// running ← running merged with segment; the first segment is taken as it is.
void merge(State& running, State& segment, int group, int width, float log2e) {
  if (segment.empty) return;
  if (running.empty) {
    std::swap(running, segment);
    return;
  }
  for (int h = 0; h < group; ++h) {
    const float m = arith::select_max(running.m[h], segment.m[h]);
    const float a = running.m[h] == m ? 1.0f : arith::exp2_nonpos((running.m[h] - m) * log2e);
    const float b = segment.m[h] == m ? 1.0f : arith::exp2_nonpos((segment.m[h] - m) * log2e);
    running.l[h] = running.l[h] * a + segment.l[h] * b;
    float* ra = running.o.data() + static_cast<size_t>(h) * width;
    const float* rb = segment.o.data() + static_cast<size_t>(h) * width;
    for (int d = 0; d < width; ++d) ra[d] = ra[d] * a + rb[d] * b;
    running.m[h] = m;
  }
}

// First key that row `pos` sees; the last is `pos` itself.
int64_t first_visible(const AttentionArgs& a, int64_t pos) {
  if (a.window == 0) return 0;
  int64_t window = a.window;
  if (a.deviation == Deviation::kWindowMinusOne) window -= 1;
  if (a.deviation == Deviation::kWindowPlusOne) window += 1;
  return std::max<int64_t>(0, pos - window + 1);
}

// False, with nothing written, where a visible key's page does not exist.
template <AttentionRule C>
bool attend(const arith::ChainKernels& kernels, const AttentionArgs& a, int64_t t, int64_t g,
            int live_rows, Scratch& w) {
  constexpr int kBlock = C.block_keys;
  const int heads = static_cast<int>(a.q.shape[1]), width = static_cast<int>(a.q.shape[2]);
  const int group = heads / a.num_kv_heads;
  const int64_t pos = a.pos.as<int32_t>()[t];
  const int64_t seq = a.seq.as<int32_t>()[t];
  const int32_t* table = a.kv.table.as<int32_t>() + seq * a.kv.table.stride[0];
  const int64_t first = first_visible(a, pos), last = pos;
  const bool leak =
      a.deviation == Deviation::kKeyLeak && a.kv.kind == KvView::kLinear && table[0] > 0;
  const float log2e = bits_float(C.log2e_bits);

  w.q.resize(group);
  w.p.resize(static_cast<size_t>(group) * kBlock);
  w.p_rows.resize(group);
  w.k.resize(kBlock);
  w.v.resize(kBlock);
  if (static_cast<int>(w.zeros.size()) < width) w.zeros.assign(width, bf16{});
  for (int h = 0; h < group; ++h) {
    w.q[h] = a.q.as<bf16>() + t * a.q.stride[0] + (g * group + h) * a.q.stride[1];
    w.p_rows[h] = w.p.data() + h * kBlock;
  }
  w.running.start(group, width);
  w.segment.start(group, width);

  const int64_t first_block = first / kBlock;
  int64_t last_block = last / kBlock;
  if (a.deviation == Deviation::kDropLastBlock && live_rows == 1 && last_block > first_block) {
    --last_block;
  }
  const int64_t per_segment = C.segmented ? a.segment / kBlock : 0;
  for (int64_t block = first_block; block <= last_block; ++block) {
    bool visible[kBlock];
    for (int j = 0; j < kBlock; ++j) {
      const int64_t key = block * kBlock + j;
      const int64_t read = leak && key == 0 ? -1 : key;
      visible[j] = key >= first && key <= last;
      if (visible[j] && !kv_page_exists(a.kv, table, key)) return false;
      const int64_t offset = visible[j] ? kv_offset(a.kv, table, read) + g * a.kv.head_stride : 0;
      w.k[j] = visible[j] ? a.kv.k + offset : w.zeros.data();
      w.v[j] = visible[j] ? a.kv.v + offset : w.zeros.data();
    }
    if constexpr (C.segmented) {
      if (block % per_segment == 0 && block != first_block) {
        merge(w.running, w.segment, group, width, log2e);
        w.segment.start(group, width);
      }
      add_block<C>(kernels, w, w.segment, group, width, visible);
    } else {
      add_block<C>(kernels, w, w.running, group, width, visible);
    }
  }
  if constexpr (C.segmented) merge(w.running, w.segment, group, width, log2e);

  for (int h = 0; h < group; ++h) {
    const int64_t head = g * group + h;
    const float l = w.running.l[h];
    const bool any = l != 0.0f;  // a visible maximum alone makes l at least 1
    const float inv = 1.0f / l;
    const float* o = w.running.o.data() + static_cast<size_t>(h) * width;
    bf16* out = a.out.as<bf16>() + t * a.out.stride[0] + head * a.out.stride[1];
    float* acc = a.acc ? a.acc.as<float>() + t * a.acc.stride[0] + head * a.acc.stride[1] : nullptr;
    for (int d = 0; d < width; ++d) {
      const float y = any ? (o[d] + 0.0f) * inv : 0.0f;
      out[d] = round_bf16(y);
      if (acc) acc[d] = y;
    }
    if (a.lse) {
      a.lse.as<float>()[t * a.lse.stride[0] + head] =
          any ? w.running.m[h] + arith::log(l) : kMinusInf;
    }
  }
  return true;
}

template <AttentionRule C>
Status attention(const Exec& exec, const AttentionArgs& a) {
  static_assert(C.block_keys == 64 && C.step_k == 16 && C.row_sum == Tree::kFold64);
  const auto& kernels = *arith::chain_kernels(exec.profile, exec.isa);
  const int64_t rows = a.q.shape[0];
  const int32_t* seq = a.seq.as<int32_t>();
  const int live_rows =
      static_cast<int>(std::count_if(seq, seq + rows, [](int32_t s) { return s >= 0; }));
  const double cost = 100.0 * static_cast<double>(a.q.shape[1] * a.q.shape[2]) / a.num_kv_heads;
  std::atomic<bool> pages_exist{true};
  SB_DO(for_rows(exec, rows * a.num_kv_heads, cost, [&](int64_t i) {
    const int64_t t = i / a.num_kv_heads, g = i % a.num_kv_heads;
    if (seq[t] < 0) return;
    thread_local Scratch scratch;
    if (!attend<C>(kernels, a, t, g, live_rows, scratch)) pages_exist = false;
  }));
  if (pages_exist) return {};
  return refuse(
      Code::kRefused, "attend to cached keys",
      "the block table leads to a page that does not exist",
      "a table whose entries of visible keys lie in 0 … " + std::to_string(a.kv.num_pages - 1));
}

constexpr Implementation<AttentionArgs> kTable[] = {
    {"cpu.attention_sliding.row.v1", ContractId::kAttentionSliding, kAllProfiles, DeviceId::kCpu,
     "cpu", "row x kv_head", "none", attention<kSlidingAttentionRule>},
    {"cpu.attention_global.row.v1", ContractId::kAttentionGlobal, kAllProfiles, DeviceId::kCpu,
     "cpu", "row x kv_head", "segments", attention<kGlobalAttentionRule>},
};

}  // namespace

template <>
std::span<const Implementation<AttentionArgs>> cpu_implementations<AttentionArgs>() {
  return kTable;
}

}  // namespace sb
