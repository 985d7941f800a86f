#include "headshare/tasks/masked/masking.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/data/text/batcher.h"

namespace headshare {
namespace {

constexpr SpecialToken kRoles[] = {SpecialToken::kPadding,  SpecialToken::kUnknown, SpecialToken::kClassify,
                                   SpecialToken::kSeparate, SpecialToken::kMask,    SpecialToken::kEndOfText};

int64_t needed(const Tokenizer& tokenizer, SpecialToken role, const std::string& path) {
  const std::string what = "masked-LM training and scoring (--tokenizer wordpiece trains what it needs)";
  return require_special(tokenizer, role, path.empty() ? what : join_text(path, ": ", what));
}

// Words as ranges of places: consecutive ordinary tokens, each a word of its own unless `continues` says otherwise.
struct Word {
  int64_t begin = 0;
  int64_t count = 0;
};

}  // namespace

Fields fields(MaskingOptions& o) {
  return {
      field("mask-rate", &o.rate, "share of the tokens that are masked and asked for",
            {.min = 0.001, .max = 0.9, .aliases = {"mlm-probability", "masked-lm-prob"}}),
      field("whole-words", &o.whole_words, "mask all tokens of a word together",
            {.aliases = {"whole-word-masking", "do-whole-word-mask"}}),
  };
}

bool MaskedBatch::padded() const {
  return std::any_of(lengths.begin(), lengths.end(), [this](int64_t one) { return one < length; });
}

Masker::Masker(const Tokenizer& tokenizer, const MaskingOptions& options, const std::string& path)
    : options_(options),
      classify_(needed(tokenizer, SpecialToken::kClassify, path)),
      separate_(needed(tokenizer, SpecialToken::kSeparate, path)),
      mask_(needed(tokenizer, SpecialToken::kMask, path)),
      padding_(needed(tokenizer, SpecialToken::kPadding, path)),
      ordinary_(static_cast<size_t>(tokenizer.vocabulary_size()), 1) {
  for (const SpecialToken role : kRoles) {
    if (const auto id = tokenizer.special(role)) ordinary_[static_cast<size_t>(*id)] = 0;
  }
  for (int64_t token = 0; token < tokenizer.vocabulary_size(); ++token) {
    if (ordinary(token)) ordinary_tokens_.push_back(token);
    if (options.whole_words) continues_.push_back(tokenizer.continues_word(static_cast<int32_t>(token)) ? 1 : 0);
  }
  HS_CHECK(!ordinary_tokens_.empty(), "the tokenizer has special tokens only; there is nothing to mask");
}

int64_t Masker::room(int64_t context) {
  HS_CHECK(context > 2, "--context ", context, " leaves no room for text between [CLS] and [SEP]; set at least 3");
  return context - 2;
}

void Masker::add_row(std::span<const int64_t> tokens, MaskedBatch* batch) const {
  batch->ids.push_back(classify_);
  batch->ids.insert(batch->ids.end(), tokens.begin(), tokens.end());
  batch->ids.push_back(separate_);
  batch->lengths.push_back(static_cast<int64_t>(tokens.size()) + 2);
  ++batch->rows;
}

void Masker::pad(MaskedBatch* batch) const {
  batch->length = *std::max_element(batch->lengths.begin(), batch->lengths.end());
  std::vector<int64_t> padded(static_cast<size_t>(batch->rows * batch->length), padding_);
  auto from = batch->ids.begin();
  for (int64_t row = 0; row < batch->rows; ++row) {
    const int64_t length = batch->lengths[static_cast<size_t>(row)];
    std::copy_n(from, length, padded.begin() + row * batch->length);
    from += length;
  }
  batch->ids = std::move(padded);
  batch->targets.assign(batch->ids.size(), kIgnoredTarget);
}

std::vector<int64_t> Masker::chosen(std::span<const int64_t> row, Philox& random) const {
  std::vector<Word> words;
  int64_t candidates = 0;
  for (int64_t place = 0; place < static_cast<int64_t>(row.size()); ++place) {
    const auto token = row[static_cast<size_t>(place)];
    if (!ordinary(token)) continue;
    ++candidates;
    const bool joins = options_.whole_words && continues_[static_cast<size_t>(token)] != 0 && !words.empty() &&
                       words.back().begin + words.back().count == place;
    if (joins) {
      ++words.back().count;
    } else {
      words.push_back({place, 1});
    }
  }
  for (size_t i = words.size(); i > 1; --i) std::swap(words[i - 1], words[random.below(i)]);
  const auto wanted = std::max<int64_t>(1, std::llround(options_.rate * static_cast<double>(candidates)));
  std::vector<int64_t> places;
  const auto take = [&](int64_t begin, int64_t count) {
    for (int64_t i = 0; i < count; ++i) places.push_back(begin + i);
  };
  for (const Word& word : words) {
    if (static_cast<int64_t>(places.size()) + word.count <= wanted) take(word.begin, word.count);
  }
  if (places.empty() && !words.empty()) take(words.front().begin, wanted);
  std::sort(places.begin(), places.end());
  return places;
}

void Masker::mask_row(int64_t row, Philox& random, MaskedBatch* batch) const {
  const auto begin = static_cast<size_t>(row * batch->length);
  const std::span<int64_t> ids(batch->ids.data() + begin,
                               static_cast<size_t>(batch->lengths[static_cast<size_t>(row)]));
  for (const int64_t place : chosen(ids, random)) {
    int64_t& id = ids[static_cast<size_t>(place)];
    batch->targets[begin + static_cast<size_t>(place)] = id;
    ++batch->scored;
    const double fate = random.uniform();
    if (fate < 0.8) {
      id = mask_;
    } else if (fate < 0.9) {
      id = ordinary_tokens_[random.below(ordinary_tokens_.size())];
    }
  }
}

void Masker::mask_place(int64_t row, int64_t place, MaskedBatch* batch) const {
  const auto at = static_cast<size_t>(row * batch->length + place);
  batch->targets[at] = batch->ids[at];
  batch->ids[at] = mask_;
  ++batch->scored;
}

void check_maskable(const TokenData& tokens, const Masker& masker, const std::string& what) {
  for (int64_t i = 0; i < tokens.size(); ++i) {
    if (masker.ordinary(tokens[i])) return;
  }
  throw Error(join_text("the ", what, " holds no token that could be masked: all its words are unknown to the ",
                        "tokenizer; use a tokenizer of such text, with blanks between words (a word of more than 100 ",
                        "characters is unknown)"));
}

MaskedWindows::MaskedWindows(TokenData tokens, const Masker& masker, int64_t context, std::optional<int64_t> most)
    : tokens_(std::move(tokens)),
      masker_(masker),
      size_(std::min(tokens_.size(), most.value_or(tokens_.size()))),
      room_(Masker::room(context)),
      windows_((size_ + room_ - 1) / room_) {
  HS_CHECK(windows_ > 0, "there are no tokens to mask");
}

MaskedBatch MaskedWindows::rows(int64_t first, int64_t count) const {
  MaskedBatch batch;
  std::vector<int64_t> tokens;
  for (int64_t window = first; window < first + count; ++window) {
    const int64_t begin = window * room_;
    tokens.resize(static_cast<size_t>(std::min(room_, size_ - begin)));
    tokens_.copy(begin, static_cast<int64_t>(tokens.size()), tokens.data());
    masker_.add_row(tokens, &batch);
  }
  return batch;
}

double unigram_entropy(const TokenData& tokens, const Masker& masker, int64_t vocabulary) {
  check_maskable(tokens, masker, "training text");
  std::vector<int64_t> counts(static_cast<size_t>(vocabulary), 0);
  constexpr int64_t kBlock = 1 << 16;
  std::vector<int32_t> block;
  for (int64_t begin = 0; begin < tokens.size(); begin += kBlock) {
    block.resize(static_cast<size_t>(std::min(kBlock, tokens.size() - begin)));
    tokens.copy(begin, static_cast<int64_t>(block.size()), block.data());
    for (const int32_t token : block) ++counts[static_cast<size_t>(token)];
  }
  double total = 0;
  double sum = 0;  // of n ln n
  for (int64_t token = 0; token < vocabulary; ++token) {
    const auto count = static_cast<double>(counts[static_cast<size_t>(token)]);
    if (count == 0 || !masker.ordinary(token)) continue;
    total += count;
    sum += count * std::log(count);
  }
  return std::log(total) - sum / total;
}

}  // namespace headshare
