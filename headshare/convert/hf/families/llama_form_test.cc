// These tests are about refusals of configurations and files of Llama's kin, and about the folds that make their
// tensors ours. tests/oracles/test_import_decoders.py compares outputs.
#include "headshare/convert/hf/families/llama_form.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "headshare/convert/formats.h"
#include "headshare/convert/hf/testing.h"

namespace headshare {
namespace llama_form_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> kFamilies = {"llama", "mistral", "qwen2", "qwen3", "gemma"};

class LlamaFormTest : public testing::Test {
 protected:
  fs::path directory() const { return temporary_.path() / "model"; }
  ForeignModel open() { return find_format("hf").open(directory()); }
  ForeignModel open(const FakeLlama& fake) {
    fake.write(directory());
    return open();
  }
  ForeignModel open(const std::string& type, const nlohmann::json& changes) {
    FakeLlama fake(type);
    fake.config.update(changes);
    return open(fake);
  }
  NamedTensors ours(const FakeLlama& fake) { return model_tensors(*read_model(open(fake)).module); }
  std::string refusal(const std::string& type, const nlohmann::json& changes) {
    return error_message([&] { open(type, changes); });
  }
  // The Error for tensors that `change` has spoilt; they are read, too.
  std::string refusal(const std::string& type, const std::function<void(FakeLlama&)>& change) {
    FakeLlama fake(type);
    change(fake);
    return error_message([&] { read_model(open(fake)); });
  }

 private:
  TemporaryDirectory temporary_;
};

TEST_F(LlamaFormTest, EveryTensorOfEachFamilyIsTaken) {
  for (const std::string& type : kFamilies) {
    FakeLlama fake(type);
    const NamedTensors tensors = ours(fake);
    EXPECT_TRUE(at::equal(tensors.at("blocks.1.attention.scheme.key.weight"), fake.at("layers.1.self_attn.k_proj")));
    EXPECT_TRUE(at::equal(tensors.at("blocks.0.feed_forward.expand.weight"), fake.at("layers.0.mlp.up_proj")));
    EXPECT_EQ(tensors.contains("output_embedding"), type != "gemma");
    EXPECT_EQ(tensors.contains("blocks.0.attention.scheme.query_norm.weight"), type == "qwen3");
  }
}

TEST_F(LlamaFormTest, GemmasScaleMovesFromTheEmbeddingToTheLastNorm) {
  FakeLlama fake("gemma");
  const NamedTensors tensors = ours(fake);
  const double scale = std::sqrt(static_cast<double>(FakeLlama::kE));
  EXPECT_LE(distance(tensors.at("token_embedding"), fake.at("embed_tokens") * scale), 1e-7);
  EXPECT_LE(distance(tensors.at("norm.weight"), (fake.at("norm") + 1) / scale), 1e-7);
  EXPECT_TRUE(at::equal(tensors.at("blocks.1.attention_norm.weight"), fake.at("layers.1.input_layernorm") + 1));
}

TEST_F(LlamaFormTest, Qwen2sOutputBiasIsZerosAndSaid) {
  FakeLlama fake("qwen2");
  const NamedTensors tensors = ours(fake);
  EXPECT_TRUE(at::equal(tensors.at("blocks.1.attention.scheme.output.bias"), at::zeros({FakeLlama::kE})));
  EXPECT_THAT(open(fake).notes, ElementsAre(HasSubstr("zeros")));
}

TEST_F(LlamaFormTest, ProjectionsTakeTheEpsilonOfNormedQueries) {
  FakeLlama fake("qwen3");
  fake.config["rms_norm_eps"] = 1e-4;
  const NamedTensors tensors = ours(fake);
  EXPECT_LE(distance(tensors.at("blocks.0.attention.scheme.query.weight"), fake.at("layers.0.self_attn.q_proj") * 0.1),
            1e-7);
  EXPECT_TRUE(at::equal(tensors.at("blocks.0.attention.scheme.value.weight"), fake.at("layers.0.self_attn.v_proj")));
  EXPECT_THAT(open(fake).notes, ElementsAre(HasSubstr("0.1 times theirs")));
  EXPECT_THAT(refusal("qwen3", {{"rms_norm_eps", 0}}), HasSubstr("rms_norm_eps is 0"));
}

TEST_F(LlamaFormTest, WindowsAreThoseOfTheLayers) {
  const auto windows = [&](const std::string& type, const nlohmann::json& changes) {
    const ForeignModel found = open(type, changes);
    EXPECT_EQ(found.options.common().context, 8);
    std::vector<int64_t> each;
    for (int64_t layer = 0; layer < 2; ++layer) {
      each.push_back(layer_attention(found.options.common(), layer).window.value_or(0));
    }
    return each;
  };
  EXPECT_THAT(windows("mistral", {{"sliding_window", 5}}), ElementsAre(4, 4));
  EXPECT_THAT(windows("mistral", {{"sliding_window", 8}}), ElementsAre(0, 0));  // which hides nothing in 8 tokens
  EXPECT_THAT(open("mistral", {{"sliding_window", 5}}).notes, IsEmpty());
  const nlohmann::json asked = {{"use_sliding_window", true}, {"sliding_window", 5}};
  for (const std::string type : {"qwen2", "qwen3"}) {
    const auto with = [&](const nlohmann::json& more) {
      nlohmann::json all = asked;
      all.update(more);
      return windows(type, all);
    };
    EXPECT_THAT(with({{"max_window_layers", 0}}), ElementsAre(4, 4));
    EXPECT_THAT(with({{"max_window_layers", 1}}), ElementsAre(0, 4));
    EXPECT_THAT(with({{"max_window_layers", 2}}), ElementsAre(0, 0));
    EXPECT_THAT(with({{"max_window_layers", 1}, {"use_sliding_window", false}}), ElementsAre(0, 0));
    EXPECT_THAT(with({{"layer_types", {"sliding_attention", "full_attention"}}}), ElementsAre(4, 0));
    EXPECT_THAT(with({{"max_window_layers", 0}, {"layer_types", {"full_attention", "full_attention"}}}),
                ElementsAre(0, 0));
  }
}

// A window of one token hides all others, which our options do not say.
TEST_F(LlamaFormTest, AWindowThatOursAreNotBecomesTheContext) {
  const ForeignModel found = open("mistral", {{"sliding_window", 1}});
  EXPECT_EQ(found.options.common().context, 1);
  EXPECT_FALSE(found.options.common().attention.window);
  EXPECT_THAT(found.notes, ElementsAre(AllOf(HasSubstr("context is 1 and not 8"),
                                             HasSubstr("equals full attention for texts up to"))));
}

TEST_F(LlamaFormTest, WindowsThatNoModelHasAreRefused) {
  EXPECT_THAT(refusal("llama", {{"sliding_window", 5}}), HasSubstr("sliding_window is 5, and LlamaForCausalLM"));
  EXPECT_THAT(refusal("mistral", {{"sliding_window", 0}}), HasSubstr("sliding_window is 0"));
  EXPECT_THAT(refusal("mistral", {{"layer_types", {"full_attention", "full_attention"}}}), HasSubstr("layer_types is"));
  EXPECT_THAT(refusal("qwen3", {{"layer_types", {"chunked_attention", "full_attention"}}}),
              HasSubstr("layer_types has 'chunked_attention'"));
  EXPECT_THAT(refusal("qwen3", {{"layer_types", {"full_attention"}}}), HasSubstr("has 1 entries for 2 layers"));
  EXPECT_THAT(refusal("qwen3", {{"layer_types", {"sliding_attention", "full_attention"}}}),
              HasSubstr("layer_types has sliding_attention, and no window is set"));
}

TEST_F(LlamaFormTest, WhatWouldComputeSomethingElseIsRefusedByName) {
  EXPECT_THAT(refusal("qwen3", {{"hidden_act", "relu"}}), HasSubstr("hidden_act is relu"));
  EXPECT_THAT(refusal("gemma", {{"hidden_activation", "silu"}}), HasSubstr("hidden_activation is \"silu\""));
  EXPECT_THAT(refusal("gemma", {{"hidden_activation", "gelu_pytorch_tanh"}, {"hidden_act", "gelu"}}), "no error");
  EXPECT_THAT(refusal("gemma", {{"use_bidirectional_attention", true}}), HasSubstr("use_bidirectional_attention"));
  EXPECT_THAT(refusal("gemma", {{"use_bidirectional_attention", nullptr}}), "no error");
  EXPECT_THAT(refusal("gemma", {{"hidden_act", "gelu_python"}}), "no error");
  EXPECT_THAT(refusal("qwen2", {{"is_causal", false}}), HasSubstr("is_causal is false"));
  EXPECT_THAT(refusal("llama", {{"architectures", {"LlamaForSequenceClassification"}}}), HasSubstr("architectures"));
  EXPECT_THAT(refusal("qwen2", {{"quantization_config", {{"bits", 4}}}}), HasSubstr("quantization_config"));
  EXPECT_THAT(refusal("qwen2", {{"num_key_value_heads", 3}}), HasSubstr("num_key_value_heads is 3"));
  EXPECT_THAT(refusal("gemma2", nlohmann::json::object()),
              AllOf(HasSubstr("gemma2"), HasSubstr("norms both sides"), HasSubstr("caps scores")));
  EXPECT_THAT(refusal("gemma3_text", nlohmann::json::object()), HasSubstr("a window of tokens"));
  EXPECT_THAT(refusal("qwen3_moe", nlohmann::json::object()), HasSubstr("experts"));
}

TEST_F(LlamaFormTest, RotationsThatWeDoNotHaveAreRefusedByName) {
  for (const std::string& type : kFamilies) {
    EXPECT_THAT(refusal(type, {{"rope_parameters", {{"rope_type", "longrope"}}}}),
                HasSubstr("rope_parameters (\"longrope\")"));
    EXPECT_THAT(refusal(type, {{"rope_scaling", {{"type", "dynamic"}, {"factor", 2}}}}),
                HasSubstr("rope_scaling (\"dynamic\")"));
    EXPECT_THAT(refusal(type, {{"rope_parameters", {{"rope_type", "default"}, {"mrope_section", {2, 2}}}}}),
                HasSubstr("rope_parameters has 'mrope_section'"));
    EXPECT_THAT(refusal(type, {{"partial_rotary_factor", 0.5}}), HasSubstr("partial_rotary_factor is 0.5"));
    EXPECT_THAT(refusal(type, {{"rope_parameters", {{"partial_rotary_factor", 0.5}}}}),
                HasSubstr("partial_rotary_factor is 0.5"));
  }
}

TEST_F(LlamaFormTest, ScaledRotationsAreRead) {
  const auto read = [&](const nlohmann::json& changes) {
    return open("llama", changes).options.common().attention.rotary_scaling;
  };
  const RotaryScaling yarn = read({{"rope_scaling", {{"type", "yarn"}, {"factor", 4}, {"beta_fast", 0}}}});
  EXPECT_EQ(yarn.kind, RotaryScalingKind::kYarn);
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_EQ(yarn.original_context, FakeLlama::kP) << "the whole context, where nothing else is said";
  EXPECT_EQ(yarn.beta_fast, 32);
  const nlohmann::json mscales = {{"rope_type", "yarn"},
                                  {"factor", nullptr},
                                  {"mscale", 0.7},
                                  {"mscale_all_dim", 1.5},
                                  {"original_max_position_embeddings", 4}};
  const RotaryScaling derived = read({{"rope_parameters", mscales}});
  EXPECT_EQ(derived.factor, 2) << "8 positions of 4";
  EXPECT_EQ(derived.attention_factor, yarn_attention_factor(2, 0.7, 1.5));
  EXPECT_EQ(read({{"rope_parameters", mscales}, {"original_max_position_embeddings", 2}}).original_context, 2);
  EXPECT_THAT(refusal("llama", {{"rope_scaling", {{"type", "linear"}}}}), HasSubstr("factor is missing"));
  EXPECT_THAT(refusal("llama", {{"rope_scaling", {{"type", "llama3"}, {"factor", 8}}}}),
              HasSubstr("low_freq_factor is missing"));
  EXPECT_THAT(refusal("llama", {{"rope_scaling", {{"type", "yarn"}, {"factor", "x"}}}}), HasSubstr("factor"));
}

// The readers of files are shared with other families: each error holds for these, too.
TEST_F(LlamaFormTest, DamagedWeightsAreNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const std::string name = "layers.1.mlp.down_proj";
  for (const std::string& type : kFamilies) {
    for (const double bad : {nan, infinity}) {
      EXPECT_THAT(refusal(type, [&](FakeLlama& fake) { fake.at(name)[1][2] = bad; }), HasSubstr(name)) << type;
    }
    EXPECT_THAT(refusal(type, [&](FakeLlama& fake) { fake.tensors.erase("model." + name + ".weight"); }),
                AllOf(HasSubstr(name), HasSubstr("is missing")))
        << type;
    EXPECT_THAT(refusal(type, [&](FakeLlama& fake) { fake.put("layers.2.mlp.up_proj", {3}); }),
                HasSubstr("1 tensor is not part of the"))
        << type;
    EXPECT_THAT(refusal(type, {{"intermediate_size", 9}}),
                AllOf(HasSubstr("has shape"), HasSubstr("the configuration asks for")))
        << type;
    FakeLlama(type).write(directory());
    fs::resize_file(directory() / "model.safetensors", fs::file_size(directory() / "model.safetensors") - 5);
    EXPECT_THAT(error_message([&] { open(); }), HasSubstr("model.safetensors")) << type;
  }
}

TEST_F(LlamaFormTest, ShardsAreCheckedAgainstTheirIndex) {
  const FakeLlama fake("qwen3");
  NamedTensors first, second;
  for (const auto& [name, tensor] : fake.tensors) (name < "model.layers.1" ? first : second).emplace(name, tensor);
  make_directories(directory());
  const auto opened = [&](const NamedTensors& twice, const std::string& file) {
    write_file(directory() / "config.json", fake.config.dump());
    NamedTensors both = second;
    both.insert(twice.begin(), twice.end());
    write_tensors(directory() / "a.safetensors", first);
    write_tensors(directory() / "b.safetensors", both);
    nlohmann::json map;
    for (const auto& [name, tensor] : first) map[name] = file;
    for (const auto& [name, tensor] : second) map[name] = "b.safetensors";
    write_file(directory() / "model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
    return error_message([&] { read_model(open()); });
  };
  EXPECT_EQ(opened({}, "a.safetensors"), "no error");
  EXPECT_THAT(opened({*first.begin()}, "a.safetensors"), HasSubstr(first.begin()->first));
  EXPECT_THAT(opened({}, "../a.safetensors"), HasSubstr("../a.safetensors"));
}

TEST_F(LlamaFormTest, FrequenciesOfOldFilesAreLeftOut) {
  FakeLlama fake("llama");
  fake.tensors["model.layers.1.self_attn.rotary_emb.inv_freq"] = at::ones({3});
  EXPECT_THAT(open(fake).unused, ElementsAre("model.layers.1.self_attn.rotary_emb.inv_freq"));
}

}  // namespace llama_form_test
}  // namespace headshare
