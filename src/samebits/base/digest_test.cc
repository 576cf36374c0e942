#include "samebits/base/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "samebits/base/rng.h"

namespace sb {
namespace {

struct Element {
  uint64_t bits, index;
};

std::vector<Element> sample(uint64_t n) {
  CounterRng rng(11);
  std::vector<Element> out;
  for (uint64_t i = 0; i < n; ++i) out.push_back({rng.next() & 0xffffu, i});
  return out;
}

TensorDigest digest_of(const std::vector<Element>& elements) {
  TensorDigest d;
  for (auto e : elements) d.add(e.bits, e.index);
  return d;
}

TEST(Digest, DoesNotDependOnOrder) {
  auto elements = sample(1000);
  const TensorDigest forward = digest_of(elements);
  std::reverse(elements.begin(), elements.end());
  EXPECT_EQ(digest_of(elements), forward);
  CounterRng rng(12);
  for (uint32_t i = 999; i > 0; --i) std::swap(elements[i], elements[rng.below(i + 1)]);
  EXPECT_EQ(digest_of(elements), forward);
}

TEST(Digest, ShardsAddUp) {
  const auto elements = sample(1000);
  TensorDigest sum;
  for (size_t shard = 0; shard < 8; ++shard) {
    TensorDigest part;
    for (size_t i = shard; i < elements.size(); i += 8)
      part.add(elements[i].bits, elements[i].index);
    sum.add(part);
  }
  EXPECT_EQ(sum, digest_of(elements));
}

TEST(Digest, SeesEachBitEachPlaceAndEachSwap) {
  const auto elements = sample(64);
  std::set<std::string> seen{digest_of(elements).hex()};
  for (size_t i = 0; i < elements.size(); ++i) {
    for (int bit = 0; bit < 16; ++bit) {
      auto changed = elements;
      changed[i].bits ^= 1u << bit;
      seen.insert(digest_of(changed).hex());
    }
  }
  EXPECT_EQ(seen.size(), 1u + 64 * 16);

  auto swapped = elements;
  ASSERT_NE(swapped[3].bits, swapped[4].bits);
  std::swap(swapped[3].bits, swapped[4].bits);
  EXPECT_NE(digest_of(swapped), digest_of(elements));
  EXPECT_NE(digest_element(0, 0), digest_element(0, 1));
  EXPECT_NE(digest_element(0, 0), 0u) << "a row of zeros is not an empty row";
}

// The first outputs of SplitMix64 seeded with 0, as its authors publish them.
TEST(Digest, MixIsSplitMix64) {
  EXPECT_EQ(mix64(0x9E3779B97F4A7C15ull), 0xE220A8397B1DCDAFull);
  EXPECT_EQ(mix64(2 * 0x9E3779B97F4A7C15ull), 0x6E789E6AA1B965F4ull);
  EXPECT_EQ(digest_element(0, 0), 0xE220A8397B1DCDAFull);
}

TEST(Digest, HexIsFixedWidth) {
  EXPECT_EQ(hex64(0), "0000000000000000");
  EXPECT_EQ(hex64(0x0123456789abcdefull), "0123456789abcdef");
  EXPECT_EQ((TensorDigest{1, 2}).hex(), "00000000000000010000000000000002");
}

TEST(Digest, Xxh64KnownAnswers) {
  EXPECT_EQ(xxh64(""), 0xef46db3751d8e999ull);
  EXPECT_EQ(xxh64("a"), 0xd24ec4f1a98c6e5bull);
  EXPECT_EQ(xxh64("abc"), 0x44bc2cf5ad770999ull);
  EXPECT_NE(xxh64("abc", 1), xxh64("abc"));
  EXPECT_EQ(xxh64(std::string_view()), xxh64(""));
}

// FIPS 180-4 examples.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, PiecesEqualTheWhole) {
  std::string text(1000, '\0');
  std::iota(text.begin(), text.end(), '\0');
  for (size_t cut : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{999}}) {
    Sha256 sha;
    sha.update(std::string_view(text).substr(0, cut));
    sha.update(std::string_view(text).substr(cut));
    EXPECT_EQ(sha.hex(), sha256_hex(text)) << "cut at " << cut;
  }
}

}  // namespace
}  // namespace sb
