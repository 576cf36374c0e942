// libFuzzer's entry point of one harness, which the build names.
#include <cstddef>
#include <cstdint>

#include "fuzz/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sb::fuzz::SB_FUZZ_HARNESS({reinterpret_cast<const char*>(data), size});
  return 0;
}
