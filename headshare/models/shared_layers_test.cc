// A model whose layers share their parameters, or whose embedding is factorised, must compute what the same model
// computes with its parameters written out.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/size.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

constexpr int64_t kLayers = 6;

// A Case has the number of groups, and whether blocks are recomputed.
using Case = std::pair<int64_t, bool>;

// Both models get these ids and targets, as a language model or a masked one.
Tensor ids() { return random_ids(2, 9, 13, 1); }
Tensor targets() { return random_ids(2, 9, 13, 2); }
SummedLoss loss_of(const Decoder& model) { return model->loss(ids(), targets()); }
SummedLoss loss_of(const Encoder& model) { return model->loss({.ids = ids()}, targets()); }

template <class Options>
Options with_dropout(Options options) {
  options.layers = kLayers;
  options.dropout = 0.3;
  options.attention.attention_dropout = 0.2;
  options.attention.projection_bias = true;
  return options;
}

// Returns the name in a model of groups: with groups of 3 "blocks.4.norm.weight" becomes "blocks.1.norm.weight".
std::string shared_name(const std::string& name, int64_t group) {
  constexpr std::string_view kBlocks = "blocks.";
  if (!name.starts_with(kBlocks)) return name;
  const size_t end = name.find('.', kBlocks.size());
  return join_text(kBlocks, std::stoll(name.substr(kBlocks.size(), end)) / group, name.substr(end));
}

template <class Model>
void prepare_training(Model& model, bool recompute) {
  model->to(at::kDouble);
  model->train();
  model->clock() = {.seed = 5, .tick = 7};
  model->set_recompute(recompute);
}

template <class Model>
std::map<std::string, Tensor> gradients(const Model& model) {
  std::map<std::string, Tensor> all;
  for (const Declared& one : declared_parameters(*model)) {
    if (one.tensor.grad().defined()) all[one.name] = one.tensor.grad();
  }
  return all;
}

// Compares with dropout included: each depth draws the masks that a layer of its own draws there.
template <class Model, class Options>
void expect_written_out(Options options, const Case& one, Model (*make)(const Options&, uint64_t)) {
  Model own = make(options, 1);
  options.layer_groups = one.first;
  Model shared = make(options, 1);
  randomise(*shared);
  const int64_t group = kLayers / one.first;
  {
    const at::NoGradGuard no_grad;
    const NamedTensors values = model_tensors(*shared);
    for (const auto& [name, tensor] : model_tensors(*own)) tensor.copy_(values.at(shared_name(name, group)));
  }
  for (Model* model : {&own, &shared}) {
    prepare_training(*model, one.second);
    loss_of(*model).sum.backward();
  }
  EXPECT_NEAR(loss_of(shared).sum.template item<double>(), loss_of(own).sum.template item<double>(), 1e-9);
  std::map<std::string, Tensor> summed;
  for (const auto& [name, gradient] : gradients(own)) {
    Tensor& sum = summed[shared_name(name, group)];
    sum = sum.defined() ? sum + gradient : gradient;
  }
  const auto found = gradients(shared);
  ASSERT_EQ(found.size(), summed.size());
  for (const auto& [name, gradient] : found) {
    EXPECT_LT(distance(gradient, summed.at(name)), 1e-9 * magnitude(gradient)) << name;
  }
}

class SharedLayers : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(All, SharedLayers,
                         testing::Values(Case{1, false}, Case{1, true}, Case{2, false}, Case{3, true}),
                         [](const auto& info) {
                           return join_text(info.param.first, info.param.second ? "_recomputed" : "_kept");
                         });

TEST_P(SharedLayers, OfADecoderAreItsLayersWrittenOut) {
  for (const char* scheme : {"mha", "mhe_mul", "el_shared"}) {
    expect_written_out<Decoder, DecoderOptions>(with_dropout(small_options(scheme)), GetParam(), small_decoder);
  }
}

TEST_P(SharedLayers, OfAnEncoderAreItsLayersWrittenOut) {
  expect_written_out<Encoder, EncoderOptions>(with_dropout(small_encoder_options("mha")), GetParam(), small_encoder);
}

TEST(SharedLayers, DrawOtherMasksAtEachDepth) {
  DecoderOptions options = with_dropout(small_options("mha"));
  options.layer_groups = 1;
  options.attention.attention_dropout = 0;
  Decoder model = small_decoder(options);
  prepare_training(model, /*recompute=*/false);
  // Only the masks differ between the depths: the block's sub-layers give ones, whatever they read.
  const at::NoGradGuard no_grad;
  for (const Declared& one : declared_parameters(*model)) {
    const bool adds = one.name.ends_with("contract.bias");
    one.tensor.fill_(adds || one.name == "norm.weight" ? 1 : 0);
  }
  const Tensor hidden = model->hidden(ids()).flatten(0, 1);  // [N, E]
  size_t most = 0;
  for (int64_t token = 0; token < hidden.size(0); ++token) {
    std::set<int64_t> values;
    for (int64_t i = 0; i < hidden.size(1); ++i) values.insert(std::llround(hidden[token][i].item<double>() * 1e6));
    most = std::max(most, values.size());
  }
  EXPECT_GT(most, 2U) << "with one mask at all depths, an element is dropped everywhere or nowhere";
}

TEST(SharedLayers, StartAsTheFirstLayersOfTheGroups) {
  DecoderOptions options = with_dropout(small_options("mha"));
  const NamedTensors own = model_tensors(*small_decoder(options));
  options.layer_groups = 2;
  const Decoder shared = small_decoder(options);
  EXPECT_EQ(shared->layers(), 2U);
  EXPECT_EQ(shared->depth(), 6U);
  for (const auto& [name, tensor] : model_tensors(*shared)) EXPECT_TRUE(at::equal(tensor, own.at(name))) << name;
}

TEST(SharedLayers, AsManyGroupsAsLayersShareNothing) {
  DecoderOptions options = with_dropout(small_options("mha"));
  options.layer_groups = kLayers;
  EXPECT_FALSE(resolve(options).layer_groups);
}

TEST(SharedLayers, CountOnceAndFillACacheEach) {
  DecoderOptions options = with_dropout(small_options("mha"));
  const ModelSize own = measure(resolve(options));
  options.layer_groups = 2;
  const Decoder shared = small_decoder(options);
  expect_counted(shared);
  const ModelSize size = measure(shared->options());
  EXPECT_EQ(size.attention_parameters * 3, own.attention_parameters);
  EXPECT_EQ(size.cache_bytes_per_token, own.cache_bytes_per_token);
  EXPECT_EQ(size.cache_elements_per_token, own.cache_elements_per_token);
}

TEST(SharedLayers, MayDifferInTheirKeyWidthsByGroup) {
  DecoderOptions options = with_dropout(small_options("collaborative"));
  options.layer_groups = 2;
  options.layer_key_widths = {4, 16};
  const Decoder model = small_decoder(options);
  expect_counted(model);
  EXPECT_EQ(measure(model->options()).cache_bytes_per_token, 4 * 3 * (2 * 16 + 4 + 16));
  options.layer_key_widths = {4, 16, 4, 4, 4, 4};
  EXPECT_THAT(error_message([&] { resolve(options); }),
              HasSubstr("6 numbers for 2 groups of layers that share their parameters"));
}

// The counts are those of AlbertForMaskedLM and AlbertModel of transformers for albert-base, and of AlbertModel for
// albert-xxlarge.
TEST(SharedLayers, AlbertHasTheParametersAlbertHas) {
  EncoderOptions options;
  options.vocabulary = 30000;
  options.context = 512;
  options.layers = 12;
  options.layer_groups = 1;
  options.embedding_width = 128;
  options.attention.d_model = 768;
  options.attention.heads = 12;
  options.masked_head = true;
  EXPECT_EQ(measure(resolve(options)).total_parameters, 11221680);
  options.masked_head = false;
  options.pooler = true;
  EXPECT_EQ(measure(resolve(options)).total_parameters, 11683584);
  options.attention.d_model = 4096;
  options.attention.heads = 64;
  EXPECT_EQ(measure(resolve(options)).total_parameters, 222595584);
}

// A factorised embedding equals a usual one that is its product.
TEST(FactorisedEmbedding, IsTheEmbeddingOfItsProduct) {
  const at::NoGradGuard no_grad;
  for (const bool tied : {true, false}) {
    DecoderOptions options = small_options("mha");
    options.embedding_width = 5;
    options.tie_embeddings = tied;
    Decoder factorised = small_decoder(options);
    randomise(*factorised);
    options.embedding_width.reset();
    options.tie_embeddings = false;
    Decoder usual = small_decoder(options);
    for (Decoder* model : {&factorised, &usual}) (*model)->to(at::kDouble);
    NamedTensors from = model_tensors(*factorised);
    const Tensor projection = from.at("embedding_projection.weight").t();
    const NamedTensors to = model_tensors(*usual);
    for (const auto& [name, tensor] : to) {
      if (from.contains(name) && from.at(name).sizes() == tensor.sizes()) tensor.copy_(from.at(name));
    }
    to.at("token_embedding").copy_(from.at("token_embedding").matmul(projection));
    to.at("position_embedding")
        .copy_(from.at("position_embedding").matmul(projection) + from.at("embedding_projection.bias"));
    to.at("output_embedding")
        .copy_(from.at(tied ? "token_embedding" : "output_embedding").matmul(from.at("output_projection.weight")));
    EXPECT_LT(distance(factorised->logits(factorised->hidden(ids())), usual->logits(usual->hidden(ids()))), 1e-9);
    EXPECT_LT(distance(factorised->token_losses(ids(), targets()), usual->token_losses(ids(), targets())), 1e-9);
    EXPECT_LT(distance(loss_of(factorised).sum, loss_of(usual).sum), 1e-9);
  }
}

TEST(FactorisedEmbedding, CountsAndComesBack) {
  TemporaryDirectory directory;
  for (const bool tied : {true, false}) {
    EncoderOptions options = with_dropout(small_encoder_options("mhe_add", PositionKind::kSinusoidal));
    options.embedding_width = 6;
    options.layer_groups = 3;
    options.tie_embeddings = tied;
    const Encoder model = small_encoder(options);
    expect_counted(model);
    const fs::path path = directory.path() / (tied ? "tied" : "untied");
    save_model(path, model, nullptr);
    EXPECT_EQ(nlohmann::json::parse(read_file(path / "config.json")).at("format_version"), 6);
    const Encoder back = load_encoder(path);
    EncoderOptions before = model->options();
    EncoderOptions after = back->options();
    EXPECT_EQ(to_json(stored_fields(after)), to_json(stored_fields(before)));
    const at::NoGradGuard no_grad;
    const EncoderInput input{.ids = ids()};
    EXPECT_TRUE(at::equal(back->logits(back->hidden(input)), model->logits(model->hidden(input))));
  }
}

TEST(FactorisedEmbedding, TakesTheMemoryThatIsEstimated) {
  DecoderOptions options{.vocabulary = 2048, .context = 64, .layers = 8, .layer_groups = 1, .embedding_width = 16};
  options.attention = {.d_model = 128, .heads = 8};
  expect_estimated_memory(resolve(options), {false});
}

}  // namespace
}  // namespace headshare
