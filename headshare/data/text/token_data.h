// This class holds a text as token ids: a range of a memory-mapped cache file, or of memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headshare/text/interface/tokenizer.h"

namespace headshare {

struct TokenStorage;

// This is a cheap value: copies share the tokens, which live as long as any of them.
class TokenData {
 public:
  TokenData() = default;  // no tokens
  explicit TokenData(std::shared_ptr<const TokenStorage> storage);

  // Holds tokens that are in memory already; they stand for `text_bytes` bytes of text, spread evenly as far as view()
  // is concerned.
  static TokenData from_memory(std::vector<int32_t> tokens, uint64_t text_bytes);

  int64_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }

  int32_t operator[](int64_t index) const;  // 0 <= index < size(), unchecked

  // Copies tokens [begin, begin + count). Throws Error when they are not all there.
  void copy(int64_t begin, int64_t count, int32_t* out) const;
  void copy(int64_t begin, int64_t count, int64_t* out) const;

  // Counts the bytes of the text that these tokens stand for; bits per byte are counted over them. Tokens
  // around documents stand for no bytes.
  uint64_t text_bytes() const { return byte_end_ - byte_begin_; }

  // Counts the documents of the whole text, also for a view.
  int64_t documents() const;

  // Returns tokens [begin, end) of these. Their bytes are exact wherever decoding gives the text back: the tokens
  // between the border and the nearest recorded position (about 1 MiB of text) are decoded. Where it does not (unknown
  // words), they are shared out evenly between recorded positions.
  TokenData view(int64_t begin, int64_t end, const Tokenizer& tokenizer) const;

  // Identifies the tokens: a hash of the whole with the range, "9f..3a[0,1003854)"; "" when empty.
  std::string fingerprint() const;

 private:
  template <class Id>
  void copy_as(int64_t begin, int64_t count, Id* out) const;
  uint64_t bytes_before(int64_t token, const Tokenizer& tokenizer) const;  // `token` counts in the storage

  std::shared_ptr<const TokenStorage> storage_;
  int64_t begin_ = 0;  // in the storage
  int64_t end_ = 0;
  uint64_t byte_begin_ = 0;
  uint64_t byte_end_ = 0;
};

// Returns the share of the tokens that stand for text the tokenizer does not know (<unk>, [UNK]): easy to predict, so
// that perplexities are low where it is large. The share is 0 for a tokenizer that knows every text, and when there are
// no tokens.
double unknown_share(const TokenData& tokens, const Tokenizer& tokenizer);

}  // namespace headshare
