// What there is to know about a scheme, written once, in the scheme's own file. Flags, help, costs, comparisons,
// reports and tests read this list: a scheme is its file, a line in schemes.inc, its test and its line in
// docs/paper-map.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headshare/attention/options.h"

namespace headshare {

class Scheme;

struct SchemeRecord {
  std::string name;      // as flags and files have it: "mhe_add"
  std::string sentence;  // what its heads share
  std::string paper;     // where it comes from

  // The scheme of resolved options.
  std::shared_ptr<Scheme> (*make)(const AttentionOptions& resolved) = nullptr;

  // Fills options left at auto that become something else here than in other schemes. Head width and groups are known.
  void (*set_defaults)(AttentionOptions* options) = nullptr;

  // Why these options are impossible here, as a sentence with the way out; "" when they are not.
  std::string (*why_not)(const AttentionOptions& resolved) = nullptr;

  // The width in which a query is compared with a key; null: the head width.
  int64_t (*compared_width)(const AttentionOptions& resolved) = nullptr;

  // How many dimensions, the last ones of what is compared, rotary positions turn; null: all.
  int64_t (*rotated_width)(const AttentionOptions& resolved) = nullptr;

  // The sizes that only this scheme has, for people: "2 groups"; null: none.
  std::string (*sizes)(const AttentionOptions& resolved) = nullptr;

  // Collaborative key width R is one width that all heads share, which --key-width sets; other schemes derive theirs.
  bool shares_key_width = false;

  // The scheme whose trained weights it computes with in another way, and which is trained in its place; "": none.
  std::string weights_of = {};
};

// All schemes, in the order of help and tables.
const std::vector<SchemeRecord>& scheme_records();
std::vector<std::string> scheme_names();

// The scheme of that name, "mhe-add" for "mhe_add" too. Throws Error with the nearest name for an unknown one.
const SchemeRecord& scheme_record(const std::string& name);

// The schemes that "all" and the names in the list stand for, in the registry's order. Throws Error for an empty list,
// and with the nearest name for an unknown one.
std::vector<std::string> chosen_schemes(const std::vector<std::string>& names);

// Whether a scheme is trained by itself, and not another one's weights computed in another way. One that is not in the
// list, of somebody else's results, is taken to be.
bool is_trained(const std::string& scheme);

// SchemeRecord::compared_width of the scheme that the options name.
int64_t compared_width(const AttentionOptions& resolved);

// SchemeRecord::rotated_width of it.
int64_t rotated_width(const AttentionOptions& resolved);

// The option that names a scheme.
Field scheme_field(std::string* target, const std::string& help);

// Adds a scheme to the list while it lives: for tests, and for programs that bring a scheme of their own. Not while
// other threads read the list.
class AddedScheme {
 public:
  explicit AddedScheme(SchemeRecord record);
  ~AddedScheme();
  AddedScheme(const AddedScheme&) = delete;
  AddedScheme& operator=(const AddedScheme&) = delete;
};

}  // namespace headshare
