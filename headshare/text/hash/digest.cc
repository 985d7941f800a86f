#include "headshare/text/hash/digest.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>
#include <memory>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr std::array<unsigned char, 2> kKey = {'e', 'n'};
constexpr size_t kDigestBytes = 16;

struct Free {
  void operator()(EVP_MAC* algorithm) const { EVP_MAC_free(algorithm); }
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
  void operator()(EVP_MD* algorithm) const { EVP_MD_free(algorithm); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MAC_CTX, Free>;

constexpr const char* kNoMd5 =
    "OpenSSL (libcrypto) offers no MD5, which hashed words need; a system in FIPS mode switches MD5 off";

// Looking an algorithm up costs more than hashing a word, so that each thread does it once.
Context make_context() {
  const std::unique_ptr<EVP_MAC, Free> algorithm(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  HS_CHECK(algorithm != nullptr, kNoMd5);
  Context context(EVP_MAC_CTX_new(algorithm.get()));
  char name[] = "MD5";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
                                   OSSL_PARAM_construct_end()};
  HS_CHECK(context != nullptr && EVP_MAC_CTX_set_params(context.get(), parameters) == 1, kNoMd5);
  return context;
}

uint64_t big_endian(const unsigned char* bytes) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

Signature digest(std::string_view text) {
  thread_local const Context context = make_context();
  std::array<unsigned char, kDigestBytes> bytes;
  size_t written = 0;
  const bool done =
      EVP_MAC_init(context.get(), kKey.data(), kKey.size(), nullptr) == 1 &&
      EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1 &&
      EVP_MAC_final(context.get(), bytes.data(), &written, bytes.size()) == 1 && written == kDigestBytes;
  HS_CHECK(done, kNoMd5);
  return {big_endian(bytes.data()), big_endian(bytes.data() + 8)};
}

Signature md5(std::string_view text) {
  thread_local const std::unique_ptr<EVP_MD, Free> algorithm(EVP_MD_fetch(nullptr, "MD5", nullptr));
  thread_local const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
  std::array<unsigned char, kDigestBytes> bytes;
  unsigned written = 0;
  const bool done = algorithm != nullptr && context != nullptr &&
                    EVP_DigestInit_ex2(context.get(), algorithm.get(), nullptr) == 1 &&
                    EVP_DigestUpdate(context.get(), text.data(), text.size()) == 1 &&
                    EVP_DigestFinal_ex(context.get(), bytes.data(), &written) == 1 && written == kDigestBytes;
  HS_CHECK(done, kNoMd5);
  return {big_endian(bytes.data()), big_endian(bytes.data() + 8)};
}

}  // namespace headshare
