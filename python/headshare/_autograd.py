"""Joins the passes of each operation under torch's autograd."""

import torch

_ops = torch.ops.headshare


def _register(name, backward, setup_context):
    torch.library.register_autograd(f"headshare::{name}", backward, setup_context=setup_context)


def _refuse_second_derivative(of, name):
    """Says so where someone asks for the gradient of a gradient; without this it would silently be missing."""

    def backward(ctx, *gradients):
        raise RuntimeError(
            f"headshare.ops.{of} has no second derivative (create_graph=True): write this part of the model with "
            "torch.nn.functional instead"
        )

    _register(name, backward, lambda ctx, inputs, output: None)


# --- attention ---------------------------------------------------------------------------------

# The arguments of an attention up to shared_dropout, of which these are tensors.
_PROBLEM = 13
_TENSORS = (0, 1, 2, 4, 5, 8, 9, 11)
_SLOPES = 9


def _attention_setup(ctx, inputs, output):
    problem, ctx.gradients = inputs[:_PROBLEM], inputs[_PROBLEM]
    if ctx.needs_input_grad[_SLOPES]:
        raise RuntimeError("headshare.ops.attention has no gradient of alibi_slopes: detach() them")
    ctx.mark_non_differentiable(*output[1:])
    ctx.others = [None if i in _TENSORS else x for i, x in enumerate(problem)]
    ctx.save_for_backward(*(problem[i] for i in _TENSORS), *output)


def _attention_backward(ctx, gradient, *_):
    if not ctx.gradients:
        raise RuntimeError("headshare::attention_forward was called with gradients=False: it left nothing for a backward pass")
    saved = ctx.saved_tensors
    problem = list(ctx.others)
    for i, x in zip(_TENSORS, saved, strict=False):
        problem[i] = x
    found = _ops.attention_backward(*problem, *saved[len(_TENSORS) :], gradient)
    wanted = [None] * (_PROBLEM + 1)
    for i, x in zip(_TENSORS, found, strict=False):
        wanted[i] = x if ctx.needs_input_grad[i] else None
    return tuple(wanted)


_register("attention_forward", _attention_backward, _attention_setup)
_refuse_second_derivative("attention", "attention_backward")


# --- cross-entropy -----------------------------------------------------------------------------


def _cross_entropy_setup(ctx, inputs, output):
    hidden, embedding, _, bias = inputs[:4]
    ctx.wanted = inputs[6:9]
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(hidden, embedding, bias, *output[1:])


def _cross_entropy_backward(ctx, gradient, *_):
    needed = (ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.needs_input_grad[3])
    for name, needs, wanted in zip(("hidden", "embedding", "bias"), needed, ctx.wanted, strict=True):
        if needs and not wanted:
            raise RuntimeError(f"headshare::cross_entropy_forward was called with {name}_wanted=False: it has no gradient")
    hidden, embedding, bias = _ops.cross_entropy_backward(gradient, *ctx.saved_tensors)
    found = (hidden, embedding, None, bias)
    return tuple(x if need else None for x, need in zip(found, ctx.needs_input_grad, strict=False)) + (None,) * 5


_register("cross_entropy_forward", _cross_entropy_backward, _cross_entropy_setup)
_refuse_second_derivative("cross_entropy", "cross_entropy_backward")


# --- operations that are linear in their tensor: the backward pass is one of them again --------


def _dropout_setup(ctx, inputs, output):
    _, ctx.p, key = inputs
    ctx.save_for_backward(key)


def _dropout_backward(ctx, gradient):
    return _ops.dropout(gradient, ctx.p, ctx.saved_tensors[0]), None, None


_register("dropout", _dropout_backward, _dropout_setup)


def _rotate_setup(ctx, inputs, output):
    _, *ctx.angles, ctx.back = inputs


def _rotate_backward(ctx, gradient):
    return _ops.rotate(gradient, *ctx.angles, not ctx.back), None, None, None, None, None


_register("rotate", _rotate_backward, _rotate_setup)


# --- gelu, linear, RMS norm --------------------------------------------------------------------


def _gelu_setup(ctx, inputs, output):
    x, ctx.approximate = inputs
    ctx.save_for_backward(x)


def _gelu_backward(ctx, gradient):
    return _ops.gelu_backward(gradient, ctx.saved_tensors[0], ctx.approximate), None


_register("gelu", _gelu_backward, _gelu_setup)
_refuse_second_derivative("gelu", "gelu_backward")


def _linear_setup(ctx, inputs, output):
    x, weight, _, ctx.gelu = inputs
    ctx.save_for_backward(x, weight)


def _linear_backward(ctx, gradient):
    needs = ctx.needs_input_grad[:3]
    found = _ops.linear_backward(gradient, *ctx.saved_tensors, ctx.gelu, *needs)
    return *(x if need else None for x, need in zip(found, needs, strict=True)), None


_register("linear", _linear_backward, _linear_setup)
_refuse_second_derivative("linear", "linear_backward")


def _rms_norm_setup(ctx, inputs, output):
    x, weight, ctx.eps = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(x, weight, output[1])


def _rms_norm_backward(ctx, gradient, _):
    x, weight = _ops.rms_norm_backward(gradient, *ctx.saved_tensors, ctx.eps)
    return x, weight, None


_register("rms_norm_forward", _rms_norm_backward, _rms_norm_setup)
_refuse_second_derivative("rms_norm", "rms_norm_backward")
