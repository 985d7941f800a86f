// The keyed digest that HashFormers hashes words with.
#pragma once

#include <string_view>

#include "headshare/text/hash/signature.h"

namespace headshare {

// HMAC-MD5 (RFC 2104) with the key "en"; bit 0 is the top bit of the digest's first byte. Thread-safe. Throws Error
// where the system's OpenSSL offers no MD5.
Signature digest(std::string_view text);

}  // namespace headshare
