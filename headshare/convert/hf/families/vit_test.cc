#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <set>

#include "headshare/base/json/json_input.h"
#include "headshare/base/rng.h"
#include "headshare/convert/export.h"
#include "headshare/convert/formats.h"
#include "headshare/convert/hf/shape.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace {

namespace vit_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kE = 8, kF = 10, kImage = 6, kPatch = 3, kLayers = 2;

// A ViTForImageClassification as transformers saves it, or a DeiT of any class.
struct FakeVit {
  nlohmann::json config;
  nlohmann::json preprocessor = {
      {"image_mean", {0.5, 0.25}}, {"image_std", {0.5, 1.0}}, {"size", {{"shortest_edge", 6}}}};
  NamedTensors tensors;
  std::string prefix;

  explicit FakeVit(const std::string& type = "vit", const std::string& name = "ViTForImageClassification")
      : config({{"model_type", type},
                {"architectures", {name}},
                {"hidden_size", kE},
                {"num_hidden_layers", kLayers},
                {"num_attention_heads", 2},
                {"intermediate_size", kF},
                {"image_size", kImage},
                {"patch_size", kPatch},
                {"num_channels", 2},
                {"id2label", {{"0", "cat"}, {"1", "dog, or wolf"}, {"2", "fish"}}}}),
        prefix(name.ends_with("Model") ? "" : type + ".") {
    const bool distils = type == "deit";
    put(prefix + "embeddings.cls_token", {1, 1, kE});
    if (distils) put(prefix + "embeddings.distillation_token", {1, 1, kE});
    put(prefix + "embeddings.position_embeddings", {1, distils ? 6 : 5, kE});
    put_pair(prefix + "embeddings.patch_embeddings.projection", {kE, 2, kPatch, kPatch});
    for (int64_t i = 0; i < kLayers; ++i) {
      const std::string layer = join_text(prefix, "encoder.layer.", i, ".");
      for (const char* part : {"attention.query", "attention.key", "attention.value", "output.dense"}) {
        put_pair(layer + "attention." + part, {kE, kE});
      }
      put_pair(layer + "layernorm_before", {kE});
      put_pair(layer + "layernorm_after", {kE});
      put_pair(layer + "intermediate.dense", {kF, kE});
      put_pair(layer + "output.dense", {kE, kF});
    }
    put_pair(prefix + "layernorm", {kE});
    if (name.ends_with("WithTeacher")) {
      put_pair("cls_classifier", {3, kE});
      put_pair("distillation_classifier", {3, kE});
    } else if (name.ends_with("Classification")) {
      put_pair("classifier", {3, kE});
    }
  }

  void put(const std::string& name, const std::vector<int64_t>& shape) {
    tensors[name] = random_tensor(shape, stream_key(1, name), at::kFloat, 0.3);
  }
  void put_pair(const std::string& name, const std::vector<int64_t>& shape) {
    put(name + ".weight", shape);
    put(name + ".bias", {shape.front()});
  }
};

class VitTest : public testing::Test {
 protected:
  ForeignModel open(const FakeVit& fake) {
    make_directories(directory());
    write_file(directory() / "config.json", fake.config.dump());
    write_tensors(directory() / "model.safetensors", fake.tensors);
    fs::remove(directory() / "preprocessor_config.json");
    if (!fake.preprocessor.is_null()) {
      write_file(directory() / "preprocessor_config.json", fake.preprocessor.dump());
    }
    return find_format("hf").open(directory());
  }
  VisionOptions options_of(const FakeVit& fake) { return open(fake).options.as<VisionOptions>(); }
  NamedTensors convert(const FakeVit& fake) { return model_tensors(*read_model(open(fake)).module); }
  // The Error for a model that `change` has spoilt.
  std::string refusal(const std::function<void(FakeVit&)>& change) {
    FakeVit fake;
    change(fake);
    return error_message([&] { open(fake); });
  }
  std::string config_refusal(const std::string& key, const nlohmann::json& value) {
    return refusal([&](FakeVit& fake) { fake.config[key] = value; });
  }
  fs::path directory() const { return temporary_.path() / "vit"; }

 private:
  TemporaryDirectory temporary_;
};

TEST_F(VitTest, ReadsTheConfiguration) {
  FakeVit fake;
  fake.config["hidden_act"] = "relu";
  fake.config["hidden_dropout_prob"] = 0.2;
  fake.config["patch_size"] = {3, 3};
  const VisionOptions o = options_of(fake);
  EXPECT_EQ(o.layers, kLayers);
  EXPECT_EQ(o.attention.d_model, kE);
  EXPECT_EQ(o.attention.heads, 2);
  EXPECT_EQ(o.feed_forward_width, kF);
  EXPECT_EQ(o.image_size, kImage);
  EXPECT_EQ(o.patch_size, kPatch);
  EXPECT_EQ(o.channels, 2);
  EXPECT_EQ(o.activation, ActivationKind::kRelu);
  EXPECT_EQ(o.dropout, 0.2);
  EXPECT_EQ(o.norm_epsilon, 1e-12);
  EXPECT_EQ(o.classes, 3);
  EXPECT_THAT(o.images.labels, ElementsAre("cat", "dog, or wolf", "fish"));
  EXPECT_THAT(o.images.mean, ElementsAre(0.5, 0.25));
  EXPECT_THAT(o.images.deviation, ElementsAre(0.5, 1.0));
  EXPECT_THAT(open(fake).notes, ElementsAre());
}

TEST_F(VitTest, EveryTensorOfOursIsMappedOnce) {
  for (const auto& [type, name] : {std::pair("vit", "ViTForImageClassification"),
                                   {"vit", "ViTModel"},
                                   {"deit", "DeiTModel"},
                                   {"deit", "DeiTForImageClassification"},
                                   {"deit", "DeiTForImageClassificationWithTeacher"}}) {
    SCOPED_TRACE(name);
    const FakeVit fake(type, name);
    const ForeignModel foreign = open(fake);
    std::set<std::string> targets, wanted;
    for (const MappedTensor& one : foreign.tensors) EXPECT_TRUE(targets.insert(one.target).second) << one.target;
    const auto& options = foreign.options.as<VisionOptions>();
    for (const auto& [ours, tensor] : model_tensors(*VisionTransformer(options))) wanted.insert(ours);
    EXPECT_EQ(targets, wanted);
    EXPECT_EQ(options.classes, fake.prefix.empty() ? 0 : 3);
    const NamedTensors ours = model_tensors(*read_model(foreign).module);
    const Tensor filter = fake.tensors.at(fake.prefix + "embeddings.patch_embeddings.projection.weight");
    EXPECT_TRUE(at::equal(ours.at("patch_embedding.projection.weight"), filter.flatten(1)));
    EXPECT_TRUE(at::equal(ours.at("blocks.1.attention.scheme.key.weight"),
                          fake.tensors.at(fake.prefix + "encoder.layer.1.attention.attention.key.weight")));
  }
}

TEST_F(VitTest, WithoutBiasesOfQueriesTheyAreZeros) {
  FakeVit fake;
  fake.config["qkv_bias"] = false;
  for (int64_t i = 0; i < kLayers; ++i) {
    for (const char* part : {"query", "key", "value"}) {
      fake.tensors.erase(join_text("vit.encoder.layer.", i, ".attention.attention.", part, ".bias"));
    }
  }
  const NamedTensors ours = convert(fake);
  EXPECT_EQ(ours.at("blocks.1.attention.scheme.value.bias").abs().max().item<double>(), 0);
  EXPECT_GT(ours.at("blocks.1.attention.scheme.output.bias").abs().max().item<double>(), 0);
  const HfShape shape = read_hf_shape(directory());
  EXPECT_EQ(surplus_parameters(shape.counts, shape.options.common()), kLayers * 3 * kE);
}

TEST_F(VitTest, NotesWhatIsLeftOut) {
  FakeVit fake("vit", "ViTModel");
  fake.put_pair("pooler.dense", {kE, kE});
  fake.put("embeddings.mask_token", {1, 1, kE});
  fake.preprocessor = nullptr;
  const ForeignModel foreign = open(fake);
  EXPECT_THAT(foreign.notes, ElementsAre(HasSubstr("no preprocessor_config.json"), HasSubstr("pooler.dense"),
                                         HasSubstr("mask_token")));
  EXPECT_EQ(foreign.unused.size(), 3u);
  EXPECT_TRUE(foreign.options.as<VisionOptions>().images.mean.empty());
}

TEST_F(VitTest, ReadsWhatThePreprocessorDoes) {
  FakeVit fake;
  const auto images = [&](const nlohmann::json& file) {
    fake.preprocessor = file;
    return options_of(fake).images;
  };
  EXPECT_THAT(images({{"do_normalize", false}}).mean, ElementsAre(0, 0));
  EXPECT_THAT(images({{"image_mean", 0.5}, {"image_std", 2}}).deviation, ElementsAre(2, 2));
  // Theirs is (pixel * 1/127.5 - 1) / 1, ours (pixel / 255 - 0.5) / 0.5.
  const ImageLabels doubled = images({{"rescale_factor", 1 / 127.5}, {"image_mean", {1, 1}}, {"image_std", {1, 1}}});
  EXPECT_NEAR(doubled.mean[1], 0.5, 1e-12);
  EXPECT_NEAR(doubled.deviation[1], 0.5, 1e-12);
  const ImageLabels whole = images({{"do_rescale", false}, {"image_mean", {127.5, 0}}, {"image_std", {255, 255}}});
  EXPECT_NEAR(whole.mean[0], 0.5, 1e-12);
  EXPECT_NEAR(whole.deviation[0], 1, 1e-12);
  const auto notes = [&](const nlohmann::json& more) {
    fake.preprocessor = {{"image_mean", 0.5}, {"image_std", 0.5}};
    fake.preprocessor.update(more);
    return open(fake).notes;
  };
  EXPECT_THAT(notes({{"size", {{"shortest_edge", 6}}}, {"resample", 2}}), ElementsAre());
  EXPECT_THAT(notes({{"size", {{"shortest_edge", 7}}}}),
              ElementsAre(HasSubstr("7 x 7 pixels, and the model reads 6 x 6")));
  EXPECT_THAT(notes({{"size", 6}, {"do_resize", false}}), ElementsAre());
  for (const nlohmann::json& size : {nlohmann::json(6), nlohmann::json{{"height", 6}, {"width", 6}}}) {
    EXPECT_THAT(notes({{"size", size}}), ElementsAre(HasSubstr("squashes images to squares; headshare resizes the")));
  }
  EXPECT_THAT(notes({{"resample", 3}}), ElementsAre(HasSubstr("resample 3 (bicubic); headshare's filter is bilinear")));
  EXPECT_THAT(notes({{"size", {{"shortest_edge", 8}}}, {"do_center_crop", true}, {"crop_size", {{"height", 6}}}}),
              ElementsAre(HasSubstr("resizes images to 8 before it cuts 6 out")));
}

TEST_F(VitTest, DamagedPreprocessorsAreNamed) {
  const auto preprocessor_refusal = [&](const nlohmann::json& file) {
    return refusal([&](FakeVit& fake) { fake.preprocessor = file; });
  };
  EXPECT_THAT(preprocessor_refusal({1, 2}), HasSubstr("must be a JSON object"));
  EXPECT_THAT(preprocessor_refusal({{"image_mean", {0.5}}, {"image_std", {1, 1}}}),
              HasSubstr("image_mean has [0.5], and the model reads 2 channels"));
  EXPECT_THAT(preprocessor_refusal({{"image_mean", {"a", 1}}}), HasSubstr("which is no number"));
  EXPECT_THAT(preprocessor_refusal({{"image_mean", 0.5}, {"image_std", {0, 1}}}), HasSubstr("not above 0"));
  EXPECT_THAT(preprocessor_refusal({{"rescale_factor", "x"}}), HasSubstr("rescale_factor is \"x\""));
}

TEST_F(VitTest, RefusesWhatItCannotReproduce) {
  EXPECT_THAT(config_refusal("image_size", {6, 9}), HasSubstr("image_size is [6,9]; headshare reads square images"));
  EXPECT_THAT(config_refusal("patch_size", {3, 2}), HasSubstr("patch_size is [3,2]"));
  EXPECT_THAT(config_refusal("patch_size", 4), HasSubstr("image_size is 6 and patch_size 4: patches must fill"));
  EXPECT_THAT(config_refusal("image_size", "large"), HasSubstr("image_size"));
  EXPECT_THAT(config_refusal("image_size", 1 << 20), HasSubstr("16384"));
  EXPECT_THAT(config_refusal("hidden_act", "quick_gelu"), HasSubstr("hidden_act is \"quick_gelu\""));
  EXPECT_THAT(config_refusal("problem_type", "multi_label_classification"), HasSubstr("exclude each other"));
  EXPECT_THAT(config_refusal("architectures", {"ViTForMaskedImageModeling"}), HasSubstr("names 'ViTForMasked"));
  EXPECT_THAT(config_refusal("num_attention_heads", 3), HasSubstr("heads must divide d-model"));
  EXPECT_THAT(config_refusal("is_causal", true), HasSubstr("is_causal is true: no token of this ViT"));
  EXPECT_THAT(config_refusal("qkv_bias", false), HasSubstr("not part of the ViT"));
  EXPECT_THAT(refusal([](FakeVit& fake) { fake.tensors.erase("vit.embeddings.cls_token"); }),
              HasSubstr("embeddings.cls_token"));
  EXPECT_THAT(refusal([](FakeVit& fake) {
                fake.put("vit.embeddings.position_embeddings", {1, 10, kE});
              }),
              HasSubstr("has shape [1, 10, 8], the configuration asks for [1, 5, 8]"));
}

// The same model as timm stores it.
FakeVit as_timm(const FakeVit& fake) {
  FakeVit timm = fake;
  timm.preprocessor = nullptr;
  const bool distils = fake.config.at("model_type") == "deit";
  timm.config = {{"architecture", distils ? "deit_tiny_distilled_patch16_224.fb_in1k" : "vit_tiny_patch16_224"},
                 {"num_classes", 3},
                 {"global_pool", "token"},
                 {"model_args",
                  {{"img_size", kImage},
                   {"patch_size", kPatch},
                   {"in_chans", 2},
                   {"embed_dim", kE},
                   {"depth", kLayers},
                   {"num_heads", 2}}},
                 {"pretrained_cfg", {{"mean", {0.5, 0.25}}, {"std", {0.5, 1.0}}}},
                 {"label_names", {"cat", "dog, or wolf", "fish"}}};
  timm.tensors.clear();
  const auto of = [&](const std::string& name) { return fake.tensors.at(fake.prefix + name); };
  timm.tensors["cls_token"] = of("embeddings.cls_token");
  timm.tensors["pos_embed"] = of("embeddings.position_embeddings");
  if (distils) timm.tensors["dist_token"] = of("embeddings.distillation_token");
  for (const std::string part : {".weight", ".bias"}) {
    timm.tensors["patch_embed.proj" + part] = of("embeddings.patch_embeddings.projection" + part);
    timm.tensors["norm" + part] = of("layernorm" + part);
    timm.tensors["head" + part] = fake.tensors.at((distils ? "cls_classifier" : "classifier") + part);
    if (distils) timm.tensors["head_dist" + part] = fake.tensors.at("distillation_classifier" + part);
    for (int64_t i = 0; i < kLayers; ++i) {
      const std::string block = join_text("blocks.", i, "."), layer = join_text("encoder.layer.", i, ".");
      const std::string heads = layer + "attention.attention.";
      timm.tensors[block + "attn.qkv" + part] =
          at::cat({of(heads + "query" + part), of(heads + "key" + part), of(heads + "value" + part)});
      timm.tensors[block + "attn.proj" + part] = of(layer + "attention.output.dense" + part);
      timm.tensors[block + "norm1" + part] = of(layer + "layernorm_before" + part);
      timm.tensors[block + "norm2" + part] = of(layer + "layernorm_after" + part);
      timm.tensors[block + "mlp.fc1" + part] = of(layer + "intermediate.dense" + part);
      timm.tensors[block + "mlp.fc2" + part] = of(layer + "output.dense" + part);
    }
  }
  return timm;
}

// timm's feed-forward sub-layer has 4 E units.
FakeVit with_wide_feed_forward(FakeVit fake) {
  fake.config["intermediate_size"] = 4 * kE;
  fake.config["layer_norm_eps"] = 1e-6;
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string layer = join_text(fake.prefix, "encoder.layer.", i, ".");
    fake.put_pair(layer + "intermediate.dense", {4 * kE, kE});
    fake.put_pair(layer + "output.dense", {kE, 4 * kE});
  }
  return fake;
}

TEST_F(VitTest, SaysHowTimmResizesOtherwise) {
  FakeVit timm = as_timm(with_wide_feed_forward(FakeVit("vit", "ViTForImageClassification")));
  timm.config["pretrained_cfg"].update({{"interpolation", "bilinear"}, {"crop_mode", "center"}, {"crop_pct", 1.0}});
  EXPECT_THAT(open(timm).notes, ElementsAre());
  timm.config["pretrained_cfg"].update({{"interpolation", "bicubic"}, {"crop_mode", "squash"}, {"crop_pct", 0.9}});
  EXPECT_THAT(open(timm).notes, ElementsAre(HasSubstr("crop_pct is 0.9"),
                                            HasSubstr("interpolation is 'bicubic'; headshare resizes bilinearly"),
                                            HasSubstr("crop_mode is 'squash'; headshare resizes the shorter side")));
}

TEST_F(VitTest, ReadsWhatTimmStores) {
  for (const auto& [type, name] :
       {std::pair("vit", "ViTForImageClassification"), {"deit", "DeiTForImageClassificationWithTeacher"}}) {
    SCOPED_TRACE(name);
    const FakeVit theirs = with_wide_feed_forward(FakeVit(type, name));
    VisionOptions wanted_options = options_of(theirs);
    const NamedTensors wanted = convert(theirs);
    const ForeignModel timm = open(as_timm(theirs));
    VisionOptions options = timm.options.as<VisionOptions>();
    EXPECT_EQ(to_json(stored_fields(options)), to_json(stored_fields(wanted_options)));
    EXPECT_EQ(options.images.labels, wanted_options.images.labels);
    EXPECT_EQ(options.images.mean, wanted_options.images.mean);
    EXPECT_EQ(options.images.deviation, wanted_options.images.deviation);
    EXPECT_THAT(timm.notes, ElementsAre());
    const NamedTensors ours = model_tensors(*read_model(timm).module);
    ASSERT_EQ(ours.size(), wanted.size());
    for (const auto& [tensor_name, tensor] : wanted)
      EXPECT_TRUE(at::equal(ours.at(tensor_name), tensor)) << tensor_name;
  }
}

TEST_F(VitTest, CountsOfTimmAreThoseOfItsNames) {
  const auto count = [&](const std::string& architecture) {
    make_directories(directory());
    write_file(directory() / "config.json", nlohmann::json{{"architecture", architecture}}.dump());
    return measure(read_hf_shape(directory()).options).total_parameters;
  };
  EXPECT_EQ(count("vit_tiny_patch16_224"), 5717416);
  EXPECT_EQ(count("deit_small_patch16_224.fb_in1k"), 22050664);
  EXPECT_EQ(count("deit_base_distilled_patch16_224"), 87338192);
}

TEST_F(VitTest, RefusesOtherModelsOfTimm) {
  const auto timm_refusal = [&](const std::string& key, const nlohmann::json& value) {
    return refusal([&](FakeVit& fake) {
      fake = as_timm(with_wide_feed_forward(fake));
      fake.config[key] = value;
    });
  };
  EXPECT_THAT(timm_refusal("architecture", "resnet50"),
              HasSubstr("architecture is 'resnet50'; of timm headshare reads"));
  EXPECT_THAT(timm_refusal("architecture", "vit_tiny_distilled_patch16_224"), HasSubstr("of timm headshare reads"));
  EXPECT_THAT(timm_refusal("architecture", 3), HasSubstr("architecture"));
  EXPECT_THAT(timm_refusal("global_pool", "avg"), HasSubstr("global_pool is \"avg\""));
  EXPECT_THAT(timm_refusal("model_args", {{"init_values", 1}}), HasSubstr("sets 'init_values' to 1"));
  EXPECT_THAT(timm_refusal("model_args", 3), HasSubstr("no JSON object"));
  EXPECT_THAT(timm_refusal("num_classes", 4), HasSubstr("'head.weight' has shape"));
}

VisionOptions small_vision() {
  VisionOptions o;
  o.layers = 2;
  o.attention.d_model = 16;
  o.attention.heads = 4;
  o.image_size = 8;
  o.patch_size = 4;
  o.classes = 3;
  return o;
}

// Every scheme goes out whose heads have an exact form with heads apart.
TEST_F(VitTest, SchemesGoOutWithTheSameOutputs) {
  const ForeignFormat& format = *find_written_format("hf");
  for (const std::string scheme : {"mha", "gqa", "mqa", "mhe_add", "mhe_mul"}) {
    SCOPED_TRACE(scheme);
    VisionOptions o = small_vision();
    o.attention.scheme = scheme;
    o.positions = scheme == "mqa" ? PositionKind::kSinusoidal : PositionKind::kLearned;
    o.distillation_token = scheme == "gqa" ? DistillationToken::kWithHead : DistillationToken::kNone;
    o = resolve(o);
    VisionTransformer model(o);
    randomise(*model);
    const ModelToWrite source{.options = o, .tensors = model_tensors(*model)};
    const ExportPlan plan = plan_export(format, "", o);
    const fs::path out = directory() / scheme;
    make_directories(out);
    format.write(prepared_for_export(source, plan), "", out);
    EXPECT_LT(check_export(source, plan, out), 1e-5);
    EXPECT_EQ(plan.fold.has_value(), scheme != "mha");
  }
}

TEST_F(VitTest, WritesThePreprocessor) {
  VisionOptions o = small_vision();
  o.images = {.labels = {"a", "b", "c"}, .mean = {0.1, 0.2, 0.3}, .deviation = {1, 2, 3}};
  VisionTransformer model(resolve(o));
  randomise(*model);
  make_directories(directory());
  find_written_format("hf")->write({.options = model->options(), .tensors = model_tensors(*model)}, "", directory());
  const ForeignModel back = find_format("hf").open(directory());
  EXPECT_EQ(back.options.as<VisionOptions>().images.labels, o.images.labels);
  EXPECT_EQ(back.options.as<VisionOptions>().images.mean, o.images.mean);
  EXPECT_EQ(back.options.as<VisionOptions>().images.deviation, o.images.deviation);
  EXPECT_THAT(back.notes, ElementsAre());
}

TEST_F(VitTest, SaysWhatItHasNoPlaceFor) {
  const auto objection = [](auto change) {
    VisionOptions o = small_vision();
    change(o);
    return find_written_format("hf")->why_not_write(resolve(o), "");
  };
  EXPECT_EQ(objection([](auto&) {}), "");
  EXPECT_THAT(objection([](auto& o) { o.pooling = ImagePooling::kMean; }), HasSubstr("--pooling"));
  EXPECT_THAT(objection([](auto& o) { o.norms = NormPlacement::kAfter; }), HasSubstr("--norms post"));
  EXPECT_THAT(objection([](auto& o) { o.norm = NormKind::kRms; }), HasSubstr("--norm rms"));
  EXPECT_THAT(objection([](auto& o) { o.attention.qk_norm = true; }), HasSubstr("--qk-norm"));
  EXPECT_THAT(objection([](auto& o) { o.attention.sinks = true; }), HasSubstr("--attention-sinks"));
  EXPECT_THAT(objection([](auto& o) { o.layer_groups = 1; }), HasSubstr("--layer-groups"));
}

}  // namespace vit_test

}  // namespace
}  // namespace headshare
