// These properties hold for every model type of Hugging Face: each has one row, and a row that writes gives back what
// it was given.
#include "headshare/convert/hf/model_types.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <set>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
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
    find_written_format("hf")->write(written, "", directory);
    const ForeignModel foreign = find_written_format("hf")->read_back(directory);
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
    const nlohmann::json timm = {{"architecture", "vit_tiny_patch16_224"}};  // the other types ignore it
    EXPECT_EQ(shape_of(type, timm).options.kind().name(), type.kind) << type.name;
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

// A rotation that we do not have changes what a model computes: who reads tensors refuses it, who counts costs names
// it.
TEST_F(ModelTypesTest, NoOtherRotationIsPassedOverInSilence) {
  int64_t rotary = 0;
  for (const HfModelType& type : hf_model_types()) {
    if (type.kind == "vision-transformer" || shape_of(type).options.common().positions != PositionKind::kRotary)
      continue;
    ++rotary;
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const nlohmann::json scaled = {{key, {{"rope_type", "dynamic"}, {"factor", 4.0}}}};
      EXPECT_THAT(shape_of(type, scaled).notes, Contains(HasSubstr(key))) << type.name;
      write_tensors(folder_.path() / "model.safetensors", {{"x", at::zeros({1})}});
      EXPECT_THAT(error_message([&] { find_format("hf").open(folder_.path()); }), HasSubstr(key)) << type.name;
    }
  }
  EXPECT_GE(rotary, 5);
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

TEST_F(ModelTypesTest, DecodersWithOneKeyComeBackAsGptBigCode) {
  DecoderOptions options = small_options("mqa");
  options.attention.projection_bias = true;
  options.feed_forward_width = 40;
  for (const bool tied : {true, false}) {
    options.tie_embeddings = tied;
    EXPECT_EQ(written_as(resolve(options)), "gpt_bigcode");
  }
}

TEST_F(ModelTypesTest, RotaryDecodersComeBackAsLlama) {
  for (const std::string scheme : {"mha", "gqa", "mqa"}) {
    DecoderOptions options = small_options(scheme, PositionKind::kRotary);
    options.norm = NormKind::kRms;
    options.norm_epsilon = 1e-6;
    options.attention.head_width = 6;
    options.attention.rotary_base = 500000;
    for (const bool biases : {true, false}) {
      options.feed_forward = biases ? FeedForwardKind::kSwiglu : FeedForwardKind::kGeglu;
      options.tie_embeddings = options.attention.projection_bias = biases;
      options.feed_forward_bias = !biases;
      EXPECT_EQ(written_as(resolve(options)), "llama");
    }
  }
  DecoderOptions options = small_options("mha", PositionKind::kRotary);
  EXPECT_THAT(why_no_type_holds(resolve(options), "llama"), HasSubstr("--norm"));
}

TEST_F(ModelTypesTest, ScaledRotationsComeBack) {
  DecoderOptions options = small_options("gqa", PositionKind::kRotary);
  options.norm = NormKind::kRms;
  options.feed_forward = FeedForwardKind::kSwiglu;
  const RotaryScaling kinds[] = {
      {.kind = RotaryScalingKind::kLinear, .factor = 3},
      {.kind = RotaryScalingKind::kLlama3, .factor = 8, .original_context = 6, .low_frequency_factor = 2},
      {.kind = RotaryScalingKind::kYarn, .factor = 4, .original_context = 7, .beta_fast = 9, .truncate = false}};
  for (const RotaryScaling& scaling : kinds) {
    options.attention.rotary_scaling = scaling;
    EXPECT_EQ(written_as(resolve(options)), "llama");
  }
}

TEST_F(ModelTypesTest, DecodersThatNormQueriesComeBackAsQwen3) {
  DecoderOptions options = small_options("gqa", PositionKind::kRotary);
  options.norm = NormKind::kRms;
  options.norm_epsilon = 1e-6;
  options.feed_forward = FeedForwardKind::kSwiglu;
  options.attention.qk_norm = true;
  options.attention.head_width = 6;
  options.feed_forward_bias = false;
  for (const bool biased : {true, false}) {
    options.attention.projection_bias = options.tie_embeddings = biased;
    EXPECT_EQ(written_as(resolve(options)), "qwen3");
  }
  EXPECT_THAT(why_no_type_holds(resolve(options), "llama"), HasSubstr("--qk-norm"));
  options.feed_forward_bias = true;
  EXPECT_THAT(why_no_type_holds(resolve(options)), HasSubstr("--feed-forward-bias"));
  options.feed_forward_bias = options.attention.qk_norm = false;
  EXPECT_THAT(why_no_type_holds(resolve(options), "qwen3"), HasSubstr("norms neither queries nor keys"));
}

TEST_F(ModelTypesTest, DecodersThatGpt2CannotHoldAreRefused) {
  const auto refused = [](const std::function<void(DecoderOptions&)>& change) {
    DecoderOptions options = small_options("mha");
    options.attention.projection_bias = true;
    change(options);
    return why_no_type_holds(resolve(options));
  };
  EXPECT_EQ(refused([](DecoderOptions&) {}), "");
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.scheme = "skv"; }),
              HasSubstr("the decoder's attention is skv, which GPT-2 has no place for"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.positions = PositionKind::kAlibi; }), HasSubstr("--positions"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.norm = NormKind::kRms; }), HasSubstr("--norm rms"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.feed_forward = FeedForwardKind::kSwiglu; }), HasSubstr("gated"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.qk_norm = true; }), HasSubstr("--qk-norm"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.gate = OutputGate::kHead; }), HasSubstr("--output-gate"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.sinks = true; }), HasSubstr("--attention-sinks"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.kv_shift = true; }), HasSubstr("--kv-shift"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.layer_groups = 1; }), HasSubstr("--layer-groups"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.head_width = 8; }), HasSubstr("heads are 8 wide"));
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.scale = 2; }), HasSubstr("scales its scores by 2"));
}

TEST_F(ModelTypesTest, EncoderDecodersThatMarianCannotHoldAreRefused) {
  const auto refused = [](const std::function<void(EncoderDecoderOptions&)>& change) {
    EncoderDecoderOptions options = random_translator("mha", "mha")->options();
    options.sites.reset();
    change(options);
    return why_no_type_holds(resolve(options));
  };
  EXPECT_EQ(refused([](EncoderDecoderOptions&) {}), "");
  EXPECT_THAT(refused([](EncoderDecoderOptions& o) { o.cross_scheme = "gqa"; }), HasSubstr("attention is gqa, which"));
  EXPECT_THAT(refused([](EncoderDecoderOptions& o) { o.positions = PositionKind::kAlibi; }), HasSubstr("--positions"));
  EXPECT_THAT(refused([](EncoderDecoderOptions& o) { o.norms = NormPlacement::kBefore; }), HasSubstr("--norms"));
  EXPECT_THAT(refused([](EncoderDecoderOptions& o) { o.embedding_norm = true; }), HasSubstr("--embedding-norm"));
  EXPECT_THAT(refused([](EncoderDecoderOptions& o) { o.norm_epsilon = 1e-6; }), HasSubstr("--norm-epsilon"));
}

}  // namespace
}  // namespace headshare
