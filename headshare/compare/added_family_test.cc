// This test adds a family of tasks with options and data of its own, which exists only here and shows what adding one
// takes.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/compare/cell_run.h"
#include "headshare/compare/check_comparison.h"
#include "headshare/compare/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/evaluation_mode.h"
#include "headshare/tasks/prepare_model.h"

namespace headshare {
namespace {

using testing::HasSubstr;

constexpr int64_t kLength = 8;
constexpr int64_t kRows = 4;

struct CountingOptions {
  int64_t modulus = 5;
};

Fields counting_fields(CountingOptions& o) {
  return {field("modulus", &o.modulus, "numbers count up to it", {.min = 2})};
}

DecoderOptions decoder_of(const TaskOptions& options) {
  DecoderOptions model = options.model;
  model.vocabulary = options.own<CountingOptions>().modulus;
  model.context = kLength;
  return resolve(model);
}

// CountingTask learns rows n, n + 1, n + 2, ... modulo a number; each row begins with another n.
class CountingTask : public Task {
 public:
  CountingTask(const TaskOptions& options, uint64_t seed, c10::Device device, const TrainingShape& shape)
      : modulus_(options.own<CountingOptions>().modulus), model_(decoder_of(options)) {
    prepare(model_, seed, device, shape);
  }

  std::shared_ptr<torch::nn::Module> model() override { return model_.ptr(); }
  DropoutClock& clock() override { return model_->clock(); }
  int64_t draw(int64_t micro_batches) override { return micro_batches * kRows * kLength; }
  Tensor loss_sum(int64_t) override {
    const Tensor numbers = at::arange(kRows).unsqueeze(1) + at::arange(kLength + 1).unsqueeze(0);
    const Tensor rows = numbers.remainder(modulus_);  // [kRows, kLength + 1]
    return model_->loss(rows.narrow(1, 0, kLength), rows.narrow(1, 1, kLength)).sum;
  }
  Evaluation evaluate(Part, const Task::Progress&) override {
    const EvaluationMode evaluating(model());
    const at::NoGradGuard no_grad;
    const double loss = loss_sum(0).item<double>() / (kRows * kLength);
    return {.loss = loss,
            .targets = kRows * kLength,
            .scores = {{.name = "surprise", .value = loss, .signature = "surprise"}},
            .blocks = {loss, loss}};
  }
  bool has(Part) const override { return true; }
  nlohmann::json state() const override { return nlohmann::json::object(); }
  void restore(const nlohmann::json&, const std::string&) override {}
  void save(const std::string& directory) override { save_model(directory, model_, nullptr); }
  double epochs() const override { return 0; }

  Decoder& decoder() { return model_; }

 private:
  int64_t modulus_;
  Decoder model_;
};

class CountingExperiment : public Experiment {
 public:
  Subject subject() const override {
    return {.name = "counting", .sentence = "Count.", .data = "numbers", .measure = "surprise", .block = "halves"};
  }
  bool has(Part) const override { return true; }
  ModelOptions model(const TaskOptions& options) const override { return decoder_of(options); }
  Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
              const TrainingShape& shape) const override {
    auto task = std::make_unique<CountingTask>(options, seed, device, shape);
    const Decoder decoder = task->decoder();
    return {std::move(task), decoder->options(), decoder.ptr()};
  }
  void share(const fs::path&, TaskOptions*) const override {}
};

class CountingFamily : public TaskFamily {
 public:
  std::vector<std::string> tasks() const override { return {"counting"}; }
  std::string learns() const override { return "the next number"; }
  std::string heading() const override { return "Counting"; }
  Fields fields(TaskOptions& options) const override { return counting_fields(options.own<CountingOptions>()); }
  void set_defaults(const TaskOptions&, TaskOptions* options, TrainOptions*) const override {
    options->model.attention = {.d_model = 16, .heads = 2};
    options->model.layers = 1;
  }
  void set_preset(Preset, TaskOptions*, TrainOptions* train) const override {
    train->steps = 30;
    train->schedule.learning_rate = 0.02;
  }
  void check(const TaskOptions&, const TaskOptions&) const override {}
  ModelOptions likely_model(const TaskOptions& options) const override { return decoder_of(options); }
  std::unique_ptr<Experiment> open(const TaskOptions&, const Progress&) const override {
    return std::make_unique<CountingExperiment>();
  }
};

class AddedFamilyTest : public testing::Test {
 protected:
  const CountingFamily family_;
  const AddedFamily added_{family_};
};

TEST_F(AddedFamilyTest, IsComparedLikeAnyOther) {
  const TemporaryDirectory home;
  ComparisonOptions options = preset_options("counting", Preset::kQuick);
  options.schemes = {"mha", "mhe_mul"};
  options.train.evaluate_every = 15;
  Fields list = fields(options);
  set_field(list, "modulus", "3", "--modulus");
  check_comparison(options);
  const auto experiment = open_experiment(options);
  Observer silent;
  for (const CellPlan& plan : plan_cells(options, *experiment)) {
    // The process of a cell reads its options in this way.
    const CellPlan read = plan_from_json(to_json(plan), "plan.json");
    const Cell cell = run_cell(read, *experiment, place_in(home.path(), read), at::kCPU, silent, kNeverStop);
    EXPECT_EQ(cell.options.at("modulus"), 3);
    EXPECT_EQ(cell.quality, cell.test_loss);
    EXPECT_LT(cell.test_loss, cell.curve.front().validation_loss);
    EXPECT_LT(cell.test_loss, 0.9 * std::log(3));  // it learned to count
  }
}

TEST_F(AddedFamilyTest, ItsOptionsAreItsOwn) {
  ComparisonOptions options = preset_options("counting", Preset::kQuick);
  Fields list = fields(options);
  EXPECT_THAT(find_field(list, "task")->range, HasSubstr("|counting"));
  EXPECT_THAT(find_field(list, "task")->help, HasSubstr("counting: the next number"));
  set_field(list, "mask-rate", "0.3", "--mask-rate");
  EXPECT_THAT(error_message([&] { check_comparison(options); }), HasSubstr("--mask-rate belongs to --task mlm"));
  ComparisonOptions text = preset_options("language-model", Preset::kQuick);
  text.own<CountingOptions>().modulus = 4;
  EXPECT_THAT(error_message([&] { check_comparison(text); }),
              HasSubstr("--modulus belongs to --task counting; the task is language-model"));
}

}  // namespace
}  // namespace headshare
