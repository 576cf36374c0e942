// The CPU emulation of the kernels: NVIDIA's warps of 32 ("emulated sm_90a") and AMD's waves of 64
// ("emulated gfx942"), each with its lane map and its profile's matrix step. Emulated, not run on
// hardware: what it proves is that the kernels, with those maps, make the oracle's bits.
#include "samebits/backend/simt/launch.h"
#include "samebits/backend/simt/tables.h"

namespace sb {
namespace {

struct EmulatedSm90 : simt::Emulated<simt::Sm90Map, Profile::kSm90> {
  static constexpr const char *kName = "emulated_sm90a", *kArch = kEmulatedSm90a;
};
struct EmulatedGfx942 : simt::Emulated<simt::Gfx942Map, Profile::kGfx942> {
  static constexpr const char *kName = "emulated_gfx942", *kArch = kEmulatedGfx942;
};

template <class Args>
std::span<const Implementation<Args>> both() {
  static const auto all = [] {
    std::vector<Implementation<Args>> v;
    for (const auto& i : simt::table<EmulatedSm90>(static_cast<const Args*>(nullptr)))
      v.push_back(i);
    for (const auto& i : simt::table<EmulatedGfx942>(static_cast<const Args*>(nullptr)))
      v.push_back(i);
    return v;
  }();
  return all;
}

constexpr Moves kMoves[] = {simt::moves<EmulatedSm90>(), simt::moves<EmulatedGfx942>()};

}  // namespace

#define SB_EMULATED(Args)                                            \
  template <>                                                        \
  std::span<const Implementation<Args>> emulated_implementations() { \
    return both<Args>();                                             \
  }
SB_OPERATORS(SB_EMULATED)
#undef SB_EMULATED

std::span<const Moves> emulated_moves() { return kMoves; }

}  // namespace sb
