// Row digests on a device, for traces.
#pragma once

#include "samebits/backend/exec.h"
#include "samebits/backend/op_args.h"

namespace sb {

// CPU devices. Rows of x must be contiguous; digest and non_finite get one entry per row.
Status digest_rows(const Exec& exec, const DigestArgs& args);

}  // namespace sb
