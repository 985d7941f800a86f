#include "headshare/train/plateau.h"

#include <gmock/gmock.h>

#include <vector>

#include "headshare/base/notice.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns the notices of a run of 100 steps whose loss at a step is loss(step).
std::vector<std::string> notices(const std::function<double(int64_t)>& loss, int64_t log_every = 1,
                                 std::optional<double> plain_loss = {}) {
  std::vector<std::string> said;
  const NoticeHandler before = set_notice_handler([&](const std::string& one) { said.push_back(one); });
  PlateauWatch watch(/*unigram_entropy=*/5, "train longer");
  for (int64_t step = 1; step <= 100; ++step) {
    if (step != 1 && step % log_every != 0) continue;
    watch.on_step({.step = step, .total_steps = 100, .loss = loss(step), .plain_loss = plain_loss});
  }
  set_notice_handler(before);
  return said;
}

TEST(Plateau, IsNoticedHalfwayAndAtTheEnd) {
  EXPECT_THAT(notices([](int64_t) { return 4.1; }),
              ElementsAre(AllOf(HasSubstr("4.100 on average from step 41 to 50, is not below 80% of 5.000"),
                                HasSubstr("; train longer")),
                          HasSubstr("from step 91 to 100")));
  EXPECT_THAT(notices([](int64_t step) { return step < 60 ? 5.5 : 3.9; }), ElementsAre(HasSubstr("41 to 50")));
  EXPECT_THAT(notices([](int64_t step) { return step < 40 ? 9.0 : 3.9; }), IsEmpty());
}

TEST(Plateau, AverageOfWhatIsReported) {
  EXPECT_THAT(notices([](int64_t step) { return step % 2 == 0 ? 4.6 : 3.2; }), IsEmpty());
  EXPECT_EQ(notices([](int64_t) { return 6.0; }, /*log_every=*/10).size(), 2u);
}

TEST(Plateau, IsOfTheLossWithoutATeacher) {
  EXPECT_EQ(notices([](int64_t) { return 1.0; }, 1, /*plain_loss=*/4.5).size(), 2u);
  EXPECT_THAT(notices([](int64_t) { return 9.0; }, 1, /*plain_loss=*/3.0), IsEmpty());
}

}  // namespace
}  // namespace headshare
