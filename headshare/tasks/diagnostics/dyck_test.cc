#include <gmock/gmock.h>

#include <map>

#include "headshare/base/testing.h"
#include "headshare/tasks/diagnostics/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DiagnosticOptions dyck(int64_t length, int64_t kinds, int64_t depth) {
  return {.kind = DiagnosticKind::kDyck, .sequence_length = length, .bracket_kinds = kinds, .bracket_depth = depth};
}

// Returns the place of the bracket that the one at `close` closes, by counting alone.
size_t partner(const std::vector<int64_t>& tokens, size_t close, int64_t kinds) {
  int depth = 0;
  for (size_t i = close + 1; i-- > 0;) {
    depth += tokens[i] < kinds ? -1 : 1;
    if (depth == 0) return i;
  }
  return tokens.size();
}

TEST(DyckTest, NestsWellAndAsksWhatCloses) {
  for (const DiagnosticOptions& options : {dyck(2, 1, 1), dyck(20, 3, 10), dyck(40, 2, 3), dyck(10, 4, 1)}) {
    const int64_t kinds = options.bracket_kinds;
    expect_sound(options, [&](const Sequence& drawn) {
      const std::vector<int64_t>& x = drawn.inputs;
      int64_t depth = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        depth += x[i] < kinds ? 1 : -1;
        EXPECT_TRUE(depth >= 0 && depth <= options.bracket_depth) << depth;
        const bool closes_next = i + 1 < x.size() && x[i + 1] >= kinds;
        EXPECT_EQ(drawn.targets[i], closes_next ? x[i + 1] : kIgnoredTarget);
        if (!closes_next) continue;
        const size_t opened = partner(x, i + 1, kinds);
        ASSERT_LT(opened, x.size());
        EXPECT_EQ(x[i + 1], x[opened] + kinds);
      }
      EXPECT_EQ(depth, 0);
    });
  }
}

TEST(DyckTest, KindsAndDepthsComeUp) {
  const auto generator = make_generator(dyck(20, 4, 3));
  std::map<int64_t, int> opened;
  int deepest = 0;
  for (uint64_t key = 0; key < 400; ++key) {
    int depth = 0;
    for (const int64_t token : draw_sequence(*generator, key).inputs) {
      if (token < 4) ++opened[token];
      depth += token < 4 ? 1 : -1;
      deepest = std::max(deepest, depth);
    }
  }
  EXPECT_EQ(deepest, 3);
  ASSERT_EQ(opened.size(), 4u);
  for (const auto& [token, count] : opened) EXPECT_NEAR(count, 1000, 5 * 28) << token;
  EXPECT_EQ(generator->chance(), 0.25);
}

TEST(DyckTest, FewBracketsCloseAtOnce) {
  const auto generator = make_generator(dyck(64, 2, 32));
  int at_once = 0;
  int closings = 0;
  for (uint64_t key = 0; key < 400; ++key) {
    const std::vector<int64_t> x = draw_sequence(*generator, key).inputs;
    for (size_t i = 1; i < x.size(); ++i) {
      closings += x[i] >= 2 ? 1 : 0;
      at_once += x[i] >= 2 && x[i - 1] < 2 ? 1 : 0;
    }
  }
  EXPECT_EQ(closings, 400 * 32);
  EXPECT_LT(at_once, closings / 3);
}

TEST(DyckTest, RefusesWhatCannotNest) {
  EXPECT_EQ(error_message([] { make_generator(dyck(6, 2, 3)); }), "no error");
  EXPECT_THAT(error_message([] { make_generator(dyck(7, 2, 3)); }),
              AllOf(HasSubstr("not 7"), HasSubstr("--sequence-length to 6 or 8")));
  EXPECT_THAT(error_message([] { make_generator(dyck(6, 2, 4)); }),
              AllOf(HasSubstr("4 brackets"), HasSubstr("8 tokens, not 6"), HasSubstr("--bracket-depth")));
}

}  // namespace
}  // namespace headshare
