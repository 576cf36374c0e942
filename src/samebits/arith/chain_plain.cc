// Chains of steps by the scalar model itself: the reference the SIMD kernels are compared with, and
// the only kernels where the processor is not x86. Slow (about 0.1 GMAC/s), refuses nothing.
#include <cstdint>

#include "samebits/arith/chain_isa.h"
#include "samebits/arith/step.h"

namespace sb::arith {
namespace {

// One output: a is contiguous, element k of b is b_at(k). The last step is padded with zeros.
template <Profile kProfile, class BAt>
float chain(const bf16* a, BAt b_at, int k, float c) {
  for (int k0 = 0; k0 < k; k0 += kStepProducts) {
    bf16 a16[kStepProducts] = {}, b16[kStepProducts] = {};
    for (int i = 0; i < kStepProducts && k0 + i < k; ++i) {
      a16[i] = a[k0 + i];
      b16[i] = b_at(k0 + i);
    }
    c = step(kProfile, a16, b16, c);
  }
  return c;
}

template <Profile kProfile>
void b_rows(const bf16* const* a, int m, const bf16* const* b, int n, int k, float* c,
            int64_t ldc) {
  for (int r = 0; r < m; ++r) {
    for (int j = 0; j < n; ++j) {
      float& out = c[r * ldc + j];
      out = chain<kProfile>(a[r], [&](int i) { return b[j][i]; }, k, out);
    }
  }
}

template <Profile kProfile>
void b_cols(const bf16* const* a, int m, const bf16* const* b, int n, int k, float* c,
            int64_t ldc) {
  for (int r = 0; r < m; ++r) {
    for (int j = 0; j < n; ++j) {
      float& out = c[r * ldc + j];
      out = chain<kProfile>(a[r], [&](int i) { return b[i][j]; }, k, out);
    }
  }
}

template <Profile kProfile>
constexpr ChainKernels kKernels = {b_rows<kProfile>, b_cols<kProfile>};

}  // namespace

const ChainKernels* plain_kernels(Profile profile) {
  switch (profile) {
    case Profile::kSm90: return &kKernels<Profile::kSm90>;
    case Profile::kGfx942: return &kKernels<Profile::kGfx942>;
    case Profile::kIeee: break;
  }
  return &kKernels<Profile::kIeee>;
}

}  // namespace sb::arith
