// What the SIMD kernels call back: the scalar model for lanes they do not handle, and scratch.
#include <cstddef>
#include <memory>
#include <new>

#include "samebits/arith/chain_simd.h"
#include "samebits/arith/step.h"

namespace sb::arith {
namespace {

// Exact: the values were bf16 before.
template <int kCount>
struct Narrowed {
  explicit Narrowed(const float* x) {
    for (int i = 0; i < kCount; ++i) v[i].bits = static_cast<uint16_t>(float_bits(x[i]) >> 16);
  }
  bf16 v[kCount];
};

struct AlignedDelete {
  void operator()(RowStep* p) const { ::operator delete(p, std::align_val_t{64}); }
};

}  // namespace

float sm90_step_widened(const float* a, const float* b, float c) {
  return sm90_step(Narrowed<kStepProducts>(a).v, Narrowed<kStepProducts>(b).v, c);
}

float gfx942_group_widened(const float* a, const float* b, float c) {
  return gfx942_group(Narrowed<kGfx942Group>(a).v, Narrowed<kGfx942Group>(b).v, c);
}

RowStep* row_step_scratch(int64_t count) {
  thread_local std::unique_ptr<RowStep, AlignedDelete> buffer;
  thread_local int64_t capacity = 0;
  if (count > capacity) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(RowStep);
    buffer.reset(static_cast<RowStep*>(::operator new(bytes, std::align_val_t{64})));
    capacity = count;
  }
  return buffer.get();
}

}  // namespace sb::arith
