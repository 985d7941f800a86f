// What every fine-tuning task has: an encoder with a head, and an order of training examples.
#pragma once

#include <memory>

#include "headshare/tasks/finetune/example_order.h"
#include "headshare/tasks/finetune/options.h"
#include "headshare/tasks/task.h"

namespace headshare {

class FineTuneTask : public Task {
 public:
  std::shared_ptr<torch::nn::Module> model() override { return model_.ptr(); }
  DropoutClock& clock() override { return model_->clock(); }
  bool has(Part part) const override { return part == Part::kValidation; }
  nlohmann::json state() const override { return order_.state(); }
  void restore(const nlohmann::json& state, const std::string& where) override { order_.restore(state, where); }
  void save(const std::string& directory) override { save_model(directory, model_, tokenizer_.get()); }
  double epochs() const override { return order_.epochs(); }

 protected:
  // Takes over the model that starting_model() made, on the CPU.
  FineTuneTask(Encoder model, std::shared_ptr<Tokenizer> tokenizer, ExampleOrder order, c10::Device device)
      : model_(std::move(model)), order_(std::move(order)), tokenizer_(std::move(tokenizer)) {
    model_->to(device);
  }

  Encoder model_;
  ExampleOrder order_;

 private:
  std::shared_ptr<Tokenizer> tokenizer_;
};

}  // namespace headshare
