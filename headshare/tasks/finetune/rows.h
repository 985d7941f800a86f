// A fine-tuned encoder reads texts as rows [CLS] first [SEP], or [CLS] first [SEP] second [SEP], with as many [SEP]
// between the two as the tokenizer wants.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headshare/models/encoder.h"
#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// A TokenRange holds the tokens [begin, end) of a row; empty where there are none.
struct TokenRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool operator==(const TokenRange&) const = default;
};

struct EncodedRow {
  std::vector<int64_t> ids;
  int64_t second = 0;                    // where segment 1 begins; the number of ids where there is no second text
  std::array<TokenRange, 2> words = {};  // the tokens of two words, where a task asks about words
  bool cut = false;                      // its texts were too long
  std::vector<int32_t> text_words = {};  // the words of its texts, numbered as a RowEncoder meets them; see keep_words
};

// A MarkedText is a text and the bytes of it that a task asks about.
struct MarkedText {
  std::string_view text;
  TextSpan place = {};
};

class RowEncoder {
 public:
  // Makes rows of at most `length` tokens. Throws Error when the tokenizer has no [CLS], [SEP] or [PAD], or nothing
  // fits.
  RowEncoder(const Tokenizer& tokenizer, int64_t length);

  // Make a row. A text that is too long is cut at its end, of a pair the longer one first.
  EncodedRow single(std::string_view text);
  EncodedRow pair(std::string_view first, std::string_view second);

  // Make the same row with the tokens that the places touch. A text that is too long is cut so that its last place
  // stays: at its end, or where that would cut the place, at its beginning.
  EncodedRow single_with_words(std::string_view text, const std::array<TextSpan, 2>& places);
  EncodedRow pair_with_words(const MarkedText& first, const MarkedText& second);

  // Makes [CLS] first [SEP] second [SEP] of tokens that fit already.
  EncodedRow joined(std::span<const int32_t> first, std::span<const int32_t> second) const;

  // Sets whether rows from now on keep the numbers of their texts' words, those of WordsAndSymbols; at first they do
  // not.
  void keep_words(bool keep) { keeps_words_ = keep; }
  bool keeps_words() const { return keeps_words_; }

  const Tokenizer& tokenizer() const { return tokenizer_; }
  int64_t length() const { return length_; }
  int64_t padding() const { return padding_; }
  int64_t rows() const { return rows_; }            // made so far
  int64_t shortened() const { return shortened_; }  // rows whose texts were cut

 private:
  std::vector<int32_t> kept(const TokensWithSpans& tokens, size_t room, const std::array<TextSpan, 2>& places,
                            std::array<TokenRange, 2>* words);
  EncodedRow finished(EncodedRow row, bool cut, std::initializer_list<std::string_view> texts);

  const Tokenizer& tokenizer_;
  int64_t length_;
  int64_t classify_, separate_, padding_;
  int64_t between_;  // separators between the texts of a pair
  int64_t rows_ = 0;
  int64_t shortened_ = 0;
  bool keeps_words_ = false;
  std::unordered_map<std::string, int32_t> words_;
};

using RowPointers = std::vector<const EncodedRow*>;

// Pads rows to the longest of them, on `device`. Segments are given where the encoder has two of them.
EncoderInput to_input(const RowPointers& rows, int64_t padding, const EncoderOptions& encoder, c10::Device device);

// Returns float [B, 2, T]: for each row two sets of weights that form the means over its words; zeros where there are
// none.
Tensor word_weights(const RowPointers& rows, int64_t length, c10::Device device);

// RowsRead is what a model makes of the rows of a batch.
struct RowsRead {
  Tensor scores;
  Tensor states = {};  // the last hidden states [tokens, E], without padding; undefined where they are not wanted
};

// Returns the states of `input`'s tokens among hidden states [B, T, E].
Tensor states_of_tokens(const Tensor& hidden, const EncoderInput& input);

}  // namespace headshare
