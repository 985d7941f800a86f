#include "headshare/report/analysis/analysis_json.h"

namespace headshare {
namespace {

using Json = nlohmann::ordered_json;

template <class Number>
Json number_or_null(const std::optional<Number>& value) {
  return value ? Json(*value) : Json();
}

Json to_json(const Spectrum& spectrum) {
  return {{"dimensions", spectrum.dimensions},
          {"dimensions_for_90_percent", spectrum.width_for(kEnergyShare)},
          {"dimensions_per_value", spectrum.value_dimensions},
          {"singular_values", spectrum.values},
          {"energy_shares", spectrum.shares()}};
}

Json to_json(const LayerAnalysis& layer) {
  if (layer.heads.empty()) {
    return {{"layer", layer.layer},        {"joint", nullptr},
            {"stacked", nullptr},          {"heads", Json::array()},
            {"score_map_cosine", nullptr}, {"attention_similarity", nullptr}};
  }
  Json heads = Json::array();
  for (const Spectrum& one : layer.heads) heads.push_back(to_json(one));
  return {{"layer", layer.layer},
          {"joint", to_json(layer.joint)},
          {"stacked", to_json(layer.stacked)},
          {"heads", heads},
          {"score_map_cosine", layer.weights},
          {"attention_similarity", layer.maps.empty() ? Json() : Json(layer.maps)}};
}

Json sizes(const ConversionAnalysis& row) {
  return {{"parameters", row.size.total_parameters},
          {"attention_parameters", row.size.attention_parameters},
          {"cache_bytes_per_token", row.size.cache_bytes_per_token},
          {"milliseconds", number_or_null(row.milliseconds)}};
}

Json to_json(const ConversionAnalysis& row) {
  Json made = {{"scheme", row.scheme}, {"name", row.name}, {"convert", nullptr}};
  if (!row.command.empty()) made["convert"] = row.command;
  if (!row.impossible.empty()) {
    made["impossible"] = row.impossible;
    return made;
  }
  made.update({{"error", {{"scores", number_or_null(row.scores())}, {"values", number_or_null(row.values())}}},
               {"output_change", number_or_null(row.output())}});
  made.update(sizes(row));
  Json layers = Json::array();
  for (const LayerCost& one : row.layers) {
    layers.push_back(
        {{"error", {{"scores", one.scores}, {"values", one.values}}}, {"output_change", number_or_null(one.output)}});
  }
  made["layers"] = layers;
  return made;
}

Json to_json(const LookedAtImage& image) {
  Json layers = Json::array();
  for (const auto& heads : image.layers) {
    Json layer = Json::array();
    for (const HeadLook& look : heads) layer.push_back({{"tokens", look.tokens}, {"patches", look.patches}});
    layers.push_back(std::move(layer));
  }
  return {{"image", image.name}, {"rows", image.rows}, {"columns", image.columns}, {"layers", layers}};
}

}  // namespace

Json to_json(const HeadAnalysis& analysis) {
  Json layers = Json::array();
  for (const LayerAnalysis& one : analysis.layer) layers.push_back(to_json(one));
  Json conversions = Json::array();
  for (const ConversionAnalysis& one : analysis.conversions) conversions.push_back(to_json(one));
  Json made = {
      {"format", "headshare-analysis"},
      {"version", 1},
      {"model", analysis.model},
      {"kind", analysis.kind},
      {"scheme", analysis.scheme},
      {"depth", analysis.depth},
      {"heads", analysis.heads},
      {"head_width", analysis.head_width},
      {"full_key_width", analysis.full_key_width},
      {"rotary", analysis.rotary},
      {"text", analysis.text},
      {"text_tokens", analysis.text_tokens},
      {"map_tokens", analysis.map_tokens},
      {"iterations", analysis.iterations},
      {"timed_tokens", analysis.timed_tokens},
      {"busy_machine", analysis.busy},
      {"score_maps_of", !analysis.has_spectra() ? Json() : Json(analysis.refusal.empty() ? "weights" : "text")},
      {"refusal", analysis.refusal.empty() ? Json() : Json(analysis.refusal)},
      {"before", sizes(analysis.before)},
      {"conversions", conversions},
      {"layers", layers}};
  for (const LookedAtImage& one : analysis.images) made["images"].push_back(to_json(one));
  return made;
}

}  // namespace headshare
