#include <gmock/gmock.h>

#include <map>
#include <set>

#include "headshare/base/testing.h"
#include "headshare/tasks/diagnostics/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DiagnosticOptions joint_recall(int64_t alphabet, int64_t pairs, int64_t queries, int64_t lookups) {
  return {.kind = DiagnosticKind::kJointRecall,
          .alphabet = alphabet,
          .pairs = pairs,
          .queries = queries,
          .lookups = lookups};
}

TEST(JointRecallTest, EachQuestionAsksForTheSameKeysInEverySequence) {
  const DiagnosticOptions options = joint_recall(16, 6, 9, 3);
  // `candidates` has, for each question and output, the keys that would have given every answer so far.
  std::map<std::pair<int64_t, size_t>, std::set<int64_t>> candidates;
  expect_sound(options, [&](const Sequence& drawn) {
    std::map<int64_t, int64_t> value_of;
    for (size_t i = 0; i < 6; ++i) {
      const int64_t key = drawn.inputs[i] / 16;
      EXPECT_TRUE(key < 6 && value_of.emplace(key, drawn.inputs[i] % 16).second) << "key " << key << " twice";
    }
    for (size_t place = 6; place < drawn.inputs.size(); ++place) {
      const int64_t question = drawn.inputs[place] - 6 * 16;
      ASSERT_TRUE(question >= 0 && question < 6);
      for (size_t output = 0; output < 3; ++output) {
        const int64_t answer = drawn.targets[output * drawn.inputs.size() + place];
        auto& keys = candidates.try_emplace({question, output}, std::set<int64_t>{0, 1, 2, 3, 4, 5}).first->second;
        std::erase_if(keys, [&](int64_t key) { return value_of.at(key) != answer; });
      }
    }
  });
  ASSERT_EQ(candidates.size(), 6u * 3);
  for (int64_t question = 0; question < 6; ++question) {
    std::set<int64_t> keys;
    for (size_t output = 0; output < 3; ++output) {
      ASSERT_EQ((candidates.at({question, output}).size()), 1u) << question << " " << output;
      keys.insert(*candidates.at({question, output}).begin());
    }
    EXPECT_EQ(keys.size(), 3u) << "a question asks for different keys";
  }
}

TEST(JointRecallTest, RefusesMoreLookupsThanKeys) {
  EXPECT_EQ(error_message([] { make_generator(joint_recall(4, 4, 2, 4)); }), "no error");
  EXPECT_THAT(error_message([] { make_generator(joint_recall(4, 4, 2, 5)); }),
              AllOf(HasSubstr("5 of 4"), HasSubstr("--lookups"), HasSubstr("--pairs")));
}

}  // namespace
}  // namespace headshare
