// Parallel: what ranks of one model exchange. Collectives move bytes only; every sum is ours, in
// contract order. Size 1 is the identity.
#pragma once

#include <cstddef>

#include "samebits/base/device.h"

namespace sb {

class Parallel {
 public:
  virtual ~Parallel() = default;
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  // recv[p] = rank p's send, `bytes` each, in rank order. Pointers are memory of `device`, whose
  // copies run in the order of its work. Every rank must call with the same bytes.
  virtual Status all_gather(Device& device, const void* send, void* recv, size_t bytes);
};

}  // namespace sb
