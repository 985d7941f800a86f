// This file adds the formulas of skv to the tests.
#include <gmock/gmock.h>

#include "headshare/attention/testing.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

NaiveHead skv_head(const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
  if (layer.has("query_key.weight")) {
    return {layer.query(layer.own("query_key", h, x)), layer.key(layer.own("query_key", h, y)),
            layer.own("value", h, y)};
  }
  const int64_t D = *layer.options().head_width, maps = layer.parameter("key_value.weight").size(0) / D;
  const Tensor shared = layer.shared("key_value", maps, h, y), query = layer.query(layer.own("query", h, x));
  if (!layer.has("turned_key.weight")) return {query, layer.key(shared), shared};
  const Tensor turned = layer.affine("turned_key", y);
  return {query, at::cat({shared.slice(1, 0, D - turned.size(1)), turned}, 1), shared};
}

// The normed vector is key and value where both turn.
NaiveHead counter_head(const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
  NaiveHead head = skv_head(layer, h, x, y);
  head.v = head.k;
  return head;
}

bool is_counter(const AttentionOptions& options) {
  AttentionOptions copy = options;
  Fields list = fields(copy);
  return find_field(list, "skv-rotary")->value() == "counter";
}

AttentionOptions layer_of_maps(const std::string& maps, int64_t width = 2) {
  AttentionOptions options = with_option(small_layer("skv"), "kv-heads", maps);
  options.head_width = width;
  return options;
}

AttentionOptions rotary_layer(const std::string& mode, const std::string& maps, int64_t width) {
  AttentionOptions options = with_option(layer_of_maps(maps, width), "skv-rotary", mode);
  options.rotary = true;
  return options;
}

AttentionOptions with_scaled_part(AttentionOptions options) {
  options.rotary_dimensions = 4;
  options.rotary_scaling = rotary_scalings().back();
  return options;
}

const AddFormula kSkv({.scheme = "skv",
                       .head =
                           [](const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
                             return (is_counter(layer.options()) ? counter_head : skv_head)(layer, h, x, y);
                           },
                       .cases = {{"skv", small_layer("skv")},
                                 {"skv_shared_qk", with_option(small_layer("skv"), "shared-qk", "true")},
                                 {"skv_two_maps", layer_of_maps("2")}},
                       .rotary_cases = {{"skv_counter", rotary_layer("counter", "auto", 2)},
                                        {"skv_counter_part", with_scaled_part(rotary_layer("counter", "2", 6))},
                                        {"skv_split", rotary_layer("split", "auto", 4)},
                                        {"skv_split_part", with_scaled_part(rotary_layer("split", "1", 6))}},
                       .values_turn = is_counter});

TEST(Skv, CountsItsMapsAndWhatEachModeCaches) {
  const auto cost = [](const std::string& maps, const std::string& mode) {
    AttentionOptions options = {.scheme = "skv", .d_model = 768, .heads = 12, .rotary = true};
    return make_scheme(resolve(with_option(with_option(options, "kv-heads", maps), "skv-rotary", mode)))->cost();
  };
  const int64_t E = 768, D = 64, Dr = 32;
  for (const std::string mode : {"key", "counter"}) {
    EXPECT_EQ(cost("auto", mode).parameters, 3 * E * E) << mode;
    EXPECT_EQ(cost("4", mode).parameters, 1376256) << mode;
    EXPECT_EQ(cost("4", mode).cache_elements, 4 * D) << mode;
    EXPECT_EQ(cost("1", mode).parameters, 1228800) << mode;
  }
  EXPECT_EQ(cost("4", "split").parameters, 2 * E * E + E * (4 * D + Dr));
  EXPECT_EQ(cost("4", "split").parameters, 1400832) << "the count of GTA";
  EXPECT_EQ(cost("4", "split").cache_elements, 4 * D + Dr);
  EXPECT_EQ(cost("1", "split").effective, cost("1", "split").parameters);
}

// Positions enter as distances alone: padding before a text moves it, and changes nothing.
TEST(Skv, EveryRotaryModeKnowsDistancesAlone) {
  const at::NoGradGuard no_grad;
  for (const std::string mode : {"key", "counter", "split"}) {
    const Attention layer = random_attention(rotary_layer(mode, "2", 4));
    const Tensor x = random_tensor({1, 5, 6}, 7), padding = random_tensor({1, 3, 6}, 8);
    Tensor visible = at::ones({1, 8}, at::kBool);
    visible.slice(1, 0, 3).fill_(false);
    const Tensor moved = layer->self(at::cat({padding, x}, 1), {.causal = true, .visible_keys = visible});
    EXPECT_TRUE(same(moved.slice(1, 3), layer->self(x, {.causal = true}))) << mode;
  }
}

TEST(Skv, CounterRotationReadsTheCacheAsKeyAndAsValue) {
  const at::NoGradGuard no_grad;
  const Attention layer = random_attention(rotary_layer("counter", "2", 4));
  const Scheme& scheme = layer->scheme();
  const Memory memory = scheme.remember(random_tensor({1, 3, 6}, 5), /*first=*/0);
  const HeadProblem problem = scheme.posed(scheme.project_queries(random_tensor({1, 1, 6}, 6), 2), memory).problem;
  EXPECT_EQ(problem.key.data_ptr(), memory[0].data_ptr());
  EXPECT_EQ(problem.value.data_ptr(), memory[0].data_ptr());
}

TEST(Skv, ImpossibleModesNameTheNumbersAndTheWayOut) {
  const auto refused = [](AttentionOptions options, const std::string& option, const std::string& value) {
    return error_message([&] { resolve(with_option(options, option, value)); });
  };
  const AttentionOptions still = small_layer("skv"), split = rotary_layer("split", "2", 8);
  EXPECT_THAT(refused(still, "kv-heads", "3"), AllOf(HasSubstr("4 heads, 3 maps"), HasSubstr("divisor of 4")));
  EXPECT_THAT(refused(still, "kv-heads", "0"), HasSubstr("not 0"));
  for (const std::string mode : {"counter", "split"}) {
    EXPECT_THAT(refused(still, "skv-rotary", mode), AllOf(HasSubstr(mode), HasSubstr("--positions rotary")));
    EXPECT_THAT(refused(with_option(still, "shared-qk", "true"), "skv-rotary", mode), HasSubstr("--shared-qk has not"));
  }
  EXPECT_THAT(refused(with_option(still, "shared-qk", "true"), "kv-heads", "2"), HasSubstr("leave one of the two out"));
  EXPECT_THAT(refused(split, "qk-norm", "true"), AllOf(HasSubstr("two parts"), HasSubstr("leave one")));
  AttentionOptions whole = split;
  whole.rotary_dimensions = 8;
  EXPECT_THAT(refused(whole, "skv-rotary", "split"), AllOf(HasSubstr("of 8 dimensions"), HasSubstr("than 8")));
  whole.rotary_dimensions = 3;
  EXPECT_THAT(refused(whole, "skv-rotary", "split"), AllOf(HasSubstr("must be even"), HasSubstr("not 3")));
  EXPECT_THAT(refused(still, "skv-rotary", "value"), HasSubstr("counter"));
}

}  // namespace
}  // namespace headshare
