#include "headshare/text/hash/signature.h"

#include <algorithm>
#include <cstdio>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr int kHalfBits = 64;

// Returns bits [begin, end) of the signature as a number; at most 64 of them.
uint64_t bits(const Signature& signature, int begin, int end) {
  uint64_t value = 0;
  for (int index = begin; index < end; ++index) value = value << 1 | static_cast<uint64_t>(signature.bit(index));
  return value;
}

}  // namespace

bool Signature::bit(int index) const {
  HS_DCHECK(index >= 0 && index < kBits);
  const uint64_t half = index < kHalfBits ? high : low;
  return (half >> (kHalfBits - 1 - index % kHalfBits) & 1) != 0;
}

std::string Signature::hex() const {
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return digits;
}

uint64_t remainder(const Signature& signature, uint64_t divisor) {
  HS_DCHECK(divisor > 0 && divisor <= uint64_t{1} << 32);
  uint64_t rest = signature.high % divisor;
  rest = (rest << 32 | signature.low >> 32) % divisor;  // long division in digits of 32 bits
  return (rest << 32 | (signature.low & 0xFFFFFFFF)) % divisor;
}

std::array<int32_t, kChunks> chunk_numbers(const Signature& signature) {
  std::array<int32_t, kChunks> numbers{};
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const int begin = chunk * kChunkBits;
    const int end = std::min(begin + kChunkBits, Signature::kBits);
    numbers[static_cast<size_t>(chunk)] = static_cast<int32_t>(bits(signature, begin, end)) + 1;
  }
  return numbers;
}

}  // namespace headshare
