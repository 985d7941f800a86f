#include "headshare/text/interface/tokenizer.h"

#include "headshare/base/error.h"
#include "headshare/text/added/added_search.h"

namespace headshare {

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

std::optional<Vocabulary> Tokenizer::vocabulary() const {
  if (words() != nullptr) return std::nullopt;
  std::vector<std::string> tokens;
  for (int32_t id = 0; id < vocabulary_size(); ++id) tokens.push_back(spelling(id));
  return vocabulary_of(tokens, {}, {});
}

Vocabulary Tokenizer::vocabulary_of(const std::vector<std::string>& tokens, const std::vector<int32_t>& special_ids,
                                    const std::vector<AddedToken>& added) const {
  Vocabulary vocabulary{.added = added};
  for (const std::string& token : tokens) vocabulary.tokens.push_back({.spelling = token});
  const auto mark = [&](int32_t id, TokenKind kind) { vocabulary.tokens.at(static_cast<size_t>(id)).kind = kind; };
  for (const int32_t id : special_ids) mark(id, TokenKind::kSpecial);
  for (const AddedToken& one : added) mark(one.id, one.special ? TokenKind::kSpecial : TokenKind::kAdded);
  for (const SpecialToken role : kRoles) {
    const std::optional<int32_t> id = special(role);
    if (id) mark(*id, role == SpecialToken::kUnknown ? TokenKind::kUnknown : TokenKind::kSpecial);
  }
  return vocabulary;
}

std::vector<int32_t> Tokenizer::encode_with_special(std::string_view text) const {
  std::vector<AddedToken> specials;
  for (const SpecialToken role : kRoles) {
    const std::optional<int32_t> id = special(role);
    if (!id) continue;
    // A SentencePiece model may write unknown tokens as nothing.
    if (std::string its_text = decode({&*id, 1}); !its_text.empty()) specials.push_back({*id, std::move(its_text)});
  }
  std::vector<int32_t> ids;
  AddedSearch(std::move(specials)).for_each_part(text, [&](TextSpan span, const AddedToken* token) {
    if (token != nullptr) return ids.push_back(token->id);
    const std::vector<int32_t> piece = encode(text.substr(span.begin, span.end - span.begin));
    ids.insert(ids.end(), piece.begin(), piece.end());
  });
  return ids;
}

}  // namespace headshare
