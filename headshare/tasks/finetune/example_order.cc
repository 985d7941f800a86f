#include "headshare/tasks/finetune/example_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/shuffle.h"

namespace headshare {

namespace {

constexpr size_t kBatchesOfAGroup = 50;

}  // namespace

std::vector<size_t> shortest_first(const std::vector<int64_t>& lengths) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] < lengths[b]; });
  return order;
}

ExampleOrder::ExampleOrder(int64_t examples, uint64_t seed, LengthGroups groups)
    : examples_(examples), groups_(std::move(groups)), key_(stream_key(seed, "examples")) {
  HS_CHECK(examples > 0, "there is no example to train on");
}

void ExampleOrder::shuffle(int64_t epoch) {
  shuffled_epoch_ = epoch;
  order_.resize(static_cast<size_t>(examples_));
  std::iota(order_.begin(), order_.end(), int64_t{0});
  Philox random(stream_key(key_, static_cast<uint64_t>(epoch)));
  headshare::shuffle(&order_, &random);  // not the member
  if (groups_.lengths.empty()) return;
  // Batches go on over the end of an epoch: the first examples fill up the one that the epoch before began.
  const int64_t begun = epoch * examples_ % groups_.batch_size;
  group(static_cast<size_t>(begun == 0 ? 0 : groups_.batch_size - begun), &random);
}

void ExampleOrder::group(size_t first_batch, Philox* random) {
  const auto batch = static_cast<size_t>(groups_.batch_size);
  const auto length_of = [this](int64_t example) { return groups_.lengths[static_cast<size_t>(example)]; };
  for (size_t first = first_batch; first < order_.size(); first += kBatchesOfAGroup * batch) {
    const size_t last = std::min(order_.size(), first + kBatchesOfAGroup * batch);
    const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(first);
    std::stable_sort(begin, order_.begin() + static_cast<std::ptrdiff_t>(last),
                     [&](int64_t a, int64_t b) { return length_of(a) < length_of(b); });
    for (size_t i = (last - first) / batch; i > 1; --i) {  // shuffles whole batches; what is left over stays the last
      const auto other = static_cast<std::ptrdiff_t>(random->below(i) * batch);
      const auto own = static_cast<std::ptrdiff_t>((i - 1) * batch);
      if (own != other) std::swap_ranges(begin + own, begin + own + groups_.batch_size, begin + other);
    }
  }
}

int64_t ExampleOrder::next() {
  if (shuffled_epoch_ != drawn_ / examples_) shuffle(drawn_ / examples_);
  return order_[static_cast<size_t>(drawn_++ % examples_)];
}

nlohmann::json ExampleOrder::state() const { return {{"examples", examples_}, {"drawn", drawn_}}; }

void ExampleOrder::restore(const nlohmann::json& state, const std::string& where) {
  const auto number = [&](const char* key) {
    const std::optional<int64_t> value = json_count(state, key);
    HS_CHECK(value, where, ": the number of '", key, "' is missing or damaged");
    return *value;
  };
  HS_CHECK(number("examples") == examples_, where, " belongs to ", number("examples"), " training examples; there are ",
           examples_, " now: the data changed");
  drawn_ = number("drawn");
}

}  // namespace headshare
