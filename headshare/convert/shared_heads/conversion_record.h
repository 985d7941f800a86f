// A conversion record says how a trained layer becomes one of a scheme whose heads share maps. It is written once,
// beside the code that fills such a layer. `convert`, `analyze` and their help read this list: a conversion is its
// fill_NAME.cc and a line in conversions.inc.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headshare/convert/collaborative/fill_scheme.h"
#include "headshare/convert/shared_heads/layer_sizes.h"
#include "headshare/convert/shared_heads/shared_layer.h"

namespace headshare {

class SharingProblem;

// The number that a user may write behind a scheme, such as the groups in "gqa:4": an option of the scheme.
struct ConversionSize {
  std::string name;  // "groups"
  std::string what;  // what it is: "number of groups"

  std::function<std::optional<int64_t>(const AttentionOptions&)> value;

  // Throws Error for a size that a layer cannot have; d_model, heads and head_width of `target` are known.
  std::function<void(int64_t size, AttentionOptions* target)> set;

  // The sizes that `analyze` tries on layers of these options, in the order of its tables. null: of variants it tries
  // each as it is for new models.
  std::function<std::vector<int64_t>(const AttentionOptions& source)> worth_trying = nullptr;
};

// The kinds of layers of one scheme, one of which a user may name behind it, such as the map in "shared_query:complex".
// A size may follow.
struct ConversionVariants {
  std::string name;  // "map"
  std::vector<std::string> all;

  std::function<std::string(const AttentionOptions&)> value;

  // `variant` is one of `all`.
  std::function<void(const std::string& variant, AttentionOptions* target)> set;
};

// Layers of one model may differ in size.
struct LayerSizes {
  // The errors of the conversion at any size; the size of the problem's target does not matter.
  std::function<ErrorsBySize(const SharingProblem&)> errors;

  // Sets the size of each layer in the options of all.
  std::function<void(const std::vector<int64_t>& sizes, AttentionOptions* target)> set;
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
  std::optional<ConversionVariants> variants = {};
  std::optional<LayerSizes> layer_sizes = {};

  // Sets what a layer in the place of `source`, resolved, has besides. Throws Error where there is no such layer. null:
  // it has nothing.
  std::function<void(const AttentionOptions& source, AttentionOptions* target)> prepare = nullptr;

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
