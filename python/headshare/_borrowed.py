"""Parameters that Python owns and C++ computes with.

A layer or model of headshare's C++ library is made around the tensors that each call brings, so that optimizers,
`torch.func.functional_call`, DistributedDataParallel and `copy.deepcopy` see an ordinary `torch.nn.Module`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


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

    Parameters that the loss cannot depend on (a key bias that softmax cancels) have requires_grad False. Everything
    else, state_dict included, is as in any module.
    """

    def _declare(self, descriptions: list[Description], device=None, dtype=None) -> None:
        self._descriptions = descriptions
        self._places: list[tuple[nn.Module, str]] = []
        for one in descriptions:
            *groups, leaf = one.name.split(".")
            module: nn.Module = self
            for group in groups:
                if group not in module._modules:
                    module.add_module(group, Group())
                module = module._modules[group]
            tensor = torch.empty(one.shape, device=device, dtype=dtype)
            module.register_parameter(leaf, nn.Parameter(tensor, requires_grad=one.learned))
            self._places.append((module, leaf))

    def _borrowed(self) -> list[Tensor]:
        return [getattr(module, leaf) for module, leaf in self._places]

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


def drawn_seed() -> int:
    """Returns the seed of a call's dropout masks, drawn from torch's CPU generator: torch.manual_seed repeats them."""
    return int(torch.randint(2**63 - 1, (), dtype=torch.int64, device="cpu"))
