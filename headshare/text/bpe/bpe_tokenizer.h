// Tokenizer "bpe" is byte-level byte-pair encoding, as GPT-2's.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>

#include "headshare/text/added/added_tokens.h"
#include "headshare/text/bpe/bpe_merger.h"
#include "headshare/text/bpe/word_splitter.h"
#include "headshare/text/interface/tokenizer.h"
#include "headshare/text/interface/worker_pool.h"
#include "headshare/text/unicode/composition.h"

namespace headshare {

// Text is cut into words by GPT-2's pattern or one of its successors' (word_splitter.h), and each word's bytes are
// merged (bpe_merger.h). Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", and
// openai/gpt-2's encoder; the ids equal those of Hugging Face tokenizers.
//
// All bytes survive, invalid UTF-8 too: bytes that are not valid UTF-8 are words of their own,
// which every byte-level vocabulary can write. With add_prefix_space a leading space may be
// added, and with NFC characters may change: then the tokenizer is not lossless. Added tokens are cut out of the text
// first, and each stretch between two of them is a text of its own; decode writes them as their text. Where <s> and
// </s> are among the special tokens, they and <pad>, <unk> and <mask> have the roles that they have in RoBERTa, and
// <|endoftext|> ends a text; definitions may say otherwise (BpeDefinition). A token continues a word when its first
// byte is of an ASCII letter or digit or of a character beyond ASCII, so that white space and signs begin words.
//
// encode may run in many threads at once: each takes a worker (cursor, cache and scratch space)
// for the call.
class BpeTokenizer : public Tokenizer {
 public:
  // Throws Error led by `where` when `definition` is not consistent (see BpeMerger).
  explicit BpeTokenizer(BpeDefinition definition, const std::string& where = "bpe");
  ~BpeTokenizer() override;

  // Reads what to_json wrote.
  static std::unique_ptr<BpeTokenizer> from_json(const nlohmann::json& object, const std::string& where);

  std::string kind() const override { return "bpe"; }
  int64_t vocabulary_size() const override { return static_cast<int64_t>(definition_.tokens.size()); }
  std::vector<int32_t> encode(std::string_view text) const override;
  std::vector<int32_t> encode_with_special(std::string_view text) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  TokensWithSpans encode_with_spans(std::string_view text) const override;
  std::optional<int32_t> special(SpecialToken role) const override;
  int64_t pair_separators() const override;
  std::optional<int32_t> begins_texts() const override { return definition_.begin_of_text; }
  bool continues_word(int32_t id) const override;
  bool lossless() const override { return lossless_; }
  std::optional<Vocabulary> vocabulary() const override;
  nlohmann::json to_json() const override;

  const BpeDefinition& definition() const { return definition_; }

 private:
  struct Worker;
  // This is a stretch of a text, in its normal form: an added token, or what stands between two.
  struct Part {
    std::string_view text;
    const AddedToken* token = nullptr;
    TextSpan span = {};  // bytes in composed->text(), or in the whole text without `composed`
    size_t offset = 0;   // where the original of `composed` begins in the whole text
    const ComposedText* composed = nullptr;

    TextSpan original(TextSpan bytes) const;  // in the whole text
  };

  void for_each_part(std::string_view text, const AddedSearches& searches,
                     const std::function<void(const Part&)>& visit) const;
  std::vector<int32_t> encode_parts(std::string_view text, const AddedSearches& searches) const;
  void encode_part(std::string_view text, std::vector<int32_t>* ids) const;  // which has no added token
  std::string normal(std::string_view text) const;
  void encode_word(std::string_view word, Worker* worker, std::vector<int32_t>* ids) const;

  BpeDefinition definition_;
  std::map<SpecialToken, int32_t> roles_;
  BpeMerger merger_;
  WordSplitter splitter_;
  AddedTokens added_;
  std::unordered_map<std::string_view, int32_t> whole_words_;  // empty where words are merged in any case
  std::unordered_map<int32_t, std::string> normal_texts_;      // of added tokens whose normal form is another text
  bool lossless_ = false;
  mutable WorkerPool<Worker> workers_;
};

}  // namespace headshare
