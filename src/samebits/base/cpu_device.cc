// The CPU device, plain and guarded.
#include <sys/mman.h>
#include <unistd.h>

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

class CpuDevice : public Device {
 public:
  DeviceId id() const override { return {}; }
  Result<void*> alloc(size_t bytes) override {
    void* p = std::aligned_alloc(64, static_cast<size_t>(round_up(std::max<size_t>(bytes, 1), 64)));
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
    const size_t size = map_bytes(bytes);
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
  static size_t map_bytes(size_t bytes) {
    return static_cast<size_t>(round_up(std::max<size_t>(bytes, 1), sysconf(_SC_PAGESIZE)));
  }
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
