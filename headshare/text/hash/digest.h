// The digests that words are hashed with.
#pragma once

#include <string_view>

#include "headshare/text/hash/signature.h"

namespace headshare {

// In both, bit 0 is the top bit of the digest's first byte. Thread-safe. They throw Error where the system's OpenSSL
// offers no MD5.

// HMAC-MD5 (RFC 2104) with the key "en": HashFormers'.
Signature digest(std::string_view text);

// MD5 (RFC 1321) alone: T-FREE's.
Signature md5(std::string_view text);

}  // namespace headshare
