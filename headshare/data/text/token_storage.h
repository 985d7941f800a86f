// TokenData refers to a storage, which a cache file holds. This header is for headshare/data only.
//
// The file, little-endian: 8 bytes of magic; the tokens, `token_bytes` each; padding to a multiple
// of 8; the marks; the words of a tokenizer without a vocabulary (word_section.h); the trailer. The trailer stands last
// because it holds counts and hashes that are known last, so that the file can be written in one pass.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/data/hash.h"
#include "headshare/data/text/word_section.h"

namespace headshare {

// Before token number `token` stand `byte` bytes of text.
struct TextMark {
  int64_t token;
  uint64_t byte;
};

struct TokenStorage {
  std::optional<MappedFile> file;
  std::vector<int32_t> memory;
  std::vector<TextMark> memory_marks;

  // Exactly one of these points at the tokens.
  const uint16_t* narrow = nullptr;
  const int32_t* wide = nullptr;
  int64_t count = 0;
  uint64_t text_bytes = 0;
  int64_t documents = 0;
  std::optional<int32_t> end_of_text;    // the token between documents
  std::optional<int32_t> begin_of_text;  // the token before each document
  std::span<const TextMark> marks;       // ascending; the first is {0, 0}, the last {count, text_bytes}
  std::string hash;                      // of the tokens as stored
  std::vector<int32_t> renumbered;       // by id in the file: the id of its word in this process; empty: all the same

  int32_t at(int64_t index) const { return here(narrow != nullptr ? narrow[index] : wide[index]); }

  // Returns the id in this process of an id in the file.
  int32_t here(int32_t id) const { return renumbered.empty() ? id : renumbered.at(static_cast<size_t>(id)); }
};

// A tokenizer without a vocabulary has this size.
inline constexpr int64_t kOpenVocabulary = -1;

// A token file must agree with this key to be used.
struct TokenFileKey {
  std::string source;       // content hash of the inputs and of how they are read
  std::string tokenizer;    // content hash of the tokenizer as JSON
  int64_t vocabulary_size;  // or kOpenVocabulary
  std::optional<int32_t> end_of_text;
  std::optional<int32_t> begin_of_text = {};
};

// Writes a token file from start to end; without finish() nothing is left.
class TokenFileWriter {
 public:
  // `words` are those of a tokenizer without a vocabulary, else null; they must outlive the writer.
  TokenFileWriter(const fs::path& path, const TokenFileKey& key, const WordTable* words = nullptr);

  // Adds tokens that stand for `text_bytes` bytes. Throws Error for an id outside the vocabulary.
  void add(std::span<const int32_t> tokens, uint64_t text_bytes);
  // Writes end_of_text before every document but the first, then begin_of_text, where the key has them.
  void begin_document();
  void finish();

  int64_t count() const { return count_; }

 private:
  void write_tokens(std::span<const int32_t> tokens);
  void write_hashed(const void* data, size_t bytes);

  TokenFileKey key_;
  AtomicFile file_;
  ContentHash hash_;
  std::vector<TextMark> marks_ = {{0, 0}};
  std::vector<uint16_t> narrow_;
  std::optional<WordSection> words_;
  int64_t count_ = 0;
  uint64_t text_bytes_ = 0;
  int64_t documents_ = 0;
};

// Maps a token file and checks all of it: magic, version, sizes, checksums of trailer and tokens,
// and the key. Throws Error with the reason. Its words are added to `words`, where the key has an open vocabulary.
TokenStorage read_token_file(const fs::path& path, const TokenFileKey& key, WordTable* words = nullptr);

}  // namespace headshare
