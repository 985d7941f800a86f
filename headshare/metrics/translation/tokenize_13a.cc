#include "headshare/metrics/translation/tokenizer.h"
#include "headshare/metrics/translation/western.h"

namespace headshare {

std::string tokenize_13a(std::string_view line) {
  std::string text = " " + std::string(line) + " ";
  if (text.find("<skipped>") != std::string::npos) text = replace_all(text, "<skipped>", "");
  if (text.find('\n') != std::string::npos) text = replace_all(replace_all(text, "-\n", ""), "\n", " ");
  if (text.find('&') != std::string::npos) {
    text = replace_all(replace_all(text, "&quot;", "\""), "&amp;", "&");
    text = replace_all(replace_all(text, "&lt;", "<"), "&gt;", ">");
  }
  return separate_points(separate_signs(text));
}

}  // namespace headshare
