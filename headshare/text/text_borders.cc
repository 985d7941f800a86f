#include "headshare/text/text_borders.h"

#include "headshare/base/error.h"

namespace headshare {
namespace {

// How a tokenizer gets such a token. One that merges bytes is not helped by the advice to take one that does.
std::string way_out(const Tokenizer& tokenizer) {
  if (tokenizer.kind() == "bpe") {
    return "its special tokens have neither <|endoftext|> nor both <s> and </s>; train one without --no-end-of-text, "
           "or "
           "add them to the files of this one";
  }
  if (tokenizer.kind() == "sentencepiece") return "its model has no </s>; train one with --tokenizer sentencepiece";
  return "use --tokenizer sentencepiece, or --tokenizer bpe";
}

}  // namespace

std::vector<int32_t> TextBorders::around(const std::vector<int32_t>& ids) const {
  std::vector<int32_t> whole;
  whole.reserve(ids.size() + 2);
  if (first) whole.push_back(*first);
  whole.insert(whole.end(), ids.begin(), ids.end());
  whole.push_back(last);
  return whole;
}

TextBorders text_borders(const Tokenizer& tokenizer, const std::string& where) {
  if (const auto end = tokenizer.special(SpecialToken::kEndOfText)) return {.first = std::nullopt, .last = *end};
  const auto first = tokenizer.special(SpecialToken::kClassify);
  const auto last = tokenizer.special(SpecialToken::kSeparate);
  HS_CHECK(tokenizer.kind() == "bpe" && first && last, where, " (", tokenizer.kind(), ", ", tokenizer.vocabulary_size(),
           " tokens) has no token that ends a text: ", way_out(tokenizer));
  return {.first = first, .last = *last};
}

}  // namespace headshare
