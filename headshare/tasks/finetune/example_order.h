// Training examples come in a new order each epoch, the same for every model with the same seed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headshare/base/rng.h"

namespace headshare {

// LengthGroups asks for batches of examples of about the same length, which need less padding. A fixed number of
// batches of the drawn order is sorted by length and comes batch by batch in an order that is drawn again.
struct LengthGroups {
  std::vector<int64_t> lengths = {};  // of every example; empty: no groups
  int64_t batch_size = 1;
};

// Returns the places of rows with these lengths, short rows first: batches of them need hardly any padding.
std::vector<size_t> shortest_first(const std::vector<int64_t>& lengths);

class ExampleOrder {
 public:
  // Orders 0 .. examples - 1, drawn from the stream (seed, "examples").
  ExampleOrder(int64_t examples, uint64_t seed, LengthGroups groups = {});

  int64_t next();

  int64_t drawn() const { return drawn_; }
  double epochs() const { return static_cast<double>(drawn_) / static_cast<double>(examples_); }

  // Save and restore where the order stands; restore() throws Error for a state of another number of examples.
  nlohmann::json state() const;
  void restore(const nlohmann::json& state, const std::string& where);

 private:
  void shuffle(int64_t epoch);
  void group(size_t first_batch, Philox* random);

  int64_t examples_;
  LengthGroups groups_;
  uint64_t key_;
  int64_t drawn_ = 0;
  int64_t shuffled_epoch_ = -1;  // the epoch that order_ is of
  std::vector<int64_t> order_;
};

}  // namespace headshare
