#include "headshare/base/placeholder.h"

#include <algorithm>
#include <array>

namespace headshare {
namespace {

constexpr const char* kFile = "FILE";
constexpr const char* kDirectory = "DIR";
constexpr const char* kPath = "PATH";
constexpr const char* kModel = "MODEL";

Field naming(const char* what, Field text) {
  text.range = what;
  return text;
}

}  // namespace

Field naming_file(Field text) { return naming(kFile, std::move(text)); }
Field naming_directory(Field text) { return naming(kDirectory, std::move(text)); }
Field naming_path(Field text) { return naming(kPath, std::move(text)); }
Field naming_model(Field text) { return naming(kModel, std::move(text)); }

bool is_placeholder(const std::string& range) {
  constexpr std::array<const char*, 4> kAll = {kFile, kDirectory, kPath, kModel};
  return std::find(kAll.begin(), kAll.end(), range) != kAll.end();
}

}  // namespace headshare
