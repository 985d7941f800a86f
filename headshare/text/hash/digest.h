// Words are hashed with these digests.
#pragma once

#include <string_view>

#include "headshare/text/hash/signature.h"

namespace headshare {

// In both, bit 0 is the top bit of the digest's first byte. Both are thread-safe. They throw Error where the system's
// OpenSSL offers no MD5.

// Returns HMAC-MD5 (RFC 2104) with the key "en": HashFormers' digest.
Signature digest(std::string_view text);

// Returns MD5 (RFC 1321) alone: T-FREE's digest.
Signature md5(std::string_view text);

}  // namespace headshare
