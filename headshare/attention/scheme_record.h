// A record says all there is to know about a scheme. It is written once, in the scheme's own file. Flags, help, costs,
// checkpoints, comparisons, reports and tests read the list of records: a scheme is its file, a line in schemes.inc,
// its test and its line in docs/paper-map.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headshare/attention/options.h"

namespace headshare {

class Scheme;

// These are the options that a scheme has besides those that all schemes have: a struct of the scheme in
// AttentionOptions::own. A model has the options of all schemes, whatever its own scheme is, so that a comparison can
// set them. An option that two schemes read belongs to the first of them in schemes.inc.
struct SchemeOptions {
  std::function<Fields(AttentionOptions&)> fields;

  // Puts them back to where a new layer's begin, for a layer that takes the place of another one.
  std::function<void(AttentionOptions*)> reset;

  // Fills them in and checks them in layers of every scheme; null: set_defaults does so, in the scheme's own layers.
  // Format version 1 wrote some options filled in, whatever the scheme. An option that came later (FieldOptions::since)
  // stays as it was set in layers of other schemes: filled in, it would ask for a later version than those need.
  std::function<void(AttentionOptions*)> fill_in = nullptr;

  // Puts back those that only rotary positions give a meaning; null: there are none. Attention from one sequence to
  // another has no such positions.
  std::function<void(AttentionOptions*)> leave_rotary_out = nullptr;
};

// Returns the options of a struct that a scheme brings, by its list of fields.
template <class Own>
SchemeOptions scheme_options(Fields (*list)(Own&)) {
  return {.fields = [list](AttentionOptions& o) { return list(o.own.get<Own>()); },
          .reset = [](AttentionOptions* o) { o->own.get<Own>() = Own(); }};
}

struct SchemeRecord {
  std::string name;      // as flags and files have it: "mhe_add"
  std::string sentence;  // what its heads share
  std::string paper;     // where it comes from

  // Makes the scheme of resolved options.
  std::function<std::shared_ptr<Scheme>(const AttentionOptions& resolved)> make = nullptr;

  // These are the scheme's own options; without `fields` it has none.
  SchemeOptions options = {};

  // The names of the options that it reads, though not every scheme does, from the lists of others: another scheme's
  // options ("mhe-deviation"), and options of all layers or of the model ("key-width"). Whoever sets an option that no
  // scheme of a model reads is told so (attention/idle_options.h).
  std::vector<std::string> reads = {};

  // Fills options left at auto that become something else here than in other schemes. The head width is known.
  std::function<void(AttentionOptions* options)> set_defaults = nullptr;

  // Says why these options are impossible here, as a sentence with the way out; "" when they are not.
  std::function<std::string(const AttentionOptions& resolved)> why_not = nullptr;

  // Returns the width in which a query is compared with a key; null: the head width.
  std::function<int64_t(const AttentionOptions& resolved)> compared_width = nullptr;

  // Counts the dimensions, the last ones of what is compared, that rotary positions turn; null: all, or as many as
  // AttentionOptions::rotary_dimensions says, which other schemes refuse.
  std::function<int64_t(const AttentionOptions& resolved)> rotated_width = nullptr;

  // Names the sizes that only this scheme has, for people: "2 groups"; null or "": none.
  std::function<std::string(const AttentionOptions& resolved)> sizes = nullptr;

  // Collaborative key width R is one width that all heads share, which --key-width sets; other schemes derive theirs.
  bool shares_key_width = false;

  // This names the scheme whose trained weights this one computes with in another way, and which is trained in its
  // place; "": none.
  std::string weights_of = {};

  // This is the version of the checkpoints' format that brought the scheme (models/checkpoint.h).
  int64_t since = 1;
};

// Lists all schemes, in the order of help and tables. A record stays where it is until its AddedScheme ends.
std::vector<std::shared_ptr<const SchemeRecord>> scheme_records();
std::vector<std::string> scheme_names();

// The name as records spell it: "mhe_add" of "MHE-Add".
std::string canonical_scheme(std::string name);

// The scheme of that name, in any spelling of canonical_scheme(). Throws Error with the nearest name for an unknown
// one.
const SchemeRecord& scheme_record(const std::string& name);

// Lists the schemes that "all" and the names in the list stand for, in the registry's order. Throws Error for an empty
// list, and with the nearest name for an unknown one.
std::vector<std::string> chosen_schemes(const std::vector<std::string>& names);

// Tells whether a scheme is trained by itself, instead of computing with another scheme's weights. A name that is not
// in the list, which comes from somebody else's results, counts as trained.
bool is_trained(const std::string& scheme);

// Returns SchemeRecord::compared_width of the scheme that the options name.
int64_t compared_width(const AttentionOptions& resolved);

// Returns SchemeRecord::rotated_width of the scheme that the options name.
int64_t rotated_width(const AttentionOptions& resolved);

// Returns the option that names a scheme.
Field scheme_field(std::string* target, const std::string& help);

// Adds a scheme to the list while it lives: for tests, and for programs that bring a scheme of their own. Any thread
// may add one at any time; nobody may use the scheme after its AddedScheme has ended. Throws Error where the list has
// the name already.
class AddedScheme {
 public:
  explicit AddedScheme(SchemeRecord record);
  ~AddedScheme();
  AddedScheme(const AddedScheme&) = delete;
  AddedScheme& operator=(const AddedScheme&) = delete;

 private:
  const SchemeRecord* record_;
};

}  // namespace headshare
