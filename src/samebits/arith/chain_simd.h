// The step kernels of every profile, written once over a vector type V (chain_v512.h,
// chain_v256.h). Lanes are output columns; a call advances R rows by NB column blocks through a few
// steps.
//
// The trick: exponents as 16-bit integers. A bf16 pair (k, k+1) of one column is one 32-bit lane,
// so one add and one max handle two products, and E is known before any product is formed. Then
// trunc(a·b·2^(25−E)) is two exact fp32 multiplications and one truncating conversion, and the sum
// is int32. Exponents are coded as max(field, 1) + 256, zero as 0: a zero product's code is at most
// 511, any other's is field_a + field_b + 512 ≥ 514, and a plain max ignores zeros.
//
// Lanes for which fp32 scaling could be inexact (E outside [−100, 120]), with non-finite operands
// or an int32 sum that overflowed are redone by the scalar model; this costs time, never bits.
#pragma once

#include <cstdint>

#include "samebits/arith/chain_isa.h"
#include "samebits/arith/profile.h"
#include "samebits/base/bf16.h"

#define SB_INLINE inline __attribute__((always_inline))

namespace sb::arith {

inline constexpr int kCodeBias = 256;         // code of a non-zero operand = field + kCodeBias
inline constexpr int kNonFiniteCode = 0x1ff;  // field 255
inline constexpr int kLeastNonZero = 514;     // least code sum of a non-zero product
inline constexpr int kCodeToField = 639;      // code sum − 639 = E + 127, the fp32 field of 2^E
inline constexpr int kLowField = 127 - 100;   // below: the scalar model
inline constexpr int kHighField = 127 + 120;  // above: the scalar model

// 16 k of one row of a, prepared once per call.
struct RowStep {
  float value[16];
  uint32_t code[8];  // codes of (k, k+1) as 16-bit halves; non-finite operands get a code that
                     // drives E out of range whatever b is
};
inline constexpr int kRowNonFiniteCode = 0x3fff;

// 16 k of one block of V::kLanes columns of b.
template <class V>
struct BlockStep {
  alignas(64) float value[16][V::kLanes];
  alignas(64) uint32_t code[8][V::kLanes];
  uint32_t non_finite;  // bit j: column j holds an infinity or a NaN
};

// b's pairs → values and codes.
template <class V, bool kCodes>
SB_INLINE void unpack_pairs(const typename V::I (&pair)[8], BlockStep<V>& out) {
  using I = typename V::I;
  I top = V::set(0);
  for (int p = 0; p < 8; ++p) {
    V::store(out.value[2 * p], V::low_value(pair[p]));
    V::store(out.value[2 * p + 1], V::high_value(pair[p]));
    if constexpr (kCodes) {
      const I code = V::operand_codes(pair[p]);
      V::store_int(out.code[p], code);
      top = V::max16(top, code);
    }
  }
  if constexpr (kCodes) out.non_finite = V::lanes_with_half(top, kNonFiniteCode);
}

// c of the lanes in `lanes`, redone by the scalar model over products k0 … k0 + count − 1.
template <class V, Profile kProfile, int kFirst, int kCount>
__attribute__((noinline, cold)) typename V::F redo_lanes(uint32_t lanes, const RowStep& a,
                                                         const BlockStep<V>& b, typename V::F old,
                                                         typename V::F fresh) {
  alignas(64) float before[V::kLanes], after[V::kLanes];
  V::store(before, old);
  V::store(after, fresh);
  float x[kCount], y[kCount];
  for (int k = 0; k < kCount; ++k) x[k] = a.value[kFirst + k];
  for (; lanes != 0; lanes &= lanes - 1) {
    const int j = __builtin_ctz(lanes);
    for (int k = 0; k < kCount; ++k) y[k] = b.value[kFirst + k][j];
    after[j] = kProfile == Profile::kSm90 ? sm90_step_widened(x, y, before[j])
                                          : gfx942_group_widened(x, y, before[j]);
  }
  return V::load(after);
}

// Largest code sum of each lane over pairs kFirst … kFirst + kCount − 1.
template <class V, int R, int NB, int kFirst, int kCount>
SB_INLINE void max_codes(const RowStep* const (&a)[R], const BlockStep<V>* const (&b)[NB],
                         typename V::I (&code)[R][NB]) {
  using I = typename V::I;
#pragma GCC unroll 8
  for (int p = kFirst; p < kFirst + kCount; ++p) {
#pragma GCC unroll 4
    for (int j = 0; j < NB; ++j) {
      const I codes = V::load_int(b[j]->code[p]);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        // Halves never carry into each other: 0x3fff + 0x1ff < 2^16.
        const I sum = V::add(codes, V::set(a[r]->code[p]));
        code[r][j] = p == kFirst ? sum : V::max16(code[r][j], sum);
      }
    }
  }
  for (int j = 0; j < NB; ++j) {
    for (int r = 0; r < R; ++r) {
      const I both = V::max16(code[r][j], V::template shift_right<16>(code[r][j]));
      code[r][j] = V::bit_and(both, V::set(0xffffu));
    }
  }
}

// Σ trunc(a·b·scale) over k = kFirst … kFirst + kCount − 1 as int32.
template <class V, int R, int NB, int kFirst, int kCount>
SB_INLINE void sum_products(const RowStep* const (&a)[R], const BlockStep<V>* const (&b)[NB],
                            const typename V::F (&scale)[R][NB], typename V::I (&sum)[R][NB]) {
#pragma GCC unroll 16
  for (int k = kFirst; k < kFirst + kCount; ++k) {
#pragma GCC unroll 4
    for (int j = 0; j < NB; ++j) {
      const auto bk = V::load(b[j]->value[k]);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const auto product = V::mul(bk, V::set(a[r]->value[k]));
        const auto cut = V::truncate(V::mul(product, scale[r][j]));
        sum[r][j] = k == kFirst ? cut : V::add(sum[r][j], cut);
      }
    }
  }
}

// One sm90 step. |Σ products| ≤ 16 · 255² · 2^11 < 2^31; c's term is below 2^26, and where it makes
// the sum overflow the lane is redone.
template <class V, int R, int NB>
SB_INLINE void sm90_rows(const RowStep* const (&a)[R], const BlockStep<V>* const (&b)[NB],
                         typename V::F (&c)[R][NB]) {
  using I = typename V::I;
  using F = typename V::F;
  I code[R][NB], field[R][NB], sum[R][NB];
  F scale[R][NB];
  max_codes<V, R, NB, 0, 8>(a, b, code);
  for (int j = 0; j < NB; ++j) {
    for (int r = 0; r < R; ++r) {
      field[r][j] = V::max32(V::sub(code[r][j], V::set(kCodeToField)), V::exponent_field(c[r][j]));
      scale[r][j] = V::power_of_two(V::sub(V::set(127 + 25 + 127), field[r][j]));
    }
  }
  sum_products<V, R, NB, 0, 16>(a, b, scale, sum);
  for (int j = 0; j < NB; ++j) {
    for (int r = 0; r < R; ++r) {
      const auto non_zero = V::greater(code[r][j], V::set(kLeastNonZero - 1));
      const I term = V::truncate(V::mul(c[r][j], scale[r][j]));
      const I total = V::add(sum[r][j], term);
      const F unit = V::power_of_two(V::sub(field[r][j], V::set(25)));
      // The total has at least the unit 2^−125: the product is exact, and an integer has no −0.
      const F next = V::mul(V::to_float_toward_zero(total), unit);
      const F result = V::select(non_zero, next, c[r][j]);
      const uint32_t redo = V::outside(non_zero, field[r][j], kLowField, kHighField) |
                            V::overflowed(sum[r][j], term, total) | b[j]->non_finite;
      if (__builtin_expect(redo != 0, 0)) {
        c[r][j] = redo_lanes<V, Profile::kSm90, 0, 16>(redo, *a[r], *b[j], c[r][j], result);
      } else {
        c[r][j] = result;
      }
    }
  }
}

// One gfx942 group: half a step.
template <class V, int R, int NB, int kGroup>
SB_INLINE void gfx942_rows(const RowStep* const (&a)[R], const BlockStep<V>* const (&b)[NB],
                           typename V::F (&c)[R][NB]) {
  using I = typename V::I;
  using F = typename V::F;
  I code[R][NB], field[R][NB], sum[R][NB];
  F scale[R][NB];
  max_codes<V, R, NB, 4 * kGroup, 4>(a, b, code);
  for (int j = 0; j < NB; ++j) {
    for (int r = 0; r < R; ++r) {
      field[r][j] = V::sub(code[r][j], V::set(kCodeToField));  // of E_p
      scale[r][j] = V::power_of_two(V::sub(V::set(127 + 24 + 127), field[r][j]));
    }
  }
  sum_products<V, R, NB, 8 * kGroup, 8>(a, b, scale, sum);
  for (int j = 0; j < NB; ++j) {
    for (int r = 0; r < R; ++r) {
      const auto non_zero = V::greater(code[r][j], V::set(kLeastNonZero - 1));
      const I c_field = V::exponent_field(c[r][j]);
      const I top = V::max32(field[r][j], c_field);  // of E
      // The sum's own unit is 2^(E_p−24); where 2^(E−31) is larger, an arithmetic shift floors to
      // it.
      const I own = V::sub(field[r][j], V::set(24));
      const I unit = V::max32(own, V::sub(top, V::set(31)));
      const I floored = V::shift_right_signed(sum[r][j], V::sub(unit, own));
      const F c_floor =
          V::mul(V::floor_of_product(c[r][j], V::power_of_two(V::sub(V::set(278), top))),
                 V::power_of_two(V::sub(top, V::set(24))));
      const F next = V::add(V::fused_in_double(floored, V::power_of_two(unit), c_floor), V::zero());
      const F result = V::select(non_zero, next, c[r][j]);
      const uint32_t redo = V::outside(non_zero, field[r][j], kLowField, kHighField) |
                            V::outside(non_zero, c_field, 0, 254) | b[j]->non_finite;
      if (__builtin_expect(redo != 0, 0)) {
        c[r][j] =
            redo_lanes<V, Profile::kGfx942, 8 * kGroup, 8>(redo, *a[r], *b[j], c[r][j], result);
      } else {
        c[r][j] = result;
      }
    }
  }
}

template <class V, int R, int NB>
SB_INLINE void ieee_rows(const RowStep* const (&a)[R], const BlockStep<V>* const (&b)[NB],
                         typename V::F (&c)[R][NB]) {
#pragma GCC unroll 16
  for (int k = 0; k < 16; ++k) {
#pragma GCC unroll 4
    for (int j = 0; j < NB; ++j) {
      const auto bk = V::load(b[j]->value[k]);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) c[r][j] = V::fma(bk, V::set(a[r]->value[k]), c[r][j]);
    }
  }
}

// One step of one row and one block whose pairs are still in registers. (The other profiles are no
// faster this way: their steps are long, and the CPU overlaps fewer of them.)
template <class V>
SB_INLINE void ieee_pairs(const RowStep& a, const typename V::I (&pair)[8], typename V::F& c) {
#pragma GCC unroll 8
  for (int p = 0; p < 8; ++p) {
    c = V::fma(V::low_value(pair[p]), V::set(a.value[2 * p]), c);
    c = V::fma(V::high_value(pair[p]), V::set(a.value[2 * p + 1]), c);
  }
}

// R rows × NB blocks through `steps` steps. Blocks lie block_stride apart, rows of c ldc apart;
// only the first `columns` columns are read and written.
template <class V, Profile kProfile, int R, int NB>
__attribute__((noinline)) void run_steps(const RowStep* const* rows, const BlockStep<V>* blocks,
                                         int64_t block_stride, int steps, float* c, int64_t ldc,
                                         int columns) {
  typename V::F acc[R][NB];
  const RowStep* a[R];
  const BlockStep<V>* b[NB];
  for (int r = 0; r < R; ++r) a[r] = rows[r];
  for (int j = 0; j < NB; ++j) b[j] = blocks + j * block_stride;
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < NB; ++j) {
      // −0 and NaN are canonical from here on: a step with only zero products keeps c as it is.
      acc[r][j] = V::canonical(V::load_first(c + r * ldc + j * V::kLanes, columns - j * V::kLanes));
    }
  }
  for (int s = 0; s < steps; ++s) {
    if constexpr (kProfile == Profile::kSm90) {
      sm90_rows<V, R, NB>(a, b, acc);
    } else if constexpr (kProfile == Profile::kGfx942) {
      gfx942_rows<V, R, NB, 0>(a, b, acc);
      gfx942_rows<V, R, NB, 1>(a, b, acc);
    } else {
      ieee_rows<V, R, NB>(a, b, acc);
    }
    for (int r = 0; r < R; ++r) ++a[r];
    for (int j = 0; j < NB; ++j) ++b[j];
  }
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < NB; ++j) {
      const auto out = kProfile == Profile::kIeee ? V::canonical(acc[r][j]) : acc[r][j];
      V::store_first(c + r * ldc + j * V::kLanes, columns - j * V::kLanes, out);
    }
  }
}

}  // namespace sb::arith
