#include "samebits/base/parallel.h"

#include <cstring>

namespace sb {

Status Parallel::all_gather(const void* send, void* recv, size_t bytes) {
  if (send != recv && bytes) std::memcpy(recv, send, bytes);
  return {};
}

}  // namespace sb
