// Finds the tokens that stand around a text that an encoder-decoder reads or writes.
#pragma once

#include <string>
#include <vector>

#include "headshare/text/interface/tokenizer.h"

namespace headshare {

struct TextBorders {
  std::vector<int32_t> before;
  std::vector<int32_t> after;  // the first of them ends the text

  int64_t size() const { return static_cast<int64_t>(before.size() + after.size()); }
  int32_t end() const { return after.front(); }
  bool has(int32_t token) const;
  std::vector<int32_t> around(const std::vector<int32_t>& ids) const;
};

// Returns the token that ends a text (</s> of SentencePiece models, <|endoftext|>); without one the two that stand
// around every text: RoBERTa's <s> A </s>, BERT's [CLS] A [SEP]. A tokenizer that has a language puts its token behind
// </s> or before the text in place of <s>. Throws Error led by `where` for other tokenizers.
TextBorders text_borders(const Tokenizer& tokenizer, const std::string& where);

bool has_text_borders(const Tokenizer& tokenizer);

// Returns the same for what is written: a target is over with its end, so that nothing stands behind it.
TextBorders target_borders(const Tokenizer& tokenizer, const std::string& where);

// Returns tokenizer.begins_texts(): the token that stands before every text that a decoder reads.
std::optional<int32_t> begins_texts(const Tokenizer& tokenizer);

// Returns the language of such a tokenizer: that of mBART. Nothing for all others.
std::optional<int32_t> language_of(const Tokenizer& tokenizer);

// Returns the same tokenizer for another language, which is one of its special tokens. Throws Error led by `where` for
// a text that is none, and for a tokenizer that has no language.
std::unique_ptr<Tokenizer> in_language(const Tokenizer& tokenizer, const std::string& language,
                                       const std::string& where);

}  // namespace headshare
