// Random numbers are keyed by (seed, name): two models that share a name share the numbers, whatever else they contain.
// The generator is counter-based, so its whole state is two integers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace headshare {

// Returns a well-mixed 64-bit key for the stream `name` of `seed`.
uint64_t stream_key(uint64_t seed, std::string_view name);

// Returns a further key from an existing one and a number (a step, a block): the streams are independent.
uint64_t stream_key(uint64_t key, uint64_t number);

// Philox4x32 (Salmon et al., SC 2011) makes four 32-bit numbers of a 128-bit counter and a 64-bit key. Seven rounds are
// the fewest that pass its authors' statistical tests; ten are their margin of safety.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, uint64_t key, int rounds = 10);

// Reads one Philox stream in sequence. `position` counts the 32-bit words already drawn, so {key, position} restores it
// exactly.
class Philox {
 public:
  explicit Philox(uint64_t key, uint64_t position = 0) : key_(key), position_(position) {}

  uint32_t next_word();
  uint64_t next_word64();
  double uniform();                // [0, 1), 53 bits
  uint64_t below(uint64_t bound);  // uniform in 0 .. bound - 1, without bias; bound > 0
  double normal();                 // N(0, 1); draws two uniforms

  uint64_t key() const { return key_; }
  uint64_t position() const { return position_; }

 private:
  uint64_t key_;
  uint64_t position_;
  std::array<uint32_t, 4> block_{};
  uint64_t block_index_ = UINT64_MAX;
};

}  // namespace headshare
