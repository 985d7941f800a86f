// headshare evaluate: scores a model on text.
#include <algorithm>

#include "headshare/base/format.h"
#include "headshare/cli/interrupt.h"
#include "headshare/cli/model_input.h"
#include "headshare/cli/runtime_options.h"
#include "headshare/cli/terminal.h"
#include "headshare/cli/verbs.h"
#include "headshare/data/text/splits.h"
#include "headshare/models/size.h"
#include "headshare/tasks/evaluate_language.h"
#include "headshare/tasks/evaluate_masked.h"

namespace headshare {
namespace {

enum class Part { kAll, kTrain, kValidation, kTest };

const EnumNames<Part>& part_names() {
  static const EnumNames<Part> names = {
      {Part::kAll, "all"}, {Part::kTrain, "train"}, {Part::kValidation, "validation"}, {Part::kTest, "test"}};
  return names;
}

struct EvaluateOptions {
  std::string model_path;
  DataOptions data;
  Part part = Part::kAll;
  std::optional<int64_t> context;
  std::optional<int64_t> stride;
  std::optional<int64_t> batch_size;
  MaskingOptions masking;
  int64_t pseudo_tokens = 1000;
  bool json = false;
  RuntimeOptions runtime;
};

Fields own_fields(EvaluateOptions& o) {
  return {
      field("part", &o.part, "what to score: all of --text, or the part of it that training held out", part_names(),
            {.aliases = {"split"}}),
      field("context", &o.context, "tokens the model sees at once; auto: the model's context",
            {.min = 1, .max = 1 << 24, .aliases = {"block-size"}}),
      field("stride", &o.stride,
            "tokens a window moves on by; auto: the context, so that windows are disjoint. Each token is scored once; "
            "with a smaller stride it has at least context - stride tokens before it",
            {.min = 1, .max = 1 << 24}),
      field("batch-size", &o.batch_size,
            "windows at once; auto: as many as keep the logits below 256 MiB and fit into memory, up "
            "to 32",
            {.min = 1, .max = 1 << 20, .aliases = {"per-device-eval-batch-size"}}),
      field("json", &o.json, "print one JSON object"),
  };
}

// What only encoders are scored with.
Fields masked_fields(EvaluateOptions& o) {
  Fields list = fields(o.masking);
  list.push_back(field("pseudo-tokens", &o.pseudo_tokens,
                       "tokens, from the first on, that are masked one by one for the pseudo-perplexity; 0: none",
                       {.min = 0}));
  return list;
}

TokenData open_part(const EvaluateOptions& options, const Tokenizer& tokenizer) {
  ProgressLine line("text");
  if (options.part == Part::kAll) {
    HS_CHECK(!options.data.text.empty(), "--text is missing: which text is to be scored?");
    return open_tokens(options.data.text, options.data, tokenizer, show_reading(line));
  }
  const TextSplits splits = open_splits(options.data, tokenizer, show_reading(line));
  if (options.part == Part::kTrain) return splits.train;
  const TokenData part = options.part == Part::kValidation ? splits.validation : splits.test;
  const char* name = options.part == Part::kValidation ? "validation" : "test";
  HS_CHECK(!part.empty(), "there is no ", name, " part: give --", name, "-text or a --", name, "-fraction above 0");
  return part;
}

// `longest`: tokens of the longest window that the text allows; memory is taken for no more.
template <class Options>
WindowOptions window_options(const EvaluateOptions& options, const Options& model, int64_t longest) {
  constexpr int64_t kMostLogits = 1 << 26;
  constexpr int64_t kMostWindows = 32;
  WindowOptions windows;
  windows.context = options.context.value_or(model.context);
  windows.stride = options.stride.value_or(windows.context);
  TrainingShape shape{.length = std::clamp<int64_t>(longest, 1, windows.context)};
  const auto needed = [&](int64_t batch) {
    shape.batch = batch;
    return evaluation_bytes(model, shape);
  };
  const int64_t fitting = kMostLogits / std::max<int64_t>(1, shape.length * model.vocabulary);
  windows.batch_size = options.batch_size.value_or(std::clamp<int64_t>(fitting, 1, kMostWindows));
  const double allowed = available_memory_bytes();
  while (!options.batch_size && windows.batch_size > 1 && needed(windows.batch_size) > allowed) --windows.batch_size;
  check_memory(needed(windows.batch_size), "scoring a batch", "use a smaller --batch-size or --context");
  return windows;
}

struct Result {
  Score perplexity;
  std::optional<Score> bits_per_byte;  // with a lossless tokenizer only
  LanguageSums sums;
};

Result score(const LoadedModel& loaded, const TokenData& tokens, const WindowOptions& windows) {
  ProgressLine line("evaluating");
  const LanguageSums sums =
      evaluate_language(loaded.model, tokens, *loaded.tokenizer, windows, [&line](int64_t done, int64_t total) {
        check_interrupted();
        line.update(static_cast<double>(done), static_cast<double>(total));
      });
  const LanguageSetup setup{
      .tokenizer = tokenizer_label(*loaded.tokenizer), .context = windows.context, .stride = windows.stride};
  Result result{.perplexity = perplexity(sums, setup), .bits_per_byte = {}, .sums = sums};
  if (loaded.tokenizer->lossless() && sums.bytes > 0) result.bits_per_byte = bits_per_byte(sums, setup);
  return result;
}

nlohmann::ordered_json to_object(const Result& result, const WindowOptions& windows) {
  nlohmann::ordered_json object = {{"perplexity", result.perplexity.value},
                                   {"loss", result.sums.nats / static_cast<double>(result.sums.tokens)}};
  if (result.bits_per_byte) object["bits_per_byte"] = result.bits_per_byte->value;
  object["tokens"] = result.sums.tokens;
  object["bytes"] = result.sums.bytes;
  object["context"] = windows.context;
  object["stride"] = windows.stride;
  object["signature"] = result.perplexity.signature;
  return object;
}

std::string to_text(const Result& result, const WindowOptions& windows) {
  const double loss = result.sums.nats / static_cast<double>(result.sums.tokens);
  std::string text = join_text("perplexity     ", format_fixed(result.perplexity.value, 4), " (loss ",
                               format_fixed(loss, 4), " nats per token)\n");
  text += "bits per byte  ";
  text += result.bits_per_byte ? format_fixed(result.bits_per_byte->value, 4)
                               : "not defined: the tokenizer does not give every text back";
  const char* kind = windows.stride == windows.context ? ", disjoint windows" : "";
  return text + join_text("\nscored         ", result.sums.tokens, " tokens, ", result.sums.bytes, " bytes; context ",
                          windows.context, ", stride ", windows.stride, kind, "\nsignature      ",
                          result.perplexity.signature, "\n");
}

// What a masked language model is worth.
struct MaskedResult {
  LanguageSums masked;
  std::optional<LanguageSums> pseudo;
};

MaskedResult score(const LoadedEncoder& loaded, const TokenData& tokens, const EvaluateOptions& options,
                   const MaskedSetup& setup) {
  ProgressLine line("evaluating");
  const auto show = [&line](int64_t done, int64_t total) {
    check_interrupted();
    line.update(static_cast<double>(done), static_cast<double>(total));
  };
  const Masker masker(*loaded.tokenizer, options.masking);
  MaskedResult result{.masked = evaluate_masked(loaded.model, tokens, masker, setup, show).sums, .pseudo = {}};
  result.pseudo = pseudo_likelihood(loaded.model, tokens, options.pseudo_tokens, masker, setup, show);
  return result;
}

nlohmann::ordered_json to_object(const MaskedResult& result, const EvaluateOptions& options, const MaskedSetup& setup,
                                 const Tokenizer& tokenizer) {
  nlohmann::ordered_json object = {
      {"masked_lm_loss", result.masked.nats / static_cast<double>(result.masked.tokens)},
      {"masked_perplexity", masked_perplexity(result.masked, tokenizer_label(tokenizer), setup, options.masking).value},
      {"masked_tokens", result.masked.tokens},
      {"mask_rate", options.masking.rate},
      {"whole_words", options.masking.whole_words},
      {"context", setup.context}};
  if (!result.pseudo) return object;
  const Score score = pseudo_perplexity(*result.pseudo, tokenizer_label(tokenizer), setup);
  object["pseudo_perplexity"] = score.value;
  object["pseudo_tokens"] = result.pseudo->tokens;
  object["signature"] = score.signature;
  return object;
}

std::string to_text(const nlohmann::ordered_json& object) {
  std::string text =
      join_text("masked-LM loss     ", format_fixed(object["masked_lm_loss"], 4), " nats, ",
                object["masked_tokens"].dump(), " tokens masked (", object["mask_rate"].dump(),
                object["whole_words"] == true ? " of each window, whole words)\n" : " of each window)\n");
  if (object.contains("pseudo_perplexity")) {
    text += join_text("pseudo-perplexity  ", format_fixed(object["pseudo_perplexity"], 4), ", ",
                      object["pseudo_tokens"].dump(), " tokens masked one by one\nsignature          ",
                      object["signature"].get<std::string>(), "\n");
  }
  return text;
}

int evaluate_encoder(const EvaluateOptions& options, c10::Device device) {
  if (options.stride) throw UsageError("--stride is about next tokens; an encoder is scored on disjoint windows");
  LoadedEncoder loaded = load_encoder_model(options.model_path);
  loaded.model->to(device);
  const TokenData tokens = open_part(options, *loaded.tokenizer);
  const WindowOptions windows = window_options(options, loaded.model->options(), tokens.size() + 2);  // [CLS] and [SEP]
  const MaskedSetup setup{.context = windows.context, .batch_size = windows.batch_size};
  const MaskedResult result = score(loaded, tokens, options, setup);
  const nlohmann::ordered_json object = to_object(result, options, setup, *loaded.tokenizer);
  options.json ? print_json(object.dump(2) + "\n") : print(to_text(object));
  return kOk;
}

}  // namespace

int run_evaluate(const Words& words) {
  EvaluateOptions options;
  Arguments arguments("evaluate",
                      "Scores a model on text: a decoder by perplexity, and bits per byte where the tokenizer is "
                      "lossless; an encoder by its loss at masked tokens and pseudo-perplexity.");
  arguments.required("MODEL", "a checkpoint or run directory", &options.model_path);
  arguments.group("Scoring", own_fields(options));
  arguments.group("Encoders", masked_fields(options));
  arguments.group("Text", fields(options.data));
  arguments.group("Computing", fields(options.runtime));
  if (!arguments.parse(words)) return kOk;
  catch_interrupts();
  const c10::Device device = start_runtime(options.runtime);
  if (std::holds_alternative<EncoderOptions>(read_options(find_checkpoint(options.model_path)))) {
    return evaluate_encoder(options, device);
  }
  for (Field& one : masked_fields(options)) {
    if (arguments.given(one.name)) throw UsageError("--" + one.name + " is about encoders; this model is a decoder");
  }
  const LoadedModel loaded = load_model_on(options.model_path, device);
  const TokenData tokens = open_part(options, *loaded.tokenizer);
  const WindowOptions windows = window_options(options, loaded.model->options(), tokens.size() - 1);
  const Result result = score(loaded, tokens, windows);
  options.json ? print_json(to_object(result, windows).dump(2) + "\n") : print(to_text(result, windows));
  return kOk;
}

}  // namespace headshare
