// What the tests of operators share: tensors with poisoned gaps between rows, a Ctx with everything
// it borrows, loops over profiles and instruction sets, and expect_same_bits, the one comparison.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "samebits/arith/chain.h"
#include "samebits/base/bits.h"
#include "samebits/base/rng.h"
#include "samebits/base/thread_pool.h"
#include "samebits/ops/ctx.h"

namespace sb::ops_testing {

inline uint32_t bits_of(bf16 x) { return x.bits; }
inline uint32_t bits_of(float x) { return float_bits(x); }
inline uint32_t bits_of(uint32_t x) { return x; }
inline uint32_t bits_of(int32_t x) { return static_cast<uint32_t>(x); }

// Owns a tensor of rank 1 to 3. Each row of the first dimension is followed by `gap` elements that
// no operator may touch; they, and everything before it is written, hold 0xff bytes (NaN).
template <class T>
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::initializer_list<int64_t> shape, int64_t gap = 0) {
    view_ = make_view(nullptr, DtypeOf<T>::value, shape);
    if (view_.rank > 1) view_.stride[0] += gap;
    const int64_t total = view_.shape[0] * view_.stride[0];
    data_.resize(static_cast<size_t>(std::max<int64_t>(total, 1)));
    std::memset(static_cast<void*>(data_.data()), 0xff, data_.size() * sizeof(T));
  }

  View view() const {
    View v = view_;
    v.ptr = const_cast<T*>(data_.data());
    return v;
  }
  View rows(int64_t first, int64_t count) const { return rows_of(view(), first, count); }
  T* data() { return data_.data(); }
  const T* data() const { return data_.data(); }
  T* row(int64_t i) { return data_.data() + i * view_.stride[0]; }
  const T* row(int64_t i) const { return data_.data() + i * view_.stride[0]; }
  T& operator()(int64_t i) { return row(i)[0]; }
  T& operator()(int64_t i, int64_t j) { return row(i)[j]; }
  T& operator()(int64_t i, int64_t j, int64_t k) { return row(i)[j * view_.stride[1] + k]; }
  const T& operator()(int64_t i) const { return row(i)[0]; }
  const T& operator()(int64_t i, int64_t j) const { return row(i)[j]; }
  const T& operator()(int64_t i, int64_t j, int64_t k) const {
    return row(i)[j * view_.stride[1] + k];
  }
  int64_t size(int dimension) const { return view_.shape[dimension]; }
  int64_t row_size() const { return view_.numel() / std::max<int64_t>(view_.shape[0], 1); }

  // Logical elements, row by row, without the gaps.
  std::vector<T> values() const {
    std::vector<T> out;
    for (int64_t i = 0; i < view_.shape[0]; ++i) out.insert(out.end(), row(i), row(i) + row_size());
    return out;
  }
  void set_row(int64_t i, const std::vector<T>& values) {
    std::copy(values.begin(), values.end(), row(i));
  }
  bool gaps_untouched() const {
    T poison;
    std::memset(static_cast<void*>(&poison), 0xff, sizeof(T));
    for (int64_t i = 0; i < view_.shape[0]; ++i) {
      for (int64_t j = row_size(); j < view_.stride[0]; ++j) {
        if (bits_of(row(i)[j]) != bits_of(poison)) return false;
      }
    }
    return true;
  }

 private:
  View view_;
  std::vector<T> data_;
};

// Compares integers, never floats: −0 is not +0, and a NaN equals only its own bits.
template <class A, class B>
bool expect_same_bits(const A& actual, const B& expected, const std::string& what) {
  EXPECT_EQ(std::size(actual), std::size(expected)) << what;
  if (std::size(actual) != std::size(expected)) return false;
  int64_t differing = 0, first = -1;
  for (size_t i = 0; i < std::size(actual); ++i) {
    if (bits_of(actual[i]) == bits_of(expected[i])) continue;
    if (differing++ == 0) first = static_cast<int64_t>(i);
  }
  if (differing == 0) return true;
  ADD_FAILURE() << what << ": " << differing << " of " << std::size(actual)
                << " elements differ, first at " << first << ": 0x" << std::hex
                << bits_of(actual[static_cast<size_t>(first)]) << ", expected 0x"
                << bits_of(expected[static_cast<size_t>(first)]);
  return false;
}
inline bool expect_same_bits(float actual, float expected, const std::string& what) {
  return expect_same_bits(std::vector<float>{actual}, std::vector<float>{expected}, what);
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](T x, T y) { return bits_of(x) == bits_of(y); });
}

// One rank of `ranks`; the tests play all ranks in turn and lay their parts side by side
// themselves.
class FakeParallel : public Parallel {
 public:
  explicit FakeParallel(int ranks) : ranks_(ranks) {}
  int size() const override { return ranks_; }

 private:
  int ranks_;
};

struct Arithmetic {
  Profile profile = Profile::kSm90;
  Isa isa = Isa::kPlain;
  const char* arch = kCpuArch;
  std::string name() const {
    return std::string(profile_name(profile)) + " on " + (arch == kCpuArch ? isa_name(isa) : arch);
  }
};

// Everything an operator needs to run on the CPU.
struct Rig {
  explicit Rig(Arithmetic arithmetic = {Profile::kSm90, arith::best_isa()}, int threads = 1,
               int ranks = 1)
      : device(make_cpu_device()), pool(threads), parallel(ranks) {
    ctx.exec =
        Exec{device.get(), nullptr, &pool, arithmetic.profile, arithmetic.isa, arithmetic.arch};
    ctx.records = &records;
    ctx.parallel = &parallel;
    ctx.kv_epoch = 7;
  }
  std::unique_ptr<Device> device;
  ThreadPool pool;
  FakeParallel parallel;
  Records records;
  Ctx ctx;
};

inline const Site kNowhere{{Tap::kAttnNorm, 0}, LayerType::kSliding};

// Every (profile, instruction set) this machine can run, and the emulated GPUs with each profile
// they have; says how many pairs it cannot run.
inline std::vector<Arithmetic> arithmetics() {
  std::vector<Arithmetic> all;
  int absent = 0;
  for (const Profile p : kProfiles) {
    for (const Isa i : kIsas) {
      if (arith::chain_kernels(p, i)) {
        all.push_back({p, i});
      } else {
        ++absent;
      }
    }
  }
  const Isa best = arith::best_isa();
  all.push_back({Profile::kSm90, best, kEmulatedSm90a});
  all.push_back({Profile::kIeee, best, kEmulatedSm90a});
  all.push_back({Profile::kGfx942, best, kEmulatedGfx942});
  all.push_back({Profile::kIeee, best, kEmulatedGfx942});
  if (absent > 0) std::cout << absent << " of 9 (profile, isa) pairs skipped: not on this CPU\n";
  return all;
}

// Normal-looking values of spread `scale`: the sum of four uniforms, rounded to bf16.
inline bf16 random_bf16(CounterRng& rng, float scale) {
  const float u = rng.uniform() + rng.uniform() + rng.uniform() + rng.uniform() - 2.0f;
  return round_bf16(u * 1.732f * scale);
}

inline Tensor<bf16> random_tensor(uint64_t seed, std::initializer_list<int64_t> shape,
                                  float scale = 1.0f, int64_t gap = 0) {
  Tensor<bf16> t(shape, gap);
  CounterRng rng(seed, 0x7e57);
  for (int64_t i = 0; i < t.size(0); ++i) {
    for (int64_t j = 0; j < t.row_size(); ++j) t.row(i)[j] = random_bf16(rng, scale);
  }
  return t;
}

inline Tensor<int32_t> int_tensor(const std::vector<int32_t>& values) {
  Tensor<int32_t> t({static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.data());
  return t;
}

inline std::vector<bf16> bf16s(const std::vector<float>& values) {
  std::vector<bf16> out;
  for (const float v : values) out.push_back(round_bf16(v));
  return out;
}

// All result bits of one row, whatever their types.
using RowBits = std::vector<uint32_t>;
template <class T>
void append_bits(RowBits& to, const T* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to.push_back(bits_of(from[i]));
}

// run(rig, first, count) executes an operator on rows [first, first + count) of one fixed input and
// returns the bits of each. Every row alone has to equal the row in every batch, on every
// instruction set and number of threads.
using RowRun = std::function<std::vector<RowBits>(Rig&, int first, int count)>;

inline void expect_rows_do_not_depend_on_the_batch(const RowRun& run) {
  constexpr int kCounts[] = {1, 2, 7, 33, 64, 65};
  constexpr int kMost = 65;
  std::vector<RowBits> alone;
  Profile profile{};
  for (const Arithmetic& arithmetic : arithmetics()) {
    if (alone.empty() || arithmetic.profile != profile) {
      profile = arithmetic.profile;
      alone.clear();
      Rig rig({profile, Isa::kPlain});
      for (int r = 0; r < kMost; ++r) alone.push_back(run(rig, r, 1).at(0));
    }
    const bool best = arithmetic.isa == arith::best_isa();
    for (const int threads : best ? std::vector<int>{1, 2, 7} : std::vector<int>{2}) {
      Rig rig(arithmetic, threads);
      for (const int count : kCounts) {
        const int first = kMost - count;  // other neighbours and another place than alone
        const auto rows = run(rig, first, count);
        ASSERT_EQ(static_cast<int>(rows.size()), count);
        for (int r = 0; r < count; ++r) {
          if (!expect_same_bits(rows[static_cast<size_t>(r)],
                                alone[static_cast<size_t>(first) + static_cast<size_t>(r)],
                                arithmetic.name() + ", " + std::to_string(threads) +
                                    " threads, row " + std::to_string(first + r) + " of " +
                                    std::to_string(count))) {
            return;
          }
        }
      }
    }
  }
}

// Success, or the text of the refusal.
inline testing::AssertionResult ran(const Status& status) {
  if (status) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.error().text();
}

// A refusal with this code, one of whose reasons holds `words`.
inline testing::AssertionResult refused(const Status& status, const std::string& words,
                                        Code code = Code::kRefused) {
  if (status) return testing::AssertionFailure() << "was not refused";
  if (status.error().code != code) {
    return testing::AssertionFailure() << "refused with " << code_name(status.error().code);
  }
  for (const auto& reason : status.error().reasons) {
    if (reason.find(words) != std::string::npos) return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << "no reason says '" << words << "': " << status.error().text();
}

}  // namespace sb::ops_testing
