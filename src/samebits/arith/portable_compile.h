// Every function of the portable header set, called from one place that g++, nvcc and clang HIP all
// compile unchanged. tools/compile_portable.py compiles it for each and scans what came out; the
// CUDA program of portable_compile.cu also runs it, and its hashes must be those of
// goldens/functions.json. A new function in arith/ is added here.
#pragma once

#include <cstdint>

#include "samebits/arith/exp.h"
#include "samebits/arith/exp2.h"
#include "samebits/arith/fp.h"
#include "samebits/arith/gelu.h"
#include "samebits/arith/log.h"
#include "samebits/arith/sincos.h"
#include "samebits/arith/step.h"
#include "samebits/arith/tanh.h"
#include "samebits/arith/tree.h"
#include "samebits/base/bf16.h"
#include "samebits/base/bits.h"
#include "samebits/base/digest.h"
#include "samebits/base/platform.h"
#include "samebits/base/rng.h"

namespace sb::arith {

// A one-argument function and the inputs, as bit patterns, over which its golden hash is taken.
struct PortableFunction {
  const char* name;
  uint32_t first, last;
};

inline constexpr PortableFunction kPortableFunctions[] = {
    {"exp", 0, 0xffffffffu},       {"exp2_nonpos", 0x80000000u, 0xffffffffu},
    {"tanh", 0, 0xffffffffu},      {"softcap30", 0, 0xffffffffu},
    {"softcap30", 0, 0xffffffffu},  // without a division: the same bits
    {"gelu_tanh", 0, 0xffffffffu}, {"log", 0, 0xffffffffu},
    {"sin", 0, 0x497fffffu},       {"cos", 0, 0x497fffffu},
};
inline constexpr int kPortableFunctionCount = 9;
inline constexpr uint32_t kPortableMixed = 65536;  // inputs of portable_mixed in its golden hash

SB_HD inline float portable_call(int function, float x) {
  float sine, cosine;
  switch (function) {
    case 0: return exp(x);
    case 1: return exp2_nonpos(x);
    case 2: return tanh(x);
    case 3: return softcap(x, 30.0f);
    case 4: return softcap30(x);
    case 5: return gelu_tanh(x);
    case 6: return log(x);
    default: sincos(x, sine, cosine); return function == 7 ? sine : cosine;
  }
}

SB_HD inline uint64_t portable_digest(int function, uint32_t input) {
  return digest_element(float_bits(portable_call(function, bits_float(input))), input);
}

// What takes more than one number: trees, matrix steps, square root, R, on random operands.
SB_HD inline uint64_t portable_mixed(uint32_t input) {
  float values[256];
  for (uint32_t i = 0; i < 64; ++i) {
    const Philox4 random = philox4x32_10(Philox4{{input, i, 0, 0}}, 0x73616d6562697473u);
    // Forty binades, both signs: sums depend on their order and rarely cancel to 0.
    for (int j = 0; j < 4; ++j) {
      values[4 * i + j] = bits_float((random.v[j] & 0xbfffffffu) | 0x38000000u);
    }
  }
  bf16 a[16], b[16];
  for (int k = 0; k < 16; ++k) {
    a[k] = round_bf16(values[k]);
    b[k] = round_bf16(values[16 + k]);
  }
  const float c = values[40];
  uint64_t sum = 0, index = uint64_t{input} * 16;
  sum += digest_element(float_bits(sm90_step(a, b, c)), index++);
  sum += digest_element(float_bits(gfx942_step(a, b, c)), index++);
  sum += digest_element(float_bits(ieee_step(a, b, c)), index++);
  sum += digest_element(float_bits(sqrt(abs_value(c))), index++);
  sum += digest_element(float_bits(select_max(values[41], values[42])), index++);
  sum +=
      digest_element(float_bits(div(add(values[43], 1.0f), sqrt(abs_value(values[44])))), index++);
  sum += digest_element(float_bits(rounded(values[45])), index++);
  float copy[256];
  for (int i = 0; i < 256; ++i) copy[i] = values[i];
  sum += digest_element(float_bits(tree64(copy)), index++);
  for (int i = 0; i < 256; ++i) copy[i] = values[i];
  sum += digest_element(float_bits(tree256(copy)), index++);
  for (int i = 0; i < 256; ++i) copy[i] = values[i];
  sum += digest_element(float_bits(tree_adjacent<256>(copy)), index++);
  return sum;
}

}  // namespace sb::arith
