// Synthetic weights: every value is a function of (seed, tensor name, element index) and of nothing
// else, so a 60 GB model is a few bytes of JSON, any slice of it can be made anywhere, and every
// machine makes the same bits. Integers come from Philox4x32-10; the float work is single IEEE
// operations.
//
//   block  = Philox4x32-10(counter = (index low, index high, 0, 0), key = XXH64(name, seed))
//   normal = fp32(Σ of the four 16-bit halves of words 0 and 1 − 131070) · fp32(σ/37837)
//            (a sum of four uniforms; 37837 is its standard deviation, its reach is 3.46 σ)
//   U[a,b] = a + (b − a)·u, u = (word 2 >> 8)·2^−24, product and sum rounded to fp32 one by one
//
//   matrix [N, K]: normal with σ = 1/√K; in four outlier input channels times 32
//   embedding:     normal with σ = 5/√hidden (3 leaves every logit of the small presets below 20)
//   q and k norms: √(2/√D)·U[0.75, 1.25]; other norms U[0.5, 1.5]; layer_scalar U[0.3, 0.9]
//
// and one R (fp32 → bf16) at the end. Constants to retune are below, in one place.
#pragma once

#include <string>

#include "samebits/base/bf16.h"
#include "samebits/model/tensor_names.h"

namespace sb {

struct SyntheticConstants {
  static constexpr const char* kScheme =
      "philox4x32-10.v1";  // changes with any constant or formula
  static constexpr double kSumDeviation = 37837;
  static constexpr int kOutliers = 4;           // outlier input channels a matrix
  static constexpr float kOutlierGain = 32;     // a power of two: scaling stays exact
  static constexpr double kEmbeddingSigma = 5;  // over √hidden
  static constexpr float kQkLow = 0.75f, kQkHigh = 1.25f;
  static constexpr float kNormLow = 0.5f, kNormHigh = 1.5f;
  static constexpr float kScalarLow = 0.3f, kScalarHigh = 0.9f;
};

class SyntheticTensor {
 public:
  SyntheticTensor(const ExpectedTensor& tensor, uint64_t seed);
  // Elements [first, first + count) in row-major order.
  void fill(bf16* out, int64_t first, int64_t count) const;
  // Channel j of a matrix: the first j of next = mix64(key + n) mod K, n = 1, 2, …, not yet taken.
  const int64_t* outliers() const { return outliers_; }
  int num_outliers() const { return num_outliers_; }

 private:
  bool uniform_ = false;
  uint64_t key_ = 0;
  float scale_ = 1, low_ = 0, width_ = 0;
  int64_t columns_ = 1;
  int num_outliers_ = 0;
  int64_t outliers_[SyntheticConstants::kOutliers] = {};
};

}  // namespace sb
