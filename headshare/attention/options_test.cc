#include "headshare/attention/options.h"

#include <gmock/gmock.h>

#include <cmath>

#include "headshare/attention/attention.h"
#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/collaborative.h"
#include "headshare/attention/schemes/gqa.h"
#include "headshare/attention/schemes/mhe_options.h"
#include "headshare/base/error.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string refusal(const AttentionOptions& options) {
  try {
    resolve(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AttentionOptions, DefaultsFollowTheSizes) {
  const AttentionOptions mha = resolve({.d_model = 768, .heads = 12});
  EXPECT_EQ(mha.head_width, 64);
  EXPECT_EQ(mha.key_width, 768);
  EXPECT_DOUBLE_EQ(*mha.scale, 1.0 / 8);
  const AttentionOptions narrowed = resolve({.d_model = 768, .heads = 12, .key_width = 192});
  EXPECT_DOUBLE_EQ(*narrowed.scale, 1.0 / 4);
  const AttentionOptions mixed = resolve({.scheme = "collaborative", .d_model = 768, .heads = 12});
  EXPECT_EQ(mixed.key_width, 384);
  EXPECT_DOUBLE_EQ(*mixed.scale, 1.0 / 8);
  EXPECT_EQ(resolve({.scheme = "collaborative", .d_model = 10, .heads = 5}).key_width, 4);
  // Heads are d-model / heads wide, whatever the width of the values.
  const AttentionOptions wide = resolve({.scheme = "collaborative", .d_model = 64, .heads = 4, .head_width = 4});
  EXPECT_DOUBLE_EQ(*wide.scale, 1.0 / 4);
  EXPECT_EQ(resolve({.d_model = 10, .heads = 4, .head_width = 3}).key_width, 12);
  EXPECT_DOUBLE_EQ(*resolve({.scale = 0.0}).scale, 0);
}

TEST(AttentionOptions, GroupsAreTheSmallestDivisorFromAQuarterAndTwo) {
  const std::vector<std::pair<int64_t, int64_t>> expected = {{1, 1}, {2, 2}, {3, 3}, {4, 2},  {5, 5},  {6, 2},
                                                             {7, 7}, {8, 2}, {9, 3}, {12, 3}, {16, 4}, {32, 8}};
  for (const auto& [heads, groups] : expected) {
    const AttentionOptions options = resolve({.scheme = "gqa", .d_model = heads * 4, .heads = heads});
    EXPECT_EQ(options.own.get<GqaOptions>().groups, groups) << heads;
  }
}

TEST(AttentionOptions, ResolvingTwiceChangesNothing) {
  for (const std::string& scheme : scheme_names()) {
    AttentionOptions once = resolve({.scheme = scheme, .d_model = 48, .heads = 4});
    AttentionOptions twice = resolve(once);
    EXPECT_EQ(to_json(fields(once)), to_json(fields(twice))) << scheme;
  }
}

TEST(AttentionOptions, ImpossibleSizesNameBothNumbersAndTheWayOut) {
  EXPECT_THAT(refusal({.d_model = 64, .heads = 7}),
              AllOf(HasSubstr("64 / 7 leaves 1"), HasSubstr("--heads"), HasSubstr("--head-width")));
  EXPECT_THAT(refusal({.d_model = 0, .heads = 4}), HasSubstr("at least 1, not 0 and 4"));
  EXPECT_THAT(refusal({.d_model = 64, .heads = -1}), HasSubstr("not 64 and -1"));
  EXPECT_THAT(refusal({.head_width = 0}), HasSubstr("head-width must be at least 1, not 0"));
  EXPECT_THAT(refusal({.own = GqaOptions{.groups = 0}}), HasSubstr("groups must be at least 1, not 0"));
  EXPECT_THAT(refusal({.key_width = 0}), HasSubstr("key-width must be at least 1, not 0"));
  EXPECT_THAT(refusal({.scheme = "gqa", .d_model = 64, .heads = 8, .own = GqaOptions{.groups = 3}}),
              AllOf(HasSubstr("8 heads, 3 groups"), HasSubstr("--groups to a divisor of 8")));
  EXPECT_THAT(refusal({.d_model = 64, .heads = 8, .key_width = 20}),
              AllOf(HasSubstr("20 and 8"), HasSubstr("--key-width to a multiple of 8")));
  EXPECT_THAT(refusal({.scheme = "el_shared", .d_model = 64, .heads = 8, .head_width = 4}),
              AllOf(HasSubstr("8 heads x 4 must equal d-model 64"), HasSubstr("--head-width")));
  EXPECT_THAT(refusal({.d_model = 12, .heads = 4, .rotary = true}),
              AllOf(HasSubstr("even key width, not 3"), HasSubstr("change --head-width or --key-width")));
  EXPECT_THAT(
      refusal({.scheme = "mqa", .d_model = 12, .heads = 4, .rotary = true}),
      AllOf(HasSubstr("even key width, not 3"), HasSubstr("change --head-width"), Not(HasSubstr("--key-width"))));
  EXPECT_THAT(refusal({.scheme = "collaborative", .key_width = 5, .rotary = true}), HasSubstr("not 5"));
}

TEST(AttentionOptions, APartOfAHeadTurns) {
  for (const int64_t wrong : {-2, 0, 3, 18}) {
    EXPECT_THAT(refusal({.d_model = 64, .heads = 4, .rotary = true, .rotary_dimensions = wrong}),
                AllOf(HasSubstr("at most the 16"), HasSubstr("--rotary-dimensions")));
  }
  EXPECT_EQ(rotated_width(resolve({.d_model = 64, .heads = 4, .rotary = true, .rotary_dimensions = 6})), 6);
  EXPECT_EQ(rotated_width(resolve({.d_model = 60, .heads = 4, .rotary = true, .rotary_dimensions = 6})), 6) << "of 15";
  EXPECT_THAT(refusal({.scheme = "collaborative",
                       .own = CollaborativeOptions{.rotary_width = 4},
                       .rotary = true,
                       .rotary_dimensions = 2}),
              AllOf(HasSubstr("rotary-width"), HasSubstr("leave one of the two out")));
  // A checkpoint carries neither what says nothing nor what nobody reads.
  EXPECT_FALSE(resolve({.d_model = 64, .heads = 4, .rotary = true, .rotary_dimensions = 16}).rotary_dimensions);
  const AttentionOptions still =
      resolve({.rotary_scaling = {.kind = RotaryScalingKind::kLinear, .factor = 2}, .rotary_dimensions = 6});
  EXPECT_FALSE(still.rotary_dimensions);
  EXPECT_EQ(still.rotary_scaling, RotaryScaling());
}

TEST(AttentionOptions, ElSchemesRefuseRotaryPositions) {
  for (const std::string scheme : {"el_shared", "el_lossless"}) {
    EXPECT_THAT(refusal({.scheme = scheme, .rotary = true}),
                AllOf(HasSubstr(scheme), HasSubstr("rotary"), HasSubstr("--positions learned")));
    EXPECT_EQ(refusal({.scheme = scheme, .alibi = true}), "accepted");
  }
}

TEST(AttentionOptions, SchemesAreReadByName) {
  for (const std::string& scheme : scheme_names()) {
    EXPECT_EQ(scheme_record(scheme).name, scheme);
  }
  EXPECT_EQ(scheme_record("mhe-add").name, "mhe_add");
  EXPECT_EQ(canonical_scheme("MHE-Add"), "mhe_add");
  try {
    scheme_record("mhe_adds");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'mhe_add'"));
  }
}

// Sets a field to another value than it has.
void change(const Field& field) {
  const nlohmann::json before = field.value();
  for (const char* text : {"true", "false", "1", "2", "0.5", "0.25", "shared", "head", "complex", "counter"}) {
    try {
      field.parse(text);
    } catch (const Error&) {
      continue;
    }
    if (field.value() != before) return;
  }
  ADD_FAILURE() << field.name << " has no other value that this test knows";
}

TEST(AttentionOptions, FieldsSurviveARoundTrip) {
  AttentionOptions options, read;
  const Fields all = fields(options);
  for (const Field& one : all) change(one);
  const nlohmann::json written = to_json(all);
  EXPECT_EQ(written.size(), all.size());
  Fields reader = fields(read);
  from_json(reader, written, "test");
  EXPECT_EQ(to_json(reader), written);

  AttentionOptions defaults, again;
  reader = fields(again);
  from_json(reader, to_json(fields(defaults)), "test");
  EXPECT_FALSE(again.head_width || again.key_width || again.scale || again.own.get<GqaOptions>().groups ||
               again.own.get<MheOptions>().deviation);
}

// Checkpoints, settings and results know these names: a scheme's options have kept theirs.
TEST(AttentionOptions, SchemesHaveTheOptionsThatFilesKnow) {
  AttentionOptions options;
  std::vector<std::string> names;
  for (const Field& one : fields(options)) names.push_back(one.name);
  EXPECT_THAT(names, testing::IsSupersetOf({"head-width", "groups", "key-width", "attention-scale", "projection-bias",
                                            "content-bias", "qk-norm", "averaged-values", "shared-qk", "mhe-deviation",
                                            "mhe-mul-offset", "mixing-deviation", "rotary-width", "attention-dropout",
                                            "attention-dropout-mask"}));
}

// Older programs wrote these filled in, whatever the scheme: a checkpoint says the same to the byte.
TEST(AttentionOptions, FilesHaveWhatEverySchemeFillsIn) {
  AttentionOptions options = resolve({.scheme = "mha", .d_model = 48, .heads = 6});
  const nlohmann::json written = to_json(fields(options));
  EXPECT_EQ(written.at("groups"), 2);
  EXPECT_EQ(written.at("mhe-deviation"), 0.02);
  EXPECT_EQ(written.at("mixing-deviation"), 1);
  EXPECT_EQ(written.at("rotary-width"), "auto");
}

TEST(AttentionOptions, KnownNamesOfOtherToolsWork) {
  AttentionOptions options;
  Fields all = fields(options);
  set_field(all, "num_key_value_heads", "2", "test");
  set_field(all, "attn_pdrop", "0.25", "test");
  EXPECT_EQ(options.own.get<GqaOptions>().groups, 2);
  EXPECT_EQ(options.attention_dropout, 0.25);
  EXPECT_THROW(set_field(all, "mhe-mul-offset", "3", "test"), Error);
}

TEST(AttentionOptions, AnUnresolvedSchemeIsRefused) { EXPECT_THROW(make_scheme({}), Error); }

TEST(AttentionOptions, InitialDeviationsReachTheParameters) {
  const auto deviation = [](AttentionOptions options, const std::string& name) {
    options.d_model = 256;
    options.heads = 16;
    const std::shared_ptr<Scheme> scheme = make_scheme(resolve(options));
    initialise(*scheme, 1);
    for (const Declared& one : declared_parameters(*scheme)) {
      if (one.name == name) return one.tensor.std().item<double>();
    }
    return -1.0;
  };
  // 5 sigma of a standard deviation from n draws is 5 / sqrt(2 n) of it.
  for (const char* name : {"query_embedding", "key_embedding", "value_embedding"}) {
    EXPECT_NEAR(deviation({.scheme = "mhe_add", .own = MheOptions{.deviation = 0.5}}, name), 0.5, 0.5 * 0.23);
    EXPECT_NEAR(deviation({.scheme = "mhe_add"}, name), 0.02, 0.02 * 0.23);
    EXPECT_NEAR(deviation({.scheme = "mhe_mul"}, name), 0.5, 0.5 * 0.23);
  }
  EXPECT_NEAR(deviation({.scheme = "collaborative"}, "mixing"), 1, 0.08);
  EXPECT_NEAR(deviation({.init_deviation = 0.1}, "query.weight"), 0.1, 0.1 * 0.014);
  EXPECT_NEAR(deviation({.output_deviation = 0.3}, "output.weight"), 0.3, 0.3 * 0.014);
  EXPECT_EQ(deviation({.content_bias = true}, "content_bias"), 0);
}

TEST(ChosenSchemesTest, AllNamesDuplicatesAndMistakes) {
  EXPECT_EQ(chosen_schemes({"all"}).size(), scheme_names().size());
  EXPECT_EQ(chosen_schemes({"sha", "all"}).size(), scheme_names().size());
  EXPECT_THAT(chosen_schemes({"sha", "mha", "sha"}), testing::ElementsAre("mha", "sha"));
  EXPECT_THAT(error_message([] { chosen_schemes({"mha", "mhee_add"}); }), HasSubstr("mhe_add"));
  EXPECT_THAT(error_message([] { chosen_schemes(std::vector<std::string>()); }), HasSubstr("--schemes"));
}

}  // namespace
}  // namespace headshare
