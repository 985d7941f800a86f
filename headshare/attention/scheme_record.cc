#include "headshare/attention/scheme_record.h"

#include <algorithm>
#include <cctype>

#include "headshare/attention/schemes.h"
#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/record_list.h"

namespace headshare {
namespace {

RecordList<SchemeRecord>& records() {
#define HS_SCHEME(name) name##_scheme(),
  static RecordList<SchemeRecord> all({
#include "headshare/attention/schemes.inc"
  });
#undef HS_SCHEME
  return all;
}

}  // namespace

std::vector<std::shared_ptr<const SchemeRecord>> scheme_records() { return records().all(); }

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const auto& one : scheme_records()) names.push_back(one->name);
  return names;
}

std::string canonical_scheme(std::string name) {
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

const SchemeRecord& scheme_record(const std::string& name) {
  const std::string plain = canonical_scheme(name);
  for (const auto& one : scheme_records()) {
    if (one->name == plain) return *one;
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
  const auto all = scheme_records();
  return std::all_of(all.begin(), all.end(),
                     [&](const auto& one) { return one->name != scheme || one->weights_of.empty(); });
}

int64_t compared_width(const AttentionOptions& o) {
  const SchemeRecord& scheme = scheme_record(o.scheme);
  return scheme.compared_width == nullptr ? *o.head_width : scheme.compared_width(o);
}

int64_t rotated_width(const AttentionOptions& o) {
  const SchemeRecord& scheme = scheme_record(o.scheme);
  return scheme.rotated_width == nullptr ? o.rotary_dimensions.value_or(compared_width(o)) : scheme.rotated_width(o);
}

Field scheme_field(std::string* target, const std::string& help) {
  return field("scheme", target, help, scheme_names(), {.aliases = {"attention"}});
}

AddedScheme::AddedScheme(SchemeRecord record) {
  const std::vector<std::string> known = scheme_names();
  HS_CHECK(std::find(known.begin(), known.end(), record.name) == known.end(), "there is a scheme ", record.name,
           " already; give the added one another name");
  record_ = records().add(std::move(record));
}

AddedScheme::~AddedScheme() { records().take_out(record_); }

std::shared_ptr<Scheme> make_scheme(const AttentionOptions& resolved) {
  HS_CHECK(resolved.scale && resolved.head_width && resolved.key_width,
           "attention options must be resolved before a scheme is made");
  return scheme_record(resolved.scheme).make(resolved);
}

}  // namespace headshare
