// A DiagnosticTask trains a decoder whose hidden states feed output heads of the task's own.
#pragma once

#include <memory>
#include <vector>

#include "headshare/models/decoder.h"
#include "headshare/models/size.h"
#include "headshare/ops/linear.h"
#include "headshare/tasks/diagnostics/diagnostic.h"
#include "headshare/train/task.h"

namespace headshare {

class DiagnosticModelImpl : public Layer {
 public:
  DiagnosticModelImpl(const DecoderOptions& resolved, int64_t outputs);

  // Returns the logits [B, O, T, V] of ids int64 [B, T]: for each of O outputs its logits of V tokens.
  Tensor logits(const Tensor& ids) const;

  DropoutClock& clock() const { return decoder->clock(); }
  void set_recompute(bool on) { decoder->set_recompute(on); }

  Decoder decoder;

 private:
  int64_t outputs_;
  Linear heads_;  // E -> O V
};
TORCH_MODULE(DiagnosticModel);

// Training sequences come from streams keyed by (seed, task, number) and never repeat; held-out ones from
// streams that know nothing of the seed, so that every model is judged on the same.
class DiagnosticTask : public Task {
 public:
  // Makes a model with initial values of `seed`; the weights of sub-layers that schemes have in common begin equal.
  // Throws Error for a difficulty that cannot be met and when training would not fit into memory. The loop sets in
  // `shape` whether blocks are recomputed and how many averages it keeps; the task sets the rest.
  DiagnosticTask(const DiagnosticOptions& options, uint64_t seed, c10::Device device, TrainingShape shape = {});

  std::shared_ptr<torch::nn::Module> model() override { return model_.ptr(); }
  DropoutClock& clock() override { return model_->clock(); }
  int64_t draw(int64_t micro_batches) override;
  Tensor loss_sum(int64_t index) override;
  // Returns the score "accuracy", the share of targets that get the highest logit. Blocks are the accuracies of the
  // sequences; all have as many targets, so that their mean is the accuracy.
  Evaluation evaluate(Part part, const Task::Progress& progress) override;
  bool has(Part) const override { return true; }
  nlohmann::json state() const override;
  void restore(const nlohmann::json& state, const std::string& where) override;
  // Writes model.safetensors and a config.json that names the task and its options; they are no language model.
  void save(const std::string& directory) override;
  double epochs() const override { return 0; }  // there is no data to pass over

  Decoder& decoder() { return model_->decoder; }
  double chance() const { return generator_->chance(); }

 private:
  struct Sequences {
    Tensor inputs;   // int64 [B, T]
    Tensor targets;  // int64 [B, O, T]
  };

  // Draws the sequences first .. first + count - 1 of the streams under `key`, on the model's device.
  Sequences sequences(uint64_t key, int64_t first, int64_t count) const;
  Tensor losses(const Tensor& logits, const Tensor& targets, at::Reduction::Reduction reduction) const;
  std::string signature(int64_t sequences) const;

  DiagnosticOptions options_;
  std::unique_ptr<SequenceGenerator> generator_;
  uint64_t training_key_;
  int64_t evaluation_batch_ = 1;
  DiagnosticModel model_{nullptr};
  std::vector<Sequences> drawn_;
  int64_t sequences_drawn_ = 0;
};

}  // namespace headshare
