#include "headshare/metrics/translation/tokenizer.h"

#include "headshare/base/strings/valid_utf8.h"

namespace headshare {
namespace {

std::string tokenize_characters(std::string_view line) {
  std::string out;
  for (size_t at = 0; at < line.size();) {
    const size_t begin = at;
    next_code_point(line, &at);
    out += line.substr(begin, at - begin);
    out += ' ';
  }
  return out;
}

}  // namespace

std::string tokenizer_name(BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::k13a:
      return "13a";
    case BleuTokenizer::kIntl:
      return "intl";
    case BleuTokenizer::kChar:
      return "char";
    case BleuTokenizer::kNone:
      return "none";
    case BleuTokenizer::kZh:
      return "zh";
  }
  return "";
}

std::string tokenize(BleuTokenizer tokenizer, std::string_view line) {
  switch (tokenizer) {
    case BleuTokenizer::k13a:
      return tokenize_13a(line);
    case BleuTokenizer::kIntl:
      return tokenize_intl(line);
    case BleuTokenizer::kChar:
      return tokenize_characters(line);
    case BleuTokenizer::kZh:
      return tokenize_zh(line);
    case BleuTokenizer::kNone:
      break;
  }
  return std::string(line);
}

}  // namespace headshare
