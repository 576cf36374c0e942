// View: a typed, strided window on memory of some device. It owns nothing, and only operators (and
// Device copies) may look behind its pointer: on a guarded or GPU device a host access faults.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "samebits/base/bf16.h"
#include "samebits/base/result.h"

namespace sb {

enum class Dtype : uint8_t { kBf16, kF32, kI32, kU64, kF64, kU8 };

constexpr int64_t dtype_bytes(Dtype t) {
  switch (t) {
    case Dtype::kBf16: return 2;
    case Dtype::kF32: return 4;
    case Dtype::kI32: return 4;
    case Dtype::kU64: return 8;
    case Dtype::kF64: return 8;
    case Dtype::kU8: return 1;
  }
  return 0;
}

constexpr const char* dtype_name(Dtype t) {
  constexpr const char* kNames[] = {"bf16", "f32", "i32", "u64", "f64", "u8"};
  return kNames[static_cast<int>(t)];
}

template <class T>
struct DtypeOf;
// clang-format off
template <> struct DtypeOf<bf16> { static constexpr Dtype value = Dtype::kBf16; };
template <> struct DtypeOf<float> { static constexpr Dtype value = Dtype::kF32; };
template <> struct DtypeOf<int32_t> { static constexpr Dtype value = Dtype::kI32; };
template <> struct DtypeOf<uint64_t> { static constexpr Dtype value = Dtype::kU64; };
template <> struct DtypeOf<double> { static constexpr Dtype value = Dtype::kF64; };
template <> struct DtypeOf<uint8_t> { static constexpr Dtype value = Dtype::kU8; };
// clang-format on

struct DeviceId {
  enum Kind : uint8_t { kCpu, kCuda, kHip } kind = kCpu;
  int index = 0;
  friend constexpr bool operator==(DeviceId, DeviceId) = default;
};

struct View {
  void* ptr = nullptr;
  Dtype dtype = Dtype::kU8;
  int rank = 0;
  std::array<int64_t, 4> shape{};   // elements
  std::array<int64_t, 4> stride{};  // elements
  DeviceId device{};

  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return rank == 0 ? 0 : n;
  }
  int64_t bytes() const { return numel() * dtype_bytes(dtype); }
  bool contiguous() const {
    int64_t expect = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (shape[i] != 1 && stride[i] != expect) return false;
      expect *= shape[i];
    }
    return true;
  }
  explicit operator bool() const { return ptr != nullptr; }

  // Typed pointer, for operators only.
  template <class T>
  T* as() const {
    SB_ASSERT(dtype == DtypeOf<T>::value, "View::as with another dtype");
    return static_cast<T*>(ptr);
  }
};

// A contiguous view of `shape` at `ptr`.
inline View make_view(void* ptr, Dtype dtype, std::initializer_list<int64_t> shape,
                      DeviceId device = {}) {
  SB_ASSERT(shape.size() >= 1 && shape.size() <= 4, "views have rank 1 to 4");
  View v{ptr, dtype, static_cast<int>(shape.size()), {}, {}, device};
  int i = 0;
  for (int64_t s : shape) v.shape[i++] = s;
  int64_t stride = 1;
  for (i = v.rank - 1; i >= 0; --i) {
    v.stride[i] = stride;
    stride *= v.shape[i];
  }
  return v;
}

// Rows [first, first + count) of a view along its first dimension.
inline View rows_of(View v, int64_t first, int64_t count) {
  SB_ASSERT(first >= 0 && count >= 0 && first + count <= v.shape[0], "rows_of out of range");
  v.ptr = static_cast<char*>(v.ptr) + first * v.stride[0] * dtype_bytes(v.dtype);
  v.shape[0] = count;
  return v;
}

}  // namespace sb
