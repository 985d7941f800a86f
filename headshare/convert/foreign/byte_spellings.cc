#include "headshare/convert/foreign/byte_spellings.h"

#include "headshare/base/error.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/bpe/byte_alphabet.h"

namespace headshare {

Vocabulary byte_level_vocabulary(const Tokenizer& tokenizer, const std::string& format) {
  if (tokenizer.kind() == "bytes") {
    Vocabulary vocabulary;
    for (int byte = 0; byte < 256; ++byte) {
      vocabulary.tokens.push_back({.spelling = std::string(1, static_cast<char>(byte))});
    }
    return vocabulary;
  }
  const auto* bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer);
  HS_CHECK(bpe != nullptr, "the tokenizer is of kind ", tokenizer.kind(), ", and ", format,
           " is written with BPE over bytes or characters, or bytes", kWithoutTokenizer);
  return *tokenizer.vocabulary();
}

std::string byte_spelling(const VocabularyToken& token) {
  const bool whole =
      token.kind == TokenKind::kSpecial || token.kind == TokenKind::kAdded || token.kind == TokenKind::kUnknown;
  return whole ? token.spelling : to_alphabet(token.spelling);
}

std::vector<std::string> byte_spellings(const ModelToWrite& model, const std::string& format, const std::string& before,
                                        const std::string& behind) {
  std::vector<std::string> spellings;
  if (const Tokenizer* tokenizer = model.tokenizers.target.get(); tokenizer != nullptr) {
    const bool characters = tokenizer->kind() == "character-bpe";
    const Vocabulary vocabulary = characters ? *tokenizer->vocabulary() : byte_level_vocabulary(*tokenizer, format);
    for (const VocabularyToken& token : vocabulary.tokens) {
      spellings.push_back(characters ? token.spelling : byte_spelling(token));
    }
  }
  for (auto id = static_cast<int64_t>(spellings.size()); id < model.options.common().vocabulary; ++id) {
    spellings.push_back(join_text(before, id, behind));
  }
  return spellings;
}

}  // namespace headshare
