// AVX-512 vectors for chain_simd.h: 16 columns. Included only by chain_avx512.cc.
#pragma once

// GCC 12 takes the deliberately undefined operands inside its own intrinsics for mistakes of ours.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <immintrin.h>

#include <cstdint>

#include "samebits/base/bf16.h"

namespace sb::arith {

struct V512 {
  using F = __m512;
  using I = __m512i;
  using M = __mmask16;
  static constexpr int kLanes = 16;

  static F zero() { return _mm512_setzero_ps(); }
  static F set(float x) { return _mm512_set1_ps(x); }
  static I set(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static I set(int x) { return _mm512_set1_epi32(x); }
  static F load(const float* p) { return _mm512_load_ps(p); }
  static I load_int(const uint32_t* p) { return _mm512_load_si512(p); }
  static void store(float* p, F x) { _mm512_store_ps(p, x); }
  static void store_int(void* p, I x) { _mm512_store_si512(p, x); }
  static M first(int count) {
    return static_cast<M>(count >= kLanes ? 0xffffu : (1u << (count > 0 ? count : 0)) - 1);
  }
  static F load_first(const float* p, int count) { return _mm512_maskz_loadu_ps(first(count), p); }
  static void store_first(float* p, int count, F x) { _mm512_mask_storeu_ps(p, first(count), x); }

  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static I add(I a, I b) { return _mm512_add_epi32(a, b); }
  static I sub(I a, I b) { return _mm512_sub_epi32(a, b); }
  static I bit_and(I a, I b) { return _mm512_and_si512(a, b); }
  static I max16(I a, I b) { return _mm512_max_epi16(a, b); }
  static I max32(I a, I b) { return _mm512_max_epi32(a, b); }
  template <int kBits>
  static I shift_left(I a) {
    return _mm512_slli_epi32(a, kBits);
  }
  template <int kBits>
  static I shift_right(I a) {
    return _mm512_srli_epi32(a, kBits);
  }
  // The two elements of a pair.
  static F low_value(I pair) { return _mm512_castsi512_ps(shift_left<16>(pair)); }
  static F high_value(I pair) { return _mm512_castsi512_ps(bit_and(pair, set(0xffff0000u))); }
  static I shift_right_signed(I a, I count) { return _mm512_srav_epi32(a, count); }
  static I truncate(F a) { return _mm512_cvttps_epi32(a); }

  static I exponent_field(F c) {
    return _mm512_srli_epi32(_mm512_slli_epi32(_mm512_castps_si512(c), 1), 24);
  }
  static F power_of_two(I field) { return _mm512_castsi512_ps(_mm512_slli_epi32(field, 23)); }
  static M greater(I a, I b) { return _mm512_cmpgt_epi32_mask(a, b); }
  static F select(M m, F yes, F no) { return _mm512_mask_mov_ps(no, m, yes); }
  // Lanes of `among` whose value is not in [low, high].
  static uint32_t outside(M among, I x, int low, int high) {
    return _mm512_mask_cmpgt_epu32_mask(among, sub(x, set(low)), set(high - low));
  }
  static uint32_t overflowed(I a, I b, I sum) {
    // (a ^ sum) & (b ^ sum): the sum's sign differs from both.
    return _mm512_movepi32_mask(_mm512_ternarylogic_epi32(a, b, sum, 0x42));
  }
  static F to_float_toward_zero(I x) {
    return _mm512_cvt_roundepi32_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  }
  // ⌊a·b⌋, also where a·b underflows: rounding down keeps a tiny negative product negative.
  static F floor_of_product(F a, F b) {
    const F p = _mm512_mul_round_ps(a, b, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    return _mm512_roundscale_ps(p, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  }
  // x·unit + c rounded once to fp32; exact in double for the widths that occur (38 bits).
  static F fused_in_double(I x, F unit, F c) {
    const auto half = [](__m256i xi, __m256 u, __m256 ci) {
      return _mm512_cvtpd_ps(
          _mm512_fmadd_pd(_mm512_cvtepi32_pd(xi), _mm512_cvtps_pd(u), _mm512_cvtps_pd(ci)));
    };
    const __m256 low =
        half(_mm512_castsi512_si256(x), _mm512_castps512_ps256(unit), _mm512_castps512_ps256(c));
    const __m256 high = half(_mm512_extracti64x4_epi64(x, 1), _mm512_extractf32x8_ps(unit, 1),
                             _mm512_extractf32x8_ps(c, 1));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
  }
  // −0 → +0, NaN → 0x7fffffff.
  static F canonical(F x) {
    const M nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(add(x, zero()), nan, _mm512_castsi512_ps(set(0x7fffffff)));
  }
  // The codes of chain_simd.h, two to a lane.
  static I operand_codes(I pair) {
    const __mmask32 non_zero = _mm512_test_epi16_mask(pair, set(0x7fff7fff));
    // (field & 0xff) | 0x100
    const I code = _mm512_ternarylogic_epi32(_mm512_srli_epi16(pair, 7), set(0x00ff00ff),
                                             set(0x01000100), 0xea);
    return _mm512_maskz_max_epi16(non_zero, code, set(0x01010101));
  }
  // Lanes of which a half is `code`.
  static uint32_t lanes_with_half(I codes, int code) {
    const __mmask32 halves =
        _mm512_cmpeq_epi16_mask(codes, _mm512_set1_epi16(static_cast<int16_t>(code)));
    if (__builtin_expect(halves == 0, 1)) return 0;
    return _mm512_cmpneq_epi32_mask(_mm512_movm_epi16(halves), _mm512_setzero_si512());
  }

  // pair[p] lane j = elements k + 2p, k + 2p + 1 of rows[j]: a transposition of 16 × 8 dwords. Rows
  // are paired into registers so that the last shuffle leaves the lanes in order.
  static void load_rows(const bf16* const* rows, int64_t k, I (&pair)[8]) {
    const auto join = [&](int low, int high) {
      const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[low] + k));
      const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[high] + k));
      return _mm512_inserti64x4(_mm512_castsi256_si512(x), y, 1);
    };
    I t[2][4];
    for (int half = 0; half < 2; ++half) {
      const int base = 8 * half;
      const I r0 = join(base, base + 4), r1 = join(base + 1, base + 5);
      const I r2 = join(base + 2, base + 6), r3 = join(base + 3, base + 7);
      const I lo01 = _mm512_unpacklo_epi32(r0, r1), hi01 = _mm512_unpackhi_epi32(r0, r1);
      const I lo23 = _mm512_unpacklo_epi32(r2, r3), hi23 = _mm512_unpackhi_epi32(r2, r3);
      t[half][0] = _mm512_unpacklo_epi64(lo01, lo23);
      t[half][1] = _mm512_unpackhi_epi64(lo01, lo23);
      t[half][2] = _mm512_unpacklo_epi64(hi01, hi23);
      t[half][3] = _mm512_unpackhi_epi64(hi01, hi23);
    }
    for (int p = 0; p < 4; ++p) {
      pair[p] = _mm512_shuffle_i32x4(t[0][p], t[1][p], 0x88);
      pair[p + 4] = _mm512_shuffle_i32x4(t[0][p], t[1][p], 0xdd);
    }
  }
  // Two steps: pair[s][p] lane j = elements k + 16s + 2p, k + 16s + 2p + 1 of rows[j]. Transposes
  // 16 × 16 dwords and touches every line once: where rows lie a power of two apart, 16 of them do
  // not stay in L1 until a second touch. Asks for what lies kAhead elements later, unless that is
  // 0; here, with the address at hand, that costs least.
  template <int kAhead>
  static void load_two_steps(const bf16* const* rows, int64_t k, I (&pair)[2][8]) {
    I t[4][4];
    for (int g = 0; g < 4; ++g) {
      const auto row = [&](int j) {
        const bf16* from = rows[4 * g + j] + k;
        if constexpr (kAhead != 0) __builtin_prefetch(from + kAhead, 0, 2);
        return _mm512_loadu_si512(from);
      };
      const I r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
      const I lo01 = _mm512_unpacklo_epi32(r0, r1), hi01 = _mm512_unpackhi_epi32(r0, r1);
      const I lo23 = _mm512_unpacklo_epi32(r2, r3), hi23 = _mm512_unpackhi_epi32(r2, r3);
      t[g][0] = _mm512_unpacklo_epi64(lo01, lo23);
      t[g][1] = _mm512_unpackhi_epi64(lo01, lo23);
      t[g][2] = _mm512_unpacklo_epi64(hi01, hi23);
      t[g][3] = _mm512_unpackhi_epi64(hi01, hi23);
    }
    for (int q = 0; q < 4; ++q) {
      const I even01 = _mm512_shuffle_i32x4(t[0][q], t[1][q], 0x88);
      const I even23 = _mm512_shuffle_i32x4(t[2][q], t[3][q], 0x88);
      const I odd01 = _mm512_shuffle_i32x4(t[0][q], t[1][q], 0xdd);
      const I odd23 = _mm512_shuffle_i32x4(t[2][q], t[3][q], 0xdd);
      pair[0][q] = _mm512_shuffle_i32x4(even01, even23, 0x88);
      pair[0][q + 4] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
      pair[1][q] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
      pair[1][q + 4] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
    }
  }
  // pair[p] lane j = element j of k_rows[2p] + offset and of k_rows[2p + 1] + offset.
  static void load_columns(const bf16* const* k_rows, int64_t offset, I (&pair)[8]) {
    const auto words = [&](int k) {
      return _mm512_cvtepu16_epi32(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(k_rows[k] + offset)));
    };
    for (int p = 0; p < 8; ++p) {
      pair[p] = _mm512_or_si512(words(2 * p), _mm512_slli_epi32(words(2 * p + 1), 16));
    }
  }
};

}  // namespace sb::arith
