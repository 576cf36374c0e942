// The contracts once more, written straight from their text and apart from the oracle: scalar
// steps, literal trees over index bits, one row at a time, no skipping and no tiling. Tests hold
// the oracle to these bit for bit.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "samebits/arith/exp.h"
#include "samebits/arith/exp2.h"
#include "samebits/arith/log.h"
#include "samebits/arith/step.h"
#include "samebits/arith/tanh.h"
#include "samebits/base/bf16.h"

namespace sb::reference {

inline constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// Matrix steps over n products from c, k ascending; the last step is padded with zero products.
// a(k) and b(k) give the operands.
template <class A, class B>
float chain(Profile profile, int64_t n, A a, B b, float c) {
  for (int64_t k0 = 0; k0 < n; k0 += 16) {
    bf16 x[16] = {}, y[16] = {};
    for (int64_t k = k0; k < n && k < k0 + 16; ++k) {
      x[k - k0] = a(k);
      y[k - k0] = b(k);
    }
    c = arith::step(profile, x, y, c);
  }
  return c;
}

inline float dot(Profile profile, const bf16* a, const bf16* b, int64_t n) {
  return chain(profile, n, [&](int64_t k) { return a[k]; }, [&](int64_t k) { return b[k]; }, 0.0f);
}

// Folds the index bits of v in this order; folding bit b adds v[i + 2^b] to v[i].
inline float fold(std::vector<float> v, std::initializer_list<int> order) {
  size_t folded = 0;
  for (const int b : order) {
    const size_t bit = size_t{1} << b;
    folded |= bit;
    for (size_t i = 0; i < v.size(); ++i) {
      if ((i & folded) == 0) v[i] = v[i] + v[i + bit];
    }
  }
  return v[0];
}
inline float tree64(const std::vector<float>& v) { return fold(v, {0, 3, 4, 5, 1, 2}); }
inline float tree256(const std::vector<float>& v) { return fold(v, {0, 3, 4, 5, 6, 7, 1, 2}); }

// Adjacent pairs, level by level.
inline float adjacent(std::vector<float> v) {
  while (v.size() > 1) {
    std::vector<float> next;
    for (size_t i = 0; i < v.size(); i += 2) next.push_back(v[i] + v[i + 1]);
    v = next;
  }
  return v[0];
}

// One row of RMSNorm; w may be null.
inline std::vector<bf16> rmsnorm(const bf16* x, const bf16* w, int64_t width, float eps) {
  std::vector<float> slots(256, 0.0f);
  for (int64_t e = 0; e < width; ++e) {
    float& slot = slots[static_cast<size_t>(e % 256)];
    slot = __builtin_fmaf(widen(x[e]), widen(x[e]), slot);
  }
  const float mean = adjacent(slots) / static_cast<float>(width);
  const float r = 1.0f / __builtin_sqrtf(mean + eps);
  std::vector<bf16> y;
  for (int64_t e = 0; e < width; ++e) {
    const float scaled = widen(x[e]) * r;
    y.push_back(round_bf16(w ? scaled * widen(w[e]) : scaled));
  }
  return y;
}

struct AttentionRow {
  std::vector<bf16> out;
  std::vector<float> acc;
  float lse = 0;
};

struct AttentionShape {
  int width = 0;
  int window = 0;           // 0: global
  int segment = 0;          // global: keys per segment
  int64_t first_block = 0;  // may lie before the first visible key …
  int64_t last_block = 0;   // … and behind the last: such blocks change no bit
};

// One (row, head) at position pos. key(j) and value(j) give rows of `width` elements; they are
// called for visible keys only.
template <class Key, class Value>
AttentionRow attention(Profile profile, const bf16* q, int64_t pos, Key key, Value value,
                       const AttentionShape& shape) {
  struct State {
    float m = kMinusInf, l = 0.0f;
    std::vector<float> o;
  };
  const size_t width = static_cast<size_t>(shape.width);
  const float log2e = 0x1.715476p+0f;
  const std::vector<bf16> zeros(width);
  std::optional<State> running;
  State now{kMinusInf, 0.0f, std::vector<float>(width, 0.0f)};

  const auto end_segment = [&] {
    if (!running) {
      running = now;
    } else {
      const float m = running->m < now.m ? now.m : running->m;
      const float a = running->m == m ? 1.0f : arith::exp2_nonpos((running->m - m) * log2e);
      const float b = now.m == m ? 1.0f : arith::exp2_nonpos((now.m - m) * log2e);
      running->l = running->l * a + now.l * b;
      for (size_t d = 0; d < width; ++d) running->o[d] = running->o[d] * a + now.o[d] * b;
      running->m = m;
    }
    now = State{kMinusInf, 0.0f, std::vector<float>(width, 0.0f)};
  };

  for (int64_t block = shape.first_block; block <= shape.last_block; ++block) {
    if (shape.segment > 0 && block > shape.first_block && block * 64 % shape.segment == 0) {
      end_segment();
    }
    const auto sees = [&](int64_t j) {
      return j <= pos && j >= 0 && (shape.window == 0 || pos - shape.window < j);
    };
    std::vector<float> s(64, 0.0f), p(64, 0.0f);
    float m = now.m;
    for (int64_t j = 0; j < 64; ++j) {
      const int64_t at = block * 64 + j;
      if (!sees(at)) continue;
      s[static_cast<size_t>(j)] = dot(profile, q, key(at), shape.width);
      if (m < s[static_cast<size_t>(j)]) m = s[static_cast<size_t>(j)];
    }
    const float alpha = m == now.m ? 1.0f : arith::exp2_nonpos((now.m - m) * log2e);
    for (int64_t j = 0; j < 64; ++j) {
      if (!sees(block * 64 + j)) continue;
      p[static_cast<size_t>(j)] = arith::exp2_nonpos((s[static_cast<size_t>(j)] - m) * log2e);
    }
    now.l = __builtin_fmaf(now.l, alpha, tree64(p));
    now.m = m;
    for (size_t d = 0; d < width; ++d) {
      now.o[d] = chain(
          profile, 64, [&](int64_t j) { return round_bf16(p[static_cast<size_t>(j)]); },
          [&](int64_t j) { return sees(block * 64 + j) ? value(block * 64 + j)[d] : zeros[d]; },
          now.o[d] * alpha);
    }
  }
  end_segment();

  AttentionRow row;
  row.lse = running->l == 0.0f ? kMinusInf : running->m + arith::log(running->l);
  const float inv = 1.0f / running->l;
  for (const float o : running->o) {
    row.acc.push_back(running->l == 0.0f ? 0.0f : (o + 0.0f) * inv);
    row.out.push_back(round_bf16(row.acc.back()));
  }
  return row;
}

struct MaxSum {
  float m, s;
};

inline std::optional<MaxSum> merge(std::optional<MaxSum> a, std::optional<MaxSum> b) {
  if (!a) return b;
  if (!b) return a;
  const float m = a->m < b->m ? b->m : a->m;
  return MaxSum{m, a->s * arith::exp(a->m - m) + b->s * arith::exp(b->m - m)};
}

inline std::vector<std::optional<MaxSum>> merge_pairs(
    const std::vector<std::optional<MaxSum>>& level) {
  std::vector<std::optional<MaxSum>> next;
  for (size_t i = 0; i < level.size(); i += 2) next.push_back(merge(level[i], level[i + 1]));
  return next;
}

// (m, S) of the 8 shards of a vocabulary of c/T; suppressed ids are absent. Tiles up to the full
// 8·256·n columns exist here, so phantom columns are looked at and found to change nothing.
inline std::vector<std::optional<MaxSum>> head_shards(const std::vector<float>& c,
                                                      const std::vector<uint8_t>& suppressed) {
  size_t tiles = 8;
  while (tiles * 256 < c.size()) tiles *= 2;
  std::vector<std::optional<MaxSum>> level;
  for (size_t t = 0; t < tiles; ++t) {
    std::vector<float> v(256, kMinusInf);
    bool any = false;
    float m = kMinusInf;
    for (size_t i = 0; i < 256; ++i) {
      const size_t id = t * 256 + i;
      if (id >= c.size() || (!suppressed.empty() && suppressed[id])) continue;
      any = true;
      v[i] = c[id];
      if (m < v[i]) m = v[i];
    }
    m = m + 0.0f;
    for (float& x : v) x = x == kMinusInf ? 0.0f : arith::exp(x - m);
    level.push_back(any ? std::optional(MaxSum{m, tree256(v)}) : std::nullopt);
  }
  while (level.size() > 8) level = merge_pairs(level);
  return level;
}

// (m, S) of all shards.
inline MaxSum head_max_sum(std::vector<std::optional<MaxSum>> shards) {
  while (shards.size() > 1) shards = merge_pairs(shards);
  return *shards[0];
}

inline float log_probability(float c, MaxSum all) { return (c - all.m) - arith::log(all.s); }

}  // namespace sb::reference
