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
#include "samebits/base/host_memory.h"

namespace sb {
namespace {

tl::unexpected<Refusal> out_of_memory(size_t bytes) {
  return refuse(Code::kEnvironment, "allocate " + std::to_string(bytes) + " bytes on the CPU",
                "the system has no such block of memory left",
                "use a smaller model, fewer or shorter rows, or a machine with more memory");
}

// Requests beyond this are some caller's overflowed product; rounding them up would wrap.
constexpr size_t kMaxBytes = size_t{1} << 62;

// Blocks from here on are compared with the memory there is.
constexpr size_t kLarge = size_t{64} << 20;

size_t padded(size_t bytes, int64_t unit) {
  return static_cast<size_t>(round_up(static_cast<int64_t>(std::max<size_t>(bytes, 1)), unit));
}

class CpuDevice : public Device {
 public:
  DeviceId id() const override { return {}; }
  Result<void*> alloc(size_t bytes) override {
    if (bytes >= kLarge) {
      const int64_t have = available_host_bytes();
      if (have >= 0 && bytes > static_cast<size_t>(have)) return out_of_memory(bytes);
    }
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
  void copy(void* dst, const void* src, size_t n) override { copy_in(dst, src, n); }
  void fill(void* dst, unsigned char byte, size_t n) override {
    if (n) std::memset(dst, byte, n);
  }
  Status sync() override { return {}; }
  bool reads_host_memory() const override { return true; }
};

// All blocks lie in one reserved range, so that opening and closing are one mprotect each, and on
// huge pages it walks few of them. Blocks given back are reused by size; the range itself is freed
// with the device.
class GuardDevice : public Device {
 public:
  ~GuardDevice() override {
    if (range_) munmap(range_, kRange + kHugePage);
  }
  DeviceId id() const override { return {}; }
  Result<void*> alloc(size_t bytes) override {
    if (bytes > kMaxBytes) return out_of_memory(bytes);
    const size_t size = padded(bytes, 64);
    std::lock_guard lock(mutex_);
    if (!base_ && !reserve()) return out_of_memory(bytes);
    auto it = free_.find(size);
    if (it != free_.end()) {
      void* p = it->second;
      free_.erase(it);
      return p;
    }
    if (size > kRange - used_) return out_of_memory(bytes);
    char* p = base_ + used_;
    used_ += size;
    grow_open();
    return static_cast<void*>(p);
  }
  void release(void* ptr, size_t bytes) override {
    std::lock_guard lock(mutex_);
    const auto at = reinterpret_cast<uintptr_t>(ptr), base = reinterpret_cast<uintptr_t>(base_);
    SB_ASSERT(base_ && at >= base && at < base + used_,
              "release of memory this device does not own");
    free_.emplace(padded(bytes, 64), ptr);
  }
  void copy_in(void* dst, const void* src, size_t n) override {
    DeviceScope scope(*this);
    if (n) std::memcpy(dst, src, n);
  }
  void copy_out(void* dst, const void* src, size_t n) override {
    DeviceScope scope(*this);
    if (n) std::memcpy(dst, src, n);
  }
  void copy(void* dst, const void* src, size_t n) override { copy_in(dst, src, n); }
  void fill(void* dst, unsigned char byte, size_t n) override {
    DeviceScope scope(*this);
    if (n) std::memset(dst, byte, n);
  }
  Status sync() override { return {}; }
  void open() override {
    std::lock_guard lock(mutex_);
    if (depth_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() override {
    std::lock_guard lock(mutex_);
    SB_ASSERT(depth_ > 0, "device closed more often than opened");
    if (--depth_ == 0) protect(PROT_NONE);
  }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kRange = size_t{64} << 30;  // addresses, not memory

  bool reserve() {
    void* p = mmap(nullptr, kRange + kHugePage, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    range_ = p;
    const auto at = reinterpret_cast<uintptr_t>(p);
    base_ = static_cast<char*>(p) + (padded(at, kHugePage) - at);
    madvise(base_, kRange, MADV_HUGEPAGE);  // a wish; small pages are only slower
    return true;
  }
  // The protected part always ends at a huge page, so that none is split.
  size_t reach() const { return used_ ? padded(used_, kHugePage) : 0; }
  void protect(int prot) {
    protected_ = reach();
    if (protected_ == 0) return;
    SB_ASSERT(mprotect(base_, protected_, prot) == 0, "mprotect failed on a guarded device");
  }
  void grow_open() {
    if (depth_ > 0 && reach() > protected_) protect(PROT_READ | PROT_WRITE);
  }

  std::mutex mutex_;
  void* range_ = nullptr;
  char* base_ = nullptr;
  size_t used_ = 0, protected_ = 0;
  std::multimap<size_t, void*> free_;  // by size
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }
std::unique_ptr<Device> make_guard_device() { return std::make_unique<GuardDevice>(); }

}  // namespace sb
