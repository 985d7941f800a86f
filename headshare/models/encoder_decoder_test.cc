#include "headshare/models/encoder_decoder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>

#include "headshare/attention/schemes/mla.h"
#include "headshare/base/error.h"
#include "headshare/base/options/ignored_target.h"
#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/testing.h"
#include "headshare/text/simple/byte_tokenizer.h"
#include "headshare/text/simple/character_tokenizer.h"

namespace headshare {
namespace {

using testing::HasSubstr;

// Returns options with 2 + 1 layers, 4 heads, width 16, 13 target and 11 source tokens, context 10.
EncoderDecoderOptions small(const std::string& scheme, PositionKind positions = PositionKind::kSinusoidal) {
  EncoderDecoderOptions options;
  options.vocabulary = 13;
  options.source_vocabulary = 11;
  options.share_embeddings = false;
  options.context = 10;
  options.layers = 2;
  options.decoder_layers = 1;
  options.positions = positions;
  options.attention.scheme = scheme;
  options.attention.d_model = 16;
  options.attention.heads = 4;
  options.attention.projection_bias = true;
  return options;
}

EncoderDecoder made(const EncoderDecoderOptions& options) {
  EncoderDecoder model(resolve(options));
  initialise(*model, 1);
  model->eval();
  randomise(*model);
  return model;
}

Tensor places(const std::vector<int64_t>& numbers) { return at::tensor(numbers, at::kLong); }

// Makes three sources of 6 tokens, of which 6, 4 and 1 are visible.
PaddedIds three_sources(uint64_t seed = 5) {
  const Tensor lengths = at::tensor({6, 4, 1}).unsqueeze(1);
  return {.ids = random_ids(3, 6, 11, seed), .visible = at::arange(6).unsqueeze(0) < lengths};
}

// The paper's second table (docs/mathematics.md#counts-of-the-mhe-paper) gives layers of either side, width, heads and
// the millions of parameters of MHA and MHE.
TEST(EncoderDecoderTest, HasTheCountsOfTheTranslationTable) {
  struct Row {
    int64_t layers, width, heads;
    double mha, mhe;
  };
  for (const Row& row : {Row{6, 512, 8, 18.87, 6.52}, Row{6, 512, 16, 18.87, 5.63}, Row{6, 512, 4, 18.87, 8.29},
                         Row{4, 512, 8, 12.58, 4.34}, Row{8, 512, 8, 25.17, 8.69}, Row{6, 768, 12, 42.47, 13.31},
                         Row{6, 1024, 16, 75.50, 22.47}}) {
    EncoderDecoderOptions options;
    options.layers = row.layers;
    options.attention.d_model = row.width;
    options.attention.heads = row.heads;
    for (const auto& [scheme, printed] :
         {std::pair("mha", row.mha), std::pair("mhe_add", row.mhe), std::pair("mhe_mul", row.mhe)}) {
      options.attention.scheme = scheme;
      const auto parameters = static_cast<double>(measure(resolve(options)).attention_parameters);
      EXPECT_NEAR(parameters / 1e6, printed, 0.0051) << scheme << " " << row.layers << " " << row.heads;
    }
  }
}

TEST(EncoderDecoderTest, IsCountedAsItIsMade) {
  for (const std::string& scheme : scheme_names()) {
    SCOPED_TRACE(scheme);
    EncoderDecoderOptions options = small(scheme);
    options.cross_scheme = "mhe_mul";
    options.output_bias = options.embedding_norm = true;
    options.tie_embeddings = false;
    const EncoderDecoder model = made(options);
    int64_t total = 0, attention = 0, embedding = 0;
    for (const Declared& one : declared_parameters(*model)) {
      total += one.tensor.numel();
      const bool inside = one.name.find("attention.scheme.") != std::string::npos;
      if (inside && !one.name.ends_with(".bias")) attention += one.tensor.numel();
      if (one.name == "token_embedding" || one.name == "source_embedding") embedding += one.tensor.numel();
    }
    const ModelSize size = measure(model->options());
    EXPECT_EQ(size.total_parameters, total);
    EXPECT_EQ(size.attention_parameters, attention);
    EXPECT_EQ(size.embedding_parameters, embedding);
    TranslationState state = model->new_state(4);
    const EncodedSource source = model->encode({.ids = random_ids(2, 5, 11)});
    model->hidden(random_ids(6, 1, 13), source, &state);  // three beams for each sentence
    EXPECT_EQ(state.own.front().allocated_bytes(), 6 * 4 * size.cache_bytes_per_token);
    EXPECT_EQ(state.cross.front().allocated_bytes(), 2 * 5 * size.source_cache_bytes_per_token);
  }
}

// The options of the model reach both self-attentions, and not the attention to the source. A checkpoint has them once
// for all sites.
TEST(EncoderDecoderTest, RotationsAreScaledInBothSides) {
  EncoderDecoderOptions options = small("mha", PositionKind::kRotary);
  options.attention.rotary_scaling = {.kind = RotaryScalingKind::kLinear, .factor = 2};
  options.attention.rotary_dimensions = 2;
  const nlohmann::json config = model_config(resolve(options));
  const AttentionSites sites = *options_of_config(config, "test").as<EncoderDecoderOptions>().sites;
  EXPECT_EQ(config.at("format_version"), 12);
  for (const AttentionOptions& one : {sites.encoder, sites.decoder}) {
    EXPECT_EQ(one.rotary_scaling, options.attention.rotary_scaling);
    EXPECT_EQ(one.rotary_dimensions, 2);
  }
  EXPECT_EQ(sites.cross.rotary_scaling, RotaryScaling());
  EXPECT_FALSE(sites.cross.rotary_dimensions);
  const at::NoGradGuard no_grad;
  EncoderDecoderOptions plain = small("mha", PositionKind::kRotary);
  const Tensor ids = random_ids(3, 4, 13, 6);
  const auto hidden = [&](const EncoderDecoder& model) { return model->hidden(ids, model->encode(three_sources())); };
  EXPECT_FALSE(at::allclose(hidden(made(options)), hidden(made(plain))));
}

TEST(EncoderDecoderTest, SidesHaveWindowsAndTheCrossAttentionHasNone) {
  EncoderDecoderOptions options = small("mha", PositionKind::kRotary);
  options.attention.window = 1;
  const nlohmann::json config = model_config(resolve(options));
  const AttentionSites sites = *options_of_config(config, "test").as<EncoderDecoderOptions>().sites;
  EXPECT_EQ(sites.encoder.window, 1);
  EXPECT_EQ(sites.decoder.window, 1);
  EXPECT_FALSE(sites.cross.window);
  const at::NoGradGuard no_grad;
  const Tensor ids = random_ids(3, 4, 13, 6);
  const auto hidden = [&](const EncoderDecoder& model) { return model->hidden(ids, model->encode(three_sources())); };
  EXPECT_FALSE(at::allclose(hidden(made(options)), hidden(made(small("mha", PositionKind::kRotary)))));
}

class EverySite : public testing::TestWithParam<std::string> {};

// Padding changes nothing, whatever tokens it consists of.
TEST_P(EverySite, DoesNotSeePadding) {
  const EncoderDecoder model = made(small(GetParam()));
  const at::NoGradGuard no_grad;
  const PaddedIds sources = three_sources();
  const Tensor ids = random_ids(3, 4, 13, 6);
  const Tensor together = model->hidden(ids, model->encode(sources));
  const std::vector<int64_t> lengths = {6, 4, 1};
  for (int64_t row = 0; row < 3; ++row) {
    const Tensor alone = sources.ids.narrow(0, row, 1).narrow(1, 0, lengths[static_cast<size_t>(row)]);
    const Tensor wanted = model->hidden(ids.narrow(0, row, 1), model->encode({.ids = alone}));
    EXPECT_TRUE(at::allclose(together.narrow(0, row, 1), wanted, 1e-4, 1e-5)) << row;
  }
}

// Decoding token by token with caches, three rows a sentence, gives the same as all tokens at once without; rows may
// change their places, and sentences may leave.
TEST_P(EverySite, DecodesWithCachesAsWithout) {
  for (const PositionKind positions : {PositionKind::kSinusoidal, PositionKind::kLearned, PositionKind::kRotary}) {
    if (!supports(GetParam(), positions)) continue;
    const EncoderDecoder model = made(small(GetParam(), positions));
    const at::NoGradGuard no_grad;
    const EncodedSource source = model->encode(three_sources());
    const Tensor ids = random_ids(9, 5, 13, 7);
    const Tensor wanted = model->hidden(ids, source);
    TranslationState state = model->new_state(5);
    for (int64_t t = 0; t < 3; ++t) {
      const Tensor step = model->hidden(ids.narrow(1, t, 1), source, &state);
      EXPECT_TRUE(at::allclose(step, wanted.narrow(1, t, 1), 1e-4, 1e-5)) << position_name(positions) << t;
    }
    // Rows 0 and 1 of the first sentence become copies of row 2.
    for (KvCache& cache : state.own) cache.copy(std::vector<int64_t>{2, 2}, std::vector<int64_t>{0, 1});
    Tensor moved = ids.clone();
    moved.narrow(1, 0, 3).index_copy_(0, places({0, 1}), ids.narrow(1, 0, 3).index_select(0, places({2, 2})));
    const Tensor after = model->hidden(moved, source);
    EXPECT_TRUE(at::allclose(model->hidden(moved.narrow(1, 3, 1), source, &state), after.narrow(1, 3, 1), 1e-4, 1e-5));
    // The third sentence takes the place of the first, which leaves.
    const Tensor sentences = places({2, 1});
    const Tensor rows = places({6, 7, 8, 3, 4, 5});
    for (KvCache& cache : state.own) cache.copy(std::vector<int64_t>{6, 7, 8}, std::vector<int64_t>{0, 1, 2});
    for (KvCache& cache : state.cross) cache.copy(std::vector<int64_t>{2}, std::vector<int64_t>{0});
    for (KvCache& cache : state.own) cache.shrink(6);
    for (KvCache& cache : state.cross) cache.shrink(2);
    const EncodedSource left{.memory = source.memory.index_select(0, sentences),
                             .visible = source.visible.index_select(0, sentences)};
    const Tensor last = model->hidden(moved.index_select(0, rows).narrow(1, 4, 1), left, &state);
    EXPECT_TRUE(at::allclose(last, after.index_select(0, rows).narrow(1, 4, 1), 1e-4, 1e-5));
  }
}

// Gradients are the same if blocks run again in the backward pass, with dropout too.
TEST_P(EverySite, LearnsTheSameRecomputed) {
  EncoderDecoderOptions options = small(GetParam());
  options.dropout = options.attention.attention_dropout = 0.2;
  options.norms = NormPlacement::kBefore;
  EncoderDecoder model = made(options);
  model->train();
  const auto gradients = [&](bool recompute) {
    model->set_recompute(recompute);
    model->zero_grad();
    model->loss(three_sources(), random_ids(3, 4, 13, 6), random_ids(3, 4, 13, 8), /*smoothing=*/0.1).sum.backward();
    std::vector<Tensor> found;
    for (const Declared& one : declared_parameters(*model)) {
      if (one.role == Role::kLearned) found.push_back(one.tensor.grad().clone());
    }
    return found;
  };
  const std::vector<Tensor> kept = gradients(false), again = gradients(true);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::allclose(kept[i], again[i], 1e-4, 1e-6)) << i;
}

INSTANTIATE_TEST_SUITE_P(Schemes, EverySite, testing::ValuesIn(scheme_names()));

// The loss is (1 - s) cross entropy + s times the mean of -log p over the vocabulary, as torch computes it.
TEST(EncoderDecoderTest, SmoothsLabels) {
  for (const bool bias : {false, true}) {
    EncoderDecoderOptions options = small("mha");
    options.output_bias = bias;
    EncoderDecoder model = made(options);
    const PaddedIds sources = three_sources();
    const Tensor ids = random_ids(3, 4, 13, 6);
    Tensor targets = random_ids(3, 4, 13, 8);
    targets[1].slice(0, 2).fill_(kIgnoredTarget);
    const auto gradients = [&](const Tensor& loss) {
      model->zero_grad();
      loss.backward();
      return model_tensors(*model).at("token_embedding").grad().clone();
    };
    const SummedLoss found = model->loss(sources, ids, targets, /*smoothing=*/0.3);
    const Tensor scores = model->logits(model->hidden(ids, model->encode(sources))).flatten(0, 1);
    const Tensor wanted =
        at::cross_entropy_loss(scores, targets.flatten(), {}, at::Reduction::Sum, kIgnoredTarget, 0.3);
    EXPECT_EQ(found.tokens, 10);
    EXPECT_NEAR(found.sum.item<double>(), wanted.item<double>(), 1e-4);
    const Tensor plain = at::cross_entropy_loss(scores, targets.flatten(), {}, at::Reduction::Sum, kIgnoredTarget, 0);
    EXPECT_NEAR(found.plain.item<double>(), plain.item<double>(), 1e-4);
    EXPECT_NEAR(model->token_losses(sources, ids, targets).sum().item<double>(), plain.item<double>(), 1e-4);
    EXPECT_TRUE(at::allclose(gradients(found.sum), gradients(wanted), 1e-4, 1e-5));
  }
}

TEST(EncoderDecoderTest, EachSiteHasItsScheme) {
  EncoderDecoderOptions options = small("mha");
  options.encoder_scheme = "mqa";
  options.decoder_scheme = "skv";
  options.cross_scheme = "collaborative";
  options.attention.key_width = 8;
  const EncoderDecoder model = made(options);
  EXPECT_EQ(model->encoder()->block(0)->attention->scheme().options().scheme, "mqa");
  EXPECT_EQ(model->decoder()->block(0)->attention->scheme().options().scheme, "skv");
  const AttentionOptions& cross = model->decoder()->block(0)->cross_attention->scheme().options();
  EXPECT_EQ(cross.scheme, "collaborative");
  EXPECT_EQ(*cross.key_width, 8);
}

// Rotary and ALiBi positions order each sequence by itself.
TEST(EncoderDecoderTest, CrossAttentionHasNoPositions) {
  for (const PositionKind positions : {PositionKind::kRotary, PositionKind::kAlibi}) {
    const EncoderDecoder model = made(small("mha", positions));
    const AttentionOptions& cross = model->decoder()->block(0)->cross_attention->scheme().options();
    EXPECT_FALSE(cross.rotary || cross.alibi);
    EXPECT_TRUE(model->encode(three_sources()).memory.isfinite().all().item<bool>());
  }
}

// What schemes have for rotary positions alone is not for cross-attention, which has none.
TEST(EncoderDecoderTest, CrossAttentionLeavesRotaryOptionsOut) {
  for (const auto& [scheme, option, value] :
       std::vector<std::tuple<std::string, std::string, std::string>>{{"skv", "skv-rotary", "counter"},
                                                                      {"skv", "skv-rotary", "split"},
                                                                      {"mla", "rotary-head-width", "2"},
                                                                      {"collaborative", "rotary-width", "4"}}) {
    SCOPED_TRACE(scheme + " " + value);
    const auto said = [&](AttentionOptions site) {
      Fields all = fields(site);
      return find_field(all, option)->value().dump();
    };
    EncoderDecoderOptions options = small(scheme, PositionKind::kRotary);
    Fields list = fields(options.attention);
    set_field(list, option, value, "a test");
    const EncoderDecoder model = made(options);
    const std::string with = said(options.attention), without = said(resolve({.scheme = scheme, .d_model = 16}));
    EXPECT_NE(with, without);
    EXPECT_EQ(said(model->decoder()->block(0)->attention->scheme().options()), with);
    EXPECT_EQ(said(model->decoder()->block(0)->cross_attention->scheme().options()), without);
  }
}

TEST(EncoderDecoderTest, SinusoidsInHalvesAreARearrangement) {
  EncoderDecoderOptions options = small("mha");
  options.sinusoid_order = SinusoidOrder::kHalves;
  const EncoderDecoder model = made(options);
  const Tensor table = model->named_buffers()["sinusoids"];
  EXPECT_NEAR(table[3][0].item<double>(), std::sin(3.0), 1e-6);
  EXPECT_NEAR(table[3][8].item<double>(), std::cos(3.0), 1e-6);
  EXPECT_NEAR(table[3][1].item<double>(), std::sin(3.0 * std::pow(10000.0, -2.0 / 16)), 1e-6);
}

TEST(EncoderDecoderTest, RefusesWhatItHasNot) {
  const auto refusal = [](auto change) {
    EncoderDecoderOptions options = small("mha");
    change(options);
    return error_message([&] { resolve(options); });
  };
  EXPECT_THAT(refusal([](auto& o) { o.layer_groups = 1; }), HasSubstr("leave --layer-groups out"));
  EXPECT_THAT(refusal([](auto& o) { o.embedding_width = 8; }), HasSubstr("leave --embedding-width out"));
  EXPECT_THAT(refusal([](auto& o) { o.share_embeddings = true; }), HasSubstr("vocabularies have 11 and 13 tokens"));
  EXPECT_THAT(refusal([](auto& o) { o.marks.end = 13; }), HasSubstr("end-id 13 is no token of a vocabulary of 13"));
  EXPECT_THAT(refusal([](auto& o) {
                o.attention.scheme = "mla";
                o.attention.own.template get<MlaOptions>().layer_kv_latents = {3, 7};
              }),
              HasSubstr("use --kv-latent-width instead"));
}

// Makes a tokenizer of "a", "b" and "c".
std::shared_ptr<Tokenizer> letters() {
  return std::make_shared<CharacterTokenizer>(std::vector<int32_t>{97, 98, 99}, CharacterTokenizer::Options(),
                                              "letters");
}

class SavedTranslator : public testing::Test {
 protected:
  fs::path path() const { return temporary_.path() / "model"; }

  TemporaryDirectory temporary_;
};

TEST_F(SavedTranslator, ComesBackWithBothTokenizers) {
  EncoderDecoderOptions options = small("mha");
  options.vocabulary = 256;
  options.source_vocabulary = 8;
  options.cross_scheme = "collaborative";
  options.attention.key_width = 12;
  options.marks = {.start = 3, .end = 4, .forced_first = 5, .forced_last = 4, .never_produced = 6};
  const EncoderDecoder model = made(options);
  TokenizerPair tokenizers{.source = letters(), .target = std::make_shared<ByteTokenizer>()};
  save_model(path(), model, tokenizers);
  const LoadedTranslator loaded = load_translator(path());
  EXPECT_EQ(loaded.tokenizers.source->kind(), "characters");
  EXPECT_EQ(loaded.tokenizers.target->kind(), "bytes");
  EncoderDecoderOptions before = model->options(), after = loaded.model->options();
  EXPECT_EQ(to_json(stored_fields(before)), to_json(stored_fields(after)));
  for (const auto& [name, tensor] : model_tensors(*model)) {
    EXPECT_TRUE(at::equal(tensor, model_tensors(*loaded.model).at(name))) << name;
  }
  EXPECT_THAT(error_message([&] { load_model(path()); }), HasSubstr("is an encoder-decoder, which translates"));
  EXPECT_THAT(error_message([&] { load_encoder_model(path()); }), HasSubstr("an encoder is needed here"));
}

TEST_F(SavedTranslator, KeepsAJointTokenizerOnce) {
  EncoderDecoderOptions options = small("mhe_add");
  options.vocabulary = options.source_vocabulary = 256;
  options.share_embeddings = true;
  const auto bytes = std::make_shared<ByteTokenizer>();
  save_model(path(), made(options), {.source = bytes, .target = bytes});
  EXPECT_FALSE(fs::exists(path() / "source_tokenizer.json"));
  EXPECT_TRUE(load_translator(path()).tokenizers.joint());
}

TEST_F(SavedTranslator, RefusesAnotherTokenizer) {
  EncoderDecoderOptions options = small("mha");
  options.vocabulary = 256;
  options.source_vocabulary = 256;
  const auto bytes = std::make_shared<ByteTokenizer>();
  save_model(path(), made(options), {.source = letters(), .target = bytes});
  write_file(path() / "source_tokenizer.json", bytes->to_json().dump());
  EXPECT_THAT(error_message([&] { load_translator(path()); }),
              HasSubstr("source_tokenizer.json is not the tokenizer that this model was trained with"));
}

}  // namespace
}  // namespace headshare
