// Draws the random numbers of numpy.random.default_rng(seed), bit for bit: sacreBLEU draws its resamples with them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace headshare {

// This is PCG64 (O'Neill, 2014), seeded by numpy's SeedSequence.
class NumpyGenerator {
 public:
  explicit NumpyGenerator(uint64_t seed);

  // Draws as choice(bound, size=out.size()) does: numbers below `bound`, which is 1 .. 2^32 - 1, with replacement.
  void draw_below(uint32_t bound, std::span<uint32_t> out);

  // Draws as integers(2, size=out.size(), dtype=bool) does, following on the bits drawn before.
  void draw_bits(std::span<uint8_t> out);

 private:
  // A number of 128 bits is two words, the high one first.
  struct Wide {
    uint64_t high = 0;
    uint64_t low = 0;
  };
  static Wide times_plus(Wide a, Wide b, Wide c);

  void step() { state_ = times_plus(state_, kMultiplier, increment_); }
  uint64_t next64();
  uint32_t next32();  // the low half of a 64-bit number, then its high half

  static constexpr Wide kMultiplier = {0x2360ED051FC65DA4ULL, 0x4385DF649FCCF645ULL};

  Wide state_;
  Wide increment_;
  uint32_t kept_ = 0;  // the high half
  bool has_kept_ = false;
  uint32_t bits_ = 0;
  int bits_left_ = 0;
};

}  // namespace headshare
