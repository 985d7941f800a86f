// The family of translation trains encoder-decoders on pairs of sentences.
#include <algorithm>
#include <map>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/models/position_limit.h"
#include "headshare/tasks/families.h"
#include "headshare/tasks/translation/evaluate_pairs.h"
#include "headshare/tasks/translation/translation_task.h"
#include "headshare/tasks/translation/translator.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

constexpr const char* kTranslation = "translation";

// Returns the schemes of an encoder-decoder's three sites, in order; empty where --scheme chooses the one of a site.
std::vector<std::string> schemes_of_all_sites(const TaskOptions& options) {
  const EncoderDecoderParts& model = options.own<TranslationTaskOptions>().model;
  std::vector<std::string> sites = {model.encoder_scheme, model.decoder_scheme, model.cross_scheme};
  if (std::count(sites.begin(), sites.end(), "auto") > 0) sites.clear();
  return sites;
}

// Returns a few sentences from all over the part.
std::vector<WrittenExample> examples(const TranslationPart& part) {
  constexpr int64_t kExamples = 8;
  const auto sentences = static_cast<int64_t>(part.sources.size());
  const int64_t count = std::min(kExamples, sentences);
  std::vector<WrittenExample> list;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t item = i * sentences / count;
    const auto at = static_cast<size_t>(item);
    list.push_back({.item = item, .input = part.sources[at], .reference = part.references[at]});
  }
  return list;
}

class TranslationExperiment : public Experiment {
 public:
  TranslationExperiment(TranslationData data, const TaskOptions& options)
      : data_(std::make_shared<TranslationData>(std::move(data))),
        pairs_(options.own<TranslationTaskOptions>().pairs) {}

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
    subject.examples = examples(data_->part(subject.has_test_part ? Part::kTest : Part::kValidation));
    return subject;
  }

  bool has(Part part) const override { return !data_->part(part).pairs->empty(); }

  ModelOptions model(const TaskOptions& options) const override { return resolved(options); }

  Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
              const TrainingShape& shape) const override {
    const EncoderDecoderOptions model = resolved(options);
    auto task =
        std::make_unique<TranslationTask>(model, options.own<TranslationTaskOptions>(), data_, seed, device, shape);
    const EncoderDecoder translator = task->translator();
    return {std::move(task), model, translator.ptr()};
  }

  void share(const fs::path& home, TaskOptions* options) const override {
    const fs::path target = home / "tokenizer.json", source = home / "source_tokenizer.json";
    save_tokenizer(*data_->tokenizers.target, target);
    options->own<TextOptions>().tokenizer_path = target.string();
    if (data_->tokenizers.joint()) return;
    save_tokenizer(*data_->tokenizers.source, source);
    options->own<TranslationTaskOptions>().source_tokenizer_path = source.string();
  }

 private:
  EncoderDecoderOptions resolved(const TaskOptions& options) const {
    const Tokenizer& target = *data_->tokenizers.target;
    EncoderDecoderOptions model =
        translation_model(options, data_->tokenizers.source->vocabulary_size(), target.vocabulary_size());
    if (!data_->tokenizers.joint()) model.share_embeddings = false;
    model.marks.end = target_borders(target, "the target's tokenizer").end();
    // In a vocabulary without a token that begins a text, the token that ends it stands before it, as in fairseq.
    model.marks.start = target.special(SpecialToken::kBeginOfText).value_or(static_cast<int32_t>(model.marks.end));
    if (const auto padding = target.special(SpecialToken::kPadding)) model.marks.never_produced = *padding;
    return resolve(model);
  }

  std::string description() const {
    const auto count = [](const TranslationPart& part) {
      return format_count(static_cast<double>(part.pairs->size()));
    };
    const TokenizerPair& tokenizers = data_->tokenizers;
    std::string text =
        join_text(names(), ": ", count(data_->train), " + ", count(data_->validation), " + ", count(data_->test),
                  " pairs to train, validate and test on; ", tokenizers.target->kind(), " tokenizer with ",
                  tokenizers.target->vocabulary_size(), " tokens");
    if (!tokenizers.joint()) {
      text += join_text(" for the target and ", tokenizers.source->vocabulary_size(), " for the source");
    }
    return text;
  }

  std::string names() const {
    const std::string source = fs::path(pairs_.train.source).filename().string();
    return pairs_.train.target.empty() ? source : source + " and " + fs::path(pairs_.train.target).filename().string();
  }

  std::shared_ptr<const TranslationData> data_;
  PairOptions pairs_;
};

class TranslationFamily : public TaskFamily {
 public:
  std::vector<std::string> tasks() const override { return {kTranslation}; }
  std::string learns() const override { return "to translate pairs of sentences (encoder-decoders)"; }
  std::string heading() const override { return "Translation"; }
  bool reads_text() const override { return true; }
  bool trains_alone() const override { return true; }

  Fields fields(TaskOptions& options) const override {
    return headshare::fields(options.own<TranslationTaskOptions>());
  }
  Fields model_fields(TaskOptions& options) const override {
    Fields list = {norms_field(&options.model.norms)};
    append(&list, headshare::fields(options.own<TranslationTaskOptions>().model));
    return list;
  }
  // Lists options of running text, which pairs do not read; that text must be UTF-8 is asked of pairs, too.
  std::vector<std::string> idle_options(const TaskOptions& options) const override {
    std::vector<std::string> names = {"batch-order", "evaluation-tokens"};
    DataOptions text;
    for (const Field& one : headshare::fields(text)) {
      if (one.name != "invalid-utf8" && one.name != "text") names.push_back(one.name);  // check() refuses --text
    }
    if (options.own<TranslationTaskOptions>().beam.beam == 1) names.emplace_back("length-penalty");
    return names;
  }

  std::vector<std::string> schemes(const TaskOptions& options) const override {
    return site_schemes(options.own<TranslationTaskOptions>().model, options.model.attention.scheme);
  }

  std::vector<std::string*> paths(TaskOptions& options) const override {
    TranslationTaskOptions& own = options.own<TranslationTaskOptions>();
    std::vector<std::string*> list = {&own.source_tokenizer_path};
    for (PairFiles* part : {&own.pairs.train, &own.pairs.validation, &own.pairs.test}) {
      list.push_back(&part->source);
      list.push_back(&part->target);
    }
    return list;
  }

  void set_defaults(const TaskOptions&, TaskOptions* options, TrainOptions* train) const override {
    set_translation_defaults(options);
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
    options->model.layers = sizes.layers;
    options->model.attention.d_model = sizes.d_model;
    options->model.attention.heads = sizes.heads;
    options->model.dropout = sizes.dropout;
    options->own<TextOptions>().tokenizer.vocabulary_size = sizes.vocabulary;
    options->own<TranslationTaskOptions>().pairs.batch_tokens = sizes.batch_tokens;
    train->steps = sizes.steps;
    train->schedule.learning_rate = sizes.learning_rate;
  }
  void check(const TaskOptions& options, const TaskOptions& untouched) const override {
    const TextOptions& text = options.own<TextOptions>();
    HS_CHECK(text.data.text.empty(),
             "--text is for language models; translation learns pairs: --source FILE --target FILE");
    HS_CHECK(!text.distillation.given(), "--teacher is not built for translation; leave it out");
    HS_CHECK(options.batch_size == untouched.batch_size,
             "batches of pairs are measured in tokens; use --batch-tokens instead of --batch-size");
    HS_CHECK(!text.stride, "--stride is about next tokens of a text; leave it out");
    HS_CHECK(has_vocabulary(text.tokenizer.kind), "--tokenizer hash-... has no vocabulary to translate into");
    check_beam_options(options.own<TranslationTaskOptions>().beam);
    const PairOptions& pairs = options.own<TranslationTaskOptions>().pairs;
    HS_CHECK(!has_position_limit(options.model.positions) ||
                 pairs.max_pair_length.value_or(options.model.context + 1) <= options.model.context,
             "--max-pair-length is ", pairs.max_pair_length ? std::to_string(*pairs.max_pair_length) : "auto (any)",
             " and the model has positions for --context ", options.model.context,
             " tokens; make the first no larger than the second");
  }

  // Throws Error where a table of schemes would show one model under two names.
  void check_models(const std::vector<TaskOptions>& models) const override {
    std::map<std::vector<std::string>, std::string> schemes;
    for (const TaskOptions& one : models) {
      const std::vector<std::string> sites = schemes_of_all_sites(one);
      if (sites.empty()) continue;
      const std::string& scheme = one.model.attention.scheme;
      const auto [known, added] = schemes.emplace(sites, scheme);
      HS_CHECK(added || known->second == scheme,
               "--encoder-scheme, --decoder-scheme and --cross-scheme leave no site to --schemes: ", known->second,
               " and ", scheme, " would be the same model; leave one of these options out, or compare --variants");
    }
  }

  ModelOptions likely_model(const TaskOptions& options) const override {
    const int64_t vocabulary = likely_vocabulary(options.own<TextOptions>());
    return resolve(translation_model(options, vocabulary, vocabulary));
  }

  void set_shape(const TaskOptions& options, const ModelOptions&, TrainingShape* shape) const override {
    shape->batch = 1;
    shape->length = options.own<TranslationTaskOptions>().pairs.batch_tokens;
  }

  bool scores(const ModelOptions& model) const override { return model.find<EncoderDecoderOptions>() != nullptr; }
  std::string why_not_start(const ModelOptions& model) const override {
    const auto& options = model.as<EncoderDecoderOptions>();
    if (options.output_bias) return "was trained by another program, whose output bias models trained here have not";
    const AttentionSites& sites = *options.sites;
    if (sites.encoder.scheme == sites.decoder.scheme && sites.decoder.scheme == sites.cross.scheme) return "";
    return join_text("has ", sites.encoder.scheme, ", ", sites.decoder.scheme, " and ", sites.cross.scheme,
                     " in its three places, and training starts from models with one scheme alone");
  }
  void take_more(const fs::path& checkpoint, TaskOptions* options) const override {
    const fs::path source = checkpoint / "source_tokenizer.json";
    if (fs::exists(source)) options->own<TranslationTaskOptions>().source_tokenizer_path = source.string();
  }
  Fields scoring_fields(TaskOptions& options) const override {
    static const std::set<std::string> kScoring = {"source",      "target", "pair-fields",
                                                   "pair-format", "beam",   "length-penalty"};
    Fields list;
    for (Field& one : fields(options)) {
      if (kScoring.contains(one.name)) list.push_back(std::move(one));
    }
    return list;
  }
  TextScores score(const TextToScore& text, const TaskOptions& options) const override {
    return score_pairs(text, options.own<TranslationTaskOptions>());
  }

  std::unique_ptr<Experiment> open(const TaskOptions& options, const Progress& progress) const override {
    return std::make_unique<TranslationExperiment>(open_translation_data(options, progress), options);
  }
};

}  // namespace

const TaskFamily& translation_family() {
  static const TranslationFamily family;
  return family;
}

}  // namespace headshare
