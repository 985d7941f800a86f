#include "headshare/attention/scheme_record.h"

#include <algorithm>

#include "headshare/attention/schemes.h"
#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/base/nearest.h"

namespace headshare {
namespace {

std::vector<SchemeRecord>& records() {
#define HS_SCHEME(name) name##_scheme(),
  static std::vector<SchemeRecord> all = {
#include "headshare/attention/schemes.inc"
  };
#undef HS_SCHEME
  return all;
}

}  // namespace

const std::vector<SchemeRecord>& scheme_records() { return records(); }

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const SchemeRecord& one : records()) names.push_back(one.name);
  return names;
}

const SchemeRecord& scheme_record(const std::string& name) {
  std::string plain = name;
  for (char& c : plain) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const SchemeRecord& one : records()) {
    if (one.name == plain) return one;
  }
  const std::vector<std::string> known = scheme_names();
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : "|") + one;
  throw Error(join_text("scheme must be one of ", list, ", not ", brief_text(name), did_you_mean(name, known)));
}

std::vector<std::string> chosen_schemes(const std::vector<std::string>& names) {
  HS_CHECK(!names.empty(), "no scheme was named; give --schemes mha,sha,... or all");
  std::vector<std::string> wanted;
  bool all = false;
  for (const std::string& name : names) {
    if (name == "all") {
      all = true;
    } else {
      wanted.push_back(scheme_record(name).name);
    }
  }
  std::vector<std::string> chosen;
  for (const std::string& scheme : scheme_names()) {
    if (all || std::find(wanted.begin(), wanted.end(), scheme) != wanted.end()) chosen.push_back(scheme);
  }
  return chosen;
}

bool is_trained(const std::string& scheme) {
  return std::all_of(records().begin(), records().end(),
                     [&](const SchemeRecord& one) { return one.name != scheme || one.weights_of.empty(); });
}

int64_t compared_width(const AttentionOptions& o) {
  const SchemeRecord& scheme = scheme_record(o.scheme);
  return scheme.compared_width == nullptr ? *o.head_width : scheme.compared_width(o);
}

int64_t rotated_width(const AttentionOptions& o) {
  const SchemeRecord& scheme = scheme_record(o.scheme);
  return scheme.rotated_width == nullptr ? compared_width(o) : scheme.rotated_width(o);
}

Field scheme_field(std::string* target, const std::string& help) {
  return field("scheme", target, help, scheme_names(), {.aliases = {"attention"}});
}

AddedScheme::AddedScheme(SchemeRecord record) { records().push_back(std::move(record)); }
AddedScheme::~AddedScheme() { records().pop_back(); }

std::shared_ptr<Scheme> make_scheme(const AttentionOptions& resolved) {
  HS_CHECK(resolved.scale && resolved.head_width && resolved.groups && resolved.key_width,
           "attention options must be resolved before a scheme is made");
  return scheme_record(resolved.scheme).make(resolved);
}

}  // namespace headshare
