// Helpers of a run that are not part of the model and have no contract: row digests for traces, and
// the gathering of rows. They move or read bits and add nothing.
#pragma once

#include <span>

#include "samebits/backend/exec.h"
#include "samebits/backend/op_args.h"

namespace sb {

// One device's helpers, chosen by device and architecture as implementations are.
struct Moves {
  DeviceId::Kind device;
  const char* arch;
  Status (*digest_rows)(const Exec&, const DigestArgs&);
  Status (*gather_rows)(const Exec&, const GatherArgs&);
};

std::span<const Moves> cpu_moves();
std::span<const Moves> emulated_moves();
std::span<const Moves> cuda_moves();

// Those of exec's device; a refusal where there are none.
Result<Moves> moves_of(const Exec& exec);

}  // namespace sb
