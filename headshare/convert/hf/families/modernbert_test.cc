// These tests are about ModernBERT's configurations, those that are refused, and the places of its tensors.
// tests/oracles/test_modernbert.py compares outputs.
#include "headshare/convert/hf/families/modernbert.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <set>

#include "headshare/convert/formats.h"
#include "headshare/convert/hf/testing.h"
#include "headshare/models/encoder.h"

namespace headshare {
namespace modernbert_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kV = FakeModernBert::kV, kE = FakeModernBert::kE, kF = FakeModernBert::kF;

class ModernBertTest : public testing::Test {
 protected:
  ForeignModel open(const FakeModernBert& fake) {
    fake.write(directory());
    return find_format("hf").open(directory());
  }
  fs::path directory() const { return temporary_.path() / "model"; }
  EncoderOptions options_with(const nlohmann::json& changes) {
    FakeModernBert fake;
    fake.config.update(changes);
    return open(fake).options.as<EncoderOptions>();
  }
  std::string refusal(const nlohmann::json& changes) {
    return error_message([&] { options_with(changes); });
  }

 private:
  TemporaryDirectory temporary_;
};

TEST_F(ModernBertTest, ReadsTheConfiguration) {
  const EncoderOptions o = options_with({{"embedding_dropout", 0.25}, {"norm_eps", 1e-4}});
  EXPECT_EQ(o.attention.window, 3);
  EXPECT_EQ(o.global_every, 2);
  EXPECT_EQ(o.global_first, 0);
  EXPECT_EQ(o.attention.rotary_base, 160000);
  EXPECT_EQ(o.local_rotary_base, 10000);
  EXPECT_EQ(o.norms, NormPlacement::kBeforeExceptFirst);
  EXPECT_EQ(o.norm_epsilon, 1e-4);
  EXPECT_EQ(o.feed_forward, FeedForwardKind::kGegluErf);
  EXPECT_EQ(o.dropout, 0.25);
  EXPECT_EQ(o.segments, 0);
  EXPECT_TRUE(o.masked_head && o.tie_embeddings);
  EXPECT_FALSE(o.attention.projection_bias || o.feed_forward_bias || o.pooler);
}

TEST_F(ModernBertTest, EveryTensorIsTakenAndMissingBiasesAreZeros) {
  FakeModernBert fake;
  const ForeignModel foreign = open(fake);
  EXPECT_THAT(foreign.notes, ElementsAre(AllOf(HasSubstr("norms and the head's layer"), HasSubstr("zeros"))));
  const NamedTensors ours = model_tensors(*read_model(foreign).module);
  const Tensor& stacked = fake.tensors.at("model.layers.1.attn.Wqkv.weight");
  EXPECT_TRUE(at::equal(ours.at("blocks.1.attention.scheme.key.weight"), stacked.slice(0, kE, 2 * kE)));
  const Tensor& inner = fake.tensors.at("model.layers.2.mlp.Wi.weight");
  EXPECT_TRUE(at::equal(ours.at("blocks.2.feed_forward.gate.weight"), inner.slice(0, 0, kF)));
  EXPECT_TRUE(at::equal(ours.at("blocks.2.feed_forward.expand.weight"), inner.slice(0, kF)));
  EXPECT_TRUE(at::equal(ours.at("masked_head.dense.bias"), at::zeros({kE})));
  EXPECT_TRUE(at::equal(ours.at("norm.bias"), at::zeros({kE})));
  EXPECT_FALSE(ours.contains("blocks.0.attention_norm.weight"));
  FakeModernBert untied;
  untied.config["tie_word_embeddings"] = false;
  untied.put("decoder.weight", {kV, kE});
  EXPECT_TRUE(at::equal(model_tensors(*read_model(open(untied)).module).at("masked_head.output_embedding"),
                        untied.tensors.at("decoder.weight")));
}

TEST_F(ModernBertTest, ListedLayersAreARegularOrder) {
  const auto order = [&](const std::string& letters) {
    nlohmann::json types = nlohmann::json::array();
    for (const char letter : letters) types.push_back(letter == 'g' ? "full_attention" : "sliding_attention");
    const EncoderOptions o = options_with({{"layer_types", types}});
    std::string found;
    for (int64_t layer = 0; layer < o.layers; ++layer) found += layer_attention(o, layer).window ? 'l' : 'g';
    return found;
  };
  for (const std::string letters : {"glll", "lgll", "lllg", "llgl", "lglg", "gllg", "llll", "gggg"}) {
    EXPECT_EQ(order(letters), letters);
  }
  EXPECT_THAT(error_message([&] { order("ggll"); }), HasSubstr("layer_types has no regular order"));
  EXPECT_THAT(error_message([&] { order("llgg"); }), HasSubstr("layer_types has no regular order"));
  EXPECT_THAT(error_message([&] { order("gl"); }), HasSubstr("layer_types has 2 entries for 4 layers"));
}

TEST_F(ModernBertTest, RotaryBasesAreThoseOfTheLayers) {
  const nlohmann::json by_type = {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 500.0}}},
                                  {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 30.0}}}};
  EncoderOptions o = options_with({{"rope_parameters", by_type}, {"global_rope_theta", 4.0}});
  EXPECT_EQ(o.attention.rotary_base, 500);
  EXPECT_EQ(o.local_rotary_base, 30);
  o = options_with({{"global_rope_theta", 70.0}, {"local_rope_theta", 70.0}});
  EXPECT_EQ(o.attention.rotary_base, 70);
  EXPECT_FALSE(o.local_rotary_base);
  o = options_with({{"global_attn_every_n_layers", 1}, {"global_rope_theta", 70.0}});
  EXPECT_FALSE(o.attention.window || o.local_rotary_base);
  EXPECT_EQ(o.attention.rotary_base, 70);
}

TEST_F(ModernBertTest, WhatWouldComputeSomethingElseIsRefusedByName) {
  EXPECT_THAT(refusal({{"architectures", {"ModernBertForTokenClassification"}}}), HasSubstr("architectures"));
  EXPECT_THAT(refusal({{"hidden_activation", "relu"}}), HasSubstr("hidden_activation is relu"));
  EXPECT_THAT(refusal({{"local_attention", 1}}), HasSubstr("local_attention leaves"));
  EXPECT_THAT(refusal({{"sliding_window", 6}}), HasSubstr("sliding_window is 6"));
  EXPECT_THAT(refusal({{"global_attn_every_n_layers", 0}}), HasSubstr("global_attn_every_n_layers is 0"));
  EXPECT_THAT(refusal({{"local_rope_theta", nullptr}}), HasSubstr("local_rope_theta is null"));
  EXPECT_THAT(refusal({{"rope_scaling", {{"type", "yarn"}}}}), HasSubstr("rope_scaling"));
  EXPECT_THAT(refusal({{"rope_parameters", {{"rope_theta", 9.0}}}}), HasSubstr("rope_parameters"));
  EXPECT_THAT(refusal({{"rope_parameters", {{"full_attention", {{"rope_type", "linear"}}}}}}),
              HasSubstr("full_attention has rope_type \"linear\""));
  EXPECT_THAT(refusal({{"layer_types", {"chunked_attention"}}}), HasSubstr("layer_types has 'chunked_attention'"));
  EXPECT_THAT(refusal({{"head_dim", 4}}), HasSubstr("head_dim is 4"));
  EXPECT_THAT(refusal({{"is_decoder", true}}), HasSubstr("is_decoder"));
  EXPECT_THAT(refusal({{"is_causal", true}}), HasSubstr("is_causal"));
  FakeModernBert other;
  other.put("classifier.weight", {2, kE});
  EXPECT_THAT(error_message([&] { open(other); }), HasSubstr("classifier.weight"));
}

// Whatever the configuration holds, the result is a model or an Error that names the file.
TEST_F(ModernBertTest, EveryKeyWithValuesOfEveryType) {
  const std::vector<nlohmann::json> values = {nullptr, true, -1, 0, 0.5, 1e308, "", "gelu", {1, 2}, {}, 3, {{"a", 1}}};
  nlohmann::json all = FakeModernBert().config;
  for (const char* key : {"layer_types", "rope_parameters", "rope_scaling", "global_rope_theta", "local_rope_theta",
                          "norm_bias", "decoder_bias", "hidden_activation", "classifier_activation", "mlp_dropout"}) {
    all[key] = nullptr;
  }
  FakeModernBert().write(directory());
  int refused = 0;
  for (const auto& [key, ignored] : all.items()) {
    if (key == "model_type") continue;
    for (const nlohmann::json& value : values) {
      nlohmann::json config = FakeModernBert().config;
      config[key] = value;
      write_file(directory() / "config.json", config.dump());
      const std::string message = error_message([&] { read_model(find_format("hf").open(directory())); });
      if (message == "no error") continue;
      EXPECT_THAT(message, HasSubstr(directory().string())) << key << " = " << value;
      ++refused;
    }
  }
  EXPECT_GT(refused, 80);
}

}  // namespace modernbert_test
}  // namespace headshare
