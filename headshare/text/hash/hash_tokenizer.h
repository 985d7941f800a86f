// Tokenizers "hash-md" and "hash-lsh": words and symbols without a vocabulary (HashFormers).
#pragma once

#include "headshare/text/hash/word_hasher.h"
#include "headshare/text/hash/word_table.h"
#include "headshare/text/tokenizer.h"

namespace headshare {

// Ids 0 .. 4 are <s>, padding, </s>, unknown and mask (HashFormers' order); an id from 5 on is 5 + the number of its
// word in the table of this tokenizer, so ids are those of one run: what is saved keeps the words beside them.
class HashTokenizer : public Tokenizer {
 public:
  static constexpr int32_t kSpecials = 5;
  // ...
};

}  // namespace headshare
