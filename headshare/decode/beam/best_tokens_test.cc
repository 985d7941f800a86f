#include "headshare/decode/beam/best_tokens.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace headshare {
namespace {

using Row = std::vector<float>;

std::vector<Continuation> best(const std::vector<Row>& rows, const std::vector<float>& sums, int64_t count) {
  std::vector<ScoredRow> scored;
  for (size_t i = 0; i < rows.size(); ++i) scored.push_back({.log_probabilities = rows[i].data(), .sum = sums[i]});
  return best_tokens(scored, static_cast<int64_t>(rows[0].size()), count);
}

std::vector<Continuation> sorted(const std::vector<Row>& rows, const std::vector<float>& sums, int64_t count) {
  std::vector<Continuation> all;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t token = 0; token < rows[i].size(); ++token) {
      const float sum = rows[i][token] + sums[i];
      if (sum > -INFINITY) {
        all.push_back({.row = static_cast<int64_t>(i), .token = static_cast<int32_t>(token), .sum = sum});
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.sum > b.sum; });
  all.resize(std::min(all.size(), static_cast<size_t>(count)));
  return all;
}

// The cases have sizes around the blocks of 64, values with and without ties, and forbidden tokens.
TEST(BestTokensTest, AgreesWithAStableSort) {
  std::mt19937 random(2);
  for (const size_t vocabulary : {1, 2, 63, 64, 65, 127, 128, 129, 1000}) {
    for (const uint32_t levels : {1U, 3U, 1000000U}) {
      for (const int64_t count : {1, 2, 8, 200}) {
        std::vector<Row> rows(1 + random() % 5, Row(vocabulary));
        std::vector<float> sums;
        for (Row& row : rows) {
          sums.push_back(-static_cast<float>(random() % 2));
          for (float& value : row) {
            value = random() % 10 == 0 ? -INFINITY : -static_cast<float>(random() % levels) / 1000;
          }
        }
        const auto actual = best(rows, sums, count);
        const auto expected = sorted(rows, sums, count);
        ASSERT_EQ(actual.size(), expected.size());
        for (size_t i = 0; i < actual.size(); ++i) {
          EXPECT_EQ(actual[i].row, expected[i].row);
          EXPECT_EQ(actual[i].token, expected[i].token);
          EXPECT_EQ(actual[i].sum, expected[i].sum);
        }
      }
    }
  }
}

TEST(BestTokensTest, ForbiddenTokensAreNoContinuations) {
  EXPECT_TRUE(best({{-INFINITY, -INFINITY}}, {0}, 4).empty());
  EXPECT_TRUE(best({{-1, -2}}, {-INFINITY}, 4).empty());
}

}  // namespace
}  // namespace headshare
