// The CPU's side of portable_compile.h: the same calls give the golden hashes.
#include "samebits/arith/portable_compile.h"

#include <gtest/gtest.h>

#include <iterator>

#include "samebits/arith/function_testing.h"

namespace sb::arith {
namespace {

static_assert(std::size(kPortableFunctions) == kPortableFunctionCount);

TEST(PortableCompile, FunctionsGiveTheGoldenHashes) {
  for (int f = 0; f < kPortableFunctionCount; ++f) {
    const PortableFunction& p = kPortableFunctions[f];
    uint64_t hash = 0;
    for (uint64_t u = p.first; u <= p.last; u += kSampleStride) {
      hash += portable_digest(f, static_cast<uint32_t>(u));
    }
    EXPECT_EQ(hex64(hash), golden_hash(p.name, "sampled")) << p.name;
  }
}

TEST(PortableCompile, MixedGivesTheGoldenHash) {
  uint64_t hash = 0;
  for (uint32_t i = 0; i < kPortableMixed; ++i) hash += portable_mixed(i);
  EXPECT_EQ(hex64(hash), golden_hash("portable_mixed", "all"));
}

}  // namespace
}  // namespace sb::arith
