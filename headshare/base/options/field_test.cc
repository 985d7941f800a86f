#include "headshare/base/options/field.h"

#include <gmock/gmock.h>

#include "headshare/base/error.h"
#include "headshare/base/options/prefixed.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

enum class Shape { kRound, kSquare };

struct SampleOptions {
  int64_t layers = 4;
  double rate = 0.1;
  bool tie = true;
  Shape shape = Shape::kRound;
  std::optional<int64_t> groups;
  std::vector<std::string> schemes = {"mha"};
};

Fields fields(SampleOptions& options) {
  return {
      field("layers", &options.layers, "blocks", {.min = 1, .max = 8, .aliases = {"num-hidden-layers"}}),
      field("learning-rate", &options.rate, "step size", {.min = 0}),
      field("tie", &options.tie, "tie embeddings"),
      field("shape", &options.shape, "shape", {{Shape::kRound, "round"}, {Shape::kSquare, "square_ish"}}),
      field("groups", &options.groups, "groups", {.min = 1}),
      field("schemes", &options.schemes, "schemes"),
  };
}

TEST(FieldTest, ListItemsMayHoldCommasAndBackslashes) {
  SampleOptions options;
  Fields list = fields(options);
  set_field(list, "schemes", R"(a\,b,c\\,\d,,)", "test");
  EXPECT_THAT(options.schemes, testing::ElementsAre("a,b", "c\\", "\\d"));
  const nlohmann::json written = to_json(list);
  options.schemes.clear();
  from_json(list, written, "copy");
  EXPECT_THAT(options.schemes, testing::ElementsAre("a,b", "c\\", "\\d"));
}

// Results of earlier programs spelled a list of rates as texts; a YAML list holds numbers.
TEST(FieldTest, ListsOfSpelledNumbersKeepTheirSpelling) {
  std::vector<SpelledNumber> rates = {{5e-5, "5e-5"}};
  Fields list = {field("rates", &rates, "step sizes", {.min = 0})};
  EXPECT_EQ(to_json(list).dump(), R"({"rates":["5e-5"]})");
  set_field(list, "rates", "1e-3,0.010", "test");
  EXPECT_THAT(values_of(rates), testing::ElementsAre(0.001, 0.01));
  const nlohmann::json written = to_json(list);
  EXPECT_EQ(written.dump(), R"({"rates":["1e-3","0.010"]})");
  EXPECT_THAT(error_message([&] { set_field(list, "rates", "1e-3,fast", "test"); }),
              testing::HasSubstr("rates must be a number, not 'fast'"));
  from_json(list, {{"rates", {0.5, 2}}}, "numbers");
  EXPECT_THAT(values_of(rates), testing::ElementsAre(0.5, 2));
  from_json(list, written, "copy");
  EXPECT_EQ(to_json(list), written);
}

TEST(FieldTest, ListsOfNumbers) {
  std::vector<int64_t> offsets = {1};
  Fields list = {field("offsets", &offsets, "places back", {.min = 1, .max = 99})};
  EXPECT_EQ(list[0].range, "comma-separated numbers, 1..99");
  set_field(list, "offsets", "3,12,1", "test");
  EXPECT_THAT(offsets, testing::ElementsAre(3, 12, 1));
  const nlohmann::json written = to_json(list);
  EXPECT_EQ(written.dump(), R"({"offsets":[3,12,1]})");
  for (const char* wrong : {"1,x", "1,0", "1,2.5", "100"}) {
    EXPECT_THAT(error_message([&] { set_field(list, "offsets", wrong, "test"); }),
                testing::HasSubstr("offsets must be"));
    EXPECT_THAT(offsets, testing::ElementsAre(3, 12, 1)) << wrong;
  }
  offsets.clear();
  from_json(list, written, "copy");
  EXPECT_THAT(offsets, testing::ElementsAre(3, 12, 1));
}

TEST(FieldTest, EveryKindReadsWhatItWrites) {
  SampleOptions options;
  Fields list = fields(options);
  set_field(list, "layers", "7", "test");
  set_field(list, "learning_rate", "3e-4", "test");
  set_field(list, "tie", "no", "test");
  set_field(list, "shape", "square-ish", "test");
  set_field(list, "groups", "2", "test");
  set_field(list, "schemes", "mha,sha", "test");
  const nlohmann::json written = to_json(list);

  SampleOptions copy;
  Fields copied = fields(copy);
  from_json(copied, written, "copy");
  EXPECT_EQ(copy.layers, 7);
  EXPECT_EQ(copy.rate, 3e-4);
  EXPECT_FALSE(copy.tie);
  EXPECT_EQ(copy.shape, Shape::kSquare);
  EXPECT_EQ(copy.groups, 2);
  EXPECT_THAT(copy.schemes, testing::ElementsAre("mha", "sha"));
  set_field(copied, "groups", "auto", "test");
  EXPECT_FALSE(copy.groups.has_value());
}

TEST(FieldTest, AliasesAndUnderscoresAreAccepted) {
  SampleOptions options;
  Fields list = fields(options);
  set_field(list, "num_hidden_layers", "2", "test");
  EXPECT_EQ(options.layers, 2);
}

TEST(FieldTest, PrefixedFieldsKeepTheirTargetAndNameThemselves) {
  SampleOptions options;
  Fields list = prefixed("tiny-", fields(options));
  set_field(list, "tiny_num_hidden_layers", "2", "test");
  EXPECT_EQ(options.layers, 2);
  EXPECT_EQ(to_json(list).at("tiny-layers"), 2);
  EXPECT_EQ(find_field(list, "layers"), nullptr);
  EXPECT_EQ(error_message([&] { set_field(list, "tiny-layers", "9", "x"); }), "x: tiny-layers must be 1..8, not 9");
  EXPECT_EQ(with_prefixed_names("tiny-", list, "see --layers, not --layer or --layers-x; --"),
            "see --tiny-layers, not --layer or --layers-x; --");
}

TEST(FieldTest, UnknownNamesAreRefusedWithTheNearest) {
  SampleOptions options;
  Fields list = fields(options);
  EXPECT_EQ(error_message([&] { set_field(list, "layer", "2", "c.yaml:3"); }),
            "c.yaml:3: unknown option 'layer' (did you mean 'layers'?)");
}

TEST(FieldTest, BadValuesNameTheRange) {
  SampleOptions options;
  Fields list = fields(options);
  EXPECT_EQ(error_message([&] { set_field(list, "layers", "9", "--layers"); }), "--layers: layers must be 1..8, not 9");
  EXPECT_THAT(error_message([&] { set_field(list, "layers", "2.5", "x"); }),
              testing::HasSubstr("a whole number, not '2.5'"));
  EXPECT_THAT(error_message([&] { set_field(list, "layers", "99999999999999999999", "x"); }),
              testing::HasSubstr("layers must be 1..8, not 99999999999999999999"));
  int64_t seed = 0;
  const Field plain = field("seed", &seed, "", {.min = 0});
  EXPECT_EQ(error_message([&] { plain.parse("18446744073709551616"); }),
            "seed must be at least 0 and at most 9223372036854775807, not 18446744073709551616");
  EXPECT_THAT(error_message([&] { set_field(list, "learning-rate", "1e999", "x"); }),
              testing::HasSubstr("a number that double precision can hold, not 1e999"));
  EXPECT_THAT(error_message([&] { set_field(list, "learning-rate", "nan", "x"); }), testing::HasSubstr("finite"));
  EXPECT_THAT(error_message([&] { set_field(list, "learning-rate", "", "x"); }), testing::HasSubstr("a number"));
  EXPECT_THAT(error_message([&] { set_field(list, "shape", "rond", "x"); }),
              testing::HasSubstr("did you mean 'round'?"));
  EXPECT_THAT(error_message([&] { from_json(list, {{"layers", {{"a", 1}}}}, "x"); }), testing::HasSubstr("group"));
  EXPECT_EQ(options.layers, 4);
}

}  // namespace
}  // namespace headshare
