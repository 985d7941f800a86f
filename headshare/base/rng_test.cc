#include "headshare/base/rng.h"

#include <gmock/gmock.h>

#include <cmath>

namespace headshare {
namespace {

// The Random123 distribution (Salmon et al.) has known answers for ten and seven rounds.
TEST(RngTest, PhiloxKnownAnswers) {
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, 0), testing::ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox4x32({~0U, ~0U, ~0U, ~0U}, ~0ULL),
              testing::ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822ULL),
              testing::ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, 0, /*rounds=*/7),
              testing::ElementsAre(0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48));
}

TEST(RngTest, StreamsAreKeyedByNameAlone) {
  EXPECT_EQ(stream_key(1, "blocks.0.key"), stream_key(1, "blocks.0.key"));
  EXPECT_NE(stream_key(1, "blocks.0.key"), stream_key(1, "blocks.1.key"));
  EXPECT_NE(stream_key(1, "blocks.0.key"), stream_key(2, "blocks.0.key"));
  EXPECT_NE(stream_key(1, uint64_t{0}), stream_key(1, uint64_t{1}));
}

TEST(RngTest, APositionRestoresTheStream) {
  Philox whole(42);
  for (int i = 0; i < 7; ++i) whole.next_word();
  Philox resumed(whole.key(), whole.position());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(whole.next_word(), resumed.next_word());
}

TEST(RngTest, NumbersHaveTheirDistributions) {
  Philox random(7);
  constexpr int kDraws = 200000;
  double uniform_sum = 0;
  double normal_sum = 0;
  double normal_squares = 0;
  std::array<int, 5> counts{};
  for (int i = 0; i < kDraws; ++i) {
    uniform_sum += random.uniform();
    const double normal = random.normal();
    normal_sum += normal;
    normal_squares += normal * normal;
    ++counts[random.below(counts.size())];
  }
  // The tolerance is five standard deviations of each mean.
  EXPECT_NEAR(uniform_sum / kDraws, 0.5, 5 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(normal_sum / kDraws, 0.0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(normal_squares / kDraws, 1.0, 5 * std::sqrt(2.0 / kDraws));
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 5.0, 5 * std::sqrt(kDraws * 0.2 * 0.8));
}

}  // namespace
}  // namespace headshare
