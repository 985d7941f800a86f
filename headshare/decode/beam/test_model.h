// For tests only, this is a model for beam search whose scores are a function of all that a row has seen. It keeps the
// history of each row as a cache would, so that a wrong move or keep gives other scores.
#pragma once

#include <ATen/ops/empty.h>

#include <functional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/decode/beam/step_scores.h"

namespace headshare {

// Writes the scores [V] of the token behind `history` (with the start token) in a translation of `sentence`.
using HistoryScores = std::function<void(int64_t sentence, std::span<const int64_t> history, std::span<float> scores)>;

class HistoryModel : public StepScores {
 public:
  HistoryModel(int64_t sentences, int64_t vocabulary, HistoryScores scores)
      : vocabulary_(vocabulary), scores_(std::move(scores)) {
    for (int64_t i = 0; i < sentences; ++i) sentences_.push_back(i);
    histories_.resize(static_cast<size_t>(sentences));
  }

  Tensor next(const std::vector<int64_t>& last) override {
    HS_CHECK(last.size() == histories_.size(), last.size(), " tokens for ", histories_.size(), " rows");
    const auto rows = static_cast<int64_t>(last.size());
    Tensor result = at::empty({rows, vocabulary_});
    for (size_t row = 0; row < last.size(); ++row) {
      HS_CHECK(last[row] >= 0 && last[row] < vocabulary_, "row ", row, " is fed token ", last[row]);
      histories_[row].push_back(last[row]);
      scores_(sentences_[row / static_cast<size_t>(beam_)], histories_[row],
              {result.data_ptr<float>() + static_cast<int64_t>(row) * vocabulary_, static_cast<size_t>(vocabulary_)});
    }
    ++steps;
    rows_fed += rows;
    return result;
  }

  void widen(int64_t beam) override {
    HS_CHECK(beam_ == 1 && beam > 1, "widen(", beam, ") of ", beam_, " rows");
    std::vector<std::vector<int64_t>> wide;
    for (const auto& history : histories_) wide.insert(wide.end(), static_cast<size_t>(beam), history);
    histories_ = std::move(wide);
    beam_ = beam;
  }

  void move(std::span<const RowMove> moves) override {
    HS_CHECK(!moves.empty(), "move() without moves");
    std::set<int64_t> from;
    std::set<int64_t> to;
    for (const RowMove& one : moves) {
      HS_CHECK(one.from / beam_ == one.to / beam_, "row ", one.from, " moves to another sentence: ", one.to);
      HS_CHECK(to.insert(one.to).second, "row ", one.to, " is written twice");
      from.insert(one.from);
    }
    for (const int64_t row : to) HS_CHECK(!from.contains(row), "row ", row, " is read and written");
    for (const RowMove& one : moves) {
      histories_.at(static_cast<size_t>(one.to)) = histories_.at(static_cast<size_t>(one.from));
    }
    moved += static_cast<int64_t>(moves.size());
  }

  void keep(std::span<const int64_t> sentences) override {
    HS_CHECK(!sentences.empty() && sentences.size() < sentences_.size(), "keep() of ", sentences.size(), " of ",
             sentences_.size());
    std::vector<int64_t> kept;
    std::vector<std::vector<int64_t>> histories;
    for (const int64_t place : sentences) {
      kept.push_back(sentences_.at(static_cast<size_t>(place)));
      for (int64_t i = 0; i < beam_; ++i) histories.push_back(histories_.at(static_cast<size_t>(place * beam_ + i)));
    }
    sentences_ = std::move(kept);
    histories_ = std::move(histories);
  }

  int64_t steps = 0;     // calls of next()
  int64_t rows_fed = 0;  // over all calls of next()
  int64_t moved = 0;     // rows copied by move()

 private:
  int64_t beam_ = 1;
  int64_t vocabulary_;
  HistoryScores scores_;
  std::vector<int64_t> sentences_ = {};  // the sentence at each place
  std::vector<std::vector<int64_t>> histories_ = {};
};

}  // namespace headshare
