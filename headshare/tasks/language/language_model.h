// Causal language modelling predicts the next token of a text.
#pragma once

#include <memory>
#include <optional>

#include "headshare/data/text/splits.h"
#include "headshare/models/decoder.h"
#include "headshare/models/size.h"
#include "headshare/tasks/judged_parts.h"
#include "headshare/tasks/language/evaluate_language.h"
#include "headshare/tasks/task_options.h"
#include "headshare/tasks/teacher.h"
#include "headshare/tasks/text_options.h"
#include "headshare/train/task.h"

namespace headshare {

// LanguageModelOptions determine a task on running text but for the seed.
struct LanguageModelOptions : TextOptions {
  TransformerOptions model = {};  // its vocabulary comes from the tokenizer
  int64_t batch_size = 32;        // windows in a micro-batch, of the model's context each
};

// Takes the options of a task on text.
LanguageModelOptions language_options(const TaskOptions& options);

// LanguageData is the text of a run as tokens: read once, shared by every model that is compared on it.
struct LanguageData {
  std::shared_ptr<Tokenizer> tokenizer;
  TextSplits splits;

  const TokenData& part(Part part) const { return part == Part::kValidation ? splits.validation : splits.test; }
};

// Returns the first `most` tokens of a part, or all. Throws Error when there are none.
TokenData part_to_score(const LanguageData& data, Part part, std::optional<int64_t> most);

// Loads the tokenizer, the teacher's where none is named, or trains one on all of `text` (the part held out of it for
// validation too, as nanoGPT does: a character that is only there must have an id), and tokenises the texts.
LanguageData open_language_data(const TextOptions& options, const Progress& progress = {});

// A TextTask is a task on running text: it has the text, and a place in it.
class TextTask : public Task {
 public:
  bool has(Part part) const override { return !data_.part(part).empty(); }
  nlohmann::json state() const override;
  void restore(const nlohmann::json& state, const std::string& where) override;
  double epochs() const override { return batcher_.epochs(); }

  const LanguageData& data() const { return data_; }

 protected:
  // Begins at the start of the batches. Throws Error when the training text is shorter than a window.
  TextTask(const LanguageData& data, const BatchOptions& batches);

  LanguageData data_;
  Batcher batcher_;

 private:
  JudgedParts judged() const;
};

class LanguageModelTask : public TextTask {
 public:
  // Makes a model with initial values of `seed`. Throws Error when the training text is shorter than the context,
  // another part cannot be scored, or training would not fit into memory. The loop sets in `shape` whether blocks are
  // recomputed and how many averages it keeps; the task sets the rest.
  LanguageModelTask(const LanguageModelOptions& options, const LanguageData& data, uint64_t seed, c10::Device device,
                    TrainingShape shape = {});

  std::shared_ptr<torch::nn::Module> model() override { return model_.ptr(); }
  DropoutClock& clock() override { return model_->clock(); }
  int64_t draw(int64_t micro_batches) override;
  Tensor loss_sum(int64_t index) override;
  std::optional<double> plain_loss_sum() const override { return plain_; }
  Evaluation evaluate(Part part, const Task::Progress& progress) override { return evaluate(model_, part, progress); }
  std::optional<Evaluation> evaluate_teacher(const Task::Progress& progress) override;
  void save(const std::string& directory) override;

  Decoder& decoder() { return model_; }

 private:
  Evaluation evaluate(const Decoder& model, Part part, const Task::Progress& progress) const;
  WindowOptions windows() const;
  TokenData scored(Part part) const;  // the tokens evaluate() looks at

  LanguageModelOptions options_;
  int64_t evaluation_batch_ = 1;
  Decoder model_{nullptr};
  Decoder teacher_{nullptr};  // empty: there is none
  std::optional<double> plain_ = {};
  std::vector<Batch> drawn_;
};

}  // namespace headshare
