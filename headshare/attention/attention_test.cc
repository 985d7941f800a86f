// These tests compare every scheme with its literal formula, and check what holds for all schemes.
#include "headshare/attention/attention.h"

#include <gmock/gmock.h>

#include "headshare/attention/testing.h"

namespace headshare {
namespace {

Tensor some_hidden(int64_t B, int64_t S) {
  Tensor visible = at::ones({B, S}, at::kBool);
  visible[0].slice(0, 0, std::min<int64_t>(2, S)).fill_(false);
  return visible;
}

// Checks self-attention with and without masks, cross-attention, and empty or single-token inputs.
void check_formula(const SchemeCase& one) {
  SCOPED_TRACE(one.name);
  const at::NoGradGuard no_grad;
  const Attention layer = random_attention(one.options);
  const NaiveAttention naive(*layer);
  const int64_t E = one.options.d_model;
  for (const int64_t T : {0, 1, 5}) {
    const Tensor x = random_tensor({2, T, E}, 11);
    for (const bool causal : {false, true}) {
      EXPECT_TRUE(same(layer->self(x, {.causal = causal}), naive.run(x, x, causal))) << "T " << T;
      const Tensor visible = some_hidden(2, T);
      EXPECT_TRUE(same(layer->self(x, {.causal = causal, .visible_keys = visible}), naive.run(x, x, causal, visible)))
          << "padded, T " << T;
    }
    if (needs_one_sequence(one.options)) continue;
    for (const int64_t S : {0, 1, 4}) {
      const Tensor y = random_tensor({2, S, E}, 12);
      EXPECT_TRUE(same(layer->cross(x, y, {}), naive.run(x, y, false))) << "T " << T << " S " << S;
      const Tensor visible = some_hidden(2, S);
      EXPECT_TRUE(same(layer->cross(x, y, {.visible_keys = visible}), naive.run(x, y, false, visible)))
          << "padded, T " << T << " S " << S;
    }
  }
}

TEST(Attention, EverySchemeIsItsFormula) {
  for (const SchemeCase& one : scheme_variants()) check_formula(one);
}

TEST(Attention, EverySchemeIsItsFormulaInThePlainBackend) {
  const ScopedEnvironment forced("HEADSHARE_BACKEND", "reference");
  for (const SchemeCase& one : scheme_cases()) check_formula(one);
}

TEST(Attention, ScaleIsAnOptionAndMayBeZero) {
  for (const double scale : {0.0, 1.5}) {
    for (SchemeCase one : scheme_cases()) {
      one.options.scale = scale;
      one.options.content_bias = true;
      check_formula(one);
    }
  }
}

TEST(Attention, FloatIsAsExactAsTheFormulaInFloat) {
  for (const SchemeCase& one : scheme_variants()) {
    SCOPED_TRACE(one.name);
    const at::NoGradGuard no_grad;
    Attention layer = random_attention(one.options);
    const Tensor x = random_tensor({2, 9, one.options.d_model}, 5);
    const Tensor visible = some_hidden(2, 9);
    const Tensor exact = NaiveAttention(*layer).run(x, x, /*causal=*/true, visible);
    layer->to(at::kFloat);  // exact: every number was drawn in float
    const Tensor narrow = x.to(at::kFloat);
    const double plain_error = distance(NaiveAttention(*layer).run(narrow, narrow, /*causal=*/true, visible), exact);
    // Folded maps round where the formula does not: a few epsilons of the largest intermediate result.
    const double tolerance = 2 * plain_error + 16 * std::numeric_limits<float>::epsilon() * magnitude(exact);
    EXPECT_TRUE(close(layer->self(narrow, {.causal = true, .visible_keys = visible}), exact, tolerance));
  }
}

TEST(Attention, QueriesWithoutKeysGetTheOutputBiasOnly) {
  for (SchemeCase one : scheme_cases()) {
    SCOPED_TRACE(one.name);
    one.options.projection_bias = one.options.content_bias = true;
    const Attention layer = random_attention(one.options);
    const Parameters parameters = parameters_of(layer->scheme());
    // One reading of el_shared has no output projection.
    const bool has_output = parameters.count("output.bias") > 0;
    const Tensor bias = has_output ? parameters.at("output.bias") : at::zeros({}, at::kDouble);
    const Tensor x = random_tensor({2, 4, one.options.d_model}, 3).requires_grad_();
    Tensor visible = at::ones({2, 4}, at::kBool);
    visible[0].fill_(false);
    const Tensor out = layer->self(x, {.causal = true, .visible_keys = visible});
    EXPECT_TRUE(at::equal(out[0], bias.expand_as(out[0])));
    out.square().sum().backward();
    EXPECT_EQ(x.grad()[0].abs().max().item<double>(), 0);
    EXPECT_GT(x.grad()[1].abs().max().item<double>(), 0);
    for (const auto& [name, parameter] : parameters_of(layer->scheme())) {
      EXPECT_TRUE(!parameter.grad().defined() || parameter.grad().isfinite().all().item<bool>()) << name;
    }
  }
}

TEST(Attention, PaddingHasNoSayWhateverItHolds) {
  for (SchemeCase one : scheme_cases()) {
    SCOPED_TRACE(one.name);
    one.options.projection_bias = one.options.content_bias = true;
    const at::NoGradGuard no_grad;
    const Attention layer = random_attention(one.options);
    const Tensor x = random_tensor({1, 3, one.options.d_model}, 3);
    Tensor y = random_tensor({1, 5, one.options.d_model}, 4);
    Tensor visible = at::ones({1, 5}, at::kBool);
    visible[0][1].fill_(false);
    const Tensor clean = layer->cross(x, y, {.visible_keys = visible});
    y[0][1].fill_(1e100);
    EXPECT_TRUE(at::equal(clean, layer->cross(x, y, {.visible_keys = visible})));
  }
}

TEST(Attention, BeamsShareTheMemoryOfTheirSentence) {
  for (SchemeCase one : scheme_cases()) {
    SCOPED_TRACE(one.name);
    one.options.projection_bias = one.options.content_bias = true;
    const at::NoGradGuard no_grad;
    const Attention layer = random_attention(one.options);
    const Tensor x = random_tensor({6, 3, one.options.d_model}, 3);
    const Tensor y = random_tensor({2, 5, one.options.d_model}, 4);
    const Tensor visible = some_hidden(2, 5);
    EXPECT_TRUE(same(layer->cross(x, y, {.visible_keys = visible}), NaiveAttention(*layer).run(x, y, false, visible)));
    EXPECT_THROW(layer->cross(random_tensor({5, 3, one.options.d_model}, 3), y, {}), Error);
  }
}

TEST(Attention, CrossAttentionHasNoOrder) {
  const Tensor x = random_tensor({1, 3, 8}, 3);
  EXPECT_THROW(random_attention({.d_model = 8})->cross(x, x, {.causal = true}), Error);
  EXPECT_THROW(random_attention({.d_model = 8, .rotary = true})->cross(x, x, {}), Error);
  EXPECT_THROW(random_attention({.d_model = 8, .alibi = true})->cross(x, x, {}), Error);
  EXPECT_THROW(random_attention({.d_model = 8, .window = 2})->cross(x, x, {}), Error);
}

TEST(Attention, DropsWeightsInTrainingByTheClock) {
  for (SchemeCase one : scheme_cases()) {
    SCOPED_TRACE(one.name);
    one.options.attention_dropout = 0.4;
    const at::NoGradGuard no_grad;
    Attention layer = random_attention(one.options);
    const auto clock = std::make_shared<DropoutClock>();
    attach(*layer, clock);
    const Tensor x = random_tensor({2, 6, one.options.d_model}, 3);
    const Tensor first = layer->self(x, {.causal = true});
    EXPECT_TRUE(at::equal(first, layer->self(x, {.causal = true})));
    clock->tick = 1;
    EXPECT_FALSE(at::equal(first, layer->self(x, {.causal = true})));
    layer->eval();
    EXPECT_TRUE(same(layer->self(x, {.causal = true}), NaiveAttention(*layer).run(x, x, /*causal=*/true)));
  }
}

TEST(Attention, ValueOffsetsEscapeDropout) {
  // With zero value maps the heads are the value bias and embedding alone, which dropout must not touch.
  for (SchemeCase one : scheme_cases()) {
    if (values_have_bias(one.options)) continue;  // sinks and shifts weigh the offsets
    SCOPED_TRACE(one.name);
    one.options.projection_bias = true;
    one.options.attention_dropout = 0.4;
    const at::NoGradGuard no_grad;
    Attention layer = random_attention(one.options);
    attach(*layer, std::make_shared<DropoutClock>());
    const Parameters parameters = parameters_of(layer->scheme());
    bool zero = false;
    for (const char* name : {"value.weight", "key_value.weight"}) {
      if (parameters.count(name) == 0) continue;
      parameters.at(name).zero_();
      zero = true;
    }
    if (!zero) continue;  // hidden states are its values
    const Tensor x = random_tensor({2, 6, one.options.d_model}, 3);
    EXPECT_TRUE(same(layer->self(x, {.causal = true}), NaiveAttention(*layer).run(x, x, /*causal=*/true)));
  }
}

TEST(Attention, SchemesShareTheInitialValuesOfSharedNames) {
  const auto initial = [](const std::string& scheme) {
    Attention layer(AttentionOptions{.scheme = scheme, .d_model = 8, .heads = 4});
    initialise(*layer, 9);
    return parameters_of(layer->scheme());
  };
  const Parameters mha = initial("mha");
  for (const std::string& scheme : scheme_names()) {
    int shared = 0;
    for (const auto& [parameter, value] : initial(scheme)) {
      if (mha.count(parameter) == 0 || mha.at(parameter).sizes() != value.sizes()) continue;
      EXPECT_TRUE(at::equal(value, mha.at(parameter))) << scheme << " " << parameter;
      ++shared;
    }
    EXPECT_GE(shared, 1) << scheme;
  }
}

TEST(Alibi, SlopesArePowersOfTwoThenEveryOtherOneOfTheNext) {
  EXPECT_THAT(alibi_slopes(1), testing::ElementsAre(1.0 / 256));
  EXPECT_THAT(alibi_slopes(8),
              testing::ElementsAre(1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16, 1.0 / 32, 1.0 / 64, 1.0 / 128, 1.0 / 256));
  const std::vector<double> twelve = alibi_slopes(12);
  ASSERT_EQ(twelve.size(), 12U);
  for (size_t h = 0; h < 8; ++h) EXPECT_DOUBLE_EQ(twelve[h], std::exp2(-static_cast<double>(h + 1)));
  for (size_t h = 8; h < 12; ++h) EXPECT_DOUBLE_EQ(twelve[h], std::exp2(-0.5 - static_cast<double>(h - 8)));
}

TEST(Attention, RunsOnCuda) {
  HS_NEEDS_CUDA();
  const at::NoGradGuard no_grad;
  for (const SchemeCase& one : scheme_variants()) {
    SCOPED_TRACE(one.name);
    Attention layer = random_attention(one.options);
    const Tensor x = random_tensor({2, 5, one.options.d_model}, 11);
    const Tensor visible = some_hidden(2, 5);
    const Tensor expected = layer->self(x, {.causal = true, .visible_keys = visible});
    layer->to(at::kCUDA);
    const Tensor actual = layer->self(x.to(at::kCUDA), {.causal = true, .visible_keys = visible.to(at::kCUDA)});
    EXPECT_TRUE(same(actual, expected));
  }
}

}  // namespace
}  // namespace headshare
