#include "headshare/base/options/nearest.h"

#include <gtest/gtest.h>

namespace headshare {
namespace {

TEST(NearestTest, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("hedas", "heads"), 1);
  EXPECT_EQ(edit_distance("modle", "model"), 1);
}

TEST(NearestTest, OffersOnlyNearNames) {
  const std::vector<std::string> known = {"mha", "mhe_add", "mhe_mul"};
  EXPECT_EQ(nearest_name("mhe-add", known), "mhe_add");
  EXPECT_EQ(nearest_name("mhaa", known), "mha");
  EXPECT_EQ(nearest_name("MHE-ADDD", known), "mhe_add");
  EXPECT_EQ(nearest_name("transformer", known), "");
  EXPECT_EQ(nearest_name("c", {"a", "b"}), "") << "any letter is near to any other";
  EXPECT_EQ(nearest_name(std::string(1000000, 'x'), known), "");
  EXPECT_EQ(did_you_mean("quux", known), "");
  EXPECT_EQ(did_you_mean("mhe_ad", known), " (did you mean 'mhe_add'?)");
}

TEST(NearestTest, ThreeOfTenLettersAreNotNear) {
  EXPECT_EQ(nearest_name("match-time", {"batch-size", "match", "max-time"}), "match");
  EXPECT_EQ(nearest_name("match-time", {"batch-size"}), "");
  EXPECT_EQ(nearest_name("btach-sise", {"batch-size"}), "batch-size");
}

TEST(NearestTest, FirstWordsAreNearWhereOnlyOneNameHasThem) {
  EXPECT_EQ(nearest_name("learning-rate-peak", {"learning-rate", "steps"}), "learning-rate");
  EXPECT_EQ(nearest_name("sentencepiece", {"sentencepiece-model", "steps"}), "sentencepiece-model");
  EXPECT_EQ(nearest_name("validation", {"validation-fraction", "validation-source"}), "");
  EXPECT_EQ(nearest_name("matching", {"match"}), "") << "no word of its own";
}

}  // namespace
}  // namespace headshare
