#include "samebits/base/fp_env.h"

#include <cfenv>
#include <string>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sb {

Status check_fp_env() {
#if defined(__x86_64__)
  const unsigned csr = _mm_getcsr();
  const bool ftz = csr & 0x8000, daz = csr & 0x0040, rounding = csr & 0x6000;
  if (!ftz && !daz && !rounding) return {};
  std::string found;
  if (ftz) found += " FTZ (flush subnormal results)";
  if (daz) found += " DAZ (subnormal operands read as zero)";
  if (rounding) found += " a rounding mode other than nearest-even";
#else
  if (std::fegetround() == FE_TONEAREST) return {};
  const std::string found = " a rounding mode other than nearest-even";
#endif
  return refuse(Code::kEnvironment, "run strict arithmetic in this thread",
                "the CPU's floating-point control has set:" + found,
                "find the library that sets it (often one built with -ffast-math, or "
                "torch.set_flush_denormal(True)) and load it elsewhere");
}

}  // namespace sb
