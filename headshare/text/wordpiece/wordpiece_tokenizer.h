// Tokenizer "wordpiece" is BERT's.
#pragma once

#include <unordered_map>

#include "headshare/text/added/added_tokens.h"
#include "headshare/text/interface/tokenizer.h"
#include "headshare/text/interface/worker_pool.h"
#include "headshare/text/wordpiece/bert_words.h"

namespace headshare {

// A token that goes on with a word begins with this.
constexpr std::string_view kContinuationPrefix = "##";

// These are BERT's special tokens, in the order in which training gives them ids.
struct BertSpecialToken {
  std::string_view text;
  SpecialToken role;
};
constexpr BertSpecialToken kBertSpecialTokens[] = {{"[PAD]", SpecialToken::kPadding},
                                                   {"[UNK]", SpecialToken::kUnknown},
                                                   {"[CLS]", SpecialToken::kClassify},
                                                   {"[SEP]", SpecialToken::kSeparate},
                                                   {"[MASK]", SpecialToken::kMask}};

// A WordPiece tokenizer is made of this.
struct WordPieceDefinition {
  std::vector<std::string> tokens;  // by id
  std::vector<int32_t> special;     // ids that spell no word, ascending; `unknown` is one of them
  int32_t unknown = 0;
  int32_t longest_word = 100;  // in characters, 1 .. 1000; longer words are unknown
  BertNormalization normalization;
  std::vector<AddedToken> added = {};  // by id; special tokens without options need not be there
};

// Text is normalised and cut into words (bert_words.h); a word is the longest token that it begins
// with, then the longest of the rest among those written with ##, and so on; a word that cannot be
// spelt so is [UNK] as a whole. Wu et al. 2016, Devlin et al. 2019; the ids equal those of Hugging
// Face tokenizers.
//
// Added tokens are cut out of the text first. The special tokens [PAD], [UNK], [CLS], [SEP] and [MASK] have their roles
// where they are among `special`. Invalid UTF-8 is an Error naming the byte offset. A span goes from the first to the
// last character that a token came from: accents and control characters that normalisation dropped are in it between
// these two and not outside. decode is Hugging Face's WordPiece decoder with clean-up.
//
// encode may run in many threads at once.
class WordPieceTokenizer : public Tokenizer {
 public:
  // Throws Error led by `where` when `definition` is not consistent: no tokens, tokens that are empty,
  // stand twice or are not UTF-8, ids outside the vocabulary, `unknown` not special, a number out of range.
  explicit WordPieceTokenizer(WordPieceDefinition definition, const std::string& where = "wordpiece");
  ~WordPieceTokenizer() override;

  // Reads what to_json wrote.
  static std::unique_ptr<WordPieceTokenizer> from_json(const nlohmann::json& object, const std::string& where);

  std::string kind() const override { return "wordpiece"; }
  int64_t vocabulary_size() const override { return static_cast<int64_t>(definition_.tokens.size()); }
  std::vector<int32_t> encode(std::string_view text) const override;
  std::vector<int32_t> encode_with_special(std::string_view text) const override;
  TokensWithSpans encode_with_spans(std::string_view text) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  std::optional<int32_t> special(SpecialToken role) const override;
  bool continues_word(int32_t id) const override;
  bool lossless() const override { return false; }
  std::optional<Vocabulary> vocabulary() const override;
  nlohmann::json to_json() const override;

  const WordPieceDefinition& definition() const { return definition_; }

 private:
  using Ids = std::unordered_map<std::string_view, int32_t>;
  struct Worker;

  bool is_special(int32_t id) const;
  void add_token(int32_t id);
  std::vector<int32_t> encode_parts(std::string_view text, const AddedSearches& searches) const;
  // Encodes text without plain added tokens. Returns false, with nothing appended, where a normalised one may be in it.
  bool encode_part(std::string_view text, const AddedSearch& normalized, Worker* worker,
                   std::vector<int32_t>* ids) const;
  bool encode_piece(std::string_view rest, size_t bytes, const AddedSearch& normalized, Worker* worker,
                    std::vector<int32_t>* ids) const;
  // Tells whether the text of a normalised token may begin in the first `bytes` bytes of `rest`, which are a piece.
  bool token_may_begin(std::string_view rest, size_t bytes, const AddedSearch& normalized) const;
  // Appends the ids of a text with normalised added tokens, and, unless `spans` is null, where they stand in the text
  // that `offset` bytes stand before.
  void encode_normalised(std::string_view text, size_t offset, const AddedSearch& normalized, std::vector<int32_t>* ids,
                         std::vector<TextSpan>* spans) const;
  // Appends the ids of a word and, unless `spans` is null, where they stand.
  void spell(const BertWord& word, std::vector<int32_t>* ids, std::vector<TextSpan>* spans) const;
  int32_t longest_token(std::string_view rest, const Ids& among, size_t* bytes) const;

  WordPieceDefinition definition_;
  Ids first_;           // tokens that begin a word; views into definition_
  Ids next_;            // those written with ##, without it
  size_t longest_ = 0;  // bytes of the longest of them
  int32_t sign_ids_[128];
  AddedTokens added_;
  mutable WorkerPool<Worker> workers_;
};

}  // namespace headshare
