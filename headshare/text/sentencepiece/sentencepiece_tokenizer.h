// Tokenizer "sentencepiece" is a model of the library SentencePiece (Kudo and Richardson, 2018), trained here or read
// from a file.
#pragma once

#include <string_view>
#include <unordered_map>

#include "headshare/text/interface/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace headshare {

// Ids and texts are those of the library. A model is of any of its types (unigram, bpe, char, word), and normalises
// text as it says itself; most put single spaces for white space and make NFKC of the rest, so that they are not
// lossless.
//
// Roles are those of the model's own pieces for padding, unknown text, the begin and the end of a text. Control pieces
// are never produced from text. decode writes them as they are spelled ("</s>"), and what follows one begins a new
// text, without the space of its first piece; unknown pieces are " ⁇ ", as the library has it.
//
// Invalid UTF-8, and a text of more than 64 MiB, is an Error. A span holds the characters that the library says a piece
// was made from, with the space before a word; it is empty for the space that is put before a text that has none. Byte
// pieces share the span of their character.
class SentencePieceTokenizer : public Tokenizer {
 public:
  // `model` is the bytes of a model file. Throws Error led by `where` when they are none (model_check.h).
  SentencePieceTokenizer(std::string model, const std::string& where);

  // Numbers pieces as `vocabulary` does, which has each token once, by id, and an "<unk>" for pieces it lacks. MarianMT
  // has models like that: two that share a vocabulary. A language code at the very begin of a text, ">>fra<<", is
  // looked up as a whole, as in transformers' MarianTokenizer. Roles are those of "<pad>", "<unk>", "<s>" and "</s>".
  SentencePieceTokenizer(std::string model, std::vector<std::string> vocabulary, const std::string& where);
  ~SentencePieceTokenizer() override;

  std::string kind() const override { return "sentencepiece"; }
  int64_t vocabulary_size() const override;
  std::vector<int32_t> encode(std::string_view text) const override;
  TokensWithSpans encode_with_spans(std::string_view text) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  std::string spelling(int32_t id) const override;
  std::optional<int32_t> special(SpecialToken role) const override;
  bool continues_word(int32_t id) const override;
  bool lossless() const override { return false; }
  std::optional<Vocabulary> vocabulary() const override;
  nlohmann::json to_json() const override;
  static std::unique_ptr<SentencePieceTokenizer> from_json(const nlohmann::json& object, const std::string& where);

  // Returns the model's bytes as they were given: what a .model file holds.
  const std::string& model() const { return model_; }

  // Tells whether ids are those of a vocabulary of its own, and not the model's.
  bool has_vocabulary() const { return !vocabulary_.empty(); }

 private:
  void load(const std::string& where);
  void read_vocabulary(const std::string& where);
  const std::string& piece(int32_t id) const;
  TokenKind token_kind(int32_t id) const;
  bool is_control(int32_t id) const;
  bool is_unknown(int32_t id) const;
  TokensWithSpans encode_pieces(std::string_view text) const;
  std::string decode_run(std::span<const int32_t> ids) const;

  std::string model_;
  std::vector<std::string> vocabulary_;                // by id; empty: the model's pieces
  std::unordered_map<std::string_view, int32_t> ids_;  // of vocabulary_
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
};

// Returns a tokenizer of a model file (.model, .spm); with `vocabulary`, a vocab.json that maps pieces to ids from 0
// on, beside which no added tokens may be listed (hf_folder.h). The files are untrusted. Throws Error naming the file.
std::unique_ptr<SentencePieceTokenizer> load_sentencepiece(const std::filesystem::path& model);
std::unique_ptr<SentencePieceTokenizer> load_sentencepiece(const std::filesystem::path& model,
                                                           const std::filesystem::path& vocabulary);

// Tells whether a file of this name is taken for a model: it ends in .model or .spm.
bool is_sentencepiece_name(const std::filesystem::path& path);

// Returns the bytes of the model as a file that other programs with SentencePiece read. Throws Error, naming the file,
// for another kind of tokenizer, and for one with a vocabulary of its own, whose ids the file would not have.
std::string sentencepiece_file(const Tokenizer& tokenizer, const std::filesystem::path& path);

}  // namespace headshare
