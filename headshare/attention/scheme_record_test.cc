#include "headshare/attention/scheme_record.h"

#include <gmock/gmock.h>

#include <memory>
#include <thread>

#include "headshare/attention/attention.h"
#include "headshare/base/error.h"

namespace headshare {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Returns mha under another name.
SchemeRecord named(const std::string& name) {
  SchemeRecord record = scheme_record("mha");
  record.name = name;
  record.options = {};
  return record;
}

TEST(SchemeRecord, AddedSchemesEndInAnyOrder) {
  auto first = std::make_unique<AddedScheme>(named("first"));
  const auto second = std::make_unique<AddedScheme>(named("second"));
  first.reset();
  EXPECT_THAT(scheme_names(), Contains("second"));
  EXPECT_THAT(scheme_names(), Not(Contains("first")));
}

TEST(SchemeRecord, ARecordStaysWhereItIsWhileOthersComeAndGo) {
  const SchemeRecord& mha = scheme_record("mha");
  const AddedScheme kept(named("kept"));
  const SchemeRecord& record = scheme_record("kept");
  {
    std::vector<std::unique_ptr<AddedScheme>> others;
    for (int i = 0; i < 100; ++i) others.push_back(std::make_unique<AddedScheme>(named(join_text("other_", i))));
  }
  EXPECT_EQ(&scheme_record("mha"), &mha);
  EXPECT_EQ(&scheme_record("kept"), &record);
  EXPECT_EQ(record.name, "kept");
}

TEST(SchemeRecord, AFunctionMayBringWhatItNeeds) {
  int made = 0;
  SchemeRecord record = named("counted");
  record.make = [&made, make = record.make](const AttentionOptions& resolved) {
    ++made;
    return make(resolved);
  };
  const AddedScheme added(record);
  Attention layer(AttentionOptions{.scheme = "counted", .d_model = 8, .heads = 2});
  EXPECT_EQ(made, 1);
}

TEST(SchemeRecord, ANameStandsForOneScheme) {
  try {
    const AddedScheme added(named("mqa"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is a scheme mqa already"));
  }
}

TEST(SchemeRecord, ThreadsMayAddAndReadAtTheSameTime) {
  std::thread adding([] {
    for (int i = 0; i < 200; ++i) const AddedScheme added(named("passing"));
  });
  for (int i = 0; i < 200; ++i) EXPECT_EQ(scheme_record("collaborative").name, "collaborative");
  adding.join();
}

}  // namespace
}  // namespace headshare
