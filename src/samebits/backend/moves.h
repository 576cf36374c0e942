// Helpers of a run that are not part of the model and have no contract: row digests for traces, and
// the gathering of rows. They move or read bits and add nothing.
#pragma once

#include "samebits/backend/exec.h"
#include "samebits/backend/op_args.h"

namespace sb {

Status digest_rows(const Exec& exec, const DigestArgs& args);
Status gather_rows(const Exec& exec, const GatherArgs& args);

}  // namespace sb
