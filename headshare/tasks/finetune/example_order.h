// In which order training examples come: a new one each epoch, the same for every model with the same seed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headshare {

class ExampleOrder {
 public:
  // Of 0 .. examples - 1, drawn from the stream (seed, "examples").
  ExampleOrder(int64_t examples, uint64_t seed);

  int64_t next();

  int64_t drawn() const { return drawn_; }
  double epochs() const { return static_cast<double>(drawn_) / static_cast<double>(examples_); }

  // Where the order stands; restore() throws Error for a state of another number of examples.
  nlohmann::json state() const;
  void restore(const nlohmann::json& state, const std::string& where);

 private:
  void shuffle(int64_t epoch);

  int64_t examples_;
  uint64_t key_;
  int64_t drawn_ = 0;
  int64_t shuffled_epoch_ = -1;  // that order_ is of
  std::vector<int64_t> order_;
};

}  // namespace headshare
