#include "headshare/data/parallel/ordered_batches.h"

#include <gmock/gmock.h>

#include "headshare/base/rng.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(OrderedBatchesTest, LongestComeFirst) {
  const std::vector<int64_t> lengths = {2, 5, 2, 3, 20, 2};
  EXPECT_THAT(ordered_batches(lengths, 10), ElementsAre(ElementsAre(4), ElementsAre(1, 3), ElementsAre(0, 2, 5)));
  EXPECT_THAT(ordered_batches(lengths, 10, 1).size(), 6u);
  EXPECT_THAT(ordered_batches({}, 10), ElementsAre());
  EXPECT_THAT(ordered_batches(std::vector<int64_t>{0, 0}, 1), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(OrderedBatchesTest, EveryPlaceIsInOneBatchThatFits) {
  Philox random(5);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<int64_t> lengths(random.below(200));
    for (int64_t& one : lengths) one = static_cast<int64_t>(random.below(40));
    const auto tokens = static_cast<int64_t>(1 + random.below(300));
    const auto most = static_cast<int64_t>(1 + random.below(20));
    std::vector<int> seen(lengths.size());
    int64_t before = INT64_MAX;
    for (const auto& batch : ordered_batches(lengths, tokens, most)) {
      ASSERT_FALSE(batch.empty());
      const int64_t longest = lengths[static_cast<size_t>(batch[0])];
      EXPECT_LE(static_cast<int64_t>(batch.size()), most);
      EXPECT_TRUE(batch.size() == 1 || static_cast<int64_t>(batch.size()) * longest <= tokens);
      for (const int64_t place : batch) {
        const int64_t length = lengths[static_cast<size_t>(place)];
        EXPECT_LE(length, before);
        before = length;
        ++seen[static_cast<size_t>(place)];
      }
    }
    EXPECT_THAT(seen, testing::Each(1));
  }
}

TEST(OrderedBatchesTest, MistakesAreNamed) {
  const std::vector<int64_t> negative = {3, -1};
  EXPECT_THAT(error_message([&] { ordered_batches(negative, 10); }), HasSubstr("sentence 1 has the length -1"));
  EXPECT_THAT(error_message([&] { ordered_batches({}, 0); }), HasSubstr("batches of 0 tokens"));
}

}  // namespace
}  // namespace headshare
