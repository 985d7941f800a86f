// These tests resume a run after a kill, a stop and a full disk, and check what is refused.
#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/train/fake_task.h"
#include "headshare/train/trainer.h"
#include "headshare/train/training_state.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kSteps = 12;

FakeTask fake_task() {
  return FakeTask({.dropout = 0.3,
                   .rows = {3, 4},  // 7 of 20 examples a step: most steps are inside an epoch
                   .losses = {5, 4, 4.5, 4.4, 4.6, 3, 2.9}});
}

TrainOptions everything_at_once() {
  TrainOptions options{.steps = kSteps,
                       .accumulation = 2,
                       .evaluate_every = 2,
                       .save_every = 3,
                       .log_every = 1,
                       .patience = 4,
                       .average_last = 2,
                       .ema_decay = 0.9};
  options.schedule.learning_rate = 0.05;
  return options;
}

// Returns all that a run leaves: every file of its checkpoints, times aside.
std::map<std::string, std::string> files_of(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory / "checkpoints")) {
    const std::string name = entry.path().lexically_relative(directory);
    if (entry.is_symlink()) files[name] = fs::read_symlink(entry.path());
    if (!entry.is_regular_file()) continue;
    files[name] = read_file(entry.path());
    if (entry.path().filename() != "training.json") continue;
    nlohmann::json state = nlohmann::json::parse(files[name]);
    EXPECT_GT(state.at("seconds"), 0);
    state.erase("seconds");
    files[name] = state.dump();
  }
  return files;
}

// Goes on in `directory` to the end, and returns the losses by step.
void go_on(const fs::path& directory, std::map<int64_t, double>* losses) {
  FakeTask task = fake_task();
  RunDirectory run(directory);
  Recorder recorder;
  Trainer trainer(task, everything_at_once(), run, {&recorder});
  const int64_t start = trainer.resume().value_or(0);
  trainer.run();
  for (size_t i = 0; i < recorder.losses.size(); ++i) {
    (*losses)[start + static_cast<int64_t>(i) + 1] = recorder.losses[i];
  }
}

TEST(ResumeTest, EqualsTheRunThatWasNeverKilledToTheLastBit) {
  const TemporaryDirectory home;
  std::map<int64_t, double> losses;
  go_on(home / "whole", &losses);
  ASSERT_EQ(losses.size(), static_cast<size_t>(kSteps));
  const auto whole = files_of(home / "whole");
  ASSERT_TRUE(whole.contains("checkpoints/last"));
  for (const int64_t killed_in : {2, 4, 6, 9, 11, 12}) {
    const fs::path folder = home / std::to_string(killed_in);
    {
      FakeTask task = fake_task();
      RunDirectory run(folder);
      Recorder crashing([&](int64_t step) {
        if (step == killed_in) throw Crash("killed");
      });
      EXPECT_THROW(Trainer(task, everything_at_once(), run, {&crashing}).run(), Crash);
    }
    std::map<int64_t, double> again;
    go_on(folder, &again);
    EXPECT_EQ(again.size(), static_cast<size_t>(kSteps - (killed_in - 1) / 3 * 3));  // from the last checkpoint on
    for (const auto& [step, loss] : again) EXPECT_EQ(loss, losses[step]) << killed_in << " " << step;
    EXPECT_EQ(files_of(folder), whole) << killed_in;
  }
}

TEST(ResumeTest, EqualsTheRunThatWasNeverStoppedThoughStoppingSaves) {
  const TemporaryDirectory home;
  std::map<int64_t, double> losses;
  go_on(home / "whole", &losses);
  const fs::path folder = home / "stopped";
  for (const int64_t stop_after : {1, 5, 6, 8, 10, 11}) {
    FakeTask task = fake_task();
    RunDirectory run(folder);
    int64_t steps = 0;
    Recorder recorder([&](int64_t step) { steps = step; });
    Trainer trainer(task, everything_at_once(), run, {&recorder}, [&] { return steps == stop_after; });
    trainer.resume();
    try {
      trainer.run();
      ADD_FAILURE() << "did not stop after " << stop_after;
    } catch (const Interrupted& stopped) {
      EXPECT_THAT(stopped.what(), AllOf(HasSubstr(join_text("after step ", stop_after, " of 12")), HasSubstr(folder)));
    }
    EXPECT_EQ(read_training_state(*run.last_checkpoint() / "training.json").step, stop_after);
  }
  go_on(folder, &losses);
  EXPECT_EQ(files_of(folder), files_of(home / "whole"));
}

TEST(ResumeTest, AFullDiskKeepsTheCheckpointBefore) {
  const TemporaryDirectory home;
  const fs::path folder = home / "full";
  for (const rlim_t bytes : {0, 100, 1500}) {
    FakeTask task = fake_task();
    RunDirectory run(folder);
    std::optional<FileSizeLimit> full;
    Recorder filling([&](int64_t step) {
      if (step == 5) full.emplace(bytes);
    });
    TrainOptions options = everything_at_once();
    options.evaluate_every = 3;
    Trainer trainer(task, options, run, {&filling});
    trainer.resume();
    const std::string text = error_message([&] { trainer.run(); });
    full.reset();
    EXPECT_THAT(text, AllOf(HasSubstr("cannot write"), HasSubstr((folder / "checkpoints").string()),
                            HasSubstr(".safetensors"), HasSubstr("File too large")));
    EXPECT_EQ(run.last_checkpoint()->filename(), "step-00000003");
    for (const auto& entry : fs::directory_iterator(run.checkpoints())) {
      EXPECT_EQ(entry.path().string().find(".partial"), std::string::npos) << entry.path();
    }
  }
}

// A run has one checkpoint; the fixture tells what resuming says after a file of it was changed.
class DamagedCheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeTask task = fake_task();
    RunDirectory run(home_.path());
    TrainOptions options = everything_at_once();
    options.steps = 3;
    Trainer(task, options, run, {}).run();
    checkpoint_ = *run.last_checkpoint();
  }

  std::string message(const TrainOptions& options = everything_at_once()) const {
    FakeTask task = fake_task();
    RunDirectory run(home_.path());
    return error_message([&] { Trainer(task, options, run, {}).resume(); });
  }

  TemporaryDirectory home_;
  fs::path checkpoint_;
};

TEST_F(DamagedCheckpointTest, TrainingStateIsCheckedFieldByField) {
  EXPECT_EQ(message(), "no error");
  const fs::path path = checkpoint_ / "training.json";
  const std::string whole = read_file(path);
  for (const std::string& content : {std::string(), std::string("{"), std::string("[]"), whole.substr(0, 100)}) {
    write_file(path, content);
    EXPECT_THAT(message(), AllOf(HasSubstr(path.string()), HasSubstr("damaged"))) << content;
  }
  for (const char* key : {"format_version", "step", "tokens", "seconds", "best_step", "evaluations_without_gain"}) {
    for (const nlohmann::json& value : {nlohmann::json("x"), nlohmann::json(-1), nlohmann::json()}) {
      nlohmann::json state = nlohmann::json::parse(whole);
      state[key] = value;
      write_file(path, state.dump());
      EXPECT_THAT(message(), AllOf(HasSubstr(path.string()), HasSubstr(key))) << key << value;
    }
  }
  nlohmann::json state = nlohmann::json::parse(whole);
  state["format_version"] = kTrainingFormatVersion + 1;
  write_file(path, state.dump());
  EXPECT_THAT(message(), AllOf(HasSubstr(path.string()), HasSubstr("use a newer one")));
  state["format_version"] = kTrainingFormatVersion;
  state.erase("task");
  write_file(path, state.dump());
  EXPECT_THAT(message(), HasSubstr(path.string()));
  fs::remove(path);
  EXPECT_THAT(message(), HasSubstr(path.string()));
}

TEST_F(DamagedCheckpointTest, TensorFilesAreChecked) {
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    const fs::path path = checkpoint_ / name;
    const std::string whole = read_file(path);
    write_file(path, whole.substr(0, whole.size() - 1));
    EXPECT_THAT(message(), HasSubstr(path.string()));
    NamedTensors tensors;
    write_tensors(path, tensors);
    EXPECT_THAT(message(), HasSubstr(path.string()));
    write_file(path, whole);
  }
  EXPECT_EQ(message(), "no error");
}

TEST_F(DamagedCheckpointTest, ARunOfOtherOptionsIsRefused) {
  fs::remove_all(home_.path() / "checkpoints");
  FakeTask task = fake_task();
  RunDirectory run(home_.path());
  TrainOptions without_average = everything_at_once();
  without_average.ema_decay = 0;
  without_average.steps = 3;
  Trainer(task, without_average, run, {}).run();
  FakeTask again = fake_task();
  EXPECT_THAT(error_message([&] { Trainer(again, everything_at_once(), run, {}).resume(); }),
              AllOf(HasSubstr("optimizer.safetensors"), HasSubstr("#average")));
}

TEST(TrainingStateTest, ReadsWhatItWrote) {
  const TemporaryDirectory home;
  const TrainingState state{.step = 7,
                            .tokens = int64_t{1} << 40,
                            .seconds = 1.5,
                            .best_loss = 0.1,
                            .best_step = 5,
                            .evaluations_without_gain = 2,
                            .task = {{"a", {1, 2}}}};
  write_training_state(home / "x", state);
  const TrainingState read = read_training_state(home / "x");
  EXPECT_EQ(read.step, 7);
  EXPECT_EQ(read.tokens, state.tokens);
  EXPECT_EQ(read.seconds, 1.5);
  EXPECT_EQ(read.best_loss, 0.1);
  EXPECT_EQ(read.best_step, 5);
  EXPECT_EQ(read.evaluations_without_gain, 2);
  EXPECT_EQ(read.task, state.task);
  write_training_state(home / "x", {});
  EXPECT_FALSE(read_training_state(home / "x").best_loss);
}

TEST(TrainingStateTest, CountsAreWholeNumbersOf63Bits) {
  const TemporaryDirectory home;
  write_training_state(home / "x", {.step = 7, .best_loss = {}, .task = {}});
  nlohmann::json object = nlohmann::json::parse(read_file(home / "x"));
  for (const nlohmann::json& step : {nlohmann::json(1e19), nlohmann::json(2.5), nlohmann::json(uint64_t{1} << 63)}) {
    object["step"] = step;
    write_file(home / "x", object.dump());
    EXPECT_THROW(read_training_state(home / "x"), Error) << step;
  }
}

}  // namespace
}  // namespace headshare
