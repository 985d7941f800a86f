// A hash family makes a signature of a word: 128 bits.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace headshare {

// Bit 0 is the most significant bit of `high`: the top bit of the digest's first byte, or the first coordinate of a
// random projection.
struct Signature {
  static constexpr int kBits = 128;

  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const Signature&) const = default;

  bool bit(int index) const;  // 0 .. kBits - 1
  std::string hex() const;    // 32 digits, lower case
};

// Returns the remainder of the signature, read as a 128-bit number, by `divisor` (1 .. 2^32).
uint64_t remainder(const Signature& signature, uint64_t divisor);

// Splits a signature as HashFormers' Pool does: the bits are cut into chunks of kChunkBits from bit 0 on, the last one
// shorter; each chunk's number plus 1, so that 0 is free for special tokens.
inline constexpr int kChunkBits = 10;
inline constexpr int kChunks = (Signature::kBits + kChunkBits - 1) / kChunkBits;  // 13
std::array<int32_t, kChunks> chunk_numbers(const Signature& signature);

}  // namespace headshare
