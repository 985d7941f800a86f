#include "headshare/attention/rotary.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/kernels/tiles.h"
#include "headshare/ops/parallel.h"
#include "headshare/ops/second_derivative.h"

namespace headshare {
namespace {

using kernels::Bf16;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Turns {
  Tensor cosine, sine;  // [T, D / 2]
};

// Returns the share of each pair that keeps its speed under llama3: 0 where it turns less often within the original
// context than one number of times, 1 where more often than another.
Tensor llama3_shares(const RotaryScaling& scaling, const Tensor& frequencies) {
  const double low = scaling.low_frequency_factor, high = scaling.high_frequency_factor;
  const double turns =
      static_cast<double>(*scaling.original_context) / (2 * std::numbers::pi);  // of a pair with the frequency 1
  return ((frequencies * turns - low) / (high - low)).clamp(0, 1);
}

// Returns the pair, a real number, that turns `times` within C tokens.
double pair_of_turns(double times, const RotaryScaling& scaling, int64_t width, double base) {
  const double context = static_cast<double>(*scaling.original_context);
  return static_cast<double>(width) * std::log(context / (times * 2 * std::numbers::pi)) / (2 * std::log(base));
}

// Returns the share of each pair that keeps its speed under yarn: 1 up to the pair of beta_fast, 0 from that of
// beta_slow on. The ends of the ramp are cut as transformers does it, the upper one at the last dimension and not at
// the last pair.
Tensor yarn_shares(const RotaryScaling& scaling, const Tensor& frequencies, int64_t width, double base) {
  double first = pair_of_turns(scaling.beta_fast, scaling, width, base);
  double last = pair_of_turns(scaling.beta_slow, scaling, width, base);
  if (scaling.truncate) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(width - 1));
  if (first == last) last += 0.001;  // the ramp is divided by the difference
  return 1 - ((at::arange(width / 2, frequencies.options()) - first) / (last - first)).clamp(0, 1);
}

Turns turns_of(const RotaryAngles& of, const at::TensorOptions& options) {
  const auto wide = options.dtype(at::kDouble).requires_grad(false);
  const RotaryFrequencies one = rotary_frequencies(of.period, of.base, of.scaling, wide);
  const Tensor frequency = one.frequencies.repeat({of.width / of.period});                         // [D / 2]
  const Tensor angle = at::arange(of.first, of.first + of.tokens, wide).unsqueeze(1) * frequency;  // [T, D / 2]
  return {(angle.cos() * one.factor).to(options.dtype()), (angle.sin() * one.factor).to(options.dtype())};
}

// Returns the turns on the CPU, in float32. Layers ask for the same angles, or for two in turns where local and global
// layers differ, so each thread keeps the last two.
const Turns& float_turns(const RotaryAngles& angles) {
  using Kept = std::pair<RotaryAngles, Turns>;
  thread_local std::array<std::optional<Kept>, 2> kept;  // the older one first
  const c10::InferenceMode for_training_too(false);      // kept turns outlive the mode of their first call
  if (kept[0] && kept[0]->first == angles) std::swap(kept[0], kept[1]);
  if (!kept[1] || kept[1]->first != angles) {
    kept[0] = std::move(kept[1]);
    kept[1] = Kept(angles, turns_of(angles, at::TensorOptions(at::kFloat)));
  }
  return kept[1]->second;
}

template <class T>
void turn_rows(const Tensor& x, const Turns& turns, const Tensor& out,
               void (*rotate)(const T*, int64_t, int64_t, int64_t, const float*, const float*, T*, int64_t)) {
  const int64_t batch = x.size(0), heads = x.size(1), tokens = x.size(2), half = x.size(3) / 2;
  const auto* from = static_cast<const T*>(x.const_data_ptr());
  auto* to = static_cast<T*>(out.mutable_data_ptr());
  const float* cosine = turns.cosine.const_data_ptr<float>();
  const float* sine = turns.sine.const_data_ptr<float>();
  const kernels::Parallel threads = torch_threads();
  const int64_t rows = batch * tokens;
  const int64_t items = std::min(rows, 4 * threads.threads);
  threads.run(items, [&](int64_t item, int64_t) {
    for (int64_t r = rows * item / items; r < rows * (item + 1) / items; ++r) {
      const int64_t b = r / tokens, t = r % tokens;
      rotate(from + b * x.stride(0) + t * x.stride(2), x.stride(1), heads, half, cosine + t * half, sine + t * half,
             to + b * out.stride(0) + t * out.stride(2), out.stride(1));
    }
  });
}

// Turns the last dimensions, as many as `turns` has angles for. Keeps the layout of x, in which heads lie beside each
// other.
Tensor turned(const Tensor& x, const Turns& turns) {
  const Tensor input = x.stride(3) == 1 ? x : x.contiguous();
  const Tensor out = at::empty_like(input);
  const int64_t still = x.size(3) - 2 * turns.cosine.size(1);
  if (still > 0) out.slice(3, 0, still).copy_(input.slice(3, 0, still));
  const Tensor from = still > 0 ? input.slice(3, still) : input, to = still > 0 ? out.slice(3, still) : out;
  if (input.scalar_type() == at::kFloat) {
    turn_rows<float>(from, turns, to, kernels::tiles().rotate);
  } else {
    turn_rows<Bf16>(from, turns, to, kernels::tiles().rotate_bf16);
  }
  return out;
}

bool has_rotary(const Tensor& x) {
  return x.device().is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

// Rotates by libtorch's operations.
Tensor plainly_turned(const Tensor& x, const Turns& turns) {
  const int64_t half = turns.cosine.size(1), still = x.size(3) - 2 * half;
  const Tensor a = x.slice(3, still, still + half), b = x.slice(3, still + half);
  std::vector<Tensor> parts = {a * turns.cosine - b * turns.sine, b * turns.cosine + a * turns.sine};
  if (still > 0) parts.insert(parts.begin(), x.slice(3, 0, still));
  return at::cat(parts, 3);
}

Turns turned_back(const Turns& turns) { return {turns.cosine, -turns.sine}; }

// Rotates in one pass and with one rounding; libtorch's operations make several of each. The gradient turns back.
class CpuRotate : public torch::autograd::Function<CpuRotate> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& cosine, const Tensor& sine) {
    context->save_for_backward({cosine, sine});
    return turned(x, {cosine, sine});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("the rotation of positions");
    const variable_list saved = context->get_saved_variables();
    return {turned(gradients[0], turned_back({saved[0], saved[1]})), Tensor(), Tensor()};
  }
};

}  // namespace

RotaryFrequencies rotary_frequencies(int64_t width, double base, const RotaryScaling& scaling,
                                     const at::TensorOptions& options) {
  const Tensor exponent = at::arange(width / 2, options.dtype(at::kDouble)) * (-2.0 / static_cast<double>(width));
  const Tensor plain = at::pow(base, exponent);
  const auto slowed = [&](const Tensor& kept) { return plain * (kept + (1 - kept) / *scaling.factor); };
  switch (scaling.kind) {
    case RotaryScalingKind::kNone:
      return {plain};
    case RotaryScalingKind::kLinear:
      return {plain / *scaling.factor};
    case RotaryScalingKind::kLlama3:
      return {slowed(llama3_shares(scaling, plain))};
    case RotaryScalingKind::kYarn:
      return {slowed(yarn_shares(scaling, plain, width, base)), *scaling.attention_factor};
  }
  throw Error("unknown scaling of a rotation");
}

Tensor rotate(const Tensor& x, const RotaryAngles& angles) {
  HS_DCHECK(angles.period % 2 == 0 && angles.width % angles.period == 0 && angles.width <= x.size(3));
  HS_DCHECK(angles.tokens == x.size(2));
  if (has_rotary(x)) {
    const Turns& turns = float_turns(angles);
    return CpuRotate::apply(x, turns.cosine, turns.sine);
  }
  return plainly_turned(x, turns_of(angles, x.options()));
}

Tensor rotary_pass(const Tensor& x, const RotaryAngles& angles, bool back) {
  const bool ours = has_rotary(x);
  const Turns turns = ours ? float_turns(angles) : turns_of(angles, x.options());
  const Turns by = back ? turned_back(turns) : turns;
  return ours ? turned(x, by) : plainly_turned(x, by);
}

}  // namespace headshare
