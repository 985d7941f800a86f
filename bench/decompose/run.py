"""How long does it take to give a model's heads shared queries and keys, and how good is it?

Decompositions of layers of 768 with 12 heads, as BERT-base has them: heads that are independent, and heads that live in
a third of the model's directions with a tenth of noise; and every layer of a small model that is trained here on
CPython's manual. `tensorly` is parafac as the authors of collaborative attention
call it (uniform start, tolerance 1e-6, 100 iterations) on the stacked matrices W_Q W_K^T of one layer; `headshare`
converts the same layer, reading and writing of the model not counted. `seconds` is the whole decomposition, `error` its
relative error, of headshare computed here from the weights that it wrote; `peak_bytes` is the process's highest resident
memory. headshare runs twice: with 20 iterations, after which its error must be below tensorly's, and with its defaults,
on all twelve layers too.

    .venv/bin/python bench/decompose/run.py --out build/bench/decompose.json [--quick] [--part N]

Parts: 1 random layers, 2 twelve layers, 3 trained layers.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402
import results  # noqa: E402

BERT = dict(width=768, heads=12)
QUICK = dict(width=96, heads=6)
FEW = 20  # iterations
KINDS = ("independent", "shared")
TRAINED = dict(width=192, heads=6)
TRAINED_LAYERS, TRAINING_STEPS = 3, 400


def maps(kind, width, heads, seed):
    """Returns query or key maps of a layer, as the model stores them: [heads * head width, width]."""
    import numpy

    draw = numpy.random.default_rng(seed)
    if kind == "independent":
        return draw.normal(size=(width, width)) / width**0.5
    shared = draw.normal(size=(width // 3, width)) / width**0.5
    own = draw.normal(size=(width, width // 3)) / (width // 3) ** 0.5
    return own @ shared + 0.1 * draw.normal(size=(width, width)) / width**0.5


def write_model(folder, kind, width, heads, layers):
    """Writes a decoder of no size but for its attention."""
    import numpy
    from safetensors.numpy import save_file

    small = 8
    tensors = {"token_embedding": (small, width), "position_embedding": (small, width), "norm.weight": (width,),
               "norm.bias": (width,)}  # fmt: skip
    values = {}
    for layer in range(layers):
        block = f"blocks.{layer}."
        for part, seed in (("query", 0), ("key", 1)):
            values[f"{block}attention.scheme.{part}.weight"] = maps(kind, width, heads, 2 * layer + seed)
        tensors |= {f"{block}attention.scheme.{part}.weight": (width, width) for part in ("value", "output")}
        for norm in ("attention_norm", "feed_forward_norm"):
            tensors |= {f"{block}{norm}.{part}": (width,) for part in ("weight", "bias")}
        tensors |= {f"{block}feed_forward.expand.weight": (small, width), f"{block}feed_forward.expand.bias": (small,),
                    f"{block}feed_forward.contract.weight": (width, small),
                    f"{block}feed_forward.contract.bias": (width,)}  # fmt: skip
    values |= {name: numpy.zeros(shape) for name, shape in tensors.items()}
    save_file({name: value.astype(numpy.float32) for name, value in values.items()}, folder / "model.safetensors")
    model = {"vocabulary": small, "context": small, "layers": layers, "d-model": width, "heads": heads, "scheme": "mha",
             "feed-forward-width": small}  # fmt: skip
    (folder / "config.json").write_text(json.dumps({"format": "headshare", "format_version": 1, "model": model}))


def heads_of(weight, heads):
    """Turns [heads * d, width] into [heads, width, d]."""
    return weight.reshape(heads, -1, weight.shape[1]).transpose(0, 2, 1).astype("float64")


def train_model(program, folder, width, heads, layers, steps):
    """Trains a language model of CPython's manual; returns its checkpoint."""
    text = folder / "manual.txt"
    subprocess.run([sys.executable, common.ROOT / "tools/python_manual.py", text], check=True, stdout=subprocess.DEVNULL)
    options = dict(layers=layers, heads=heads, context=64, steps=steps, positions="alibi") | {"d-model": width, "learning-rate": 3e-3}
    flags = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    subprocess.run([program, "train", "--text", text, "--out", folder / "run", *flags], check=True, stderr=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    return folder / "run/checkpoints/best"


def written_error(source, converted, heads, layer):
    """Returns the relative error of a layer's W_Q W_K^T over all heads."""
    import numpy
    from safetensors.numpy import load_file

    before, after = load_file(source / "model.safetensors"), load_file(converted / "model.safetensors")
    name = f"blocks.{layer}.attention.scheme."
    query, key = (heads_of(before[f"{name}{part}.weight"], heads) for part in ("query", "key"))
    shared_query, shared_key = (after[f"{name}{part}.weight"].T.astype("float64") for part in ("query", "key"))
    change = norm = 0
    for h in range(heads):
        product = query[h] @ key[h].T
        change += ((shared_query * after[f"{name}mixing"][h]) @ shared_key.T - product).__pow__(2).sum()
        norm += (product**2).sum()
    return float(numpy.sqrt(change / norm))


def ours(program, source, folder, key_width, threads, *flags):
    out = folder / "converted"
    command = [program, "convert", source, out, "--to", "collaborative", "--key-width", key_width, "--json", "--overwrite"]
    before = time.perf_counter()
    process = subprocess.Popen([str(word) for word in [*command, *flags]], stdout=subprocess.PIPE,
                               env={**os.environ, "OMP_NUM_THREADS": str(threads)})  # fmt: skip
    report = json.loads(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {status}")
    return report, out, time.perf_counter() - before, usage.ru_maxrss * 1024


def theirs(source, layer, heads, key_width, threads):
    """Runs parafac in a process of its own, so that its peak is its own."""
    command = [sys.executable, __file__, "--parafac", *map(str, (source, layer, heads, key_width, threads))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": str(threads),
                                                                     "OPENBLAS_NUM_THREADS": str(threads)})  # fmt: skip
    answer = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"tensorly: exit {status}")
    return {**json.loads(answer), "peak_bytes": usage.ru_maxrss * 1024}


def parafac(source, layer, heads, key_width, threads):
    import numpy
    import tensorly
    import torch
    from safetensors.numpy import load_file
    from tensorly.decomposition import parafac as decompose

    torch.set_num_threads(threads)
    tensorly.set_backend("pytorch")
    weights = load_file(pathlib.Path(source) / "model.safetensors")
    query, key = (heads_of(weights[f"blocks.{layer}.attention.scheme.{part}.weight"], heads) for part in ("query", "key"))
    stacked = torch.tensor(numpy.stack([q @ k.T for q, k in zip(query, key, strict=True)], axis=1))  # [width, heads, width]
    started = time.perf_counter()
    found = decompose(stacked, rank=key_width, init="random", tol=1e-6, n_iter_max=100, random_state=0)
    seconds = time.perf_counter() - started
    error = (tensorly.cp_to_tensor(found) - stacked).norm() / stacked.norm()
    print(json.dumps(dict(seconds=seconds, error=error.item())))


def measure(program, name, source, layer, sizes, key_width, threads):
    """Decomposes one layer of `source`, by headshare with few iterations and with its defaults, and by TensorLy."""
    heads = sizes["heads"]
    case = dict(name=name, layers=1, **sizes, key_width=key_width, threads=threads)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for contender, flags in (("headshare_few", ["--iterations", FEW]), ("headshare", [])):
            report, out, _, peak = ours(program, source, pathlib.Path(temporary), key_width, threads, *flags)
            said = report["layers"][layer]
            error = written_error(source, out, heads, layer)
            if abs(error - said["error"]) > 1e-4 * error + 1e-6:
                sys.exit(f"{contender}: says {said['error']}, its weights have {error}")
            rows.append(dict(contender=contender, **case, seconds=said["seconds"], error=error, peak_bytes=peak))
    other = theirs(source, layer, heads, key_width, threads)
    rows.append(dict(contender="tensorly", **case, **other))
    for row in rows:
        row["ratio_to_tensorly"] = other["seconds"] / row["seconds"]
        row["error_ratio_to_tensorly"] = row["error"] / other["error"]
        print(f"{name} {row['contender']:14} {key_width}: {row['seconds']:6.2f} s, error {row['error']:.4f}, "
              f"{row['peak_bytes'] / 2**20:5.0f} MiB, {row['ratio_to_tensorly']:.1f} x as fast", flush=True)  # fmt: skip
    return rows


def random_layer(program, kind, sizes, key_width, threads):
    with tempfile.TemporaryDirectory() as temporary:
        source = pathlib.Path(temporary)
        write_model(source, kind, **sizes, layers=1)
        return measure(program, kind, source, 0, sizes, key_width, threads)


def trained_layers(program, sizes, layers, steps, threads):
    """Decomposes to half and to a quarter of the full width."""
    with tempfile.TemporaryDirectory() as temporary:
        source = train_model(program, pathlib.Path(temporary), **sizes, layers=layers, steps=steps)
        return [
            row
            for layer in range(layers)
            for key_width in (sizes["width"] // 2, sizes["width"] // 4)
            for row in measure(program, f"trained, layer {layer + 1}", source, layer, sizes, key_width, threads)
        ]


def whole_model(program, sizes, layers, key_width, threads):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        source = folder / "source"
        source.mkdir()
        write_model(source, "shared", **sizes, layers=layers)
        report, _, seconds, peak = ours(program, source, folder, key_width, threads)
    errors = [layer["error"] for layer in report["layers"]]
    print(f"{layers} layers: {seconds:.1f} s, {peak / 2**20:.0f} MiB", flush=True)
    return [dict(contender="headshare", name="shared", layers=layers, **sizes, key_width=key_width, threads=threads,
                 seconds=seconds, error=sum(errors) / len(errors), peak_bytes=peak)]  # fmt: skip


def main():
    arguments = common.arguments_of(__doc__, threads=(2,), grids=3)
    program = arguments.program.resolve()
    quick = arguments.quick
    sizes, key_width, layers = (QUICK, 48, 2) if quick else (BERT, 384, 12)
    parts = (
        lambda threads: [row for kind in KINDS for row in random_layer(program, kind, sizes, key_width, threads)],
        lambda threads: whole_model(program, sizes, layers, key_width, threads),
        lambda threads: trained_layers(program, QUICK if quick else TRAINED, TRAINED_LAYERS, 10 if quick else TRAINING_STEPS, threads),
    )
    chosen = arguments.part or range(1, len(parts) + 1)
    rows = [row for threads in arguments.threads for number in chosen for row in parts[number - 1](threads)]
    if arguments.part:
        results.require_processor(arguments.out, common.program_info(program)["processor"])
        rows = results.rows_left(arguments.out, rows, common.program_info(program)["commit"]) + rows
    common.write_results(arguments.out, arguments.program, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--parafac"]:
        parafac(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        main()
