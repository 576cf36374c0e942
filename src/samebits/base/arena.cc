#include "samebits/base/arena.h"

#include <algorithm>

#include "samebits/base/bits.h"

namespace sb {

Arena::~Arena() {
  for (auto& c : chunks_) device_.release(c.ptr, c.bytes);
}

Result<View> Arena::take(Dtype dtype, std::initializer_list<int64_t> shape) {
  View v = make_view(nullptr, dtype, shape, device_.id());
  SB_ASSERT(v.numel() >= 0, "negative shape");
  const size_t bytes = static_cast<size_t>(round_up(std::max<int64_t>(v.bytes(), 1), 64));
  Mark at = at_;
  while (at.chunk < chunks_.size() && at.offset + bytes > chunks_[at.chunk].bytes) {
    at = Mark{at.chunk + 1, 0};
  }
  if (at.chunk == chunks_.size()) {
    const size_t size = std::max(chunk_bytes_, bytes);
    SB_TRY(ptr, device_.alloc(size));
    chunks_.push_back({ptr, size});
  }
  v.ptr = static_cast<char*>(chunks_[at.chunk].ptr) + at.offset;
  at_ = Mark{at.chunk, at.offset + bytes};
  size_t used = at_.offset;
  for (size_t i = 0; i < at_.chunk; ++i) used += chunks_[i].bytes;
  high_water_ = std::max(high_water_, used);
  if (poison_) device_.fill(v.ptr, 0xff, bytes);
  return v;
}

}  // namespace sb
