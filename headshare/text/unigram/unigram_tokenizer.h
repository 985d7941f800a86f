// Tokenizer "unigram" is SentencePiece's Unigram, as ALBERT and XLM-RoBERTa have it. It is read, not trained.
#pragma once

#include <optional>

#include "headshare/text/added/added_tokens.h"
#include "headshare/text/interface/tokenizer.h"
#include "headshare/text/interface/worker_pool.h"
#include "headshare/text/unigram/normal_steps.h"
#include "headshare/text/unigram/unigram_model.h"

namespace headshare {

// This is the language that texts are in, as mBART has it: its token, a special one among `added`, stands beside the
// text (text_borders.h).
struct LanguageToken {
  int32_t id = 0;
  bool leads = false;  // mBART-50: en_XX A </s>; else mBART: A </s> en_XX

  bool operator==(const LanguageToken&) const = default;
};

// A Unigram tokenizer is made of this.
struct UnigramDefinition {
  std::vector<std::string> tokens;  // by id
  std::vector<double> scores;       // as many, log probabilities
  std::vector<int32_t> special;     // ids that are no pieces of words, ascending; `unknown` is one of them
  std::vector<AddedToken> added;    // by id; special tokens without options need not be there
  int32_t unknown = 0;
  bool byte_fallback = false;     // unknown characters are their bytes
  bool splits_at_white = true;    // words are what stands between white space; else spaces alone part them
  bool prefix = true;             // a text begins with U+2581, as if a space stood before it
  int64_t pair_separators = 1;    // ALBERT: [CLS] A [SEP] B [SEP]; XLM-RoBERTa has 2
  std::vector<NormalStep> steps;  // of normalisation
  std::optional<LanguageToken> language = {};
};

// Tells whether a special token of this text has a role.
bool has_unigram_role(std::string_view text);

// Text is normalised and cut into words, each of which begins with U+2581; a word is the pieces whose scores sum to the
// most (unigram_model.h). Added tokens are cut out of the text first. The ids equal those of Hugging Face tokenizers.
//
// Special tokens have their roles by their texts: "<pad>", "[PAD]"; "[CLS]", "<s>"; "[SEP]", "</s>"; "[MASK]",
// "<mask>". Invalid UTF-8 is an Error naming the byte offset. A span goes from the first to the last character that a
// token came from; U+2581 stands where the character after it stands. decode is Hugging Face's Metaspace decoder; byte
// tokens become the characters that they spell, or U+FFFD.
//
// encode may run in many threads at once.
class UnigramTokenizer : public Tokenizer {
 public:
  // Throws Error led by `where` when `definition` is not consistent: no tokens, tokens that are empty, too long, stand
  // twice or are not UTF-8, ids outside the vocabulary or out of order, `unknown` not special, a language that is no
  // special added token or has no </s> beside it, scores that are no finite numbers or not as many.
  explicit UnigramTokenizer(UnigramDefinition definition, const std::string& where = "unigram");
  ~UnigramTokenizer() override;

  // Reads what to_json wrote.
  static std::unique_ptr<UnigramTokenizer> from_json(const nlohmann::json& object, const std::string& where);

  std::string kind() const override { return "unigram"; }
  int64_t vocabulary_size() const override { return static_cast<int64_t>(definition_.tokens.size()); }
  std::vector<int32_t> encode(std::string_view text) const override;
  std::vector<int32_t> encode_with_special(std::string_view text) const override;
  TokensWithSpans encode_with_spans(std::string_view text) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  std::string spelling(int32_t id) const override;
  std::optional<int32_t> special(SpecialToken role) const override;
  int64_t pair_separators() const override { return definition_.pair_separators; }
  bool continues_word(int32_t id) const override;
  bool lossless() const override { return false; }
  std::optional<Vocabulary> vocabulary() const override;
  nlohmann::json to_json() const override;

  const UnigramDefinition& definition() const { return definition_; }

 private:
  struct Worker;
  using Visit = std::function<void(int32_t id, TextSpan)>;

  std::vector<int32_t> encode_parts(std::string_view text, const AddedSearches& searches) const;
  // Encodes text without plain added tokens. Returns false, with nothing appended, where a normalised one may be in it.
  bool encode_part(std::string_view text, const AddedSearch& normalized, Worker* worker,
                   std::vector<int32_t>* ids) const;
  std::string_view white() const;                  // before these characters text may be cut into pieces, where
  bool white_parts_words() const;                  // they end words also when they are normalised
  size_t next_piece(std::string_view rest) const;  // its length
  // Tells whether the text of a normalised token may begin in the first `bytes` bytes of `rest`, which are a piece.
  bool token_may_begin(std::string_view rest, size_t bytes, const AddedSearch& normalized) const;
  // Encodes text without plain added tokens, of which `offset` bytes stand before it.
  void encode_normalised(std::string_view text, size_t offset, const AddedSearch& normalized, const Visit& visit) const;
  // Encodes normalised text that starts at byte `offset`; `first` says that nothing of its part stands before it.
  void encode_characters(std::span<const NormalCharacter> characters, size_t offset, bool first,
                         const Visit& visit) const;
  NormalText normal(std::string_view text) const { return normalised(text, definition_.steps, where_); }

  UnigramDefinition definition_;
  std::string where_;
  UnigramModel model_;
  AddedTokens added_;
  bool piecewise_ = false;
  mutable WorkerPool<Worker> workers_;
};

}  // namespace headshare
