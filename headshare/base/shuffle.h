// Puts a list into a random order.
#pragma once

#include <utility>
#include <vector>

#include "headshare/base/rng.h"

namespace headshare {

// Shuffles by Fisher-Yates: every order is equally likely, and the generator's state alone says which it is.
template <class Item>
void shuffle(std::vector<Item>* items, Philox* random) {
  for (size_t i = items->size(); i > 1; --i) std::swap((*items)[i - 1], (*items)[random->below(i)]);
}

}  // namespace headshare
