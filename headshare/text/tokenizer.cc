#include "headshare/text/tokenizer.h"

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr SpecialToken kRoles[] = {SpecialToken::kPadding,  SpecialToken::kUnknown, SpecialToken::kClassify,
                                   SpecialToken::kSeparate, SpecialToken::kMask,    SpecialToken::kBeginOfText,
                                   SpecialToken::kEndOfText};

struct SpecialText {
  std::string text;
  int32_t id;
  size_t at = 0;  // its next place in the text searched, npos when there is none
};

std::vector<SpecialText> special_texts(const Tokenizer& tokenizer) {
  std::vector<SpecialText> texts;
  for (const SpecialToken role : kRoles) {
    const std::optional<int32_t> id = tokenizer.special(role);
    if (!id) continue;
    // A SentencePiece model may write unknown tokens as nothing.
    if (std::string text = tokenizer.decode({&*id, 1}); !text.empty()) texts.push_back({std::move(text), *id});
  }
  return texts;
}

}  // namespace

std::string_view role_name(SpecialToken role) {
  switch (role) {
    case SpecialToken::kPadding:
      return "padding";
    case SpecialToken::kUnknown:
      return "unknown";
    case SpecialToken::kClassify:
      return "classify";
    case SpecialToken::kSeparate:
      return "separate";
    case SpecialToken::kMask:
      return "mask";
    case SpecialToken::kEndOfText:
      return "end of text";
    case SpecialToken::kBeginOfText:
      return "begin of text";
  }
  throw Error("unknown role of a special token");
}

int32_t require_special(const Tokenizer& tokenizer, SpecialToken role, const std::string& where) {
  const std::optional<int32_t> id = tokenizer.special(role);
  HS_CHECK(
      id.has_value(), where, ": the tokenizer (", tokenizer.kind(), ", ", tokenizer.vocabulary_size(),
      " tokens) has no token for '", role_name(role),
      "'; use a tokenizer of kind 'wordpiece' with [PAD], [UNK], [CLS], [SEP] and [MASK] (training one gives all)");
  return *id;
}

std::vector<int32_t> encode_with_special(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<SpecialText> specials = special_texts(tokenizer);
  for (SpecialText& special : specials) special.at = text.find(special.text);
  std::vector<int32_t> ids;
  for (size_t begin = 0;;) {
    size_t end = std::string_view::npos;
    const SpecialText* next = nullptr;
    for (SpecialText& special : specials) {
      if (special.at < begin) special.at = text.find(special.text, begin);
      // The first in the text; of two that begin there, the longer.
      if (special.at < end || (next != nullptr && special.at == end && special.text.size() > next->text.size())) {
        end = special.at;
        next = &special;
      }
    }
    std::string_view words = text.substr(begin, end - begin);
    if (next != nullptr && tokenizer.strips_left(next->id)) {
      words = words.substr(0, words.find_last_not_of(" \t\n\r\f\v") + 1);
    }
    const std::vector<int32_t> piece = tokenizer.encode(words);
    ids.insert(ids.end(), piece.begin(), piece.end());
    if (next == nullptr) return ids;
    ids.push_back(next->id);
    begin = end + next->text.size();
  }
}

}  // namespace headshare
