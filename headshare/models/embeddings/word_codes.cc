#include "headshare/models/embeddings/word_codes.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/text/hash/hash_tokenizer.h"

namespace headshare {
namespace {

constexpr int64_t kSpecialCodes = HashTokenizer::kSpecials;
static_assert(kTokenTypes == kSpecialCodes + 1);

Signature from_halves(const int64_t* halves) {
  return {.high = static_cast<uint64_t>(halves[0]), .low = static_cast<uint64_t>(halves[1])};
}

}  // namespace

Tensor token_types(const Tensor& ids) {
  constexpr int64_t kWord = kTokenTypes - 1;
  return at::where(ids.lt(0), kWord, ids.clamp_max(kWord));
}

Tensor signature_bits(const Tensor& signatures, int64_t count) {
  constexpr int64_t kHalf = Signature::kBits / 2;
  const Tensor shifts = at::arange(kHalf - 1, -1, -1, signatures.options());
  const Tensor bits = at::bitwise_right_shift(signatures.unsqueeze(2), shifts).bitwise_and(1);  // [n, 2, 64]
  return bits.flatten(1).narrow(1, 0, count).to(at::kFloat);
}

std::shared_ptr<const Tokenizer> word_reader(std::shared_ptr<const Tokenizer> tokenizer) {
  HS_CHECK(tokenizer->words() != nullptr, "hashed embeddings read words, and the tokenizer '", tokenizer->kind(),
           "' has a vocabulary; choose --tokenizer hash-md or hash-lsh, or --token-embedding table");
  return tokenizer;
}

void check_reader(const Tokenizer* tokenizer) {
  HS_CHECK(tokenizer != nullptr, "a model with hashed embeddings reads words: give it its tokenizer (read_words)");
}

void WordCodes::read_words(std::shared_ptr<const Tokenizer> tokenizer) {
  tokenizer_ = word_reader(std::move(tokenizer));
  known_ = Tensor();
}

Tensor WordCodes::codes_of_words(int32_t first, int32_t last) const {
  const WordTable& words = *tokenizer_->words();
  if (code_ == Code::kBucket) return at::tensor(words.buckets(first, last), at::kLong) + kSpecialCodes;
  const std::vector<Signature> signatures = words.signatures(first, last);
  const Tensor codes = at::empty({static_cast<int64_t>(signatures.size()), 2}, at::kLong);
  auto* out = codes.mutable_data_ptr<int64_t>();
  for (const Signature& one : signatures) {
    *out++ = static_cast<int64_t>(one.high);
    *out++ = static_cast<int64_t>(one.low);
  }
  return codes;
}

void WordCodes::catch_up(c10::Device device) const {
  check_reader(tokenizer_.get());
  if (!known_.defined()) {
    known_ = code_ == Code::kBucket ? at::arange(kSpecialCodes, at::kLong) : at::zeros({kSpecialCodes, 2}, at::kLong);
  }
  known_ = known_.to(device);
  const int64_t words = tokenizer_->words()->size();
  const int64_t have = known_.size(0) - kSpecialCodes;
  if (words > have) {
    const Tensor more = codes_of_words(static_cast<int32_t>(have), static_cast<int32_t>(words));
    known_ = at::cat({known_, more.to(device)});
  }
}

Tensor WordCodes::codes_of(const Tensor& loose) const {
  if (code_ == Code::kSignature) return loose;
  const Tensor halves = loose.cpu().contiguous();
  std::vector<int64_t> codes;
  for (int64_t k = 0; k < halves.size(0); ++k) {
    const Signature one = from_halves(halves.const_data_ptr<int64_t>() + 2 * k);
    codes.push_back(kSpecialCodes + static_cast<int64_t>(remainder(one, kHashBuckets)));
  }
  return at::tensor(codes, loose.options());
}

Tensor WordCodes::of(const TokenIds& tokens) const {
  const Tensor flat = tokens.ids.flatten();
  catch_up(flat.device());
  if (!tokens.loose_signatures.defined()) return known_.index_select(0, flat);
  const Tensor found = known_.index_select(0, flat.clamp_min(0));
  const Tensor places = flat.lt(0).nonzero().squeeze(1);
  const Tensor rows = -1 - flat.index_select(0, places);
  return found.index_copy(0, places, codes_of(tokens.loose_signatures.to(flat.device())).index_select(0, rows));
}

}  // namespace headshare
