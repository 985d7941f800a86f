#include "headshare/bench/step_bench.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/bench/process_memory.h"
#include "headshare/models/decoder.h"
#include "headshare/models/size.h"
#include "headshare/ops/device_memory.h"
#include "headshare/train/optimizer.h"
#include "headshare/train/step.h"

namespace headshare {
namespace {

constexpr double kLearningRate = 1e-4;

DecoderOptions model_of(const StepCase& one) {
  DecoderOptions options;
  options.vocabulary = one.vocabulary;
  options.context = one.length;
  options.layers = one.layers;
  options.attention.scheme = one.scheme;
  options.attention.heads = one.heads;
  options.attention.d_model = one.heads * one.head_width;
  return resolve(options);
}

// This task learns the same random tokens by heart again and again: no time goes into data.
class RandomTokens : public Task {
 public:
  explicit RandomTokens(const StepCase& one) : model_(model_of(one)) {
    initialise(*model_, /*seed=*/1);
    model_->to(one.device);
    const Tensor ids =
        at::randint(one.vocabulary, {one.batch, one.length + 1}, keyed_generator(at::kCPU, /*key=*/29), at::kLong)
            .to(one.device);
    inputs_ = ids.slice(1, 0, one.length).contiguous();
    targets_ = ids.slice(1, 1).contiguous();
  }

  std::shared_ptr<torch::nn::Module> model() override { return model_.ptr(); }
  DropoutClock& clock() override { return model_->clock(); }
  int64_t draw(int64_t micro_batches) override { return micro_batches * targets_.numel(); }
  Tensor loss_sum(int64_t /*index*/) override { return model_->loss(inputs_, targets_).sum; }
  Evaluation evaluate(Part /*part*/, const Progress& /*progress*/) override { throw Error("nothing is judged here"); }
  bool has(Part /*part*/) const override { return false; }
  nlohmann::json state() const override { return {}; }
  void restore(const nlohmann::json& /*state*/, const std::string& /*where*/) override {}
  void save(const std::string& /*directory*/) override { throw Error("this model is not kept"); }
  double epochs() const override { return 0; }

  const Decoder& decoder() const { return model_; }
  // The first sequence: inputs and targets, [1, T] each.
  std::pair<Tensor, Tensor> first() const { return {inputs_.slice(0, 0, 1), targets_.slice(0, 0, 1)}; }

 private:
  Decoder model_;
  Tensor inputs_, targets_;  // [B, T]
};

Lesson lesson_of(const Decoder& model, const std::pair<Tensor, Tensor>& sequence) {
  std::vector<Tensor> weights;
  for (const Tensor& one : model->parameters()) {
    if (one.requires_grad()) weights.push_back(one);
  }
  const Tensor loss = model->loss(sequence.first, sequence.second).sum / sequence.second.numel();
  double squares = 0;
  for (const Tensor& one : torch::autograd::grad({loss}, weights, {}, {}, /*create_graph=*/false,
                                                 /*allow_unused=*/true)) {
    if (one.defined()) squares += std::pow(one.norm().item<double>(), 2);
  }
  return {loss.item<double>(), std::sqrt(squares)};
}

Decoder copy_in_double(const Decoder& model) {
  Decoder copy(model->options());
  copy->to(model->device(), at::kDouble);
  const at::NoGradGuard no_grad;
  const auto from = model->named_parameters();
  for (auto& one : copy->named_parameters()) one.value().copy_(from[one.key()]);
  return copy;
}

// Rounding moves a mean over many tokens by far less than one number: these are hundreds of its roundings, and less
// than any wrong formula.
double tolerance_of(Precision precision) { return precision == Precision::kBf16 ? 0.05 : 1e-3; }

std::string check(const RandomTokens& task, const StepCase& one) {
  const Lesson exact = lesson_of(copy_in_double(task.decoder()), task.first());
  const ComputeIn guard(one.precision, one.device.type());
  return why_wrong(lesson_of(task.decoder(), task.first()), exact, one.precision);
}

// A learner is a model in training.
struct Learner {
  StepCase of;
  std::unique_ptr<RandomTokens> task;
  std::unique_ptr<Optimizer> optimizer;
  int64_t steps = 0;

  void step() {
    const StepSums sums = take_step(*task, *optimizer, {.precision = of.precision}, steps++, kLearningRate);
    HS_CHECK(!sums.not_finite(), case_name(of), ": the ", sums.not_finite()->first, " became ",
             sums.not_finite()->second, " in step ", steps);
  }
};

Learner make_learner(const StepCase& one) {
  Learner learner{.of = one, .task = std::make_unique<RandomTokens>(one), .optimizer = nullptr};
  learner.optimizer = std::make_unique<Optimizer>(*learner.task->model(), OptimizerOptions());
  return learner;
}

StepRow prepare(Learner* learner, const StepBenchOptions& options) {
  const StepCase& one = learner->of;
  StepRow row{.of = one, .parameters = measure(model_of(one)).total_parameters};
  options.turns.between();
  row.refused = check(*learner->task, one);
  if (!row.refused.empty()) return row;
  learner->step();  // the optimizer's moments and what libtorch keeps are there before memory is counted
  options.turns.between();
  const auto run = [&] { learner->step(); };
  row.peak_bytes = one.device.is_cpu() ? peak_bytes_of(run) : device_bytes_of(one.device, run);
  return row;
}

void fill_in(const Timing& timing, double roof, StepRow* row) {
  row->timing = timing;
  row->tokens_per_second = 1000 * static_cast<double>(row->of.batch * row->of.length) / timing.median_ms;
  row->rate = {
      .kind = RoofKind::kProduct, .per_second = 1000 * operations_of(row->of) / timing.median_ms, .roof = roof};
}

}  // namespace

std::string case_name(const StepCase& one) {
  std::string name = join_text(one.scheme, " step L", one.layers, " H", one.heads, " T", one.length, " D",
                               one.head_width, " V", one.vocabulary, " B", one.batch);
  if (one.precision != Precision::kFp32) name += join_text(" ", precision_name(one.precision));
  if (!one.device.is_cpu()) name += join_text(" ", one.device.str());
  return name;
}

Fields fields(StepGrid& g) {
  return {
      field("layers", &g.layers, "blocks of the model", {.min = 1, .max = 1024}),
      field("vocabulary", &g.vocabulary, "tokens that the model knows", {.min = 2, .max = 1 << 24}),
  };
}

std::vector<StepCase> step_cases_of(const AttentionGrid& attention, const StepGrid& grid) {
  std::vector<StepCase> cases;
  for (const Precision precision : precisions_of(attention, product_precision_names())) {
    for (const int64_t heads : attention.heads) {
      for (const int64_t length : attention.lengths) {
        for (const std::string& scheme : chosen_schemes(attention.schemes)) {
          cases.push_back({.scheme = scheme,
                           .layers = grid.layers,
                           .heads = heads,
                           .head_width = attention.head_width,
                           .vocabulary = grid.vocabulary,
                           .batch = batch_size_of(attention, length),
                           .length = length,
                           .precision = resolve_precision(precision, attention.device),
                           .device = attention.device});
          model_of(cases.back());  // throws where such a model is impossible
        }
      }
    }
  }
  return cases;
}

std::string why_wrong(const Lesson& found, const Lesson& exact, Precision precision) {
  const double allowed = tolerance_of(precision);
  const auto far = [&](double a, double b) { return !(std::abs(a - b) <= allowed * std::abs(b)); };
  if (far(found.loss, exact.loss)) {
    return join_text("the loss is ", found.loss, ", and in double precision ", exact.loss);
  }
  if (far(found.gradient_norm, exact.gradient_norm)) {
    return join_text("the gradient is ", found.gradient_norm, " long, and in double precision ", exact.gradient_norm);
  }
  return "";
}

double operations_of(const StepCase& one) {
  const DecoderOptions model = model_of(one);
  const int64_t E = model.attention.d_model;
  const int64_t weights = measure(model).attention_parameters + 2 * one.layers * E * *model.feed_forward_width +
                          one.vocabulary * E;  // of attention, feed-forward layers and the output layer
  AttentionCase layer{.scheme = one.scheme,
                      .batch = 1,
                      .heads = one.heads,
                      .head_width = one.head_width,
                      .queries = 2,
                      .keys = 2,
                      .causal = true,
                      .pass = Pass::kTraining};
  const CaseInputs inputs = make_inputs(layer, Fill::kUniform);  // its widths count, not its length
  layer.batch = one.batch;
  layer.queries = layer.keys = one.length;
  return 6.0 * static_cast<double>(one.batch * one.length) * static_cast<double>(weights) +
         static_cast<double>(one.layers) * operations_of(layer, inputs.problem());
}

std::vector<StepRow> bench_steps(const std::vector<StepCase>& group, const StepBenchOptions& options) {
  HS_DCHECK(!group.empty());
  const StepCase& first = group.front();
  std::vector<Learner> learners;
  std::vector<StepRow> rows;
  for (const StepCase& one : group) {
    HS_DCHECK(one.device == first.device);
    HS_CHECK(one.precision == first.precision, "steps that take turns must have one precision, not ",
             precision_name(first.precision), " and ", precision_name(one.precision),
             "; choose one of --precisions, or leave --together out");
    learners.push_back(make_learner(one));
    rows.push_back(prepare(&learners.back(), options));
  }
  const std::vector<RoofWay> roof =
      roof_ways({.precision = first.precision, .device = first.device, .small = options.small_roofs});
  std::vector<std::function<void()>> actions;
  for (const RoofWay& way : roof) actions.push_back(way.run);
  std::vector<StepRow*> timed;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].refused.empty()) continue;
    timed.push_back(&rows[i]);
    actions.emplace_back([&learner = learners[i]] { learner.step(); });
  }
  TurnOptions turns = options.turns;
  turns.device = first.device;
  const std::vector<Timing> timings = take_turns(actions, turns);
  const auto behind_roof = timings.begin() + static_cast<std::ptrdiff_t>(roof.size());
  const double peak = roof_of(roof, {timings.begin(), behind_roof});
  for (size_t i = 0; i < timed.size(); ++i) fill_in(timings[roof.size() + i], peak, timed[i]);
  return rows;
}

}  // namespace headshare
