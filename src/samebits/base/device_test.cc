#include "samebits/base/device.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

namespace sb {
namespace {

int read_byte(const void* p) { return *static_cast<const volatile unsigned char*>(p); }
void write_byte(void* p) { *static_cast<volatile unsigned char*>(p) = 1; }

TEST(CpuDevice, CopiesAndFills) {
  auto device = make_cpu_device();
  void* p = device->alloc(100).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
  device->fill(p, 7, 100);
  int32_t x = 42, y = 0;
  device->copy_in(p, &x, sizeof x);
  device->copy_out(&y, p, sizeof y);
  EXPECT_EQ(y, 42);
  EXPECT_EQ(read_byte(static_cast<char*>(p) + 99), 7);
  device->copy_in(nullptr, nullptr, 0);
  EXPECT_TRUE(device->reads_host_memory());
  EXPECT_TRUE(device->sync());
  device->release(p, 100);
}

TEST(CpuDevice, TooMuchIsARefusal) {
  for (auto make : {make_cpu_device, make_guard_device}) {
    auto device = make();
    for (size_t bytes : {size_t{1} << 62, SIZE_MAX}) {
      auto p = device->alloc(bytes);
      ASSERT_FALSE(p);
      EXPECT_EQ(p.error().code, Code::kEnvironment);
    }
  }
}

TEST(GuardDevice, MemoryIsReachableInsideAnOperator) {
  auto device = make_guard_device();
  void* p = device->alloc(10).value();
  device->fill(p, 5, 10);
  {
    DeviceScope scope(*device);
    EXPECT_EQ(read_byte(p), 5);
    {
      DeviceScope inner(*device);
      write_byte(p);
    }
    EXPECT_EQ(read_byte(p), 1) << "the inner scope must not close the outer one";
    device->fill(p, 9, 10);
    EXPECT_EQ(read_byte(p), 9) << "nor may a device call";
  }
  unsigned char out = 0;
  device->copy_out(&out, p, 1);
  EXPECT_EQ(out, 9);
  EXPECT_FALSE(device->reads_host_memory());
  device->release(p, 10);
}

TEST(GuardDevice, MemoryTakenWhileOpenIsReachable) {
  auto device = make_guard_device();
  DeviceScope scope(*device);
  void* p = device->alloc(10).value();
  write_byte(p);
  EXPECT_EQ(read_byte(p), 1);
  device->release(p, 10);
}

TEST(GuardDevice, ScopesOfSeveralThreadsOverlap) {
  auto device = make_guard_device();
  void* p = device->alloc(4096).value();
  device->fill(p, 3, 4096);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        DeviceScope scope(*device);
        ASSERT_EQ(read_byte(p), 3);
      }
    });
  }
  threads.clear();
  device->release(p, 4096);
}

class GuardDeviceDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  std::unique_ptr<Device> device_ = make_guard_device();
};

TEST_F(GuardDeviceDeathTest, ReadOutsideAnOperatorFaults) {
  void* p = device_->alloc(10).value();
  EXPECT_DEATH(read_byte(p), "");
  EXPECT_DEATH(write_byte(p), "");
  device_->release(p, 10);
}

TEST_F(GuardDeviceDeathTest, ReadAfterTheScopeFaults) {
  void* p = device_->alloc(10).value();
  {
    DeviceScope scope(*device_);
  }
  EXPECT_DEATH(read_byte(p), "");
  void* q = nullptr;
  {
    DeviceScope scope(*device_);
    q = device_->alloc(10).value();
  }
  EXPECT_DEATH(read_byte(q), "") << "what was taken while open is closed with the rest";
  device_->release(p, 10);
  device_->release(q, 10);
}

TEST_F(GuardDeviceDeathTest, MisuseIsABugOfOurs) {
  int x = 0;
  EXPECT_DEATH(device_->release(&x, 4), "does not own");
  EXPECT_DEATH(device_->close(), "closed more often");
}

}  // namespace
}  // namespace sb
