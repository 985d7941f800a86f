#include "headshare/convert/hf/families/vit.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/convert/hf/families/encoder_tensors.h"
#include "headshare/convert/hf/preprocessor.h"
#include "headshare/convert/hf/tensor_places.h"
#include "headshare/convert/hf/written_config.h"
#include "headshare/models/transformer.h"
#include "headshare/models/vision.h"

namespace headshare {
namespace {

constexpr const char* kPositions = "position_embedding";

// A VisionFamily says what tells ViT and DeiT apart.
struct VisionFamily {
  std::string type;  // "vit", and the prefix of tensors
  std::string name;  // "ViT", with which the names of its classes begin
  bool distils;      // there is a distillation token
};

VisionFamily family_of(const std::string& type) {
  return type == "deit" ? VisionFamily{"deit", "DeiT", true} : VisionFamily{"vit", "ViT", false};
}

const std::vector<HfKey>& vit_keys() {
  static const std::vector<HfKey> keys = with_block_keys({{"num_channels", "channels"}});
  return keys;
}

// Sets a side in pixels; transformers also takes a list of height and width.
void read_side(const HfConfig& config, const char* key, const char* ours, VisionOptions* options) {
  nlohmann::json value = config.value(key);
  if (value.is_null()) return;
  const std::string where = config.config_key(key);
  if (value.is_array()) {
    HS_CHECK(value.size() == 2 && value[0] == value[1], where, " is ", brief_json(value),
             "; headshare reads square images in square patches");
    value = nlohmann::json(value[0]);
  }
  Fields list = fields(*options);
  set_field(list, ours, field_text(value, where), where);
}

void check_classes(const HfConfig& config) {
  const nlohmann::json& type = config.value("problem_type");
  HS_CHECK(type.is_null() || type == "single_label_classification", config.config_key("problem_type"), " is ",
           brief_json(type), "; headshare's vision transformers tell classes that exclude each other");
}

// Reads the options of the configuration, but for heads.
VisionOptions read_vision_options(const HfConfig& config, const VisionFamily& family) {
  refuse_what_we_lack(config);
  std::vector<std::string> classes = {family.name + "Model", family.name + "ForImageClassification"};
  if (family.distils) classes.push_back(family.name + "ForImageClassificationWithTeacher");
  refuse_other_classes(config, classes);
  refuse_causal_encoder(config, family.name);
  VisionOptions options;
  options.layers = 12;
  options.attention.d_model = 768;
  options.attention.heads = 12;
  options.feed_forward_width = 3072;
  options.norm_epsilon = 1e-12;
  read_keys(config, vit_keys(), stored_fields(options));
  read_keys(config, {{"head_dim", "head-width"}}, stored_fields(options));
  read_side(config, "image_size", "image-size", &options);
  read_side(config, "patch_size", "patch-size", &options);
  // Where patches do not fill the image, theirs leaves the rest out at the lower and the right edge.
  HS_CHECK(options.image_size >= options.patch_size && options.image_size % options.patch_size == 0,
           config.config_key("image_size"), " is ", options.image_size, " and patch_size ", options.patch_size,
           ": patches must fill the image");
  options.activation = read_activation(config, "hidden_act", ActivationKind::kGeluErf);
  if (family.distils) options.distillation_token = DistillationToken::kWithoutHead;
  return options;
}

void set_classes(const HfConfig& config, bool with_teacher, VisionOptions* options) {
  check_classes(config);
  TaskHeadOptions head = read_classes(config);
  options->classes = head.outputs;
  options->images.labels = std::move(head.labels);
  if (with_teacher) options->distillation_token = DistillationToken::kWithHead;
}

// Maps the projections of a layer; without qkv_bias a model has no biases there.
TensorPlaces query_key_value_places(const std::string& theirs, const std::string& ours, bool biased) {
  TensorPlaces places;
  for (const char* part : {"query", "key", "value"}) {
    const std::string name = theirs + "attention.attention." + part, own = ours + "attention.scheme." + part;
    places.push_back({.theirs = name + ".weight", .ours = own + ".weight"});
    places.push_back({.theirs = biased ? name + ".bias" : "", .ours = own + ".bias"});
  }
  return places;
}

// Maps every tensor of ours to its name without the prefix "vit." or "deit.".
TensorPlaces vision_places(const VisionOptions& o, bool biased) {
  const int64_t E = o.attention.d_model;
  TensorPlaces places = {{.theirs = "embeddings.cls_token", .ours = "class_token", .shape = {1, 1, E}}};
  if (o.distillation_token != DistillationToken::kNone) {
    places.push_back({.theirs = "embeddings.distillation_token", .ours = "distillation_token", .shape = {1, 1, E}});
  }
  places.push_back({.theirs = "embeddings.position_embeddings", .ours = kPositions, .shape = {1, o.context, E}});
  places.push_back({.theirs = "embeddings.patch_embeddings.projection.weight",
                    .ours = "patch_embedding.projection.weight",
                    .shape = {E, o.channels, o.patch_size, o.patch_size}});
  places.push_back(
      {.theirs = "embeddings.patch_embeddings.projection.bias", .ours = "patch_embedding.projection.bias"});
  for (int64_t layer = 0; layer < o.layers; ++layer) {
    const std::string theirs = join_text("encoder.layer.", layer, "."), ours = join_text("blocks.", layer, ".");
    for (TensorPlace& one : query_key_value_places(theirs, ours, biased)) places.push_back(std::move(one));
  }
  add_blocks("encoder.layer.",
             {{"attention.output.dense", "attention.scheme.output"},
              {"layernorm_before", "attention_norm"},
              {"layernorm_after", "feed_forward_norm"},
              {"intermediate.dense", "feed_forward.expand"},
              {"output.dense", "feed_forward.contract"}},
             o.layers, &places);
  add_pair("layernorm", "norm", &places);
  if (o.classes == 0) return places;
  const bool with_teacher = o.distillation_token == DistillationToken::kWithHead;
  add_pair(with_teacher ? "cls_classifier" : "classifier", "head", &places);
  if (with_teacher) add_pair("distillation_classifier", "distillation_head", &places);
  return places;
}

void leave_parts_out(HfMapping* mapping, std::vector<std::string>* notes) {
  if (mapping->has("pooler.dense.weight")) {
    notes->push_back("the pooler (pooler.dense) is left out: heads read the class token itself");
  }
  if (mapping->has("embeddings.mask_token")) {
    notes->push_back("the token of masked patches (embeddings.mask_token) is left out: headshare masks none");
  }
  for (const char* name : {"pooler.dense.weight", "pooler.dense.bias", "embeddings.mask_token"}) {
    mapping->leave_out(name);
  }
}

ForeignModel open_vision(const std::shared_ptr<const HfDirectory>& directory) {
  const VisionFamily family = family_of(directory->value("model_type").get<std::string>());
  HfMapping mapping(directory, without_prefix(family.type + "."));
  VisionOptions options = read_vision_options(*directory, family);
  const bool with_teacher = mapping.has("distillation_classifier.weight");
  if (with_teacher || mapping.has("classifier.weight")) set_classes(*directory, with_teacher, &options);
  ForeignModel foreign;
  read_preprocessor(directory->path(), &options, &foreign.notes);
  options = resolve_read(*directory, options);
  foreign.options = options;
  take_places(vision_places(options, directory->flag("qkv_bias", true)), options, &mapping);
  leave_parts_out(&mapping, &foreign.notes);
  mapping.finish(family.name, &foreign);
  return foreign;
}

HfShape vision_shape(const HfConfig& config, const std::string& type) {
  const VisionFamily family = family_of(type);
  VisionOptions options = read_vision_options(config, family);
  const std::string name = config.architecture().value_or(family.name + "Model");
  if (name != family.name + "Model") set_classes(config, name.ends_with("WithTeacher"), &options);
  HfShape shape{.options = resolve_read(config, options), .model_type = type};
  if (!config.flag("qkv_bias", true)) {
    const AttentionOptions& attention = shape.options.common().attention;
    shape.counts.zero_biases = 3 * options.layers * attention.heads * *attention.head_width;
  }
  if (options.classes == 0) shape.notes = {"the count of parameters has no head (" + name + "), and no pooler"};
  return shape;
}

std::vector<std::string> vision_objections(const VisionOptions& o, const VisionFamily& family) {
  const std::string no_place = ", which " + family.name + " has no place for; only headshare reads such a model";
  const bool has_token = o.distillation_token != DistillationToken::kNone;
  const Objections all = {
      {has_token != family.distils, family.distils
                                        ? "the model has no distillation token, and DeiT always has one"
                                        : "the model has a distillation token (--distillation-token)" + no_place},
      {o.attention.scheme != "mha", "the model's attention is " + o.attention.scheme + no_place +
                                        "; a vision transformer of scheme mha can be written"},
      {o.pooling != ImagePooling::kClassToken, "the model's head reads the mean of the patches (--pooling)" + no_place},
      {o.norms != NormPlacement::kBefore, "the model's norms stand after its parts (--norms post)" + no_place},
      {o.norm != NormKind::kLayer,
       "the model's norms are of another kind than " + family.name + "'s (--norm rms)" + no_place},
      {o.feed_forward != FeedForwardKind::kPlain, "the model's feed-forward part is gated" + no_place},
      {o.layer_groups.has_value(), "the model's layers share their parameters (--layer-groups)" + no_place},
      {o.attention.qk_norm, "the model norms queries and keys (--qk-norm)" + no_place},
      {o.attention.content_bias, "the model has a content bias (--content-bias)" + no_place}};
  return raised(all, why_not_usual_heads(o.attention, "the model", no_place));
}

std::vector<std::string> vit_objections(const ModelOptions& options) {
  return vision_objections(options.as<VisionOptions>(), family_of("vit"));
}
std::vector<std::string> deit_objections(const ModelOptions& options) {
  return vision_objections(options.as<VisionOptions>(), family_of("deit"));
}

// Returns the model with the parameters that it lacks and that compute nothing: biases of 0, a table of positions.
ModelToWrite in_vision_form(ModelToWrite model) {
  const auto& o = model.options.as<VisionOptions>();
  model.tensors = with_zero_biases(std::move(model.tensors));
  if (o.positions == PositionKind::kSinusoidal) {
    model.tensors[kPositions] = sinusoids(o.context, o.attention.d_model);
  } else if (o.positions == PositionKind::kNone) {
    model.tensors[kPositions] = at::zeros({o.context, o.attention.d_model});
  }
  return model;
}

std::string class_to_write(const VisionOptions& o, const VisionFamily& family) {
  if (o.classes == 0) return family.name + "Model";
  const bool with_teacher = o.distillation_token == DistillationToken::kWithHead;
  return family.name + "ForImageClassification" + (with_teacher ? "WithTeacher" : "");
}

HfContent vision_content(const ModelToWrite& model) {
  const auto& o = model.options.as<VisionOptions>();
  const VisionFamily family = family_of(o.distillation_token == DistillationToken::kNone ? "vit" : "deit");
  HfContent content;
  content.tensors =
      fill_places(vision_places(o, /*biased=*/true), in_vision_form(model), o.classes > 0 ? family.type + "." : "",
                  {"classifier.", "cls_classifier.", "distillation_classifier."});
  content.config = begin_config(family.type, class_to_write(o, family), vit_keys(), o);
  content.config.erase("tie_word_embeddings");
  content.config["image_size"] = o.image_size;
  content.config["patch_size"] = o.patch_size;
  content.config["qkv_bias"] = true;
  content.config["hidden_act"] = activation_name(o.activation);
  add_class_names(o.images.labels, o.classes, &content.config);
  content.preprocessor = written_preprocessor(o);
  return content;
}

}  // namespace

HfModelType vit_type() {
  return {.name = "vit",
          .models = {"ViT"},
          .kind = "vision-transformer",
          .shape = vision_shape,
          .open = open_vision,
          .objections = vit_objections,
          .content = vision_content};
}

HfModelType deit_type() {
  return {.name = "deit",
          .models = {"DeiT"},
          .kind = "vision-transformer",
          .shape = vision_shape,
          .open = open_vision,
          .objections = deit_objections,
          .content = vision_content};
}

}  // namespace headshare
