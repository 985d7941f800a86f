#include "headshare/data/parallel/pair_data.h"

#include <gmock/gmock.h>

#include "headshare/data/parallel/test_support.h"
#include "headshare/text/train_tokenizer.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class PairDataTest : public PairTest {};

TEST_F(PairDataTest, SidesEndWithTheEndOfText) {
  PairText text({file("a.de", "ab\nc\n"), file("a.en", "d\nefg\n")}, {});
  const FakeTokenizer tokenizer;
  const PairData data(&text, tokenizer, tokenizer, {});
  ASSERT_EQ(data.size(), 2);
  EXPECT_THAT(data.source(0), ElementsAre(2 * 'a', 2 * 'b' + 1, 512));
  EXPECT_THAT(data.target(0), ElementsAre(2 * 'd', 512));
  EXPECT_THAT(data.source(1), ElementsAre(2 * 'c', 512));
  EXPECT_THAT(data.target(1), ElementsAre(2 * 'e', 2 * 'f' + 1, 2 * 'g' + 1, 512));
  EXPECT_EQ(data.source_tokens(), 5);
  EXPECT_EQ(data.target_tokens(), 6);
  EXPECT_EQ(counts_text(data.counts(), {}), "2 pairs");
}

TEST_F(PairDataTest, PairsAreLeftOutAndCountedByReason) {
  const PairLimits limits = {.longest = 10, .most_ratio = 3};
  const PairData data =
      data_of({{9, 9}, {10, 9}, {9, 10}, {3, 9}, {2, 7}, {7, 2}, {0, 4}, {4, 0}, {0, 0}, {30, 1}, {6, 2}}, limits);
  EXPECT_EQ(data.counts().read, 11);
  EXPECT_EQ(data.counts().kept(), 3);
  EXPECT_EQ(data.counts().empty, 3);
  EXPECT_EQ(data.counts().too_long, 3);
  EXPECT_EQ(data.counts().too_unequal, 2);
  ASSERT_EQ(data.size(), 3);
  EXPECT_EQ(data.number(0), 0);
  EXPECT_EQ(data.number(1), 3);
  EXPECT_EQ(data.number(2), 10);
  EXPECT_EQ(data.source(2).size(), 7u);
  EXPECT_EQ(counts_text(data.counts(), limits),
            "3 pairs; left out: 3 with an empty side (first: pair 7), 3 longer than 10 tokens, 2 with a side more than "
            "3 times as long "
            "as the other");
  EXPECT_EQ(counts_text({.read = 29000}, limits), "29,000 pairs");
  EXPECT_EQ(counts_text({.read = 1234568, .empty = 1}, limits), "1,234,567 pairs; left out: 1 with an empty side");
  EXPECT_EQ(counts_text({.read = 9, .empty = 2, .first_empty = 1017}, limits),
            "7 pairs; left out: 2 with an empty side (first: pair 1,017)");
  EXPECT_EQ(counts_text({.read = 101, .empty = 100}, limits), "1 pair; left out: 100 with an empty side");
}

TEST_F(PairDataTest, WithoutLimitsEveryPairIsKept) {
  const PairData data = data_of({{0, 4}, {400, 1}, {0, 0}}, {.keep_empty = true});
  ASSERT_EQ(data.size(), 3);
  EXPECT_THAT(data.source(0), ElementsAre(512));
  EXPECT_THAT(data.target(2), ElementsAre(512));
}

TEST_F(PairDataTest, FingerprintsAreOfIdsAndWhereSidesEnd) {
  const std::string one = data_of({{3, 2}, {1, 1}}).fingerprint();
  EXPECT_EQ(data_of({{3, 2}, {1, 1}}).fingerprint(), one);
  EXPECT_EQ(data_of({{3, 2}, {0, 1}, {1, 1}}).fingerprint(), one);  // the pair between is left out
  EXPECT_NE(data_of({{2, 3}, {1, 1}}).fingerprint(), one);
  EXPECT_NE(data_of({{1, 1}, {3, 2}}).fingerprint(), one);
}

TEST_F(PairDataTest, MistakesAreNamed) {
  EXPECT_THAT(error_message([&] {
                data_of({{0, 1}, {12, 1}}, {.longest = 10});
              }),
              AllOf(HasSubstr("no pair is left to use: 0 pairs"), HasSubstr("1 longer than 10 tokens"),
                    HasSubstr("a.src and")));
  const FakeByteTokenizer endless;
  PairText text(files_of({{1, 1}}), {});
  EXPECT_THAT(error_message([&] { PairData(&text, endless, endless, {}); }),
              HasSubstr("has no token that ends a text: use --tokenizer"));
}

TEST_F(PairDataTest, Multi30kInSentencePieces) {
  HS_NEEDS_DATA("multi30k/val.de.gz");
  const fs::path folder = test_data_folder() / "multi30k";
  const PairFiles files = {(folder / "val.de.gz").string(), (folder / "val.en.gz").string()};
  PairText training(files, {});
  std::optional<Pair> pair;
  const auto tokenizer =
      train_tokenizer({.kind = TokenizerKind::kSentencePiece, .vocabulary_size = 1000}, [&](std::string* chunk) {
        pair = training.next();
        if (pair) *chunk = pair->source + "\n" + pair->target;
        return pair.has_value();
      });
  PairText text(files, {});
  const PairLimits limits = {.longest = 40, .most_ratio = 3};
  const PairData data(&text, *tokenizer, *tokenizer, limits);
  EXPECT_EQ(data.counts().read, 1014);
  EXPECT_GT(data.size(), 900);
  EXPECT_EQ(data.counts().empty, 0);
  const auto source = data.source(0);
  EXPECT_EQ(source.back(), tokenizer->special(SpecialToken::kEndOfText));
  EXPECT_THAT(tokenizer->decode(source.first(source.size() - 1)), HasSubstr("Baumwolle"));
}

}  // namespace
}  // namespace headshare
