#include <algorithm>
#include <array>
#include <string_view>

#include "tests/fuzz/driver.h"

namespace headshare::fuzz {
namespace {

// Readers have stumbled over these somewhere: numbers at the ends of their types, members of JSON, broken UTF-8.
constexpr std::array<std::string_view, 50> kWords = {"0",
                                                     "-1",
                                                     "1",
                                                     "2147483647",
                                                     "2147483648",
                                                     "-2147483649",
                                                     "4294967296",
                                                     "9223372036854775807",
                                                     "9223372036854775808",
                                                     "-9223372036854775808",
                                                     "18446744073709551615",
                                                     "18446744073709551616",
                                                     "1e308",
                                                     "1e999",
                                                     "-0.0",
                                                     "1e-320",
                                                     "0.5",
                                                     "NaN",
                                                     "Infinity",
                                                     "null",
                                                     "true",
                                                     "false",
                                                     "{}",
                                                     "[]",
                                                     "[[[[[[[[",
                                                     "{\"a\":{\"a\":{\"a\":",
                                                     "\"\"",
                                                     "\"a\"",
                                                     "\\u0000",
                                                     "\\ud800",
                                                     "\\\"",
                                                     "\n",
                                                     "\r\n",
                                                     "\t",
                                                     ",",
                                                     ":",
                                                     "\xEF\xBB\xBF",
                                                     "\xC0\x80",
                                                     "\xED\xA0\x80",
                                                     "\xF4\x90\x80\x80",
                                                     "\x1B[31m",
                                                     "\x7F",
                                                     "\xFF",
                                                     "\xC3\xA9",
                                                     "\xE2\x80\xA8",
                                                     "\xF0\x9F\x98\x80",
                                                     "../x",
                                                     "/",
                                                     "..",
                                                     "-"};

size_t below(size_t bound, std::mt19937_64& random) { return bound == 0 ? 0 : random() % bound; }

// Chooses a stretch of `text`; short ones are likelier.
std::pair<size_t, size_t> stretch(const std::string& text, std::mt19937_64& random) {
  const size_t at = below(text.size() + 1, random);
  const size_t most = text.size() - at;
  const size_t length = random() % 4 == 0 ? below(most + 1, random) : std::min(most, below(9, random));
  return {at, length};
}

// Finds where a number or a word of the text stands.
std::pair<size_t, size_t> token(const std::string& text, std::mt19937_64& random) {
  const auto in_token = [&](size_t at) {
    const auto c = static_cast<unsigned char>(text[at]);
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '+' || c == '_';
  };
  size_t at = below(text.size(), random);
  while (at < text.size() && !in_token(at)) ++at;
  size_t begin = at;
  while (begin > 0 && in_token(begin - 1)) --begin;
  while (at < text.size() && in_token(at)) ++at;
  return {begin, at - begin};
}

// Finds the bracket that closes the one at `at`, or the end.
size_t closing(const std::string& text, size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '{' || text[at] == '[') ++depth;
    if ((text[at] == '}' || text[at] == ']') && --depth == 0) return at;
  }
  return text.size() - 1;
}

// Finds a whole {...} or [...].
std::pair<size_t, size_t> group(const std::string& text, std::mt19937_64& random) {
  const size_t at = text.find_first_of("{[", below(text.size(), random));
  if (at == std::string::npos) return stretch(text, random);
  return {at, closing(text, at) - at + 1};
}

void change_bytes(std::string* text, std::mt19937_64& random) {
  for (size_t left = 1 + below(4, random); left > 0 && !text->empty(); --left) {
    char& byte = (*text)[below(text->size(), random)];
    byte = random() % 2 == 0 ? static_cast<char>(byte ^ (1 << random() % 8)) : static_cast<char>(random());
  }
}

std::string_view word(std::mt19937_64& random) { return kWords[below(kWords.size(), random)]; }

// Replaces one group by another, or by a word.
void change_group(std::string* text, std::mt19937_64& random) {
  const auto [at, length] = group(*text, random);
  const auto [from, count] = group(*text, random);
  const std::string moved = random() % 4 == 0 ? std::string(word(random)) : text->substr(from, count);
  text->replace(at, length, moved);
}

void change_token(std::string* text, std::mt19937_64& random) {
  const auto [at, length] = token(*text, random);
  text->replace(at, length, word(random));
}

void insert_other(std::string* text, const std::string& other, std::mt19937_64& random) {
  const auto [at, length] = stretch(*text, random);
  const auto [from, count] = stretch(other, random);
  text->replace(at, length, other, from, count);
}

void mutate_once(std::string* text, const std::string& other, std::mt19937_64& random) {
  const auto [at, length] = stretch(*text, random);
  switch (random() % 9) {
    case 0:
      change_bytes(text, random);
      break;
    case 1:
      text->erase(at, length);
      break;
    case 2:
      text->insert(below(text->size() + 1, random), text->substr(at, length));
      break;
    case 3:
      text->replace(at, random() % 2 == 0 ? 0 : length, word(random));
      break;
    case 4:
    case 5:
      change_token(text, random);
      break;
    case 6:
      change_group(text, random);
      break;
    case 7:
      insert_other(text, other, random);
      break;
    default:
      text->resize(below(text->size() + 1, random));
      break;
  }
}

}  // namespace

std::string mutated(std::string text, const std::string& other, std::mt19937_64& random) {
  constexpr size_t kMost = 1 << 16;
  for (size_t left = 1 + (random() % 2) * below(4, random); left > 0; --left) mutate_once(&text, other, random);
  if (text.size() > kMost) text.resize(kMost);
  return text;
}

}  // namespace headshare::fuzz
