#include <gmock/gmock.h>

#include "headshare/base/notice.h"
#include "headshare/base/testing.h"
#include "headshare/train/fake_task.h"
#include "headshare/train/trainer.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TrainOptions four_steps() {
  TrainOptions options{.steps = 4, .evaluate_every = 2, .save_every = 1, .log_every = 1};
  options.evaluate_start = options.evaluate_teacher = true;
  return options;
}

std::vector<int64_t> steps_of(const std::vector<EvaluationReport>& evaluations) {
  std::vector<int64_t> steps;
  for (const EvaluationReport& report : evaluations) steps.push_back(report.step);
  return steps;
}

TEST(StartOfCurveTest, ModelAndTeacherAreEvaluatedBeforeTheFirstStep) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  FakeTask task({.losses = {8, 6, 7}, .teacher_loss = 4});
  Recorder recorder;
  const NamedTensors start = task.weights();
  const TrainResult result = Trainer(task, four_steps(), run, {&recorder}).run();
  EXPECT_THAT(steps_of(recorder.evaluations), ElementsAre(0, 2, 4));
  EXPECT_THAT(recorder.teachers, ElementsAre(4));
  EXPECT_FALSE(recorder.evaluations[0].recovered);
  EXPECT_EQ(recorder.evaluations[1].recovered, 0.5);
  EXPECT_EQ(recorder.evaluations[2].recovered, 0.25);
  const nlohmann::json object = to_json(result);
  EXPECT_EQ(object["start_loss"], 8);
  EXPECT_EQ(object["teacher_loss"], 4);
  EXPECT_EQ(object["recovered"], 0.5);  // of the best
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(*recorder.plain_losses[i], recorder.losses[i] / 2, 1e-12);
}

TEST(StartOfCurveTest, AStartThatNothingImprovesIsTheBestModel) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  FakeTask task({.losses = {2, 6, 7}});
  const NamedTensors start = task.weights();
  Recorder recorder;
  const TrainResult result = Trainer(task, four_steps(), run, {&recorder}).run();
  EXPECT_EQ(result.best_step, 0);
  EXPECT_EQ(largest_difference(read_tensors(fs::path(result.best_model) / "model.safetensors"), start), 0);
  EXPECT_FALSE(to_json(result).contains("recovered"));
  EXPECT_FALSE(recorder.plain_losses[0]);
}

TEST(StartOfCurveTest, IsNotLookedAtWhereNobodyAsks) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  FakeTask task({.losses = {2, 6}, .teacher_loss = 4});
  Recorder recorder;
  TrainOptions options = four_steps();
  options.evaluate_start = options.evaluate_teacher = false;
  Trainer(task, options, run, {&recorder}).run();
  EXPECT_THAT(steps_of(recorder.evaluations), ElementsAre(2, 4));
  EXPECT_TRUE(recorder.teachers.empty());
}

TEST(StartOfCurveTest, AResumedRunKnowsWhereItStarted) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  const FakeTask::Options fake{.losses = {8, 6, 5}, .teacher_loss = 4};
  FakeTask first(fake);
  Recorder stopped([](int64_t step) {
    if (step == 3) throw Crash("stopped");
  });
  EXPECT_THROW(Trainer(first, four_steps(), run, {&stopped}).run(), Crash);
  FakeTask second(fake);
  Recorder recorder;
  Trainer trainer(second, four_steps(), run, {&recorder});
  EXPECT_EQ(trainer.resume(), 2);
  const TrainResult result = trainer.run();
  EXPECT_THAT(steps_of(recorder.evaluations), ElementsAre(4));
  EXPECT_TRUE(recorder.teachers.empty());
  EXPECT_EQ(recorder.evaluations[0].recovered, 0.75);
  EXPECT_EQ(result.gap.start, 8);
}

// Returns the notices of a run whose first evaluation gives `start`, and what it recorded.
std::string said_of(double start, double teacher, Recorder* recorder) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  FakeTask task({.losses = {start, 2, 1}, .teacher_loss = teacher});
  std::string said;
  const NoticeHandler before = set_notice_handler([&](const std::string& text) { said += text; });
  Trainer(task, four_steps(), run, {recorder}).run();
  set_notice_handler(before);
  return said;
}

TEST(StartOfCurveTest, ATeacherThatIsNoBetterIsSaid) {
  Recorder recorder;
  EXPECT_THAT(said_of(3, 4, &recorder),
              HasSubstr("the teacher's validation loss, 4, is no smaller than the start's, 3"));
  EXPECT_FALSE(recorder.evaluations[2].recovered);
}

TEST(StartOfCurveTest, ATeacherThatIsAsGoodIsSaid) {
  Recorder recorder;
  EXPECT_THAT(said_of(4.0001, 4, &recorder),
              HasSubstr("start 4.0001 and teacher 4 differ by less than 0.01%: there is no gap to recover"));
  EXPECT_FALSE(recorder.evaluations[2].recovered);
}

TEST(StartOfCurveTest, IsStoppedBeforeTheFirstStep) {
  for (const bool teacher_first : {true, false}) {
    const TemporaryDirectory home;
    RunDirectory run(home.path());
    FakeTask task({.losses = {3, 2, 1}, .teacher_loss = 1});
    Recorder recorder;
    TrainOptions options = four_steps();
    options.evaluate_teacher = teacher_first;
    Trainer trainer(task, options, run, {&recorder}, [] { return true; });
    EXPECT_THROW(trainer.run(), Interrupted);
    EXPECT_TRUE(recorder.teachers.empty());
    EXPECT_TRUE(recorder.evaluations.empty());
    EXPECT_TRUE(recorder.losses.empty());
  }
}

}  // namespace
}  // namespace headshare
