#include "samebits/chain/rope_cache.h"

#include "samebits/base/bits.h"

namespace sb {

RopeCache::~RopeCache() {
  for (auto& v : views_) {
    if (v) device_.release(v.ptr, static_cast<size_t>(v.bytes()));
  }
}

Result<View> RopeCache::get(LayerType type, int64_t positions) {
  View& view = views_[static_cast<int>(type)];
  const int64_t blocks = ceil_div(positions, kRopeBlock);
  if (view && view.shape[0] >= blocks) return view;
  const int64_t pairs = table_.block(type, 0).pairs;
  View next = make_view(nullptr, Dtype::kF32, {blocks, 2, kRopeBlock, pairs}, device_.id());
  SB_TRY(ptr, device_.alloc(static_cast<size_t>(next.bytes())));
  next.ptr = ptr;
  for (int64_t b = 0; b < blocks; ++b) {
    const RopeBlock& block = table_.block(type, b);
    device_.copy_in(static_cast<float*>(ptr) + b * next.stride[0], block.values.data(),
                    block.values.size() * sizeof(float));
  }
  if (view) device_.release(view.ptr, static_cast<size_t>(view.bytes()));
  view = next;
  return view;
}

}  // namespace sb
