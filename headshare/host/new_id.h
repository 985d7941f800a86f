// Makes names that nobody else has.
#pragma once

#include <random>
#include <string>

namespace headshare {

// Returns 16 hexadecimal digits at random.
inline std::string new_id() {
  constexpr int kDigits = 16;
  std::random_device random;
  std::string id;
  for (int i = 0; i < kDigits; ++i) id += "0123456789abcdef"[random() % 16];
  return id;
}

}  // namespace headshare
