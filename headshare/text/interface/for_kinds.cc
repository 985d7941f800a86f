#include "headshare/text/interface/for_kinds.h"

#include "headshare/base/error.h"

namespace headshare {

nlohmann::json tokenizer_header(const Tokenizer& tokenizer) {
  return {{"format", kTokenizerFormat}, {"version", kTokenizerVersion}, {"kind", tokenizer.kind()}};
}

void check_token_id(int32_t id, int64_t vocabulary_size) {
  HS_CHECK(id >= 0 && id < vocabulary_size, "cannot decode the id ", id, ": the vocabulary has the ids 0 .. ",
           vocabulary_size - 1, "; is this the tokenizer the ids were made with?");
}

void throw_words_unknown(const Tokenizer& tokenizer) {
  throw Error(join_text("the ids of the tokenizer '", tokenizer.kind(),
                        "' do not tell where words begin; use 'wordpiece', 'bpe' or 'words' for whole words"));
}

}  // namespace headshare
