#include "headshare/text/bpe/bpe_trainer.h"

#include <algorithm>
#include <numeric>

#include "headshare/base/error.h"
#include "headshare/text/bpe/bpe_file.h"
#include "headshare/text/bpe/byte_alphabet.h"

namespace headshare {

BpeDefinition train_bpe(const WordCounts& counts, const BpeTrainingOptions& options) {
  BpeDefinition definition;
  if (options.end_of_text) {
    definition.tokens.emplace_back(kEndOfTextName);
    definition.special = {0};
    definition.end_of_text = 0;
  }
  const size_t first_ordinary = definition.tokens.size();
  std::vector<int32_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), 0);
  std::sort(bytes.begin(), bytes.end(), [](int32_t a, int32_t b) {
    return byte_to_code_point(static_cast<unsigned char>(a)) < byte_to_code_point(static_cast<unsigned char>(b));
  });
  int32_t ids[256];
  for (const int32_t byte : bytes) {
    ids[byte] = static_cast<int32_t>(definition.tokens.size());
    definition.tokens.emplace_back(1, static_cast<char>(byte));
  }
  HS_CHECK(options.vocabulary_size >= static_cast<int64_t>(definition.tokens.size()), "vocabulary-size ",
           options.vocabulary_size, " is too small for bpe: the 256 bytes and special tokens alone are ",
           definition.tokens.size());
  TokenWords words;
  for (const auto& [word, count] : counts) {
    for (const char byte : word) words.ids.push_back(ids[static_cast<unsigned char>(byte)]);
    words.lengths.push_back(static_cast<uint32_t>(word.size()));
    words.counts.push_back(count);
  }
  definition.merges = learn_merges(words,
                                   {.vocabulary_size = options.vocabulary_size,
                                    .min_count = options.min_count,
                                    .first_ordinary = first_ordinary,
                                    .prefix = {}},
                                   &definition.tokens);
  return definition;
}

}  // namespace headshare
