// The CUDA backend of a build without CUDA: no implementations, and the reason why.
#include "samebits/backend/devices.h"
#include "samebits/backend/implementation.h"
#include "samebits/backend/moves.h"

namespace sb {

#define SB_NONE(Args)                                            \
  template <>                                                    \
  std::span<const Implementation<Args>> cuda_implementations() { \
    return {};                                                   \
  }
SB_OPERATORS(SB_NONE)
#undef SB_NONE

std::span<const Moves> cuda_moves() { return {}; }
const char* cuda_absence() { return "this build has no CUDA backend"; }

Result<std::unique_ptr<Device>> make_cuda_device(int) {
  return refuse(Code::kEnvironment, "run on backend cuda", cuda_absence(),
                "--backend cpu, or a build on a machine with nvcc");
}

}  // namespace sb
