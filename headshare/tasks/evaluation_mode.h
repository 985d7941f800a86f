// An EvaluationMode keeps a model in evaluation mode for as long as something is scored.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <utility>

namespace headshare {

// Puts a model into evaluation mode and, when destroyed, back into the mode it was in.
class EvaluationMode {
 public:
  explicit EvaluationMode(std::shared_ptr<torch::nn::Module> model)
      : model_(std::move(model)), training_(model_->is_training()) {
    model_->eval();
  }
  ~EvaluationMode() { model_->train(training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::shared_ptr<torch::nn::Module> model_;
  bool training_;
};

}  // namespace headshare
