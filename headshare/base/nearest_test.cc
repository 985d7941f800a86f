#include "headshare/base/nearest.h"

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
  EXPECT_EQ(nearest_name("transformer", known), "");
  EXPECT_EQ(nearest_name(std::string(1000000, 'x'), known), "");
  EXPECT_EQ(did_you_mean("quux", known), "");
}

}  // namespace
}  // namespace headshare
