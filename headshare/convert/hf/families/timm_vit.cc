#include "headshare/convert/hf/families/timm_vit.h"

#include <map>
#include <regex>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/convert/hf/tensor_places.h"
#include "headshare/models/vision_options.h"

namespace headshare {
namespace {

struct TimmSize {
  int64_t width, heads, layers;
};

// A TimmArchitecture has the parts of a name such as deit_tiny_distilled_patch16_224.fb_in1k.
struct TimmArchitecture {
  TimmSize size;
  bool distils;
  std::string patch_size, image_size;
};

TimmArchitecture read_architecture(const HfConfig& config) {
  static const std::map<std::string, TimmSize> sizes = {
      {"tiny", {192, 3, 12}}, {"small", {384, 6, 12}}, {"base", {768, 12, 12}}, {"large", {1024, 16, 24}}};
  static const std::regex form(
      "(vit_(tiny|small|base|large)|deit_(tiny|small|base)(_distilled)?)_patch([0-9]{1,4})_([0-9]{1,5})([.].{0,200})?");
  const std::string where = config.config_key("architecture");
  const std::string& name = json_string(config.value("architecture"), where);
  std::smatch parts;
  HS_CHECK(std::regex_match(name, parts, form), where, " is ", brief_text(name),
           "; of timm headshare reads vit_tiny_patch16_224 and its like: vit_ and deit_ of the sizes tiny, small, base "
           "and large (vit_ alone), and deit_..._distilled");
  const std::string size = parts[2].matched ? parts[2].str() : parts[3].str();
  return {sizes.at(size), parts[4].matched, parts[5].str(), parts[6].str()};
}

// Maps the keys of model_args to the options of ours that they set.
const std::map<std::string, std::string>& argument_names() {
  static const std::map<std::string, std::string> names = {{"img_size", "image-size"}, {"patch_size", "patch-size"},
                                                           {"in_chans", "channels"},   {"embed_dim", "d-model"},
                                                           {"depth", "layers"},        {"num_heads", "heads"}};
  return names;
}

nlohmann::json object_at(const HfConfig& config, const char* key) {
  const nlohmann::json& value = config.value(key);
  if (value.is_null()) return nlohmann::json::object();
  HS_CHECK(value.is_object(), config.config_key(key), " is ", brief_json(value), ", which is no JSON object");
  return value;
}

bool has_query_biases(const HfConfig& config) {
  const nlohmann::json arguments = object_at(config, "model_args");
  return !arguments.contains("qkv_bias") || json_bool(arguments, "qkv_bias", config.config_key("model_args"));
}

void read_arguments(const HfConfig& config, VisionOptions* options) {
  const std::string where = config.config_key("model_args");
  Fields list = stored_fields(*options);
  const nlohmann::json arguments = object_at(config, "model_args");
  for (const auto& [key, value] : arguments.items()) {
    if (key == "qkv_bias") continue;
    const auto ours = argument_names().find(key);
    HS_CHECK(ours != argument_names().end(), where, " sets ", brief_text(key), " to ", brief_json(value),
             ", which headshare does not read");
    set_field(list, ours->second, field_text(value, where), where);
  }
}

VisionOptions read_timm(const HfConfig& config) {
  const TimmArchitecture architecture = read_architecture(config);
  const nlohmann::json& pooling = config.value("global_pool");
  HS_CHECK(pooling.is_null() || pooling == "token", config.config_key("global_pool"), " is ", brief_json(pooling),
           "; headshare reads models of timm whose head reads the class token");
  VisionOptions options;
  options.layers = architecture.size.layers;
  options.attention.d_model = architecture.size.width;
  options.attention.heads = architecture.size.heads;
  options.classes = 1000;
  if (architecture.distils) options.distillation_token = DistillationToken::kWithHead;
  Fields list = stored_fields(options);
  set_field(list, "patch-size", architecture.patch_size, config.config_key("architecture"));
  set_field(list, "image-size", architecture.image_size, config.config_key("architecture"));
  read_keys(config, {{"num_classes", "classes"}}, stored_fields(options));
  read_arguments(config, &options);
  if (options.classes == 0 && architecture.distils) options.distillation_token = DistillationToken::kWithoutHead;
  return options;
}

// Returns the numbers of pretrained_cfg; none where they are of another number of channels.
std::vector<double> pixel_numbers(const nlohmann::json& from, const char* key, const VisionOptions& options) {
  const nlohmann::json list = from.value(key, nlohmann::json());
  if (!list.is_array() || static_cast<int64_t>(list.size()) != options.channels) return {};
  std::vector<double> numbers;
  for (const nlohmann::json& one : list) {
    if (one.is_number()) numbers.push_back(one.get<double>());
  }
  return numbers;
}

// Says where images were cut or resized in another way than headshare's.
void note_resizing(const nlohmann::json& trained, const std::string& where, const VisionOptions& options,
                   std::vector<std::string>* notes) {
  const nlohmann::json share = trained.value("crop_pct", nlohmann::json());
  if (share.is_number() && share.get<double>() != 1) {
    notes->push_back(join_text(where, ": crop_pct is ", share.get<double>(),
                               ": timm cuts that share out of the middle of an image; headshare resizes the shorter "
                               "side to ",
                               options.image_size));
  }
  const auto note_other_than = [&](const char* ours, const char* key, const char* does) {
    const nlohmann::json value = trained.value(key, nlohmann::json());
    if (!value.is_string() || value == ours) return;
    notes->push_back(join_text(where, ": ", key, " is ", brief_text(value.get<std::string>()), "; headshare ", does));
  };
  note_other_than("bilinear", "interpolation", "resizes bilinearly");
  note_other_than("center", "crop_mode", "resizes the shorter side and cuts the middle out");
}

void read_images(const HfConfig& config, VisionOptions* options, std::vector<std::string>* notes) {
  const nlohmann::json trained = object_at(config, "pretrained_cfg");
  options->images.mean = pixel_numbers(trained, "mean", *options);
  options->images.deviation = pixel_numbers(trained, "std", *options);
  if (options->images.mean.empty() || options->images.deviation.empty()) {
    options->images.mean.clear();
    options->images.deviation.clear();
    notes->push_back(join_text(config.config_key("pretrained_cfg"), " has no mean and std for ", options->channels,
                               " channels: pixels are read as numbers from 0 to 1"));
  }
  note_resizing(trained, config.config_key("pretrained_cfg"), *options, notes);
  const nlohmann::json& names = config.value("label_names");
  if (!names.is_array() || static_cast<int64_t>(names.size()) != options->classes) return;
  for (const nlohmann::json& one : names) {
    options->images.labels.push_back(json_string(one, config.config_key("label_names")));
  }
}

TensorPlaces timm_places(const VisionOptions& o, bool biased) {
  const int64_t E = o.attention.d_model;
  TensorPlaces places = {{.theirs = "cls_token", .ours = "class_token", .shape = {1, 1, E}},
                         {.theirs = "pos_embed", .ours = "position_embedding", .shape = {1, o.context, E}},
                         {.theirs = "patch_embed.proj.weight",
                          .ours = "patch_embedding.projection.weight",
                          .shape = {E, o.channels, o.patch_size, o.patch_size}},
                         {.theirs = "patch_embed.proj.bias", .ours = "patch_embedding.projection.bias"}};
  if (o.distillation_token != DistillationToken::kNone) {
    places.push_back({.theirs = "dist_token", .ours = "distillation_token", .shape = {1, 1, E}});
  }
  for (int64_t layer = 0; layer < o.layers; ++layer) {
    const std::string theirs = join_text("blocks.", layer, ".attn.qkv");
    const char* const parts[] = {"query", "key", "value"};
    for (int64_t part = 0; part < 3; ++part) {
      const std::string ours = join_text("blocks.", layer, ".attention.scheme.", parts[part]);
      places.push_back(
          {.theirs = theirs + ".weight", .ours = ours + ".weight", .part = part, .parts = 3, .stacked = true});
      if (biased) {
        places.push_back(
            {.theirs = theirs + ".bias", .ours = ours + ".bias", .part = part, .parts = 3, .stacked = true});
      } else {
        places.push_back({.theirs = "", .ours = ours + ".bias"});
      }
    }
  }
  add_blocks("blocks.",
             {{"attn.proj", "attention.scheme.output"},
              {"norm1", "attention_norm"},
              {"norm2", "feed_forward_norm"},
              {"mlp.fc1", "feed_forward.expand"},
              {"mlp.fc2", "feed_forward.contract"}},
             o.layers, &places);
  add_pair("norm", "norm", &places);
  if (o.classes > 0) add_pair("head", "head", &places);
  if (o.distillation_token == DistillationToken::kWithHead) add_pair("head_dist", "distillation_head", &places);
  return places;
}

HfShape timm_shape(const HfConfig& config, const std::string& type) {
  HfShape shape{.options = resolve_read(config, read_timm(config)), .model_type = type};
  const TransformerOptions& o = shape.options.common();
  if (!has_query_biases(config)) shape.counts.zero_biases = 3 * o.layers * o.attention.d_model;
  return shape;
}

ForeignModel open_timm(const std::shared_ptr<const HfDirectory>& directory) {
  // transformers saves such a model with its own prefix.
  HfMapping mapping(directory, without_prefix("timm_model."));
  ForeignModel foreign;
  VisionOptions options = read_timm(*directory);
  read_images(*directory, &options, &foreign.notes);
  options = resolve_read(*directory, options);
  foreign.options = options;
  take_places(timm_places(options, has_query_biases(*directory)), options, &mapping);
  mapping.finish("model of timm", &foreign);
  return foreign;
}

}  // namespace

HfModelType timm_type() {
  return {.name = kTimmType,
          .models = {"timm's ViT", "timm's DeiT"},
          .kind = "vision-transformer",
          .shape = timm_shape,
          .open = open_timm};
}

}  // namespace headshare
