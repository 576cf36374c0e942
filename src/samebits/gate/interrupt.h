// Ctrl-C as a flag: the signal handler sets it, long loops poll it and return `stopped()`. Outputs
// that are not committed then disappear with their OutputFile. A second Ctrl-C ends the
// program at once.
#pragma once

#include <atomic>

#include "samebits/base/result.h"

namespace sb {

inline constinit std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may store to it

inline bool interrupted() { return g_interrupted.load(std::memory_order_relaxed); }
inline tl::unexpected<Refusal> stopped(std::string asked) {
  return refuse(Code::kInterrupted, std::move(asked), "interrupted; no output was written");
}

}  // namespace sb
