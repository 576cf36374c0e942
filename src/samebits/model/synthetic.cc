#include "samebits/model/synthetic.h"

#include <algorithm>
#include <cmath>

#include "samebits/base/digest.h"
#include "samebits/base/rng.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace sb {
namespace {

using C = SyntheticConstants;
constexpr int kLanes = 16;  // elements a step

// Words 0, 1 and 2 of the blocks of elements index … index + kLanes − 1. Each lane is 64 bits wide
// and only its low half counts: a round then needs no shuffles, just 32 × 32 → 64 bit products.
struct Words {
  alignas(64) uint64_t w0[kLanes], w1[kLanes], w2[kLanes];
};

#if defined(__AVX2__)
inline void philox_lanes(uint64_t index, uint64_t key, Words& out) {
  constexpr int kVectors = kLanes / 4;
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
  __m256i c0[kVectors], c1[kVectors], c2[kVectors], c3[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    c0[v] = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<int64_t>(index) + 4 * v),
                             _mm256_set_epi64x(3, 2, 1, 0));
    c1[v] = _mm256_srli_epi64(c0[v], 32);
    c2[v] = c3[v] = _mm256_setzero_si256();
  }
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const __m256i q0 = _mm256_set1_epi64x(k0), q1 = _mm256_set1_epi64x(k1);
    for (int v = 0; v < kVectors; ++v) {
      const __m256i p0 = _mm256_mul_epu32(c0[v], m0), p1 = _mm256_mul_epu32(c2[v], m1);
      c0[v] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1[v]), q0);
      c1[v] = p1;
      c2[v] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3[v]), q1);
      c3[v] = p0;
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(out.w0 + 4 * v), c0[v]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(out.w1 + 4 * v), c1[v]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(out.w2 + 4 * v), c2[v]);
  }
}
#else
inline void philox_lanes(uint64_t index, uint64_t key, Words& out) {
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t at = index + static_cast<uint64_t>(i);
    const Philox4 b = philox4x32_10(
        Philox4{{static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0}}, key);
    out.w0[i] = b.v[0], out.w1[i] = b.v[1], out.w2[i] = b.v[2];
  }
}
#endif

inline int32_t centred_sum(uint32_t w0, uint32_t w1) {
  return static_cast<int32_t>((w0 & 0xffffu) + (w0 >> 16) + (w1 & 0xffffu) + (w1 >> 16)) - 131070;
}

// R for finite values.
inline uint16_t round_finite(float x) {
  const uint32_t u = float_bits(x);
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

}  // namespace

SyntheticTensor::SyntheticTensor(const ExpectedTensor& t, uint64_t seed)
    : key_(xxh64(t.name, seed)), columns_(t.shape.back()) {
  const double k = static_cast<double>(columns_);
  switch (t.kind) {
    case TensorKind::kMatrix:
    case TensorKind::kVision:
      scale_ = static_cast<float>(1.0 / std::sqrt(k) / C::kSumDeviation);
      // A narrow matrix would be all outliers.
      num_outliers_ = columns_ >= 4 * C::kOutliers ? C::kOutliers : 0;
      break;
    case TensorKind::kEmbedding:
      scale_ = static_cast<float>(C::kEmbeddingSigma / std::sqrt(k) / C::kSumDeviation);
      break;
    case TensorKind::kQkNorm:
      uniform_ = true;
      low_ = C::kQkLow, width_ = C::kQkHigh - C::kQkLow;
      scale_ = static_cast<float>(std::sqrt(2.0 / std::sqrt(k)));
      break;
    case TensorKind::kNorm:
      uniform_ = true;
      low_ = C::kNormLow, width_ = C::kNormHigh - C::kNormLow;
      break;
    case TensorKind::kLayerScalar:
      uniform_ = true;
      low_ = C::kScalarLow, width_ = C::kScalarHigh - C::kScalarLow;
      break;
  }
  uint64_t n = 0;
  for (int i = 0; i < num_outliers_;) {
    outliers_[i] = static_cast<int64_t>(mix64(key_ + ++n) % static_cast<uint64_t>(columns_));
    if (std::find(outliers_, outliers_ + i, outliers_[i]) == outliers_ + i) ++i;
  }
}

void SyntheticTensor::fill(bf16* out, int64_t first, int64_t count) const {
  for (int64_t done = 0; done < count; done += kLanes) {
    Words w;
    philox_lanes(static_cast<uint64_t>(first + done), key_, w);
    uint16_t r[kLanes];
    if (uniform_) {
      for (int i = 0; i < kLanes; ++i) {
        const float u =
            static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(w.w2[i]) >> 8)) *
            0x1p-24f;
        r[i] = round_finite(scale_ * (low_ + width_ * u));
      }
    } else {
      for (int i = 0; i < kLanes; ++i) {
        r[i] = round_finite(static_cast<float>(centred_sum(static_cast<uint32_t>(w.w0[i]),
                                                           static_cast<uint32_t>(w.w1[i]))) *
                            scale_);
      }
    }
    const int n = static_cast<int>(std::min<int64_t>(kLanes, count - done));
    for (int i = 0; i < n; ++i) out[done + i].bits = r[i];
  }
  // Outlier columns: recomputed one by one with the scaled factor, four values a row.
  for (int c = 0; c < num_outliers_; ++c) {
    const int64_t column = outliers_[c];
    int64_t row = first / columns_;
    if (row * columns_ + column < first) ++row;
    for (int64_t at = row * columns_ + column; at < first + count; at += columns_) {
      const Philox4 block = philox4x32_10(
          Philox4{{static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0}}, key_);
      const float x = static_cast<float>(centred_sum(block.v[0], block.v[1]));
      out[at - first] = round_bf16(x * (scale_ * C::kOutlierGain));
    }
  }
}

}  // namespace sb
