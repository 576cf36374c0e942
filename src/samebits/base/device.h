// Device: where memory lives. The CPU's runs at once; a GPU's is asynchronous and its errors
// surface at sync(). Outside operators memory is reached only through copy_in, copy_out and fill.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "samebits/base/view.h"

namespace sb {

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceId id() const = 0;
  virtual Result<void*> alloc(size_t bytes) = 0;  // 64-byte aligned
  virtual void release(void* ptr, size_t bytes) = 0;
  virtual void copy_in(void* device_dst, const void* host_src, size_t bytes) = 0;
  virtual void copy_out(void* host_dst, const void* device_src, size_t bytes) = 0;
  virtual void copy(void* device_dst, const void* device_src, size_t bytes) = 0;
  virtual void fill(void* device_dst, unsigned char byte, size_t bytes) = 0;
  virtual Status sync() = 0;
  // Name, value: what this device is, for reports.
  virtual std::vector<std::pair<std::string, std::string>> describe() const {
    return {{"device", "the CPU"}};
  }
  // Most bytes held at once, where the device counts them.
  virtual size_t high_water_bytes() const { return 0; }
  // Where operators enqueue work; nullptr where it runs at once.
  virtual void* stream() const { return nullptr; }
  // True when operators can read ordinary host memory, e.g. a mapped checkpoint, without a copy.
  virtual bool reads_host_memory() const { return false; }
  // Operators bracket their work with these; a guarded device makes its pages readable in between.
  virtual void open() {}
  virtual void close() {}
};

std::unique_ptr<Device> make_cpu_device();

// A CPU device whose pages fault on any access outside an operator or a Device call. It proves that
// nothing above ops/ looks behind a View.
std::unique_ptr<Device> make_guard_device();

// open() for a scope.
class DeviceScope {
 public:
  explicit DeviceScope(Device& d) : device_(d) { device_.open(); }
  ~DeviceScope() { device_.close(); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device& device_;
};

}  // namespace sb
