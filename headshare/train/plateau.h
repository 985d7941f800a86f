// This watch notices a model that learns only which tokens are frequent and which share a text.
#pragma once

#include <string>

#include "headshare/train/observer.h"

namespace headshare {

// Compares the mean training loss of a tenth of the run with the entropy of the tokens taken one by one, and gives a
// notice where it is not below this share of it: halfway, and again at the end. Encoders that make no use of word order
// stay at 0.82 to 0.87 of it for thousands of steps; those that do fall below 0.75 within hundreds
// (docs/design/017-encoders.md).
inline constexpr double kPlateauShare = 0.8;

class PlateauWatch : public Observer {
 public:
  // `advice` says how to leave the plateau: "train with more --steps".
  PlateauWatch(double unigram_entropy, std::string advice) : entropy_(unigram_entropy), advice_(std::move(advice)) {}

  void on_step(const StepReport& report) override;

 private:
  void judge() const;

  double entropy_;
  std::string advice_;
  // These are the tenth of the run, 0 .. 9, that is being looked at, and the losses reported in it.
  int64_t tenth_ = -1;
  int64_t first_step_ = 0;
  int64_t last_step_ = 0;
  double sum_ = 0;
  int64_t count_ = 0;
};

}  // namespace headshare
