#include "headshare/tasks/language/score_text.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/memory.h"
#include "headshare/base/strings/format.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

struct Perplexities {
  Score perplexity;
  double unknown = 0;                  // share of the tokens
  std::optional<Score> bits_per_byte;  // with a lossless tokenizer only
  LanguageSums sums;
};

Perplexities score(const LoadedModel& loaded, const TokenData& tokens, const WindowOptions& windows,
                   const WindowProgress& progress) {
  const LanguageSums sums = evaluate_language(loaded.model, tokens, *loaded.tokenizer, windows, progress);
  const LanguageSetup setup{
      .tokenizer = tokenizer_label(*loaded.tokenizer), .context = windows.context, .stride = windows.stride};
  Perplexities result{.perplexity = perplexity(sums, setup),
                      .unknown = unknown_share(tokens, *loaded.tokenizer),
                      .bits_per_byte = {},
                      .sums = sums};
  if (loaded.tokenizer->lossless() && sums.bytes > 0) result.bits_per_byte = bits_per_byte(sums, setup);
  return result;
}

nlohmann::ordered_json to_object(const Perplexities& result, const WindowOptions& windows) {
  nlohmann::ordered_json object = {{"perplexity", result.perplexity.value},
                                   {"loss", result.sums.nats / static_cast<double>(result.sums.tokens)}};
  if (result.bits_per_byte) object["bits_per_byte"] = result.bits_per_byte->value;
  object["tokens"] = result.sums.tokens;
  object["unknown_share"] = result.unknown;
  object["bytes"] = result.sums.bytes;
  object["context"] = windows.context;
  object["stride"] = windows.stride;
  object["signature"] = result.perplexity.signature;
  return object;
}

std::string to_text(const Perplexities& result, const WindowOptions& windows) {
  const double loss = result.sums.nats / static_cast<double>(result.sums.tokens);
  std::string text = join_text("perplexity     ", format_fixed(result.perplexity.value, 4), " (loss ",
                               format_fixed(loss, 4), " nats per token)\n");
  text += "bits per byte  ";
  text += result.bits_per_byte ? format_fixed(result.bits_per_byte->value, 4)
                               : "not defined: the tokenizer does not give every text back";
  text += unknown_line("\nunknown        ", result.unknown);
  const char* kind = windows.stride == windows.context ? ", disjoint windows" : "";
  return text + join_text("\nscored         ", result.sums.tokens, " tokens, ", result.sums.bytes, " bytes; context ",
                          windows.context, ", stride ", windows.stride, kind, "\nsignature      ",
                          result.perplexity.signature, "\n");
}

}  // namespace

std::string unknown_line(const std::string& heading, double share) {
  return share > 0 ? heading + percent_text(share) + " of the tokens are unknown to the tokenizer and easy to predict"
                   : "";
}

WindowOptions scoring_windows(const TextToScore& asked, std::optional<int64_t> stride, const ModelOptions& model,
                              int64_t longest) {
  constexpr int64_t kMostLogits = 1 << 26;
  constexpr int64_t kMostWindows = 32;
  WindowOptions windows;
  windows.context = asked.context.value_or(model.common().context);
  windows.stride = stride.value_or(windows.context);
  TrainingShape shape{.length = std::clamp<int64_t>(longest, 1, windows.context)};
  const auto needed = [&](int64_t batch) {
    shape.batch = batch;
    return evaluation_bytes(model, shape);
  };
  const int64_t fitting = kMostLogits / std::max<int64_t>(1, shape.length * model.common().vocabulary);
  windows.batch_size = asked.batch_size.value_or(std::clamp<int64_t>(fitting, 1, kMostWindows));
  const double allowed = available_memory_bytes();
  while (!asked.batch_size && windows.batch_size > 1 && needed(windows.batch_size) > allowed) --windows.batch_size;
  check_memory(needed(windows.batch_size), "scoring a batch", "use a smaller --batch-size or --context");
  return windows;
}

TextScores score_text(const TextToScore& asked, std::optional<int64_t> stride) {
  LoadedModel loaded = load_model(asked.model);
  loaded.model->to(asked.device);
  const TokenData tokens = asked.open(*loaded.tokenizer);
  const WindowOptions windows = scoring_windows(asked, stride, loaded.model->options(), tokens.size() - 1);
  const Perplexities result = score(loaded, tokens, windows, asked.progress);
  return {.object = to_object(result, windows), .text = to_text(result, windows)};
}

}  // namespace headshare
