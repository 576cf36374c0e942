// Random problems for the chain tests: operand distributions that reach every rule of the step
// models, ragged shapes and pointers of odd alignment. For tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "samebits/base/bf16.h"
#include "samebits/base/rng.h"

namespace sb::arith {

enum class Operands {
  kUniformBits,    // every pattern, with infinities and NaN
  kNarrow,         // exponents within a few powers of two
  kWide,           // exponents over 54 powers of two, now and then an infinity or a NaN
  kZeroHeavy,      // most operands ±0, c often −0
  kNearUnderflow,  // products around 2^−133, where E meets its floor
  kSubnormal,      // subnormal operands and c
  kPowersOfTwo,    // sums that are exact or ties
  kLargeC,         // c far above the products
  kOverflow,       // products and c near 2^128
  kCancelling,     // b repeats itself with the other sign: zero sums of non-zero products
  kSaturating,     // all significands near 2, one sign: the largest integer sums
};
inline constexpr int kOperandKinds = 11;

// One call of a chain kernel. c has rows of ldc; what lies beyond n must stay as it is.
class ChainProblem {
 public:
  ChainProblem(Operands operands, bool by_columns, int rows, int width, int depth, CounterRng& rng)
      : columns(by_columns),
        m(rows),
        n(width),
        k(depth),
        ldc(width + static_cast<int>(rng.below(3))) {
    const int period = operands == Operands::kCancelling ? std::max(1, std::min(8, k / 2)) : 0;
    fill(a_data_, a, m, k, rng, [&](int, int i) {
      return operand(operands, period != 0 ? scrambled(rng, i % period) : rng.next(), true);
    });
    std::vector<bf16> b_values(static_cast<size_t>(n) * k);
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < k; ++i) {
        bf16& x = b_values[static_cast<size_t>(j) * k + i];
        x = operand(operands, rng.next(), false);
        if (period != 0 && (i / period) % 2 == 1) {
          x = b_values[static_cast<size_t>(j) * k + i - period];
          x.bits ^= 0x8000;
        }
      }
    }
    const auto at = [&](int j, int i) { return b_values[static_cast<size_t>(j) * k + i]; };
    if (columns) {
      fill(b_data_, b, k, n, rng, [&](int i, int j) { return at(j, i); });
    } else {
      fill(b_data_, b, n, k, rng, at);
    }
    c.resize(static_cast<size_t>(m) * ldc);
    for (float& x : c) x = accumulator(operands, rng);
  }

  bool columns;
  int m, n, k, ldc;
  std::vector<const bf16*> a, b;
  std::vector<float> c;

 private:
  // Rows with a gap of 0 to 3 elements before each, so that every alignment of 2 bytes occurs.
  template <class Value>
  static void fill(std::vector<bf16>& data, std::vector<const bf16*>& rows, int count, int length,
                   CounterRng& rng, Value value) {
    data.resize(static_cast<size_t>(count) * (length + 3));
    size_t at = 0;
    for (int r = 0; r < count; ++r) {
      at += rng.below(4);
      rows.push_back(data.data() + at);
      for (int i = 0; i < length; ++i) data[at++] = value(r, i);
    }
  }

  // The same word for the same place of every period, so that products pair up and cancel.
  uint32_t scrambled(CounterRng& rng, int place) {
    if (periodic_.size() <= static_cast<size_t>(place)) periodic_.push_back(rng.next());
    return periodic_[static_cast<size_t>(place)];
  }

  static bf16 with_field(uint32_t word, int low, int count) {
    const uint32_t field =
        static_cast<uint32_t>(low) + ((word >> 16) % static_cast<uint32_t>(count));
    return bf16{static_cast<uint16_t>((word & 0x807fu) | (field << 7))};
  }

  static bf16 operand(Operands operands, uint32_t word, bool is_a) {
    switch (operands) {
      case Operands::kUniformBits: return bf16{static_cast<uint16_t>(word >> 16)};
      case Operands::kLargeC:
      case Operands::kCancelling:
      case Operands::kNarrow: return with_field(word, 120, 14);
      case Operands::kWide:
        if (word % 3001 == 0) return bf16{static_cast<uint16_t>(0x7f80 | (word >> 16))};
        return with_field(word, 100, 54);
      case Operands::kZeroHeavy:
        if (word % 5 != 0) return bf16{static_cast<uint16_t>((word >> 16) & 0x8000u)};
        return with_field(word, 110, 20);
      case Operands::kNearUnderflow: return with_field(word, 44, is_a ? 24 : 16);
      case Operands::kSubnormal: return with_field(word, 0, is_a ? 2 : 200);
      case Operands::kPowersOfTwo:
        return bf16{static_cast<uint16_t>(with_field(word, 115, 24).bits & 0xff80u)};
      case Operands::kOverflow: return with_field(word, 180, 14);
      case Operands::kSaturating: return bf16{static_cast<uint16_t>(0x3f7c | (word & 3))};
    }
    return {};
  }

  static float accumulator(Operands operands, CounterRng& rng) {
    const uint32_t word = rng.next(), choice = rng.below(8);
    if (choice == 0) return 0.0f;
    if (choice == 1) return -0.0f;
    const auto float_with_field = [word](int low, int count) {
      const uint32_t field =
          static_cast<uint32_t>(low) + (word >> 9) % static_cast<uint32_t>(count);
      return bits_float((word & 0x807fffffu) | (field << 23));
    };
    switch (operands) {
      case Operands::kUniformBits: return bits_float(word);
      case Operands::kLargeC: return float_with_field(135, 40);
      case Operands::kNearUnderflow: return choice < 6 ? 0.0f : float_with_field(0, 4);
      case Operands::kSubnormal: return float_with_field(0, 70);
      case Operands::kPowersOfTwo:
        return bits_float(float_bits(float_with_field(100, 50)) & 0xff800000u);
      case Operands::kOverflow: return float_with_field(240, 15);
      case Operands::kCancelling: return choice < 6 ? -0.0f : float_with_field(100, 40);
      case Operands::kZeroHeavy: return choice < 6 ? -0.0f : float_with_field(0, 140);
      // Just below 2^−1: the exponent of the products, so that their sum and c overflow 2^31.
      case Operands::kSaturating: return bits_float(0x3effff00u | (word & 0xffu));
      default: return float_with_field(115, 20);
    }
  }

  std::vector<uint32_t> periodic_;
  std::vector<bf16> a_data_, b_data_;
};

}  // namespace sb::arith
