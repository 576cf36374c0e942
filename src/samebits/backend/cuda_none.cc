// The CUDA backend of a build without CUDA: no implementations, and the reason why.
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

}  // namespace sb
