// Notices a model that learns no more than how frequent each token is.
#pragma once

#include "headshare/train/observer.h"

namespace headshare {

// Compares the mean training loss of a tenth of the run with the entropy of the tokens taken one by one, and gives a
// notice where it is not below: halfway, and again at the end.
class PlateauWatch : public Observer {
 public:
  explicit PlateauWatch(double unigram_entropy) : entropy_(unigram_entropy) {}

  void on_step(const StepReport& report) override;

 private:
  void judge() const;

  double entropy_;
  // The tenth of the run, 0 .. 9, that is being looked at, and the losses reported in it.
  int64_t tenth_ = -1;
  int64_t first_step_ = 0;
  int64_t last_step_ = 0;
  double sum_ = 0;
  int64_t count_ = 0;
};

}  // namespace headshare
