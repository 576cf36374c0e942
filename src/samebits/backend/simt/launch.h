// How kernels of block.h are started. A backend is a type with
//
//   template <class K> static Status launch(const Exec&, const typename K::Args&, int64_t items);
//
// and the names of its table entries. Emulated<Map> (here) runs blocks on the CPU's thread pool,
// CudaBackend (backend/cuda/launch.cuh) starts grids; compile.hip only proves that the kernels
// build for AMD. A kernel's work items are the same everywhere; the grid is at most Exec::grid_cap
// blocks, which walk them with a stride.
#pragma once

#include <atomic>
#include <string>

#include "samebits/backend/implementation.h"
#include "samebits/backend/simt/emulated_block.h"
#include "samebits/backend/simt/failure.h"

namespace sb::simt {

template <class MapT, Profile P>
struct EmulatedOn {
  template <class K>
  static Status launch(const Exec& exec, const typename K::Args& a, int64_t items) {
    using Block = EmulatedBlock<K::kThreads, MapT, P>;
    const auto& chains = *arith::chain_kernels(P, exec.isa);
    const int64_t blocks = exec.grid_cap > 0 && exec.grid_cap < items ? exec.grid_cap : items;
    std::atomic<bool> failed{false};
    SB_DO(exec.pool->parallel_for(blocks, [&](int64_t first) {
      auto block = std::make_unique<Block>(sizeof(typename K::template Shared<Block>), chains);
      for (int64_t i = first; i < items; i += blocks) {
        block->begin_item();
        K::item(*block, a, i);
        block->end_item();
      }
      if (block->failed()) failed = true;
    }));
    if (failed) return failed_launch();
    return {};
  }
};

// CUDA's warps on the CPU run profiles sm90 and ieee, AMD's waves gfx942 and ieee.
template <class MapT, Profile Native>
struct Emulated {
  static constexpr DeviceId::Kind kDevice = DeviceId::kCpu;
  static constexpr uint8_t kProfiles = profile_bit(Native) | profile_bit(Profile::kIeee);
  template <class K>
  static Status launch(const Exec& exec, const typename K::Args& a, int64_t items) {
    if (exec.profile == Native) return EmulatedOn<MapT, Native>::template launch<K>(exec, a, items);
    return EmulatedOn<MapT, Profile::kIeee>::template launch<K>(exec, a, items);
  }
};

}  // namespace sb::simt
