#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/tasks/diagnostics/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DiagnosticOptions offsets(int64_t length, std::vector<int64_t> places) {
  return {.kind = DiagnosticKind::kOffsets, .sequence_length = length, .alphabet = 5, .offsets = std::move(places)};
}

TEST(OffsetsTest, EachOutputLooksBackItsOffset) {
  for (const DiagnosticOptions& options : {offsets(12, {1, 3, 7, 11}), offsets(40, {12, 2}), offsets(2, {1})}) {
    const auto length = static_cast<size_t>(options.sequence_length);
    expect_sound(options, [&](const Sequence& drawn) {
      for (size_t output = 0; output < options.offsets.size(); ++output) {
        const auto offset = static_cast<size_t>(options.offsets[output]);
        for (size_t i = 0; i < length; ++i) {
          EXPECT_EQ(drawn.targets[output * length + i], i < offset ? kIgnoredTarget : drawn.inputs[i - offset]);
        }
      }
    });
  }
}

TEST(OffsetsTest, TokensAreUniform) {
  const auto generator = make_generator(offsets(20, {1}));
  std::vector<int> counts(5);
  for (uint64_t key = 0; key < 500; ++key) {
    for (const int64_t token : draw_sequence(*generator, key).inputs) ++counts[static_cast<size_t>(token)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 2000, 5 * 40);  // five deviations of a binomial
  EXPECT_EQ(generator->chance(), 0.2);
}

TEST(OffsetsTest, RefusesWhatCannotBeAsked) {
  const auto refusal = [](const DiagnosticOptions& options) { return error_message([&] { make_generator(options); }); };
  EXPECT_EQ(refusal(offsets(13, {1, 12})), "no error");
  EXPECT_THAT(refusal(offsets(12, {1, 12})),
              AllOf(HasSubstr("12 places back in 12 tokens"), HasSubstr("--offsets"), HasSubstr("--sequence-length")));
  EXPECT_THAT(refusal(offsets(12, {3, 1, 3})), HasSubstr("--offsets names 3 more than once"));
  EXPECT_THAT(refusal(offsets(12, {})), HasSubstr("at least one number with --offsets"));
}

}  // namespace
}  // namespace headshare
