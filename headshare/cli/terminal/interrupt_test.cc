#include "headshare/cli/terminal/interrupt.h"

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "headshare/cli/terminal/exit_codes.h"

namespace headshare {
namespace {

constexpr int kWentOn = 3;

void interrupt_twice(std::chrono::milliseconds apart) {
  catch_interrupts();
  std::raise(SIGINT);
  std::this_thread::sleep_for(apart);
  std::raise(SIGINT);
  std::exit(stop_requested() ? kWentOn : 1);
}

// A terminal sends Ctrl-C to the Python that called the program and to the program; Python passes it on.
TEST(InterruptTest, TheSameSignalTwiceAsksOnce) {
  EXPECT_EXIT(interrupt_twice(std::chrono::milliseconds(0)), testing::ExitedWithCode(kWentOn), "");
}

TEST(InterruptTest, ASecondSignalEndsTheProcess) {
  EXPECT_EXIT(interrupt_twice(std::chrono::milliseconds(700)), testing::ExitedWithCode(kInterrupted), "");
}

}  // namespace
}  // namespace headshare
