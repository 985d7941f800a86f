#include <gmock/gmock.h>

#include <set>

#include "headshare/base/rng.h"
#include "headshare/convert/formats.h"
#include "headshare/convert/hf/shape.h"
#include "headshare/convert/hf/testing.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// An AlbertForMaskedLM as transformers would save it: 4 layers in 2 groups.
struct FakeAlbert {
  static constexpr int64_t kV = 11, kP = 8, kW = 4, kE = 6, kF = 10;

  nlohmann::json config = {{"model_type", "albert"},   {"vocab_size", kV},         {"max_position_embeddings", kP},
                           {"embedding_size", kW},     {"hidden_size", kE},        {"num_hidden_layers", 4},
                           {"num_hidden_groups", 2},   {"num_attention_heads", 2}, {"intermediate_size", kF},
                           {"hidden_dropout_prob", 0}, {"inner_group_num", 1}};
  NamedTensors tensors;

  FakeAlbert() {
    put("albert.embeddings.word_embeddings.weight", {kV, kW});
    put("albert.embeddings.position_embeddings.weight", {kP, kW});
    put("albert.embeddings.token_type_embeddings.weight", {2, kW});
    put_pair("albert.embeddings.LayerNorm", {kW});
    put_pair("albert.encoder.embedding_hidden_mapping_in", {kE, kW});
    for (int64_t i = 0; i < 2; ++i) {
      const std::string layer = join_text("albert.encoder.albert_layer_groups.", i, ".albert_layers.0.");
      for (const char* part : {"query", "key", "value", "dense"}) put_pair(layer + "attention." + part, {kE, kE});
      put_pair(layer + "attention.LayerNorm", {kE});
      put_pair(layer + "ffn", {kF, kE});
      put_pair(layer + "ffn_output", {kE, kF});
      put_pair(layer + "full_layer_layer_norm", {kE});
    }
    put_pair("predictions.dense", {kW, kE});
    put_pair("predictions.LayerNorm", {kW});
    put("predictions.bias", {kV});
  }

  void put(const std::string& name, const std::vector<int64_t>& shape) {
    tensors[name] = random_tensor(shape, stream_key(1, name), at::kFloat, 0.3);
  }
  void put_pair(const std::string& name, const std::vector<int64_t>& shape) {
    put(name + ".weight", shape);
    put(name + ".bias", {shape.front()});
  }
  void to_classifier(int64_t outputs) {
    std::erase_if(tensors, [](const auto& item) { return item.first.starts_with("predictions."); });
    put_pair("albert.pooler", {kE, kE});
    put_pair("classifier", {outputs, kE});
  }
};

class AlbertTest : public testing::Test {
 protected:
  ForeignModel open(const FakeAlbert& fake) {
    const fs::path directory = temporary_.path() / "albert";
    make_directories(directory);
    write_file(directory / "config.json", fake.config.dump());
    write_tensors(directory / "model.safetensors", fake.tensors);
    return find_format("hf").open(directory);
  }
  EncoderOptions options_of(const FakeAlbert& fake) { return open(fake).options.as<EncoderOptions>(); }
  std::string refusal(const std::function<void(FakeAlbert&)>& change) {
    FakeAlbert fake;
    change(fake);
    return error_message([&] { open(fake); });
  }
  std::string config_refusal(const std::string& key, const nlohmann::json& value) {
    return refusal([&](FakeAlbert& fake) { fake.config[key] = value; });
  }

 private:
  TemporaryDirectory temporary_;
};

TEST_F(AlbertTest, ReadsTheConfiguration) {
  const EncoderOptions options = options_of(FakeAlbert());
  EXPECT_EQ(options.vocabulary, FakeAlbert::kV);
  EXPECT_EQ(options.context, FakeAlbert::kP);
  EXPECT_EQ(options.layers, 4);
  EXPECT_EQ(options.layer_groups, 2);
  EXPECT_EQ(options.embedding_width, FakeAlbert::kW);
  EXPECT_EQ(options.attention.d_model, FakeAlbert::kE);
  EXPECT_EQ(options.activation, ActivationKind::kGeluTanh);
  EXPECT_EQ(options.norm_epsilon, 1e-12);
  EXPECT_EQ(options.segments, 2);
  EXPECT_TRUE(options.masked_head && options.tie_embeddings);
  EXPECT_FALSE(options.pooler);
}

TEST_F(AlbertTest, AnEmptyConfigurationIsAlbertXxlarge) {
  TemporaryDirectory directory;
  write_file(directory.path() / "config.json", R"({"model_type": "albert"})");
  EXPECT_EQ(measure(read_hf_shape(directory.path()).options.as<EncoderOptions>()).total_parameters, 222595584);
}

TEST_F(AlbertTest, EveryTensorOfOursIsMappedOnce) {
  FakeAlbert fake;
  fake.put_pair("albert.pooler", {FakeAlbert::kE, FakeAlbert::kE});
  fake.put_pair("sop_classifier.classifier", {2, FakeAlbert::kE});
  fake.tensors["albert.embeddings.position_ids"] = at::arange(8).unsqueeze(0);
  fake.tensors["predictions.decoder.weight"] = fake.tensors.at("albert.embeddings.word_embeddings.weight").clone();
  fake.tensors["predictions.decoder.bias"] = fake.tensors.at("predictions.bias").clone();
  const ForeignModel foreign = open(fake);
  std::set<std::string> targets;
  for (const MappedTensor& one : foreign.tensors) EXPECT_TRUE(targets.insert(one.target).second) << one.target;
  std::set<std::string> wanted;
  for (const auto& [name, tensor] : model_tensors(*Encoder(foreign.options.as<EncoderOptions>()))) {
    wanted.insert(name);
  }
  EXPECT_EQ(targets, wanted);
  EXPECT_EQ(foreign.unused.size(), 5U);
  EXPECT_THAT(foreign.notes, ElementsAre(HasSubstr("sop_classifier")));
  const NamedTensors ours = model_tensors(*read_model(foreign).module);
  EXPECT_EQ(distance(ours.at("blocks.1.feed_forward.contract.weight"),
                     fake.tensors.at("albert.encoder.albert_layer_groups.1.albert_layers.0.ffn_output.weight")),
            0);
  EXPECT_EQ(distance(ours.at("embedding_projection.bias"),
                     fake.tensors.at("albert.encoder.embedding_hidden_mapping_in.bias")),
            0);
}

TEST_F(AlbertTest, TiedTensorsMustAgree) {
  EXPECT_THAT(refusal([](FakeAlbert& fake) {
                fake.put("predictions.decoder.weight", {FakeAlbert::kV, FakeAlbert::kW});
              }),
              HasSubstr("set tie_word_embeddings to false"));
  FakeAlbert untied;
  untied.config["tie_word_embeddings"] = false;
  untied.put("predictions.decoder.weight", {FakeAlbert::kV, FakeAlbert::kW});
  untied.put("predictions.decoder.bias", {FakeAlbert::kV});
  const NamedTensors ours = model_tensors(*read_model(open(untied)).module);
  EXPECT_EQ(distance(ours.at("masked_head.output_bias"), untied.tensors.at("predictions.decoder.bias")), 0);
}

TEST_F(AlbertTest, WhatCannotBeReproducedIsRefusedByName) {
  EXPECT_THAT(config_refusal("hidden_act", "selu"), HasSubstr("hidden_act is \"selu\""));
  EXPECT_THAT(config_refusal("position_embedding_type", "relative_key"), HasSubstr("reads absolute positions"));
  EXPECT_THAT(config_refusal("is_decoder", true), HasSubstr("is_decoder is true"));
  EXPECT_THAT(config_refusal("is_causal", true), HasSubstr("is_causal is true"));
  EXPECT_THAT(config_refusal("inner_group_num", 2), HasSubstr("inner_group_num is 2"));
  EXPECT_THAT(config_refusal("inner_group_num", "x"), HasSubstr("inner_group_num is \"x\""));
  EXPECT_THAT(config_refusal("num_hidden_groups", 3),
              HasSubstr("num_hidden_groups is 3, which does not divide num_hidden_layers 4"));
  EXPECT_THAT(config_refusal("num_hidden_groups", "auto"), HasSubstr("num_hidden_groups"));
  EXPECT_THAT(config_refusal("embedding_size", "auto"), HasSubstr("embedding_size"));
  EXPECT_THAT(config_refusal("num_hidden_groups", 4),
              HasSubstr("albert_layer_groups.2.albert_layers.0.attention.query"));
  EXPECT_THAT(config_refusal("embedding_size", 5), HasSubstr("has shape [11, 4], the configuration asks for [11, 5]"));
  EXPECT_THAT(config_refusal("architectures", {"AlbertForTokenClassification"}),
              HasSubstr("AlbertForTokenClassification"));
  EXPECT_THAT(refusal([](FakeAlbert& fake) {
                fake.put_pair("albert.encoder.albert_layer_groups.0.albert_layers.1.ffn", {10, 6});
              }),
              HasSubstr("2 tensors are not part of the ALBERT"));
}

TEST_F(AlbertTest, SaysWhereTrainingDiffers) {
  FakeAlbert fake;
  fake.to_classifier(3);
  fake.config["architectures"] = {"AlbertForSequenceClassification"};
  fake.config["id2label"] = {{"0", "a"}, {"1", "b"}, {"2", "c"}};
  fake.config["classifier_dropout_prob"] = 0.2;
  const ForeignModel foreign = open(fake);
  EXPECT_THAT(foreign.options.as<EncoderOptions>().task_head.labels, ElementsAre("a", "b", "c"));
  EXPECT_THAT(foreign.notes, ElementsAre(HasSubstr("classifier_dropout_prob 0.2 is not")));
  fake.config["hidden_dropout_prob"] = 0.2;
  EXPECT_THAT(open(fake).notes, ElementsAre(HasSubstr("drops nothing after its feed-forward part")));
}

}  // namespace
}  // namespace headshare
