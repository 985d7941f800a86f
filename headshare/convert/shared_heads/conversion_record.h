// A conversion record says how a trained layer becomes one of a scheme whose heads share maps. It is written once,
// beside the code that fills such a layer. `convert`, `analyze` and their help read this list: a conversion is its
// fill_NAME.cc and a line in conversions.inc.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headshare/convert/collaborative/fill_scheme.h"
#include "headshare/convert/shared_heads/shared_layer.h"

namespace headshare {

class SharingProblem;

// The number that a user may write behind a scheme, such as the groups in "gqa:4": an option of the scheme.
struct ConversionSize {
  std::string name;  // "groups"

  std::function<std::optional<int64_t>(const AttentionOptions&)> value;

  // Throws Error for a size that a layer cannot have; d_model, heads and head_width of `target` are known.
  std::function<void(int64_t size, AttentionOptions* target)> set;

  // The sizes that `analyze` tries on layers of these options, in the order of its tables.
  std::function<std::vector<int64_t>(const AttentionOptions& source)> worth_trying;
};

struct ConversionRecord {
  std::string scheme;  // what the layer becomes

  // Sets every weight of a layer of this scheme.
  std::function<void(const SharingProblem&, const SharingTask&, SchemeFiller*)> fill = nullptr;

  // The number of groups of neighbouring heads that share one key map and one value map. Maps of a group can be pooled
  // in several ways (Pooling). null: heads are not pooled.
  std::function<int64_t(const AttentionOptions& target)> groups = nullptr;

  // nothing: a user has nothing to choose.
  std::optional<ConversionSize> size = {};

  // Iterations fill it (decompose()), which can be stopped, unless positions are rotary. Other conversions have one
  // best answer.
  bool iterates = false;

  // One map serves as key and value.
  bool keys_are_values = false;
};

// All conversions, in the order of help and tables. A record stays where it is until its AddedConversion ends.
std::vector<std::shared_ptr<const ConversionRecord>> conversion_records();

// The conversion to this scheme, in any spelling of canonical_scheme(). Throws Error where trained layers cannot become
// such layers.
const ConversionRecord& conversion_record(const std::string& scheme);

// Adds a conversion to the list while it lives, as AddedScheme does for schemes.
class AddedConversion {
 public:
  explicit AddedConversion(ConversionRecord record);
  ~AddedConversion();
  AddedConversion(const AddedConversion&) = delete;
  AddedConversion& operator=(const AddedConversion&) = delete;

 private:
  const ConversionRecord* record_;
};

}  // namespace headshare
