#include "headshare/data/parallel/pair_batcher.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/rng.h"
#include "headshare/base/shuffle.h"

namespace headshare {
namespace {

// This is enough that a pool's batches hold sentences of like length, and few enough that epochs differ in who meets
// whom.
constexpr int64_t kPoolBatches = 100;
constexpr int64_t kMostBatchTokens = int64_t{1} << 32;

int64_t measure(std::span<const int32_t> side) { return static_cast<int64_t>(side.size()); }

}  // namespace

PairBatch make_pair_batch(const PairData& data, std::span<const int64_t> pairs, const PairBatchIds& ids) {
  HS_CHECK(!pairs.empty(), "a batch of no pairs");
  PairBatch batch{.rows = static_cast<int64_t>(pairs.size()), .pairs = {pairs.begin(), pairs.end()}};
  for (const int64_t pair : pairs) {
    HS_CHECK(pair >= 0 && pair < data.size(), "pair ", pair, " of ", data.size(), " pairs");
    batch.source_lengths.push_back(measure(data.source(pair)));
    batch.target_lengths.push_back(measure(data.target(pair)));
    batch.scored += batch.target_lengths.back();
  }
  batch.source_length = *std::max_element(batch.source_lengths.begin(), batch.source_lengths.end());
  batch.target_length = *std::max_element(batch.target_lengths.begin(), batch.target_lengths.end());
  batch.source.assign(static_cast<size_t>(batch.rows * batch.source_length), ids.source_padding);
  batch.target_inputs.assign(static_cast<size_t>(batch.rows * batch.target_length), ids.target_padding);
  batch.targets.assign(batch.target_inputs.size(), kIgnoredTarget);
  for (int64_t row = 0; row < batch.rows; ++row) {
    const std::span<const int32_t> source = data.source(pairs[static_cast<size_t>(row)]);
    const std::span<const int32_t> target = data.target(pairs[static_cast<size_t>(row)]);
    const int64_t at = row * batch.target_length;
    std::copy(source.begin(), source.end(), batch.source.begin() + row * batch.source_length);
    std::copy(target.begin(), target.end(), batch.targets.begin() + at);
    batch.target_inputs[static_cast<size_t>(at)] = ids.start;
    std::copy(target.begin(), target.end() - 1, batch.target_inputs.begin() + at + 1);
  }
  return batch;
}

nlohmann::json to_json(const PairBatchState& state) {
  return {{"epoch", state.epoch}, {"batch", state.batch}, {"fingerprint", state.fingerprint}};
}

PairBatchState pair_batch_state_from_json(const nlohmann::json& json, const std::string& where) {
  const std::optional<int64_t> epoch = json_count(json, "epoch");
  const std::optional<int64_t> batch = json_count(json, "batch");
  HS_CHECK(epoch && batch && json.contains("fingerprint") && json["fingerprint"].is_string(), where,
           ": a position in the pairs {epoch, batch, fingerprint} was expected, not ", brief_json(json));
  return {.epoch = *epoch, .batch = *batch, .fingerprint = json["fingerprint"].get<std::string>()};
}

PairBatcher::PairBatcher(std::shared_ptr<const PairData> data, const PairBatcherOptions& options)
    : data_(std::move(data)), options_(options), key_(stream_key(options.seed, "pair-batches")) {
  HS_CHECK(data_ != nullptr && !data_->empty(), "there are no sentence pairs to make batches of");
  HS_CHECK(options.batch_tokens > 0 && options.batch_tokens <= kMostBatchTokens, "--batch-tokens ",
           options.batch_tokens, " is not within 1 and ", kMostBatchTokens);
  for (int64_t pair = 0; pair < data_->size(); ++pair) {
    HS_CHECK(length(pair) <= options.batch_tokens, "pair ", data_->number(pair) + 1, " has a side of ", length(pair),
             " tokens, and a batch has room for --batch-tokens ", options.batch_tokens, "; raise it, or lower ",
             "--max-pair-length");
  }
  state_.fingerprint = data_->fingerprint();
  begin_epoch(0);
}

int64_t PairBatcher::length(int64_t pair) const {
  return std::max(measure(data_->source(pair)), measure(data_->target(pair)));
}

// Begins an epoch; any epoch can be made without those before it.
void PairBatcher::begin_epoch(int64_t epoch) {
  state_.epoch = epoch;
  state_.batch = 0;
  batches_.clear();
  std::vector<int64_t> order(static_cast<size_t>(data_->size()));
  std::iota(order.begin(), order.end(), 0);
  Philox random(stream_key(key_, static_cast<uint64_t>(epoch)));
  shuffle(&order, &random);
  const int64_t pool_tokens = kPoolBatches * options_.batch_tokens;
  int64_t tokens = 0;
  size_t begin = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    tokens += length(order[i]);
    if (tokens < pool_tokens && i + 1 < order.size()) continue;
    cut_pool(std::span(order).subspan(begin, i + 1 - begin));
    begin = i + 1;
    tokens = 0;
  }
  shuffle(&batches_, &random);
}

void PairBatcher::cut_pool(std::span<int64_t> pool) {
  // The rank is by the longer side, which batches are bounded by; then by the target, which costs more (the output
  // layer). Equal pairs stay shuffled.
  const auto rank = [this](int64_t pair) {
    return std::tuple(length(pair), measure(data_->target(pair)), measure(data_->source(pair)));
  };
  std::stable_sort(pool.begin(), pool.end(), [&](int64_t a, int64_t b) { return rank(a) < rank(b); });
  std::vector<int64_t> batch;
  for (const int64_t pair : pool) {
    // Lengths ascend: this pair is the longest.
    if (static_cast<int64_t>(batch.size() + 1) * length(pair) > options_.batch_tokens) {
      batches_.push_back(std::exchange(batch, {}));
    }
    batch.push_back(pair);
  }
  batches_.push_back(std::move(batch));
}

PairBatch PairBatcher::next() {
  PairBatch batch = make_pair_batch(*data_, next_pairs(), options_.ids);
  if (++state_.batch == batches_in_epoch()) begin_epoch(state_.epoch + 1);
  return batch;
}

void PairBatcher::restore(const PairBatchState& state) {
  HS_CHECK(state.fingerprint == state_.fingerprint, "cannot go on with other sentence pairs: the run was at epoch ",
           state.epoch, ", batch ", state.batch, " of pairs ", state.fingerprint, ", but these are ",
           state_.fingerprint, "; give the same --source, --target and tokenizers, or start a new run");
  HS_CHECK(state.epoch >= 0 && state.batch >= 0, "cannot go on at epoch ", state.epoch, ", batch ", state.batch);
  begin_epoch(state.epoch);
  HS_CHECK(state.batch < batches_in_epoch(), "cannot go on at batch ", state.batch, " of epoch ", state.epoch,
           ": it has ", batches_in_epoch(), "; give the same --batch-tokens and --seed, or start a new run");
  state_.batch = state.batch;
}

double PairBatcher::epochs() const {
  return static_cast<double>(state_.epoch) +
         static_cast<double>(state_.batch) / static_cast<double>(batches_in_epoch());
}

}  // namespace headshare
