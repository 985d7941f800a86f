// For tests only, this is a small regression with dropout, with its own stream of examples and an observer that
// records.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "headshare/models/checkpoint.h"
#include "headshare/ops/linear.h"
#include "headshare/train/observer.h"
#include "headshare/train/task.h"

namespace headshare {

constexpr int64_t kFakeWidth = 4;
constexpr int64_t kFakeExamples = 20;  // an epoch

// The model maps x [B, 4] -> [B, 1] through 8 hidden units, and has three numbers that cannot matter.
class FakeModelImpl : public Layer {
 public:
  explicit FakeModelImpl(double dropout)
      : inert(declare("inert", {3}, Init::normal(1), Decay::kNo, Role::kInert)),
        hidden(register_module("hidden", Linear(kFakeWidth, 8, Bias::kYes, Init::normal(0.5)))),
        out(register_module("out", Linear(8, 1, Bias::kYes, Init::normal(0.5)))),
        clock(std::make_shared<DropoutClock>()),
        dropout_(dropout) {
    attach(*this, clock);
    initialise(*this, /*seed=*/3);
  }

  Tensor forward(const Tensor& x) const {
    return out->forward(headshare::dropout(at::tanh(hidden->forward(x)), dropout_, *this));
  }

  Tensor inert;
  Linear hidden, out;
  std::shared_ptr<DropoutClock> clock;

 private:
  double dropout_;
};
TORCH_MODULE(FakeModel);

class FakeTask : public Task {
 public:
  enum class Poison { kNone, kLoss, kGradient };
  struct Options {
    double dropout = 0;
    std::vector<int64_t> rows = {4};  // of the micro-batches, in turn: how many targets each has
    int64_t poisoned_draw = -1;       // counted from 0
    Poison poison = Poison::kNone;
    std::vector<double> losses = {};  // what evaluations give in turn; empty: what the model gives
    bool judged = true;
    std::optional<double> teacher_loss = {};  // what evaluate_teacher() gives
  };

  explicit FakeTask(Options options) : options_(std::move(options)), model_(options_.dropout) {}

  std::shared_ptr<torch::nn::Module> model() override { return model_.ptr(); }
  DropoutClock& clock() override { return *model_->clock; }

  int64_t draw(int64_t micro_batches) override {
    drawn_.clear();
    int64_t targets = 0;
    for (int64_t i = 0; i < micro_batches; ++i, ++micro_batches_) {
      const auto turn = static_cast<size_t>(micro_batches_) % options_.rows.size();
      drawn_.push_back({examples_, options_.rows[turn]});
      examples_ += options_.rows[turn];
      targets += options_.rows[turn];
    }
    poisoned_ = draws_++ == options_.poisoned_draw;
    return targets;
  }

  Tensor loss_sum(int64_t index) override {
    const auto [first, rows] = drawn_.at(static_cast<size_t>(index));
    Tensor loss = squared_errors(first, rows).sum();
    last_sum_ = loss.detach();
    if (!poisoned_) return loss;
    if (options_.poison == Poison::kLoss) return loss + std::nan("");
    return loss + (model_->out->bias * 0).sqrt().sum();  // a finite loss; the slope of a root at 0 is not
  }

  Evaluation evaluate(Part, const Task::Progress& progress) override {
    if (progress) progress(1, 1);
    const at::NoGradGuard no_grad;
    seen_by_evaluation = weights();
    model_->eval();
    const Tensor errors = squared_errors(1000, 8);
    model_->train();
    Evaluation result{.loss = errors.mean().item<double>(), .targets = 8};
    if (!options_.losses.empty()) result.loss = options_.losses.at(static_cast<size_t>(evaluations_));
    ++evaluations_;
    return result;
  }

  std::optional<Evaluation> evaluate_teacher(const Task::Progress& progress) override {
    if (!options_.teacher_loss) return std::nullopt;
    if (progress) progress(1, 1);
    return Evaluation{.loss = *options_.teacher_loss, .targets = 8};
  }

  // The plain loss is half of the loss, as if the other half came from a teacher.
  std::optional<double> plain_loss_sum() const override {
    return options_.teacher_loss ? std::optional(last_sum_.item<double>() / 2) : std::nullopt;
  }

  bool has(Part) const override { return options_.judged; }

  nlohmann::json state() const override {
    return {
        {"examples", examples_}, {"micro_batches", micro_batches_}, {"draws", draws_}, {"evaluations", evaluations_}};
  }

  void restore(const nlohmann::json& state, const std::string& where) override {
    HS_CHECK(state.is_object() && state.contains("examples"), where, ": no place in the data");
    examples_ = state.at("examples");
    micro_batches_ = state.at("micro_batches");
    draws_ = state.at("draws");
    evaluations_ = state.at("evaluations");
  }

  void save(const std::string& directory) override {
    write_tensors(fs::path(directory) / "model.safetensors", model_tensors(*model_));
  }

  double epochs() const override { return static_cast<double>(examples_) / kFakeExamples; }

  // Returns a copy of the parameters.
  NamedTensors weights() const {
    NamedTensors copy;
    for (const auto& [name, tensor] : model_tensors(*model_)) copy.emplace(name, tensor.detach().clone());
    return copy;
  }

  FakeModel& fake() { return model_; }

  NamedTensors seen_by_evaluation;  // the parameters the last evaluation looked at

 private:
  // Example i is drawn from a stream of its own, so that batches of any size see the same examples.
  Tensor squared_errors(int64_t first, int64_t rows) const {
    std::vector<Tensor> inputs;
    for (int64_t i = first; i < first + rows; ++i) {
      const auto key = static_cast<uint64_t>(i < 1000 ? i % kFakeExamples : i);
      inputs.push_back(at::empty({kFakeWidth}).normal_(0, 1, keyed_generator(at::kCPU, key + 1)));
    }
    const Tensor x = at::stack(inputs);                                   // [rows, 4]
    const Tensor y = (x.select(1, 0) * 2 - x.select(1, 1)).unsqueeze(1);  // [rows, 1]
    return (model_->forward(x) - y).square();
  }

  Options options_;
  FakeModel model_;
  std::vector<std::pair<int64_t, int64_t>> drawn_;  // first example, rows
  Tensor last_sum_;
  int64_t examples_ = 0;
  int64_t micro_batches_ = 0;
  int64_t draws_ = 0;
  int64_t evaluations_ = 0;
  bool poisoned_ = false;
};

// This is not an Error: it is as abrupt as a killed process.
struct Crash : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Remembers what was reported; `at_step` is called after each report of a step.
class Recorder : public Observer {
 public:
  explicit Recorder(std::function<void(int64_t step)> at_step = {}) : at_step_(std::move(at_step)) {}

  void on_step(const StepReport& report) override {
    losses.push_back(report.loss);
    plain_losses.push_back(report.plain_loss);
    if (at_step_) at_step_(report.step);
  }
  void on_evaluation(const EvaluationReport& report) override { evaluations.push_back(report); }

  void on_teacher(const Evaluation& teacher) override { teachers.push_back(teacher.loss); }

  std::vector<double> losses;
  std::vector<std::optional<double>> plain_losses;
  std::vector<double> teachers;
  std::vector<EvaluationReport> evaluations;

 private:
  std::function<void(int64_t)> at_step_;
};

// Returns the largest difference between tensors of the same names.
inline double largest_difference(const NamedTensors& a, const NamedTensors& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (const auto& [name, tensor] : a) {
    largest = std::max(largest, (tensor - b.at(name)).abs().max().item<double>());
  }
  return largest;
}

}  // namespace headshare
