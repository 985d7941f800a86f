#include "headshare/text/hash/mersenne_twister.h"

#include <algorithm>

namespace headshare {

MersenneTwister::MersenneTwister(uint32_t seed) {
  constexpr uint32_t kKnuth = 1812433253;
  uint32_t word = seed;
  state_[0] = word;
  for (uint32_t i = 1; i < kWords; ++i) state_[i] = word = kKnuth * (word ^ word >> 30) + i;
}

// Renews the next part of the state. The two loops have no branches and do not wait for one another's words, so that
// compilers make several words at once.
void MersenneTwister::refill() {
  constexpr uint32_t kTopBit = 0x80000000;
  constexpr uint32_t kMatrix = 0x9908B0DF;
  const size_t count = std::min(kPart, kWords - begin_);
  state_[kWords] = state_[0];  // read with the last part alone, when it is new
  uint32_t* words = state_.data() + begin_;
  const uint32_t* far = state_.data() + (begin_ < kPart ? begin_ + kApart : begin_ - kPart);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t both = (words[i] & kTopBit) | (words[i + 1] & ~kTopBit);
    ready_[i] = far[i] ^ both >> 1 ^ ((0 - (both & 1)) & kMatrix);
  }
  for (size_t i = 0; i < count; ++i) {
    uint32_t word = words[i] = ready_[i];
    word ^= word >> 11;
    word ^= word << 7 & 0x9D2C5680;
    word ^= word << 15 & 0xEFC60000;
    ready_[i] = word ^ word >> 18;
  }
  begin_ = (begin_ + count) % kWords;
  at_ = 0;
  end_ = count;
}

}  // namespace headshare
