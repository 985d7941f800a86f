#include "headshare/base/options/prefixed.h"

#include <algorithm>
#include <cctype>

#include "headshare/base/error.h"

namespace headshare {

Fields prefixed(const std::string& prefix, Fields fields) {
  for (Field& one : fields) {
    one.parse = [prefix, parse = std::move(one.parse)](const std::string& text) {
      try {
        parse(text);
      } catch (const Error& error) {
        throw Error(prefix + error.what());  // the message begins with the name
      }
    };
    one.name = prefix + one.name;
    for (std::string& alias : one.aliases) alias = prefix + alias;
  }
  std::vector<std::string> help;
  for (const Field& one : fields) help.push_back(with_prefixed_names(prefix, fields, one.help));
  for (size_t i = 0; i < fields.size(); ++i) fields[i].help = help[i];
  return fields;
}

std::string with_prefixed_names(const std::string& prefix, const Fields& fields, const std::string& text) {
  const auto is_of_name = [](char c) { return c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::string made;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 2;
    if (text.compare(at, 2, "--") == 0) {
      while (end < text.size() && is_of_name(text[end])) ++end;
      const std::string name = prefix + text.substr(at + 2, end - at - 2);
      const bool ours = std::any_of(fields.begin(), fields.end(), [&](const Field& one) { return one.name == name; });
      made += ours ? "--" + name : text.substr(at, end - at);
    } else {
      made += text[at];
      end = at + 1;
    }
    at = end;
  }
  return made;
}

}  // namespace headshare
