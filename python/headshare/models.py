"""Checkpoints of headshare as `torch.nn` modules. The arithmetic is headshare's C++."""

from __future__ import annotations

import json
import os
from typing import Any

import torch
from torch import Tensor, nn

from headshare import _load
from headshare._borrowed import BorrowedModule, CppObject, Description, check_finite, drawn_seed
from headshare._error import in_python

_load.load()  # the classes of torch exist from here on

__all__ = ["Model", "Tokenizer", "load"]


class Tokenizer:
    """A tokenizer of headshare's: turns text into ids and back."""

    def __init__(self, handle) -> None:
        self._handle = handle

    @classmethod
    def read(cls, path: str | os.PathLike) -> Tokenizer:
        """Reads tokenizer.json, headshare's or Hugging Face's, from a file or a folder."""
        return cls(torch.classes.headshare.Tokenizer.read(os.fspath(path)))

    @property
    def kind(self) -> str:
        """The kind: "bytes", "characters", "words", "bpe", "wordpiece", "unigram", "sentencepiece" or a hashed one."""
        return self._handle.kind()

    def __len__(self) -> int:
        return self._handle.size()

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Returns the ids of `text`; with `special`, "[MASK]" in it stands for the token of that name."""
        return self._handle.encode(text, special)

    def decode(self, ids) -> str:
        """Returns the text of `ids`, a list or a tensor [T]."""
        return self._handle.decode(ids.tolist() if isinstance(ids, Tensor) else list(ids))

    def special(self, role: str) -> int | None:
        """Returns the id of the token with a role ("padding", "mask", "end of text", ...), None without such a one."""
        return self._handle.special(role)

    def __repr__(self) -> str:
        return f"Tokenizer({self.kind}, {len(self)} tokens)"


class Model(BorrowedModule):
    """A decoder, encoder or encoder-decoder from a checkpoint; `load` makes one.

    Parameters have the names of model.safetensors. `train()` switches dropout on, whose masks follow torch's seed. A loss
    computes its gradients once: a second backward pass, or a second derivative, is refused. Checkpoints hold float32.

    Attributes:
        kind: "decoder", "encoder" or "encoder-decoder".
        config: what config.json holds: the options are under "model".
        tokenizer, source_tokenizer: None where the checkpoint has none; an encoder-decoder's source may have its own.
    """

    def __init__(self, config: dict[str, Any], tokenizers: list[Tokenizer] | None = None) -> None:
        super().__init__()
        check_finite(config)
        handles = [one._handle for one in tokenizers or []]
        self._set(torch.classes.headshare.Model(json.dumps(config), handles))
        self._declare([Description(*one) for one in self._model.held.parameters()])
        self.reset_parameters()

    def _set(self, handle) -> None:
        self._model = CppObject(handle)
        self.kind: str = handle.kind()
        self.config: dict[str, Any] = json.loads(handle.config())
        tokenizers = [Tokenizer(one) for one in handle.tokenizers()]
        self.tokenizer = tokenizers[-1] if tokenizers else None
        self.source_tokenizer = tokenizers[0] if tokenizers else None

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        handle = state.pop("_model").held
        for name in ("tokenizer", "source_tokenizer"):
            state.pop(name)
        state["_stored"] = (handle.config(), [one.to_json() for one in handle.tokenizers()])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        config, tokenizers = state.pop("_stored")
        super().__setstate__(state)
        classes = torch.classes.headshare
        self._set(classes.Model(config, [classes.Tokenizer.from_json(one) for one in tokenizers]))

    def forward(self, ids: Tensor, *, targets: Tensor | None = None, **inputs: Tensor) -> Tensor:
        """Returns the mean loss where there are targets; else a task's scores where the model has a head for one, else
        logits [B, T, V].

        Args:
            ids: int64 [B, T]; of an encoder-decoder the target behind its start.
            targets: int64 [B, T], -100 where nothing is asked. A decoder's are the ids that follow: they are not
                shifted here.
            **inputs: of an encoder `visible` (bool [B, T], False for padding, which stands behind the text: positions
                count it, those of transformers' RoBERTa do not), `segments` (int64 [B, T]) and, with a
                head for words, `words` (float [B, 2, T], weights that form the means of two groups of tokens); of an
                encoder-decoder `source` (int64 [B, S]) and `source_visible` (bool [B, S]).

        Raises:
            RuntimeError: for inputs of another shape or type, and for what this kind of model does not give.
        """
        if targets is not None:
            return self.ask("loss", ids=ids, targets=targets, **inputs)
        return self.ask("scores" if "task_head" in self.config else "logits", ids=ids, **inputs)

    def hidden(self, ids: Tensor, **inputs: Tensor) -> Tensor:
        """Returns the last hidden states, [B, T, E]; the inputs are those of forward()."""
        return self.ask("hidden", ids=ids, **inputs)

    def ask(self, what: str, **inputs: Tensor) -> Tensor:
        """Returns "hidden", "logits", "loss", "scores" or "pooled", whatever the model has."""
        given = {name: one for name, one in inputs.items() if one is not None}
        seed = drawn_seed() if self.training else None
        try:
            return self._model.call("ask", what, given, self._borrowed(), seed)
        except IndexError:
            raise IndexError(_out_of_range(given, self.config["model"])) from None

    def save(self, directory: str | os.PathLike, overwrite: bool = False) -> None:
        """Writes a checkpoint that every verb of the program reads, in float32. It appears whole or not at all.

        Raises:
            ValueError: naming the parameter, for values that float32 does not hold.
            FileExistsError: where something stands that may not be replaced: anything without `overwrite`, and with it
                all but a checkpoint.
        """
        values = [_as_float32(one.name, value.detach()) for one, value in zip(self._descriptions, self._borrowed())]
        try:
            self._model.held.save(os.fspath(directory), values, overwrite)
        except RuntimeError as error:
            if not os.path.exists(directory) or str(error).startswith("cannot "):  # a full disk, a folder that is read-only
                raise
            raise FileExistsError(in_python(str(error).replace("add --overwrite", "give overwrite=True"))) from None

    def extra_repr(self) -> str:
        options = self.config["model"]
        return f"{self.kind}, scheme={options.get('scheme')}, layers={options.get('layers')}"


def _out_of_range(inputs: dict[str, Tensor], options: dict[str, Any]) -> str:
    """Says where ids lie and below what they must."""

    def where(name: str, one: Tensor) -> str:
        sizes = {"segments": options.get("segments"), "source": options.get("source-vocabulary")}
        end = sizes.get(name) or options["vocabulary"]  # a source vocabulary of 0 is the target's
        return f"{name} lie between {int(one.min())} and {int(one.max())}, and must be below {end}"

    places = [where(name, one) for name, one in inputs.items() if one.dtype == torch.int64]
    return f"an id is out of range: {'; '.join(places)}"


def _as_float32(name: str, value: Tensor) -> Tensor:
    """Returns `value` in the type of checkpoints."""
    stored = value.float()
    lost = stored.isinf() & value.isfinite()
    if lost.any():
        largest = value[lost].abs().max().item()
        raise ValueError(f"{name} holds values up to {largest:g}, and checkpoints hold float32, which ends at 3.4e38")
    return stored


def load(directory: str | os.PathLike) -> Model:
    """Reads a model from a checkpoint or run directory, in evaluation mode, with its tokenizer.

    Args:
        directory: a checkpoint, or what `headshare train` wrote: then its best checkpoint.

    Raises:
        RuntimeError: naming the file, for what is missing, damaged or from a newer headshare.

    >>> model = load("run")
    >>> ids = torch.tensor([model.tokenizer.encode("Once upon a time")])
    >>> model(ids).argmax(-1)
    """
    handle, values = torch.classes.headshare.Model.read(os.fspath(directory))
    model = Model.__new__(Model)
    nn.Module.__init__(model)
    model._set(handle)
    model._declare([Description(*one) for one in handle.parameters()])
    with torch.no_grad():
        for parameter, value in zip(model._borrowed(), values):
            parameter.copy_(value)
    return model.eval()
