// Masked language modelling predicts tokens of a text that were hidden, from those around them.
#pragma once

#include "headshare/models/encoder.h"
#include "headshare/tasks/language/language_model.h"
#include "headshare/tasks/masked/corruption.h"
#include "headshare/tasks/masked/evaluate_masked.h"

namespace headshare {

// MaskedOptions are what encoders that learn from text have besides the options of a language model.
struct MaskedOptions {
  bool bert = false;  // begin with BERT's own form: see set_masked_defaults
  EncoderParts encoder = {};
  MaskingOptions masking = {};
  int64_t pseudo_tokens = 1000;       // of the test part, each masked by itself; 0: none
  CorruptionOptions corruption = {};  // of three-way classification
};

Fields fields(MaskedOptions& options);

// Sets BERT's options where a language model's are others, and the tokenizer that has [MASK]. Norms stand before each
// sub-layer and positions are rotary, because small encoders of BERT's own form (--bert) stay on the plateau of token
// frequencies for thousands of steps (docs/design/017-encoders.md).
void set_masked_defaults(TaskOptions* options);

// Returns the encoder that both kinds of options make, resolved, with the head that the task needs.
EncoderOptions encoder_options(const TransformerOptions& model, const MaskedOptions& masked, EncoderTask task);

// Returns windows of text without [CLS] and [SEP]. Throws Error where the text is too short for one.
BatchOptions window_batches(const LanguageModelOptions& language, const TokenData& tokens, uint64_t seed);

// A micro-batch is `batch_size` windows [CLS] tokens [SEP] of the context, filled to the last place by text that goes
// on from one sentence to the next; documents are separated by the end-of-text token where the vocabulary has one, else
// by [SEP]. Masks are drawn anew for every batch from the stream (seed, "masks") and the batch's number.
class MaskedLanguageModelTask : public TextTask {
 public:
  // Makes a model with initial values of `seed`. Throws Error when the tokenizer cannot mask, the training text is
  // shorter than a window, a part holds no token that could be masked, or training would not fit into memory. The loop
  // sets in `shape` whether blocks are recomputed and how many averages it keeps; the task sets the rest.
  MaskedLanguageModelTask(const LanguageModelOptions& language, const MaskedOptions& masked, const LanguageData& data,
                          uint64_t seed, c10::Device device, TrainingShape shape = {});

  std::shared_ptr<torch::nn::Module> model() override { return model_.ptr(); }
  DropoutClock& clock() override { return model_->clock(); }
  int64_t draw(int64_t micro_batches) override;
  Tensor loss_sum(int64_t index) override;
  std::optional<double> plain_loss_sum() const override { return plain_; }
  // Returns the loss at masked tokens, with the same masks for every model; blocks are its means over windows. Scores
  // are "masked-perplexity", its exponential, and on the test part alone "pseudo-perplexity".
  Evaluation evaluate(Part part, const Task::Progress& progress) override { return evaluate(model_, part, progress); }
  std::optional<Evaluation> evaluate_teacher(const Task::Progress& progress) override;
  void save(const std::string& directory) override;
  std::optional<double> unigram_entropy() const override { return unigram_entropy_; }
  std::string plateau_advice() const override;

  Encoder& encoder() { return model_; }

 private:
  Evaluation evaluate(const Encoder& model, Part part, const Task::Progress& progress) const;
  MaskedSetup setup() const;
  TokenData scored(Part part) const;  // the tokens evaluate() looks at
  WindowBatch next_batch();

  LanguageModelOptions language_;
  MaskedOptions masked_;
  Masker masker_;
  uint64_t mask_key_;
  double unigram_entropy_;
  int64_t evaluation_batch_ = 1;
  Encoder model_{nullptr};
  Encoder teacher_{nullptr};  // empty: there is none
  std::optional<double> plain_ = {};
  std::vector<WindowBatch> drawn_;
};

}  // namespace headshare
