#include "headshare/models/cost.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Settings = std::vector<std::pair<std::string, std::string>>;  // options by name

const Settings kGpt2 = {{"layers", "12"}, {"d-model", "768"}, {"heads", "12"}};
const Settings kBaseTranslator = {{"layers", "6"}, {"d-model", "512"}, {"heads", "8"}};
const Settings kSmall = {
    {"layers", "2"}, {"d-model", "64"}, {"heads", "4"}, {"vocabulary", "1000"}, {"context", "128"}};

Settings operator+(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// Returns the cost of every scheme with these settings on top of the kind's own.
std::vector<SchemeCost> costs(const Settings& settings, const std::string& kind = "decoder") {
  CostOptions options = cost_options(kind);
  Fields known = fields(options);
  append(&known, model_fields(options.model.common()));
  append(&known, model_kind(kind).own_fields(options.model));
  for (const auto& [name, text] : settings) set_field(known, name, text, "test");
  return all_costs(options, parse_sweep(options.sweep, swept_fields(options.model)));
}

SchemeCost cost(const std::string& scheme, const Settings& settings, const std::string& kind = "decoder") {
  return costs(settings + Settings{{"schemes", scheme}}, kind).front();
}

std::vector<std::string> schemes_of(const std::vector<SchemeCost>& all) {
  std::vector<std::string> names;
  for (const SchemeCost& one : all) names.push_back(one.scheme);
  return names;
}

// The encoder table of the MHE paper has 12 layers, width 768 and 12 heads; its attention parameters count no biases.
TEST(CostTest, EncoderTable) {
  const std::map<std::string, int64_t> parameters = {
      {"mha", 28311552}, {"sha", 8847360},  {"el_shared", 14155776}, {"el_lossless", 28311552},
      {"mqa", 15335424}, {"skv", 21233664}, {"mhe_add", 8875008},    {"mhe_mul", 8875008}};
  const std::map<std::string, int64_t> caches = {{"mha", 1536}, {"skv", 768},     {"el_shared", 768},     {"sha", 128},
                                                 {"mqa", 128},  {"mhe_add", 128}, {"collaborative", 1152}};
  const std::vector<SchemeCost> all = costs(kGpt2);
  EXPECT_EQ(schemes_of(all), scheme_names());
  for (const SchemeCost& one : all) {
    const auto counted = parameters.find(one.scheme);
    if (counted != parameters.end()) {
      EXPECT_EQ(one.size.attention_parameters, counted->second) << one.scheme;
    }
    const auto cached = caches.find(one.scheme);
    if (cached != caches.end()) {
      EXPECT_EQ(one.size.cache_elements_per_token, cached->second) << one.scheme;
    }
    EXPECT_EQ(one.cache_bytes_per_token, 12 * 4 * one.size.cache_elements_per_token) << one.scheme;
    EXPECT_LE(one.size.attention_parameters_effective, one.size.attention_parameters) << one.scheme;
    EXPECT_LT(one.size.attention_parameters, one.size.total_parameters) << one.scheme;
    EXPECT_EQ(mha_parameters(one.model), 28311552) << one.scheme;
  }
}

// The translation table of the MHE paper gives layers of either side, width, heads, and the millions of parameters of
// mha and mhe.
TEST(CostTest, TranslationTable) {
  struct Line {
    int64_t layers, width, heads;
    double mha, mhe;
  };
  for (const Line& line : {Line{6, 512, 8, 18.87, 6.52}, Line{6, 512, 16, 18.87, 5.63}, Line{6, 512, 4, 18.87, 8.29},
                           Line{4, 512, 8, 12.58, 4.34}, Line{8, 512, 8, 25.17, 8.69}, Line{6, 768, 12, 42.47, 13.31},
                           Line{6, 1024, 16, 75.50, 22.47}}) {
    const Settings sizes = {{"layers", std::to_string(line.layers)},
                            {"d-model", std::to_string(line.width)},
                            {"heads", std::to_string(line.heads)}};
    const std::vector<SchemeCost> all = costs(sizes, "encoder-decoder");
    EXPECT_EQ(schemes_of(all), scheme_names());
    const int64_t sites = 3 * line.layers;  // encoder, decoder and cross-attention
    const int64_t width = line.width, narrow = line.width / line.heads;
    const int64_t mha = sites * 4 * width * width;
    const int64_t mhe = sites * (3 * width * narrow + width * width + 3 * width);
    const auto printed = [](int64_t count) { return std::round(static_cast<double>(count) / 1e4) / 100; };
    EXPECT_DOUBLE_EQ(printed(mha), line.mha);
    EXPECT_DOUBLE_EQ(printed(mhe), line.mhe);
    for (const SchemeCost& one : all) {
      if (one.scheme == "mha") {
        EXPECT_EQ(one.size.attention_parameters, mha);
      } else if (one.scheme == "mhe_add" || one.scheme == "mhe_mul") {
        EXPECT_EQ(one.size.attention_parameters, mhe) << one.scheme;
        EXPECT_EQ(one.source_cache_bytes_per_token, line.layers * 4 * 2 * narrow) << one.scheme;
      }
      EXPECT_EQ(one.cache_bytes_per_token, line.layers * 4 * one.size.cache_elements_per_token) << one.scheme;
      EXPECT_EQ(one.source_cache_bytes_per_token, one.cache_bytes_per_token) << one.scheme;
      EXPECT_EQ(mha_parameters(one.model), mha) << one.scheme;
    }
    // The rest is norms, feed-forward sub-layers with biases and one embedding; sinusoids are no parameters.
    const int64_t blocks = 2 * line.layers * (8 * width * width + 5 * width) + line.layers * (2 + 3) * 2 * width;
    EXPECT_EQ(cost("mha", sizes, "encoder-decoder").size.total_parameters, mha + blocks + 50257 * width);
  }
}

TEST(CostTest, PartsOfAnEncoderDecoder) {
  const auto of = [](const Settings& more) { return cost("mhe_mul", kBaseTranslator + more, "encoder-decoder"); };
  const SchemeCost all = of({}), cross = of({{"cross-scheme", "mha"}});
  constexpr int64_t kMhe = 3 * 512 * 64 + 512 * 512 + 3 * 512;
  EXPECT_EQ(cross.size.attention_parameters - all.size.attention_parameters, 6 * (4 * 512 * 512 - kMhe));
  EXPECT_EQ(cross.cache_bytes_per_token, all.cache_bytes_per_token);
  EXPECT_EQ(cross.source_cache_bytes_per_token, 8 * all.source_cache_bytes_per_token);
  EXPECT_EQ(of({{"decoder-layers", "2"}}).size.attention_parameters, (6 + 2 * 2) * kMhe);
  const auto added = [&](const Settings& more) { return of(more).size.total_parameters - all.size.total_parameters; };
  EXPECT_EQ(added({{"share-embeddings", "false"}, {"source-vocabulary", "1000"}}), 1000 * 512);
  EXPECT_EQ(added({{"norms", "pre"}}), 2 * 2 * 512);
  // The budget holds a source and a target of equal length.
  const SchemeCost fits = of({{"memory-budget", "1GiB"}, {"positions", "none"}, {"cache-type", "bf16"}});
  const int64_t room = (int64_t{1} << 30) - 4 * fits.size.total_parameters;
  const int64_t cache = fits.cache_bytes_per_token + fits.source_cache_bytes_per_token;
  EXPECT_EQ(cache, all.cache_bytes_per_token);
  EXPECT_EQ(fits.longest_context, room / cache);
  EXPECT_EQ(fits.largest_batch, room / (cache * fits.model.common().context));
}

// The counts are timm's for vit_tiny, vit_small and vit_base with patches of 16 in images of 224, and for the distilled
// deit_tiny.
TEST(CostTest, VisionTransformers) {
  const auto of = [](const Settings& more, const std::string& scheme = "mha") {
    return cost(scheme, Settings{{"layers", "12"}} + more, "vision-transformer");
  };
  const Settings tiny = {{"d-model", "192"}, {"heads", "3"}};
  EXPECT_EQ(of(tiny).size.total_parameters, 5717416);
  EXPECT_EQ(of({{"d-model", "384"}, {"heads", "6"}}).size.total_parameters, 22050664);
  EXPECT_EQ(of({{"d-model", "768"}, {"heads", "12"}}).size.total_parameters, 86567656);
  EXPECT_EQ(of(tiny + Settings{{"distillation-token", "with_head"}}).size.total_parameters, 5910800);
  EXPECT_EQ(of(tiny).cache_bytes_per_token, 0);
  EXPECT_EQ(of(tiny, "mqa").size.attention_parameters, 12 * (2 * 192 * 192 + 2 * 192 * 64));
  const std::vector<SchemeCost> swept = costs(
      tiny + Settings{{"layers", "12"}, {"schemes", "mha"}, {"sweep", "image-size=224,384"}}, "vision-transformer");
  EXPECT_EQ(swept[1].size.total_parameters - swept[0].size.total_parameters, (576 - 196) * 192);
  EXPECT_THAT(error_message([&] { of(tiny + Settings{{"sweep", "context=8,16"}}); }), HasSubstr("unknown option"));
}

TEST(CostTest, ChosenSchemesStandInTheirOrder) {
  EXPECT_THAT(schemes_of(costs({{"schemes", "mhe-mul,gqa"}})), ElementsAre("gqa", "mhe_mul"));
  EXPECT_THAT(error_message([] { costs({{"schemes", "mhaa"}}); }), HasSubstr("did you mean 'mha'?"));
}

TEST(CostTest, AnImpossibleSchemeDoesNotHideTheOthers) {
  for (const SchemeCost& one : costs({{"positions", "rotary"}, {"d-model", "64"}, {"heads", "4"}})) {
    if (one.scheme == "el_shared") {
      EXPECT_THAT(one.impossible, HasSubstr("rotary"));
    } else if (one.scheme == "mha") {
      EXPECT_EQ(one.size.attention_parameters, 4 * 4 * 64 * 64);
    }
  }
  EXPECT_THAT(error_message([] {
                costs({{"heads", "7"}, {"d-model", "64"}});
              }),
              testing::AllOf(HasSubstr("7"), HasSubstr("64"), HasSubstr("head")));
}

TEST(CostTest, Sweeps) {
  const Settings narrow = {{"d-model", "64"}};
  std::vector<std::string> order;
  for (const SchemeCost& one : costs(narrow + Settings{{"sweep", "heads=4,8,16"}, {"schemes", "mha,mhe_mul"}})) {
    order.push_back(one.scheme + " " + one.sweep_value);
    const int64_t D = 64 / one.model.common().attention.heads;
    const int64_t mhe = 4 * (3 * 64 * D + 64 * 64 + 3 * 64);
    EXPECT_EQ(one.size.attention_parameters, one.scheme == "mhe_mul" ? mhe : 4 * 4 * 64 * 64);
  }
  EXPECT_THAT(order, ElementsAre("mha 4", "mha 8", "mha 16", "mhe_mul 4", "mhe_mul 8", "mhe_mul 16"));
  const std::vector<SchemeCost> layers = costs({{"sweep", "n_layer=1,2"}, {"schemes", "sha"}});
  EXPECT_EQ(layers[1].size.attention_parameters, 2 * layers[0].size.attention_parameters);
  const std::vector<SchemeCost> odd = costs(narrow + Settings{{"sweep", "heads=4,7"}});
  EXPECT_EQ(odd[0].impossible, "");
  EXPECT_THAT(odd[1].impossible, HasSubstr("7"));
  const auto refusal = [](const std::string& sweep) { return error_message([&] { costs({{"sweep", sweep}}); }); };
  EXPECT_THAT(refusal("haeds=1,2"), HasSubstr("did you mean 'heads'?"));
  EXPECT_THAT(refusal("heads"), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(refusal("heads=four"), HasSubstr("whole number"));
}

TEST(CostTest, SharedLayersAndFactorisedEmbeddings) {
  const Settings sizes = kGpt2 + Settings{{"vocabulary", "1000"}, {"context", "512"}};
  const SchemeCost own = cost("mha", sizes);
  const SchemeCost shared = cost("mha", sizes + Settings{{"layer-groups", "3"}});
  EXPECT_EQ(shared.size.attention_parameters * 4, own.size.attention_parameters);
  EXPECT_EQ(shared.cache_bytes_per_token, own.cache_bytes_per_token);
  const SchemeCost narrow = cost("mha", sizes + Settings{{"embedding-width", "100"}});
  const int64_t tables = (1000 + 512) * (768 - 100), projections = 768 + 2 * 100 * 768;
  EXPECT_EQ(own.size.total_parameters - narrow.size.total_parameters, tables - projections);
  const std::vector<SchemeCost> swept =
      costs(sizes + Settings{{"schemes", "mha"}, {"layer-groups", "4"}, {"sweep", "layers=12,5"}});
  EXPECT_EQ(swept[0].impossible, "");
  EXPECT_THAT(swept[1].impossible, HasSubstr("5 / 4"));
}

TEST(CostTest, MemoryBudget) {
  constexpr int64_t kBudget = 64 << 20;
  const Settings sizes = kSmall + Settings{{"memory-budget", "64MiB"}};
  for (const SchemeCost& one : costs(sizes + Settings{{"positions", "rotary"}})) {
    if (!one.impossible.empty()) continue;
    const int64_t room = kBudget - 4 * one.size.total_parameters;
    EXPECT_EQ(one.largest_batch, room / (128 * one.cache_bytes_per_token)) << one.scheme;
    EXPECT_EQ(one.longest_context, room / one.cache_bytes_per_token) << one.scheme;
    EXPECT_TRUE(one.weights_fit);
  }
  // A learned position embedding grows with the context.
  const SchemeCost mha = cost("mha", sizes + Settings{{"batch-size", "3"}});
  const SchemeCost longest = cost("mha", kSmall + Settings{{"context", std::to_string(mha.longest_context)}});
  const int64_t needed = 4 * longest.size.total_parameters + 3 * mha.longest_context * mha.cache_bytes_per_token;
  EXPECT_LT(kBudget - needed, 4 * 64 + 3 * mha.cache_bytes_per_token);
  EXPECT_LE(needed, kBudget);
  const SchemeCost none = cost("mha", {{"memory-budget", "1KiB"}});
  EXPECT_EQ(none.largest_batch, 0);
  EXPECT_EQ(none.longest_context, 0);
  EXPECT_FALSE(none.weights_fit);
  EXPECT_THAT(error_message([] { costs({{"memory-budget", "much"}}); }), HasSubstr("8GiB"));
}

TEST(CostTest, TypesOfElements) {
  const Settings sizes = kSmall + Settings{{"positions", "none"}, {"memory-budget", "64MiB"}};
  const SchemeCost whole = cost("gqa", sizes);
  const SchemeCost half = cost("gqa", sizes + Settings{{"weight-type", "bf16"}, {"cache-type", "bf16"}});
  EXPECT_EQ(half.cache_bytes_per_token * 2, whole.cache_bytes_per_token);
  const int64_t room = (64 << 20) - 2 * half.size.total_parameters;
  EXPECT_EQ(half.longest_context, room / half.cache_bytes_per_token);
  EXPECT_EQ(half.largest_batch, room / (128 * half.cache_bytes_per_token));
  const SchemeCost small = cost("gqa", sizes + Settings{{"weight-type", "int8"}, {"cache-type", "int8"}});
  EXPECT_EQ(small.longest_context, ((64 << 20) - small.size.total_parameters) / (whole.cache_bytes_per_token / 4));
}

// Beside an existing model other schemes have their own defaults; options that the user gave stay.
TEST(CostTest, AModelThatThereIs) {
  DecoderOptions model{.vocabulary = 256, .context = 32, .layers = 2};
  model.attention = {.scheme = "mha", .d_model = 16, .heads = 4};
  CostOptions options;
  take_model(resolve(model), &options);
  EXPECT_EQ(options.kind, "decoder");
  const std::vector<SchemeCost> all = all_costs(options, {});
  EXPECT_EQ(all.front().scheme, "mha");
  EXPECT_EQ(all.size(), scheme_names().size());
  const Settings sizes = {{"layers", "2"}, {"d-model", "16"}, {"heads", "4"}, {"vocabulary", "256"}, {"context", "32"}};
  for (const SchemeCost& one : all) {
    EXPECT_EQ(one.size.total_parameters, cost(one.scheme, sizes).size.total_parameters) << one.scheme;
  }
  // The model has learned no more positions, whatever memory there is.
  options.memory_budget = 1 << 30;
  EXPECT_EQ(all_costs(options, {}).front().longest_context, 32);
  EXPECT_GT(cost("mha", sizes + Settings{{"memory-budget", "1GiB"}}).longest_context, 32);
}

TEST(CostTest, TranslatorsAreTakenWithTheirSites) {
  EncoderDecoderOptions model;
  model.vocabulary = 100;
  model.source_vocabulary = 70;
  model.share_embeddings = false;
  model.layers = 2;
  model.attention = {.scheme = "mha", .d_model = 16, .heads = 2};
  model.cross_scheme = "mqa";
  CostOptions options;
  take_model(resolve(model), &options);
  EXPECT_EQ(options.kind, "encoder-decoder");
  const SchemeCost own = all_costs(options, {}).front();
  EXPECT_EQ(own.scheme, "mha");
  EXPECT_EQ(own.size.total_parameters, measure(resolve(model)).total_parameters);
  EXPECT_EQ(own.model.as<EncoderDecoderOptions>().cross_scheme, "mqa");
}

TEST(CostTest, WidthsOfLayersStandInPlaceOfAModelsOwn) {
  DecoderOptions model{.vocabulary = 100, .context = 32, .layers = 2};
  model.attention = {.scheme = "mla", .d_model = 16, .heads = 2};
  CostOptions options;
  take_model(resolve(model), &options);
  const auto count = [&] { return all_costs(options, {}).front().size.total_parameters; };
  const int64_t before = count();
  options.schemes = {"mla"};
  Fields list = model_fields(options.model.common());
  set_field(list, "layer-kv-latent-widths", "4,6", "test");
  options.given = {"layer-kv-latent-widths"};
  const SchemeCost cost = all_costs(options, {}).front();
  EXPECT_EQ(cost.impossible, "");
  EXPECT_LT(cost.size.total_parameters, before);
}

TEST(CostTest, CountsOfOtherPrograms) {
  DecoderOptions model{.vocabulary = 100, .context = 32, .layers = 2};
  model.attention = {.scheme = "mha", .d_model = 16, .heads = 2, .projection_bias = true};
  const TransformerOptions resolved = resolve(model);
  EXPECT_EQ(surplus_parameters({}, resolved), 0);
  EXPECT_EQ(surplus_parameters({.output_bias = false}, resolved), 2 * 16);  // the output biases of two layers
  EXPECT_EQ(surplus_parameters({.fixed_tables = 2, .unused_rows = 4}, resolved), -(2 * 32 + 4) * 16);
}

}  // namespace
}  // namespace headshare
