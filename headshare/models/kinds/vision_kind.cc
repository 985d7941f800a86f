// Vision transformers tell the classes of images.
#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/models/count_layers.h"
#include "headshare/models/model_kind.h"
#include "headshare/models/vision.h"

namespace headshare {
namespace {

constexpr const char* kImages = "images";
constexpr int64_t kVisionSince = 13;
constexpr int64_t kImageNetClasses = 1000;

// Returns a list of numbers or texts, which config.json has under `key`.
template <class Value>
std::vector<Value> list_of(const nlohmann::json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  HS_CHECK(found != object.end() && found->is_array(), where, " has no list \"", key, "\": it is damaged");
  std::vector<Value> list;
  for (const nlohmann::json& one : *found) {
    const bool fits = std::is_same_v<Value, std::string> ? one.is_string() : one.is_number();
    HS_CHECK(fits, where, ": \"", key, "\" has ", brief_json(one), ", which is no ",
             std::is_same_v<Value, std::string> ? "text" : "number");
    list.push_back(one.get<Value>());
  }
  return list;
}

class VisionKind : public ModelKindOf<VisionOptions, VisionTransformer> {
 public:
  std::string name() const override { return "vision-transformer"; }
  std::string title(const ModelOptions& options) const override {
    const auto& o = options.as<VisionOptions>();
    return o.classes == 0 ? "vision transformer without a head"
                          : join_text("image classifier of ", o.classes, " classes");
  }
  std::string what_it_does(const ModelOptions&) const override {
    return "a vision transformer, which tells the classes of images (`headshare predict`)";
  }
  std::string needed() const override {
    return "a vision transformer is needed here, as `headshare train --task image` makes it";
  }
  int64_t since(const ModelOptions&) const override { return kVisionSince; }
  bool reads_text() const override { return false; }
  std::vector<std::pair<std::string, int64_t>> input_sizes(const ModelOptions& options) const override {
    const auto& o = options.as<VisionOptions>();
    return {{"image-size", o.image_size},
            {"patch-size", o.patch_size},
            {"channels", o.channels},
            {"classes", o.classes},
            {"tokens", image_tokens(o)}};
  }

  Fields own_fields(ModelOptions& options) const override {
    auto& own = options.as<VisionOptions>();
    Fields list = {norms_field(&own.norms)};
    append(&list, headshare::fields(static_cast<VisionParts&>(own)));
    list.push_back(
        field("classes", &own.classes, "classes that the head tells apart; 0: no head", {.min = 0, .max = 1 << 20}));
    return list;
  }
  ModelOptions costed() const override {
    VisionOptions options;
    options.classes = kImageNetClasses;
    return options;
  }

  void note_more(const ModelOptions& options, nlohmann::json* config) const override {
    const ImageLabels& images = options.as<VisionOptions>().images;
    (*config)[kImages] = {{"labels", images.labels}, {"mean", images.mean}, {"deviation", images.deviation}};
  }
  void take_more(const nlohmann::json& config, const std::string& where, ModelOptions* options) const override {
    const auto found = config.find(kImages);
    if (found == config.end()) return;
    const std::string place = join_text(where, ": ", kImages);
    HS_CHECK(found->is_object(), place, " is no JSON object: it is damaged");
    options->as<VisionOptions>().images = {.labels = list_of<std::string>(*found, "labels", place),
                                           .mean = list_of<double>(*found, "mean", place),
                                           .deviation = list_of<double>(*found, "deviation", place)};
  }

  ModelSize measure(const ModelOptions& resolved) const override {
    const auto& o = resolved.as<VisionOptions>();
    ModelSize size = count_layers<VisionTransformer>(o);
    size.embedding_parameters = (o.channels * o.patch_size * o.patch_size + 1) * o.attention.d_model;
    return size;
  }
};

}  // namespace

template <>
const ModelKind& kind_of<VisionOptions>() {
  static const VisionKind kind;
  return kind;
}

}  // namespace headshare
