#include "headshare/train/optimizer.h"

#include <gmock/gmock.h>

#include <cmath>

#include "headshare/base/testing.h"
#include "headshare/train/fake_task.h"

namespace headshare {
namespace {

using testing::HasSubstr;

// Sets a gradient for each learned parameter, other ones each step.
void set_gradients(FakeModel& model, int64_t step) {
  for (const Declared& one : declared_parameters(*model)) {
    if (one.role == Role::kInert) continue;
    const Tensor drawn =
        at::empty(one.tensor.sizes()).normal_(0, 1, keyed_generator(at::kCPU, static_cast<uint64_t>(100 * step + 1)));
    one.tensor.mutable_grad() = drawn;
  }
}

// This is the formula of optimizer.h for one number, in doubles.
struct PlainAdamW {
  OptimizerOptions options;
  double value = 0;
  double decay = 0;
  double first = 0;
  double second = 0;
  int steps = 0;

  void step(double gradient, double rate) {
    ++steps;
    first = options.beta1 * first + (1 - options.beta1) * gradient;
    second = options.beta2 * second + (1 - options.beta2) * gradient * gradient;
    const double mean = first / (1 - std::pow(options.beta1, steps));
    const double root = std::sqrt(second / (1 - std::pow(options.beta2, steps)));
    value = value * (1 - rate * decay) - rate * mean / (root + options.epsilon);
  }
};

TEST(OptimizerTest, AdamWFollowsTheFormulaOnEveryElement) {
  FakeModel model(0);
  const OptimizerOptions options{.beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.3};
  Optimizer optimizer(*model, options);
  std::map<std::string, std::vector<PlainAdamW>> plain;
  for (const Declared& one : declared_parameters(*model)) {
    // Matrices decay, biases do not.
    const double decay = one.name.ends_with("weight") ? options.weight_decay : 0;
    for (int64_t i = 0; i < one.tensor.numel(); ++i) {
      plain[one.name].push_back({.options = options, .value = one.tensor.flatten()[i].item<double>(), .decay = decay});
    }
  }
  for (int64_t step = 0; step < 5; ++step) {
    set_gradients(model, step);
    const double rate = 0.1 / static_cast<double>(step + 1);
    for (const Declared& one : declared_parameters(*model)) {
      if (one.role == Role::kInert) continue;
      const Tensor gradient = one.tensor.grad().flatten();
      for (int64_t i = 0; i < gradient.numel(); ++i) {
        plain[one.name][static_cast<size_t>(i)].step(gradient[i].item<double>(), rate);
      }
    }
    optimizer.step(rate);
  }
  for (const Declared& one : declared_parameters(*model)) {
    for (int64_t i = 0; i < one.tensor.numel(); ++i) {
      // The tolerance allows five steps of a few roundings of numbers of about 1 each, in float32.
      EXPECT_NEAR(one.tensor.flatten()[i].item<double>(), plain[one.name][static_cast<size_t>(i)].value, 3e-6)
          << one.name << " " << i;
    }
  }
}

// The test computes the formula for LAMB, tensor by tensor in doubles.
TEST(OptimizerTest, LambFollowsTheFormulaOnEveryTensor) {
  FakeModel model(0);
  const OptimizerOptions options{
      .kind = OptimizerKind::kLamb, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.3};
  {
    const at::NoGradGuard no_grad;
    model->out->weight.zero_();  // a tensor without a length moves as others do
  }
  Optimizer optimizer(*model, options);
  struct Plain {
    Tensor value, first, second;
  };
  std::map<std::string, Plain> plain;
  for (const Declared& one : declared_parameters(*model)) {
    const Tensor value = one.tensor.detach().to(at::kDouble).clone();
    plain[one.name] = {value, at::zeros_like(value), at::zeros_like(value)};
  }
  for (int step = 1; step <= 5; ++step) {
    set_gradients(model, step);
    const double rate = 0.1 / step;
    for (const Declared& one : declared_parameters(*model)) {
      if (one.role == Role::kInert) continue;
      const Tensor gradient = one.tensor.grad().to(at::kDouble);
      Plain& p = plain[one.name];
      p.first = 0.8 * p.first + 0.2 * gradient;
      p.second = 0.9 * p.second + 0.1 * gradient * gradient;
      const Tensor root = (p.second / (1 - std::pow(0.9, step))).sqrt();
      const bool decays = one.name.ends_with("weight");
      const Tensor update = p.first / (1 - std::pow(0.8, step)) / (root + 1e-3) + (decays ? 0.3 : 0) * p.value;
      const double length = p.value.norm().item<double>();
      const double ratio = decays && length > 0 ? length / update.norm().item<double>() : 1;
      p.value = p.value - rate * ratio * update;
    }
    optimizer.step(rate);
  }
  for (const Declared& one : declared_parameters(*model)) {
    // The tolerance allows five steps of a few roundings of numbers of about 1 each, in float32.
    EXPECT_LT((one.tensor - plain[one.name].value).abs().max().item<double>(), 3e-6) << one.name;
  }
}

TEST(OptimizerTest, LambGoesOnFromItsState) {
  const OptimizerOptions options{.kind = OptimizerKind::kLamb};
  FakeModel through(0), stopped(0);
  Optimizer one(*through, options), first_half(*stopped, options);
  for (int64_t step = 0; step < 4; ++step) {
    set_gradients(through, step);
    one.step(0.01);
  }
  for (int64_t step = 0; step < 2; ++step) {
    set_gradients(stopped, step);
    first_half.step(0.01);
  }
  Optimizer second_half(*stopped, options);
  second_half.load(first_half.state(), "here");
  for (int64_t step = 2; step < 4; ++step) {
    set_gradients(stopped, step);
    second_half.step(0.01);
  }
  EXPECT_TRUE(at::equal(through->out->weight, stopped->out->weight));
}

TEST(OptimizerTest, LeavesInertParametersAndThoseWithoutGradientAlone) {
  FakeModel model(0);
  Optimizer optimizer(*model, {});
  set_gradients(model, 0);
  model->inert.mutable_grad() = at::ones({3});
  model->out->bias.mutable_grad().reset();
  const Tensor inert = model->inert.detach().clone();
  const Tensor bias = model->out->bias.detach().clone();
  EXPECT_FALSE(optimizer.state().contains("inert#steps"));
  optimizer.step(0.1);
  EXPECT_TRUE(at::equal(model->inert, inert));
  EXPECT_TRUE(at::equal(model->out->bias, bias));
  EXPECT_EQ(optimizer.state().at("out.bias#steps").item<double>(), 0);
  EXPECT_EQ(optimizer.state().at("out.weight#steps").item<double>(), 1);
  optimizer.zero_gradients();
  EXPECT_FALSE(model->out->weight.grad().defined());
}

TEST(OptimizerTest, MeasuresTheNormOfAllGradientsTogether) {
  FakeModel model(0);
  Optimizer optimizer(*model, {});
  EXPECT_EQ(optimizer.measure_gradients(1, 1), 0);  // no gradients yet
  set_gradients(model, 0);
  model->inert.mutable_grad() = at::full({3}, 1e6);  // must not count
  double squares = 0;
  for (const Declared& one : declared_parameters(*model)) {
    if (one.role == Role::kLearned) squares += one.tensor.grad().to(at::kDouble).square().sum().item<double>();
  }
  const double norm = std::sqrt(squares);
  const Tensor before = model->out->weight.grad().clone();
  EXPECT_NEAR(optimizer.measure_gradients(1, 0), norm, 1e-6 * norm);
  EXPECT_NEAR(optimizer.measure_gradients(8, norm), norm / 8, 1e-6 * norm);
  EXPECT_NEAR(optimizer.measure_gradients(1, norm / 4), norm, 1e-6 * norm);  // the norm before clipping
  EXPECT_TRUE(at::equal(model->out->weight.grad(), before));
}

// A step takes gradients divided and clipped, once. The large epsilon makes lengths count.
TEST(OptimizerTest, TakesGradientsDividedAndClipped) {
  for (const OptimizerKind kind : {OptimizerKind::kAdamW, OptimizerKind::kLamb}) {
    const OptimizerOptions options{.kind = kind, .epsilon = 1, .weight_decay = 0.1};
    FakeModel model(0), plain(0);
    Optimizer optimizer(*model, options), other(*plain, options);
    set_gradients(model, 0);
    const double norm = optimizer.measure_gradients(1, 0);
    for (const double most : {0.0, norm / 32, 2 * norm, 0.0}) {
      set_gradients(model, 1);
      set_gradients(plain, 1);
      const double length = optimizer.measure_gradients(8, most);
      const double divisor = 8 * (most > 0 && length > most ? (length + 1e-6) / most : 1);
      for (const Declared& one : declared_parameters(*plain)) {
        if (one.role == Role::kLearned) one.tensor.mutable_grad().div_(divisor);
      }
      optimizer.step(0.1);
      other.step(0.1);
    }
    for (const auto& [name, tensor] : model_tensors(*model)) {
      EXPECT_TRUE(at::allclose(tensor, model_tensors(*plain).at(name), 1e-5, 1e-6)) << name;
    }
  }
}

TEST(OptimizerTest, GoesOnFromItsStateToTheLastBit) {
  const TemporaryDirectory directory;
  FakeModel through(0), stopped(0);
  Optimizer one(*through, {}), first_half(*stopped, {});
  for (int64_t step = 0; step < 6; ++step) {
    set_gradients(through, step);
    one.step(0.01);
    if (step >= 3) continue;
    set_gradients(stopped, step);
    first_half.step(0.01);
  }
  write_tensors(directory / "optimizer", first_half.state());
  Optimizer second_half(*stopped, {});
  second_half.load(read_tensors(directory / "optimizer"), "optimizer");
  for (int64_t step = 3; step < 6; ++step) {
    set_gradients(stopped, step);
    second_half.step(0.01);
  }
  for (const auto& [name, tensor] : model_tensors(*through)) {
    EXPECT_TRUE(at::equal(tensor, model_tensors(*stopped).at(name))) << name;
  }
  for (const auto& [name, tensor] : one.state()) EXPECT_TRUE(at::equal(tensor, second_half.state().at(name))) << name;
}

TEST(OptimizerTest, RefusesTheStateOfAnotherModel) {
  FakeModel model(0);
  Optimizer optimizer(*model, {});
  NamedTensors state = optimizer.state();
  state["out.bias#steps"] = at::zeros({2});
  EXPECT_THAT(error_message([&] { optimizer.load(state, "here"); }),
              testing::AllOf(HasSubstr("here"), HasSubstr("out.bias#steps"), HasSubstr("[2]")));
  state.erase("out.bias#steps");
  EXPECT_THAT(error_message([&] { optimizer.load(state, "here"); }),
              testing::AllOf(HasSubstr("out.bias#steps"), HasSubstr("missing")));
}

TEST(MovingAverageTest, AveragesAndSwaps) {
  FakeModel model(0);
  MovingAverage average(*model, 0.75);
  const Tensor& weight = model->out->weight;
  Tensor expected = weight.detach().to(at::kDouble);
  const at::NoGradGuard no_grad;
  for (int step = 1; step <= 4; ++step) {
    model->out->weight.add_(step);
    average.update();
    expected = 0.75 * expected + 0.25 * weight.to(at::kDouble);
  }
  const Tensor now = weight.clone();
  average.swap();
  EXPECT_LT((weight.to(at::kDouble) - expected).abs().max().item<double>(), 2e-6);
  EXPECT_TRUE(at::equal(average.state().at("out.weight#average"), now));
  average.swap();
  EXPECT_TRUE(at::equal(weight, now));

  MovingAverage again(*model, 0.75);
  again.load(average.state(), "here");
  again.swap();
  EXPECT_LT((weight.to(at::kDouble) - expected).abs().max().item<double>(), 2e-6);
  EXPECT_THAT(error_message([&] { again.load({}, "here"); }), HasSubstr("#average' is missing"));
}

}  // namespace
}  // namespace headshare
