#include "headshare/base/files/placeholder.h"

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr const char* kFile = "FILE";
constexpr const char* kDirectory = "DIR";
constexpr const char* kPath = "PATH";
constexpr const char* kModel = "MODEL";
constexpr const char* kOrEmpty = " or empty";

Field naming(const char* what, Field text) {
  text.range = what;
  return text;
}

}  // namespace

Field naming_file(Field text) { return naming(kFile, std::move(text)); }
Field naming_directory(Field text) { return naming(kDirectory, std::move(text)); }
Field naming_path(Field text) { return naming(kPath, std::move(text)); }
Field naming_model(Field text) { return naming(kModel, std::move(text)); }

Field or_empty(Field naming) {
  naming.range += kOrEmpty;
  return naming;
}

std::string placeholder_of(const Field& field) {
  for (const std::string what : {kFile, kDirectory, kPath, kModel}) {
    if (field.range == what || field.range == what + kOrEmpty) return what;
  }
  return "";
}

void refuse_empty(const Field& field, const std::string& text) {
  const bool names = !field.range.empty() && field.range == placeholder_of(field);
  const bool empty = text.find_first_not_of(field.value().is_array() ? "," : "") == std::string::npos;
  HS_CHECK(!names || !empty, field.name, " is empty: give it a ", field.range, ", or leave it out");
}

}  // namespace headshare
