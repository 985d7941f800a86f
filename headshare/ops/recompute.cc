#include "headshare/ops/recompute.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <utility>

#include "headshare/ops/precision.h"

namespace headshare {
namespace {

using Piece = std::function<Tensor(const Tensor&)>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// AutogradContext stores IValues only; the piece travels in a capsule.
struct PieceHolder : torch::CustomClassHolder {
  explicit PieceHolder(Piece piece) : piece(std::move(piece)) {}
  Piece piece;
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, c10::intrusive_ptr<PieceHolder> holder) {
    context->save_for_backward({input});
    context->saved_data["piece"] = c10::IValue::make_capsule(holder);
    context->saved_data["precision"] = static_cast<int64_t>(ComputeIn::current(input.device().type()));
    const at::NoGradGuard no_grad;
    return holder->piece(input);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data["piece"].toCapsule();
    const auto& piece = static_cast<PieceHolder*>(capsule.get())->piece;
    const Tensor saved = context->get_saved_variables()[0];
    const ComputeIn as_before(static_cast<Precision>(context->saved_data["precision"].toInt()), saved.device().type());
    const Tensor input = saved.detach().requires_grad_(saved.requires_grad());
    Tensor output;
    {
      const at::AutoGradMode with_gradients(true);
      output = piece(input);
    }
    // Adds to the gradients of the piece's parameters on the way to the input's.
    torch::autograd::backward({output}, {gradients[0]});
    return {input.grad(), Tensor()};
  }
};

}  // namespace

Tensor recomputed(Piece piece, const Tensor& input) {
  if (!at::GradMode::is_enabled()) return piece(input);
  return Recompute::apply(input, c10::make_intrusive<PieceHolder>(std::move(piece)));
}

}  // namespace headshare
