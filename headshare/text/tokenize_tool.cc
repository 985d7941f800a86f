// This program is for the Python oracles and benchmarks only. It drives the tokenizers from standard input.
//
//   tokenize_tool encode PATH           text frames in, id frames out
//   tokenize_tool spans PATH            text frames in, frames of (id, begin, end) out
//   tokenize_tool special PATH          as encode, with special tokens read from the text
//   tokenize_tool decode PATH           id frames in, text frames out
//   tokenize_tool export PATH           Hugging Face's tokenizer.json out
//   tokenize_tool time PATH PASSES [spans]
//                                         text frames in; JSON: CPU seconds of encoding them all, per pass
//   tokenize_tool hash PATH signatures|buckets
//                                         text frames in, for tokenizers that hash words; JSON: how many words, how
//                                         many different ones, CPU seconds of numbering and of hashing them, hashes
//   tokenize_tool train OUT NAME=VALUE...   text frames in (each one chunk); OUT.json, and OUT.hf.json for kinds that
//   have it
//
// PATH is what load_tokenizer takes. A frame is a little-endian uint32 count, then that many bytes
// (text) or int32 ids.
#include <cstdio>
#include <ctime>
#include <iostream>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"
#include "headshare/text/hash/word_table.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/text/train_tokenizer.h"

namespace headshare {
namespace {

template <class Item>
bool read_frame(std::vector<Item>* items) {
  uint32_t count = 0;
  if (std::fread(&count, sizeof count, 1, stdin) != 1) return false;
  items->resize(count);
  HS_CHECK(std::fread(items->data(), sizeof(Item), count, stdin) == count, "a frame of ", count, " items is cut short");
  return true;
}

template <class Items>
void write_frame(const Items& items) {
  const auto count = static_cast<uint32_t>(items.size());
  std::fwrite(&count, sizeof count, 1, stdout);
  std::fwrite(items.data(), sizeof(items[0]), count, stdout);
}

void encode(const Tokenizer& tokenizer) {
  for (std::vector<char> text; read_frame(&text);) write_frame(tokenizer.encode({text.data(), text.size()}));
}

void encode_with_spans(const Tokenizer& tokenizer) {
  for (std::vector<char> text; read_frame(&text);) {
    const TokensWithSpans tokens = tokenizer.encode_with_spans({text.data(), text.size()});
    std::vector<int32_t> numbers;
    for (size_t i = 0; i < tokens.ids.size(); ++i) {
      for (const size_t number : {static_cast<size_t>(tokens.ids[i]), tokens.spans[i].begin, tokens.spans[i].end}) {
        numbers.push_back(static_cast<int32_t>(number));
      }
    }
    write_frame(numbers);
  }
}

void encode_special(const Tokenizer& tokenizer) {
  for (std::vector<char> text; read_frame(&text);) {
    write_frame(tokenizer.encode_with_special({text.data(), text.size()}));
  }
}

void decode(const Tokenizer& tokenizer) {
  for (std::vector<int32_t> ids; read_frame(&ids);) write_frame(tokenizer.decode(ids));
}

double seconds_since(std::clock_t start) { return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC; }

void time_encoding(const Tokenizer& tokenizer, int passes, bool with_spans) {
  std::vector<std::string> texts;
  for (std::vector<char> text; read_frame(&text);) texts.emplace_back(text.begin(), text.end());
  nlohmann::json result = {{"tokens", 0}, {"seconds", nlohmann::json::array()}};
  for (int pass = 0; pass < passes; ++pass) {
    size_t tokens = 0;
    const std::clock_t start = std::clock();
    for (const std::string& text : texts) {
      tokens += with_spans ? tokenizer.encode_with_spans(text).ids.size() : tokenizer.encode(text).size();
    }
    result["seconds"].push_back(seconds_since(start));
    result["tokens"] = tokens;
  }
  std::cout << result << "\n";
}

template <class Hash>
nlohmann::json as_text(const std::vector<Hash>& hashes) {
  nlohmann::json list = nlohmann::json::array();
  for (const Hash& one : hashes) {
    if constexpr (std::is_same_v<Hash, Signature>) {
      list.push_back(one.hex());
    } else {
      list.push_back(one);
    }
  }
  return list;
}

void time_hashing(const Tokenizer& tokenizer, bool buckets) {
  HS_CHECK(tokenizer.words() != nullptr, "the tokenizer '", tokenizer.kind(), "' hashes no words");
  const WordTable& words = *tokenizer.words();
  std::vector<std::string> texts;
  for (std::vector<char> text; read_frame(&text);) texts.emplace_back(text.begin(), text.end());
  nlohmann::json result;
  std::clock_t start = std::clock();
  size_t count = 0;
  for (const std::string& text : texts) count += tokenizer.encode(text).size();
  result["encode_seconds"] = seconds_since(start);
  result["words"] = count;
  result["different"] = words.size();
  const auto last = static_cast<int32_t>(words.size());
  const auto hash = [&](const auto& hashes) {
    result["hash_seconds"] = seconds_since(start);
    result["hashes"] = as_text(hashes);
  };
  start = std::clock();
  if (buckets) {
    hash(words.buckets(0, last));
  } else {
    hash(words.signatures(0, last));
  }
  std::cout << result << "\n";
}

void train(const std::string& out, const std::vector<std::string>& settings) {
  TokenizerOptions options;
  Fields list = fields(options);
  for (const std::string& setting : settings) {
    const size_t equals = std::min(setting.find('='), setting.size() - 1);
    set_field(list, setting.substr(0, equals), setting.substr(equals + 1), "tokenize_tool");
  }
  const auto tokenizer = train_tokenizer(options, [](std::string* chunk) {
    std::vector<char> text;
    if (!read_frame(&text)) return false;
    chunk->assign(text.begin(), text.end());
    return true;
  });
  save_tokenizer(*tokenizer, out + ".json");
  if (tokenizer->kind() == "bpe" || tokenizer->kind() == "wordpiece") {
    write_file(out + ".hf.json", hf_json(*tokenizer).dump());
  }
}

int run(const std::vector<std::string>& arguments) {
  HS_CHECK(arguments.size() >= 2, "usage: tokenize_tool encode|spans|special|decode|export|time|hash|train PATH ...");
  const std::string& verb = arguments[0];
  if (verb == "train") {
    train(arguments[1], {arguments.begin() + 2, arguments.end()});
    return 0;
  }
  const auto tokenizer = load_tokenizer(arguments[1]);
  if (verb == "encode") encode(*tokenizer);
  if (verb == "spans") encode_with_spans(*tokenizer);
  if (verb == "special") encode_special(*tokenizer);
  if (verb == "decode") decode(*tokenizer);
  if (verb == "export") std::cout << hf_json(*tokenizer).dump();
  if (verb == "time") time_encoding(*tokenizer, std::stoi(arguments.at(2)), arguments.back() == "spans");
  if (verb == "hash") time_hashing(*tokenizer, arguments.back() == "buckets");
  return 0;
}

}  // namespace
}  // namespace headshare

int main(int argc, char** argv) {
  try {
    return headshare::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "tokenize_tool: " << error.what() << "\n";
    return 1;
  }
}
