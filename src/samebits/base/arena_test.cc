#include "samebits/base/arena.h"

#include <gtest/gtest.h>

#include <cstring>

namespace sb {
namespace {

class ArenaTest : public testing::Test {
 protected:
  std::unique_ptr<Device> device_ = make_cpu_device();
};

TEST_F(ArenaTest, ViewsAreAlignedDisjointAndWritable) {
  Arena arena(*device_, 1024);
  std::vector<View> views;
  for (int64_t n : {1, 3, 17, 100, 5, 300, 1}) {
    View v = arena.take(Dtype::kU8, {n}).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(v.ptr) % 64, 0u);
    EXPECT_TRUE(v.contiguous());
    std::memset(v.ptr, static_cast<int>(views.size()), static_cast<size_t>(n));
    views.push_back(v);
  }
  for (size_t i = 0; i < views.size(); ++i) {
    for (int64_t k = 0; k < views[i].numel(); ++k) ASSERT_EQ(views[i].as<uint8_t>()[k], i);
  }
}

TEST_F(ArenaTest, LargerThanAChunkIsServed) {
  Arena arena(*device_, 256);
  View small = arena.take(Dtype::kF32, {4}).value();
  View large = arena.take(Dtype::kF32, {1000, 10}).value();
  std::memset(large.ptr, 1, static_cast<size_t>(large.bytes()));
  EXPECT_NE(small.ptr, large.ptr);
  EXPECT_GE(arena.high_water_bytes(), 40'000u);
}

TEST_F(ArenaTest, EmptyShapesAreAllowed) {
  Arena arena(*device_);
  View v = arena.take(Dtype::kBf16, {0, 7}).value();
  EXPECT_EQ(v.numel(), 0);
  EXPECT_NE(v.ptr, nullptr);
}

TEST_F(ArenaTest, ResetGivesTheSameMemoryAgain) {
  Arena arena(*device_, 512);
  View kept = arena.take(Dtype::kU8, {64}).value();
  const auto mark = arena.mark();
  View a = arena.take(Dtype::kU8, {400}).value();
  View b = arena.take(Dtype::kU8, {400}).value();  // the next chunk
  const size_t high = arena.high_water_bytes();
  for (int i = 0; i < 3; ++i) {
    arena.reset(mark);
    EXPECT_EQ(arena.take(Dtype::kU8, {400}).value().ptr, a.ptr);
    EXPECT_EQ(arena.take(Dtype::kU8, {400}).value().ptr, b.ptr);
  }
  EXPECT_EQ(arena.high_water_bytes(), high) << "taking the same again needs no more memory";
  arena.reset();
  EXPECT_EQ(arena.take(Dtype::kU8, {64}).value().ptr, kept.ptr);
}

TEST_F(ArenaTest, ScopeGivesBackWhatItTook) {
  Arena arena(*device_);
  arena.take(Dtype::kU8, {10}).value();
  void* inside = nullptr;
  {
    ArenaScope scope(arena);
    inside = arena.take(Dtype::kU8, {10}).value().ptr;
  }
  EXPECT_EQ(arena.take(Dtype::kU8, {10}).value().ptr, inside);
}

TEST_F(ArenaTest, HighWaterIsTheLargestLevel) {
  Arena arena(*device_);
  EXPECT_EQ(arena.high_water_bytes(), 0u);
  arena.take(Dtype::kU8, {100}).value();
  EXPECT_EQ(arena.high_water_bytes(), 128u);
  arena.reset();
  arena.take(Dtype::kU8, {1}).value();
  EXPECT_EQ(arena.high_water_bytes(), 128u);
}

TEST_F(ArenaTest, PoisonIsNanAndComesBackEachTime) {
  Arena arena(*device_);
  arena.set_poison(true);
  for (int i = 0; i < 2; ++i) {
    ArenaScope scope(arena);
    View v = arena.take(Dtype::kF32, {9}).value();
    for (int k = 0; k < 9; ++k) {
      ASSERT_TRUE(is_nan_bits(float_bits(v.as<float>()[k])));
      v.as<float>()[k] = 0;
    }
  }
}

TEST_F(ArenaTest, TooMuchIsARefusalAndLeavesTheArenaUsable) {
  Arena arena(*device_);
  auto huge = arena.take(Dtype::kU8, {int64_t{1} << 61});
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, Code::kEnvironment);
  EXPECT_TRUE(arena.take(Dtype::kU8, {8}));
}

TEST_F(ArenaTest, WorksOnAGuardedDevice) {
  auto guard = make_guard_device();
  Arena arena(*guard);
  arena.set_poison(true);
  View v = arena.take(Dtype::kF32, {4}).value();
  uint32_t out[4];
  guard->copy_out(out, v.ptr, sizeof out);
  for (uint32_t x : out) EXPECT_EQ(x, 0xffffffffu);
}

}  // namespace
}  // namespace sb
