#include "headshare/analyze/conversions.h"

#include <algorithm>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/convert/collaborative/widths.h"
#include "headshare/convert/shared_heads/conversion_record.h"

namespace headshare {
namespace {

// Returns parts of the full width, which is left out: it saves nothing.
std::vector<int64_t> default_widths(int64_t full, int64_t step) {
  std::vector<int64_t> widths = tried_widths(full, step, /*parts=*/4);
  std::erase_if(widths, [full](int64_t width) { return width >= full; });
  return widths;
}

std::vector<int64_t> widths_of(const ConversionSource& source) {
  std::vector<int64_t> widths =
      source.widths.empty() ? default_widths(source.full_width, key_width_step(source.attention)) : source.widths;
  std::sort(widths.begin(), widths.end(), std::greater<>());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  return widths;
}

// Throws Error where a collaborative model cannot have this width (to_collaborative).
void check_width(const ConversionSource& source, int64_t width) {
  HS_CHECK(width < source.full_width || !scheme_record(source.attention.scheme).shares_key_width,
           "the model is collaborative already, with key width ", source.full_width, "; give smaller --key-widths");
  HS_CHECK(width <= source.full_width, "key width ", width, " is above ", source.full_width,
           ", the widths of all heads together");
}

Conversion collaborative(const ConversionSource& source, int64_t width) {
  const AttentionOptions target = collaborative_options(source.attention, width, source.needed);
  // A sweep takes time in proportion to the width.
  constexpr double kWork = 20;
  return {
      .scheme = target.scheme,
      .name = join_text(target.scheme, " ", width),
      .command = join_text("--to ", target.scheme, " --key-width ", width),
      .impossible = {},
      .attention = target,
      .work = 1 + kWork * static_cast<double>(width) / static_cast<double>(source.full_width),
      .fill = [](const ConversionLayer& layer, Scheme* filled) {
        return LayerCost{
            .scores = fill_collaborative(layer.maps, layer.inputs, layer.decomposition, layer.progress, filled).error};
      }};
}

Conversion shared(const ConversionSource& source, const SharedScheme& to) {
  const std::string name = name_of(to);
  Conversion made{.scheme = to.scheme, .name = name, .command = "--to " + name, .impossible = {}};
  try {
    made.attention = converted_options(source.attention, to, source.needs_biases);
  } catch (const Error& error) {
    made.impossible = error.what();
    return made;
  }
  made.fill = [pooling = to.pooling](const ConversionLayer& layer, Scheme* filled) {
    const SharedError error = fill_shared({.maps = layer.maps,
                                           .inputs = layer.inputs,
                                           .pooling = pooling,
                                           .decomposition = layer.decomposition,
                                           .progress = layer.progress,
                                           .other_poolings = false},
                                          filled)
                                  .error;
    return LayerCost{.scores = error.scores, .values = error.values};
  };
  return made;
}

// Returns what one conversion can make of layers of `source`: for gqa one entry for each number of groups, for
// shared_query one for each map.
std::vector<SharedScheme> targets_of(const ConversionRecord& conversion, const AttentionOptions& source) {
  std::vector<SharedScheme> all;
  if (conversion.variants) {
    for (const std::string& variant : conversion.variants->all) {
      all.push_back({.scheme = conversion.scheme, .variant = variant});
    }
    return all;
  }
  if (!conversion.size) return {{.scheme = conversion.scheme}};
  for (const int64_t size : conversion.size->worth_trying(source)) {
    all.push_back({.scheme = conversion.scheme, .size = size});
  }
  return all;
}

bool is_already(const AttentionOptions& source, const ConversionRecord& conversion, const SharedScheme& to) {
  return source.scheme == to.scheme && (!to.size || conversion.size->value(source) == to.size) &&
         (to.variant.empty() || conversion.variants->value(source) == to.variant);
}

}  // namespace

std::vector<Conversion> conversions(const ConversionSource& source) {
  std::vector<Conversion> all;
  for (const int64_t width : widths_of(source)) {
    check_width(source, width);
    all.push_back(collaborative(source, width));
  }
  for (const auto& one : conversion_records()) {
    for (const SharedScheme& to : targets_of(*one, source.attention)) {
      if (!is_already(source.attention, *one, to)) all.push_back(shared(source, to));
    }
  }
  return all;
}

}  // namespace headshare
