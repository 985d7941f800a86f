// The family of encoders that learn from text: they learn masked tokens from those around them, or which tokens were
// replaced.
#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/models/embeddings/idle_options.h"
#include "headshare/tasks/families.h"
#include "headshare/tasks/language/text_experiment.h"
#include "headshare/tasks/masked/score_masked_text.h"
#include "headshare/tasks/masked/three_way.h"

namespace headshare {
namespace {

constexpr const char* kMasked = "mlm";
constexpr const char* kThreeWay = "three-way";

// Returns the objective of a task; for fine-tuning, the one that its encoders can begin with: without a vocabulary
// there is one alone.
EncoderTask task_of_options(const TaskOptions& options) {
  const bool hashed = is_hashed(options.own<MaskedOptions>().encoder.embedding);
  const bool three_way = options.task == kThreeWay || (options.task != kMasked && hashed);
  return three_way ? EncoderTask::kThreeWay : EncoderTask::kMasked;
}

EncoderOptions encoder_of(const TaskOptions& options, int64_t vocabulary) {
  TransformerOptions model = options.model;
  model.vocabulary = vocabulary;
  return encoder_options(model, options.own<MaskedOptions>(), task_of_options(options));
}

// Throws Error where the embeddings of the encoder cannot read a tokenizer that is still to be made.
void check_tokenizer_fits(const TaskOptions& options) {
  const TokenizerKind kind = options.own<TextOptions>().tokenizer.kind;
  const bool open = !has_vocabulary(kind);
  const bool hashed = is_hashed(options.own<MaskedOptions>().encoder.embedding);
  HS_CHECK(!open || hashed,
           "--tokenizer hash-... has no vocabulary, and --token-embedding table has a row for each token "
           "of one; choose --task three-way --token-embedding hash-proj or another hash-...");
  HS_CHECK(open || !hashed,
           "--token-embedding hash-... reads words, and this tokenizer has a vocabulary; choose "
           "--tokenizer hash-md or hash-lsh");
  HS_CHECK(open || kind == TokenizerKind::kWordPiece,
           "encoders need tokens that begin, end and mask a text, and of the ",
           "tokenizers with a vocabulary that are trained here wordpiece alone has them; leave --tokenizer out");
}

class EncoderExperiment : public TextExperiment {
 public:
  using TextExperiment::TextExperiment;

  ModelOptions model(const TaskOptions& options) const override {
    return encoder_of(options, model_vocabulary(options.own<TextOptions>(), *data_.tokenizer));
  }
};

class ThreeWayExperiment : public EncoderExperiment {
 public:
  using EncoderExperiment::EncoderExperiment;

  Subject subject() const override {
    Subject subject = text_subject();
    subject.name = kThreeWay;
    subject.sentence = "Tell for each token of the text whether it is original, shuffled or random.";
    subject.measure = "three-way-loss";
    return subject;
  }

  Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
              const TrainingShape& shape) const override {
    auto task = std::make_unique<ThreeWayTask>(language_options(options), options.own<MaskedOptions>(), data_, seed,
                                               device, shape);
    const Encoder encoder = task->encoder();
    return {std::move(task), encoder->options(), encoder.ptr()};
  }
};

class MaskedExperiment : public EncoderExperiment {
 public:
  // Throws Error when the tokenizer cannot mask.
  MaskedExperiment(LanguageData data, const TaskOptions& options)
      : EncoderExperiment(std::move(data), options),
        masker_(*data_.tokenizer, options.own<MaskedOptions>().masking, options.own<TextOptions>().tokenizer_path) {}

  Subject subject() const override {
    const double entropy = unigram_entropy(data_.splits.train, masker_, data_.tokenizer->vocabulary_size());
    Subject subject = text_subject();
    subject.name = "masked-language-model";
    subject.sentence = "Predict masked tokens of the text from those around them.";
    subject.data += join_text("; unigram entropy ", format_fixed(entropy, 3), " nats");
    subject.measure = "masked-perplexity";
    return subject;
  }

  Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
              const TrainingShape& shape) const override {
    auto task = std::make_unique<MaskedLanguageModelTask>(language_options(options), options.own<MaskedOptions>(),
                                                          data_, seed, device, shape);
    const Encoder encoder = task->encoder();
    return {std::move(task), encoder->options(), encoder.ptr()};
  }

 private:
  Masker masker_;
};

class MaskedFamily : public TaskFamily {
 public:
  std::vector<std::string> tasks() const override { return {kMasked, kThreeWay}; }
  std::string learns() const override {
    return "masked tokens of text, or which of its tokens were replaced (encoders)";
  }
  std::string heading() const override { return "Encoders that learn from text"; }
  bool trains_alone() const override { return true; }

  bool reads_text() const override { return true; }
  bool learns_from_text() const override { return true; }

  Fields fields(TaskOptions& options) const override {
    Fields list = headshare::fields(options.own<MaskedOptions>());
    list.insert(list.begin() + 1, norms_field(&options.model.norms));  // stands behind --bert, which is about norms
    return list;
  }

  std::vector<std::string> tasks_with(const std::string& option) const override {
    MaskedOptions probe;
    const auto has = [&](const Fields& list) {
      return std::any_of(list.begin(), list.end(), [&](const Field& one) { return one.name == option; });
    };
    if (has(headshare::fields(probe.corruption))) return {kThreeWay};
    if (has(headshare::fields(probe.masking)) || option == "pseudo-tokens") return {kMasked};
    if (option == "norms") return {kMasked, kThreeWay, "translation", "image"};  // their models have norms, too
    return tasks();
  }

  Fields model_fields(TaskOptions& options) const override {
    Fields list = {norms_field(&options.model.norms)};
    append(&list, headshare::fields(options.own<MaskedOptions>().encoder));
    return list;
  }

  void set_defaults(const TaskOptions& asked, TaskOptions* options, TrainOptions* train) const override {
    MaskedOptions& own = options->own<MaskedOptions>();
    own.bert = asked.own<MaskedOptions>().bert;
    set_masked_defaults(options);
    train->schedule.schedule = Schedule::kLinear;
  }
  void set_preset(Preset preset, TaskOptions* options, TrainOptions* train) const override {
    set_text_preset(preset, options, train);
  }
  void check(const TaskOptions& options, const TaskOptions&) const override {
    check_distillation(options.own<TextOptions>().distillation);
    const bool learns_scores = task_of_options(options) == EncoderTask::kMasked;
    HS_CHECK(learns_scores || !options.own<TextOptions>().distillation.given(),
             "--teacher teaches scores of a vocabulary, and --task three-way has none; leave --teacher out");
    HS_CHECK(!learns_scores || !is_hashed(options.own<MaskedOptions>().encoder.embedding),
             "--task mlm scores every token of a vocabulary, and hashed embeddings have none; use --task three-way");
    if (options.own<TextOptions>().tokenizer_path.empty()) check_tokenizer_fits(options);
    HS_CHECK(!options.own<TextOptions>().stride, "--stride is about next tokens; the windows of --task ", options.task,
             " are disjoint");
  }

  // Throws Error for an option of token embeddings that none of the models reads; some models may read options that
  // others do not.
  void check_models(const std::vector<TaskOptions>& models) const override {
    std::vector<TokenEmbeddingKind> kinds;
    for (const TaskOptions& one : models) {
      const MaskedOptions& own = one.own<MaskedOptions>();
      check_corruption(own.corruption, own.encoder.embedding.kind);
      kinds.push_back(own.encoder.embedding.kind);
    }
    for (const TaskOptions& one : models) check_read_by(kinds, one.own<MaskedOptions>().encoder.embedding);
  }

  ModelOptions likely_model(const TaskOptions& options) const override {
    return encoder_of(options, likely_vocabulary(options.own<TextOptions>()));
  }
  void set_shape(const TaskOptions& options, const ModelOptions& model, TrainingShape* shape) const override {
    TaskFamily::set_shape(options, model, shape);
    shape->scored = task_of_options(options) == EncoderTask::kMasked ? options.own<MaskedOptions>().masking.rate : 0;
  }
  std::string task_of(const ModelOptions& model) const override {
    return model.as<EncoderOptions>().three_way_head ? kThreeWay : kMasked;
  }

  bool scores(const ModelOptions& model) const override { return model.find<EncoderOptions>() != nullptr; }
  Fields scoring_fields(TaskOptions& options) const override {
    MaskedOptions& own = options.own<MaskedOptions>();
    Fields list = headshare::fields(own.masking);
    append(&list, headshare::fields(own.corruption));
    list.push_back(field("pseudo-tokens", &own.pseudo_tokens,
                         "tokens, from the first on, that are masked one by one for the pseudo-perplexity; 0: none",
                         {.min = 0}));
    return list;
  }
  TextScores score(const TextToScore& text, const TaskOptions& options) const override {
    return score_masked_text(text, options.own<MaskedOptions>());
  }

  std::unique_ptr<Experiment> open(const TaskOptions& options, const Progress& progress) const override {
    LanguageData data = open_language_data(options.own<TextOptions>(), progress);
    if (task_of_options(options) == EncoderTask::kThreeWay) {
      return std::make_unique<ThreeWayExperiment>(std::move(data), options);
    }
    return std::make_unique<MaskedExperiment>(std::move(data), options);
  }
};

}  // namespace

const TaskFamily& masked_family() {
  static const MaskedFamily family;
  return family;
}

}  // namespace headshare
