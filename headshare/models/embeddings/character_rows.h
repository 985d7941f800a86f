// CANINE (Clark et al., TACL 2022) hashes characters in this way.
#pragma once

#include <cstdint>

#include "headshare/ops/layer.h"

namespace headshare {

// The published models have this many hash functions.
inline constexpr int64_t kCharacterHashes = 8;

// Maps code points, int64 [n], to rows of a table of kCharacterHashes * buckets rows, int64 [n, kCharacterHashes]. Hash
// function k has the rows from k * buckets on; with the k-th of the primes 31, 43, 59, 61, 73, 97, 103, 113 it picks
// row (code point + 1) * prime mod buckets of these.
Tensor character_rows(const Tensor& code_points, int64_t buckets);

}  // namespace headshare
