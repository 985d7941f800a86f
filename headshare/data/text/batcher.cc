#include "headshare/data/text/batcher.h"

#include <numeric>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/shuffle.h"
#include "headshare/data/text/splits.h"

namespace headshare {

Field batch_size_field(int64_t* target) {
  return field("batch-size", target, "windows of text per training step",
               {.min = 1, .max = 1 << 20, .aliases = {"per-device-train-batch-size", "train-batch-size"}});
}

Field batch_order_field(BatchOrder* target) {
  static const EnumNames<BatchOrder> kOrders = {
      {BatchOrder::kRandom, "random"}, {BatchOrder::kShuffled, "shuffled"}, {BatchOrder::kSequential, "sequential"}};
  return field(
      "batch-order", target,
      "random: windows start anywhere; shuffled: disjoint windows in a new order each epoch; sequential: in the "
      "order of the text",
      kOrders);
}

nlohmann::json to_json(const BatchState& state) {
  return {{"batches", state.batches}, {"fingerprint", state.fingerprint}};
}

BatchState batch_state_from_json(const nlohmann::json& json, const std::string& where) {
  HS_CHECK(
      json.is_object() && json.contains("batches") && json.contains("fingerprint") && json["fingerprint"].is_string(),
      where, ": a position in the data {batches, fingerprint} was expected");
  const std::optional<int64_t> batches = json_count(json["batches"]);
  HS_CHECK(batches, where, ": a position in the data cannot be ", json["batches"].dump());
  return {.batches = *batches, .fingerprint = json["fingerprint"].get<std::string>()};
}

Batcher::Batcher(TokenData tokens, const BatchOptions& options)
    : tokens_(std::move(tokens)), options_(options), key_(stream_key(options.seed, "batches")) {
  HS_CHECK(options.batch_size > 0 && options.context > 0, "--batch-size ", options.batch_size, " and --context ",
           options.context, " must be at least 1");
  check_long_enough(tokens_, options.context, "training");
  windows_ = (tokens_.size() - 1) / options.context;
  state_.fingerprint = tokens_.fingerprint();
}

void Batcher::restore(const BatchState& state) {
  HS_CHECK(state.fingerprint == state_.fingerprint, "cannot go on with other text: the run was at batch ",
           state.batches, " of tokens ", state.fingerprint, ", but these are ", state_.fingerprint,
           "; give the same --text and tokenizer, or start a new run");
  state_ = state;
}

double Batcher::epochs() const {
  return static_cast<double>(state_.batches) * static_cast<double>(options_.batch_size * options_.context) /
         static_cast<double>(tokens_.size());
}

// Shuffles by Fisher-Yates with the epoch's own stream: any epoch can be made without those before it.
void Batcher::shuffle_windows(int64_t epoch) {
  permutation_.resize(static_cast<size_t>(windows_));
  std::iota(permutation_.begin(), permutation_.end(), 0);
  Philox random(stream_key(key_, static_cast<uint64_t>(epoch)));
  shuffle(&permutation_, &random);
  shuffled_epoch_ = epoch;
}

int64_t Batcher::window_start(int64_t number, Philox& random) {
  if (options_.order == BatchOrder::kRandom) {
    return static_cast<int64_t>(random.below(static_cast<uint64_t>(tokens_.size() - options_.context)));
  }
  const int64_t within = number % windows_;
  if (options_.order == BatchOrder::kSequential) return within * options_.context;
  if (number / windows_ != shuffled_epoch_) shuffle_windows(number / windows_);
  return permutation_[static_cast<size_t>(within)] * options_.context;
}

Batch Batcher::next() {
  const int64_t rows = options_.batch_size;
  const int64_t length = options_.context;
  const auto values = static_cast<size_t>(rows * length);
  Batch batch{.rows = rows,
              .length = length,
              .inputs = std::vector<int64_t>(values),
              .targets = std::vector<int64_t>(values),
              .scored = rows * length};
  Philox random(stream_key(key_, static_cast<uint64_t>(state_.batches)));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t start = window_start(state_.batches * rows + row, random);
    tokens_.copy(start, length, batch.inputs.data() + row * length);
    tokens_.copy(start + 1, length, batch.targets.data() + row * length);
  }
  ++state_.batches;
  return batch;
}

}  // namespace headshare
