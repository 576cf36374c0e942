// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11). The same integers on every
// platform; weights, sampling and tests draw from it, nothing draws from clocks or std:: engines.
#pragma once

#include <cstdint>

#include "samebits/base/platform.h"

namespace sb {

struct Philox4 {
  uint32_t v[4];
};

SB_HD constexpr Philox4 philox4x32_10(Philox4 counter, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  Philox4 c = counter;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c.v[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c.v[2];
    c = Philox4{{static_cast<uint32_t>(p1 >> 32) ^ c.v[1] ^ k0, static_cast<uint32_t>(p1),
                 static_cast<uint32_t>(p0 >> 32) ^ c.v[3] ^ k1, static_cast<uint32_t>(p0)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// A stream of 32-bit words for tests and synthetic data: word i of (seed, stream).
class CounterRng {
 public:
  explicit constexpr CounterRng(uint64_t seed, uint64_t stream = 0)
      : seed_(seed), stream_(stream) {}
  constexpr uint32_t next() {
    if ((index_ & 3) == 0) {
      const uint64_t block = index_ >> 2;
      block_ = philox4x32_10(
          Philox4{{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                   static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)}},
          seed_);
    }
    return block_.v[index_++ & 3];
  }
  constexpr uint64_t next64() {
    const uint64_t lo = next();
    return lo | (uint64_t{next()} << 32);
  }
  // Uniform in [0, n), n ≥ 1; the bias of the multiply-shift is below n / 2^32.
  constexpr uint32_t below(uint32_t n) {
    return static_cast<uint32_t>((uint64_t{next()} * n) >> 32);
  }
  // Uniform in [0, 1) with 24 bits.
  constexpr float uniform() { return static_cast<float>(next() >> 8) * 0x1p-24f; }

 private:
  uint64_t seed_, stream_, index_ = 0;
  Philox4 block_{};
};

}  // namespace sb
