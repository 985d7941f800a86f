#include "headshare/text/hash/word_table.h"

#include "headshare/base/error.h"
#include "headshare/text/hash/word_hasher.h"

namespace headshare {

int32_t WordTable::number_locked(std::string_view word) {
  if (const auto found = numbers_.find(word); found != numbers_.end()) return found->second;
  constexpr const char* kWayOut =
      ", which is what a tokenizer that hashes words keeps; use a part of the text, or 'wordpiece', which has a "
      "vocabulary";
  const auto count = static_cast<int64_t>(words_.size());
  HS_CHECK(count < most_words_, "the text has more than ", most_words_, " different words", kWayOut);
  HS_CHECK(bytes_ + static_cast<int64_t>(word.size()) <= most_bytes_, "the different words of the text take more than ",
           most_bytes_, " bytes", kWayOut);
  const std::string& kept = words_.emplace_back(word);
  numbers_.emplace(kept, static_cast<int32_t>(count));
  bytes_ += static_cast<int64_t>(word.size());
  return static_cast<int32_t>(count);
}

int32_t WordTable::number(std::string_view word) {
  const std::lock_guard lock(mutex_);
  return number_locked(word);
}

void WordTable::numbers(std::span<const std::string_view> words, std::vector<int32_t>* out) {
  const std::lock_guard lock(mutex_);
  for (const std::string_view word : words) out->push_back(number_locked(word));
}

int64_t WordTable::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(words_.size());
}

int64_t WordTable::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::string WordTable::word(int32_t number) const {
  const std::lock_guard lock(mutex_);
  HS_CHECK(number >= 0 && static_cast<size_t>(number) < words_.size(), "the word number ", number,
           " was not given out: there are the numbers 0 .. ", static_cast<int64_t>(words_.size()) - 1);
  return words_[static_cast<size_t>(number)];
}

template <class Value, class Hash>
std::vector<Value> WordTable::hashes(int32_t first, int32_t last, Kept<Value>* kept, const Hash& hash) const {
  std::vector<std::pair<size_t, std::string_view>> missing;
  {
    const std::lock_guard lock(mutex_);
    HS_CHECK(first >= 0 && first <= last && static_cast<size_t>(last) <= words_.size(), "the word numbers ", first,
             " .. ", last, " were not all given out: there are ", words_.size(), " words");
    kept->values.resize(words_.size());
    kept->known.resize(words_.size());
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      if (!kept->known[i]) missing.emplace_back(i, words_[i]);
    }
  }
  std::vector<Value> fresh;
  fresh.reserve(missing.size());
  for (const auto& [number, word] : missing) fresh.push_back(hash(word));
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < missing.size(); ++i) {
    kept->values[missing[i].first] = fresh[i];
    kept->known[missing[i].first] = true;
  }
  return {kept->values.begin() + first, kept->values.begin() + last};
}

std::vector<Signature> WordTable::signatures(int32_t first, int32_t last) const {
  return hashes(first, last, &signatures_, [this](std::string_view word) { return hasher_.signature(word); });
}

std::vector<int64_t> WordTable::buckets(int32_t first, int32_t last) const {
  return hashes(first, last, &buckets_, [this](std::string_view word) { return hasher_.bucket(word); });
}

int32_t WordTable::add(std::string_view word, const Signature& signature) {
  const std::lock_guard lock(mutex_);
  const int32_t number = number_locked(word);
  const auto at = static_cast<size_t>(number);
  if (signatures_.known.size() <= at) {
    signatures_.values.resize(words_.size());
    signatures_.known.resize(words_.size());
  }
  HS_CHECK(!signatures_.known[at] || signatures_.values[at] == signature, "the word '", word, "' has the signature ",
           signature.hex(), " in the file and ", signatures_.values[at].hex(),
           " here: the file was made with another tokenizer, or is damaged");
  signatures_.values[at] = signature;
  signatures_.known[at] = true;
  return number;
}

}  // namespace headshare
