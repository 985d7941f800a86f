#include "headshare/data/text/token_storage.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "headshare/base/error.h"
#include "headshare/data/byte_stream.h"

namespace headshare {
namespace {

constexpr std::array<char, 8> kMagic = {'h', 's', 't', 'o', 'k', 'e', 'n', 's'};
constexpr uint32_t kVersion = 2;               // 2 brought words
constexpr int64_t kNarrowVocabulary = 65536;   // ids fit 16 bits
constexpr uint64_t kMarkDistance = 64 * 1024;  // bytes of text between marks, at least

using Hex = std::array<char, 32>;

struct Trailer {
  uint32_t version = kVersion;
  uint32_t token_bytes = 0;
  int64_t vocabulary_size = 0;
  int64_t end_of_text = -1;
  int64_t count = 0;
  uint64_t text_bytes = 0;
  int64_t documents = 0;
  uint64_t marks = 0;
  int64_t words = 0;
  uint64_t word_bytes = 0;  // bytes of the section of words
  Hex source{};
  Hex tokenizer{};
  Hex hash{};   // of the tokens, marks and words
  Hex check{};  // of everything above
};
static_assert(std::is_trivially_copyable_v<Trailer> && sizeof(Trailer) == 72 + 4 * 32);

Hex to_hex(const std::string& text) {
  HS_DCHECK(text.size() == sizeof(Hex));
  Hex hex;
  std::memcpy(hex.data(), text.data(), hex.size());
  return hex;
}

Hex trailer_check(const Trailer& trailer) {
  return to_hex(content_hash({reinterpret_cast<const char*>(&trailer), offsetof(Trailer, check)}));
}

uint32_t token_bytes(int64_t vocabulary_size) {
  return vocabulary_size != kOpenVocabulary && vocabulary_size <= kNarrowVocabulary ? 2 : 4;
}

uint64_t padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

Trailer make_trailer(const TokenFileKey& key) {
  Trailer trailer;
  trailer.token_bytes = token_bytes(key.vocabulary_size);
  trailer.vocabulary_size = key.vocabulary_size;
  trailer.end_of_text = key.end_of_text.value_or(-1);
  trailer.source = to_hex(key.source);
  trailer.tokenizer = to_hex(key.tokenizer);
  return trailer;
}

// Returns the trailer of a file, checked against the file's size and the key.
Trailer checked_trailer(const MappedFile& file, const TokenFileKey& key, const std::string& where) {
  Trailer trailer;
  HS_CHECK(file.size() >= kMagic.size() + sizeof trailer, where, ": only ", file.size(), " bytes");
  HS_CHECK(std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0, where, ": not a token file");
  std::memcpy(&trailer, file.data() + file.size() - sizeof trailer, sizeof trailer);
  HS_CHECK(trailer.check == trailer_check(trailer), where, ": its trailer is damaged or cut off");
  const Trailer wanted = make_trailer(key);
  HS_CHECK(trailer.version == kVersion, where, ": written by another version, ", trailer.version);
  HS_CHECK(trailer.source == wanted.source && trailer.tokenizer == wanted.tokenizer &&
               trailer.vocabulary_size == wanted.vocabulary_size && trailer.end_of_text == wanted.end_of_text &&
               trailer.token_bytes == wanted.token_bytes,
           where, ": made from another text or tokenizer");
  // The checksum vouches for the counts, so these sums cannot overflow.
  const uint64_t size = kMagic.size() + padded(static_cast<uint64_t>(trailer.count) * trailer.token_bytes) +
                        trailer.marks * sizeof(TextMark) + trailer.word_bytes + sizeof trailer;
  HS_CHECK(file.size() == size, where, ": ", file.size(), " bytes instead of ", size);
  return trailer;
}

// Hashes a file's tokens and what follows them, `rest_bytes`. The file is read, not mapped: touching every mapped page
// would make the whole file count as memory of this process.
std::string file_hash(const fs::path& path, uint64_t token_bytes, uint64_t rest_bytes) {
  ByteStream stream(path.string(), Decompress::kNo);
  std::vector<char> buffer(size_t{1} << 20);
  ContentHash hash;
  const auto read = [&](uint64_t bytes, bool hashed) {
    while (bytes > 0) {
      const size_t count = stream.read(buffer.data(), std::min<uint64_t>(bytes, buffer.size()));
      HS_CHECK(count > 0, path.string(), ": it was cut short while it was read");
      if (hashed) hash.update(buffer.data(), count);
      bytes -= count;
    }
  };
  read(kMagic.size(), false);
  read(token_bytes, true);
  read(padded(token_bytes) - token_bytes, false);
  read(rest_bytes, true);
  return hash.hex();
}

}  // namespace

TokenFileWriter::TokenFileWriter(const fs::path& path, const TokenFileKey& key, const WordTable* words)
    : key_(key), file_(path) {
  if (words != nullptr) words_.emplace(*words);
  file_.write(kMagic.data(), kMagic.size());
}

void TokenFileWriter::write_hashed(const void* data, size_t bytes) {
  file_.write(data, bytes);
  hash_.update(data, bytes);
}

void TokenFileWriter::write_tokens(std::span<const int32_t> tokens) {
  if (words_) {
    const std::vector<int32_t> own = words_->to_file(tokens);
    write_hashed(own.data(), own.size() * sizeof(int32_t));
    count_ += static_cast<int64_t>(tokens.size());
    return;
  }
  for (const int32_t id : tokens) {
    HS_CHECK(id >= 0 && id < key_.vocabulary_size, "the tokenizer gave id ", id, ", outside its vocabulary of ",
             key_.vocabulary_size);
  }
  const void* data = tokens.data();
  if (token_bytes(key_.vocabulary_size) == 2) {
    narrow_.assign(tokens.begin(), tokens.end());
    data = narrow_.data();
  }
  write_hashed(data, tokens.size() * token_bytes(key_.vocabulary_size));
  count_ += static_cast<int64_t>(tokens.size());
}

void TokenFileWriter::add(std::span<const int32_t> tokens, uint64_t text_bytes) {
  write_tokens(tokens);
  text_bytes_ += text_bytes;
  if (text_bytes_ - marks_.back().byte >= kMarkDistance && count_ > marks_.back().token) {
    marks_.push_back({count_, text_bytes_});
  }
}

void TokenFileWriter::begin_document() {
  if (documents_++ > 0 && key_.end_of_text) write_tokens({&*key_.end_of_text, 1});
  if (key_.begin_of_text) write_tokens({&*key_.begin_of_text, 1});
}

void TokenFileWriter::finish() {
  if (marks_.back().token != count_) marks_.push_back({count_, text_bytes_});
  marks_.back().byte = text_bytes_;  // the last text may have had no tokens
  const uint64_t bytes = static_cast<uint64_t>(count_) * token_bytes(key_.vocabulary_size);
  const std::array<char, 8> padding{};
  file_.write(padding.data(), padded(bytes) - bytes);
  write_hashed(marks_.data(), marks_.size() * sizeof(TextMark));
  Trailer trailer = make_trailer(key_);
  if (words_) {
    const std::string section = words_->bytes();
    write_hashed(section.data(), section.size());
    trailer.words = words_->words();
    trailer.word_bytes = section.size();
  }
  trailer.count = count_;
  trailer.text_bytes = text_bytes_;
  trailer.documents = documents_;
  trailer.marks = marks_.size();
  trailer.hash = to_hex(hash_.hex());
  trailer.check = trailer_check(trailer);
  file_.write(&trailer, sizeof trailer);
  file_.commit();
}

TokenStorage read_token_file(const fs::path& path, const TokenFileKey& key, WordTable* words) {
  MappedFile file(path);
  const Trailer trailer = checked_trailer(file, key, path.string());
  const uint64_t token_bytes = static_cast<uint64_t>(trailer.count) * trailer.token_bytes;
  const std::byte* tokens = file.data() + kMagic.size();
  const std::byte* marks = tokens + padded(token_bytes);
  const uint64_t mark_bytes = trailer.marks * sizeof(TextMark);
  HS_CHECK(to_hex(file_hash(path, token_bytes, mark_bytes + trailer.word_bytes)) == trailer.hash, path.string(),
           ": its tokens are damaged");

  TokenStorage storage;
  if (trailer.token_bytes == 2) {
    storage.narrow = reinterpret_cast<const uint16_t*>(tokens);
  } else {
    storage.wide = reinterpret_cast<const int32_t*>(tokens);
  }
  storage.count = trailer.count;
  storage.text_bytes = trailer.text_bytes;
  storage.documents = trailer.documents;
  storage.end_of_text = key.end_of_text;
  storage.begin_of_text = key.begin_of_text;
  storage.marks = {reinterpret_cast<const TextMark*>(marks), trailer.marks};
  storage.hash = std::string(trailer.hash.data(), trailer.hash.size());
  if (words != nullptr) {
    const auto* section = reinterpret_cast<const char*>(marks + mark_bytes);
    storage.renumbered = add_section({section, trailer.word_bytes}, trailer.words, path.string(), words);
  }
  storage.file.emplace(std::move(file));
  return storage;
}

}  // namespace headshare
