#include "headshare/data/text/token_cache.h"

#include <cstdlib>
#include <mutex>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/data/byte_stream.h"
#include "headshare/data/hash.h"
#include "headshare/data/text/token_storage.h"
#include "headshare/text/text_borders.h"

namespace headshare {
namespace {

// A change of what the same inputs and tokenizer give changes this, and so every cache file's name.
constexpr std::string_view kFormat = "headshare tokens 3";

void report(const Progress& progress, std::string_view stage, uint64_t done, std::optional<uint64_t> total) {
  if (progress) progress({.stage = stage, .done = done, .total = total});
}

// Hashes the inputs' stored bytes and everything that decides how they become text. Names do not matter, except for the
// endings that tell the format.
std::string hash_source(const TextSource& source, const TextSourceOptions& options, const Progress& progress) {
  ContentHash hash;
  hash.update(join_text(kFormat, ";", options.jsonl_field.size(), ":", options.jsonl_field, ";",
                        static_cast<int>(options.invalid_utf8), ";", options.allow_binary, ";", options.keep_mark));
  std::vector<char> buffer(size_t{1} << 20);
  uint64_t done = 0;
  for (const std::string& file : source.files()) {
    ByteStream stream(file, Decompress::kNo);
    while (const size_t count = stream.read(buffer.data(), buffer.size())) {
      hash.update(buffer.data(), count);
      report(progress, "reading", done + stream.position(), source.bytes_total());
    }
    done += stream.position();
    hash.update(join_text(";", stream.position(), ";", is_jsonl(file), file.ends_with(".gz")));
  }
  return hash.hex();
}

// Returns sizes and times of the inputs, to notice a change between hashing and tokenising.
std::string file_times(const TextSource& source) {
  std::string times;
  for (const std::string& file : source.files()) {
    times += join_text(fs::file_size(file), "@", fs::last_write_time(file).time_since_epoch().count(), ";");
  }
  return times;
}

void write_tokens(const fs::path& path, const TokenFileKey& key, TextSource& source, const Tokenizer& tokenizer,
                  const Progress& progress) {
  TokenFileWriter writer(path, key, tokenizer.words());
  while (const std::optional<TextPiece> piece = source.next()) {
    if (piece->begins_document) writer.begin_document();
    writer.add(tokenizer.encode(piece->text), piece->text.size());
    report(progress, "tokenising", source.bytes_done(), source.bytes_total());
  }
  HS_CHECK(writer.count() > 0, source.files().front(), ": the text has no tokens");
  writer.finish();
}

// Returns the cached tokens, or nothing when there is no usable file.
std::optional<TokenData> read_cached(const fs::path& path, const TokenFileKey& key, WordTable* words) {
  if (!path_exists(path)) return std::nullopt;
  try {
    return TokenData(std::make_shared<const TokenStorage>(read_token_file(path, key, words)));
  } catch (const Error& error) {
    notice(join_text("a token cache file cannot be used: ", error.what(), "; it is built again"));
    return std::nullopt;
  }
}

TokenData tokenise_once(const fs::path& directory, TokenFileKey key, TextSource& source, const Tokenizer& tokenizer,
                        const Progress& progress) {
  key.source = content_hash("standard input");
  const fs::path path = partial_name(directory / "once.tokens");  // what a killed process leaves is swept
  write_tokens(path, key, source, tokenizer, progress);
  auto storage = std::make_shared<const TokenStorage>(read_token_file(path, key, tokenizer.words()));
  fs::remove(path);  // the mapping keeps the bytes
  return TokenData(std::move(storage));
}

}  // namespace

fs::path default_cache_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value != nullptr ? value : "");
  };
  if (const fs::path path = variable("HEADSHARE_CACHE"); !path.empty()) return path;
  if (const fs::path path = variable("XDG_CACHE_HOME"); !path.empty()) return path / "headshare";
  const fs::path home = variable("HOME");
  HS_CHECK(!home.empty(),
           "no place for the token cache: HEADSHARE_CACHE, XDG_CACHE_HOME and HOME are not set; "
           "set HEADSHARE_CACHE to a folder");
  return home / ".cache" / "headshare";
}

TextSourceOptions source_options(const std::vector<std::string>& inputs, const DataOptions& options,
                                 const Tokenizer& tokenizer) {
  const bool bytes = tokenizer.kind() == "bytes";
  InvalidUtf8 policy = options.invalid_utf8;
  if (policy == InvalidUtf8::kAuto) policy = bytes ? InvalidUtf8::kKeep : InvalidUtf8::kRefuse;
  return {.inputs = inputs,
          .jsonl_field = options.jsonl_field,
          .invalid_utf8 = policy,
          .allow_binary = bytes || options.allow_binary,
          .keep_mark = options.invalid_utf8 == InvalidUtf8::kKeep};
}

namespace {

std::optional<int32_t> document_end(const Tokenizer& tokenizer) {
  const std::optional<int32_t> end = tokenizer.special(SpecialToken::kEndOfText);
  return end ? end : tokenizer.special(SpecialToken::kSeparate);
}

}  // namespace

TokenData open_tokens(const std::vector<std::string>& inputs, const DataOptions& options, const Tokenizer& tokenizer,
                      const Progress& progress) {
  const TextSourceOptions reading = source_options(inputs, options, tokenizer);
  TextSource source(reading);
  const fs::path directory =
      options.cache_directory.empty() ? default_cache_directory() : fs::path(options.cache_directory);
  make_directories(directory);
  sweep_partials(directory, {"*.tokens", "once.tokens.partial-*"});
  TokenFileKey key{.source = {},
                   .tokenizer = content_hash(tokenizer.to_json().dump()),
                   .vocabulary_size = tokenizer.words() != nullptr ? kOpenVocabulary : tokenizer.vocabulary_size(),
                   .end_of_text = options.separate_documents ? document_end(tokenizer) : std::nullopt,
                   .begin_of_text = options.separate_documents ? begins_texts(tokenizer) : std::nullopt};
  // Threads take turns, so that one of them does the work; processes write separate temporary files.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (!source.rereadable()) return tokenise_once(directory, key, source, tokenizer, progress);

  const std::string times = file_times(source);
  key.source = hash_source(source, reading, progress);
  const std::string begin = key.begin_of_text ? join_text(";", *key.begin_of_text) : "";
  const std::string name =
      content_hash(join_text(key.source, key.tokenizer, key.vocabulary_size, ";", key.end_of_text.value_or(-1), begin));
  const fs::path path = directory / (name + ".tokens");
  if (std::optional<TokenData> cached = read_cached(path, key, tokenizer.words())) {
    source.note_marks();
    return *cached;
  }
  write_tokens(path, key, source, tokenizer, progress);
  if (file_times(source) != times) {
    fs::remove(path);
    throw Error(join_text("the text changed while it was tokenised: ", source.files().front(),
                          source.files().size() > 1 ? " or another input" : "", "; run again when it is complete"));
  }
  return TokenData(std::make_shared<const TokenStorage>(read_token_file(path, key, tokenizer.words())));
}

}  // namespace headshare
