#include "samebits/chain/saved.h"

#include <vector>

namespace sb {
namespace {

template <class Map, class Key>
View found(const Map& map, const Key& key) {
  const auto it = map.find(key);
  return it == map.end() ? View{} : it->second;
}

}  // namespace

bool Saved::keeps(Boundary b) const {
  if (b.tap >= Tap::kHeadLogit || is_acc(b.tap)) return false;
  return policy_ == KeepPolicy::kAll || b.tap == Tap::kEmbed || b.tap == Tap::kLayerOut ||
         b.tap == Tap::kFinalNorm;
}

Result<View> Saved::copy(Ctx& ctx, const View& value) {
  SB_ASSERT(value.contiguous(), "only contiguous values are kept");
  SB_TRY(kept, arena_.take(value.dtype, {value.shape[0], value.shape[1]}));
  std::vector<unsigned char> bytes(static_cast<size_t>(value.bytes()));
  ctx.exec.device->copy_out(bytes.data(), value.ptr, bytes.size());
  ctx.exec.device->copy_in(kept.ptr, bytes.data(), bytes.size());
  return kept;
}

Status Saved::keep(Ctx& ctx, Boundary b, const View& value) {
  SB_TRY(kept, copy(ctx, value));
  values_[{b.tap, b.layer}] = kept;
  return {};
}

Status Saved::keep_lse(Ctx& ctx, int layer, const View& lse) {
  SB_TRY(kept, copy(ctx, lse));
  lse_[layer] = kept;
  return {};
}

Status Saved::keep_max_sum(Ctx& ctx, int64_t row, const View& ms) {
  SB_TRY(kept, copy(ctx, ms));
  max_sum_[row] = kept;
  return {};
}

View Saved::find(Boundary b) const { return found(values_, std::pair{b.tap, b.layer}); }
View Saved::lse(int layer) const { return found(lse_, layer); }
View Saved::max_sum(int64_t row) const { return found(max_sum_, row); }

View Saved::layer_input(int layer) const {
  return layer == 0 ? find({Tap::kEmbed, -1}) : find({Tap::kLayerOut, layer - 1});
}

void Saved::clear() {
  values_.clear();
  lse_.clear();
  max_sum_.clear();
  arena_.reset();
}

}  // namespace sb
