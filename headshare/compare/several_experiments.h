// SeveralExperiments hold a task's data as several tokenizers read it: each cell of a comparison of embeddings uses its
// own tokenizer's.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "headshare/compare/options.h"

namespace headshare {

class SeveralExperiments : public Experiment {
 public:
  // Opens one experiment for each tokenizer that the variants of `options` have; the subject is the first one's. Throws
  // Error as TaskFamily::open does.
  SeveralExperiments(const ComparisonOptions& options, const Progress& progress);

  Subject subject() const override;
  bool has(Part part) const override;
  ModelOptions model(const TaskOptions& options) const override { return of(options).model(options); }
  Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
              const TrainingShape& shape) const override {
    return of(options).trial(options, seed, device, shape);
  }
  // Returns the fingerprint of the data as a cell with these options reads it. It passes over the data.
  std::string fingerprint(const TaskOptions& options) const { return of(options).subject().fingerprint; }
  // Shares only tokenizers with a vocabulary; the others follow from the options.
  void share(const fs::path& home, TaskOptions* options) const override;

 private:
  const Experiment& of(const TaskOptions& options) const;

  std::vector<std::pair<TokenizerKind, std::unique_ptr<Experiment>>> experiments_;
};

}  // namespace headshare
