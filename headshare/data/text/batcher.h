// A batcher makes batches of token windows for causal language models. Legend: B batch, T context.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "headshare/base/options/field.h"
#include "headshare/base/options/ignored_target.h"
#include "headshare/base/rng.h"
#include "headshare/data/text/token_data.h"

namespace headshare {

struct Batch {
  int64_t rows = 0;              // B
  int64_t length = 0;            // T
  std::vector<int64_t> inputs;   // [B, T]
  std::vector<int64_t> targets;  // [B, T], the token after each input, or kIgnoredTarget
  int64_t scored = 0;            // targets that are not ignored
};

enum class BatchOrder {
  kRandom,      // every window starts anywhere, with equal probability (nanoGPT)
  kShuffled,    // the disjoint windows of the text in a new order each epoch
  kSequential,  // the disjoint windows from first to last, again and again
};

struct BatchOptions {
  int64_t batch_size = 32;
  int64_t context = 128;
  BatchOrder order = BatchOrder::kRandom;
  uint64_t seed = 0;
};

Field batch_size_field(int64_t* target);
Field batch_order_field(BatchOrder* target);

// This is where a batcher stands. The batches that follow depend on this, the options and the tokens alone.
struct BatchState {
  int64_t batches = 0;      // handed out so far
  std::string fingerprint;  // of the tokens
};

nlohmann::json to_json(const BatchState& state);
BatchState batch_state_from_json(const nlohmann::json& json, const std::string& where);

// A batcher gives full windows of T inputs and their T targets; nothing is padded or ignored. The disjoint windows are
// [k T, k T + T] for all k that fit, so that up to T - 1 tokens at the end are never seen by kShuffled and kSequential.
// Random numbers come from the stream (seed, "batches") and from nothing else: models that differ see the same batches.
class Batcher {
 public:
  // Throws Error when the text is shorter than context + 1 tokens (check_long_enough).
  Batcher(TokenData tokens, const BatchOptions& options);

  Batch next();

  const BatchState& state() const { return state_; }

  // Goes on from a state of a batcher with equal options. Throws Error for a state of other tokens.
  void restore(const BatchState& state);

  // Tells how often the text has been gone through: inputs handed out / tokens.
  double epochs() const;

 private:
  int64_t window_start(int64_t number, Philox& random);
  void shuffle_windows(int64_t epoch);

  TokenData tokens_;
  BatchOptions options_;
  BatchState state_;
  uint64_t key_;
  int64_t windows_;              // disjoint ones in the text
  int64_t shuffled_epoch_ = -1;  // the epoch that `permutation_` belongs to
  std::vector<int64_t> permutation_;
};

}  // namespace headshare
