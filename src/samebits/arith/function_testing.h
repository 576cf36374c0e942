// Sweeps of one-argument fp32 functions for the tests: over every s-th bit pattern, on all cores,
// with the largest error against a double reference and an order-free hash of the result bits. The
// hashes are committed in goldens/functions.json; another platform that gives the same hash over
// all 2^32 inputs has the same function.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace sb::arith {

// Fills y[i] = f(x[i]), i < n; a loop over the function under test, so that it is tested
// vectorised.
using Apply = void (*)(const float* x, float* y, int n);
// The true value, good to about 2^-50.
using Reference = double (*)(double x);

inline constexpr uint64_t kSampleStride = 1021;  // prime: low bits vary too; 4.2 million inputs

struct Sweep {
  uint64_t hash = 0;         // sum of digest_element(result bits, input bits)
  double worst = 0;          // largest error, in the measure asked for
  uint32_t worst_input = 0;  // bits
  int64_t misrounded = 0;    // results that are not the fp32 nearest to the reference
};

// |y - truth| in units of the last place of the fp32 numbers at truth (2^-149 at least). 0 where
// both are the same infinity or y is the canonical NaN of a NaN truth; huge where they disagree on
// that.
double ulp_error(float y, double truth);
double relative_error(float y, double truth);

// Inputs first, first + stride, ... up to last, as bit patterns. Without a reference only the hash.
Sweep sweep(Apply apply, Reference reference, double (*error)(float, double), uint64_t stride,
            uint64_t first = 0, uint64_t last = 0xffffffffu);

// Runs body(i) for i < n on all cores.
void parallel(int64_t n, const std::function<void(int64_t)>& body);

// The hash committed for (function, "all" or "sampled"), or "" if there is none.
std::string golden_hash(const std::string& function, const std::string& which);

// Asserts the hash and prints the sweep's numbers into the test log.
void expect_golden(const std::string& function, const std::string& which, const Sweep& got);

}  // namespace sb::arith
