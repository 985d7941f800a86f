#include <gmock/gmock.h>

#include <map>

#include "headshare/base/testing.h"
#include "headshare/tasks/diagnostics/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DiagnosticOptions recall(int64_t alphabet, int64_t pairs, int64_t queries) {
  return {.kind = DiagnosticKind::kRecall, .alphabet = alphabet, .pairs = pairs, .queries = queries};
}

TEST(RecallTest, AnswersAreTheValuesOfTheKeys) {
  for (const DiagnosticOptions& options : {recall(8, 8, 5), recall(20, 3, 12), recall(2, 1, 1)}) {
    expect_sound(options, [&](const Sequence& drawn) {
      std::map<int64_t, int64_t> value_of;
      for (size_t i = 0; i < drawn.inputs.size(); i += 2) {
        const int64_t key = drawn.inputs[i];
        const int64_t value = drawn.inputs[i + 1];
        EXPECT_LT(key, options.alphabet);
        EXPECT_GE(value, options.alphabet);
        EXPECT_EQ(drawn.targets[i + 1], kIgnoredTarget);
        if (static_cast<int64_t>(i) < 2 * options.pairs) {
          EXPECT_TRUE(value_of.emplace(key, value).second) << "key " << key << " twice";
          EXPECT_EQ(drawn.targets[i], kIgnoredTarget);
        } else {
          ASSERT_TRUE(value_of.contains(key)) << key;
          EXPECT_EQ(drawn.targets[i], value_of[key]);
          EXPECT_EQ(value, value_of[key]);  // the answer follows
        }
      }
    });
  }
}

TEST(RecallTest, EveryKeyAndEveryValueComesUp) {
  const auto generator = make_generator(recall(8, 4, 4));
  std::map<int64_t, int> keys, asked, values;
  for (uint64_t key = 0; key < 500; ++key) {
    const Sequence drawn = draw_sequence(*generator, key);
    for (size_t i = 0; i < 8; i += 2) ++keys[drawn.inputs[i]], ++values[drawn.inputs[i + 1]];
    for (size_t place = 0; place < 8; place += 2) {
      if (drawn.inputs[place] == drawn.inputs[8]) ++asked[static_cast<int64_t>(place)];
    }
  }
  for (const auto* counts : {&keys, &values}) {
    ASSERT_EQ(counts->size(), 8u);
    for (const auto& [token, count] : *counts) EXPECT_NEAR(count, 250, 5 * 15) << token;
  }
  ASSERT_EQ(asked.size(), 4u);
  for (const auto& [place, count] : asked) EXPECT_NEAR(count, 125, 5 * 10) << place;
}

TEST(RecallTest, NoPartOfALongKeyIsEnough) {
  DiagnosticOptions options = recall(8, 9, 5);
  options.key_length = 2;
  expect_sound(options, [&](const Sequence& drawn) {
    std::map<std::pair<int64_t, int64_t>, int64_t> value_of;
    std::map<int64_t, int> first, second;
    for (size_t i = 0; i < drawn.inputs.size(); i += 3) {
      const std::pair key(drawn.inputs[i], drawn.inputs[i + 1]);
      EXPECT_TRUE(key.first < 8 && key.second >= 8 && key.second < 16 && drawn.inputs[i + 2] >= 16);
      if (i < 9 * 3) {
        EXPECT_TRUE(value_of.emplace(key, drawn.inputs[i + 2]).second);
        ++first[key.first], ++second[key.second];
        EXPECT_EQ(drawn.targets[i + 1], kIgnoredTarget);
      } else {
        EXPECT_EQ(drawn.targets[i + 1], value_of.at(key));
        EXPECT_EQ(drawn.inputs[i + 2], value_of.at(key));
      }
      EXPECT_TRUE(drawn.targets[i] == kIgnoredTarget && drawn.targets[i + 2] == kIgnoredTarget);
    }
    for (const auto* part : {&first, &second}) {
      EXPECT_EQ(part->size(), 3u);
      for (const auto& [token, count] : *part) EXPECT_EQ(count, 3) << token;
    }
  });
  options.pairs = 8;
  EXPECT_THAT(error_message([&] { make_generator(options); }), AllOf(HasSubstr("not 8"), HasSubstr("--key-length")));
}

TEST(RecallTest, KeysOfOneTokenAreDescribedAsBefore) {
  EXPECT_FALSE(difficulty(recall(8, 4, 4)).contains("key-length"));
  DiagnosticOptions options = recall(8, 4, 4);
  options.key_length = 2;
  EXPECT_EQ(difficulty(options).at("key-length"), 2);
}

TEST(RecallTest, RefusesMorePairsThanKeys) {
  EXPECT_EQ(error_message([] { make_generator(recall(4, 4, 9)); }), "no error");
  EXPECT_THAT(error_message([] { make_generator(recall(4, 5, 2)); }),
              AllOf(HasSubstr("5 pairs, 4 keys"), HasSubstr("--pairs"), HasSubstr("--alphabet")));
}

}  // namespace
}  // namespace headshare
