#include "headshare/tasks/finetune/example_order.h"

#include <numeric>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/rng.h"

namespace headshare {

ExampleOrder::ExampleOrder(int64_t examples, uint64_t seed) : examples_(examples), key_(stream_key(seed, "examples")) {
  HS_CHECK(examples > 0, "there is no example to train on");
}

void ExampleOrder::shuffle(int64_t epoch) {
  shuffled_epoch_ = epoch;
  order_.resize(static_cast<size_t>(examples_));
  std::iota(order_.begin(), order_.end(), int64_t{0});
  Philox random(stream_key(key_, static_cast<uint64_t>(epoch)));
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
}

int64_t ExampleOrder::next() {
  if (shuffled_epoch_ != drawn_ / examples_) shuffle(drawn_ / examples_);
  return order_[static_cast<size_t>(drawn_++ % examples_)];
}

nlohmann::json ExampleOrder::state() const { return {{"examples", examples_}, {"drawn", drawn_}}; }

void ExampleOrder::restore(const nlohmann::json& state, const std::string& where) {
  const auto number = [&](const char* key) {
    const nlohmann::json value = state.is_object() ? state.value(key, nlohmann::json()) : nlohmann::json();
    HS_CHECK(value.is_number_integer() && value >= 0, where, ": the number of '", key, "' is missing or damaged");
    return value.get<int64_t>();
  };
  HS_CHECK(number("examples") == examples_, where, " belongs to ", number("examples"), " training examples; there are ",
           examples_, " now: the data changed");
  drawn_ = number("drawn");
}

}  // namespace headshare
