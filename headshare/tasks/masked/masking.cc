#include "headshare/tasks/masked/masking.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/options/ignored_target.h"
#include "headshare/base/shuffle.h"

namespace headshare {
namespace {

constexpr const char* kMaskingUse = "masked-LM training and scoring (--tokenizer wordpiece trains what it needs)";

// A Word is a range of places: consecutive ordinary tokens, each a word of its own unless `continues` says otherwise.
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

Masker::Masker(const Tokenizer& tokenizer, const MaskingOptions& options, const std::string& path)
    : WindowRows(tokenizer, kMaskingUse, path),
      options_(options),
      mask_(needed(tokenizer, SpecialToken::kMask, kMaskingUse, path)) {
  HS_CHECK(tokenizer.words() == nullptr,
           "a masked language model scores every token of a vocabulary, and the tokenizer '", tokenizer.kind(),
           "' has none; use --task three-way");
  for (int64_t token = 0; token < tokenizer.vocabulary_size(); ++token) {
    if (ordinary(token)) ordinary_tokens_.push_back(token);
    if (options.whole_words) continues_.push_back(tokenizer.continues_word(static_cast<int32_t>(token)) ? 1 : 0);
  }
  HS_CHECK(!ordinary_tokens_.empty(), "the tokenizer has special tokens only; there is nothing to mask");
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
  shuffle(&words, &random);
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

void Masker::mask_row(int64_t row, Philox& random, WindowBatch* batch) const {
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

void Masker::mask_place(int64_t row, int64_t place, WindowBatch* batch) const {
  const auto at = static_cast<size_t>(row * batch->length + place);
  batch->targets[at] = batch->ids[at];
  batch->ids[at] = mask_;
  ++batch->scored;
}

double unigram_entropy(const TokenData& tokens, const Masker& masker, int64_t vocabulary) {
  check_askable(tokens, masker, "training text");
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
