// Subsets of a data set are drawn from streams that depend on nothing but a name and the number of items: they are the
// same for every scheme and seed.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace headshare {

// Returns 0 .. total - 1 in the order of the stream `name`.
std::vector<size_t> shuffled(size_t total, std::string_view name);

// Tells for each of `total` items whether it is among the `count` (at most total) that are drawn.
std::vector<char> draw_subset(size_t count, size_t total);

// Takes the marked items out of a list; both keep their order.
template <class Item>
std::vector<Item> take_marked(const std::vector<char>& marked, std::vector<Item>* items) {
  std::vector<Item> taken;
  std::vector<Item> left;
  for (size_t i = 0; i < marked.size(); ++i) (marked[i] ? taken : left).push_back(std::move((*items)[i]));
  *items = std::move(left);
  return taken;
}

}  // namespace headshare
