#include "headshare/tasks/masked/corruption.h"

#include <numeric>

#include "headshare/base/error.h"
#include "headshare/base/options/ignored_target.h"
#include "headshare/base/shuffle.h"
#include "headshare/models/heads/three_way_head.h"

namespace headshare {
namespace {

constexpr const char* kUseOfCorruption =
    "three-way training and scoring (--tokenizer wordpiece trains what it needs, hash-md and hash-lsh have it)";

const EnumNames<ShuffleKind>& shuffle_names() {
  static const EnumNames<ShuffleKind> names = {{ShuffleKind::kBatch, "batch"}, {ShuffleKind::kRow, "row"}};
  return names;
}

const EnumNames<RandomTokens>& random_names() {
  static const EnumNames<RandomTokens> names = {
      {RandomTokens::kPaper, "paper"}, {RandomTokens::kBits, "bits"}, {RandomTokens::kWords, "words"}};
  return names;
}

}  // namespace

Fields fields(CorruptionOptions& o) {
  return {
      field("corruption-rate", &o.rate,
            "share of the tokens that are shuffled, and of the others that become random tokens",
            {.min = 0.001, .max = 0.5}),
      field(
          "shuffle", &o.shuffle,
          "batch: one permutation of places for all windows of a batch (HashFormers); row: one of each window's words",
          shuffle_names()),
      field(
          "random-tokens", &o.random,
          "paper: random codes as HashFormers draws them (words, for hash-trigram and hash-characters); bits: uniform "
          "bits; words: words of the text",
          random_names()),
  };
}

void check_corruption(const CorruptionOptions& options, TokenEmbeddingKind embedding) {
  HS_CHECK(
      options.random != RandomTokens::kBits || !reads_letters(embedding),
      "--random-tokens bits draws signatures, and --token-embedding hash-trigram and hash-characters read letters; "
      "use --random-tokens words");
  HS_CHECK(options.random != RandomTokens::kBits || embedding != TokenEmbeddingKind::kTable,
           "--random-tokens bits draws signatures, and a table has rows of tokens; use paper, or words");
}

Corrupter::Corrupter(const Tokenizer& tokenizer, const CorruptionOptions& options, TokenEmbeddingKind embedding,
                     TokenData text, int64_t context, const std::string& path)
    : WindowRows(tokenizer, kUseOfCorruption, path),
      options_(options),
      embedding_(embedding),
      text_(std::move(text)),
      context_(context) {
  check_corruption(options, embedding);
  if (tokenizer.words() != nullptr) return;
  for (int64_t token = 0; token < tokenizer.vocabulary_size(); ++token) {
    if (ordinary(token)) ordinary_tokens_.push_back(token);
  }
  HS_CHECK(!ordinary_tokens_.empty(), "the tokenizer has special tokens only; there is nothing to replace");
}

std::vector<int64_t> Corrupter::permutation(uint64_t key) const {
  std::vector<int64_t> places(static_cast<size_t>(context_));
  std::iota(places.begin(), places.end(), 0);
  Philox random(key);
  shuffle(&places, &random);
  return places;
}

// Returns what each token would become if it were shuffled.
std::vector<int64_t> Corrupter::candidates(std::span<const int64_t> row, const std::vector<int64_t>& permutation,
                                           Philox& random) const {
  std::vector<int64_t> result(row.begin(), row.end());
  if (options_.shuffle == ShuffleKind::kBatch) {
    for (size_t place = 0; place < row.size(); ++place) {
      const auto source = static_cast<size_t>(permutation[place]);
      if (source < row.size() && ordinary(row[source])) result[place] = row[source];
    }
    return result;
  }
  std::vector<size_t> places;
  std::vector<int64_t> tokens;
  for (size_t place = 0; place < row.size(); ++place) {
    if (!ordinary(row[place])) continue;
    places.push_back(place);
    tokens.push_back(row[place]);
  }
  shuffle(&tokens, &random);
  for (size_t i = 0; i < places.size(); ++i) result[places[i]] = tokens[i];
  return result;
}

void Corrupter::corrupt_row(int64_t row, const std::vector<int64_t>& permutation, Philox& random,
                            WindowBatch* batch) const {
  const auto begin = static_cast<size_t>(row * batch->length);
  const auto length = static_cast<size_t>(batch->lengths[static_cast<size_t>(row)]);
  const std::vector<int64_t> shuffled = candidates({batch->ids.data() + begin, length}, permutation, random);
  for (size_t place = 0; place < length; ++place) {
    int64_t& id = batch->ids[begin + place];
    if (!ordinary(id)) continue;
    ThreeWay label = ThreeWay::kOriginal;
    if (random.uniform() < options_.rate) {
      label = ThreeWay::kShuffled;
      id = shuffled[place];
    } else if (random.uniform() < options_.rate) {
      label = ThreeWay::kRandom;
      id = random_token(random, batch);
    }
    batch->targets[begin + place] = static_cast<int64_t>(label);
    ++batch->scored;
  }
}

int64_t Corrupter::random_token(Philox& random, WindowBatch* batch) const {
  if (options_.random == RandomTokens::kWords || reads_letters(embedding_)) return token_of_text(random);
  if (embedding_ == TokenEmbeddingKind::kTable) return ordinary_tokens_[random.below(ordinary_tokens_.size())];
  batch->loose_signatures.push_back(random_signature(random));
  return -static_cast<int64_t>(batch->loose_signatures.size());
}

Signature Corrupter::random_signature(Philox& random) const {
  const bool biased = options_.random == RandomTokens::kPaper &&
                      (embedding_ == TokenEmbeddingKind::kHashAdd || embedding_ == TokenEmbeddingKind::kHashProj);
  if (!biased) return {.high = random.next_word64(), .low = random.next_word64()};
  const auto bound = static_cast<uint32_t>(random.uniform() * 0x1p32);
  const auto half = [&] {
    uint64_t bits = 0;
    for (int i = 0; i < Signature::kBits / 2; ++i) bits = 2 * bits + (random.next_word() < bound ? 1 : 0);
    return bits;
  };
  const uint64_t high = half();
  return {.high = high, .low = half()};
}

int64_t Corrupter::token_of_text(Philox& random) const {
  for (;;) {  // check_askable has found an ordinary token in the text
    const int64_t token = text_[static_cast<int64_t>(random.below(static_cast<uint64_t>(text_.size())))];
    if (ordinary(token)) return token;
  }
}

}  // namespace headshare
