// Draws the normal numbers of numpy's RandomState, bit for bit: published hashes are made of them.
#pragma once

#include "headshare/text/hash/mersenne_twister.h"

namespace headshare {

// Draws numpy.random.RandomState(seed).standard_normal(), one number at a time: a Mersenne twister and Marsaglia's
// polar method. std::normal_distribution would give other numbers with each standard library.
class LegacyNormal {
 public:
  explicit LegacyNormal(uint32_t seed) : twister_(seed) {}

  double next();

 private:
  double uniform();  // 53 bits in [0, 1)

  MersenneTwister twister_;
  double kept_ = 0;  // the second number of a pair
  bool has_kept_ = false;
};

}  // namespace headshare
