#include "headshare/host/device_places.h"

#include <gmock/gmock.h>

namespace headshare {
namespace {

TEST(DevicePlaces, EachCellGoesWhereTheFewestRun) {
  DevicePlaces places({"cuda:0", "cuda:2"});
  EXPECT_EQ(places.take(5), "cuda:0");
  EXPECT_EQ(places.take(6), "cuda:2");
  EXPECT_EQ(places.take(7), "cuda:0");
  places.give_back(6);
  EXPECT_EQ(places.take(8), "cuda:2");
  EXPECT_EQ(places.take(9), "cuda:2");
  places.give_back(5);
  places.give_back(7);
  places.give_back(7);  // a second end of the same cell changes nothing
  EXPECT_EQ(places.take(5), "cuda:0");
  EXPECT_EQ(places.take(7), "cuda:0");
}

TEST(DevicePlaces, WithoutDevicesACellFindsItsOwn) {
  DevicePlaces places({});
  EXPECT_EQ(places.take(0), "");
  places.give_back(0);
}

}  // namespace
}  // namespace headshare
