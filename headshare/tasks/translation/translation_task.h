// In translation an encoder-decoder learns pairs of sentences.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headshare/data/parallel/pair_batcher.h"
#include "headshare/models/encoder_decoder.h"
#include "headshare/models/size.h"
#include "headshare/tasks/judged_parts.h"
#include "headshare/tasks/translation/translation_data.h"
#include "headshare/train/task.h"

namespace headshare {

class TranslationTask : public Task {
 public:
  // Makes a model of these options (resolved) with initial values of `seed`. Throws Error when training would not fit
  // into memory, or a part has a pair that does not fit into the model's positions. The loop sets in `shape` whether
  // blocks are recomputed and how many averages it keeps; the task sets the rest.
  TranslationTask(const EncoderDecoderOptions& model, const TranslationTaskOptions& options,
                  std::shared_ptr<const TranslationData> data, uint64_t seed, c10::Device device,
                  TrainingShape shape = {});

  std::shared_ptr<torch::nn::Module> model() override { return model_.ptr(); }
  DropoutClock& clock() override { return model_->clock(); }
  int64_t draw(int64_t micro_batches) override;
  Tensor loss_sum(int64_t index) override;
  std::optional<double> plain_loss_sum() const override { return plain_; }
  // Returns the loss of reference tokens, without smoothing. The test part also has the scores "bleu" and "chrf" of
  // translations by beam search, whose pseudo-values are the blocks; so has validation where BLEU chooses the best
  // model or there is no test part.
  Evaluation evaluate(Part part, const Task::Progress& progress) override;
  bool has(Part part) const override { return !data_->part(part).pairs->empty(); }
  nlohmann::json state() const override;
  void restore(const nlohmann::json& state, const std::string& where) override;
  void save(const std::string& directory) override;
  double epochs() const override { return batcher_.epochs(); }

  EncoderDecoder& translator() { return model_; }

 private:
  bool translates(Part part) const;

  TranslationTaskOptions options_;
  std::shared_ptr<const TranslationData> data_;
  PairBatcher batcher_;
  JudgedParts judged_;
  EncoderDecoder model_{nullptr};
  std::vector<PairBatch> drawn_;
  std::optional<double> plain_ = {};
};

}  // namespace headshare
