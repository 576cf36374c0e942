#include "samebits/gate/operator_case_build.h"

#include <algorithm>
#include <cstring>

namespace sb {
namespace {

// Bell-shaped with σ = 1: the sum of four 16-bit uniforms has σ = 37837.
float spread(uint64_t word) {
  int32_t sum = -131070;
  for (int i = 0; i < 4; ++i) sum += static_cast<int32_t>(word >> (16 * i) & 0xffff);
  return static_cast<float>(sum) * (1.0f / 37837.0f);
}

}  // namespace

View CasePlace::view(int buffer, int64_t rows) const {
  View v = (*buffers)[static_cast<size_t>(buffer)].shape;
  v.ptr = base[static_cast<size_t>(buffer)];
  v.device = device;
  return rows < 0 ? v : rows_of(v, 0, rows);
}

int CaseBuilder::add(const char* name, Dtype dtype, std::initializer_list<int64_t> shape,
                     CaseRole role) {
  CaseBuffer b;
  b.name = name;
  b.shape = make_view(nullptr, dtype, shape);
  b.role = role;
  b.bytes.assign(static_cast<size_t>(b.shape.bytes()), 0xff);
  c_.buffers.push_back(std::move(b));
  return static_cast<int>(c_.buffers.size()) - 1;
}

int CaseBuilder::random(const char* name, std::initializer_list<int64_t> shape, float sigma,
                        float mean) {
  const int i = add(name, Dtype::kBf16, shape, CaseRole::kInput);
  bf16* to = reinterpret_cast<bf16*>(c_.buffers.back().bytes.data());
  const int64_t n = c_.buffers.back().shape.numel(), chunk = 1 << 16;
  const uint64_t key = mix64(seed_ * 1000003 + static_cast<uint64_t>(i));
  const Status filled = pool_.parallel_for((n + chunk - 1) / chunk, [&](int64_t c) {
    for (int64_t e = c * chunk; e < std::min(n, (c + 1) * chunk); ++e) {
      to[e] = round_bf16(mean + sigma * spread(mix64(key + static_cast<uint64_t>(e))));
    }
  });
  SB_ASSERT(filled.has_value(), "filling a buffer cannot fail");
  return i;
}

int CaseBuilder::floats(const char* name, std::initializer_list<int64_t> shape, float sigma) {
  const int i = add(name, Dtype::kF32, shape, CaseRole::kInput);
  float* to = reinterpret_cast<float*>(c_.buffers.back().bytes.data());
  const uint64_t key = mix64(seed_ * 1000003 + static_cast<uint64_t>(i));
  for (int64_t e = 0; e < c_.buffers.back().shape.numel(); ++e) {
    to[e] = sigma * spread(mix64(key + static_cast<uint64_t>(e)));
  }
  return i;
}

int CaseBuilder::ints(const char* name, const std::vector<int32_t>& values,
                      std::initializer_list<int64_t> shape) {
  const int i = add(name, Dtype::kI32, shape, CaseRole::kInput);
  SB_ASSERT(c_.buffers.back().bytes.size() == values.size() * 4, "a table of another shape");
  std::memcpy(c_.buffers.back().bytes.data(), values.data(), values.size() * 4);
  return i;
}

int CaseBuilder::words(const char* name, int64_t count) {
  const int i = add(name, Dtype::kU64, {count}, CaseRole::kInput);
  for (int64_t e = 0; e < count; ++e) {
    const uint64_t w = mix64(seed_ + static_cast<uint64_t>(e) * 77 + 5);
    std::memcpy(c_.buffers.back().bytes.data() + e * 8, &w, 8);
  }
  return i;
}

int CaseBuilder::bytes(const char* name, const std::vector<uint8_t>& values) {
  const int i = add(name, Dtype::kU8, {static_cast<int64_t>(values.size())}, CaseRole::kInput);
  c_.buffers.back().bytes = values;
  return i;
}

int CaseBuilder::output(const char* name, Dtype dtype, std::initializer_list<int64_t> shape,
                        CaseRole role) {
  return add(name, dtype, shape, role);
}

}  // namespace sb
