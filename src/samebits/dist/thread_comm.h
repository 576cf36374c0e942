// ThreadComm: ranks of one model as threads of one process. It moves bytes between their buffers
// and adds nothing. If one rank fails the others are woken with a Refusal instead of waiting for
// ever.
#pragma once

#include <memory>
#include <vector>

#include "samebits/base/parallel.h"

namespace sb {

class ThreadComm {
 public:
  explicit ThreadComm(int ranks);
  int size() const { return static_cast<int>(members_.size()); }
  Parallel& member(int rank) { return *members_[rank]; }
  // Called by a rank that stops early; every wait then ends with a Refusal.
  void abort();

 private:
  class Member;
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Parallel>> members_;
};

}  // namespace sb
