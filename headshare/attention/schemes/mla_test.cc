// This file adds the formulas of mla to the tests.
#include "headshare/attention/schemes/mla.h"

#include <gmock/gmock.h>

#include <map>

#include "headshare/attention/kernel_choice.h"
#include "headshare/attention/testing.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Tensor normed_latent(const NaiveLayer& layer, const std::string& norm, const Tensor& x) {
  return x / (x.square().mean(1, /*keepdim=*/true) + 1e-6).sqrt() * layer.parameter(norm + ".weight");
}

NaiveHead mla_head(const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
  const bool compressed = layer.has("query_latent.weight");
  const Tensor from = compressed ? normed_latent(layer, "query_latent_norm", layer.affine("query_latent", x)) : x;
  const Tensor made = layer.affine("latent", y);
  const int64_t latents = layer.options().own.get<MlaOptions>().latents;
  const int64_t R = layer.parameter("key.weight").size(1), group = h / (layer.options().heads / latents);
  const std::string norm = latents == 1 ? "latent_norm" : join_text("latent_norm_", group);
  const Tensor latent = made.slice(1, group * R, (group + 1) * R);
  const Tensor c = layer.has(norm + ".weight") ? normed_latent(layer, norm, latent) : latent;
  const auto from_latent = [&](const std::string& name) {
    return c.matmul(layer.parameter(name + ".weight").chunk(layer.options().heads)[static_cast<size_t>(h)].t());
  };
  return {layer.own("query", h, from), at::cat({from_latent("key"), made.slice(1, latents * R)}, 1),
          from_latent("value")};
}

// Heads compare 3 dimensions that stay and 4 that turn, and find 2.
AttentionOptions uneven_layer() {
  AttentionOptions options = small_layer("mla");
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"kv-latent-width", "5"}, {"query-latent-width", "5"}, {"content-head-width", "3"}}) {
    options = with_option(options, name, value);
  }
  return options;
}

AttentionOptions layer_of_latents(const std::string& latents, const std::string& width) {
  return with_option(with_option(uneven_layer(), "kv-latents", latents), "kv-latent-width", width);
}

// Returns layers as `convert` makes them.
AttentionOptions linear_layer(const AttentionOptions& options = small_layer("mla")) {
  return with_option(options, "kv-latent-norm", "false");
}

const AddFormula kMla({.scheme = "mla",
                       .head = mla_head,
                       .cases = {{"mla", small_layer("mla")},
                                 {"mla_uneven", uneven_layer()},
                                 {"mla_linear", linear_layer()},
                                 {"mla_two_latents", layer_of_latents("2", "3")},
                                 {"mla_two_linear_latents", linear_layer(layer_of_latents("2", "3"))},
                                 {"mla_latent_for_each_head", layer_of_latents("4", "2")}}});

AttentionOptions turned_layer(const std::string& width, AttentionOptions options = uneven_layer()) {
  options.rotary = true;
  return with_option(options, "rotary-head-width", width);
}

TEST(Mla, BothFormsGiveTheSameHeads) {
  const at::NoGradGuard no_grad;
  for (const AttentionOptions& options : {uneven_layer(), turned_layer("4"), linear_layer(), layer_of_latents("2", "3"),
                                          turned_layer("4", layer_of_latents("4", "2"))}) {
    const Attention layer = random_attention(options);
    const Scheme& scheme = layer->scheme();
    const Tensor y = random_tensor({2, 7, 6}, 61);
    const Tensor queries = scheme.project_queries(y.slice(1, 4), /*first=*/4);
    const Memory memory = scheme.remember(y, 0);
    std::vector<Tensor> merged;
    for (const Form form : {Form::kManyQueries, Form::kFewQueries}) {
      const Posed posed = scheme.posed(queries, memory, form);
      merged.push_back(scheme.merge(posed, attend(posed.problem, {.causal = true}, {}), Tensor()));
      if (form == Form::kManyQueries) continue;
      EXPECT_EQ(posed.problem.key.data_ptr(), memory[0].data_ptr()) << "the cache is the key, and its start the value";
      EXPECT_EQ(posed.problem.value.data_ptr(), memory[0].data_ptr());
    }
    EXPECT_TRUE(same(merged[0], merged[1]));
  }
}

TEST(Mla, OnlyTheLastDimensionsTurnAndTheyAreCachedTurned) {
  const at::NoGradGuard no_grad;
  const Attention layer = random_attention(turned_layer("4"));
  const Tensor y = random_tensor({1, 1, 6}, 62);
  const Tensor here = layer->scheme().remember(y, 0)[0], there = layer->scheme().remember(y, 3)[0];
  EXPECT_TRUE(at::equal(here.slice(3, 0, 5), there.slice(3, 0, 5)));
  EXPECT_GT(distance(here.slice(3, 5), there.slice(3, 5)), 1e-3);
  EXPECT_EQ(here.size(3), 5 + 4);
}

TEST(Mla, AFewQueriesAgainstACacheReadItAsItIs) {
  const AttentionOptions options = {.scheme = "mla", .d_model = 768, .heads = 12, .rotary = true};
  const std::shared_ptr<Scheme> scheme = make_scheme(resolve(options));
  EXPECT_EQ(scheme->form_for(1, 512), Form::kFewQueries);
  EXPECT_EQ(scheme->form_for(512, 512), Form::kManyQueries);
  EXPECT_EQ(scheme->form_for(1, 1), Form::kManyQueries);
  EXPECT_EQ(kernel_choice(options, {.queries = 1, .keys = 64}, at::kCPU).backend, "decode");
}

// Counts the products of a form for T queries and S keys: maps from the latent vector, scores and averages.
int64_t products(const Scheme& scheme, int64_t T, int64_t S, Form form) {
  const Tensor token = at::zeros({1, 1, scheme.options().d_model}, at::kDouble);
  const HeadProblem problem = scheme.posed(scheme.project_queries(token, 0), scheme.remember(token, 0), form).problem;
  const Parameters parameters = parameters_of(scheme);
  const int64_t mapped = parameters.at("key.weight").numel() + parameters.at("value.weight").numel();
  const int64_t met = scheme.options().heads * (problem.query.size(3) + problem.value.size(3));
  return T * S * met + (form == Form::kFewQueries ? T : S) * mapped;
}

TEST(Mla, TheFormIsTheOneWithFewerProducts) {
  const at::NoGradGuard no_grad;
  int few = 0, many = 0;
  for (const std::string latents : {"1", "2", "4"}) {
    AttentionOptions options = {.scheme = "mla", .d_model = 32, .heads = 4, .rotary = true};
    options = with_option(with_option(options, "kv-latents", latents), "kv-latent-width", "16");
    const Attention layer = random_attention(options);
    const Scheme& scheme = layer->scheme();
    for (const int64_t S : {2, 9, 60}) {
      for (int64_t T = 1; T < S; ++T) {
        const int64_t absorbed = products(scheme, T, S, Form::kFewQueries);
        const int64_t expanded = products(scheme, T, S, Form::kManyQueries);
        const bool is_few = scheme.form_for(T, S) == Form::kFewQueries;
        EXPECT_EQ(is_few, absorbed < expanded) << latents << " latent vectors, " << T << " of " << S;
        ++(is_few ? few : many);
      }
    }
  }
  EXPECT_GT(few, 10);
  EXPECT_GT(many, 10);
}

// A query of several latent vectors meets all of them, which moves the change-over.
TEST(Mla, FormsChangeOverWhereTheyTakeTheSameArithmetic) {
  const auto most_queries = [](const std::string& latents, int64_t S) {
    AttentionOptions options = {.scheme = "mla", .d_model = 768, .heads = 12};
    const auto scheme = make_scheme(resolve(with_option(options, "kv-latents", latents)));
    int64_t T = 1;
    while (scheme->form_for(T, S) == Form::kFewQueries) ++T;
    return T - 1;
  };
  EXPECT_EQ(most_queries("1", 1 << 20), 85) << "R 256: T 384 < 256 x 128";
  EXPECT_EQ(most_queries("2", 1 << 20), 42) << "R 128: T 384 < 128 x 128";
  EXPECT_EQ(most_queries("1", 512), 73) << "of so many keys queries are a part";
  EXPECT_EQ(most_queries("1", 100), 46);
}

// Gives the heads of each group the maps of its first head, as GQLA (Meng, 2026) has them.
void share_maps(const Attention& layer, int64_t groups) {
  for (const char* name : {"key.weight", "value.weight"}) {
    const Tensor weight = parameters_of(layer->scheme()).at(name);
    const Tensor maps = weight.view({groups, layer->scheme().options().heads / groups, -1});
    maps.copy_(maps.slice(1, 0, 1).clone().expand_as(maps));
  }
}

// Poses GQLA's second path: what is cached becomes one key and one value for each group.
HeadProblem of_groups(const Scheme& scheme, const Tensor& queries, const Tensor& kept, int64_t groups) {
  const AttentionOptions& o = scheme.options();
  const int64_t latents = o.own.get<MlaOptions>().latents, R = *o.own.get<MlaOptions>().kv_latent;
  std::vector<Tensor> keys, values;
  for (int64_t i = 0; i < groups; ++i) {
    const int64_t latent = i * latents / groups;
    const Tensor c = kept.slice(3, latent * R, (latent + 1) * R);  // [B, 1, S, R]
    const auto made = [&](const std::string& name) {
      const Tensor weight = parameters_of(scheme).at(name + ".weight");
      return c.matmul(weight.chunk(o.heads)[static_cast<size_t>(i * o.heads / groups)].t());
    };
    keys.push_back(at::cat({made("key"), kept.slice(3, latents * R)}, 3));
    values.push_back(made("value"));
  }
  return {.heads = o.heads, .query = queries, .key = at::cat(keys, 1), .value = at::cat(values, 1), .scale = *o.scale};
}

// Trained weights whose heads of a group share their maps decode in two ways from one cache (GQLA): the latent vector
// is key and value of all heads, or keys and values of groups are made of it. Both are what the layer computes.
TEST(Mla, BothPathsOfGqlaReadOneCache) {
  const at::NoGradGuard no_grad;
  constexpr int64_t kTokens = 9;
  const Tensor x = random_tensor({2, kTokens, 6}, 63);
  Tensor padded = at::ones({2, kTokens}, at::kBool);
  padded[0].slice(0, 0, 3).fill_(false);
  padded[1].fill_(false);  // nothing to see
  const std::vector<HeadMask> masks = {{.causal = true},
                                       {.causal = true, .visible_keys = padded},
                                       {},
                                       {.causal = true, .window = 2},
                                       {.causal = true, .alibi_slopes = at::tensor({0.5, 0.3, 0.2, 0.1}, at::kDouble)}};
  for (const AttentionOptions& options :
       {uneven_layer(), turned_layer("4"), linear_layer(turned_layer("4")), layer_of_latents("2", "3"),
        linear_layer(turned_layer("4", layer_of_latents("2", "3")))}) {
    for (const int64_t groups : {int64_t{2}, options.heads}) {
      const Attention layer = random_attention(options);
      share_maps(layer, groups);
      const Scheme& scheme = layer->scheme();
      for (const int64_t T : {int64_t{1}, int64_t{4}, kTokens}) {
        KvCache cache(/*capacity=*/kTokens);
        if (T < kTokens) layer->self(x.slice(1, 0, kTokens - T), {.causal = true}, &cache);
        const Tensor decoded = layer->self(x.slice(1, kTokens - T), {.causal = true}, &cache);
        const Tensor queries = scheme.project_queries(x.slice(1, kTokens - T), kTokens - T);
        for (size_t i = 0; i < masks.size(); ++i) {
          const auto merged = [&](const Posed& posed) {
            return scheme.merge(posed, attend(posed.problem, masks[i], {}), Tensor());
          };
          const Tensor absorbed = merged(scheme.posed(queries, cache.contents(), Form::kFewQueries));
          const Tensor expanded = merged({.problem = of_groups(scheme, queries, cache.contents()[0], groups)});
          EXPECT_TRUE(same(absorbed, expanded)) << T << " queries, mask " << i;
          if (i > 0) continue;
          EXPECT_TRUE(same(decoded, absorbed)) << T << " queries";
        }
      }
    }
  }
}

// Without the norm of the latent vector such a layer is grouped-query attention, whose maps are products.
TEST(Mla, HeadsOfAGroupThatShareTheirMapsAreGqa) {
  const at::NoGradGuard no_grad;
  for (const bool rotary : {false, true}) {
    for (const int64_t groups : {1, 2, 4}) {
      AttentionOptions options = with_option(linear_layer(), "kv-latent-width", "3");
      options.head_width = 4;
      options.projection_bias = true;
      const int64_t turned = rotary ? 2 : 0;
      if (rotary) options = turned_layer("2", options);
      options = with_option(options, "content-head-width", std::to_string(4 - turned));
      const Attention latent = random_attention(options, 1);
      share_maps(latent, groups);
      AttentionOptions plain = small_layer("gqa");
      plain.head_width = 4;
      plain.projection_bias = true;
      plain.rotary = rotary;
      if (rotary) plain.rotary_dimensions = turned;
      const Attention gqa = random_attention(with_option(plain, "groups", std::to_string(groups)), 2);
      const Parameters from = parameters_of(latent->scheme()), to = parameters_of(gqa->scheme());
      for (const std::string end : {".weight", ".bias"}) {
        for (const char* name : {"query", "output"}) to.at(name + end).copy_(from.at(name + end));
        const Tensor made = from.at("latent" + end), c = made.slice(0, 0, 3), t = made.slice(0, 3);
        std::vector<Tensor> keys, values;
        for (int64_t i = 0; i < groups; ++i) {
          const auto first = static_cast<size_t>(i * 4 / groups);
          keys.push_back(from.at("key.weight").chunk(4)[first].matmul(c));
          keys.push_back(t);
          values.push_back(from.at("value.weight").chunk(4)[first].matmul(c));
        }
        to.at("key" + end).copy_(at::cat(keys));
        to.at("value" + end).copy_(at::cat(values));
      }
      const Tensor x = random_tensor({2, 5, 6}, 64);
      EXPECT_TRUE(same(latent->self(x, {.causal = true}), gqa->self(x, {.causal = true})));
    }
  }
}

TEST(Mla, CountsAreThoseOfThePaper) {
  const auto cost = [](AttentionOptions options, const std::string& query_latent, bool rotary) {
    options.scheme = "mla";
    options.d_model = 768;
    options.heads = 12;
    options.rotary = rotary;
    options = with_option(options, "kv-latent-width", "256");
    return make_scheme(resolve(with_option(options, "query-latent-width", query_latent)))->cost();
  };
  const int64_t E = 768, H = 12, D = 64, R = 256, Dr = 32;
  // 2,088,960 and 1,941,504 are the counts without the norms' weights.
  EXPECT_EQ(cost({}, "auto", true).effective, E * H * (D + Dr) + E * (R + Dr) + R * H * 2 * D + E * E);
  EXPECT_EQ(cost({}, "auto", true).effective, 2088960);
  EXPECT_EQ(cost({}, "auto", true).parameters, 2088960 + R);
  EXPECT_EQ(cost({}, "384", true).effective, 1941504);
  EXPECT_EQ(cost({}, "384", true).parameters, 1941504 + R + 384);
  EXPECT_EQ(cost({}, "auto", true).cache_elements, R + Dr);
  EXPECT_EQ(cost({}, "auto", false).cache_elements, R);
  EXPECT_EQ(cost({}, "768", true).effective, 2088960) << "queries of full rank are not compressed";
}

TEST(Mla, LatentsDivideTheWidthAndNotTheCache) {
  const auto cost = [](const std::string& latents) {
    AttentionOptions options = {.scheme = "mla", .d_model = 768, .heads = 12, .rotary = true};
    options = with_option(options, "query-latent-width", "384");
    return make_scheme(resolve(with_option(options, "kv-latents", latents)))->cost();
  };
  const int64_t E = 768, H = 12, D = 64, Dr = 32;
  EXPECT_EQ(cost("2").effective, 1744896) << "the count of GLA 2 x 128 without the norms' weights";
  EXPECT_EQ(cost("2").parameters, 1744896 + 2 * 128 + 384);
  EXPECT_EQ(cost("2").effective, 384 * (E + H * (D + Dr)) + E * (256 + Dr) + 128 * H * 2 * D + E * E);
  for (const std::string latents : {"1", "2", "4"}) EXPECT_EQ(cost(latents).cache_elements, 256 + Dr) << latents;
}

TEST(Mla, ImpossibleWidthsNameTheNumbersAndTheWayOut) {
  const auto refused = [](const std::string& option, const std::string& value, const AttentionOptions& like) {
    return error_message([&] { resolve(with_option(like, option, value)); });
  };
  const AttentionOptions still = small_layer("mla");  // E 6, H 4, D 2
  EXPECT_THAT(refused("kv-latent-width", "0", still), HasSubstr("not 0"));
  EXPECT_THAT(refused("kv-latent-width", "7", still), AllOf(HasSubstr("at most 6"), HasSubstr("not 7")));
  EXPECT_THAT(refused("layer-kv-latent-widths", "3,7", still),
              AllOf(HasSubstr("layer-kv-latent-widths must be at most 6"), HasSubstr("not 7; choose a lower --layer")));
  EXPECT_THAT(
      refused("layer-kv-latent-widths", "3,4", with_option(still, "kv-latent-width", "5")),
      AllOf(HasSubstr("kv-latent-width 5"), HasSubstr("largest is 4"), HasSubstr("leave --kv-latent-width out")));
  EXPECT_EQ(*resolve(with_option(still, "layer-kv-latent-widths", "3,4")).own.get<MlaOptions>().kv_latent, 4);
  EXPECT_THAT(refused("kv-latents", "3", still),
              AllOf(HasSubstr("4 heads, 3 latent vectors"), HasSubstr("divisor of 4")));
  EXPECT_THAT(refused("kv-latents", "0", still), HasSubstr("not 0"));
  EXPECT_THAT(refused("kv-latents", "4", with_option(still, "kv-latent-width", "5")),
              AllOf(HasSubstr("at most 4"), HasSubstr("not 5")))
      << "a group of one head has 4 dimensions";
  EXPECT_THAT(refused("query-latent-width", "7", still), AllOf(HasSubstr("at most 6"), HasSubstr("d-model 6")));
  EXPECT_THAT(refused("rotary-head-width", "2", still), HasSubstr("--positions rotary"));
  EXPECT_THAT(refused("rotary-head-width", "3", turned_layer("4")), HasSubstr("must be even"));
  EXPECT_THAT(refused("qk-norm", "true", still), HasSubstr("leave --qk-norm out"));
  AttentionOptions part = turned_layer("4");
  part.rotary_dimensions = 2;
  EXPECT_THAT(error_message([&] { resolve(part); }), HasSubstr("leave --rotary-dimensions out"));
}

}  // namespace
}  // namespace headshare
