#include "headshare/ops/recompute.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <optional>
#include <utility>

#include "headshare/ops/precision.h"

namespace headshare {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Piece = std::function<Tensor(const variable_list&)>;

// AutogradContext stores IValues only; the piece travels in a capsule.
struct PieceHolder : torch::CustomClassHolder {
  explicit PieceHolder(Piece piece) : piece(std::move(piece)) {}
  Piece piece;
};

thread_local bool first_of_two = false;

// Runs a piece for the first of two times.
Tensor run_first(const Piece& piece, const variable_list& inputs) {
  struct Restore {
    bool before = std::exchange(first_of_two, true);
    ~Restore() { first_of_two = before; }
  } const restore;
  const at::NoGradGuard no_grad;
  return piece(inputs);
}

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  // A Function takes no undefined tensors.
  static Tensor forward(AutogradContext* context, const Tensor& input, const std::optional<Tensor>& other,
                        c10::intrusive_ptr<PieceHolder> holder) {
    variable_list inputs = {input};
    if (other) inputs.push_back(*other);
    context->save_for_backward(inputs);
    context->saved_data["piece"] = c10::IValue::make_capsule(holder);
    context->saved_data["precision"] = static_cast<int64_t>(ComputeIn::current(input.device().type()));
    return run_first(holder->piece, inputs);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data["piece"].toCapsule();
    const auto& piece = static_cast<PieceHolder*>(capsule.get())->piece;
    variable_list inputs;
    for (const Tensor& saved : context->get_saved_variables()) {
      inputs.push_back(saved.detach().requires_grad_(saved.requires_grad()));
    }
    const ComputeIn as_before(static_cast<Precision>(context->saved_data["precision"].toInt()),
                              inputs.front().device().type());
    Tensor output;
    {
      const at::AutoGradMode with_gradients(true);
      output = piece(inputs);
    }
    // The backward pass adds to the gradients of the piece's parameters on the way to the inputs'.
    torch::autograd::backward({output}, {gradients[0]});
    return {inputs.front().grad(), inputs.size() > 1 ? inputs.back().grad() : Tensor(), Tensor()};
  }
};

}  // namespace

bool will_run_again() { return first_of_two; }

Tensor recomputed(std::function<Tensor(const Tensor&)> piece, const Tensor& input) {
  if (!at::GradMode::is_enabled()) return piece(input);
  const auto one = [piece = std::move(piece)](const variable_list& inputs) { return piece(inputs.front()); };
  return Recompute::apply(input, std::optional<Tensor>(), c10::make_intrusive<PieceHolder>(one));
}

Tensor recomputed(std::function<Tensor(const Tensor&, const Tensor&)> piece, const Tensor& input, const Tensor& other) {
  if (!at::GradMode::is_enabled()) return piece(input, other);
  const auto two = [piece = std::move(piece)](const variable_list& inputs) {
    return piece(inputs.front(), inputs.back());
  };
  return Recompute::apply(input, std::optional<Tensor>(other), c10::make_intrusive<PieceHolder>(two));
}

}  // namespace headshare
