// A batcher makes batches of sentence pairs by their number of tokens. Legend: B pairs, S source tokens, T target
// tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "headshare/base/options/ignored_target.h"
#include "headshare/data/parallel/pair_data.h"

namespace headshare {

// Rows are padded behind their ends.
struct PairBatch {
  int64_t rows = 0;                          // B
  int64_t source_length = 0;                 // S, of the longest source
  int64_t target_length = 0;                 // T, of the longest target
  std::vector<int64_t> source = {};          // [B, S]
  std::vector<int64_t> source_lengths = {};  // [B]
  std::vector<int64_t> target_inputs = {};   // [B, T]: the start id, then the target without its last token
  std::vector<int64_t> targets = {};         // [B, T]: the target, kIgnoredTarget on padding
  std::vector<int64_t> target_lengths = {};  // [B]
  std::vector<int64_t> pairs = {};           // [B], as PairData numbers them
  int64_t scored = 0;                        // targets that are not ignored
};

// These ids are no part of the pairs.
struct PairBatchIds {
  int64_t source_padding = 0;
  int64_t target_padding = 0;
  int64_t start = 0;  // the id that a decoder begins with
};

// The batch of these pairs, in this order; at least one. Each is within 0 .. data.size() - 1.
PairBatch make_pair_batch(const PairData& data, std::span<const int64_t> pairs, const PairBatchIds& ids);

struct PairBatcherOptions {
  // A batch has B * max(S, T) <= batch_tokens: the tensors of neither side are larger, with their padding. fairseq
  // (--max-tokens), OpenNMT-py and JoeyNMT (batch type "token") count like that.
  int64_t batch_tokens = 4096;
  uint64_t seed = 0;
  PairBatchIds ids = {};
};

// This is where a batcher stands. The batches that follow depend on this, the options and the pairs alone.
struct PairBatchState {
  int64_t epoch = 0;        // from 0
  int64_t batch = 0;        // the next one of this epoch
  std::string fingerprint;  // of the pairs
};

nlohmann::json to_json(const PairBatchState& state);
PairBatchState pair_batch_state_from_json(const nlohmann::json& json, const std::string& where);

// A batcher gives every pair once an epoch. An epoch's pairs are shuffled and cut into pools of about 100 batches; a
// pool is sorted by length and cut into batches; the batches of all pools are shuffled. Random numbers come from the
// stream (seed, "pair-batches") and the epoch, and from nothing else: models that differ see the same batches.
class PairBatcher {
 public:
  // Throws Error for no pairs, and for a pair with a side of more than batch_tokens tokens.
  PairBatcher(std::shared_ptr<const PairData> data, const PairBatcherOptions& options);

  PairBatch next();

  // Returns the pairs that next() will give.
  std::span<const int64_t> next_pairs() const { return batches_[static_cast<size_t>(state_.batch)]; }

  // Counts the batches of the epoch that next() is in.
  int64_t batches_in_epoch() const { return static_cast<int64_t>(batches_.size()); }

  const PairBatchState& state() const { return state_; }

  // Goes on from a state of a batcher with equal options. Throws Error for a state of other pairs, and for a batch that
  // its epoch does not have.
  void restore(const PairBatchState& state);

  // Tells how often the pairs have been gone through.
  double epochs() const;

 private:
  int64_t length(int64_t pair) const;
  void begin_epoch(int64_t epoch);
  void cut_pool(std::span<int64_t> pool);

  std::shared_ptr<const PairData> data_;
  PairBatcherOptions options_;
  uint64_t key_;
  PairBatchState state_;
  std::vector<std::vector<int64_t>> batches_;  // of the state's epoch
};

}  // namespace headshare
