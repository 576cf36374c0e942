// The floating-point environment the contracts need: round to nearest, subnormals kept. A library
// built with fast-math can set FTZ/DAZ for the whole thread; that is refused, never repaired.
#pragma once

#include "samebits/base/result.h"

namespace sb {

// Ok, or a Refusal (kEnvironment) naming the MXCSR bits that are wrong in the calling thread.
Status check_fp_env();

}  // namespace sb
