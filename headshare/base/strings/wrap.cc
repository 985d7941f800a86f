#include "headshare/base/strings/wrap.h"

#include <algorithm>

#include "headshare/base/strings/visible.h"

namespace headshare {

int display_width(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string wrap(std::string_view foreign, int width, int indent) {
  const std::string shown = visible(foreign);
  std::string_view text = shown;
  std::string wrapped;
  int column = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (column > indent && column + 1 + display_width(word) > width) {
      wrapped += "\n" + std::string(static_cast<size_t>(indent), ' ');
      column = indent;
    } else if (column > indent) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += display_width(word);
  }
  return wrapped;
}

}  // namespace headshare
