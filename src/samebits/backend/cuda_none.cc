// The CUDA backend of a build without CUDA: no implementations, and the reason why.
#include "samebits/backend/implementation.h"

namespace sb {
const char* cuda_absence() { return "this build has no CUDA backend"; }
}  // namespace sb
