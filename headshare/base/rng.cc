#include "headshare/base/rng.h"

#include <cmath>
#include <numbers>

namespace headshare {
namespace {

uint64_t splitmix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t stream_key(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return splitmix64(splitmix64(seed) ^ hash);
}

uint64_t stream_key(uint64_t key, uint64_t number) { return splitmix64(splitmix64(key) + number); }

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> c, uint64_t key, int rounds) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < rounds; ++round) {
    const uint64_t p0 = 0xD2511F53ULL * c[0];
    const uint64_t p1 = 0xCD9E8D57ULL * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

uint32_t Philox::next_word() {
  const uint64_t index = position_ / 4;
  if (index != block_index_) {
    block_ = philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0}, key_);
    block_index_ = index;
  }
  return block_[position_++ % 4];
}

uint64_t Philox::next_word64() {
  const uint64_t low = next_word();
  return low | (static_cast<uint64_t>(next_word()) << 32);
}

double Philox::uniform() { return static_cast<double>(next_word64() >> 11) * 0x1.0p-53; }

uint64_t Philox::below(uint64_t bound) {
  // Numbers under 2^64 mod bound would favour the small results: draw again (Lemire 2019).
  const uint64_t threshold = (0 - bound) % bound;
  while (true) {
    const uint64_t word = next_word64();
    if (word >= threshold) return word % bound;
  }
}

double Philox::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace headshare
