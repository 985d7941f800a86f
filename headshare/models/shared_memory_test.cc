// These tests are about models whose layers share keys and values (TransformerOptions::share_kv_layers).
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <map>

#include "headshare/attention/schemes/mla.h"
#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/size.h"
#include "headshare/models/testing.h"
#include "headshare/models/vision.h"

namespace headshare {
namespace shared_memory_test {

using testing::HasSubstr;

constexpr int64_t kLayers = 4, kTokens = 9;

Tensor ids() { return random_ids(2, kTokens, 13, 1); }
Tensor targets() {
  const Tensor all = random_ids(2, kTokens, 13, 2);
  return all.masked_fill(all < 5, kIgnoredTarget);  // an encoder answers at the others alone
}
SummedLoss loss_of(const Decoder& model) { return model->loss(ids(), targets()); }
SummedLoss loss_of(const Encoder& model) { return model->loss({.ids = ids()}, targets()); }

template <class Options>
Options shared(Options options, int64_t layers_that_share) {
  options.layers = kLayers;
  options.share_kv_layers = layers_that_share;
  return options;
}

DecoderOptions turned(const std::string& scheme) {
  DecoderOptions options =
      small_options(scheme, supports(scheme, PositionKind::kRotary) ? PositionKind::kRotary : PositionKind::kAlibi);
  options.attention.projection_bias = options.attention.content_bias = true;
  return options;
}

template <class Model>
void prepare_training(Model& model, bool recompute) {
  model->to(at::kDouble);
  model->train();
  model->clock() = {.seed = 5, .tick = 7};
  model->set_recompute(recompute);
}

// Returns "blocks.2.norm" of ("blocks.3.norm", 2): the name in the lowest layer of a group of 2.
std::string name_in_lowest(const std::string& name, int64_t group) {
  constexpr std::string_view kBlocks = "blocks.";
  if (!name.starts_with(kBlocks)) return name;
  const size_t end = name.find('.', kBlocks.size());
  return join_text(kBlocks, std::stoll(name.substr(kBlocks.size(), end)) / group * group, name.substr(end));
}

bool is_in_top_of_group(const std::string& name, int64_t group) {
  return !name.starts_with("blocks.") || std::stoll(name.substr(7)) % group == group - 1;
}

// Where all layers of a group but the highest add nothing to what they read and norms are the same, the highest reads
// what the lowest read: keys and values are those that it would make itself with the lowest one's weights.
template <class Model, class Options>
void expect_written_out(const Options& options, int64_t group, bool recompute,
                        Model (*make)(const Options&, uint64_t)) {
  Model whole = make(shared(options, 1), 1), lent = make(shared(options, group), 1);
  randomise(*lent);
  const NamedTensors values = model_tensors(*lent);
  {
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : values) {
      const bool adds =
          name.find(".attention.scheme.output.") != std::string::npos || name.find(".contract.") != std::string::npos;
      if (adds && !is_in_top_of_group(name, group)) tensor.zero_();
      if (name.find(".attention_norm.") != std::string::npos) tensor.copy_(values.at(name_in_lowest(name, group)));
    }
    for (const auto& [name, tensor] : model_tensors(*whole)) {
      tensor.copy_(values.at(values.contains(name) ? name : name_in_lowest(name, group)));
    }
  }
  for (Model* model : {&whole, &lent}) {
    prepare_training(*model, recompute);
    loss_of(*model).sum.backward();
  }
  EXPECT_NEAR(loss_of(lent).sum.template item<double>(), loss_of(whole).sum.template item<double>(), 1e-9);
  const NamedTensors found = model_tensors(*lent);
  for (const auto& [name, tensor] : model_tensors(*whole)) {
    const bool makes_memory = !found.contains(name);
    if (!tensor.grad().defined() || !is_in_top_of_group(name, group) || name.ends_with("attention_norm.weight") ||
        name.ends_with("attention_norm.bias")) {
      continue;  // the norm's gradient is divided among two layers
    }
    const Tensor gradient = found.at(makes_memory ? name_in_lowest(name, group) : name).grad();
    EXPECT_LT(distance(gradient, tensor.grad()), 1e-9 * magnitude(tensor.grad())) << name;
  }
}

class SharedMemory : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(All, SharedMemory, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "recomputed" : "kept"; });

TEST_P(SharedMemory, OfADecoderIsWhatItsLayersWouldRemember) {
  for (const char* scheme : {"mha", "mhe_add", "lrkv", "mla", "skv", "el_shared"}) {
    for (const int64_t group : {2, 4}) {
      SCOPED_TRACE(join_text(scheme, " ", group));
      DecoderOptions options = turned(scheme);
      options.dropout = 0.3;
      // Dropout of attention weights would reach the value bias of layers that share alone.
      options.attention.projection_bias = group == 2;
      options.attention.attention_dropout = group == 2 ? 0 : 0.2;
      expect_written_out<Decoder, DecoderOptions>(options, group, GetParam(), small_decoder);
    }
  }
}

TEST_P(SharedMemory, OfAnEncoderIsWhatItsLayersWouldRemember) {
  EncoderOptions options = small_encoder_options("mha");
  options.norms = NormPlacement::kBefore;
  options.dropout = 0.3;
  expect_written_out<Encoder, EncoderOptions>(options, 2, GetParam(), small_encoder);
}

// What a layer remembers gets the sum of the gradients of all layers that read it.
TEST_P(SharedMemory, GradientsAreThoseOfFiniteDifferences) {
  constexpr double kStep = 1e-3;
  for (const std::string& scheme : scheme_names()) {
    if (!is_trained(scheme)) continue;
    Decoder model = small_decoder(shared(turned(scheme), scheme == "mha" ? 4 : 2));
    randomise(*model);
    prepare_training(model, GetParam());
    loss_of(model).sum.backward();
    const at::NoGradGuard no_grad;
    for (const Declared& one : declared_parameters(*model)) {
      if (one.role == Role::kInert) continue;
      const Tensor direction = random_tensor(one.tensor.sizes(), stream_key(4, one.name));
      const auto difference = [&](double step) {
        one.tensor.add_(direction, step);
        const double up = loss_of(model).sum.item<double>();
        one.tensor.add_(direction, -2 * step);
        const double down = loss_of(model).sum.item<double>();
        one.tensor.add_(direction, step);
        return (up - down) / (2 * step);
      };
      const double expected = (4 * difference(kStep) - difference(2 * kStep)) / 3;
      const double found = (one.tensor.grad() * direction).sum().item<double>();
      EXPECT_NEAR(found, expected, 1e-6 * std::max(1.0, std::abs(expected))) << scheme << " " << one.name;
    }
  }
}

TEST(SharedMemoryModels, LayersOfAGroupMayHaveOtherWindows) {
  const at::NoGradGuard no_grad;
  for (const std::string& scheme : scheme_names()) {
    if (!is_trained(scheme)) continue;
    SCOPED_TRACE(scheme);
    DecoderOptions options = shared(turned(scheme), 2);
    options.attention.window = 2;
    options.global_every = 4;
    options.global_first = 1;  // an upper layer, which reads the keys of one with a window
    Decoder model = small_decoder(options);
    randomise(*model);
    model->to(at::kDouble);
    const Tensor full = model->hidden(ids());
    DecodingState state = model->new_state(kTokens);
    EXPECT_EQ(state.caches.size(), 2U);
    std::vector<Tensor> parts;
    for (const auto& [first, count] : {std::pair(0, 4), {4, 1}, {5, 4}}) {
      parts.push_back(model->hidden(ids().narrow(1, first, count), &state));
    }
    EXPECT_TRUE(same(at::cat(parts, 1), full));
    options.global_every.reset();
    Decoder local = small_decoder(options);
    randomise(*local);
    local->to(at::kDouble);
    EXPECT_GT(distance(local->hidden(ids()), full), 1e-3);
  }
}

TEST(SharedMemoryModels, CountsAndCachesFallByTheNumberOfLayersThatShare) {
  DecoderOptions options = small_options("mha");
  options.layers = 12;
  const ModelSize own = measure(resolve(options));
  for (const int64_t N : {2, 3, 4, 6, 12}) {
    options.share_kv_layers = N;
    const ModelSize size = measure(resolve(options));
    EXPECT_EQ(size.cache_bytes_per_token * N, own.cache_bytes_per_token);
    EXPECT_EQ(size.cache_elements_per_token, own.cache_elements_per_token);
    EXPECT_EQ(own.attention_parameters - size.attention_parameters, (12 - 12 / N) * 2 * 16 * 16);
    EXPECT_EQ(own.total_parameters - size.total_parameters, (12 - 12 / N) * 2 * 16 * 16);
    EXPECT_EQ(decoding_bytes(resolve(options), 3, 10), 4.0 * static_cast<double>(size.total_parameters) +
                                                           30.0 * static_cast<double>(size.cache_bytes_per_token));
  }
  expect_counted(small_encoder(shared(small_encoder_options("skv"), 2)));
}

EncoderDecoderOptions translator_options(const std::string& scheme) {
  EncoderDecoderOptions options;
  options.vocabulary = 13;
  options.context = 10;
  options.layers = 4;
  options.decoder_layers = 6;
  options.share_kv_layers = 2;
  options.positions = supports(scheme, PositionKind::kRotary) ? PositionKind::kRotary : PositionKind::kSinusoidal;
  options.attention = {.scheme = scheme, .d_model = 16, .heads = 4, .projection_bias = true};
  options.cross_scheme = "el_lossless";
  return options;
}

EncoderDecoder translator(const std::string& scheme) {
  EncoderDecoder model(resolve(translator_options(scheme)));
  randomise(*model);
  model->to(at::kDouble);
  model->eval();
  return model;
}

// Both self-attentions share, and the attention to the source does not.
TEST(SharedMemoryModels, BothSidesOfATranslatorShare) {
  const at::NoGradGuard no_grad;
  for (const std::string& scheme : scheme_names()) {
    if (!is_trained(scheme)) continue;
    SCOPED_TRACE(scheme);
    const EncoderDecoder model = translator(scheme);
    const ModelSize size = measure(model->options());
    int64_t total = 0, attention = 0;
    for (const Declared& one : declared_parameters(*model)) {
      total += one.tensor.numel();
      const bool inside = one.name.find("attention.scheme.") != std::string::npos;
      if (inside && !one.name.ends_with(".bias")) attention += one.tensor.numel();
    }
    EXPECT_EQ(size.total_parameters, total);
    EXPECT_EQ(size.attention_parameters, attention);

    const EncodedSource source = model->encode({.ids = random_ids(2, 5, 13)});
    const Tensor target = random_ids(6, 7, 13);  // three beams for each sentence
    TranslationState state = model->new_state(7);
    EXPECT_EQ(state.own.size(), 3U);
    EXPECT_EQ(state.cross.size(), 6U);
    const Tensor first = target.narrow(1, 0, 3).index_select(0, at::tensor({0, 3}));
    model->hidden(first, source, &state);
    for (KvCache& cache : state.own) cache.repeat(3);
    const Tensor begun = at::cat({first.repeat_interleave(3, 0), target.narrow(1, 3, 4)}, 1);
    const Tensor rest = model->hidden(begun.narrow(1, 3, 4), source, &state);
    EXPECT_TRUE(same(rest, model->hidden(begun, source).narrow(1, 3, 4)));
    int64_t own_bytes = 0;
    for (const KvCache& cache : state.own) own_bytes += cache.allocated_bytes();
    EXPECT_EQ(own_bytes, 2 * 6 * 7 * size.cache_bytes_per_token);  // in double
  }
}

// The scheme of the model is then the cross-attention's alone, which shares nothing with other layers.
TEST(SharedMemoryModels, TheSchemeOfACrossAttentionNeedNotBeOneThatCanBeShared) {
  EncoderDecoderOptions options = translator_options("mha");
  options.attention.scheme = "el_lossless";
  options.positions = PositionKind::kSinusoidal;
  EXPECT_THAT(error_message([&] { resolve(options); }),
              HasSubstr("self-attention of the encoder: el_lossless"));  // whose sides have it, too
  options.encoder_scheme = options.decoder_scheme = "mha";
  options.cross_scheme = "auto";
  const EncoderDecoderOptions resolved = resolve(options);
  EXPECT_EQ(resolved.share_kv_layers, 2);
  EXPECT_EQ(resolved.cross_scheme, "el_lossless");
  EXPECT_EQ(resolved.sites->decoder.memory, MemoryUse::kLent);
  EXPECT_EQ(resolved.sites->cross.memory, MemoryUse::kOwn);
  EXPECT_EQ(resolve(resolved).share_kv_layers, 2);
  EncoderDecoderOptions same = translator_options("mha");  // with el_lossless in its cross-attention by name
  same.positions = PositionKind::kSinusoidal;
  EXPECT_EQ(measure(resolved).total_parameters, measure(resolve(same)).total_parameters);
  EXPECT_EQ(measure(resolved).source_cache_bytes_per_token, measure(resolve(same)).source_cache_bytes_per_token);
  EXPECT_NO_THROW(EncoderDecoder{resolved});

  EncoderDecoderOptions odd = options;  // what its layers share is still looked at
  odd.layers = 3;
  EXPECT_THAT(error_message([&] { resolve(odd); }), HasSubstr("3 layers, 2 that share"));
}

TEST(SharedMemoryModels, RecomputingATranslatorGivesTheSameGradients) {
  EncoderDecoder model(resolve(translator_options("mha")));
  randomise(*model);
  model->to(at::kDouble);
  const auto gradients = [&](bool recompute) {
    model->set_recompute(recompute);
    model->zero_grad();
    model->loss({.ids = random_ids(2, 5, 13)}, ids(), targets()).sum.backward();
    std::map<std::string, Tensor> all;
    for (const auto& [name, tensor] : model_tensors(*model)) {
      if (tensor.grad().defined()) all[name] = tensor.grad().clone();
    }
    return all;
  };
  const auto kept = gradients(false), again = gradients(true);
  ASSERT_EQ(kept.size(), again.size());
  for (const auto& [name, gradient] : kept) {
    EXPECT_LT(distance(again.at(name), gradient), 1e-12 * magnitude(gradient)) << name;
  }
}

TEST(SharedMemoryModels, PatchesOfAnImageCanBeSharedToo) {
  VisionOptions options;
  options.layers = kLayers;
  options.share_kv_layers = 2;
  options.attention.d_model = 16;
  options.attention.heads = 4;
  options.image_size = 8;
  options.patch_size = 4;
  options.classes = 5;
  VisionTransformer model(resolve(options));
  randomise(*model);
  model->eval();
  expect_counted(model);
  const at::NoGradGuard no_grad;
  const Tensor pixels = random_tensor({2, 3, 8, 8}, 7, at::kFloat);
  const Tensor scores = model->scores(pixels);
  EXPECT_TRUE(scores.isfinite().all().item<bool>());
  EXPECT_FALSE(model_tensors(*model).contains("blocks.1.attention.scheme.value.weight"));
  zero_part(*model->attention(0), "value");
  zero_part(*model->attention(2), "value");
  EXPECT_GT(distance(model->scores(pixels), scores), 1e-3);
}

TEST(SharedMemoryModels, ComeBackFromACheckpointOfTheirVersion) {
  TemporaryDirectory directory;
  for (const int64_t N : {1, 2}) {
    const Decoder model = small_decoder(shared(small_options("mha"), N));
    const fs::path path = directory.path() / join_text("shared_", N);
    save_model(path, model, nullptr);
    const nlohmann::json config = nlohmann::json::parse(read_file(path / "config.json"));
    EXPECT_EQ(config.at("format_version"), N == 1 ? 1 : 16);
    EXPECT_EQ(config.at("model").contains("share-kv-layers"), N != 1);
    const Decoder back = load_decoder(path);
    EXPECT_EQ(back->options().share_kv_layers, N);
    const at::NoGradGuard no_grad;
    EXPECT_TRUE(at::equal(back->hidden(ids()), model->hidden(ids())));
  }
}

TEST(SharedMemoryModels, TakeTheMemoryThatIsEstimated) {
  DecoderOptions options{.vocabulary = 512, .context = 64, .layers = 8, .share_kv_layers = 4};
  options.attention = {.d_model = 128, .heads = 8};
  expect_estimated_memory(resolve(options), {false, true});
}

TEST(SharedMemoryModels, WhatCannotBeIsRefused) {
  const auto refusal = [](const std::string& scheme, const std::function<void(DecoderOptions&)>& change) {
    DecoderOptions options = shared(small_options(scheme, PositionKind::kRotary), 2);
    change(options);
    return error_message([&] { resolve(options); });
  };
  EXPECT_THAT(refusal("mha", [](DecoderOptions& o) { o.share_kv_layers = 3; }),
              HasSubstr("4 layers, 3 that share; set --share-kv-layers to a divisor of 4"));
  EXPECT_THAT(refusal("mha", [](DecoderOptions& o) { o.share_kv_layers = 8; }), HasSubstr("4 layers, 8 that share"));
  EXPECT_THAT(refusal("mha", [](DecoderOptions& o) { o.layer_groups = 2; }), HasSubstr("leave one of the two out"));
  const auto windows = [](DecoderOptions& o) {
    o.attention.window = 2;
    o.global_every = 2;
    o.local_rotary_base = 100;
  };
  EXPECT_THAT(refusal("mha", windows), HasSubstr("2 neighbours read the same keys"));
  EXPECT_THAT(refusal("collaborative",
                      [](DecoderOptions& o) {
                        o.layer_key_widths = {8, 8, 8, 4};
                      }),
              HasSubstr("layer-key-widths gives layers 3 and 4 the widths 8 and 4"));
  const auto latents = [](DecoderOptions& o) { o.attention.own.get<MlaOptions>().layer_kv_latents = {4, 6, 4, 4}; };
  EXPECT_THAT(refusal("mla", latents), HasSubstr("layer-kv-latent-widths gives layers 1 and 2 the widths 4 and 6"));
  EncoderDecoderOptions translator = translator_options("mha");
  translator.decoder_layers = 3;
  EXPECT_THAT(error_message([&] { resolve(translator); }),
              HasSubstr("decoder-layers, too: 3 layers, 2 that share; set --share-kv-layers to a divisor of both"));
}

// Widths may differ between groups.
TEST(SharedMemoryModels, GroupsMayDifferInTheirWidths) {
  DecoderOptions options = shared(small_options("collaborative"), 2);
  options.layer_key_widths = {4, 4, 16, 16};
  const Decoder model = small_decoder(options);
  expect_counted(model);
  EXPECT_EQ(measure(model->options()).cache_bytes_per_token, 4 * (2 * 16 + 4 + 16));
}

}  // namespace shared_memory_test
}  // namespace headshare
