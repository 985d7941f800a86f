#include "headshare/host/launch.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "headshare/base/files/output_mark.h"
#include "headshare/base/notice.h"
#include "headshare/base/testing.h"
#include "headshare/train/thread_reducer.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// Reports a size, for what asks nothing else.
class Crowd final : public Reducer {
 public:
  explicit Crowd(int64_t size) : size_(size) {}
  int64_t rank() const override { return 0; }
  int64_t size() const override { return size_; }
  std::unique_ptr<Pending> start_sum(const Tensor& /*tensor*/) override { return nullptr; }
  void sum(std::span<double> /*numbers*/) override {}
  void broadcast(const Tensor& /*tensor*/, int64_t /*from*/) override {}

 private:
  int64_t size_;
};

TEST(LaunchTest, EachProcessNeedsAMicroBatch) {
  EXPECT_THAT(error_message([] { check_micro_batches(Crowd(4), 2); }),
              AllOf(HasSubstr("--accumulation 2"), HasSubstr("number of processes, 4"), HasSubstr("start at most 2"),
                    HasSubstr("--accumulation 4 and a --batch-size that is 4 times smaller")));
  std::string said;
  const NoticeHandler before = set_notice_handler([&](const std::string& sentence) { said += sentence; });
  check_micro_batches(Crowd(4), 8);
  check_micro_batches(Crowd(1), 1);
  EXPECT_THAT(said, IsEmpty());
  check_micro_batches(Crowd(4), 5);
  EXPECT_THAT(said, AllOf(HasSubstr("some compute 2"), HasSubstr("--accumulation 8 would take as long")));
  set_notice_handler(before);
}

TEST(LaunchTest, OnlyARestartOfTheLaunchThatBeganARunGoesOn) {
  const TemporaryDirectory home;
  const fs::path run = home / "run";
  make_directories(run);
  const auto goes_on = [&](const char* launch, const char* restarts) {
    ::setenv("HEADSHARE_LAUNCH", launch, 1);
    ::setenv("TORCHELASTIC_RESTART_COUNT", restarts, 1);
    return goes_on_after_restart(one_process(), run);
  };
  EXPECT_FALSE(goes_on("a 1 2", "1")) << "nothing was begun";
  write_file(run / kResolvedFile, "# headshare train\n");
  EXPECT_FALSE(goes_on("a 1 2", "1")) << "another call began it";
  note_launch(run);
  EXPECT_TRUE(goes_on("a 1 2", "1"));
  EXPECT_FALSE(goes_on("a 1 2", "0")) << "the first start must refuse a directory with a run";
  EXPECT_FALSE(goes_on("a 1 3", "1"));
  ::unsetenv("HEADSHARE_LAUNCH");
  EXPECT_FALSE(goes_on_after_restart(one_process(), run));
  ::unsetenv("TORCHELASTIC_RESTART_COUNT");
}

}  // namespace
}  // namespace headshare
