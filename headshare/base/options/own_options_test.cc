#include "headshare/base/options/own_options.h"

#include <gtest/gtest.h>

namespace headshare {
namespace {

struct Wheels {
  int64_t number = 4;
};
struct Wings {
  int64_t number = 2;
};

TEST(OwnOptions, AreFoundByTheirTypeAndBeginAsTheirTypesDo) {
  OwnOptions options = {Wheels{3}};
  EXPECT_EQ(options.get<Wheels>().number, 3);
  EXPECT_EQ(std::as_const(options).get<Wings>().number, 2);
  options.get<Wings>().number = 6;
  EXPECT_EQ(std::as_const(options).get<Wings>().number, 6);
}

TEST(OwnOptions, ACopyChangesAlone) {
  OwnOptions options = Wheels{3};
  OwnOptions copy = options;
  copy.get<Wheels>().number = 8;
  EXPECT_EQ(options.get<Wheels>().number, 3);
  EXPECT_EQ(copy.get<Wheels>().number, 8);
}

// Fields point to members: they must not move when a whole struct of options is assigned.
TEST(OwnOptions, MembersStayWhereTheyAreWhenOthersAreAssigned) {
  OwnOptions options = {Wheels{3}, Wings{4}};
  const int64_t* wheels = &options.get<Wheels>().number;
  const int64_t* wings = &options.get<Wings>().number;
  options = OwnOptions(Wheels{6});
  EXPECT_EQ(*wheels, 6);
  EXPECT_EQ(*wings, 2);  // the other has none, which is as they begin
  const OwnOptions& itself = options;
  options = itself;
  EXPECT_EQ(*wheels, 6);
  EXPECT_EQ(wheels, &options.get<Wheels>().number);
}

}  // namespace
}  // namespace headshare
