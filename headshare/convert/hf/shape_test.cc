#include "headshare/convert/hf/shape.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "headshare/attention/schemes/gqa.h"
#include "headshare/base/testing.h"
#include "headshare/models/size.h"

namespace headshare {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ShapeTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("headshare_shape_test_" + std::to_string(::getpid()));
    make_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  HfShape read(const json& config) {
    write_file(directory_ / "config.json", config.dump());
    return read_hf_shape(directory_);
  }

  int64_t parameters(const json& config) {
    const HfShape shape = read(config);
    return measure(shape.options).total_parameters - surplus_parameters(shape.counts, shape.options.common());
  }

  std::string refusal(const json& config) {
    return error_message([&] { read(config); });
  }

  fs::path directory_;
};

// The totals that their makers publish.
const json kLlama3 = {{"model_type", "llama"},      {"architectures", {"LlamaForCausalLM"}},
                      {"vocab_size", 128256},       {"hidden_size", 4096},
                      {"intermediate_size", 14336}, {"num_hidden_layers", 32},
                      {"num_attention_heads", 32},  {"num_key_value_heads", 8},
                      {"rope_theta", 500000.0},     {"max_position_embeddings", 8192},
                      {"rms_norm_eps", 1e-5},       {"tie_word_embeddings", false},
                      {"hidden_act", "silu"},       {"attention_bias", false}};
const json kMistral = {{"model_type", "mistral"},
                       {"architectures", {"MistralForCausalLM"}},
                       {"vocab_size", 32000},
                       {"hidden_size", 4096},
                       {"intermediate_size", 14336},
                       {"num_hidden_layers", 32},
                       {"num_attention_heads", 32},
                       {"num_key_value_heads", 8},
                       {"max_position_embeddings", 32768},
                       {"sliding_window", 4096}};
const json kQwen2 = {{"model_type", "qwen2"},
                     {"architectures", {"Qwen2ForCausalLM"}},
                     {"vocab_size", 152064},
                     {"hidden_size", 3584},
                     {"intermediate_size", 18944},
                     {"num_hidden_layers", 28},
                     {"num_attention_heads", 28},
                     {"num_key_value_heads", 4},
                     {"max_position_embeddings", 131072},
                     {"sliding_window", 131072},
                     {"use_sliding_window", false},
                     {"tie_word_embeddings", false}};

const json kOpusMt = {{"model_type", "marian"},        {"d_model", 512},
                      {"encoder_layers", 6},           {"decoder_layers", 6},
                      {"encoder_attention_heads", 8},  {"decoder_attention_heads", 8},
                      {"encoder_ffn_dim", 2048},       {"decoder_ffn_dim", 2048},
                      {"max_position_embeddings", 512}};
const json kBartBase = {{"model_type", "bart"},          {"d_model", 768},
                        {"encoder_layers", 6},           {"decoder_layers", 6},
                        {"encoder_attention_heads", 12}, {"decoder_attention_heads", 12},
                        {"encoder_ffn_dim", 3072},       {"decoder_ffn_dim", 3072}};

TEST_F(ShapeTest, CountsWhatIsPublished) {
  EXPECT_EQ(parameters(kLlama3), 8'030'261'248);
  EXPECT_EQ(parameters(kMistral), 7'241'732'096);
  EXPECT_EQ(parameters(kQwen2), 7'615'616'512);
  EXPECT_EQ(parameters({{"model_type", "gpt2"}}), 124'439'808);
  EXPECT_EQ(parameters({{"model_type", "bert"}}), 109'482'240);  // with the pooler, as BertModel
  EXPECT_EQ(parameters({{"model_type", "bert"}, {"architectures", {"BertForMaskedLM"}}}), 109'514'298);
  EXPECT_EQ(parameters(kBartBase), 139'420'416);
  EXPECT_EQ(parameters({{"model_type", "bart"}}), 406'291'456);
  EXPECT_EQ(parameters(kOpusMt), 74'410'496);  // sinusoids count there
}

TEST_F(ShapeTest, EmbeddingsMayBeTiedAndHeadsMayShareEverything) {
  json tied = kLlama3;
  tied["tie_word_embeddings"] = true;
  EXPECT_EQ(parameters(kLlama3) - parameters(tied), int64_t{128256} * 4096);
  json one = kLlama3;
  one["num_key_value_heads"] = 1;
  EXPECT_EQ(read(one).options.common().attention.scheme, "mqa");
  one.erase("num_key_value_heads");
  EXPECT_EQ(read(one).options.common().attention.scheme, "mha");
  json biased = kLlama3;
  biased["attention_bias"] = true;
  EXPECT_EQ(parameters(biased) - parameters(kLlama3), int64_t{32} * (2 * 4096 + 2 * 1024));
}

TEST_F(ShapeTest, TheCacheIsThatOfTheGroups) {
  const HfShape llama = read(kLlama3);
  EXPECT_EQ(llama.options.common().attention.scheme, "gqa");
  EXPECT_EQ(measure(llama.options).cache_elements_per_token, 2 * 8 * 128);
  EXPECT_TRUE(llama.notes.empty());
  EXPECT_THAT(read(kMistral).notes.at(0), HasSubstr("4096"));
  EXPECT_TRUE(read(kQwen2).notes.empty()) << "its window is switched off";
}

// A key that a file leaves out has the default of the family's class in transformers:
// tests/oracles/test_config_defaults.py asks that class for every key.
TEST_F(ShapeTest, DefaultsAreTheFamilys) {
  const auto without = [&](json config, const char* key) {
    config.erase(key);
    return read(config).options.common().attention;
  };
  EXPECT_EQ(without(kLlama3, "num_key_value_heads").scheme, "mha");
  EXPECT_EQ(without(kMistral, "num_key_value_heads").own.get<GqaOptions>().groups, 8);
  json qwen = kQwen2;
  qwen["num_attention_heads"] = 64;
  EXPECT_EQ(without(qwen, "num_key_value_heads").own.get<GqaOptions>().groups, 32);
  qwen["num_key_value_heads"] = nullptr;
  EXPECT_EQ(read(qwen).options.common().attention.scheme, "mha");
  qwen = kQwen2;
  qwen.erase("num_key_value_heads");
  EXPECT_THAT(refusal(qwen), HasSubstr("num_key_value_heads is 32 (Qwen2's default) and num_attention_heads 28"));
  EXPECT_EQ(parameters({{"model_type", "mistral"}}), 7'241'732'096);
}

TEST_F(ShapeTest, WindowsAreSaidWhereTheFamilyHasThem) {
  json config = kMistral;
  config.erase("sliding_window");
  EXPECT_THAT(read(config).notes.at(0), HasSubstr("sliding_window is 4096 (Mistral's default): the model caches"));
  config["sliding_window"] = nullptr;
  EXPECT_TRUE(read(config).notes.empty());
  config = kLlama3;
  config["sliding_window"] = 4096;
  EXPECT_THAT(read(config).notes.at(0), HasSubstr("LlamaForCausalLM does not attend by it"));
  config = kQwen2;
  config["use_sliding_window"] = true;
  EXPECT_TRUE(read(config).notes.empty()) << "it begins behind the last layer";
  config["max_window_layers"] = 20;
  EXPECT_THAT(read(config).notes.at(0), HasSubstr("sliding_window is 131072: the layers from 20 on cache"));
}

TEST_F(ShapeTest, RotationsAreHonouredOrNamed) {
  const auto base_of = [&](const json& config) { return read(config).options.common().attention.rotary_base; };
  EXPECT_EQ(base_of(kLlama3), 500000);
  json config = kLlama3;
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 1e6}};
  EXPECT_EQ(base_of(config), 1e6);
  EXPECT_TRUE(read(config).notes.empty());
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(base_of(config), 500000) << "rope_scaling counts first";
  EXPECT_EQ(read(config).options.common().attention.rotary_scaling.kind, RotaryScalingKind::kLinear);
  config["rope_scaling"] = nullptr;
  config["rope_parameters"] = {{"rope_type", "longrope"}, {"factor", 4.0}};
  EXPECT_THAT(read(config).notes.at(0), HasSubstr("rope_parameters (\"longrope\") changes how positions turn"));
  EXPECT_EQ(parameters(config), parameters(kLlama3));
  config["rope_parameters"] = 3;
  EXPECT_THAT(refusal(config), HasSubstr("rope_parameters is 3, not an object"));
  config["rope_parameters"] = {{"rope_theta", "x"}};
  EXPECT_THAT(refusal(config), HasSubstr("rope_theta"));
}

TEST_F(ShapeTest, OnlyLlamaReadsSwitchesForBiases) {
  for (json config : {kMistral, kQwen2}) {
    const int64_t plain = parameters(config);
    config["attention_bias"] = config["mlp_bias"] = true;
    EXPECT_EQ(parameters(config), plain);
  }
}

TEST_F(ShapeTest, AFileDoesAsWellAsItsDirectory) {
  read(kLlama3);
  EXPECT_EQ(read_hf_shape(directory_ / "config.json").model_type, "llama");
}

TEST_F(ShapeTest, RefusesWhatIsNoModel) {
  EXPECT_THAT(refusal({{"model_type", "lama"}}),
              HasSubstr("(did you mean 'llama'?); headshare knows albert, bart, bert, deit, distilbert, gemma, gpt2"));
  EXPECT_THAT(refusal({{"vocab_size", 3}}), HasSubstr("model_type is missing"));
  EXPECT_THAT(refusal({{"model_type", 3}}), HasSubstr("model_type"));
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"}) {
    for (const json& value : {json(-1), json(0), json(1e30), json("many"), json(2.5), json::array(), json(1LL << 62)}) {
      json absurd = kLlama3;
      absurd[key] = value;
      EXPECT_THAT(refusal(absurd), HasSubstr(key)) << value;
    }
  }
  json groups = kLlama3;
  groups["num_key_value_heads"] = 5;
  EXPECT_THAT(refusal(groups), HasSubstr("num_key_value_heads is 5 and num_attention_heads 32"));
  json gate = kLlama3;
  gate["hidden_act"] = "sine";
  EXPECT_THAT(refusal(gate), HasSubstr("hidden_act"));
  json other = kLlama3;
  other["architectures"] = {"LlamaForSequenceClassification"};
  EXPECT_THAT(refusal(other), HasSubstr("architectures"));
  write_file(directory_ / "config.json", "[1, 2");
  EXPECT_THAT(error_message([&] { read_hf_shape(directory_); }), HasSubstr("config.json"));
  fs::remove(directory_ / "config.json");
  EXPECT_THAT(error_message([&] { read_hf_shape(directory_); }), HasSubstr("has no config.json"));
  EXPECT_THAT(error_message([&] { read_hf_shape(directory_ / "none"); }), HasSubstr("none: it does not exist"));
}

}  // namespace
}  // namespace headshare
