"""The program's verbs as functions. Options are those of the command line: learning_rate=1e-3 is --learning-rate 1e-3,
a list is joined by commas, True and False are switches. `headshare VERB --help-all` describes every one."""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any, Optional, Sequence, Union

from ._call import call, words_of
from ._dask import run_cells
from ._data import DataFile, Path
from ._error import Error
from ._result import Result

Text = Union[Path, DataFile, Sequence[Union[Path, DataFile]]]
Names = Union[str, Sequence[str]]


def run(verb: str, *words: Any, **options: Any) -> Result:
    """Runs any verb of the program: `headshare.run("evaluate", "run", text="book.txt")`.

    Args:
        verb: "train", "evaluate", "info", ...
        words: arguments without a name, in the order of `headshare VERB --help`.
        options: those with a name. Add _ to a name that Python has taken: from_="hf".

    Returns:
        Result: its numbers are None for verbs that print lines (generate, fill, predict, tokenize, bench).

    Raises:
        Error: with the program's sentence.
        KeyboardInterrupt: after Ctrl-C, when the program has kept its work; it says how to go on.
    """
    done = call(words_of(verb, words, options))
    out = options.get("out")
    path = pathlib.Path(os.fspath(out)) if out is not None else None
    page = path / "report.html" if path is not None else None
    return Result(
        verb, done.text, done.json, path, page.read_text(encoding="utf-8") if page and page.is_file() else None
    )


def compare(
    *,
    text: Optional[Text] = None,
    task: Optional[str] = None,
    schemes: Optional[Names] = None,
    seeds: Optional[int] = None,
    steps: Optional[int] = None,
    learning_rate: Optional[float] = None,
    out: Path = "comparison",
    resume: Optional[bool] = None,
    overwrite: Optional[bool] = None,
    client: Any = None,
    **options: Any,
) -> Result:
    """Trains the same model once per attention scheme and seed, and compares quality, parameters, cache and speed.

    >>> result = headshare.compare(text="book.txt", schemes=["mha", "mhe_mul"], steps=100, seeds=3, out="comparison")
    >>> print(result)
    >>> result.frame()[["variant", "quality.mean", "cache_bytes_per_token"]]

    Args:
        text: files or directories of training text; `headshare.documents` for texts in memory.
        task: what the models learn: "language-model", "mlm", "offsets", "glue", "translation", ...
        schemes: "mha", "gqa", "mqa", "mhe_mul", ...; default: all.
        seeds: models per scheme; three decide, six give p-values.
        steps: training steps of each model.
        learning_rate: the highest of the schedule.
        out: directory for results.json, report.html and the models.
        resume: go on with the comparison in `out`, with its options.
        overwrite: replace the comparison in `out`.
        client: a Dask client (`distributed.Client`): its workers train the models, one a thread. All of them need
            headshare, and `out` and the data under the same paths.
        options: every other of `headshare compare --help-all`: d_model=128, sweep={"learning-rate": [1e-3, 3e-3]},
            variants={"wide": {"scheme": "mqa", "heads": 8}}, dry_run=True, ...

    Returns:
        Result: `json` has the format of results.json, `frame()` a row per scheme, `frame("cells")` one per model.
            Models that failed are in `result["failed"]`.

    Raises:
        Error, KeyboardInterrupt: as `headshare.run`.
    """
    named = dict(
        text=text,
        task=task,
        schemes=schemes,
        seeds=seeds,
        steps=steps,
        learning_rate=learning_rate,
        out=out,
        resume=resume,
        overwrite=overwrite,
    )
    if client is None or options.get("dry_run"):
        return run("compare", **named, **options)
    for name in ("workers", "devices"):
        if options.get(name) is not None:
            raise Error(f"{name} says where models are trained, and so does client; leave one of them out")
    return compare_with(client, out, {**named, **options})


def compare_with(client: Any, home: Path, options: dict[str, Any]) -> Result:
    """Runs a comparison on the workers of a Dask client, stage by stage: encoders before they are fine-tuned, seeds
    that are added. What failed there is tried once more here, which says why."""
    latex = options.get("latex")
    planned = run("compare", **{**options, "out": None}, plan=home)
    tried: set[tuple[str, int]] = set()
    while "unfinished" in planned.json:
        folder = planned["directory"]
        cells = [index for index in planned["unfinished"] if (folder, index) not in tried]
        if not cells:
            break
        run_cells(client, planned.json, cells)
        tried.update((folder, index) for index in cells)
        planned = run("compare", plan=home, resume=True, latex=latex)
    return run("compare", out=home, resume=True, latex=latex)


def cost(
    model: Optional[Path] = None,
    *,
    schemes: Optional[Names] = None,
    layers: Optional[int] = None,
    d_model: Optional[int] = None,
    heads: Optional[int] = None,
    context: Optional[int] = None,
    **options: Any,
) -> Result:
    """Counts what every scheme takes at a size: parameters, and cache per token. Trains nothing, reads no weights.

    >>> headshare.cost(layers=12, d_model=768, heads=12).frame()

    Args:
        model: a model whose shape is meant: a headshare model, a Hugging Face directory or config.json.
        schemes: default: all.
        layers, d_model, heads, context: the shape; on top of the model's.
        options: every other of `headshare cost --help-all`: memory_budget="24GiB", cache_type="bf16", kind="encoder"

    Returns:
        Result: a list of dicts, one for each scheme. Parameters are counts, without biases in `attention_parameters`;
            caches are in elements of one layer and in bytes of the model, per token.

    Raises:
        Error: as `headshare.run`.
    """
    words = () if model is None else (model,)
    return run("cost", *words, schemes=schemes, layers=layers, d_model=d_model, heads=heads, context=context, **options)


def score(
    question: str,
    *predictions: Union[Path, DataFile],
    gold: Optional[Text] = None,
    reference: Optional[Text] = None,
    task: Optional[str] = None,
    **options: Any,
) -> Result:
    """Scores predictions or translations of any program as the official scorers do.

    >>> headshare.score("bleu", headshare.lines(ours), reference=headshare.lines(targets), confidence=1000)["systems"]

    Args:
        question: "squad", "glue" or "superglue"; or a metric of translations, "bleu", "chrf" or "ter".
        predictions: a file; of translations one or more systems. `headshare.lines` for lists in memory.
        gold: the data set's file with the right answers.
        reference: of translations, one or more files; another name for `gold`.
        task: of GLUE and SuperGLUE: "cola", "mnli", ...
        options: every other of `headshare score --help-all`: paired_bootstrap=1000, lowercase=True, ...

    Returns:
        Result: BLEU, chrF and TER, exact match and F1 of SQuAD in per cent; GLUE and SuperGLUE between 0 and 1.

    Raises:
        Error: as `headshare.run`.
    """
    return run("score", question, *predictions, gold=gold, reference=reference, task=task, **options)


def convert(
    source: Path,
    out: Path,
    *,
    to: Optional[str] = None,
    from_: Optional[str] = None,
    sample_text: Optional[Text] = None,
    score_text: Optional[Text] = None,
    overwrite: Optional[bool] = None,
    **options: Any,
) -> Result:
    """Makes the heads of a trained model share, or reads and writes models of Hugging Face.

    >>> headshare.convert("run", "small", to="mqa", sample_text="book.txt").frame()

    Args:
        source: a headshare model or run; with `from_`, a model of that format.
        out: the directory to write.
        to: "mqa", "gqa:4", "skv", "mhe_mul", "mhe_add", "lrkv:4", "shared_query:complex", "mla:64", "collaborative" (with
            key_width=...), "hf", "gguf" or "ctranslate2"; with exact=True also "mha", "sha" and "el_lossless".
        from_: "hf".
        sample_text: text like what the model reads: layers are made good on it.
        score_text: held-out text that both models are scored on.
        overwrite: replace the model in `out`.
        options: every other of `headshare convert --help-all`.

    Returns:
        Result: `frame()` has a row per layer: relative errors of attention scores and values, seconds. `json` is None
            for `from_` and the formats of other programs.

    Raises:
        Error, KeyboardInterrupt: as `headshare.run`.
    """
    named = dict(to=to, from_=from_, sample_text=sample_text, score_text=score_text, overwrite=overwrite)
    done = call(words_of("convert", (source, out), {**named, **options}))
    return Result("convert", done.text, done.json, pathlib.Path(os.fspath(out)), None)


def analyze(model: Path, *, text: Optional[Text] = None, html: Optional[Path] = None, **options: Any) -> Result:
    """Shows how alike the heads of a trained model are, and what each conversion to shared heads would cost and save.

    >>> headshare.analyze("run", text="book.txt")

    Args:
        model: a checkpoint or run; it is not touched.
        text: text like what the model reads, which weighs maps and errors.
        html: where to keep the page with all figures, which the result has in any case.
        options: every other of `headshare analyze --help`.

    Returns:
        Result: `frame()` has a row per conversion: relative errors, parameters, cache bytes per token, milliseconds.

    Raises:
        Error, KeyboardInterrupt: as `headshare.run`.
    """
    with tempfile.TemporaryDirectory(prefix="headshare-") as folder:
        page = pathlib.Path(os.fspath(html)) if html is not None else pathlib.Path(folder) / "heads.html"
        done = call(words_of("analyze", (model,), {"text": text, "html": page, **options}), unsaid=folder)
        kept = page if html is not None else None
        return Result("analyze", done.text, done.json, kept, page.read_text(encoding="utf-8"))


def train(*, out: Path, text: Optional[Text] = None, scheme: Optional[str] = None, **options: Any) -> Result:
    """Trains one model with any attention scheme.

    >>> headshare.train(text="book.txt", out="run", scheme="mhe_mul", steps=2000)["best_loss"]

    Args:
        out: directory of the run: checkpoints, metrics, the resolved configuration.
        text: files or directories of training text; `headshare.documents` for texts in memory.
        scheme: how attention heads share projections; default "mha".
        options: every other of `headshare train --help-all`: task="mlm", layers=4, learning_rate=1e-3, resume=True, ...

    Returns:
        Result: losses in nats per token, seconds, tokens per second.

    Raises:
        Error, KeyboardInterrupt: as `headshare.run`.
    """
    return run("train", out=out, text=text, scheme=scheme, **options)


def evaluate(model: Path, *, text: Optional[Text] = None, **options: Any) -> Result:
    """Scores a model on text: perplexity and bits per byte, pseudo-perplexity, or BLEU and chrF.

    >>> headshare.evaluate("run", text="book.txt", part="validation")["perplexity"]

    Args:
        model: a checkpoint or run.
        text: what to score.
        options: every other of `headshare evaluate --help-all`.

    Returns:
        Result: losses in nats per token, perplexities.

    Raises:
        Error, KeyboardInterrupt: as `headshare.run`.
    """
    return run("evaluate", model, text=text, **options)
