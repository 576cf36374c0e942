#include "samebits/base/digest.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include "samebits/base/result.h"

namespace sb {
namespace {

constexpr char kHex[] = "0123456789abcdef";

std::string hex_of(const unsigned char* data, size_t n) {
  std::string out(2 * n, '0');
  for (size_t i = 0; i < n; ++i) {
    out[2 * i] = kHex[data[i] >> 4];
    out[2 * i + 1] = kHex[data[i] & 15];
  }
  return out;
}

}  // namespace

std::string hex64(uint64_t x) {
  std::string out(16, '0');
  for (int i = 15; i >= 0; --i, x >>= 4) out[i] = kHex[x & 15];
  return out;
}

std::string TensorDigest::hex() const { return hex64(a) + hex64(b); }

uint64_t xxh64(std::string_view text, uint64_t seed) {
  return XXH64(text.data(), text.size(), seed);
}

Sha256::Sha256() : ctx_(EVP_MD_CTX_new()) {
  SB_ASSERT(ctx_ && EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(ctx_), EVP_sha256(), nullptr) == 1,
            "SHA-256 is missing from the crypto library");
}
Sha256::~Sha256() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(ctx_)); }
void Sha256::update(const void* data, size_t bytes) {
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(ctx_), data, bytes);
}
std::string Sha256::hex() {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(ctx_), out, &n);
  return hex_of(out, n);
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 sha;
  sha.update(bytes);
  return sha.hex();
}

}  // namespace sb
