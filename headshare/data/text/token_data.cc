#include "headshare/data/text/token_data.h"

#include <algorithm>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/data/text/token_storage.h"

namespace headshare {
namespace {

// Counts the bytes of text that tokens [begin, end) decode to. Tokens around documents stand for none.
uint64_t decoded_bytes(const TokenStorage& storage, int64_t begin, int64_t end, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(end - begin));
  for (int64_t i = begin; i < end; ++i) {
    const int32_t id = storage.at(i);
    if (id != storage.end_of_text && id != storage.begin_of_text) ids.push_back(id);
  }
  return tokenizer.decode(ids).size();
}

}  // namespace

TokenData::TokenData(std::shared_ptr<const TokenStorage> storage)
    : storage_(std::move(storage)), end_(storage_->count), byte_end_(storage_->text_bytes) {}

TokenData TokenData::from_memory(std::vector<int32_t> tokens, uint64_t text_bytes) {
  auto storage = std::make_shared<TokenStorage>();
  storage->memory = std::move(tokens);
  storage->wide = storage->memory.data();
  storage->count = static_cast<int64_t>(storage->memory.size());
  storage->text_bytes = text_bytes;
  storage->documents = 1;
  storage->memory_marks = {{0, 0}, {storage->count, text_bytes}};
  storage->marks = storage->memory_marks;
  ContentHash hash;
  hash.update(storage->memory.data(), storage->memory.size() * sizeof(int32_t));
  storage->hash = hash.hex();
  return TokenData(std::move(storage));
}

int32_t TokenData::operator[](int64_t index) const {
  HS_DCHECK(index >= 0 && index < size());
  return storage_->at(begin_ + index);
}

template <class Id>
void TokenData::copy_as(int64_t begin, int64_t count, Id* out) const {
  HS_CHECK(begin >= 0 && count >= 0 && begin <= size() && count <= size() - begin, "tokens ", begin, " to ",
           begin + count, " were asked for, but there are ", size());
  if (count == 0) return;
  const int64_t from = begin_ + begin;
  if (storage_->narrow != nullptr) {
    std::copy_n(storage_->narrow + from, count, out);
  } else if (!storage_->renumbered.empty()) {
    std::transform(storage_->wide + from, storage_->wide + from + count, out,
                   [this](int32_t id) { return storage_->here(id); });
  } else {
    std::copy_n(storage_->wide + from, count, out);
  }
}

void TokenData::copy(int64_t begin, int64_t count, int32_t* out) const { copy_as(begin, count, out); }
void TokenData::copy(int64_t begin, int64_t count, int64_t* out) const { copy_as(begin, count, out); }

int64_t TokenData::documents() const { return storage_ != nullptr ? storage_->documents : 0; }

uint64_t TokenData::bytes_before(int64_t token, const Tokenizer& tokenizer) const {
  const auto after = std::upper_bound(storage_->marks.begin(), storage_->marks.end(), token,
                                      [](int64_t value, const TextMark& mark) { return value < mark.token; });
  const TextMark low = *std::prev(after);
  if (low.token == token) return low.byte;
  const TextMark high = *after;
  const uint64_t span = high.byte - low.byte;
  const uint64_t before = decoded_bytes(*storage_, low.token, token, tokenizer);
  if (before + decoded_bytes(*storage_, token, high.token, tokenizer) == span) return low.byte + before;
  const double part = static_cast<double>(token - low.token) / static_cast<double>(high.token - low.token);
  return low.byte + static_cast<uint64_t>(part * static_cast<double>(span));
}

TokenData TokenData::view(int64_t begin, int64_t end, const Tokenizer& tokenizer) const {
  HS_CHECK(begin >= 0 && begin <= end && end <= size(), "tokens ", begin, " to ", end,
           " were asked for, but there are ", size());
  TokenData part = *this;
  part.begin_ = begin_ + begin;
  part.end_ = begin_ + end;
  // A border that this range shares with the view has known bytes, as have marks and earlier views.
  if (part.begin_ != begin_) part.byte_begin_ = part.begin_ == end_ ? byte_end_ : bytes_before(part.begin_, tokenizer);
  if (part.end_ != end_) part.byte_end_ = part.end_ == begin_ ? byte_begin_ : bytes_before(part.end_, tokenizer);
  return part;
}

std::string TokenData::fingerprint() const {
  return empty() ? "" : join_text(storage_->hash, "[", begin_, ",", end_, ")");
}

double unknown_share(const TokenData& tokens, const Tokenizer& tokenizer) {
  const std::optional<int32_t> unknown = tokenizer.special(SpecialToken::kUnknown);
  if (!unknown || tokens.empty()) return 0;
  constexpr int64_t kChunk = 1 << 16;
  std::vector<int32_t> chunk(static_cast<size_t>(std::min(kChunk, tokens.size())));
  int64_t found = 0;
  for (int64_t begin = 0; begin < tokens.size(); begin += kChunk) {
    const int64_t count = std::min(kChunk, tokens.size() - begin);
    tokens.copy(begin, count, chunk.data());
    found += std::count(chunk.begin(), chunk.begin() + count, *unknown);
  }
  return static_cast<double>(found) / static_cast<double>(tokens.size());
}

}  // namespace headshare
