"""Parameters that Python owns and C++ computes with.

A layer or model of headshare's C++ library is made around the tensors that each call brings, so that optimizers,
`torch.func.functional_call`, DistributedDataParallel and `copy.deepcopy` see an ordinary `torch.nn.Module`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.fx.experimental import proxy_tensor


class Description(NamedTuple):
    """What C++ says of one parameter."""

    name: str
    shape: list[int]
    mean: float
    deviation: float
    decays: bool
    learned: bool


class Group(nn.Module):
    """Holds the parameters whose names begin alike: `query` those of `query.weight` and `query.bias`."""

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={list(one.shape)}" for name, one in self.named_parameters(recurse=False))


class BorrowedModule(nn.Module):
    """A module with the parameters that C++ describes, in the order in which C++ takes them.

    Parameters that the loss cannot depend on (a key bias that softmax cancels) ask for no gradient, and this module's own
    requires_grad_ leaves them so. C++ holds the
    parameters between calls, so that torch.__future__.set_swap_module_params_on_conversion does not work here.
    """

    def _declare(self, descriptions: list[Description], device=None, dtype=None) -> None:
        self._descriptions = descriptions
        for one in descriptions:
            *groups, leaf = one.name.split(".")
            module: nn.Module = self
            for group in groups:
                if group not in module._modules:
                    module.add_module(group, Group())
                module = module._modules[group]
            tensor = torch.empty(one.shape, device=device, dtype=dtype)
            module.register_parameter(leaf, nn.Parameter(tensor, requires_grad=one.learned))

    def _borrowed(self) -> list[Tensor]:
        """Returns the parameters where they are now: whoever replaces a part of the module is heard."""
        return [self._found(one.name) for one in self._descriptions]

    def _found(self, name: str) -> Tensor:
        *groups, leaf = name.split(".")
        module: nn.Module = self
        for group in groups:
            module = module._modules[group]
        return getattr(module, leaf)

    def requires_grad_(self, requires_grad: bool = True):
        super().requires_grad_(requires_grad)
        for tensor, one in zip(self._borrowed(), self._descriptions):
            if not one.learned:
                tensor.requires_grad_(False)
        return self

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draws new initial values from torch's own generator: N(mean, deviation^2), or the mean."""
        for tensor, one in zip(self._borrowed(), self._descriptions):
            if one.deviation == 0:
                tensor.fill_(one.mean)
            else:
                tensor.normal_(one.mean, one.deviation)

    def without_decay(self) -> list[str]:
        """Names the parameters to which headshare's own training applies no weight decay: biases, norms, embeddings
        of heads."""
        return [one.name for one in self._descriptions if not one.decays]


def check_finite(options: Mapping[str, Any]) -> None:
    """Raises ValueError, with the option's name and value, for NaN and infinity, which JSON cannot say."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            check_finite(value)
        elif isinstance(value, list | tuple):
            check_finite({f"{name}[{i}]": one for i, one in enumerate(value)})
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number, not {value}")


def drawn_seed() -> int:
    """Returns the seed of a call's dropout masks, drawn from torch's CPU generator: torch.manual_seed repeats them."""
    return int(torch.randint(2**63 - 1, (), dtype=torch.int64, device="cpu"))


class CppObject:
    """Holds an object of a C++ class and calls its methods, for torch's compiler in one piece.

    torch.export looks for such objects among a module's attributes and cannot read them; it finds this one, and hears
    of it when it is called.
    """

    def __init__(self, held: torch.ScriptObject) -> None:
        self.held = held

    @torch.compiler.disable(reason="headshare's layers and models run in C++, outside of torch's graphs")
    def call(self, method: str, *arguments):
        """Calls C++ outside of torch.compile's graphs: the arithmetic of a module is compiled already.

        Raises RuntimeError where the call would be traced: C++ calls its kernels directly, so that a graph would hold
        numbers.
        """
        if proxy_tensor.get_proxy_mode() is not None or torch.compiler.is_exporting():
            raise RuntimeError(
                "headshare's layers and models cannot be traced or exported; the operations of headshare.ops and "
                'attn_implementation="headshare" can'
            )
        return getattr(self.held, method)(*arguments)
