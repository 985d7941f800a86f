#include "headshare/tasks/masked/score_masked_text.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/tasks/masked/three_way.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

// A MaskedResult is what a masked language model scores on a text.
struct MaskedResult {
  LanguageSums masked;
  std::optional<LanguageSums> pseudo;
};

MaskedResult score(const LoadedEncoder& loaded, const TokenData& tokens, const MaskedOptions& options,
                   const MaskedSetup& setup, const WindowProgress& progress) {
  const Masker masker(*loaded.tokenizer, options.masking);
  return {.masked = evaluate_masked(loaded.model, tokens, masker, setup, progress).sums,
          .pseudo = pseudo_likelihood(loaded.model, tokens, options.pseudo_tokens, masker, setup, progress)};
}

nlohmann::ordered_json to_object(const MaskedResult& result, const MaskedOptions& options, const MaskedSetup& setup,
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

TextScores score_three_way(const LoadedEncoder& loaded, const TokenData& tokens, const CorruptionOptions& options,
                           const MaskedSetup& setup, const WindowProgress& progress) {
  const Corrupter corrupter(*loaded.tokenizer, options, loaded.model->options().embedding.kind, tokens, setup.context);
  const ThreeWayScores found = evaluate_three_way(loaded.model, tokens, corrupter, setup, progress);
  const TokenEmbeddingKind kind = loaded.model->options().embedding.kind;
  const bool words = options.random == RandomTokens::kWords || reads_letters(kind);
  constexpr size_t kColumn = 20;  // longer than every name
  const auto line = [&](const std::string& name, const std::string& value) {
    return name + std::string(kColumn - name.size(), ' ') + value + "\n";
  };
  nlohmann::ordered_json object;
  std::string text;
  for (const Score& one : three_way_scores(found, tokenizer_label(*loaded.tokenizer), setup, options)) {
    std::string key = one.name;
    std::replace(key.begin(), key.end(), '-', '_');
    object[key] = one.value;
    object.emplace("signature", one.signature + (words ? "|words-of:scored-text" : ""));  // the loss's: the first
    text += line(one.name, format_fixed(one.value, 4));
  }
  object["tokens"] = found.losses.sums.tokens;
  object["context"] = setup.context;
  text += line("tokens", object["tokens"].dump()) + line("signature", object["signature"].get<std::string>());
  if (words) text += "Random tokens are words of the scored text; training drew them from its own.\n";
  return {.object = std::move(object), .text = std::move(text)};
}

}  // namespace

TextScores score_masked_text(const TextToScore& asked, const MaskedOptions& options) {
  LoadedEncoder loaded = load_encoder_model(asked.model);
  loaded.model->to(asked.device);
  const TokenData tokens = asked.open(*loaded.tokenizer);
  const EncoderOptions& model = loaded.model->options();
  HS_CHECK(model.three_way_head || !is_hashed(model.embedding), asked.model,
           " hashes words and has no head of --task three-way, so it scores no text; `headshare predict` gives the "
           "answers of a fine-tuned one");
  const WindowOptions windows = scoring_windows(asked, /*stride=*/{}, model, tokens.size() + 2);  // [CLS] and [SEP]
  const MaskedSetup setup{.context = windows.context, .batch_size = windows.batch_size};
  if (model.three_way_head) {
    return score_three_way(loaded, tokens, options.corruption, setup, asked.progress);
  }
  const MaskedResult result = score(loaded, tokens, options, setup, asked.progress);
  nlohmann::ordered_json object = to_object(result, options, setup, *loaded.tokenizer);
  const double unknown = unknown_share(tokens, *loaded.tokenizer);
  object["unknown_share"] = unknown;
  std::string text = to_text(object);
  if (unknown > 0) text += unknown_line("unknown            ", unknown) + "\n";
  return {.object = std::move(object), .text = std::move(text)};
}

}  // namespace headshare
