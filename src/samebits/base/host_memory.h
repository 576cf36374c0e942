// What the system could hand out: asked before large blocks are taken, because Linux grants memory
// that it does not have and ends the process when it is written.
#pragma once

#include <cstdint>

namespace sb {

// Memory the system could hand out now in bytes, or −1 where it does not say.
int64_t available_host_bytes();

// Most memory this process held at once in bytes, the pages of mapped files that it read included.
int64_t peak_host_bytes();

}  // namespace sb
