#include "headshare/data/parallel/pair_batcher.h"

#include <gmock/gmock.h>

#include <set>

#include "headshare/data/parallel/test_support.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PairBatcherTest : public PairTest {
 protected:
  std::shared_ptr<const PairData> random_pairs(int64_t count, uint64_t most = 40, uint64_t seed = 1) const {
    return std::make_shared<PairData>(random_data(count, most, seed));
  }

  // Returns the pairs of the next epoch's batches.
  static std::vector<std::vector<int64_t>> epoch(PairBatcher* batcher) {
    std::vector<std::vector<int64_t>> batches;
    for (int64_t left = batcher->batches_in_epoch(); left > 0; --left) batches.push_back(batcher->next().pairs);
    return batches;
  }
};

constexpr PairBatchIds kIds = {.source_padding = 900, .target_padding = 901, .start = 902};

TEST_F(PairBatcherTest, ABatchIsPaddedBehindItsEnds) {
  const PairData data = data_of({{2, 1}, {1, 3}});
  const PairBatch batch = make_pair_batch(data, std::vector<int64_t>{1, 0}, kIds);
  const int64_t s = 2 * 's';
  const int64_t t = 2 * 't';
  EXPECT_EQ(batch.rows, 2);
  EXPECT_EQ(batch.source_length, 3);
  EXPECT_EQ(batch.target_length, 4);
  EXPECT_THAT(batch.source, ElementsAre(s, 512, 900, s, s + 1, 512));
  EXPECT_THAT(batch.source_lengths, ElementsAre(2, 3));
  EXPECT_THAT(batch.target_inputs, ElementsAre(902, t, t + 1, t + 1, 902, t, 901, 901));
  EXPECT_THAT(batch.targets, ElementsAre(t, t + 1, t + 1, 512, t, 512, kIgnoredTarget, kIgnoredTarget));
  EXPECT_THAT(batch.target_lengths, ElementsAre(4, 2));
  EXPECT_THAT(batch.pairs, ElementsAre(1, 0));
  EXPECT_EQ(batch.scored, 6);
  EXPECT_THAT(error_message([&] { make_pair_batch(data, std::vector<int64_t>{2}, kIds); }), HasSubstr("pair 2 of 2"));
  EXPECT_THAT(error_message([&] { make_pair_batch(data, {}, kIds); }), HasSubstr("no pairs"));
}

TEST_F(PairBatcherTest, EveryPairIsInOneBatchOfAnEpochThatFits) {
  Philox random(11);
  for (uint64_t trial = 0; trial < 20; ++trial) {
    const auto count = static_cast<int64_t>(1 + random.below(400));
    const auto tokens = static_cast<int64_t>(41 + random.below(400));
    PairBatcher batcher(random_pairs(count, 40, trial), {.batch_tokens = tokens, .seed = trial, .ids = kIds});
    for (int round = 0; round < 2; ++round) {
      std::vector<int> seen(static_cast<size_t>(count));
      EXPECT_EQ(batcher.state().epoch, round);
      for (int64_t left = batcher.batches_in_epoch(); left > 0; --left) {
        const PairBatch batch = batcher.next();
        EXPECT_LE(batch.rows * std::max(batch.source_length, batch.target_length), tokens);
        for (const int64_t pair : batch.pairs) ++seen[static_cast<size_t>(pair)];
      }
      EXPECT_THAT(seen, testing::Each(1));
    }
  }
}

TEST_F(PairBatcherTest, PairsOfLikeLengthAreTogether) {
  const auto data = random_pairs(5000, 60);
  PairBatcher batcher(data, {.batch_tokens = 1000});
  int64_t used = 0;
  int64_t places = 0;
  for (const auto& pairs : epoch(&batcher)) {
    const PairBatch batch = make_pair_batch(*data, pairs, {});
    for (const int64_t length : batch.source_lengths) used += length;
    used += batch.scored;
    places += batch.rows * (batch.source_length + batch.target_length);
  }
  // The sides' lengths are independent here, so that one side of a batch is of any length: two thirds at most. In the
  // order of the text a batch's longest of 16 would leave half.
  EXPECT_GT(static_cast<double>(used), 0.6 * static_cast<double>(places));
}

TEST_F(PairBatcherTest, EpochsAndSeedsDiffer) {
  const auto data = random_pairs(300);
  PairBatcher batcher(data, {.batch_tokens = 200, .seed = 1});
  PairBatcher same(data, {.batch_tokens = 200, .seed = 1});
  PairBatcher other(data, {.batch_tokens = 200, .seed = 2});
  const auto first = epoch(&batcher);
  EXPECT_EQ(epoch(&same), first);
  EXPECT_NE(epoch(&other), first);
  EXPECT_NE(epoch(&batcher), first);
  // Batches are not in the order of their lengths, and not always of the same pairs.
  const auto longest = [&](const std::vector<int64_t>& pairs) { return data->source(pairs.back()).size(); };
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end(),
                              [&](const auto& a, const auto& b) { return longest(a) < longest(b); }));
  const auto sets = [](const std::vector<std::vector<int64_t>>& batches) {
    std::set<std::set<int64_t>> result;
    for (const auto& batch : batches) result.insert({batch.begin(), batch.end()});
    return result;
  };
  EXPECT_NE(sets(epoch(&batcher)), sets(first));
  // Runs made earlier must be repeatable: changing these numbers breaks every resumed run.
  EXPECT_THAT(first[0], ElementsAre(180, 127, 8, 80, 153));
}

TEST_F(PairBatcherTest, ARestoredStateGivesTheSameBatches) {
  const auto data = random_pairs(200);
  const PairBatcherOptions options = {.batch_tokens = 150, .seed = 3, .ids = kIds};
  PairBatcher whole(data, options);
  for (int i = 0; i < 130; ++i) {
    const nlohmann::json saved = to_json(whole.state());
    PairBatcher resumed(data, options);
    resumed.restore(pair_batch_state_from_json(nlohmann::json::parse(saved.dump()), "x"));
    EXPECT_EQ(resumed.epochs(), whole.epochs());
    const PairBatch expected = whole.next();
    const PairBatch batch = resumed.next();
    EXPECT_EQ(batch.pairs, expected.pairs);
    EXPECT_EQ(batch.source, expected.source);
    EXPECT_EQ(batch.target_inputs, expected.target_inputs);
    EXPECT_EQ(batch.targets, expected.targets);
    EXPECT_EQ(to_json(resumed.state()), to_json(whole.state()));
  }
  EXPECT_GT(whole.state().epoch, 1);
}

TEST_F(PairBatcherTest, MistakesAreNamed) {
  const auto data = random_pairs(50);
  PairBatcher batcher(data, {.batch_tokens = 100});
  const PairBatchState other = PairBatcher(random_pairs(50, 40, 2), {.batch_tokens = 100}).state();
  EXPECT_THAT(error_message([&] { batcher.restore(other); }), HasSubstr("other sentence pairs"));
  PairBatchState far = batcher.state();
  far.batch = batcher.batches_in_epoch();
  EXPECT_THAT(error_message([&] { batcher.restore(far); }), HasSubstr("--batch-tokens and --seed"));
  EXPECT_THAT(error_message([&] { PairBatcher(data, {.batch_tokens = 10}); }), HasSubstr("--batch-tokens 10"));
  EXPECT_THAT(error_message([&] { PairBatcher(data, {.batch_tokens = 0}); }), HasSubstr("--batch-tokens 0"));
  EXPECT_THAT(error_message([&] { PairBatcher(std::make_shared<PairData>(), {}); }), HasSubstr("no sentence pairs"));
  for (const char* bad : {"[]", "{}", R"({"epoch":-1,"batch":0,"fingerprint":""})",
                          R"({"epoch":0,"batch":0.5,"fingerprint":""})", R"({"epoch":0,"batch":0,"fingerprint":7})"}) {
    EXPECT_THAT(error_message([&] { pair_batch_state_from_json(nlohmann::json::parse(bad), "state.json"); }),
                HasSubstr("state.json"))
        << bad;
  }
}

}  // namespace
}  // namespace headshare
