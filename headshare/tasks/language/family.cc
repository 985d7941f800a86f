// The family of causal language modelling learns the next token of a text, by decoders.
#include "headshare/tasks/families.h"
#include "headshare/tasks/language/score_text.h"
#include "headshare/tasks/language/text_experiment.h"

namespace headshare {
namespace {

DecoderOptions decoder_of(const TaskOptions& options, int64_t vocabulary) {
  DecoderOptions model = options.model;
  model.vocabulary = vocabulary;
  return resolve(model);
}

class LanguageExperiment : public TextExperiment {
 public:
  using TextExperiment::TextExperiment;

  Subject subject() const override {
    Subject subject = text_subject();
    subject.name = "language-model";
    subject.sentence = "Predict the next token of the text from those before it.";
    subject.measure = "perplexity";
    return subject;
  }

  ModelOptions model(const TaskOptions& options) const override {
    return decoder_of(options, model_vocabulary(options.own<TextOptions>(), *data_.tokenizer));
  }

  Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
              const TrainingShape& shape) const override {
    auto task = std::make_unique<LanguageModelTask>(language_options(options), data_, seed, device, shape);
    const Decoder decoder = task->decoder();
    return {std::move(task), decoder->options(), decoder.ptr()};
  }
};

class LanguageFamily : public TaskFamily {
 public:
  std::vector<std::string> tasks() const override { return {"language-model"}; }
  std::string learns() const override { return "the next tokens of text (decoders)"; }
  std::string heading() const override { return "Language model"; }
  bool trains_alone() const override { return true; }
  bool reads_text() const override { return true; }
  bool learns_from_text() const override { return true; }

  void set_defaults(const TaskOptions&, TaskOptions*, TrainOptions*) const override {}
  void set_preset(Preset preset, TaskOptions* options, TrainOptions* train) const override {
    set_text_preset(preset, options, train);
    // ALiBi learns, within a preset's steps, text that learned positions do not begin to
    // (docs/results/hyper-parameters.md), and every scheme takes it, unlike rotary positions.
    options->model.positions = PositionKind::kAlibi;
  }
  void check(const TaskOptions& options, const TaskOptions&) const override {
    check_distillation(options.own<TextOptions>().distillation);
    const TokenizerKind kind = options.own<TextOptions>().tokenizer.kind;
    HS_CHECK(has_vocabulary(kind),
             "--tokenizer hash-... has no vocabulary, whose tokens a language model scores; choose another, or an "
             "encoder: --task three-way");
  }

  ModelOptions likely_model(const TaskOptions& options) const override {
    return decoder_of(options, likely_vocabulary(options.own<TextOptions>()));
  }

  bool scores(const ModelOptions& model) const override { return model.find<DecoderOptions>() != nullptr; }
  Fields scoring_fields(TaskOptions& options) const override {
    return {field(
        "stride", &options.own<TextOptions>().stride,
        "tokens a window moves on by; auto: the context, so that windows are disjoint. Each token is scored once; "
        "with a smaller stride it has at least context - stride tokens before it",
        {.min = 1, .max = 1 << 24})};
  }
  TextScores score(const TextToScore& text, const TaskOptions& options) const override {
    return score_text(text, options.own<TextOptions>().stride);
  }

  std::unique_ptr<Experiment> open(const TaskOptions& options, const Progress& progress) const override {
    return std::make_unique<LanguageExperiment>(open_language_data(options.own<TextOptions>(), progress), options);
  }
};

}  // namespace

const TaskFamily& language_family() {
  static const LanguageFamily family;
  return family;
}

}  // namespace headshare
