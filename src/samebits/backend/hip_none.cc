// The HIP backend of a build without HIP: no implementations, and the reason why.
#include "samebits/backend/implementation.h"

namespace sb {
const char* hip_absence() { return "this build has no HIP backend"; }
}  // namespace sb
