// Tokenizer "character-bpe" merges characters, and writes those that are no tokens as bytes: the BPE of SentencePiece
// as Llama 2, Mistral and Gemma have it in Hugging Face's tokenizer.json. It is read, not trained.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "headshare/text/added/added_tokens.h"
#include "headshare/text/bpe/begin_of_pair.h"
#include "headshare/text/bpe/token_merger.h"
#include "headshare/text/interface/tokenizer.h"
#include "headshare/text/interface/worker_pool.h"

namespace headshare {

// Tells where U+2581, which stands for a space, is put before text that has none.
enum class SpaceBefore {
  kNever,      // Gemma
  kFirst,      // before a text, unless it begins with a space or an added token: Mistral, Llama in its later form
  kEachPart,   // before each stretch between two added tokens, unless it begins with a space
  kEvenSpace,  // before each such stretch, also where it begins with a space: Llama 2
};

// A tokenizer over characters is made of this.
struct CharacterBpeDefinition {
  std::vector<std::string> tokens;  // by id, UTF-8
  std::vector<TokenMerge> merges;   // by rank: the first in the list is applied first
  std::vector<int32_t> special;     // ids that no text gives, ascending
  std::vector<AddedToken> added;    // by id; special tokens without options need not be there
  SpaceBefore space_before = SpaceBefore::kEvenSpace;
  // Added tokens that are normalised are searched for in text with U+2581 in place of spaces; else in text as it is.
  bool replaces_first = true;
  bool strips_space = true;  // decode leaves out one space at the begin
  std::optional<int32_t> unknown = {}, begin_of_text = {}, end_of_text = {}, padding = {};  // of `special`
  BeginOfPair begin_of_pair = BeginOfPair::kAgain;                                          // with begin_of_text
};

// Spaces become U+2581, and the characters of a stretch between two added tokens are merged, not within words: a token
// may hold several. A character that is no token is its bytes, which are tokens of their own; so are bytes that are no
// UTF-8. The ids equal those of Hugging Face tokenizers.
//
// decode writes spaces for U+2581 and bytes as they are: what a model makes of them need not be UTF-8. (Hugging Face
// writes U+FFFD for each byte of a row that is not UTF-8 as a whole.) A span holds the bytes that a token was made
// from: none of them for U+2581 before a text, the whole character for its bytes.
//
// encode may run in many threads at once.
class CharacterBpeTokenizer : public Tokenizer {
 public:
  // Throws Error led by `where` when `definition` is not consistent: tokens that are empty, too long, stand twice or
  // are not UTF-8, bytes without a token ("<0x0A>"), ids outside the vocabulary or out of order, a merge whose result
  // is not the text of its parts, or that makes or takes a special token or a byte's.
  explicit CharacterBpeTokenizer(CharacterBpeDefinition definition, const std::string& where = "character-bpe");
  ~CharacterBpeTokenizer() override;

  // Reads what to_json wrote.
  static std::unique_ptr<CharacterBpeTokenizer> from_json(const nlohmann::json& object, const std::string& where);

  std::string kind() const override { return "character-bpe"; }
  int64_t vocabulary_size() const override { return static_cast<int64_t>(definition_.tokens.size()); }
  std::vector<int32_t> encode(std::string_view text) const override;
  std::vector<int32_t> encode_with_special(std::string_view text) const override;
  TokensWithSpans encode_with_spans(std::string_view text) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  std::string spelling(int32_t id) const override;
  std::optional<int32_t> special(SpecialToken role) const override;
  std::optional<int32_t> begins_texts() const override { return definition_.begin_of_text; }
  bool continues_word(int32_t id) const override;
  bool lossless() const override { return false; }
  std::optional<Vocabulary> vocabulary() const override;
  nlohmann::json to_json() const override;

  const CharacterBpeDefinition& definition() const { return definition_; }

 private:
  struct Worker;
  class SpacedText;
  using VisitToken = std::function<void(int32_t id, TextSpan)>;
  using VisitText = std::function<void(SpacedText*, TextSpan within)>;

  void find_characters(const std::string& where);
  void check_merges(const std::string& where) const;
  // Goes through the added tokens of `text` and what stands between them.
  void for_each_part(std::string_view text, const AddedSearches& searches, const VisitToken& visit_token,
                     const VisitText& visit_text) const;
  std::vector<int32_t> encode_parts(std::string_view text, const AddedSearches& searches) const;
  // Both take text with U+2581 for spaces; a piece is what can be merged by itself.
  void encode_spaced(std::string_view text, std::vector<int32_t>* ids) const;
  void encode_piece(std::string_view piece, Worker* worker, std::vector<int32_t>* ids) const;
  size_t next_piece(std::string_view text) const;
  bool puts_space(std::string_view part, bool first) const;
  void add_spans(std::span<const int32_t> ids, SpacedText* text, size_t begin, std::vector<TextSpan>* spans) const;

  CharacterBpeDefinition definition_;
  std::map<SpecialToken, int32_t> roles_;
  TokenMerger merger_;
  AddedTokens added_;
  std::unordered_map<int32_t, std::string> normal_texts_;  // of added tokens whose normal form is another text
  std::vector<int32_t> of_character_;                      // the token of a code point; -1: none
  std::array<int32_t, 256> of_byte_{};                     // the token of a byte
  std::vector<int16_t> byte_of_;                           // by id: the byte; -1: none
  std::array<bool, 256> joins_{};                          // whether U+2581 stands behind this byte within a token
  mutable WorkerPool<Worker> workers_;
};

}  // namespace headshare
