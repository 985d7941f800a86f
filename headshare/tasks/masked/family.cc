// Masked language modelling: tokens of a text from those around them, by encoders.
#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/tasks/families.h"
#include "headshare/tasks/language/text_experiment.h"
#include "headshare/tasks/masked/score_masked_text.h"

namespace headshare {
namespace {

EncoderOptions encoder_of(const TaskOptions& options, int64_t vocabulary) {
  LanguageModelOptions language = options.language;
  language.model.vocabulary = vocabulary;
  return encoder_options(language, options.own<MaskedOptions>());
}

class MaskedExperiment : public TextExperiment {
 public:
  // Throws Error when the tokenizer cannot mask.
  MaskedExperiment(LanguageData data, const TaskOptions& options)
      : TextExperiment(std::move(data), options),
        masker_(*data_.tokenizer, options.own<MaskedOptions>().masking, options.language.tokenizer_path) {}

  Subject subject() const override {
    const double entropy = unigram_entropy(data_.splits.train, masker_, data_.tokenizer->vocabulary_size());
    Subject subject = text_subject();
    subject.name = "masked-language-model";
    subject.sentence = "Predict masked tokens of the text from those around them.";
    subject.data += join_text("; unigram entropy ", format_fixed(entropy, 3), " nats");
    subject.measure = "masked-perplexity";
    return subject;
  }

  ModelOptions model(const TaskOptions& options) const override {
    return encoder_of(options, model_vocabulary(options.language, *data_.tokenizer));
  }

  Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
              const TrainingShape& shape) const override {
    auto task = std::make_unique<MaskedLanguageModelTask>(options.language, options.own<MaskedOptions>(), data_, seed,
                                                          device, shape);
    const EncoderOptions model = task->encoder()->options();
    return {std::move(task), model};
  }

 private:
  Masker masker_;
};

class MaskedFamily : public TaskFamily {
 public:
  std::vector<std::string> tasks() const override { return {"mlm"}; }
  std::string learns() const override { return "masked tokens of text (encoders)"; }
  std::string heading() const override { return "Masked language model"; }
  bool trains_alone() const override { return true; }

  Fields fields(TaskOptions& options) const override { return headshare::fields(options.own<MaskedOptions>()); }

  Fields model_fields(TaskOptions& options) const override {
    return headshare::fields(options.own<MaskedOptions>().encoder);
  }

  void set_defaults(const TaskOptions& asked, TaskOptions* options, TrainOptions* train) const override {
    MaskedOptions& own = options->own<MaskedOptions>();
    own.bert = asked.own<MaskedOptions>().bert;
    set_masked_defaults(&options->language, &own);
    train->schedule.schedule = Schedule::kLinear;
  }
  void set_preset(Preset preset, TaskOptions* options, TrainOptions* train) const override {
    set_text_preset(preset, options, train);
  }
  void check(const TaskOptions& options, const TaskOptions&) const override {
    check_distillation(options.language.distillation);
    HS_CHECK(!options.language.stride, "--stride is about next tokens; the windows of --task ", options.task,
             " are disjoint");
  }

  ModelOptions likely_model(const TaskOptions& options) const override {
    return encoder_of(options, likely_vocabulary(options.language));
  }
  double scored(const TaskOptions& options) const override { return options.own<MaskedOptions>().masking.rate; }

  bool scores(const ModelOptions& model) const override { return !is_causal(model); }
  Fields scoring_fields(TaskOptions& options) const override {
    MaskedOptions& own = options.own<MaskedOptions>();
    Fields list = headshare::fields(own.masking);
    list.push_back(field("pseudo-tokens", &own.pseudo_tokens,
                         "tokens, from the first on, that are masked one by one for the pseudo-perplexity; 0: none",
                         {.min = 0}));
    return list;
  }
  TextScores score(const TextToScore& text, const TaskOptions& options) const override {
    return score_masked_text(text, options.own<MaskedOptions>());
  }

  std::unique_ptr<Experiment> open(const TaskOptions& options, const Progress& progress) const override {
    return std::make_unique<MaskedExperiment>(open_language_data(options.language, progress), options);
  }
};

}  // namespace

const TaskFamily& masked_family() {
  static const MaskedFamily family;
  return family;
}

}  // namespace headshare
