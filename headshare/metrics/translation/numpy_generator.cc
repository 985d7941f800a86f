#include "headshare/metrics/translation/numpy_generator.h"

#include <bit>

namespace headshare {
namespace {

__extension__ using Product = unsigned __int128;

// This is numpy.random.SeedSequence(seed).generate_state(4, uint64): hashes that spread the seed over a pool of four
// words.
class SeedSequence {
 public:
  explicit SeedSequence(uint64_t seed) {
    const std::array<uint32_t, 4> words = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), 0, 0};
    for (size_t i = 0; i < 4; ++i) pool_[i] = hashed(words[i]);
    for (size_t from = 0; from < 4; ++from) {
      for (size_t to = 0; to < 4; ++to) {
        if (from != to) pool_[to] = mixed(pool_[to], hashed(pool_[from]));
      }
    }
  }

  std::array<uint64_t, 4> state() const {
    uint32_t factor = 0x8B51F9DD;
    const auto word = [&](size_t i) {
      uint32_t value = pool_[i % 4] ^ factor;
      factor *= 0x58F38DED;
      value *= factor;
      return uint64_t{value ^ (value >> 16)};
    };
    std::array<uint64_t, 4> result{};
    for (size_t i = 0; i < 4; ++i) {
      const uint64_t low = word(2 * i);
      result[i] = low | word(2 * i + 1) << 32;
    }
    return result;
  }

 private:
  uint32_t hashed(uint32_t value) {
    value ^= factor_;
    factor_ *= 0x931E8875;
    value *= factor_;
    return value ^ (value >> 16);
  }

  static uint32_t mixed(uint32_t x, uint32_t y) {
    const uint32_t value = 0xCA01F9DD * x - 0x4973F715 * y;
    return value ^ (value >> 16);
  }

  std::array<uint32_t, 4> pool_{};
  uint32_t factor_ = 0x43B0D7E5;
};

}  // namespace

NumpyGenerator::Wide NumpyGenerator::times_plus(Wide a, Wide b, Wide c) {
  const auto join = [](Wide x) { return (Product{x.high} << 64) | x.low; };
  const Product result = join(a) * join(b) + join(c);
  return {static_cast<uint64_t>(result >> 64), static_cast<uint64_t>(result)};
}

NumpyGenerator::NumpyGenerator(uint64_t seed) {
  const std::array<uint64_t, 4> words = SeedSequence(seed).state();
  increment_ = {words[2] << 1 | words[3] >> 63, words[3] << 1 | 1};
  step();
  state_ = times_plus(state_, {0, 1}, {words[0], words[1]});
  step();
}

uint64_t NumpyGenerator::next64() {
  step();
  return std::rotr(state_.high ^ state_.low, static_cast<int>(state_.high >> 58));
}

uint32_t NumpyGenerator::next32() {
  if (has_kept_) {
    has_kept_ = false;
    return kept_;
  }
  const uint64_t next = next64();
  kept_ = static_cast<uint32_t>(next >> 32);
  has_kept_ = true;
  return static_cast<uint32_t>(next);
}

// Draws by Lemire's method (2019): the high half of a product, unless its low half says that it would not be uniform.
void NumpyGenerator::draw_below(uint32_t bound, std::span<uint32_t> out) {
  const uint32_t threshold = (0 - bound) % bound;
  for (uint32_t& one : out) {
    uint64_t product = 0;
    if (bound > 1) {  // numpy draws nothing for a bound of 1
      do {
        product = uint64_t{next32()} * bound;
      } while (static_cast<uint32_t>(product) < threshold);
    }
    one = static_cast<uint32_t>(product >> 32);
  }
}

void NumpyGenerator::draw_bits(std::span<uint8_t> out) {
  for (uint8_t& one : out) {
    if (bits_left_ == 0) {
      bits_ = next32();
      bits_left_ = 32;
    }
    one = bits_ & 1;
    bits_ >>= 1;
    --bits_left_;
  }
}

}  // namespace headshare
