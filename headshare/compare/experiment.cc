#include "headshare/compare/experiment.h"

#include <fmt/format.h>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/data/hash.h"
#include "headshare/tasks/diagnostics/diagnostic_task.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/train/training_shape.h"

namespace headshare {
namespace {

std::string file_names(const std::vector<std::string>& paths) {
  std::string names;
  for (const std::string& path : paths) names += (names.empty() ? "" : ", ") + fs::path(path).filename().string();
  return names;
}

std::string describe_text(const LanguageModelOptions& options, const LanguageData& data) {
  const TextSplits& s = data.splits;
  return join_text(file_names(options.data.text), ": ", format_count(static_cast<double>(s.train.size())), " + ",
                   format_count(static_cast<double>(s.validation.size())), " + ",
                   format_count(static_cast<double>(s.test.size())), " tokens to train, validate and test on; ",
                   data.tokenizer->kind(), " tokenizer with ", data.tokenizer->vocabulary_size(), " (",
                   fingerprint(*data.tokenizer), ")");
}

// The counts in a description are rounded: a text with a word mended would look the same.
std::string content(const TextSplits& s) {
  return content_hash(s.train.fingerprint() + s.validation.fingerprint() + s.test.fingerprint());
}

// "sequences made from random numbers; alphabet 16; offsets 1,3,7,12; ..."
std::string describe(const DiagnosticOptions& options) {
  std::string text = "sequences made from random numbers";
  const nlohmann::json difficulties = difficulty(options);
  for (const auto& [name, value] : difficulties.items()) text += join_text("; ", name, " ", field_text(value, name));
  return text;
}

// What experiments on text have in common.
class TextExperiment : public Experiment {
 public:
  TextExperiment(const ComparisonOptions& options, const Progress& progress)
      : data_(open_language_data(options.language, progress)) {
    HS_CHECK(!data_.splits.validation.empty(),
             "a comparison picks each model's best checkpoint on validation text, and there is none; set ",
             "--validation-fraction above 0, or --validation-text");
  }

  const Subject& subject() const override { return subject_; }

  void share(const fs::path& home, ComparisonOptions* options) const override {
    const fs::path path = home / "tokenizer.json";
    save_tokenizer(*data_.tokenizer, path);
    options->language.tokenizer_path = path.string();
  }

 protected:
  LanguageData data_;
  Subject subject_;
};

class LanguageExperiment : public TextExperiment {
 public:
  LanguageExperiment(const ComparisonOptions& options, const Progress& progress) : TextExperiment(options, progress) {
    subject_ = {.name = "language-model",
                .sentence = "Predict the next token of the text from those before it.",
                .data = describe_text(options.language, data_),
                .measure = "perplexity",
                .direction = Direction::kLowerIsBetter,
                .block = "text windows",
                .has_test_part = !data_.splits.test.empty(),
                .fingerprint = content(data_.splits)};
  }

  ModelOptions model(const ComparisonOptions& cell) const override {
    DecoderOptions model = cell.language.model;
    model.vocabulary = data_.tokenizer->vocabulary_size();
    return resolve(model);
  }

  Trial trial(const ComparisonOptions& cell, c10::Device device) const override {
    auto task = std::make_unique<LanguageModelTask>(cell.language, data_, static_cast<uint64_t>(cell.train.seed),
                                                    device, training_shape(cell.train));
    const Decoder decoder = task->decoder();
    return {std::move(task), decoder->options(), decoder};
  }
};

class MaskedExperiment : public TextExperiment {
 public:
  MaskedExperiment(const ComparisonOptions& options, const Progress& progress) : TextExperiment(options, progress) {
    const Masker masker(*data_.tokenizer, options.masked.masking, options.language.tokenizer_path);
    const double entropy = unigram_entropy(data_.splits.train, masker, data_.tokenizer->vocabulary_size());
    subject_ = {.name = "masked-language-model",
                .sentence = "Predict masked tokens of the text from those around them.",
                .data = join_text(describe_text(options.language, data_), "; unigram entropy ",
                                  format_fixed(entropy, 3), " nats"),
                .measure = "masked-perplexity",
                .direction = Direction::kLowerIsBetter,
                .block = "text windows",
                .has_test_part = !data_.splits.test.empty(),
                .fingerprint = content(data_.splits)};
  }

  ModelOptions model(const ComparisonOptions& cell) const override {
    LanguageModelOptions language = cell.language;
    language.model.vocabulary = data_.tokenizer->vocabulary_size();
    return encoder_options(language, cell.masked);
  }

  Trial trial(const ComparisonOptions& cell, c10::Device device) const override {
    auto task = std::make_unique<MaskedLanguageModelTask>(
        cell.language, cell.masked, data_, static_cast<uint64_t>(cell.train.seed), device, training_shape(cell.train));
    const EncoderOptions options = task->encoder()->options();
    return {std::move(task), options};
  }
};

class DiagnosticExperiment : public Experiment {
 public:
  explicit DiagnosticExperiment(const ComparisonOptions& options) {
    const DiagnosticOptions task = diagnostic(options);
    subject_ = {.name = diagnostic_name(task.kind),
                .sentence = sentence(task.kind),
                .data = describe(task),
                .measure = "accuracy",
                .direction = Direction::kHigherIsBetter,
                .block = "sequences",
                .has_test_part = true,
                .chance = make_generator(task)->chance()};
  }

  const Subject& subject() const override { return subject_; }

  ModelOptions model(const ComparisonOptions& cell) const override {
    return resolve(decoder_options(diagnostic(cell)));
  }

  Trial trial(const ComparisonOptions& cell, c10::Device device) const override {
    auto task = std::make_unique<DiagnosticTask>(diagnostic(cell), static_cast<uint64_t>(cell.train.seed), device,
                                                 training_shape(cell.train));
    const Decoder decoder = task->decoder();
    return {std::move(task), decoder->options(), decoder};
  }

  void share(const fs::path&, ComparisonOptions*) const override {}

 private:
  // The command has one list of model options and one batch size for every task.
  static DiagnosticOptions diagnostic(const ComparisonOptions& cell) {
    DiagnosticOptions options = cell.diagnostic;
    options.kind = diagnostic_kind(cell.task);
    options.model = cell.language.model;
    options.batch_size = cell.language.batch.batch_size;
    return options;
  }

  Subject subject_;
};

}  // namespace

std::unique_ptr<Experiment> open_experiment(const ComparisonOptions& options, const Progress& progress) {
  if (is_diagnostic(options.task)) return std::make_unique<DiagnosticExperiment>(options);
  if (options.task == ComparisonTask::kMaskedLanguageModel) {
    return std::make_unique<MaskedExperiment>(options, progress);
  }
  return std::make_unique<LanguageExperiment>(options, progress);
}

}  // namespace headshare
