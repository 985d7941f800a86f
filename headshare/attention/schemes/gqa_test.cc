// This file adds the formula of gqa to the tests.
#include "headshare/attention/schemes/gqa.h"

#include <gmock/gmock.h>

#include "headshare/attention/testing.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

AttentionOptions shared_parts(const std::string& query, const std::string& key, const std::string& value) {
  AttentionOptions options = small_layer("gqa");
  options = with_option(options, "query-heads", query);
  options = with_option(options, "key-heads", key);
  return with_option(options, "value-heads", value);
}

NaiveHead gqa_head(const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
  const auto& own = layer.options().own.get<GqaOptions>();
  return {layer.query(layer.shared("query", own.query_heads.value_or(layer.options().heads), h, x)),
          layer.key(layer.shared("key", own.key_heads.value_or(*own.groups), h, y)),
          layer.shared("value", own.value_heads.value_or(*own.groups), h, y)};
}

const AddFormula kGqa({.scheme = "gqa",
                       .head = gqa_head,
                       .cases = {{"gqa", small_layer("gqa")},
                                 {"gqa_shared_query", shared_parts("1", "4", "4")},
                                 {"gqa_shared_query_key", shared_parts("1", "1", "4")},
                                 {"gqa_shared_key", shared_parts("4", "1", "4")},
                                 {"gqa_shared_value", shared_parts("4", "4", "1")},
                                 {"gqa_mixed", shared_parts("2", "4", "1")}}});

AttentionCost cost_of_parts(const std::string& query, const std::string& key, const std::string& value,
                            bool content_bias = false) {
  AttentionOptions options = shared_parts(query, key, value);  // E 6, H 4, D 2
  options.content_bias = content_bias;
  return make_scheme(resolve(options))->cost();
}

TEST(Gqa, EveryPartHasACountOfItsOwn) {
  const AttentionCost cost = cost_of_parts("1", "2", "4");
  EXPECT_EQ(cost.parameters, 6 * 2 * (1 + 2 + 4) + 6 * 4 * 2);
  EXPECT_EQ(cost.effective, cost.parameters);
  EXPECT_EQ(cost.cache_elements, (2 + 4) * 2);
}

TEST(Gqa, EqualHeadsCountOnce) {
  EXPECT_EQ(cost_of_parts("2", "2", "2").effective, 6 * 2 * (2 + 2 + 2 + 2));
  EXPECT_EQ(cost_of_parts("1", "1", "1").effective, 6 * 2 * 4);       // as sha
  EXPECT_EQ(cost_of_parts("1", "1", "4").effective, 6 * 2 * 2 + 36);  // values and output are one map
  EXPECT_EQ(cost_of_parts("1", "1", "4", /*content_bias=*/true).effective, 6 * 2 * (1 + 1 + 4 + 4) + 4 * 6);
}

TEST(Gqa, ACountMustDivideTheHeads) {
  EXPECT_THAT(
      error_message([] { resolve(shared_parts("3", "4", "4")); }),
      testing::HasSubstr("query-heads must divide heads: 4 heads, 3 maps; set --query-heads to a divisor of 4"));
  EXPECT_THAT(error_message([] { resolve(shared_parts("4", "8", "4")); }), testing::HasSubstr("key-heads must divide"));
  EXPECT_THAT(error_message([] { resolve(shared_parts("4", "4", "3")); }), testing::HasSubstr("value-heads must"));
}

}  // namespace
}  // namespace headshare
