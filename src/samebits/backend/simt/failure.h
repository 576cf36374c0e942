// The refusal behind Block::fail(): what kernels find wrong in data that they alone can read.
#pragma once

#include "samebits/base/result.h"

namespace sb::simt {

inline tl::unexpected<Refusal> failed_launch() {
  return refuse(Code::kRefused, "attend to cached keys",
                "the block table leads to a page that does not exist",
                "a table whose entries of visible keys lie inside the cache");
}

}  // namespace sb::simt
