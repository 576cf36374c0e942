// AVX2 vectors for chain_simd.h: 8 columns. Included only by chain_avx2.cc. Without embedded
// rounding, truncation to fp32 and the floor of an underflow are repaired by integer steps.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "samebits/base/bf16.h"

namespace sb::arith {

struct V256 {
  using F = __m256;
  using I = __m256i;
  using M = __m256i;  // all ones or all zeros per lane
  static constexpr int kLanes = 8;

  static F zero() { return _mm256_setzero_ps(); }
  static F set(float x) { return _mm256_set1_ps(x); }
  static I set(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  static I set(int x) { return _mm256_set1_epi32(x); }
  static F load(const float* p) { return _mm256_load_ps(p); }
  static I load_int(const uint32_t* p) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
  }
  static void store(float* p, F x) { _mm256_store_ps(p, x); }
  static void store_int(void* p, I x) { _mm256_store_si256(static_cast<__m256i*>(p), x); }
  static M first(int count) {
    return greater(set(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static F load_first(const float* p, int count) {
    return count >= kLanes ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, first(count));
  }
  static void store_first(float* p, int count, F x) {
    if (count >= kLanes) {
      _mm256_storeu_ps(p, x);
    } else {
      _mm256_maskstore_ps(p, first(count), x);
    }
  }

  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static I add(I a, I b) { return _mm256_add_epi32(a, b); }
  static I sub(I a, I b) { return _mm256_sub_epi32(a, b); }
  static I bit_and(I a, I b) { return _mm256_and_si256(a, b); }
  static I max16(I a, I b) { return _mm256_max_epi16(a, b); }
  static I max32(I a, I b) { return _mm256_max_epi32(a, b); }
  template <int kBits>
  static I shift_left(I a) {
    return _mm256_slli_epi32(a, kBits);
  }
  template <int kBits>
  static I shift_right(I a) {
    return _mm256_srli_epi32(a, kBits);
  }
  // The two elements of a pair.
  static F low_value(I pair) { return _mm256_castsi256_ps(shift_left<16>(pair)); }
  static F high_value(I pair) { return _mm256_castsi256_ps(bit_and(pair, set(0xffff0000u))); }
  static I shift_right_signed(I a, I count) { return _mm256_srav_epi32(a, count); }
  static I truncate(F a) { return _mm256_cvttps_epi32(a); }

  static I exponent_field(F c) {
    return _mm256_srli_epi32(_mm256_slli_epi32(_mm256_castps_si256(c), 1), 24);
  }
  static F power_of_two(I field) { return _mm256_castsi256_ps(_mm256_slli_epi32(field, 23)); }
  static M greater(I a, I b) { return _mm256_cmpgt_epi32(a, b); }
  static F select(M m, F yes, F no) { return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(m)); }
  static uint32_t bits(I signs) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(signs)));
  }
  // Lanes of `among` whose value is not in [low, high].
  static uint32_t outside(M among, I x, int low, int high) {
    const I either = _mm256_or_si256(greater(set(low), x), greater(x, set(high)));
    return bits(_mm256_and_si256(among, either));
  }
  static uint32_t overflowed(I a, I b, I sum) {
    return bits(_mm256_and_si256(_mm256_xor_si256(a, sum), _mm256_xor_si256(b, sum)));
  }
  // Conversion rounds |x| to nearest; where that went up, one ulp is taken off again. Converting
  // back is exact, and 2^31 comes back as INT_MIN, which still compares as too large.
  static F to_float_toward_zero(I x) {
    const I magnitude = _mm256_abs_epi32(x);
    const I nearest = _mm256_castps_si256(_mm256_cvtepi32_ps(magnitude));
    const I left = sub(magnitude, truncate(_mm256_castsi256_ps(nearest)));
    const I cut = add(nearest, _mm256_srai_epi32(left, 31));
    return _mm256_castsi256_ps(_mm256_or_si256(cut, bit_and(x, set(0x80000000u))));
  }
  // ⌊a·b⌋, a ≠ −0, b > 0: a result of −0 can only be the underflow of a negative product.
  static F floor_of_product(F a, F b) {
    const F floor = _mm256_floor_ps(mul(a, b));
    const M underflow = _mm256_cmpeq_epi32(_mm256_castps_si256(floor), set(0x80000000u));
    return select(underflow, set(-1.0f), floor);
  }
  // x·unit + c rounded once to fp32; exact in double for the widths that occur (38 bits).
  static F fused_in_double(I x, F unit, F c) {
    const auto half = [](__m128i xi, __m128 u, __m128 ci) {
      return _mm256_cvtpd_ps(
          _mm256_fmadd_pd(_mm256_cvtepi32_pd(xi), _mm256_cvtps_pd(u), _mm256_cvtps_pd(ci)));
    };
    const __m128 low =
        half(_mm256_castsi256_si128(x), _mm256_castps256_ps128(unit), _mm256_castps256_ps128(c));
    const __m128 high = half(_mm256_extracti128_si256(x, 1), _mm256_extractf128_ps(unit, 1),
                             _mm256_extractf128_ps(c, 1));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
  }
  // −0 → +0, NaN → 0x7fffffff.
  static F canonical(F x) {
    const F nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    return select(_mm256_castps_si256(nan), _mm256_castsi256_ps(set(0x7fffffff)), add(x, zero()));
  }
  // The codes of chain_simd.h, two to a lane.
  static I operand_codes(I pair) {
    const I zeros = _mm256_cmpeq_epi16(bit_and(pair, set(0x7fff7fff)), _mm256_setzero_si256());
    const I field = bit_and(_mm256_srli_epi16(pair, 7), set(0x00ff00ff));
    const I code = add(max16(field, set(0x00010001)), set(0x01000100));
    return _mm256_andnot_si256(zeros, code);
  }
  // Lanes of which a half is `code`.
  static uint32_t lanes_with_half(I codes, int code) {
    const I halves = _mm256_cmpeq_epi16(codes, _mm256_set1_epi16(static_cast<int16_t>(code)));
    return bits(_mm256_or_si256(halves, _mm256_slli_epi32(halves, 16)));
  }

  // pair[p] lane j = elements k + 2p, k + 2p + 1 of rows[j]: a transposition of 8 × 8 dwords.
  static void load_rows(const bf16* const* rows, int64_t k, I (&pair)[8]) {
    const auto row = [&](int j) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[j] + k));
    };
    I t[2][4];
    for (int half = 0; half < 2; ++half) {
      const I r0 = row(4 * half), r1 = row(4 * half + 1);
      const I r2 = row(4 * half + 2), r3 = row(4 * half + 3);
      const I lo01 = _mm256_unpacklo_epi32(r0, r1), hi01 = _mm256_unpackhi_epi32(r0, r1);
      const I lo23 = _mm256_unpacklo_epi32(r2, r3), hi23 = _mm256_unpackhi_epi32(r2, r3);
      t[half][0] = _mm256_unpacklo_epi64(lo01, lo23);
      t[half][1] = _mm256_unpackhi_epi64(lo01, lo23);
      t[half][2] = _mm256_unpacklo_epi64(hi01, hi23);
      t[half][3] = _mm256_unpackhi_epi64(hi01, hi23);
    }
    for (int p = 0; p < 4; ++p) {
      pair[p] = _mm256_permute2x128_si256(t[0][p], t[1][p], 0x20);
      pair[p + 4] = _mm256_permute2x128_si256(t[0][p], t[1][p], 0x31);
    }
  }
  // Two steps: pair[s][p] lane j = elements k + 16s + 2p, k + 16s + 2p + 1 of rows[j]. Asks for
  // what lies kAhead elements later, unless that is 0.
  template <int kAhead>
  static void load_two_steps(const bf16* const* rows, int64_t k, I (&pair)[2][8]) {
    if constexpr (kAhead != 0) {
      for (int j = 0; j < kLanes; ++j) __builtin_prefetch(rows[j] + k + kAhead, 0, 2);
    }
    load_rows(rows, k, pair[0]);
    load_rows(rows, k + 16, pair[1]);
  }
  // pair[p] lane j = element j of k_rows[2p] + offset and of k_rows[2p + 1] + offset.
  static void load_columns(const bf16* const* k_rows, int64_t offset, I (&pair)[8]) {
    const auto words = [&](int k) {
      return _mm256_cvtepu16_epi32(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(k_rows[k] + offset)));
    };
    for (int p = 0; p < 8; ++p) {
      pair[p] = _mm256_or_si256(words(2 * p), _mm256_slli_epi32(words(2 * p + 1), 16));
    }
  }
};

}  // namespace sb::arith
