#include <gmock/gmock.h>

#include <limits>
#include <set>

#include "headshare/base/rng.h"
#include "headshare/convert/formats.h"
#include "headshare/convert/hf/testing.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kE = FakeBert::kE;

class BertTest : public testing::Test {
 protected:
  ForeignModel open(const FakeBert& fake) {
    fake.write(directory());
    return find_format("hf").open(directory());
  }
  EncoderOptions options_of(const FakeBert& fake) { return open(fake).options.as<EncoderOptions>(); }
  NamedTensors convert(const FakeBert& fake) { return model_tensors(*read_model(open(fake)).module); }
  // The Error for a model that `change` has spoilt.
  std::string refusal(const std::function<void(FakeBert&)>& change) {
    FakeBert fake;
    change(fake);
    return error_message([&] { open(fake); });
  }
  std::string config_refusal(const std::string& key, const nlohmann::json& value) {
    return refusal([&](FakeBert& fake) { fake.config[key] = value; });
  }
  void write(const Encoder& model) {
    find_written_format("hf")->write({.options = model->options(), .tensors = model_tensors(*model)}, "", out());
  }
  fs::path directory() const { return temporary_.path() / "bert"; }
  fs::path out() const { return temporary_.path() / "out"; }

 private:
  TemporaryDirectory temporary_;
};

TEST_F(BertTest, ReadsTheConfiguration) {
  FakeBert fake;
  fake.config["hidden_act"] = "relu";
  fake.config["layer_norm_eps"] = 1e-6;
  const EncoderOptions options = options_of(fake);
  EXPECT_EQ(options.vocabulary, FakeBert::kV);
  EXPECT_EQ(options.context, FakeBert::kP);
  EXPECT_EQ(options.segments, 3);
  EXPECT_EQ(options.layers, FakeBert::kLayers);
  EXPECT_EQ(options.attention.d_model, kE);
  EXPECT_EQ(options.attention.heads, 2);
  EXPECT_EQ(options.feed_forward_width, FakeBert::kF);
  EXPECT_EQ(options.activation, ActivationKind::kRelu);
  EXPECT_EQ(options.norm_epsilon, 1e-6);
  EXPECT_EQ(options.dropout, 0.2);
  EXPECT_EQ(options.attention.attention_dropout, 0.25);
  EXPECT_TRUE(options.attention.projection_bias && options.tie_embeddings && options.masked_head);
  EXPECT_FALSE(options.pooler);
  EXPECT_EQ(options.norms, NormPlacement::kAfter);
}

TEST_F(BertTest, EveryTensorOfOursIsMappedOnce) {
  FakeBert fake;
  fake.put_pair("bert.pooler.dense", {kE, kE});
  fake.config["tie_word_embeddings"] = false;
  fake.put("cls.predictions.decoder.weight", {FakeBert::kV, kE});
  const ForeignModel foreign = open(fake);
  std::set<std::string> targets;
  for (const MappedTensor& one : foreign.tensors) EXPECT_TRUE(targets.insert(one.target).second) << one.target;
  std::set<std::string> wanted;
  for (const auto& [name, tensor] : model_tensors(*Encoder(foreign.options.as<EncoderOptions>()))) {
    wanted.insert(name);
  }
  EXPECT_EQ(targets, wanted);
  const NamedTensors ours = model_tensors(*read_model(foreign).module);
  EXPECT_EQ(distance(ours.at("blocks.1.attention.scheme.key.weight"),
                     fake.tensors.at("bert.encoder.layer.1.attention.self.key.weight")),
            0);
  EXPECT_EQ(distance(ours.at("masked_head.output_embedding"), fake.tensors.at("cls.predictions.decoder.weight")), 0);
}

TEST_F(BertTest, OldNamesAndWhatSaysNothingNew) {
  FakeBert fake;
  const NamedTensors expected = convert(fake);
  FakeBert old;
  old.tensors.clear();
  for (const auto& [name, tensor] : fake.tensors) {
    std::string was = name;
    if (const size_t norm = was.find("LayerNorm.weight"); norm != std::string::npos) was.replace(norm + 10, 6, "gamma");
    if (const size_t norm = was.find("LayerNorm.bias"); norm != std::string::npos) was.replace(norm + 10, 4, "beta");
    old.tensors[was] = tensor;
  }
  old.tensors["bert.embeddings.position_ids"] = at::arange(8).unsqueeze(0);
  old.tensors["cls.predictions.decoder.weight"] = fake.tensors.at("bert.embeddings.word_embeddings.weight").clone();
  old.tensors["cls.predictions.decoder.bias"] = fake.tensors.at("cls.predictions.bias").clone();
  old.put_pair("cls.seq_relationship", {2, kE});
  EXPECT_EQ(open(old).unused.size(), 5u);
  const NamedTensors found = convert(old);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected) EXPECT_EQ(distance(found.at(name), tensor), 0) << name;
}

TEST_F(BertTest, ABareBertModelHasNoHead) {
  FakeBert fake;
  FakeBert bare;
  bare.tensors.clear();
  for (const auto& [name, tensor] : fake.tensors) {
    if (name.starts_with("bert.")) bare.tensors[name.substr(5)] = tensor;
  }
  bare.put_pair("pooler.dense", {kE, kE});
  const EncoderOptions options = options_of(bare);
  EXPECT_FALSE(options.masked_head);
  EXPECT_TRUE(options.pooler);
  EXPECT_EQ(distance(convert(bare).at("pooler.bias"), bare.tensors.at("pooler.dense.bias")), 0);
}

TEST_F(BertTest, TiedTensorsMustAgree) {
  EXPECT_THAT(refusal([](FakeBert& fake) {
                fake.put("cls.predictions.decoder.weight", {FakeBert::kV, kE});
              }),
              HasSubstr("set tie_word_embeddings to false"));
  EXPECT_THAT(refusal([](FakeBert& fake) { fake.put("cls.predictions.decoder.bias", {FakeBert::kV}); }),
              HasSubstr("cls.predictions.decoder.bias' differs from 'cls.predictions.bias'"));
  // transformers may keep either of the two.
  FakeBert fake;
  const NamedTensors expected = convert(fake);
  fake.tensors["cls.predictions.decoder.bias"] = fake.tensors.at("cls.predictions.bias");
  fake.tensors.erase("cls.predictions.bias");
  EXPECT_EQ(distance(convert(fake).at("masked_head.output_bias"), expected.at("masked_head.output_bias")), 0);
  // Without ties it adds the decoder's.
  fake.put("cls.predictions.bias", {FakeBert::kV});
  fake.put("cls.predictions.decoder.bias", {FakeBert::kV});
  fake.put("cls.predictions.decoder.weight", {FakeBert::kV, kE});
  fake.config["tie_word_embeddings"] = false;
  EXPECT_EQ(distance(convert(fake).at("masked_head.output_bias"), fake.tensors.at("cls.predictions.decoder.bias")), 0);
}

TEST_F(BertTest, ConfigurationsWeCannotReproduceAreRefusedByName) {
  EXPECT_THAT(config_refusal("hidden_act", "selu"), HasSubstr("hidden_act is \"selu\""));
  EXPECT_THAT(config_refusal("position_embedding_type", "relative_key"), HasSubstr("reads absolute positions"));
  EXPECT_THAT(config_refusal("is_decoder", true), HasSubstr("is_decoder is true"));
  EXPECT_THAT(config_refusal("is_causal", true), HasSubstr("is_causal is true: no token of this BERT"));
  EXPECT_THAT(config_refusal("add_cross_attention", true), HasSubstr("add_cross_attention is true"));
  EXPECT_THAT(config_refusal("type_vocab_size", 0), HasSubstr("type_vocab_size is 0"));
  EXPECT_THAT(config_refusal("num_attention_heads", 4), HasSubstr("config.json: heads must divide d-model: 6 / 4"));
  EXPECT_THAT(config_refusal("vocab_size", 1 << 30),
              HasSubstr("has shape [11, 6], the configuration asks for [1073741"));
  EXPECT_THAT(config_refusal("num_hidden_layers", 3),
              HasSubstr("tensor 'encoder.layer.2.attention.self.query.weight' is missing"));
  EXPECT_THAT(config_refusal("num_hidden_layers", 1), HasSubstr("16 tensors are not part of the BERT"));
  EXPECT_THAT(config_refusal("intermediate_size", 9), HasSubstr("intermediate.dense.weight' has shape [10, 6]"));
  EXPECT_THAT(refusal([](FakeBert& fake) {
                fake.tensors["classifier.weight"] = at::ones({2, kE});
              }),
              HasSubstr("the first is 'classifier.weight'"));
  EXPECT_THAT(refusal([](FakeBert& fake) { fake.tensors["embeddings.LayerNorm.weight"] = at::ones({kE}); }),
              HasSubstr("'embeddings.LayerNorm.weight' stands twice"));
}

// A pooler and a classifier instead of the masked-LM head, by a class of transformers.
FakeBert classifier(const std::string& architecture, int64_t outputs) {
  FakeBert fake;
  std::erase_if(fake.tensors, [](const auto& item) { return item.first.starts_with("cls."); });
  fake.put_pair("bert.pooler.dense", {kE, kE});
  fake.put_pair("classifier", {outputs, kE});
  fake.config["architectures"] = {architecture};
  for (int64_t i = 0; i < outputs; ++i) fake.config["id2label"][std::to_string(i)] = join_text("L", i);
  return fake;
}

TEST_F(BertTest, HeadsOfAnotherProblemAreRefused) {
  const auto refused = [&](int64_t outputs, const char* problem) {
    FakeBert fake = classifier("BertForSequenceClassification", outputs);
    fake.config["problem_type"] = problem;
    return error_message([&] { open(fake); });
  };
  EXPECT_EQ(refused(3, "single_label_classification"), "no error");
  EXPECT_EQ(refused(1, "regression"), "no error");
  EXPECT_THAT(refused(3, "multi_label_classification"),
              HasSubstr("problem_type is \"multi_label_classification\" with 3 outputs; headshare's heads of 3 are for "
                        "single_label_classification"));
  EXPECT_THAT(refused(2, "regression"), HasSubstr("problem_type is \"regression\" with 2 outputs"));
  EXPECT_THAT(refused(1, "single_label_classification"), HasSubstr("with 1 output; "));
}

TEST_F(BertTest, TheNumberOfLabelsGivesTheClassesWithoutNames) {
  FakeBert fake = classifier("BertForSequenceClassification", 5);
  EXPECT_EQ(open(fake).options.as<EncoderOptions>().task_head.labels.size(), 5u);
  fake.config.erase("id2label");
  EXPECT_THAT(error_message([&] { open(fake); }), HasSubstr("has shape [5, 6], the configuration asks for [2, 6]"));
  fake.config["num_labels"] = 5;
  const TaskHeadOptions head = open(fake).options.as<EncoderOptions>().task_head;
  EXPECT_EQ(head.outputs, 5);
  EXPECT_TRUE(head.labels.empty());
  fake.config["id2label"] = {{"0", "no"}, {"1", "yes"}};
  const TaskHeadOptions nameless = open(fake).options.as<EncoderOptions>().task_head;
  EXPECT_EQ(nameless.outputs, 5);
  EXPECT_TRUE(nameless.labels.empty()) << "as transformers drops names that are not as many";
  fake.config.erase("id2label");
  for (const nlohmann::json& none : {nlohmann::json(0), nlohmann::json("many"), nlohmann::json(2.5)}) {
    fake.config["num_labels"] = none;
    EXPECT_THAT(error_message([&] { open(fake); }), HasSubstr("config.json: num_labels")) << none;
  }
}

TEST_F(BertTest, TiedWeightsMayHaveEitherName) {
  FakeBert fake;
  const std::string embedding = "bert.embeddings.word_embeddings.weight";
  const Tensor table = fake.tensors.at(embedding);
  fake.tensors["cls.predictions.decoder.weight"] = table.clone();
  fake.tensors.erase(embedding);
  EXPECT_EQ(distance(model_tensors(*read_model(open(fake)).module).at("token_embedding"), table), 0);
  fake.tensors.erase("cls.predictions.decoder.weight");
  EXPECT_THAT(
      error_message([&] { open(fake); }),
      HasSubstr("'embeddings.word_embeddings.weight' is missing, which the BERT that config.json describes has; nor "
                "is there a copy of it, cls.predictions.decoder.weight"));
  fake.config["tie_word_embeddings"] = false;
  fake.tensors["cls.predictions.decoder.weight"] = table.clone();
  EXPECT_THAT(error_message([&] { open(fake); }),
              HasSubstr("describes has; cls.predictions.decoder.weight is there, and config.json says that it is not "
                        "the embedding: if it is, set tie_word_embeddings to true there"));
}

TEST_F(BertTest, AMultipleChoiceHeadGivesEveryChoiceANumber) {
  FakeBert fake = classifier("BertForMultipleChoice", 1);
  fake.config.erase("id2label");  // transformers' default is 2, which says nothing about this head
  const ForeignModel foreign = open(fake);
  const TaskHeadOptions head = foreign.options.as<EncoderOptions>().task_head;
  EXPECT_EQ(head.kind, TaskHeadKind::kText);
  EXPECT_EQ(head.outputs, 1);
  EXPECT_THAT(foreign.notes, ElementsAre(HasSubstr("BertForMultipleChoice")));
}

TEST_F(BertTest, AClassifiersOwnDropoutIsNotLostInSilence) {
  FakeBert fake = classifier("BertForSequenceClassification", 3);
  EXPECT_TRUE(open(fake).notes.empty());
  fake.config["classifier_dropout"] = 0.25;
  EXPECT_THAT(open(fake).notes, ElementsAre(HasSubstr("classifier_dropout 0.25 is not")));
}

TEST_F(BertTest, ClassesWeDoNotKnowAreRefusedByName) {
  FakeBert tagger = classifier("BertForTokenClassification", 3);
  EXPECT_THAT(error_message([&] { open(tagger); }), HasSubstr("architectures names 'BertForTokenClassification'"));
  EXPECT_THAT(config_refusal("architectures", {"BertForMaskedLn"}), HasSubstr("did you mean"));
  EXPECT_THAT(config_refusal("architectures", 1), HasSubstr("not a list of class names"));
  EXPECT_EQ(config_refusal("architectures", {"BertForMaskedLM"}), "no error");
  EXPECT_EQ(config_refusal("architectures", nlohmann::json::array()), "no error");
}

TEST_F(BertTest, TheNextSentenceHeadIsLeftOutWithANote) {
  FakeBert fake;
  EXPECT_TRUE(open(fake).notes.empty());
  fake.put_pair("cls.seq_relationship", {2, kE});
  EXPECT_THAT(open(fake).notes, ElementsAre(HasSubstr("next-sentence head")));
}

TEST_F(BertTest, WeightsInAnotherFormNameTheClassThatKeepsTheHead) {
  FakeBert fake = classifier("BertForSequenceClassification", 2);
  fake.write(directory());
  fs::remove(directory() / "model.safetensors");
  const auto advice = [&] { return error_message([&] { find_format("hf").open(directory()); }); };
  EXPECT_THAT(advice(), HasSubstr("BertForSequenceClassification.from_pretrained(DIR).save_pretrained"));
  fake.config.erase("architectures");
  write_file(directory() / "config.json", fake.config.dump());
  EXPECT_THAT(advice(), HasSubstr(" AutoModel.from_pretrained(DIR)"));
}

TEST_F(BertTest, NumbersThatAreNotFiniteAreRefused) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  FakeBert fake;
  fake.tensors.at("bert.embeddings.LayerNorm.bias").slice(0, 0, 2).fill_(kInfinite);
  const ForeignModel foreign = open(fake);
  EXPECT_THAT(error_message([&] { read_model(foreign); }),
              HasSubstr("tensor 'bert.embeddings.LayerNorm.bias' has 2 values of 6 that are not finite"));
  const Encoder model = small_encoder(small_encoder_options("mha"));
  {
    const at::NoGradGuard no_grad;
    model_tensors(*model).at("embedding_norm.bias")[1].fill_(std::nanf(""));
  }
  make_directories(out());
  EXPECT_THAT(error_message([&] { write(model); }), HasSubstr("tensor 'embedding_norm.bias' has 1 values of "));
}

// Whatever the configuration holds, the result is a model or an Error.
TEST_F(BertTest, EveryKeyWithValuesOfEveryType) {
  const std::vector<nlohmann::json> values = {nullptr, true,   -1,  0,      0.5, 1e308, UINT64_MAX, "",
                                              "gelu",  "auto", "-", {1, 2}, {},  3,     1 << 30,    {{"a", 1}}};
  FakeBert all;
  for (const char* key : {"hidden_act", "tie_word_embeddings", "is_decoder", "add_cross_attention", "pruned_heads",
                          "quantization_config", "position_embedding_type", "layer_norm_eps", "initializer_range"}) {
    all.config[key] = nullptr;
  }
  FakeBert().write(directory());
  int refused = 0;
  for (const auto& [key, ignored] : all.config.items()) {
    if (key == "model_type") continue;
    for (const nlohmann::json& value : values) {
      nlohmann::json config = FakeBert().config;
      config[key] = value;
      write_file(directory() / "config.json", config.dump());
      try {
        read_model(find_format("hf").open(directory()));
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(directory().string())) << key << " = " << value;
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST_F(BertTest, WhatIsWrittenComesBackBitForBit) {
  for (const bool head : {true, false}) {
    EncoderOptions options = small_encoder_options("mha");
    options.masked_head = head;
    options.tie_embeddings = !head;
    options.dropout = 0.1;
    const Encoder model = small_encoder(options);
    randomise(*model);
    make_directories(out());
    write(model);
    const ForeignModel foreign = find_format("hf").open(out());
    EncoderOptions before = model->options();
    EncoderOptions after = foreign.options.as<EncoderOptions>();
    EXPECT_EQ(to_json(stored_fields(after)), to_json(stored_fields(before)));
    const NamedTensors found = model_tensors(*read_model(foreign).module);
    for (const auto& [name, tensor] : model_tensors(*model)) EXPECT_TRUE(at::equal(found.at(name), tensor)) << name;
  }
}

TEST_F(BertTest, EncodersThatBertCannotHoldAreRefused) {
  const auto refused = [](const std::function<void(EncoderOptions&)>& change) {
    EncoderOptions options = small_encoder_options("mha");
    change(options);
    return find_written_format("hf")->why_not_write(resolve(options), "");
  };
  EXPECT_EQ(refused([](EncoderOptions&) {}), "");
  EXPECT_THAT(refused([](EncoderOptions& o) { o.attention.scheme = "mhe_add"; }),
              HasSubstr("the encoder's attention is mhe_add, which BERT has no place for"));
  EXPECT_THAT(refused([](EncoderOptions& o) {
                o.masked_head = false;
                o.embedding.kind = TokenEmbeddingKind::kHashProj;
              }),
              HasSubstr("--words FILE"));
  EXPECT_THAT(refused([](EncoderOptions& o) { o.masked_head = o.three_way_head = true; }),
              HasSubstr("three-way classification beside another"));
  EXPECT_EQ(refused([](EncoderOptions& o) {
              o.masked_head = false;
              o.three_way_head = true;
            }),
            "");
  EXPECT_THAT(refused([](EncoderOptions& o) { o.norms = NormPlacement::kBefore; }), HasSubstr("--norms pre"));
  EXPECT_THAT(refused([](EncoderOptions& o) { o.positions = PositionKind::kRotary; }), HasSubstr("not learned"));
  EXPECT_THAT(refused([](EncoderOptions& o) { o.segments = 0; }), HasSubstr("--segments"));
  EXPECT_THAT(refused([](EncoderOptions& o) { o.attention.projection_bias = false; }), HasSubstr("--projection-bias"));
  EXPECT_THAT(refused([](EncoderOptions& o) { o.feed_forward_bias = false; }), HasSubstr("--feed-forward-bias"));
  EXPECT_THAT(refused([](EncoderOptions& o) { o.attention.content_bias = true; }), HasSubstr("a content bias"));
  EXPECT_THAT(refused([](EncoderOptions& o) { o.attention.key_width = 8; }), HasSubstr("its keys 8 together"));
  EXPECT_THAT(refused([](EncoderOptions& o) { o.attention.scale = 1; }), HasSubstr("scales its scores by 1"));
}

}  // namespace
}  // namespace headshare
