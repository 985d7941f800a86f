#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/host/engine.h"

namespace headshare {
namespace {

class LocalEngineTest : public testing::Test {
 protected:
  // The program notes the words that it is called with, a line for each cell.
  LocalEngineTest() {
    const fs::path program = home_.path() / "program";
    write_file(program, "#!/bin/sh\necho \"$@\" >>\"$(dirname \"$0\")/called-$3\"\n");
    fs::permissions(program, fs::perms::owner_all);
    call_ = {.program = program, .home = home_.path(), .plan_id = "p", .cells = {"a", "b", "c"}, .on_note = {}};
  }

  // Runs cells one after another, and returns what comes behind the words that every cell has.
  std::string added(Engine& engine, size_t cell) {
    engine.start({cell});
    while (engine.poll(std::chrono::seconds(1)).empty()) {
    }
    const std::string called = read_file(home_.path() / ("called-" + std::to_string(cell)));
    const std::string common = "--quiet";
    return called.substr(called.find(common) + common.size());
  }

  TemporaryDirectory home_;
  EngineCall call_;
};

TEST_F(LocalEngineTest, CellsAreToldTheirDevices) {
  call_.devices = {"cpu", "cuda:3"};
  const std::unique_ptr<Engine> engine = make_engine("local:2", call_);
  engine->start({0, 1});
  size_t ended = 0;
  while (ended < 2) ended += engine->poll(std::chrono::seconds(1)).size();
  EXPECT_THAT(read_file(home_.path() / "called-0"), testing::EndsWith("--quiet --device cpu\n"));
  EXPECT_THAT(read_file(home_.path() / "called-1"), testing::EndsWith("--quiet --device cuda:3\n"));
  EXPECT_EQ(added(*engine, 2), " --device cpu\n");  // both are free again: the first
}

TEST_F(LocalEngineTest, WithoutDevicesCellsFindTheirOwn) {
  const std::unique_ptr<Engine> engine = make_engine("local:1", call_);
  EXPECT_EQ(added(*engine, 0), "\n");
}

}  // namespace
}  // namespace headshare
