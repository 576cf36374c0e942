// The sweeps behind the function tests, and tests of the sweeps themselves.
#include "samebits/arith/function_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "samebits/base/bits.h"
#include "samebits/base/digest.h"

namespace sb::arith {

double ulp_error(float y, double truth) {
  constexpr double kDisagree = 1e30;
  if (std::isnan(truth)) return float_bits(y) == kCanonicalNan ? 0 : kDisagree;
  if (std::isnan(y)) return kDisagree;
  if (std::isinf(truth)) return static_cast<double>(y) == truth ? 0 : kDisagree;
  // An infinite result stands for 2^128, where rounding to nearest has the overflow threshold.
  const double value = std::isinf(y) ? std::copysign(0x1p128, y) : static_cast<double>(y);
  int exponent = 0;
  std::frexp(truth, &exponent);
  const int lowest = truth == 0 ? -126 : std::clamp(exponent - 1, -126, 127);
  if (std::isinf(y) && std::fabs(truth) >= 0x1p128) return 0;
  return std::fabs(value - truth) * std::ldexp(1.0, 23 - lowest);
}

double relative_error(float y, double truth) {
  if (truth == 0 || !std::isfinite(truth)) return ulp_error(y, truth);
  return std::fabs(static_cast<double>(y) - truth) / std::fabs(truth);
}

void parallel(int64_t n, const std::function<void(int64_t)>& body) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<int64_t> next{0};
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < cores; ++t) {
    threads.emplace_back([&] {
      for (int64_t i = next++; i < n; i = next++) body(i);
    });
  }
}

Sweep sweep(Apply apply, Reference reference, double (*error)(float, double), uint64_t stride,
            uint64_t first, uint64_t last) {
  constexpr int kBlock = 4096;
  const auto count = static_cast<int64_t>((last - first) / stride + 1);
  Sweep total;
  std::mutex mutex;
  parallel((count + kBlock - 1) / kBlock, [&](int64_t block) {
    std::vector<float> x(kBlock), y(kBlock);
    const int n = static_cast<int>(std::min<int64_t>(kBlock, count - block * kBlock));
    for (int i = 0; i < n; ++i) {
      const uint64_t index = static_cast<uint64_t>(block) * kBlock + static_cast<uint64_t>(i);
      x[i] = bits_float(static_cast<uint32_t>(first + index * stride));
    }
    apply(x.data(), y.data(), n);
    Sweep part;
    for (int i = 0; i < n; ++i) {
      part.hash += digest_element(float_bits(y[i]), float_bits(x[i]));
      if (reference == nullptr) continue;
      const double truth = reference(static_cast<double>(x[i]));
      const double e = error(y[i], truth);
      if (e > part.worst) part.worst = e, part.worst_input = float_bits(x[i]);
      part.misrounded += ulp_error(y[i], truth) > 0.5;
    }
    const std::lock_guard lock(mutex);
    total.hash += part.hash;
    total.misrounded += part.misrounded;
    if (part.worst > total.worst ||
        (part.worst == total.worst && part.worst_input < total.worst_input)) {
      total.worst = part.worst, total.worst_input = part.worst_input;
    }
  });
  return total;
}

std::string golden_hash(const std::string& function, const std::string& which) {
  std::ifstream file(std::string(SB_SOURCE_DIR) + "/goldens/functions.json");
  if (!file) return "";
  const nlohmann::json goldens = nlohmann::json::parse(file);
  return goldens.at("functions").value(function, nlohmann::json::object()).value(which, "");
}

void expect_golden(const std::string& function, const std::string& which, const Sweep& got) {
  std::printf("%s %s %s worst %.5g at %08x (%a), not nearest: %lld\n", function.c_str(),
              which.c_str(), hex64(got.hash).c_str(), got.worst, got.worst_input,
              static_cast<double>(bits_float(got.worst_input)),
              static_cast<long long>(got.misrounded));
  EXPECT_EQ(golden_hash(function, which), hex64(got.hash))
      << function << " (" << which << ") gives other bits than goldens/functions.json says";
}

namespace {

TEST(FunctionTesting, UlpErrorAtTheEdges) {
  EXPECT_EQ(ulp_error(1.0f, 1.0), 0);
  EXPECT_EQ(ulp_error(1.0f, 1.0 + 0x1p-24), 0.5);
  EXPECT_EQ(ulp_error(1.0f, 1.0 - 0x1p-25), 0.5);
  EXPECT_EQ(ulp_error(0x1p-149f, 0x1p-150), 0.5);
  EXPECT_EQ(ulp_error(0.0f, 0x1p-151), 0.25);
  EXPECT_EQ(ulp_error(bits_float(0x7f800000u), 0x1p200), 0);
  EXPECT_EQ(ulp_error(bits_float(0x7f800000u), 0x1.ffffffp127), 0.5);
  EXPECT_EQ(ulp_error(bits_float(kCanonicalNan), std::nan("")), 0);
  EXPECT_GT(ulp_error(bits_float(0x7fc00000u), std::nan("")), 1e6);
  EXPECT_GT(ulp_error(1.0f, std::nan("")), 1e6);
  EXPECT_GT(ulp_error(bits_float(kCanonicalNan), 1.0), 1e6);
}

TEST(FunctionTesting, SweepVisitsEachPatternOnceAndFindsTheWorst) {
  const Apply apply = [](const float* x, float* y, int n) {
    for (int i = 0; i < n; ++i) y[i] = float_bits(x[i]) == 0x3f800123u ? x[i] + 0x1p-22f : x[i];
  };
  const Sweep got =
      sweep(apply, [](double x) { return x; }, ulp_error, 1, 0x3f800000u, 0x3f80ffffu);
  EXPECT_EQ(got.worst, 2);
  EXPECT_EQ(got.worst_input, 0x3f800123u);
  EXPECT_EQ(got.misrounded, 1);
  uint64_t hash = 0;
  for (uint32_t u = 0x3f800000u; u <= 0x3f80ffffu; ++u) {
    hash += digest_element(u == 0x3f800123u ? u + 2 : u, u);
  }
  EXPECT_EQ(got.hash, hash);
}

}  // namespace
}  // namespace sb::arith
