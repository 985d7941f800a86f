// What stands around a text that an encoder-decoder reads or writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/text/tokenizer.h"

namespace headshare {

struct TextBorders {
  std::optional<int32_t> first;
  int32_t last = 0;

  int64_t size() const { return first ? 2 : 1; }
  std::vector<int32_t> around(const std::vector<int32_t>& ids) const;
};

// The token that ends a text (</s> of SentencePiece models, <|endoftext|>); without one, of a byte-level BPE with
// RoBERTa's special tokens <s> before the text and </s> behind it, as BART has them. Throws Error led by `where` for
// other tokenizers.
TextBorders text_borders(const Tokenizer& tokenizer, const std::string& where);

}  // namespace headshare
