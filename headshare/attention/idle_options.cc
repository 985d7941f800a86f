#include "headshare/attention/idle_options.h"

#include <algorithm>
#include <map>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"

namespace headshare {
namespace {

// The options that the scheme reads and that not every scheme does.
std::vector<std::string> options_read_by(const SchemeRecord& scheme) {
  std::vector<std::string> names = scheme.reads;
  AttentionOptions options;
  if (scheme.options.fields != nullptr) {
    const std::vector<std::string> own = names_of(scheme.options.fields(options));
    names.insert(names.end(), own.begin(), own.end());
  }
  return names;
}

}  // namespace

IdleOptions idle_scheme_options(const std::vector<std::string>& schemes) {
  std::map<std::string, std::vector<std::string>> readers;  // schemes, by option
  for (const auto& scheme : scheme_records()) {
    for (const std::string& option : options_read_by(*scheme)) readers[option].push_back(scheme->name);
  }
  for (const std::string& scheme : schemes) {
    for (const std::string& option : options_read_by(scheme_record(scheme))) readers.erase(option);
  }
  IdleOptions idle;
  for (const auto& [option, names] : readers) {
    idle.push_back({option, join_text("matters only to the scheme", names.size() == 1 ? " " : "s ", list_text(names))});
  }
  return idle;
}

}  // namespace headshare
