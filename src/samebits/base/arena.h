// Arena: stack-like memory of one device. Operators never allocate; the chain takes their outputs
// and scratch here and gives back whole levels. Memory is poisoned (0xff: NaN as bf16 and fp32)
// when it is handed out in checked mode, so that nothing can rely on what was there before.
#pragma once

#include <vector>

#include "samebits/base/device.h"

namespace sb {

class Arena {
 public:
  explicit Arena(Device& device, size_t chunk_bytes = size_t{1} << 24)
      : device_(device), chunk_bytes_(chunk_bytes) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // A contiguous view of uninitialised memory, 64-byte aligned. Empty shapes are allowed.
  Result<View> take(Dtype dtype, std::initializer_list<int64_t> shape);

  struct Mark {
    size_t chunk, offset;
  };
  Mark mark() const { return at_; }
  void reset(Mark to) { at_ = to; }
  void reset() { at_ = Mark(); }

  void set_poison(bool on) { poison_ = on; }
  size_t high_water_bytes() const { return high_water_; }
  Device& device() { return device_; }

 private:
  struct Chunk {
    void* ptr;
    size_t bytes;
  };
  Device& device_;
  size_t chunk_bytes_;
  std::vector<Chunk> chunks_;
  Mark at_{0, 0};
  size_t high_water_ = 0;
  bool poison_ = false;
};

// Gives back what was taken since it was made.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& a) : arena_(a), mark_(a.mark()) {}
  ~ArenaScope() { arena_.reset(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

}  // namespace sb
