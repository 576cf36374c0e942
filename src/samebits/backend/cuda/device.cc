// The CUDA device: plain memory of the GPU (never managed memory), one stream for everything, and
// errors that say what was asked. Copies run in the stream's order; copy_out waits. An error of a
// copy or a kernel is kept and surfaces at sync(), where the kernels' own error flag is read too.
#include <algorithm>

#include "samebits/backend/cuda/error.h"
#include "samebits/backend/devices.h"
#include "samebits/backend/implementation.h"
#include "samebits/backend/simt/failure.h"

namespace sb {
namespace {

std::string gib(size_t bytes) {
  const auto tenths = bytes * 10 / (size_t{1} << 30);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) {}
  ~CudaDevice() override {
    if (flag_) cudaFree(flag_);
    if (stream_) cudaStreamDestroy(stream_);
  }

  Status start() {
    SB_DO(cuda_status("choose device " + std::to_string(index_), cudaSetDevice(index_)));
    SB_DO(cuda_status("make a stream", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)));
    SB_DO(cuda_status("allocate the error flag", cudaMalloc(&flag_, sizeof(int32_t))));
    return cuda_status("clear the error flag", cudaMemsetAsync(flag_, 0, sizeof(int32_t), stream_));
  }

  DeviceId id() const override { return {DeviceId::kCuda, index_}; }
  void* stream() const override { return stream_; }
  int32_t* flag() const { return flag_; }
  std::vector<std::pair<std::string, std::string>> describe() const override {
    cudaDeviceProp prop{};
    int driver = 0, runtime = 0;
    cudaGetDeviceProperties(&prop, index_);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    const auto version = [](int v) {
      return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
    };
    return {{"device", "cuda:" + std::to_string(index_) + ", " + prop.name},
            {"memory", gib(prop.totalGlobalMem)},
            {"processors", std::to_string(prop.multiProcessorCount)},
            {"capability", std::to_string(prop.major) + "." + std::to_string(prop.minor)},
            {"driver", "CUDA " + version(driver)},
            {"runtime", "CUDA " + version(runtime)},
            {"built for", "sm_90a"}};
  }
  size_t high_water_bytes() const override { return high_water_; }

  Result<void*> alloc(size_t bytes) override {
    void* p = nullptr;
    const cudaError_t code = cudaMalloc(&p, std::max<size_t>(bytes, 1));
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // this error is not sticky
      size_t left = 0, total = 0;
      cudaMemGetInfo(&left, &total);
      return refuse(
          Code::kEnvironment,
          "allocate " + gib(bytes) + " (" + std::to_string(bytes) +
              " bytes) on cuda:" + std::to_string(index_),
          gib(left) + " of " + gib(total) + " are free, and this program holds " + gib(held_),
          "fewer or shorter rows, a smaller model, or a GPU that nothing else uses");
    }
    SB_DO(cuda_status("allocate " + std::to_string(bytes) + " bytes", code));
    held_ += bytes;
    high_water_ = std::max(high_water_, held_);
    return p;
  }
  void release(void* ptr, size_t bytes) override {
    keep(cudaStreamSynchronize(stream_));
    keep(cudaFree(ptr));
    held_ -= std::min(held_, bytes);
  }
  void copy_in(void* dst, const void* src, size_t n) override {
    if (n) keep(cudaMemcpyAsync(dst, src, n, cudaMemcpyHostToDevice, stream_));
  }
  void copy_out(void* dst, const void* src, size_t n) override {
    if (n) keep(cudaMemcpyAsync(dst, src, n, cudaMemcpyDeviceToHost, stream_));
    keep(cudaStreamSynchronize(stream_));
  }
  void copy(void* dst, const void* src, size_t n) override {
    if (n) keep(cudaMemcpyAsync(dst, src, n, cudaMemcpyDeviceToDevice, stream_));
  }
  void fill(void* dst, unsigned char byte, size_t n) override {
    if (n) keep(cudaMemsetAsync(dst, byte, n, stream_));
  }
  Status sync() override {
    int32_t failed = 0;
    keep(cudaMemcpyAsync(&failed, flag_, sizeof(failed), cudaMemcpyDeviceToHost, stream_));
    keep(cudaStreamSynchronize(stream_));
    SB_DO(cuda_status("run on cuda:" + std::to_string(index_), first_error_));
    if (failed == 0) return {};
    keep(cudaMemsetAsync(flag_, 0, sizeof(int32_t), stream_));
    return simt::failed_launch();
  }

 private:
  void keep(cudaError_t code) {
    if (first_error_ == cudaSuccess) first_error_ = code;
  }

  int index_;
  cudaStream_t stream_ = nullptr;
  int32_t* flag_ = nullptr;
  cudaError_t first_error_ = cudaSuccess;
  size_t held_ = 0, high_water_ = 0;
};

}  // namespace

Status cuda_status(const std::string& asked, cudaError_t code) {
  if (code == cudaSuccess) return {};
  return refuse(
      Code::kEnvironment, asked,
      std::string("CUDA says ") + cudaGetErrorName(code) + ": " + cudaGetErrorString(code),
      "see `samebits doctor --backend cuda`");
}

int32_t* cuda_failure_flag(Device& device) {
  SB_ASSERT(device.id().kind == DeviceId::kCuda, "a CUDA kernel on another device");
  return static_cast<CudaDevice&>(device).flag();
}

Result<std::unique_ptr<Device>> make_cuda_device(int index) {
  const auto absent = [&](const std::string& why, const std::string& way) {
    return refuse(Code::kEnvironment, "run on backend cuda, device " + std::to_string(index), why,
                  way);
  };
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) {
    return absent(code != cudaSuccess ? std::string("CUDA says ") + cudaGetErrorString(code)
                                      : "there is no CUDA device",
                  "--backend cpu, or a machine with an NVIDIA GPU and its driver");
  }
  if (index >= count) {
    return absent("there are " + std::to_string(count) + " devices", "cuda:0");
  }
  cudaDeviceProp prop{};
  SB_DO(cuda_status("ask for the device's properties", cudaGetDeviceProperties(&prop, index)));
  if (prop.major != 9 || prop.minor != 0) {
    return absent(std::string(prop.name) + " has compute capability " + std::to_string(prop.major) +
                      "." + std::to_string(prop.minor) +
                      "; kernels are built for sm_90a, whose matrix arithmetic is profile sm90",
                  "an H100 or H200, or --backend cpu, which replays an H200's bits");
  }
  auto device = std::make_unique<CudaDevice>(index);
  SB_DO(device->start());
  return std::unique_ptr<Device>(std::move(device));
}

const char* cuda_absence() { return nullptr; }

}  // namespace sb
