#include "headshare/convert/formats.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/convert/ctranslate2/format.h"
#include "headshare/convert/gguf/format.h"
#include "headshare/convert/hf/format.h"

namespace headshare {
namespace {

template <class Wanted>
std::vector<std::string> names_of_formats(const Wanted& wanted) {
  std::vector<std::string> names;
  for (const ForeignFormat& format : foreign_formats()) {
    if (wanted(format)) names.push_back(format.name);
  }
  return names;
}

const ForeignFormat* find_named(const std::string& name) {
  for (const ForeignFormat& format : foreign_formats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

}  // namespace

const std::vector<ForeignFormat>& foreign_formats() {
  static const std::vector<ForeignFormat> formats = {hf_format(), gguf_format(), ct2_format()};
  return formats;
}

std::vector<std::string> formats_read() {
  return names_of_formats([](const ForeignFormat& format) { return format.open != nullptr; });
}

std::vector<std::string> formats_written() {
  return names_of_formats([](const ForeignFormat& format) { return format.write != nullptr; });
}

const ForeignFormat& find_format(const std::string& name) {
  const ForeignFormat* found = find_named(name);
  const std::vector<std::string> known = formats_read();
  HS_CHECK(found != nullptr && found->open != nullptr,
           found == nullptr ? "unknown format " : "nothing reads the format ", brief_text(name),
           did_you_mean(name, known), "; --from takes ", list_text(known, "or"));
  return *found;
}

const ForeignFormat* find_written_format(const std::string& name) {
  const ForeignFormat* found = find_named(name);
  return found != nullptr && found->write != nullptr ? found : nullptr;
}

}  // namespace headshare
