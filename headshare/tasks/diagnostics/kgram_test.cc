#include <gmock/gmock.h>

#include <map>

#include "headshare/base/testing.h"
#include "headshare/tasks/diagnostics/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DiagnosticOptions kgram(int64_t alphabet, int64_t order, int64_t length, int64_t queries) {
  return {.kind = DiagnosticKind::kKGram,
          .sequence_length = length,
          .alphabet = alphabet,
          .queries = queries,
          .order = order};
}

// Counts how often each token followed the `order` tokens that end at `place`, before it.
std::map<int64_t, int> successors(const std::vector<int64_t>& inputs, size_t place, size_t order) {
  std::map<int64_t, int> counts;
  for (size_t end = order - 1; end < place; ++end) {
    if (std::equal(inputs.begin() + static_cast<std::ptrdiff_t>(end + 1 - order),
                   inputs.begin() + static_cast<std::ptrdiff_t>(end + 1),
                   inputs.begin() + static_cast<std::ptrdiff_t>(place + 1 - order))) {
      ++counts[inputs[end + 1]];
    }
  }
  return counts;
}

TEST(KGramTest, AnswersAreTheTokensThatFollowedMostOften) {
  for (const DiagnosticOptions& options : {kgram(4, 2, 64, 32), kgram(2, 4, 80, 10), kgram(5, 1, 30, 12)}) {
    expect_sound(options, [&](const Sequence& drawn) {
      for (size_t place = 0; place < drawn.inputs.size(); ++place) {
        if (drawn.targets[place] == kIgnoredTarget) continue;
        const auto counts = successors(drawn.inputs, place, static_cast<size_t>(options.order));
        for (const auto& [token, count] : counts) {
          if (token == drawn.targets[place]) continue;
          EXPECT_LT(count, counts.at(drawn.targets[place])) << place;
        }
      }
    });
  }
}

// Each sequence has a rule of its own: without looking back the answers are like chance.
TEST(KGramTest, RulesDifferBetweenSequences) {
  const auto generator = make_generator(kgram(4, 1, 64, 16));
  std::map<int64_t, int> after_zero;
  for (uint64_t key = 0; key < 400; ++key) {
    const Sequence drawn = draw_sequence(*generator, key);
    for (size_t place = 0; place < drawn.inputs.size(); ++place) {
      if (drawn.inputs[place] == 0 && drawn.targets[place] != kIgnoredTarget) {
        ++after_zero[drawn.targets[place]];
        break;
      }
    }
  }
  int all = 0;
  for (const auto& [token, count] : after_zero) all += count;
  for (int64_t token = 0; token < 4; ++token) EXPECT_NEAR(after_zero[token], all / 4.0, 50) << token;
}

TEST(KGramTest, RefusesSequencesThatMeetNothingAgain) {
  EXPECT_THAT(error_message([] { make_generator(kgram(4, 3, 64, 32)); }),
              AllOf(HasSubstr("64 tokens"), HasSubstr("64 contexts"), HasSubstr("--sequence-length")));
  EXPECT_THAT(error_message([] { make_generator(kgram(64, 16, 65536, 1)); }), HasSubstr("--order"));
}

}  // namespace
}  // namespace headshare
