// Stores the upper half of a float.
#pragma once

#include <cstdint>
#include <cstring>

namespace headshare::kernels {

struct Bf16 {
  uint16_t bits;
};

inline float to_float(Bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float to_float(float x) { return x; }

// Rounds to the nearest, ties to even; NaN stays NaN.
inline Bf16 to_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (x != x) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
}

}  // namespace headshare::kernels
