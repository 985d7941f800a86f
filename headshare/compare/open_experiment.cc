#include "headshare/compare/open_experiment.h"

#include "headshare/base/error.h"
#include "headshare/compare/several_experiments.h"
#include "headshare/train/training_shape.h"

namespace headshare {

std::unique_ptr<Experiment> open_experiment(const ComparisonOptions& options, const Progress& progress) {
  std::unique_ptr<Experiment> experiment;
  if (options.embeddings.empty()) {
    experiment = task_family(options.task).open(options, progress);
  } else {
    experiment = std::make_unique<SeveralExperiments>(options, progress);
  }
  HS_CHECK(experiment->has(Part::kValidation),
           "a comparison picks each model's best checkpoint on validation text, and there is none; set ",
           "--validation-fraction above 0, or --validation-text");
  return experiment;
}

Trial open_trial(const Experiment& experiment, const ComparisonOptions& cell, c10::Device device) {
  return experiment.trial(cell, static_cast<uint64_t>(cell.train.seed), device, training_shape(cell.train));
}

}  // namespace headshare
