#include "headshare/host/model_description.h"

#include <gmock/gmock.h>

#include "headshare/attention/schemes/gqa.h"
#include "headshare/base/testing.h"
#include "headshare/host/model_shape.h"
#include "headshare/tasks/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

Decoder small_decoder() {
  DecoderOptions options{.vocabulary = 256, .context = 8, .layers = 2};
  options.attention = {.scheme = "mqa", .d_model = 16, .heads = 2};
  return Decoder(resolve(options));
}

TEST(ModelDescriptionTest, ADecoderWithItsTokenizer) {
  const TemporaryDirectory home;
  const Decoder model = small_decoder();
  const ByteTokenizer bytes;
  save_model(home.path(), model, &bytes);
  write_file(home.path() / "training.json", R"({"step": 7})");
  const ModelDescription found = describe_checkpoint(home.path(), read_options(home.path()));
  EXPECT_EQ(found.kind, "decoder");
  EXPECT_EQ(found.size.total_parameters, measure(model->options()).total_parameters);
  EXPECT_EQ(found.weights_bytes, fs::file_size(home.path() / "model.safetensors"));
  EXPECT_EQ(found.tensors, model->parameters().size());
  EXPECT_TRUE(found.keeps_cache);
  EXPECT_EQ(found.tokenizer->kind, "bytes");
  EXPECT_EQ(found.tokenizer->vocabulary_size, 256);
  EXPECT_TRUE(found.tokenizer->lossless);
  EXPECT_EQ(found.step, 7);
  EXPECT_EQ(found.options.at("d-model"), 16);
  const nlohmann::ordered_json object = to_json(found);
  EXPECT_EQ(object.at("kv_cache_elements_per_token"), 16);
  EXPECT_EQ(object.at("step"), 7);
  for (const char* name : {"source_cache_bytes_per_token", "source_tokenizer", "task_head"}) {
    EXPECT_FALSE(object.contains(name)) << name;
  }
}

TEST(ModelDescriptionTest, AnEncoderThatHashesWordsHasNoVocabulary) {
  const TemporaryDirectory home;
  EncoderOptions options;
  options.context = 8;
  options.layers = 1;
  options.attention = {.scheme = "mha", .d_model = 16, .heads = 2};
  options.embedding.kind = TokenEmbeddingKind::kHashProj;
  options.task_head = {.kind = TaskHeadKind::kText, .outputs = 2, .labels = {"no", "yes"}};
  options.pooler = true;
  save_model(home.path(), Encoder(resolve(options)), nullptr);
  const ModelDescription found = describe_checkpoint(home.path(), read_options(home.path()));
  EXPECT_FALSE(found.keeps_cache);
  EXPECT_FALSE(found.tokenizer.has_value());
  EXPECT_EQ(found.task_head->outputs, 2);
  EXPECT_FALSE(found.options.contains("vocabulary"));
  const nlohmann::ordered_json object = to_json(found);
  EXPECT_EQ(object.at("task_head").at("labels"), nlohmann::ordered_json({"no", "yes"}));
  EXPECT_FALSE(object.contains("kv_cache_bytes_per_token"));
}

// This is config.json of a published model, whose total is the publisher's.
constexpr const char* kLlama = R"({
  "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 4096,
  "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
  "max_position_embeddings": 8192, "tie_word_embeddings": false})";

class ModelShapeTest : public testing::Test {
 protected:
  CostOptions taken() {
    CostOptions options = cost_options();
    take_shape(read_shape(home_.path()), &options);
    return options;
  }
  std::string refusal(const fs::path& path) {
    return error_message([&] { read_shape(path); });
  }
  SchemeCost cost(CostOptions options, const std::string& scheme) {
    options.schemes = {scheme};
    return all_costs(options, {}).front();
  }

  TemporaryDirectory home_;
};

TEST_F(ModelShapeTest, APublishedModel) {
  write_file(home_.path() / "config.json", kLlama);
  const CostOptions options = taken();
  EXPECT_EQ(options.own_scheme, "gqa");
  EXPECT_EQ(read_shape(home_.path() / "config.json").model_type, "llama");
  const std::vector<SchemeCost> all = all_costs(options, {});
  EXPECT_EQ(all.front().scheme, "gqa");
  EXPECT_EQ(all.front().size.total_parameters, 8030261248);
  EXPECT_EQ(all.front().size.cache_elements_per_token, 2048);
  const SchemeCost mha = cost(options, "mha");
  EXPECT_EQ(mha.size.cache_elements_per_token, 8192);
  EXPECT_EQ(mha.size.attention_parameters, int64_t{32} * 4 * 4096 * 4096);
  // Options come on top of the model's.
  CostOptions half = options;
  half.model.common().layers = 16;
  EXPECT_EQ(2 * cost(half, "gqa").size.attention_parameters, all.front().size.attention_parameters);
  CostOptions finer = options;
  finer.model.common().attention.heads = 64;
  finer.model.common().attention.head_width = 64;
  EXPECT_EQ(cost(finer, "gqa").model.common().attention.own.get<GqaOptions>().groups, 8);
  CostOptions swept = options;
  swept.schemes = {"mha", "mqa"};
  std::vector<int64_t> widths;
  for (const SchemeCost& one : all_costs(swept, {"heads", {"32", "64"}})) {
    widths.push_back(*one.model.common().attention.head_width);
  }
  EXPECT_THAT(widths, testing::ElementsAre(128, 64, 128, 64));
}

TEST_F(ModelShapeTest, APublishedModelWithinABudget) {
  write_file(home_.path() / "config.json", kLlama);
  CostOptions options = taken();
  options.memory_budget = double{1 << 30} * 24;
  const SchemeCost whole = cost(options, "gqa");
  EXPECT_EQ(whole.largest_batch, 0);
  options.weight_type = options.cache_type = ElementType::kBf16;
  const SchemeCost half = cost(options, "gqa");
  EXPECT_EQ(half.cache_bytes_per_token, 32 * 2048 * 2);
  EXPECT_EQ(half.cache_bytes_per_token * 2, whole.cache_bytes_per_token);
  const int64_t room = (int64_t{24} << 30) - 2 * int64_t{8030261248};
  EXPECT_EQ(half.longest_context, room / (32 * 2048 * 2));
  EXPECT_EQ(half.largest_batch, room / (int64_t{32} * 2048 * 2 * 8192));
  options.weight_type = options.cache_type = ElementType::kInt8;
  EXPECT_EQ(cost(options, "gqa").longest_context, ((int64_t{24} << 30) - 8030261248) / (32 * 2048));
}

TEST_F(ModelShapeTest, PositionsThatWereLearnedAreTheLongestContext) {
  write_file(home_.path() / "config.json", R"({"model_type": "gpt2"})");
  CostOptions options = taken();
  EXPECT_EQ(cost(options, "mha").size.total_parameters, 124439808);
  options.memory_budget = 1 << 30;
  EXPECT_EQ(cost(options, "mha").longest_context, 1024);
}

TEST_F(ModelShapeTest, AnAlbertKeepsItsSharedLayers) {
  write_file(home_.path() / "config.json", R"({"model_type": "albert", "hidden_size": 768, "num_attention_heads": 12,
                                               "intermediate_size": 3072})");
  const SchemeCost own = cost(taken(), "mha");
  EXPECT_EQ(own.size.total_parameters, 11683584);
  EXPECT_EQ(own.size.attention_parameters, 4 * 768 * 768);
  EXPECT_EQ(own.model.common().layer_groups, 1);
  EXPECT_EQ(own.model.common().embedding_width, 128);
}

TEST_F(ModelShapeTest, AModelOfOurs) {
  save_model(home_.path(), small_decoder(), nullptr);
  EXPECT_EQ(read_shape(home_.path()).model_type, "headshare");
  EXPECT_EQ(read_shape(home_.path() / "config.json").model_type, "headshare");
  const CostOptions options = taken();
  EXPECT_EQ(options.own_scheme, "mqa");
  EXPECT_EQ(cost(options, "mqa").size.total_parameters, measure(small_decoder()->options()).total_parameters);
}

TEST_F(ModelShapeTest, WhatIsNoModel) {
  EXPECT_THAT(refusal(home_.path() / "none"), HasSubstr("does not exist"));
  EXPECT_THAT(refusal(home_.path()), HasSubstr("has no config.json"));
  const auto with = [&](const std::string& config) {
    write_file(home_.path() / "config.json", config);
    return refusal(home_.path());
  };
  EXPECT_THAT(with(R"({"model_type": "mamba"})"),
              HasSubstr("headshare knows albert, bart, bert, deit, distilbert, gemma, gpt2"));
  EXPECT_THAT(with("{}"), HasSubstr("model_type is missing"));
  EXPECT_THAT(with(R"({"model_type": "llama", "hidden_size": -4})"), HasSubstr("hidden_size"));
  EXPECT_THAT(with("{"), HasSubstr("config.json"));
}

}  // namespace
}  // namespace headshare
