#include "samebits/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <thread>

#include "samebits/base/fp_env.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sb {
namespace {

using std::chrono::microseconds;

class ThreadPoolSizes : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolSizes, EveryIndexOnceEveryTime) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.size(), GetParam());
  for (int64_t n : {0, 1, 2, 3, 7, 64, 1000}) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
      ASSERT_TRUE(pool.parallel_for(n, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; }));
      for (auto& count : seen) ASSERT_EQ(count, 1);
    }
  }
}

TEST_P(ThreadPoolSizes, PlainWritesAreSeenByTheCaller) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> out(500);
  for (int64_t round = 1; round <= 100; ++round) {
    ASSERT_TRUE(pool.parallel_for(500, [&](int64_t i) { out[static_cast<size_t>(i)] += i; }));
    for (int64_t i = 0; i < 500; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], i * round);
  }
}

TEST_P(ThreadPoolSizes, CallersFromSeveralThreads) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> total{0};
  std::vector<std::jthread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        std::vector<int> mine(37);
        ASSERT_TRUE(pool.parallel_for(37, [&](int64_t i) { mine[static_cast<size_t>(i)] = 1; }));
        for (int x : mine) total += x;
      }
    });
  }
  callers.clear();
  EXPECT_EQ(total, 4 * 50 * 37);
}

TEST_P(ThreadPoolSizes, MayBeDroppedUnused) { ThreadPool pool(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolSizes, testing::Values(1, 2, 7));

TEST(ThreadPool, NothingToDoRunsNothing) {
  ThreadPool pool(2);
  EXPECT_TRUE(pool.parallel_for(0, [](int64_t) { FAIL(); }));
  EXPECT_TRUE(pool.parallel_for(-3, [](int64_t) { FAIL(); }));
}

TEST(ThreadPool, ZeroMeansAllCores) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.size(), static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

TEST(ThreadPool, WorkersTakePart) {
  ThreadPool pool(2);
  std::atomic<int> inside{0};
  // Each index waits for the other: one thread alone would never finish.
  ASSERT_TRUE(pool.parallel_for(2, [&](int64_t) {
    ++inside;
    while (inside < 2) std::this_thread::sleep_for(microseconds(50));
  }));
}

TEST(FpEnv, RoundingModeIsChecked) {
  EXPECT_TRUE(check_fp_env());
  std::fesetround(FE_UPWARD);
  const auto status = check_fp_env();
  std::fesetround(FE_TONEAREST);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kEnvironment);
  EXPECT_NE(status.error().text().find("rounding mode"), std::string::npos);
}

#if defined(__x86_64__)

constexpr unsigned kFtz = 0x8000, kDaz = 0x0040;

// Sets bits of the calling thread's MXCSR for a scope.
class Mxcsr {
 public:
  explicit Mxcsr(unsigned bits) : before_(_mm_getcsr()) { _mm_setcsr(before_ | bits); }
  ~Mxcsr() { _mm_setcsr(before_); }
  Mxcsr(const Mxcsr&) = delete;
  Mxcsr& operator=(const Mxcsr&) = delete;

 private:
  unsigned before_;
};

TEST(FpEnv, FlushingIsNamed) {
  for (auto [bits, name] : {std::pair{kFtz, "FTZ"}, std::pair{kDaz, "DAZ"}}) {
    Mxcsr scope(bits);
    const auto status = check_fp_env();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kEnvironment);
    EXPECT_NE(status.error().text().find(name), std::string::npos) << name;
  }
  EXPECT_TRUE(check_fp_env());
}

TEST(ThreadPool, FlushingInTheCallerIsRefused) {
  for (int threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    for (unsigned bits : {kFtz, kDaz}) {
      for (int64_t n : {1, 50}) {
        Mxcsr scope(bits);
        EXPECT_FALSE(pool.parallel_for(n, [](int64_t) {}));
      }
    }
    EXPECT_TRUE(pool.parallel_for(50, [](int64_t) {})) << "and only then";
  }
}

TEST(ThreadPool, FlushingInAWorkerIsRefused) {
  std::unique_ptr<ThreadPool> pool;
  {
    Mxcsr scope(kFtz);  // threads inherit the control word of the thread that starts them
    pool = std::make_unique<ThreadPool>(2);
  }
  ASSERT_TRUE(check_fp_env());
  // Long enough for the worker to wake; it refuses, which ends the loop.
  const auto status =
      pool->parallel_for(100'000, [](int64_t) { std::this_thread::sleep_for(microseconds(100)); });
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().text().find("FTZ"), std::string::npos);
}

#endif

}  // namespace
}  // namespace sb
