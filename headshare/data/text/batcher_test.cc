#include "headshare/data/text/batcher.h"

#include <gmock/gmock.h>

#include <set>

#include "headshare/base/testing.h"
#include "headshare/data/text/counting_tokens.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> starts(const Batch& batch) {
  std::vector<int64_t> first;
  for (int64_t row = 0; row < batch.rows; ++row) first.push_back(batch.inputs[static_cast<size_t>(row * batch.length)]);
  return first;
}

BatchOptions options(BatchOrder order) { return {.batch_size = 3, .context = 4, .order = order, .seed = 5}; }

TEST(BatcherTest, TargetsAreTheNextTokens) {
  for (const BatchOrder order : {BatchOrder::kRandom, BatchOrder::kShuffled, BatchOrder::kSequential}) {
    Batcher batcher(counting(30), options(order));
    for (int i = 0; i < 20; ++i) {
      const Batch batch = batcher.next();
      ASSERT_EQ(batch.inputs.size(), 12u);
      ASSERT_EQ(batch.scored, 12);
      for (size_t k = 0; k < 12; ++k) {
        EXPECT_EQ(batch.targets[k], batch.inputs[k] + 1);
        EXPECT_EQ(batch.inputs[k], batch.inputs[k / 4 * 4] + static_cast<int64_t>(k % 4));
      }
    }
  }
}

TEST(BatcherTest, SequentialWindowsFollowEachOtherRoundAndRound) {
  Batcher batcher(counting(22), options(BatchOrder::kSequential));  // 5 windows: 0 4 8 12 16
  EXPECT_THAT(starts(batcher.next()), ElementsAre(0, 4, 8));
  EXPECT_THAT(starts(batcher.next()), ElementsAre(12, 16, 0));
  EXPECT_DOUBLE_EQ(batcher.epochs(), 24.0 / 22.0);
}

TEST(BatcherTest, ShuffledEpochsHoldEveryWindowOnceInNewOrders) {
  Batcher batcher(counting(4 * 6 + 1), options(BatchOrder::kShuffled));  // 6 windows: 2 batches per epoch
  std::set<std::vector<int64_t>> orders;
  for (int epoch = 0; epoch < 10; ++epoch) {
    std::vector<int64_t> order = starts(batcher.next());
    const std::vector<int64_t> second = starts(batcher.next());
    order.insert(order.end(), second.begin(), second.end());
    orders.insert(order);
    EXPECT_THAT(order, testing::UnorderedElementsAre(0, 4, 8, 12, 16, 20));
  }
  EXPECT_GT(orders.size(), 8u);
}

TEST(BatcherTest, RandomStartsAreUniformOverAllPossibleOnes) {
  Batcher batcher(counting(14), options(BatchOrder::kRandom));  // starts 0..9
  std::vector<int> counts(10);
  for (int i = 0; i < 3000; ++i) {
    for (const int64_t start : starts(batcher.next())) ++counts.at(static_cast<size_t>(start));
  }
  // There are 9000 draws: 900 each, standard deviation 28.5; the tolerance is five of them.
  for (const int count : counts) EXPECT_NEAR(count, 900, 143);
}

TEST(BatcherTest, ARestoredStateGivesTheSameBatches) {
  for (const BatchOrder order : {BatchOrder::kRandom, BatchOrder::kShuffled, BatchOrder::kSequential}) {
    Batcher whole(counting(50), options(order));
    for (int i = 0; i < 7; ++i) whole.next();
    const nlohmann::json saved = to_json(whole.state());
    Batcher resumed(counting(50), options(order));
    resumed.restore(batch_state_from_json(nlohmann::json::parse(saved.dump()), "x"));
    for (int i = 0; i < 30; ++i) EXPECT_EQ(resumed.next().inputs, whole.next().inputs);
    EXPECT_EQ(to_json(resumed.state()), to_json(whole.state()));
    resumed.restore(batch_state_from_json(saved, "x"));  // backwards too
    EXPECT_EQ(resumed.state().batches, 7);
  }
}

TEST(BatcherTest, SeedsDifferAndTheStreamIsFixed) {
  BatchOptions other = options(BatchOrder::kRandom);
  other.seed = 6;
  EXPECT_NE(Batcher(counting(1000), options(BatchOrder::kRandom)).next().inputs,
            Batcher(counting(1000), other).next().inputs);
  // Runs made earlier must be repeatable: changing these numbers breaks every resumed run.
  EXPECT_THAT(starts(Batcher(counting(1000), options(BatchOrder::kRandom)).next()), ElementsAre(640, 227, 156));
  EXPECT_THAT(starts(Batcher(counting(1000), options(BatchOrder::kShuffled)).next()), ElementsAre(132, 596, 480));
}

TEST(BatcherTest, MistakesAreNamed) {
  EXPECT_THAT(error_message([] { Batcher(counting(4), options(BatchOrder::kRandom)); }),
              HasSubstr("the training text has 4 tokens, but one window of --context 4 needs 5"));
  EXPECT_EQ(Batcher(counting(5), options(BatchOrder::kShuffled)).next().rows, 3);  // one window, three times
  BatchOptions none = options(BatchOrder::kRandom);
  none.batch_size = 0;
  EXPECT_THAT(error_message([&] { Batcher(counting(50), none); }), HasSubstr("--batch-size 0"));
  Batcher batcher(counting(50), options(BatchOrder::kRandom));
  EXPECT_THAT(error_message([&] { batcher.restore(Batcher(counting(51), options(BatchOrder::kRandom)).state()); }),
              HasSubstr("cannot go on with other text"));
  for (const char* bad : {"[]", "{}", R"({"batches":-1,"fingerprint":""})", R"({"batches":"1","fingerprint":""})"}) {
    EXPECT_THAT(error_message([&] { batch_state_from_json(nlohmann::json::parse(bad), "state.json"); }),
                HasSubstr("state.json"))
        << bad;
  }
}

TEST(BatcherTest, FieldsSetTheOptions) {
  BatchOptions made;
  Fields all = {batch_size_field(&made.batch_size), batch_order_field(&made.order)};
  set_field(all, "train_batch_size", "64", "test");
  set_field(all, "batch-order", "shuffled", "test");
  EXPECT_EQ(made.batch_size, 64);
  EXPECT_EQ(made.order, BatchOrder::kShuffled);
  EXPECT_THAT(error_message([&] { set_field(all, "batch-size", "0", "test"); }), HasSubstr("batch-size must be"));
}

}  // namespace
}  // namespace headshare
