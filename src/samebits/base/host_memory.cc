#include "samebits/base/host_memory.h"

#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace sb {

int64_t available_host_bytes() {
  std::ostringstream all;  // not a map: files of /proc have no size
  all << std::ifstream("/proc/meminfo").rdbuf();
  const std::string text = all.str();
  const size_t at = text.find("MemAvailable:");
  if (at == std::string::npos) return -1;
  return std::strtoll(text.c_str() + at + std::strlen("MemAvailable:"), nullptr, 10) * 1024;
}

int64_t peak_host_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;  // Linux counts KiB
}

}  // namespace sb
