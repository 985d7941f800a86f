// These properties hold for every model type of Hugging Face: each has one row, and a row that writes gives back what
// it was given.
#include "headshare/convert/hf/model_types.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <set>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/convert/formats.h"
#include "headshare/convert/hf/testing.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

class ModelTypesTest : public testing::Test {
 protected:
  HfShape shape_of(const HfModelType& type, const nlohmann::json& more = nlohmann::json::object()) {
    nlohmann::json config = {{"model_type", type.name}};
    config.update(more);
    write_file(folder_.path() / "config.json", config.dump());
    return read_hf_shape(folder_.path());
  }

  // The type that a model is written as. What comes back is the same to the bit.
  std::string written_as(const ModelOptions& resolved) {
    const std::shared_ptr<torch::nn::Module> model = resolved.kind().make(resolved);
    randomise(*model);
    const ModelToWrite written{.options = resolved, .tensors = model_tensors(*model)};
    const fs::path directory = folder_.path() / "written";
    make_directories(directory);
    find_written_format("hf")->write(written, directory);
    const ForeignModel foreign = find_format("hf").open(directory);
    EXPECT_EQ(stored_option_values(foreign.options), stored_option_values(resolved));
    EXPECT_EQ(foreign.tensors.size(), written.tensors.size());
    for (const MappedTensor& one : foreign.tensors) {
      EXPECT_TRUE(at::equal(one.read(), written.tensors.at(one.target))) << one.target;
    }
    return HfConfig(directory / "config.json").value("model_type").get<std::string>();
  }

  TemporaryDirectory folder_;
};

TEST_F(ModelTypesTest, EachHasOneRowOfTheKindThatItsConfigurationGives) {
  std::set<std::string> names;
  for (const HfModelType& type : hf_model_types()) {
    EXPECT_TRUE(names.insert(type.name).second) << type.name;
    EXPECT_FALSE(type.models.empty()) << type.name;
    EXPECT_EQ(shape_of(type).options.kind().name(), type.kind) << type.name;
    EXPECT_EQ(type.objections == nullptr, type.content == nullptr) << type.name;
  }
  EXPECT_THAT(names, Contains("llama"));
}

TEST_F(ModelTypesTest, TheReadmeListsThem) {
  const std::string readme = read_file(fs::path(HEADSHARE_SOURCE_DIR) / "README.md");
  std::vector<std::string> read;
  for (const HfModelType& type : hf_model_types()) {
    for (const std::string& model : type.models) {
      EXPECT_THAT(readme, HasSubstr(model));
      if (type.open != nullptr) read.push_back(model);
    }
  }
  EXPECT_THAT(readme, HasSubstr("| models of others that come in | " + list_text(read) + " |"));
  EXPECT_THAT(readme, HasSubstr("| models that go out to transformers | " + written_types_text()));
}

// A scaled rotation changes what a model computes: who reads tensors refuses it, who counts costs names it.
TEST_F(ModelTypesTest, NoScaledRotationIsPassedOverInSilence) {
  int64_t rotary = 0;
  for (const HfModelType& type : hf_model_types()) {
    if (shape_of(type).options.common().positions != PositionKind::kRotary) continue;
    ++rotary;
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const nlohmann::json scaled = {{key, {{"rope_type", "yarn"}, {"factor", 4.0}}}};
      std::vector<std::string> notes;
      const std::string refused = error_message([&] { notes = shape_of(type, scaled).notes; });
      EXPECT_TRUE(refused != "no error" || type.open == nullptr) << type.name << " converts such a model";
      notes.push_back(refused);
      EXPECT_THAT(notes, Contains(HasSubstr(key))) << type.name;
    }
  }
  EXPECT_GE(rotary, 3);
}

EncoderOptions bert_like() {
  EncoderOptions options = small_encoder_options("mha");
  options.pooler = false;
  options.dropout = 0.125;
  return options;
}

TEST_F(ModelTypesTest, WhatSeveralTypesHoldIsWrittenAsTheFirst) { EXPECT_EQ(written_as(resolve(bert_like())), "bert"); }

TEST_F(ModelTypesTest, DistilBertsComeBack) {
  EncoderOptions options = bert_like();
  options.segments = 0;
  for (const bool tied : {true, false}) {
    options.tie_embeddings = tied;
    EXPECT_EQ(written_as(resolve(options)), "distilbert");
  }
  options.masked_head = false;
  EXPECT_EQ(written_as(resolve(options)), "distilbert");
  options.tie_embeddings = true;
  options.task_head = {.kind = TaskHeadKind::kToken, .outputs = 2};
  EXPECT_EQ(written_as(resolve(options)), "distilbert");
  options.task_head = {.kind = TaskHeadKind::kText, .outputs = 3, .labels = {"a", "b", "c"}};
  options.pooler = true;
  options.pooler_activation = PoolerActivation::kRelu;
  EXPECT_EQ(written_as(resolve(options)), "distilbert");
  options.pooler_activation = PoolerActivation::kTanh;
  EXPECT_EQ(type_to_write(resolve(options)), nullptr);
}

TEST_F(ModelTypesTest, AlbertsComeBack) {
  EncoderOptions options = bert_like();
  options.layers = 4;
  options.layer_groups = 2;
  options.embedding_width = 6;
  for (const bool tied : {true, false}) {
    options.tie_embeddings = tied;
    EXPECT_EQ(written_as(resolve(options)), "albert");
  }
  options.tie_embeddings = true;
  options.masked_head = false;
  options.pooler = true;
  EXPECT_EQ(written_as(resolve(options)), "albert");
  options.task_head = {.kind = TaskHeadKind::kText, .outputs = 1};
  EXPECT_EQ(type_to_write(resolve(options))->name, "albert");
  options.layer_groups.reset();
  EXPECT_THAT(why_no_type_holds(resolve(options)), HasSubstr("--embedding-width"));
}

TEST_F(ModelTypesTest, TheReasonIsThatOfTheNearestType) {
  EncoderOptions albert = bert_like();
  albert.layers = 4;
  albert.layer_groups = 2;
  albert.embedding_width = 6;
  albert.attention.scheme = "mqa";
  EXPECT_THAT(why_no_type_holds(resolve(albert)), StartsWith("the encoder's attention is mqa, which ALBERT has no"));
  EncoderOptions distilbert = bert_like();
  distilbert.segments = 0;
  distilbert.attention.scheme = "mqa";
  EXPECT_THAT(why_no_type_holds(resolve(distilbert)), StartsWith("the encoder's attention is mqa, which DistilBERT"));
  albert.attention.scheme = "mha";
  albert.embedding_width.reset();
  EXPECT_EQ(why_no_type_holds(resolve(albert)),
            "the encoder's layers share their parameters (--layer-groups), which BERT has no place for; only headshare "
            "reads such a model; and as ALBERT: the encoder's embedding is not factorised, and ALBERT's is "
            "(--embedding-width)");
}

TEST_F(ModelTypesTest, Gpt2sComeBack) {
  DecoderOptions options = small_options("mha");
  options.attention.projection_bias = true;
  options.attention.attention_dropout = 0.25;
  for (const bool tied : {true, false}) {
    options.tie_embeddings = tied;
    EXPECT_EQ(written_as(resolve(options)), "gpt2");
  }
  options.attention.scale = 1;
  EXPECT_EQ(written_as(resolve(options)), "gpt2") << "scores that are not scaled";
}

TEST_F(ModelTypesTest, DecodersThatGpt2CannotHoldAreRefused) {
  const auto refused = [](const std::function<void(DecoderOptions&)>& change) {
    DecoderOptions options = small_options("mha");
    options.attention.projection_bias = true;
    change(options);
    return why_no_type_holds(resolve(options));
  };
  EXPECT_EQ(refused([](DecoderOptions&) {}), "");
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.scheme = "mqa"; }),
              HasSubstr("the decoder's attention is mqa, which GPT-2 has no place for"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.positions = PositionKind::kAlibi; }), HasSubstr("--positions"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.projection_bias = false; }), HasSubstr("--projection-bias"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.feed_forward_bias = false; }), HasSubstr("--feed-forward-bias"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.norm = NormKind::kRms; }), HasSubstr("--norm rms"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.feed_forward = FeedForwardKind::kSwiglu; }), HasSubstr("gated"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.qk_norm = true; }), HasSubstr("--qk-norm"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.layer_groups = 1; }), HasSubstr("--layer-groups"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.head_width = 8; }), HasSubstr("heads are 8 wide"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.scale = 2; }), HasSubstr("scales its scores by 2"));
}

TEST_F(ModelTypesTest, EncoderDecodersAreNotWritten) {
  const EncoderDecoder model = random_translator("mha", "mha");
  EXPECT_THAT(why_no_type_holds(model->options()), HasSubstr("the model is an encoder-decoder"));
  EXPECT_THAT(error_message([&] {
                find_written_format("hf")->write({.options = model->options(), .tensors = model_tensors(*model)},
                                                 folder_.path());
              }),
              HasSubstr("the model is an encoder-decoder"));
}

}  // namespace
}  // namespace headshare
