#include "headshare/tasks/finetune/subset.h"

#include <numeric>

#include "headshare/base/rng.h"
#include "headshare/base/shuffle.h"

namespace headshare {

std::vector<size_t> shuffled(size_t total, std::string_view name) {
  std::vector<size_t> order(total);
  std::iota(order.begin(), order.end(), size_t{0});
  Philox random(stream_key(stream_key(/*seed=*/0, name), total));
  shuffle(&order, &random);
  return order;
}

std::vector<char> draw_subset(size_t count, size_t total) {
  std::vector<char> marked(total, 0);
  const std::vector<size_t> order = shuffled(total, "subset of examples");
  for (size_t i = 0; i < count; ++i) marked[order[i]] = 1;
  return marked;
}

}  // namespace headshare
