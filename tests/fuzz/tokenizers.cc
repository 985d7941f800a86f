// These targets read tokenizers of every form: ours, Hugging Face's, GPT-2's pair of files, BERT's vocab.txt,
// SentencePiece models.
#include <array>

#include "headshare/base/error.h"
#include "headshare/text/hash/word_hasher.h"
#include "headshare/text/hash/word_table.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/sentencepiece/sentencepiece_tokenizer.h"
#include "headshare/text/tokenizer_file.h"
#include "tests/fuzz/driver.h"

namespace headshare::fuzz {
namespace {

constexpr std::array<const char*, 6> kTexts = {"The fox, 17 lazy dogs.\n\n  a\t\xC3\x84nderung",
                                               "",
                                               "\xFF\xFE broken \xC3",
                                               "[MASK]<|endoftext|>[UNK] ##ing",
                                               "\xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x98\x80 x\xCC\x81\xE2\x80\x8B",
                                               "a  [E1]\xE3\x80\x80<e1> <s>[E2][E4] \xC3\xA9\xCC\x81X e"};

// Every word has a hash of its family.
void use_words(const WordTable& words) {
  const auto count = static_cast<int32_t>(words.size());
  use(words.signatures(0, count).size());
  for (const int64_t bucket : words.buckets(0, count)) {
    if (bucket < 0 || bucket >= kHashBuckets) throw std::logic_error("a bucket that does not exist");
  }
}

void use_tokenizer(const Tokenizer& tokenizer) {
  for (const char* text : kTexts) {
    may_refuse([&] {
      const TokensWithSpans tokens = tokenizer.encode_with_spans(text);
      if (tokenizer.encode(text) != tokens.ids) throw std::logic_error("encode and encode_with_spans differ");
      const std::string decoded = tokenizer.decode(tokens.ids);
      if (tokenizer.lossless() && decoded != text) throw std::logic_error("not lossless, but says so");
      use(tokenizer.encode_with_special(text).size());
    });
  }
  for (const int64_t id : {int64_t{-1}, int64_t{0}, tokenizer.vocabulary_size() - 1, tokenizer.vocabulary_size()}) {
    const std::array one = {static_cast<int32_t>(id)};
    may_refuse([&] { use(tokenizer.decode(one).size()); });
    may_refuse([&] { use(tokenizer.continues_word(one[0]) ? 1 : 0); });
  }
  if (tokenizer.words() != nullptr) use_words(*tokenizer.words());
}

// Checks that what is read can be written, and then is the same.
void check_tokenizer(const Tokenizer& tokenizer) {
  use_tokenizer(tokenizer);
  const auto again = tokenizer_from_json(tokenizer.to_json(), "what was written");
  if (fingerprint(*again) != fingerprint(tokenizer)) throw std::logic_error("another tokenizer after writing");
  may_refuse([&] { use(hf_json(tokenizer).size()); });
}

void read_tokenizer(const fs::path& path) { check_tokenizer(*load_tokenizer(path)); }

}  // namespace

std::vector<Target> targets() {
  const auto file = [](const fs::path& folder) { read_tokenizer(folder / "tokenizer.json"); };
  return {
      {.name = "tokenizer", .read = file},
      {.name = "hf-bpe", .read = file},
      {.name = "hf-character-bpe", .read = file},
      {.name = "hf-wordpiece", .read = file},
      {.name = "hf-unigram", .read = file},
      {.name = "sentencepiece", .read = [](const fs::path& folder) { read_tokenizer(folder / "pieces.model"); }},
      {.name = "sentencepiece-vocabulary",
       .read =
           [](const fs::path& folder) {
             check_tokenizer(*load_sentencepiece(folder / "source.spm", folder / "vocab.json"));
           }},
      {.name = "vocabulary-text", .read = read_tokenizer},
      {.name = "gpt2-files", .read = read_tokenizer},
  };
}

}  // namespace headshare::fuzz
