#include "headshare/text/text_borders.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/unigram/unigram_tokenizer.h"

namespace headshare {
namespace {

// Tells how a tokenizer gets such a token. One that merges bytes is not helped by the advice to take one that does.
std::string way_out(const Tokenizer& tokenizer) {
  if (tokenizer.kind() == "bpe") {
    return "its special tokens have neither <|endoftext|> nor both <s> and </s>; train one without --no-end-of-text, "
           "or add them to the files of this one";
  }
  if (tokenizer.kind() == "sentencepiece") return "its model has no </s>; train one with --tokenizer sentencepiece";
  return "use --tokenizer sentencepiece, or --tokenizer bpe";
}

const UnigramDefinition* definition_with_language(const Tokenizer& tokenizer) {
  const auto* unigram = dynamic_cast<const UnigramTokenizer*>(&tokenizer);
  return unigram != nullptr && unigram->definition().language ? &unigram->definition() : nullptr;
}

}  // namespace

bool TextBorders::has(int32_t token) const {
  return std::find(before.begin(), before.end(), token) != before.end() ||
         std::find(after.begin(), after.end(), token) != after.end();
}

std::vector<int32_t> TextBorders::around(const std::vector<int32_t>& ids) const {
  std::vector<int32_t> whole = before;
  whole.insert(whole.end(), ids.begin(), ids.end());
  whole.insert(whole.end(), after.begin(), after.end());
  return whole;
}

bool has_text_borders(const Tokenizer& tokenizer) {
  const auto has = [&tokenizer](SpecialToken role) { return tokenizer.special(role).has_value(); };
  if (has(SpecialToken::kEndOfText)) return true;
  const bool open = tokenizer.words() != nullptr;  // no model writes words without a vocabulary
  return !open && has(SpecialToken::kClassify) && has(SpecialToken::kSeparate);
}

TextBorders text_borders(const Tokenizer& tokenizer, const std::string& where) {
  if (const auto end = tokenizer.special(SpecialToken::kEndOfText)) return {.before = {}, .after = {*end}};
  const auto first = tokenizer.special(SpecialToken::kClassify);
  const auto last = tokenizer.special(SpecialToken::kSeparate);
  if (const UnigramDefinition* d = definition_with_language(tokenizer)) {
    const int32_t language = d->language->id;
    return d->language->leads ? TextBorders{.before = {language}, .after = {*last}}
                              : TextBorders{.before = {}, .after = {*last, language}};
  }
  HS_CHECK(has_text_borders(tokenizer), where, " (", tokenizer.kind(), ", ", tokenizer.vocabulary_size(),
           " tokens) has no token that ends a text: ", way_out(tokenizer));
  return {.before = {*first}, .after = {*last}};
}

TextBorders target_borders(const Tokenizer& tokenizer, const std::string& where) {
  TextBorders borders = text_borders(tokenizer, where);
  borders.after.resize(1);
  return borders;
}

std::optional<int32_t> begins_texts(const Tokenizer& tokenizer) { return tokenizer.begins_texts(); }

std::optional<int32_t> language_of(const Tokenizer& tokenizer) {
  const UnigramDefinition* d = definition_with_language(tokenizer);
  return d != nullptr ? std::optional(d->language->id) : std::nullopt;
}

std::unique_ptr<Tokenizer> in_language(const Tokenizer& tokenizer, const std::string& language,
                                       const std::string& where) {
  const UnigramDefinition* known = definition_with_language(tokenizer);
  HS_CHECK(known != nullptr, where, ": a tokenizer of kind ", tokenizer.kind(), " has no languages");
  UnigramDefinition d = *known;
  const auto found = std::find_if(d.added.begin(), d.added.end(),
                                  [&](const AddedToken& one) { return one.special && one.text == language; });
  HS_CHECK(found != d.added.end(), where, ": the language ", brief_text(language), " is no special token of the ",
           d.tokens.size(), " tokens");
  d.language->id = found->id;
  return std::make_unique<UnigramTokenizer>(std::move(d), where);
}

}  // namespace headshare
