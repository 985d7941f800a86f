#include "headshare/tasks/translation/translation_data.h"

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/data/hash.h"
#include "headshare/data/parallel/parallel_text.h"
#include "headshare/models/position_limit.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

enum class Sides { kSource, kTarget, kBoth };

// Trains a tokenizer on every training sentence of these sides, a piece each.
std::shared_ptr<Tokenizer> train_on(const TokenizerOptions& options, const ParallelOptions& pairs, Sides sides,
                                    const Progress& progress) {
  ParallelText text(pairs.train, pairs);
  std::optional<std::string> waiting;  // the target of a pair whose source was given
  return train_tokenizer(options, [&](std::string* chunk) {
    if (waiting) {
      *chunk = *std::exchange(waiting, std::nullopt);
      return true;
    }
    std::optional<Pair> pair = text.next();
    if (!pair) return false;
    if (progress) progress({.stage = "training a tokenizer", .done = text.pairs(), .total = 0});
    *chunk = sides == Sides::kTarget ? pair->target : pair->source;
    if (sides == Sides::kBoth) waiting = std::move(pair->target);
    return true;
  });
}

std::shared_ptr<Tokenizer> named_or_trained(const std::string& path, const TokenizerOptions& options,
                                            const ParallelOptions& pairs, Sides sides, const Progress& progress) {
  return path.empty() ? train_on(options, pairs, sides, progress) : std::shared_ptr(load_tokenizer(path));
}

TokenizerPair open_tokenizers(const TextOptions& text, const TranslationTaskOptions& options,
                              const Progress& progress) {
  const bool separate = options.separate_tokenizers || !options.source_tokenizer_path.empty();
  if (separate) notice("source and target have a tokenizer each, and so embeddings of their own");
  TokenizerPair tokenizers;
  tokenizers.target = named_or_trained(text.tokenizer_path, text.tokenizer, options.pairs,
                                       separate ? Sides::kTarget : Sides::kBoth, progress);
  tokenizers.source = separate ? named_or_trained(options.source_tokenizer_path, text.tokenizer, options.pairs,
                                                  Sides::kSource, progress)
                               : tokenizers.target;
  return tokenizers;
}

std::shared_ptr<const PairData> tokenised(const PairFiles& files, const ParallelOptions& options,
                                          const TokenizerPair& tokenizers, const PairLimits& limits) {
  ParallelText text(files, options);
  return std::make_shared<PairData>(&text, *tokenizers.source, *tokenizers.target, limits);
}

}  // namespace

TranslationPart judged_part(const char* what, const PairFiles& files, const ParallelOptions& options,
                            const TokenizerPair& tokenizers, std::optional<int64_t> longest) {
  if (!files.given()) return {};
  const PairLimits limits{.longest = longest, .most_ratio = {}, .keep_empty = true};
  TranslationPart part{.pairs = tokenised(files, options, tokenizers, limits)};
  if (const PairCounts& counts = part.pairs->counts(); counts.kept() < counts.read) {
    notice(join_text(what, ": ", counts_text(counts, limits),
                     " (the loss leaves them out; they are translated, from as much of the source as has positions)"));
  }
  ParallelText text(files, options);
  while (std::optional<Pair> pair = text.next()) {
    part.sources.push_back(std::move(pair->source));
    part.references.push_back(std::move(pair->target));
  }
  return part;
}

std::string TranslationPart::fingerprint() const {
  if (pairs->empty()) return "";
  ContentHash hash;
  hash.update(pairs->fingerprint());
  for (const std::vector<std::string>* side : {&sources, &references}) {
    for (const std::string& sentence : *side) hash.update(sentence + "\n");
  }
  return hash.hex();
}

std::string TranslationData::fingerprint() const {
  return content_hash(train.pairs->fingerprint() + validation.pairs->fingerprint() + test.pairs->fingerprint());
}

TranslationData open_translation_data(const TaskOptions& asked, const Progress& progress) {
  const TextOptions& text = asked.own<TextOptions>();
  TranslationTaskOptions options = asked.own<TranslationTaskOptions>();
  options.pairs.invalid_utf8 = text.data.invalid_utf8;
  HS_CHECK(options.pairs.train.given(), "there are no pairs to learn from: give --source FILE and --target FILE");
  HS_CHECK(options.pairs.validation.given(),
           "there are no pairs to validate on, which choose the best model: give --validation-source FILE and "
           "--validation-target FILE");
  TranslationData data{.tokenizers = open_tokenizers(text, options, progress)};
  data.train.pairs = tokenised(options.pairs.train, options.pairs, data.tokenizers, options.pairs.limits());
  const PairCounts& counts = data.train.pairs->counts();
  if (counts.kept() < counts.read) notice(counts_text(counts, options.pairs.limits()));
  std::optional<int64_t> longest;
  if (has_position_limit(asked.model.positions)) longest = asked.model.context;
  data.validation = judged_part("to validate", options.pairs.validation, options.pairs, data.tokenizers, longest);
  data.test = judged_part("to test", options.pairs.test, options.pairs, data.tokenizers, longest);
  return data;
}

}  // namespace headshare
