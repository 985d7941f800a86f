#include "headshare/bench/attention_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headshare/base/error.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Property;
using testing::ThrowsMessage;

std::vector<std::string> names_of(const AttentionGrid& grid) {
  std::vector<std::string> names;
  for (const AttentionCase& one : cases_of(grid)) names.push_back(case_name(one));
  return names;
}

TEST(AttentionGrid, DropoutBelongsToTrainingAndKeyWidthsToCollaborative) {
  const AttentionGrid grid = {.schemes = {"mha", "collaborative"}, .masks = {"causal"}, .key_widths = {128, 384}};
  EXPECT_THAT(names_of(grid),
              ElementsAre("mha forward causal B4 H12 T512 D64", "collaborative forward causal B4 H12 T512 D64 R128",
                          "collaborative forward causal B4 H12 T512 D64 R384", "mha training causal B4 H12 T512 D64",
                          "collaborative training causal B4 H12 T512 D64 R128",
                          "collaborative training causal B4 H12 T512 D64 R384",
                          "mha training causal B4 H12 T512 D64 dropout 0.1",
                          "collaborative training causal B4 H12 T512 D64 R128 dropout 0.1",
                          "collaborative training causal B4 H12 T512 D64 R384 dropout 0.1"));
  EXPECT_THROW(cases_of({.passes = {"forward"}, .dropout = {"0.1"}}), Error);
  const AttentionGrid shared = {
      .schemes = {"mha"}, .passes = {"training"}, .masks = {"full"}, .dropout_masks = {"per_head", "shared"}};
  EXPECT_THAT(names_of(shared), ElementsAre("mha training B4 H12 T512 D64", "mha training B4 H12 T512 D64 dropout 0.1",
                                            "mha training B4 H12 T512 D64 dropout 0.1 shared"));
}

TEST(AttentionGrid, TheBatchHoldsTheTokens) {
  const AttentionGrid grid = {.schemes = {"mqa"},
                              .passes = {"forward"},
                              .masks = {"full"},
                              .precisions = {"bf16"},
                              .lengths = {512, 4096},
                              .head_width = 8};
  EXPECT_THAT(names_of(grid), ElementsAre("mqa forward B4 H12 T512 D8 bf16", "mqa forward B1 H12 T4096 D8 bf16"));
  AttentionGrid decoding = grid;
  decoding.queries = 1;
  decoding.batch_size = 3;
  decoding.lengths = {100};
  EXPECT_THAT(names_of(decoding), ElementsAre("mqa forward B3 H12 T1 S100 D8 bf16"));
}

TEST(AttentionGrid, UnknownNamesAreRefusedWithTheNearest) {
  const auto refusal = [](const AttentionGrid& grid) { return [grid] { cases_of(grid); }; };
  EXPECT_THAT(refusal({.schemes = {"mhaa"}}), ThrowsMessage<Error>(HasSubstr("did you mean 'mha'?")));
  EXPECT_THAT(refusal({.passes = {"trainin"}}), ThrowsMessage<Error>(HasSubstr("did you mean 'training'?")));
  EXPECT_THAT(refusal({.masks = {"banded"}}), ThrowsMessage<Error>(HasSubstr("full|causal")));
  EXPECT_THROW(cases_of({.dropout = {"1.5"}}), Error);
}

}  // namespace
}  // namespace headshare
