#include "headshare/tasks/finetune/rows.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/text/hash/word_or_symbol.h"

namespace headshare {
namespace {

constexpr const char* kWhere = "fine-tuning";

// Returns how many tokens of two texts stay when `room` fit: the longer gives up one after the other.
std::pair<size_t, size_t> shares(size_t first, size_t second, size_t room) {
  if (first + second <= room) return {first, second};
  const size_t half = room / 2;
  if (second <= half) return {room - second, second};
  if (first <= room - half) return {first, room - first};
  return {room - half, half};
}

TokenRange tokens_at(const TokensWithSpans& tokens, const TextSpan& place) {
  const auto& spans = tokens.spans;
  const auto begin =
      std::partition_point(spans.begin(), spans.end(), [&](const TextSpan& s) { return s.end <= place.begin; });
  const auto end = std::partition_point(begin, spans.end(), [&](const TextSpan& s) { return s.begin < place.end; });
  return {begin - spans.begin(), end - spans.begin()};
}

}  // namespace

RowEncoder::RowEncoder(const Tokenizer& tokenizer, int64_t length)
    : tokenizer_(tokenizer),
      length_(length),
      classify_(require_special(tokenizer, SpecialToken::kClassify, kWhere)),
      separate_(require_special(tokenizer, SpecialToken::kSeparate, kWhere)),
      padding_(require_special(tokenizer, SpecialToken::kPadding, kWhere)),
      between_(tokenizer.pair_separators()) {
  const int64_t least = 4 + between_;  // the special tokens and one of each text
  HS_CHECK(length >= least, "rows of ", length, " tokens hold no pair of texts; at least ", least, " are needed");
}

EncodedRow RowEncoder::joined(std::span<const int32_t> first, std::span<const int32_t> second) const {
  EncodedRow row{.ids = {classify_}};
  row.ids.insert(row.ids.end(), first.begin(), first.end());
  row.ids.push_back(separate_);
  row.second = static_cast<int64_t>(row.ids.size());
  if (second.empty()) return row;
  row.ids.insert(row.ids.end(), static_cast<size_t>(between_ - 1), separate_);
  row.second = static_cast<int64_t>(row.ids.size());
  row.ids.insert(row.ids.end(), second.begin(), second.end());
  row.ids.push_back(separate_);
  return row;
}

EncodedRow RowEncoder::finished(EncodedRow row, bool cut, std::initializer_list<std::string_view> texts) {
  ++rows_;
  row.cut = cut;
  if (cut) ++shortened_;
  for (const std::string_view text : texts) {
    if (!keeps_words_) break;
    for (WordsAndSymbols words(text, kWhere); words.next();) {
      const auto number = static_cast<int32_t>(words_.size());
      row.text_words.push_back(words_.emplace(words.word(), number).first->second);
    }
  }
  return row;
}

EncodedRow RowEncoder::single(std::string_view text) {
  std::vector<int32_t> ids = tokenizer_.encode(text);
  const auto room = static_cast<size_t>(length_ - 2);
  const bool cut = ids.size() > room;
  if (cut) ids.resize(room);
  return finished(joined(ids, {}), cut, {text});
}

EncodedRow RowEncoder::pair(std::string_view first, std::string_view second) {
  std::vector<int32_t> a = tokenizer_.encode(first);
  std::vector<int32_t> b = tokenizer_.encode(second);
  const auto [of_a, of_b] = shares(a.size(), b.size(), static_cast<size_t>(length_ - 2 - between_));
  const bool cut = of_a < a.size() || of_b < b.size();
  a.resize(of_a);
  b.resize(of_b);
  return finished(joined(a, b), cut, {first, second});
}

// Places are given within the tokens kept.
std::vector<int32_t> RowEncoder::kept(const TokensWithSpans& tokens, size_t room, const std::array<TextSpan, 2>& places,
                                      std::array<TokenRange, 2>* words) {
  const auto most = static_cast<int64_t>(std::min(room, tokens.ids.size()));
  int64_t last = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    (*words)[i] = tokens_at(tokens, places[i]);
    last = std::max(last, (*words)[i].end);
  }
  const int64_t start = std::max<int64_t>(0, last - most);
  for (TokenRange& range : *words) {
    range = {std::clamp<int64_t>(range.begin - start, 0, most), std::clamp<int64_t>(range.end - start, 0, most)};
  }
  return {tokens.ids.begin() + start, tokens.ids.begin() + start + most};
}

EncodedRow RowEncoder::single_with_words(std::string_view text, const std::array<TextSpan, 2>& places) {
  const TokensWithSpans tokens = tokenizer_.encode_with_spans(text);
  std::array<TokenRange, 2> words;
  const std::vector<int32_t> ids = kept(tokens, static_cast<size_t>(length_ - 2), places, &words);
  EncodedRow row = joined(ids, {});
  for (size_t i = 0; i < words.size(); ++i) row.words[i] = {words[i].begin + 1, words[i].end + 1};
  return finished(std::move(row), ids.size() < tokens.ids.size(), {text});
}

EncodedRow RowEncoder::pair_with_words(const MarkedText& first, const MarkedText& second) {
  const TokensWithSpans a = tokenizer_.encode_with_spans(first.text);
  const TokensWithSpans b = tokenizer_.encode_with_spans(second.text);
  const auto [of_a, of_b] = shares(a.ids.size(), b.ids.size(), static_cast<size_t>(length_ - 2 - between_));
  std::array<TokenRange, 2> in_a;
  std::array<TokenRange, 2> in_b;
  const std::vector<int32_t> kept_a = kept(a, of_a, {first.place, {}}, &in_a);
  const std::vector<int32_t> kept_b = kept(b, of_b, {second.place, {}}, &in_b);
  EncodedRow row = joined(kept_a, kept_b);
  row.words = {TokenRange{in_a[0].begin + 1, in_a[0].end + 1},
               TokenRange{in_b[0].begin + row.second, in_b[0].end + row.second}};
  return finished(std::move(row), of_a < a.ids.size() || of_b < b.ids.size(), {first.text, second.text});
}

EncoderInput to_input(const RowPointers& rows, int64_t padding, const EncoderOptions& encoder, c10::Device device) {
  const auto B = static_cast<int64_t>(rows.size());
  int64_t T = 0;
  bool padded = false;
  for (const EncodedRow* row : rows) {
    padded = padded || (row != rows.front() && row->ids.size() != rows.front()->ids.size());
    T = std::max(T, static_cast<int64_t>(row->ids.size()));
  }
  EncoderInput input{.ids = at::full({B, T}, padding, at::kLong)};
  const Tensor visible = at::zeros({B, T}, at::kBool);
  const Tensor segments = at::zeros({B, T}, at::kLong);
  for (int64_t i = 0; i < B; ++i) {
    const EncodedRow& row = *rows[static_cast<size_t>(i)];
    const auto length = static_cast<int64_t>(row.ids.size());
    std::copy(row.ids.begin(), row.ids.end(), input.ids.mutable_data_ptr<int64_t>() + i * T);
    std::fill_n(visible.mutable_data_ptr<bool>() + i * T, length, true);
    std::fill(segments.mutable_data_ptr<int64_t>() + i * T + row.second,
              segments.mutable_data_ptr<int64_t>() + i * T + length, 1);
  }
  input.ids = input.ids.to(device);
  if (padded) input.visible = visible.to(device);
  if (encoder.segments > 1) input.segments = segments.to(device);
  return input;
}

Tensor word_weights(const RowPointers& rows, int64_t length, c10::Device device) {
  const Tensor weights = at::zeros({static_cast<int64_t>(rows.size()), 2, length});
  float* row = weights.mutable_data_ptr<float>();
  for (const EncodedRow* one : rows) {
    for (const TokenRange& range : one->words) {
      const auto tokens = static_cast<float>(std::max<int64_t>(1, range.end - range.begin));
      std::fill(row + range.begin, row + range.end, 1 / tokens);
      row += length;
    }
  }
  return weights.to(device);
}

Tensor states_of_tokens(const Tensor& hidden, const EncoderInput& input) {
  const Tensor all = hidden.flatten(0, 1);
  return input.visible.defined() ? all.index_select(0, input.visible.flatten().nonzero().squeeze(1)) : all;
}

}  // namespace headshare
