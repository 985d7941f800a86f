// These tests are about keys and values that meet those of the token before; testing.h has the formulas.
#include "headshare/attention/kv_shift.h"

#include <gmock/gmock.h>

#include "headshare/attention/idle_options.h"
#include "headshare/attention/testing.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<std::string> shifting_schemes() {
  std::vector<std::string> names;
  for (const std::string& scheme : scheme_names()) {
    if (reads(scheme, "kv-shift")) names.push_back(scheme);
  }
  return names;
}

TEST(KvShift, SchemesThatCacheKeysAndValuesHaveIt) {
  EXPECT_THAT(shifting_schemes(), testing::ElementsAre("mha", "gqa", "mqa", "sha", "shared_query"));
  for (const std::string& scheme : scheme_names()) {
    AttentionOptions options = small_layer(scheme);
    options.kv_shift = true;
    if (scheme == "el_shared") options.head_width.reset(), options.d_model = 8;
    EXPECT_EQ(resolve(options).kv_shift, reads(scheme, "kv-shift")) << scheme;
    EXPECT_EQ(reads(scheme, "key-offset"), reads(scheme, "kv-shift")) << scheme;
  }
}

TEST(KvShift, OfTheTokenItselfChangesNothing) {
  const at::NoGradGuard no_grad;
  for (const std::string& scheme : shifting_schemes()) {
    AttentionOptions options = small_layer(scheme);
    options.rotary = options.projection_bias = true;
    const Attention plain = random_attention(options);
    options.kv_shift = true;
    const Attention shifted = random_attention(options);
    const Tensor x = random_tensor({2, 5, 6}, 3);
    EXPECT_GT(distance(shifted->self(x, {.causal = true}), plain->self(x, {.causal = true})), 1e-3) << scheme;
    for (const auto& [name, tensor] : parameters_of(shifted->scheme())) {
      if (name.starts_with("shift.")) tensor.fill_(1);  // a = c = 1
    }
    EXPECT_TRUE(same(shifted->self(x, {.causal = true}), plain->self(x, {.causal = true}))) << scheme;
  }
}

TEST(KvShift, CountsTwoNumbersForEachHeadOfKeysAndOfValues) {
  const auto cost = [](const std::string& scheme, bool shift, bool qk_norm = false) {
    return make_scheme(resolve({.scheme = scheme, .d_model = 768, .heads = 12, .qk_norm = qk_norm, .kv_shift = shift}))
        ->cost();
  };
  for (const auto& [scheme, heads] : std::map<std::string, int64_t>{{"mha", 12}, {"gqa", 3}, {"mqa", 1}, {"sha", 1}}) {
    EXPECT_EQ(cost(scheme, true).parameters, cost(scheme, false).parameters + 4 * heads) << scheme;
    EXPECT_EQ(cost(scheme, true).effective, cost(scheme, false).effective + 2 * heads) << "its maps scale a head";
    EXPECT_EQ(cost(scheme, true).cache_elements, cost(scheme, false).cache_elements) << scheme;
  }
  EXPECT_EQ(cost("mha", true, true).effective, cost("mha", false, true).effective + 3 * 12) << "keys are normed before";
  EXPECT_EQ(cost("mqa", true, true).effective, cost("mqa", false, true).effective + 2);
}

TEST(KvShift, StartsBetweenATokenAndTheOneBefore) {
  Attention layer(AttentionOptions{.d_model = 1024, .heads = 512, .kv_shift = true});
  initialise(*layer, 1);
  const Parameters parameters = parameters_of(layer->scheme());
  const Tensor share = parameters.at("shift.key_share");
  EXPECT_NEAR(share.mean().item<double>(), 0.5, 5 * std::sqrt(1 / 12.0 / 512));
  EXPECT_NEAR(share.std().item<double>(), std::sqrt(1 / 12.0), 5 * std::sqrt(1 / 12.0 / 1024));
  EXPECT_TRUE(at::equal(parameters.at("shift.value_sum"), at::ones({512})));
}

TEST(KeyOffset, TakesWhatDoesNotTurnFromTheTokenBefore) {
  const Tensor keys = at::arange(12, at::kDouble).view({1, 1, 3, 4});
  const Tensor offset = offset_keys(keys, /*still=*/2, {})[0][0];
  EXPECT_TRUE(at::equal(offset, at::tensor({0., 1., 2., 3., 0., 1., 6., 7., 4., 5., 10., 11.}).view({3, 4})));
  const Tensor visible = at::tensor({0, 1, 1}).to(at::kBool).unsqueeze(0);
  EXPECT_TRUE(at::equal(offset_keys(keys, 2, visible)[0][0].slice(0, 1),
                        at::tensor({4., 5., 6., 7., 4., 5., 10., 11.}).view({2, 4})));
}

TEST(KeyOffset, NeedsDimensionsThatDoNotTurn) {
  const auto refused = [](const AttentionOptions& options) { return error_message([&] { resolve(options); }); };
  EXPECT_THAT(refused({.d_model = 32, .key_offset = true}),
              AllOf(HasSubstr("no rotary positions"), HasSubstr("--rotary-dimensions below 8")));
  EXPECT_THAT(refused({.d_model = 32, .key_offset = true, .rotary = true}), HasSubstr("all of them turn"));
  EXPECT_THAT(refused({.d_model = 32, .key_offset = true, .rotary = true, .rotary_dimensions = 8}),
              HasSubstr("all of them turn"));
  const AttentionOptions part = resolve({.d_model = 32, .key_offset = true, .rotary = true, .rotary_dimensions = 4});
  EXPECT_TRUE(part.key_offset);
  EXPECT_EQ(make_scheme(part)->cost().parameters, 4 * 32 * 32);
}

TEST(KvShift, OtherSchemesSayWhoReadsTheOptions) {
  for (const IdleOption& one : idle_scheme_options({"mla", "skv"})) {
    if (one.name != "kv-shift" && one.name != "key-offset") continue;
    EXPECT_EQ(one.why, "matters only to the schemes mha, gqa, mqa, sha and shared_query") << one.name;
  }
  EXPECT_THAT(idle_scheme_options({"mla"}), testing::Contains(testing::Field(&IdleOption::name, "kv-shift")));
}

}  // namespace
}  // namespace headshare
