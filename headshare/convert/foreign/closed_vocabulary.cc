#include "headshare/convert/foreign/closed_vocabulary.h"

#include <ATen/ATen.h>

#include <set>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/memory.h"
#include "headshare/data/line_reader.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/size.h"
#include "headshare/text/hash/hash_tokenizer.h"
#include "headshare/text/hash/word_or_symbol.h"

namespace headshare {
namespace {

constexpr size_t kLongestWord = 65536;  // bytes
constexpr int64_t kAtOnce = 4096;       // words: hash-pool holds 13 vectors for each

constexpr size_t kShown = 5;  // words of a line that a message names

// The first words of a line.
std::vector<std::string> words_of(std::string_view line, const std::string& where) {
  std::vector<std::string> words;
  for (WordsAndSymbols tokens(line, where); words.size() < kShown && tokens.next();) words.emplace_back(tokens.word());
  return words;
}

std::string quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + brief_text(word);
  return text + (words.size() == kShown ? ", ..." : "");
}

std::vector<int64_t> ids_of(const Tokenizer& tokenizer, const std::vector<std::string>& words) {
  std::vector<int64_t> ids;
  for (int64_t special = 0; special < HashTokenizer::kSpecials; ++special) ids.push_back(special);
  for (const std::string& word : words) ids.push_back(HashTokenizer::kSpecials + tokenizer.words()->number(word));
  return ids;
}

}  // namespace

WordList read_word_list(const std::string& file) {
  WordList list;
  std::set<std::string> known;
  LineReader lines(file);
  while (const auto line = lines.next()) {
    HS_CHECK(line->size() <= kLongestWord, lines.where(), ": the line has ", line->size(),
             " bytes; a word of a list has at most ", kLongestWord);
    const std::vector<std::string> words = words_of(*line, lines.where());
    if (words.empty()) continue;
    HS_CHECK(words.size() == 1, lines.where(), ": ", brief_text(std::string(*line)),
             " is not one word: it is cut into ", quoted(words), "; give each of these a line of its own");
    if (known.insert(words.front()).second) {
      list.words.push_back(words.front());
    } else {
      ++list.repeated;
    }
  }
  HS_CHECK(!list.words.empty(), lines.name(), " holds no word; it must have one a line");
  return list;
}

EncoderOptions closed_options(const EncoderOptions& hashed, const std::vector<std::string>& words) {
  EncoderOptions options = hashed;
  options.embedding = {};
  options.vocabulary = HashTokenizer::kSpecials + static_cast<int64_t>(words.size());
  return resolve(options);
}

Encoder close_vocabulary(const Encoder& hashed, const Tokenizer& tokenizer, const std::vector<std::string>& words) {
  const EncoderOptions options = closed_options(hashed->options(), words);
  check_memory(parameter_bytes(options), "the model with a table", "use a machine with more memory, or a shorter list");
  const at::NoGradGuard no_grad;
  Encoder closed(options);
  const NamedTensors from = model_tensors(*hashed);
  const NamedTensors to = model_tensors(*closed);
  const std::string table = "token_embedding";
  for (const auto& [name, tensor] : to) {
    if (name != table) tensor.copy_(from.at(name));
  }
  const Tensor ids = at::tensor(ids_of(tokenizer, words), at::kLong);
  for (int64_t begin = 0; begin < options.vocabulary; begin += kAtOnce) {
    const int64_t count = std::min(kAtOnce, options.vocabulary - begin);
    to.at(table).narrow(0, begin, count).copy_(hashed->token_vectors(ids.narrow(0, begin, count)));
  }
  closed->eval();
  return closed;
}

}  // namespace headshare
