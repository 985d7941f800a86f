// Three-way classification tells for each token of a text whether it is the text's own, shuffled or random.
#pragma once

#include "headshare/models/encoder.h"
#include "headshare/tasks/language/language_model.h"
#include "headshare/tasks/masked/masked_language_model.h"

namespace headshare {

// ThreeWayScores are what an encoder makes of corrupted windows.
struct ThreeWayScores {
  WindowLosses losses;
  int64_t correct = 0;
  std::array<int64_t, kThreeWayClasses> asked = {};  // tokens of each class
  std::array<int64_t, kThreeWayClasses> found = {};  // of these, those that were recognised

  double loss() const { return losses.sums.nats / static_cast<double>(losses.sums.tokens); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(losses.sums.tokens); }
  double recall(ThreeWay label) const;  // 0 where none was asked
};

// Scores every window of `tokens`, corrupted as follows from its number and the options alone, so that equal embeddings
// are asked the same. The model is put into evaluation mode meanwhile. Throws Error when no token could be asked about.
ThreeWayScores evaluate_three_way(const Encoder& model, const TokenData& tokens, const Corrupter& corrupter,
                                  const MaskedSetup& setup, const WindowProgress& progress = {});

// Returns the loss in nats per token, the accuracy, and the share of the shuffled and of the random tokens that was
// recognised.
std::vector<Score> three_way_scores(const ThreeWayScores& scores, const std::string& tokenizer,
                                    const MaskedSetup& setup, const CorruptionOptions& options);

// A micro-batch is windows like those of MaskedLanguageModelTask; what is replaced is drawn anew for every batch from
// the stream (seed, "corruption") and the batch's number.
class ThreeWayTask : public TextTask {
 public:
  // Makes a model, and throws Error, as MaskedLanguageModelTask does.
  ThreeWayTask(const LanguageModelOptions& language, const MaskedOptions& masked, const LanguageData& data,
               uint64_t seed, c10::Device device, TrainingShape shape = {});

  std::shared_ptr<torch::nn::Module> model() override { return model_.ptr(); }
  DropoutClock& clock() override { return model_->clock(); }
  int64_t draw(int64_t micro_batches) override;
  Tensor loss_sum(int64_t index) override;
  Evaluation evaluate(Part part, const Task::Progress& progress) override;
  void save(const std::string& directory) override;

  Encoder& encoder() { return model_; }

 private:
  WindowBatch next_batch();
  TokenData scored(Part part) const;

  LanguageModelOptions language_;
  CorruptionOptions corruption_;
  Corrupter corrupter_;
  uint64_t key_;
  int64_t evaluation_batch_ = 1;
  Encoder model_{nullptr};
  std::vector<WindowBatch> drawn_;
};

}  // namespace headshare
