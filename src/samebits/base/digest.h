// Digests. Rows and tensors: a wrapping 64-bit sum of mixed elements, free of order, so that every
// layout and every shard computes it and shards add up. Files and JSON: SHA-256.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "samebits/base/platform.h"

namespace sb {

// Finaliser of SplitMix64 (Steele, Lea, Flood 2014).
SB_HD constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// One element's share of a row or tensor digest; index counts from 0 over the whole logical row.
SB_HD constexpr uint64_t digest_element(uint64_t bits, uint64_t index) {
  return mix64(bits ^ ((index + 1) * 0x9E3779B97F4A7C15ull));
}

// Tensors carry two sums; the second mixes with another constant.
struct TensorDigest {
  uint64_t a = 0, b = 0;
  constexpr void add(uint64_t bits, uint64_t index) {
    a += digest_element(bits, index);
    b += mix64(bits + (index + 1) * 0xC2B2AE3D27D4EB4Full);
  }
  constexpr void add(TensorDigest other) { a += other.a, b += other.b; }
  friend constexpr bool operator==(TensorDigest, TensorDigest) = default;
  std::string hex() const;
};

std::string hex64(uint64_t x);

// XXH64 of text, seed 0: names and row ids.
uint64_t xxh64(std::string_view text, uint64_t seed = 0);

// SHA-256 as 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(const void* data, size_t bytes);
  void update(std::string_view s) { update(s.data(), s.size()); }
  std::string hex();  // ends the digest

 private:
  void* ctx_;
};

}  // namespace sb
