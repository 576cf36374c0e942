// The CPU device, plain and guarded.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "samebits/base/bits.h"
#include "samebits/base/device.h"

namespace sb {
namespace {

tl::unexpected<Refusal> out_of_memory(size_t bytes) {
  return refuse(Code::kEnvironment, "allocate " + std::to_string(bytes) + " bytes on the CPU",
                "the system has no such block of memory left",
                "use a smaller model, fewer or shorter rows, or a machine with more memory");
}

// Requests beyond this are some caller's overflowed product; rounding them up would wrap.
constexpr size_t kMaxBytes = size_t{1} << 62;

size_t padded(size_t bytes, int64_t unit) {
  return static_cast<size_t>(round_up(static_cast<int64_t>(std::max<size_t>(bytes, 1)), unit));
}

class CpuDevice : public Device {
 public:
  DeviceId id() const override { return {}; }
  Result<void*> alloc(size_t bytes) override {
    void* p = bytes > kMaxBytes ? nullptr : std::aligned_alloc(64, padded(bytes, 64));
    if (!p) return out_of_memory(bytes);
    return p;
  }
  void release(void* ptr, size_t) override { std::free(ptr); }
  void copy_in(void* dst, const void* src, size_t n) override {
    if (n) std::memcpy(dst, src, n);
  }
  void copy_out(void* dst, const void* src, size_t n) override {
    if (n) std::memcpy(dst, src, n);
  }
  void fill(void* dst, unsigned char byte, size_t n) override {
    if (n) std::memset(dst, byte, n);
  }
  Status sync() override { return {}; }
  bool reads_host_memory() const override { return true; }
};

class GuardDevice : public Device {
 public:
  DeviceId id() const override { return {}; }
  Result<void*> alloc(size_t bytes) override {
    if (bytes > kMaxBytes) return out_of_memory(bytes);
    const size_t size = padded(bytes, sysconf(_SC_PAGESIZE));
    void* p = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return out_of_memory(bytes);
    std::lock_guard lock(mutex_);
    if (depth_ > 0) protect(p, size, PROT_READ | PROT_WRITE);
    maps_[p] = size;
    return p;
  }
  void release(void* ptr, size_t) override {
    std::lock_guard lock(mutex_);
    auto it = maps_.find(ptr);
    SB_ASSERT(it != maps_.end(), "release of memory this device does not own");
    munmap(ptr, it->second);
    maps_.erase(it);
  }
  void copy_in(void* dst, const void* src, size_t n) override {
    DeviceScope scope(*this);
    if (n) std::memcpy(dst, src, n);
  }
  void copy_out(void* dst, const void* src, size_t n) override {
    DeviceScope scope(*this);
    if (n) std::memcpy(dst, src, n);
  }
  void fill(void* dst, unsigned char byte, size_t n) override {
    DeviceScope scope(*this);
    if (n) std::memset(dst, byte, n);
  }
  Status sync() override { return {}; }
  void open() override { shift(+1, PROT_READ | PROT_WRITE); }
  void close() override { shift(-1, PROT_NONE); }

 private:
  static void protect(void* p, size_t bytes, int prot) {
    SB_ASSERT(mprotect(p, bytes, prot) == 0, "mprotect failed on a guarded device");
  }
  void shift(int by, int prot) {
    std::lock_guard lock(mutex_);
    const bool edge = by > 0 ? depth_ == 0 : depth_ == 1;
    depth_ += by;
    SB_ASSERT(depth_ >= 0, "device closed more often than opened");
    if (edge) {
      for (auto& [p, size] : maps_) protect(p, size, prot);
    }
  }

  std::mutex mutex_;
  std::map<void*, size_t> maps_;
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }
std::unique_ptr<Device> make_guard_device() { return std::make_unique<GuardDevice>(); }

}  // namespace sb
