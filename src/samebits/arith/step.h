// One k16 matrix step, C + Σ A[k]·B[k] for one output, as scalar models of what the hardware does.
// Everything that claims a profile is compared with these functions, so they are written to be
// read: integers only (except the fused chain), no lookup, no shortcut.
//
// The trick all matrix units share: products are not rounded one by one. Every term is cut to a
// multiple of one unit that hangs on the largest exponent E of the step, the cut terms are added
// exactly as integers, and the sum is brought back to fp32 once.
//
// Common rules. A bf16 subnormal keeps the exponent −126 and a significand below 1; a product has
// the sum of its operands' exponents and is never renormalised; zero products drop out of E. A zero
// result is +0, so no step returns −0. NaN is kCanonicalNan; an infinite term, 0·∞ and ∞ − ∞ follow
// IEEE. Nothing is refused: every bit pattern has a result.
#pragma once

#include <cstdint>

#include "samebits/arith/profile.h"
#include "samebits/base/bf16.h"
#include "samebits/base/bits.h"
#include "samebits/base/platform.h"

namespace sb::arith {

inline constexpr int kStepProducts = 16;       // k's in one step
inline constexpr int kGfx942Group = 8;         // k's in one MFMA group; two groups make a step
inline constexpr int kSm90MinExponent = -133;  // E never falls below it
inline constexpr int kNoExponent = -1000;      // below every exponent: no non-zero product was seen

// A term significand · 2^ulp, exact; `exponent` is the one that takes part in E.
struct StepTerm {
  int32_t significand = 0;  // signed; 16 bits for a product, 24 for an accumulator
  int exponent = 0;
  int ulp = 0;
};

SB_HD constexpr StepTerm bf16_term(bf16 x) {
  const int field = (x.bits >> 7) & 0xff;
  const int32_t magnitude = (x.bits & 0x7f) | (field != 0 ? 0x80 : 0);
  const int exponent = (field != 0 ? field : 1) - 127;
  return {(x.bits >> 15) != 0 ? -magnitude : magnitude, exponent, exponent - 7};
}

SB_HD constexpr StepTerm product_term(bf16 a, bf16 b) {
  const StepTerm x = bf16_term(a), y = bf16_term(b);
  return {x.significand * y.significand, x.exponent + y.exponent, x.ulp + y.ulp};
}

SB_HD constexpr StepTerm accumulator_term(float c) {
  const uint32_t u = float_bits(c);
  const int field = static_cast<int>((u >> 23) & 0xff);
  const int32_t magnitude = static_cast<int32_t>((u & 0x7fffffu) | (field != 0 ? 0x800000u : 0));
  const int exponent = (field != 0 ? field : 1) - 127;
  return {(u >> 31) != 0 ? -magnitude : magnitude, exponent, exponent - 23};
}

// ⌊value / 2^shift⌋ for shift ≥ 0, value · 2^−shift for shift < 0.
SB_HD constexpr int64_t scaled_floor(int64_t value, int shift) {
  if (shift <= 0) return value * (int64_t{1} << -shift);
  return value >> (shift < 63 ? shift : 63);
}

// The same, toward zero.
SB_HD constexpr int64_t scaled_truncate(int64_t value, int shift) {
  return value < 0 ? -scaled_floor(-value, shift) : scaled_floor(value, shift);
}

// Position of the highest set bit; v ≠ 0. A loop of halves: compilers for devices lack the builtin.
SB_HD constexpr int highest_bit(uint64_t v) {
  int position = 0;
  for (int half = 32; half != 0; half /= 2) {
    if ((v >> half) != 0) {
      v >>= half;
      position += half;
    }
  }
  return position;
}

enum class StepRounding { kTowardZero, kNearestEven };

// sum · 2^ulp as fp32: subnormals kept, ±inf from 2^128 on after rounding, +0 for every zero.
SB_HD constexpr float to_fp32(int64_t sum, int ulp, StepRounding rounding) {
  if (sum == 0) return 0.0f;
  const uint64_t magnitude = sum < 0 ? 0 - static_cast<uint64_t>(sum) : static_cast<uint64_t>(sum);
  const uint32_t sign = sum < 0 ? 0x80000000u : 0;
  const int exponent = highest_bit(magnitude) + ulp;
  if (exponent > 127) return bits_float(sign | 0x7f800000u);
  const int out_ulp = exponent - 23 > -149 ? exponent - 23 : -149;
  const int shift = out_ulp - ulp;  // −23 … 63
  uint64_t kept = shift > 0 ? magnitude >> shift : magnitude << -shift;
  if (rounding == StepRounding::kNearestEven && shift > 0) {
    const uint64_t rest = magnitude - (kept << shift), half = uint64_t{1} << (shift - 1);
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  }
  if (kept == 0) return 0.0f;
  // The hidden bit of `kept`, where there is one, adds the last 1 to the exponent field; a carry
  // out of the significand raises the exponent, up to infinity.
  const uint32_t field = static_cast<uint32_t>(out_ulp + 149) << 23;
  return bits_float(sign | (field + static_cast<uint32_t>(kept)));
}

// Which non-finite terms a step has met.
struct StepSpecials {
  bool nan = false, plus = false, minus = false;
  SB_HD constexpr bool any() const { return nan || plus || minus; }
  SB_HD constexpr void infinity(bool negative) { (negative ? minus : plus) = true; }
  SB_HD constexpr void accumulator(float c) {
    const uint32_t u = float_bits(c);
    if (is_nan_bits(u))
      nan = true;
    else if (!is_finite_bits(u))
      infinity((u >> 31) != 0);
  }
  SB_HD constexpr void product(bf16 a, bf16 b) {
    const int abs_a = a.bits & 0x7fff, abs_b = b.bits & 0x7fff;
    if (abs_a < 0x7f80 && abs_b < 0x7f80) return;
    if (abs_a > 0x7f80 || abs_b > 0x7f80 || abs_a == 0 || abs_b == 0)
      nan = true;
    else
      infinity(((a.bits ^ b.bits) >> 15) != 0);
  }
  SB_HD constexpr float result() const {
    if (nan || (plus && minus)) return bits_float(kCanonicalNan);
    return bits_float(plus ? 0x7f800000u : 0xff800000u);
  }
};

// sm90, Hopper mma.sync m16n8k16 and wgmma: 16 products and c are truncated toward zero to
// multiples of 2^(E−25), E = the largest exponent among non-zero products and a non-zero c, at
// least −133; the exact sum is truncated toward zero to fp32. |sum| ≤ 17·2^27 units.
SB_HD constexpr float sm90_step(const bf16* a, const bf16* b, float c) {
  StepSpecials specials;
  specials.accumulator(c);
  const StepTerm acc = accumulator_term(c);
  int e = kSm90MinExponent;
  if (acc.significand != 0 && acc.exponent > e) e = acc.exponent;
  for (int k = 0; k < kStepProducts; ++k) {
    specials.product(a[k], b[k]);
    const StepTerm p = product_term(a[k], b[k]);
    if (p.significand != 0 && p.exponent > e) e = p.exponent;
  }
  if (specials.any()) return specials.result();
  const int unit = e - 25;
  int64_t sum = acc.significand != 0 ? scaled_truncate(acc.significand, unit - acc.ulp) : 0;
  for (int k = 0; k < kStepProducts; ++k) {
    const StepTerm p = product_term(a[k], b[k]);
    if (p.significand != 0) sum += scaled_truncate(p.significand, unit - p.ulp);
  }
  return to_fp32(sum, unit, StepRounding::kTowardZero);
}

// gfx942, one MFMA group of 8: products are truncated toward zero to multiples of 2^(E_p−24) and
// added exactly; with E = max(E_p, e_c), where c = 0 counts as −126, that sum is floored to a
// multiple of 2^(E−31) and c to a multiple of 2^(E−24); their exact sum is rounded to nearest even.
// A finite product of 2^128 or more counts as infinite.
SB_HD constexpr float gfx942_group(const bf16* a, const bf16* b, float c) {
  StepSpecials specials;
  specials.accumulator(c);
  int ep = kNoExponent;
  for (int k = 0; k < kGfx942Group; ++k) {
    specials.product(a[k], b[k]);
    const StepTerm p = product_term(a[k], b[k]);
    if (p.significand == 0) continue;
    const int32_t magnitude = p.significand < 0 ? -p.significand : p.significand;
    const bool huge = p.exponent >= 128 || (p.exponent == 127 && magnitude >= (1 << 15));
    if (huge && (a[k].bits & 0x7fff) < 0x7f80 && (b[k].bits & 0x7fff) < 0x7f80) {
      specials.infinity(p.significand < 0);
    }
    if (p.exponent > ep) ep = p.exponent;
  }
  if (specials.any()) return specials.result();
  const StepTerm acc = accumulator_term(c);
  if (ep == kNoExponent) return acc.significand == 0 ? 0.0f : c;
  int64_t sum = 0;  // in units of 2^(E_p−24), |sum| ≤ 8·2^26
  for (int k = 0; k < kGfx942Group; ++k) {
    const StepTerm p = product_term(a[k], b[k]);
    if (p.significand != 0) sum += scaled_truncate(p.significand, ep - 24 - p.ulp);
  }
  const int e = ep > acc.exponent ? ep : acc.exponent;  // acc.exponent is −126 for c = 0
  // Both in units of 2^(E−31).
  const int64_t products = scaled_floor(sum, (e - 31) - (ep - 24));
  const int64_t accumulator = scaled_floor(acc.significand, (e - 24) - acc.ulp) * (1 << 7);
  return to_fp32(products + accumulator, e - 31, StepRounding::kNearestEven);
}

SB_HD constexpr float gfx942_step(const bf16* a, const bf16* b, float c) {
  return gfx942_group(a + kGfx942Group, b + kGfx942Group, gfx942_group(a, b, c));
}

// ieee: one fp32 fma per product, k ascending.
SB_HD inline float ieee_step(const bf16* a, const bf16* b, float c) {
  for (int k = 0; k < kStepProducts; ++k) c = __builtin_fmaf(widen(a[k]), widen(b[k]), c);
  const uint32_t u = float_bits(c);
  if (is_nan_bits(u)) return bits_float(kCanonicalNan);
  return (u << 1) == 0 ? 0.0f : c;
}

// a and b hold 16 elements each.
SB_HD inline float step(Profile profile, const bf16* a, const bf16* b, float c) {
  switch (profile) {
    case Profile::kSm90: return sm90_step(a, b, c);
    case Profile::kGfx942: return gfx942_step(a, b, c);
    case Profile::kIeee: break;
  }
  return ieee_step(a, b, c);
}

}  // namespace sb::arith
