// Translation: encoder-decoders learn pairs of sentences.
#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/tasks/families.h"
#include "headshare/tasks/masked/masked_language_model.h"
#include "headshare/tasks/translation/translation_task.h"
#include "headshare/tasks/translation/translator.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

constexpr const char* kTranslation = "translation";

// The placement of norms is an option that encoders have too.
NormPlacement norms_of(const TaskOptions& options) { return options.own<MaskedOptions>().encoder.norms; }

EncoderDecoderOptions model_of(const TaskOptions& options, int64_t source_vocabulary, int64_t target_vocabulary) {
  return translation_model(options.language, options.own<TranslationTaskOptions>(), norms_of(options),
                           source_vocabulary, target_vocabulary);
}

class TranslationExperiment : public Experiment {
 public:
  TranslationExperiment(TranslationData data, const TaskOptions& options)
      : data_(std::make_shared<TranslationData>(std::move(data))),
        text_(options.own<TranslationTaskOptions>().text) {}

  Subject subject() const override {
    Subject subject;
    subject.name = kTranslation;
    subject.sentence = "Translate sentences.";
    subject.data = description();
    subject.measure = "bleu";
    subject.direction = Direction::kHigherIsBetter;
    subject.full_scale = 100;
    subject.block = "sentences";
    subject.has_test_part = has(Part::kTest);
    subject.fingerprint = data_->fingerprint();
    return subject;
  }

  bool has(Part part) const override { return !data_->part(part).pairs.empty(); }

  ModelOptions model(const TaskOptions& options) const override { return resolved(options); }

  Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
              const TrainingShape& shape) const override {
    const EncoderDecoderOptions model = resolved(options);
    auto task = std::make_unique<TranslationTask>(model, options.own<TranslationTaskOptions>(), data_, seed, device,
                                                  shape);
    const EncoderDecoder translator = task->translator();
    return {.task = std::move(task), .options = model, .translator = translator};
  }

  void share(const fs::path& home, TaskOptions* options) const override {
    const fs::path target = home / "tokenizer.json", source = home / "source_tokenizer.json";
    save_tokenizer(*data_->tokenizers.target, target);
    options->language.tokenizer_path = target.string();
    if (data_->tokenizers.joint()) return;
    save_tokenizer(*data_->tokenizers.source, source);
    options->own<TranslationTaskOptions>().source_tokenizer_path = source.string();
  }

 private:
  EncoderDecoderOptions resolved(const TaskOptions& options) const {
    const Tokenizer& target = *data_->tokenizers.target;
    EncoderDecoderOptions model =
        model_of(options, data_->tokenizers.source->vocabulary_size(), target.vocabulary_size());
    if (!data_->tokenizers.joint()) model.share_embeddings = false;
    model.marks.end = text_end(target, "the target's tokenizer");
    // Where there is no token that begins a text, the one that ends it stands before it, as in fairseq.
    model.marks.start = target.special(SpecialToken::kBeginOfText).value_or(static_cast<int32_t>(model.marks.end));
    if (const auto padding = target.special(SpecialToken::kPadding)) model.marks.never_produced = *padding;
    return resolve(model);
  }

  std::string description() const {
    const auto count = [](const TranslationPart& part) { return format_thousands(part.pairs.size()); };
    const TokenizerPair& tokenizers = data_->tokenizers;
    std::string text = join_text(text_names(text_), ": ", count(data_->train), " + ", count(data_->validation), " + ",
                                 count(data_->test), " pairs to train, validate and test on; ",
                                 tokenizers.target->kind(), " tokenizer with ", tokenizers.target->vocabulary_size());
    if (!tokenizers.joint()) text += join_text(" for the target and ", tokenizers.source->vocabulary_size(), " for the source");
    return text;
  }

  std::shared_ptr<const TranslationData> data_;
  ParallelTextOptions text_;
};

class TranslationFamily : public TaskFamily {
 public:
  std::vector<std::string> tasks() const override { return {kTranslation}; }
  std::string learns() const override { return "to translate pairs of sentences (encoder-decoders)"; }
  std::string heading() const override { return "Translation"; }
  bool learns_from_text() const override { return false; }
  bool trains_alone() const override { return true; }

  Fields fields(TaskOptions& options) const override {
    return headshare::fields(options.own<TranslationTaskOptions>());
  }
  Fields model_fields(TaskOptions& options) const override {
    Fields list = {norms_field(&options.own<MaskedOptions>().encoder.norms)};
    append(&list, headshare::fields(options.own<TranslationTaskOptions>().model));
    return list;
  }
  std::vector<std::string*> paths(TaskOptions& options) const override {
    TranslationTaskOptions& own = options.own<TranslationTaskOptions>();
    std::vector<std::string*> list = text_paths(&own.text);
    list.push_back(&own.source_tokenizer_path);
    return list;
  }

  void set_defaults(const TaskOptions&, TaskOptions* options, TrainOptions* train) const override {
    set_translation_defaults(&options->language, &options->own<TranslationTaskOptions>());
    options->own<MaskedOptions>().encoder.norms = NormPlacement::kBefore;
    train->schedule.schedule = Schedule::kInverseSqrt;
    train->optimizer.beta2 = 0.98;
    train->optimizer.weight_decay = 0;
  }
  void set_preset(Preset preset, TaskOptions* options, TrainOptions* train) const override {
    struct Sizes {
      int64_t layers, d_model, heads, vocabulary, batch_tokens, steps;
      double learning_rate, dropout;
    };
    const auto sizes = [&]() -> Sizes {
      if (preset == Preset::kQuick) return {2, 128, 4, 2048, 1024, 600, 2e-3, 0.1};
      if (preset == Preset::kSmall) return {3, 256, 8, 8192, 2048, 6000, 1e-3, 0.3};
      return {6, 512, 8, 16384, 4096, 100000, 7e-4, 0.1};
    }();
    LanguageModelOptions& language = options->language;
    language.model.layers = sizes.layers;
    language.model.attention.d_model = sizes.d_model;
    language.model.attention.heads = sizes.heads;
    language.model.dropout = sizes.dropout;
    language.tokenizer.vocabulary_size = sizes.vocabulary;
    options->own<TranslationTaskOptions>().batch.batch_tokens = sizes.batch_tokens;
    train->steps = sizes.steps;
    train->schedule.learning_rate = sizes.learning_rate;
  }
  void check(const TaskOptions& options, const TaskOptions& untouched) const override {
    const LanguageModelOptions& language = options.language;
    HS_CHECK(language.data.text.empty(),
             "--text is for language models; translation learns pairs: --source FILE --target FILE");
    HS_CHECK(!language.distillation.given(), "--teacher is not built for translation; leave it out");
    HS_CHECK(language.batch.batch_size == untouched.language.batch.batch_size,
             "batches of pairs are measured in tokens; use --batch-tokens instead of --batch-size");
    HS_CHECK(!language.stride, "--stride is about next tokens of a text; leave it out");
    HS_CHECK(has_vocabulary(language.tokenizer.kind), "--tokenizer hash-... has no vocabulary to translate into");
    check_parallel_text(options.own<TranslationTaskOptions>().text);
  }

  ModelOptions likely_model(const TaskOptions& options) const override {
    const int64_t vocabulary = likely_vocabulary(options.language);
    EncoderDecoderOptions model = model_of(options, vocabulary, vocabulary);
    return resolve(model);
  }

  void set_shape(const TaskOptions& options, const ModelOptions&, TrainingShape* shape) const override {
    shape->batch = 1;
    shape->length = options.own<TranslationTaskOptions>().batch.batch_tokens;
  }

  bool scores(const ModelOptions& model) const override { return is_encoder_decoder(model); }
  TextScores score(const TextToScore& text, const TaskOptions&) const override {
    throw Error(text.model + " translates: write its translations with `headshare translate`, and score them with "
                             "`headshare score bleu`");
  }

  std::unique_ptr<Experiment> open(const TaskOptions& options, const Progress& progress) const override {
    return std::make_unique<TranslationExperiment>(
        open_translation_data(options.language, options.own<TranslationTaskOptions>(), progress), options);
  }
};

}  // namespace

const TaskFamily& translation_family() {
  static const TranslationFamily family;
  return family;
}

}  // namespace headshare
