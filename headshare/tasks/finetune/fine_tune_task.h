// Every fine-tuning task has an encoder with a head, and an order of training examples.
#pragma once

#include <memory>

#include "headshare/models/size.h"
#include "headshare/tasks/finetune/example_order.h"
#include "headshare/tasks/finetune/options.h"
#include "headshare/tasks/finetune/task_note.h"
#include "headshare/train/task.h"

namespace headshare {

class FineTuneTask : public Task {
 public:
  std::shared_ptr<torch::nn::Module> model() override { return model_.ptr(); }
  DropoutClock& clock() override { return model_->clock(); }
  bool has(Part part) const override { return part == Part::kValidation; }
  nlohmann::json state() const override { return order_.state(); }
  void restore(const nlohmann::json& state, const std::string& where) override { order_.restore(state, where); }
  void save(const std::string& directory) override {
    save_model(directory, model_, tokenizer_.get());
    write_task_note(directory, note_);
  }
  double epochs() const override { return order_.epochs(); }

 protected:
  // Takes over the model that starting_model() made, on the CPU. `note` is saved with it. `lengths` counts the tokens
  // of every example to train on. The loop sets in `shape` whether blocks are recomputed and the precision of products.
  FineTuneTask(Encoder model, std::shared_ptr<Tokenizer> tokenizer, TaskNote note, const std::vector<int64_t>& lengths,
               const FineTuneOptions& options, uint64_t seed, c10::Device device, TrainingShape shape)
      : model_(std::move(model)),
        order_(
            static_cast<int64_t>(lengths.size()), seed,
            {.lengths = options.group_by_length ? lengths : std::vector<int64_t>(), .batch_size = options.batch_size}),
        tokenizer_(std::move(tokenizer)),
        note_(std::move(note)) {
    shape.batch = options.batch_size;
    shape.length = model_->options().context;
    shape.scored = 0;
    note_.most_rows = evaluation_batch(model_->options(), shape);
    most_rows_ = static_cast<size_t>(note_.most_rows);
    model_->to(device);
    if (tokenizer_ != nullptr) model_->read_words(tokenizer_);
  }

  Encoder model_;
  ExampleOrder order_;
  size_t most_rows_ = 1;  // rows that are evaluated at once

 private:
  std::shared_ptr<Tokenizer> tokenizer_;
  TaskNote note_;
};

}  // namespace headshare
