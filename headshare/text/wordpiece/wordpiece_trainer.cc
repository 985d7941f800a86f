#include "headshare/text/wordpiece/wordpiece_trainer.h"

#include <algorithm>
#include <map>
#include <set>

#include "headshare/base/error.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

constexpr size_t kMostCharacters = 1000;

using Characters = std::set<int32_t>;

std::string text_of(int32_t code_point) {
  std::string text;
  append_utf8(code_point, &text);
  return text;
}

Characters frequent_characters(const WordCounts& counts) {
  std::map<int32_t, int64_t> occurrences;
  for (const auto& [word, count] : counts) {
    for (size_t at = 0; at < word.size();) occurrences[next_code_point(word, &at)] += count;
  }
  std::vector<std::pair<int64_t, int32_t>> ranked;  // negated count, code point: sorts the frequent first
  for (const auto& [code_point, count] : occurrences) ranked.emplace_back(-count, code_point);
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(std::min(ranked.size(), kMostCharacters));
  Characters kept;
  for (const auto& [count, code_point] : ranked) kept.insert(code_point);
  return kept;
}

// Calls visit(code point, whether it stands inside the word) for the word's kept characters.
template <class Visit>
void for_each_kept(const std::string& word, const Characters& kept, const Visit& visit) {
  for (size_t at = 0; at < word.size();) {
    const bool inside = at > 0;
    const int32_t code_point = next_code_point(word, &at);
    if (kept.contains(code_point)) visit(code_point, inside);
  }
}

}  // namespace

WordPieceDefinition train_wordpiece(const WordCounts& counts, const WordPieceTrainingOptions& options) {
  WordPieceDefinition definition;
  definition.normalization = options.normalization;
  for (const BertSpecialToken& token : kBertSpecialTokens) {
    const auto id = static_cast<int32_t>(definition.tokens.size());
    if (token.role == SpecialToken::kUnknown) definition.unknown = id;
    definition.special.push_back(id);
    definition.tokens.emplace_back(token.text);
  }
  const Characters kept = frequent_characters(counts);
  Characters inner;
  for (const auto& [word, count] : counts) {
    for_each_kept(word, kept, [&](int32_t code_point, bool inside) {
      if (inside) inner.insert(code_point);
    });
  }
  std::map<int32_t, int32_t> ids[2];  // of characters that begin a word, and of those inside
  const auto add = [&](int32_t code_point, bool inside) {
    ids[inside ? 1 : 0][code_point] = static_cast<int32_t>(definition.tokens.size());
    definition.tokens.push_back((inside ? std::string(kContinuationPrefix) : "") + text_of(code_point));
  };
  for (const int32_t code_point : kept) add(code_point, false);
  for (const int32_t code_point : inner) add(code_point, true);
  HS_CHECK(options.vocabulary_size >= static_cast<int64_t>(definition.tokens.size()), "vocabulary-size ",
           options.vocabulary_size, " is too small for wordpiece: the special tokens and the characters of this text, ",
           "alone and with ##, are ", definition.tokens.size());

  TokenWords words;
  for (const auto& [word, count] : counts) {
    const size_t before = words.ids.size();
    for_each_kept(word, kept,
                  [&](int32_t code_point, bool inside) { words.ids.push_back(ids[inside ? 1 : 0].at(code_point)); });
    words.lengths.push_back(static_cast<uint32_t>(words.ids.size() - before));
    words.counts.push_back(count);
  }
  learn_merges(words,
               {.vocabulary_size = options.vocabulary_size,
                .min_count = options.min_count,
                .first_ordinary = definition.special.size(),
                .prefix = std::string(kContinuationPrefix)},
               &definition.tokens);
  return definition;
}

}  // namespace headshare
