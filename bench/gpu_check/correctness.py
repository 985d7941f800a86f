"""The parts of gpu-check that judge: CUDA tests, losses against the CPU, equal runs, runs that were killed."""

import concurrent.futures
import hashlib
import signal
import time

import place
from place import Row

SCHEMES = "mha gqa mqa sha skv el_shared el_lossless mhe_add mhe_mul collaborative lrkv shared_query mla".split()
SHAPE = "--layers 2 --d-model 64 --heads 4 --context 64 --batch-size 16 --threads 1".split()
# Sums in another order move losses of fp32 by 1e-5 in sixty steps; those of bf16 by what its eight bits leave.
NEAR, NEAR_BF16 = 2e-4, 3e-2


def tests(here):
    """Runs the unit tests that need a card; without one each of them is skipped."""
    rows = []
    for name in place.TESTS:
        code, out, errors = here.call([here.test_program(name), "--gtest_filter=*Cuda*"], most=120)
        ran, skipped = out.count("[       OK ]"), out.count("[  SKIPPED ]") // 2
        found = f"{ran} passed, {skipped} skipped" if code == 0 else place.last_line(out + errors)
        expected = ran > 0 if here.device != "cpu" else ran + skipped > 0
        rows.append(Row("tests", name, code == 0 and expected, found, dict(passed=ran, skipped=skipped, failed=out.count("[  FAILED  ]"))))
    return rows


def model_cases(text, tiny):
    """Returns the words that train each case, and how near the losses of two devices must be."""
    steps = ["--steps", 10 if tiny else 60, "--learning-rate", "3e-3", "--evaluate-every", 60, "--evaluation-tokens", 20000]
    language = ["train", "--text", text, "--tokenizer", "bytes", *SHAPE, *steps, "--log-every", 10]
    cases = {scheme: ([*language, "--scheme", scheme], NEAR) for scheme in SCHEMES}
    for scheme in ("mha", "mhe_add", "mhe_mul", "collaborative"):
        cases[f"{scheme}, rotary"] = ([*language, "--scheme", scheme, "--positions", "rotary"], NEAR)
    cases["mha, dropout"] = ([*language, "--scheme", "mha", "--dropout", "0.1"], NEAR)
    cases["mhe_add, attention dropout"] = ([*language, "--scheme", "mhe_add", "--attention-dropout", "0.1"], NEAR)
    cases["mhe_add, bf16"] = ([*language, "--scheme", "mhe_add", "--precision", "bf16"], NEAR_BF16)
    cases["masked"] = (["train", "--task", "mlm", "--text", text, *SHAPE, *steps], NEAR)
    if tiny:
        return {name: cases[name] for name in ("mha", "mhe_add", "mha, dropout")}
    return cases


def translation_case(here):
    """Writes pairs of digits and their names; returns the words that train on them."""
    names = "zero one two three four five six seven eight nine".split()
    numbers = [str(number) for number in range(100, 4000, 3)]
    parts = {"train": [n for i, n in enumerate(numbers) if i % 10], "held-out": numbers[::10]}
    for part, rows in parts.items():
        (here.work / f"{part}.digits").write_text("".join(" ".join(row) + "\n" for row in rows))
        (here.work / f"{part}.words").write_text("".join(" ".join(names[int(d)] for d in row) + "\n" for row in rows))
    return [
        "train", "--task", "translation", "--source", "train.digits", "--target", "train.words",
        "--validation-source", "held-out.digits", "--validation-target", "held-out.words", "--scheme", "mhe_mul",
        "--layers", 1, "--d-model", 64, "--heads", 4, "--dropout", 0, "--vocabulary-size", 60, "--batch-tokens", 1024,
        "--steps", 10 if here.tiny else 150, "--learning-rate", "3e-3", "--schedule", "cosine", "--threads", 1,
    ]  # fmt: skip


def folder_of(name, device):
    return "".join(c if c.isalnum() else "-" for c in f"{name}-{device}")


def trained(here, name, words, device):
    folder = here.work / folder_of(name, device)
    code, _, errors = here.run(*words, "--device", device, "--out", folder)
    return (folder, "") if code == 0 else (None, f"{device}: {place.last_line(errors)}")


def compared(here, name, words, near):
    """Trains once on the device and once on the CPU."""
    there, why = trained(here, name, words, here.device)
    cpu, why_cpu = trained(here, f"{name}, again" if here.device == "cpu" else name, words, "cpu")
    if there is None or cpu is None:
        return Row("losses", name, False, why or why_cpu)
    return judged(name, place.metrics(there), place.metrics(cpu), near)


def judged(name, there, cpu, near):
    """Compares the last losses of training and of validation, as place.metrics() has them."""
    pairs = [(a[-1], b[-1]) for a, b in zip(there, cpu) if a and b]
    if not pairs:
        return Row("losses", name, False, "no losses were written")
    gap = max(abs(a - b) / max(1.0, abs(b)) for a, b in pairs)
    found = ", ".join(f"{a:.5f} against {b:.5f}" for a, b in pairs)
    return Row("losses", name, gap <= near, f"{found} (off by {gap:.1e}, {near:.0e} allowed)", dict(gap=gap, allowed=near))


def losses(here):
    cases = model_cases(here.text, here.tiny)
    if not here.tiny:
        cases["translation"] = (translation_case(here), NEAR)
    with concurrent.futures.ThreadPoolExecutor(here.workers) as pool:
        futures = [pool.submit(compared, here, name, words, near) for name, (words, near) in cases.items()]
        return [future.result() for future in futures]


def digest(folder):
    weights = folder / "checkpoints/last/model.safetensors"
    return hashlib.sha256(weights.read_bytes()).hexdigest()[:16] if weights.is_file() else ""


def repeat_words(here, scheme):
    steps = ["--steps", 20 if here.tiny else 200, "--save-every", 5 if here.tiny else 50, "--learning-rate", "3e-3"]
    return [
        "train", "--text", here.text, "--tokenizer", "bytes", *SHAPE, *steps, "--scheme", scheme, "--dropout", "0.1",
        "--device", here.device, "--deterministic",
    ]  # fmt: skip


def killed_and_resumed(here, words, out):
    """Kills the program after its first checkpoint, and lets it go on."""
    process = here.start(*words, "--out", out)
    while process.poll() is None and here.left() > 0:
        if any((out / "checkpoints").glob("step-*")):
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.02)
    killed = process.wait() == -signal.SIGKILL
    code, _, errors = here.run("train", "--resume", "--out", out)
    return killed, "" if code == 0 else place.last_line(errors)


def repeat(here):
    """Equal runs, and one that was killed and resumed, must end with equal bits."""
    rows = []
    for scheme in ("mha", "mhe_mul") if not here.tiny else ("mha",):
        words, outs = repeat_words(here, scheme), [here.work / f"repeat-{scheme}-{i}" for i in range(3)]
        failed = ""
        for out in outs[:2]:
            code, _, errors = here.run(*words, "--out", out)
            failed = failed or ("" if code == 0 else place.last_line(errors))
        first, second = digest(outs[0]), digest(outs[1])
        rows.append(Row("repeat", f"{scheme}, equal runs", not failed and first == second != "", failed or f"{first} and {second}"))
        killed, failed = killed_and_resumed(here, words, outs[2])
        third = digest(outs[2])
        found = failed or f"{first} and {third}{'' if killed else ' (it ended before it could be killed)'}"
        rows.append(Row("repeat", f"{scheme}, killed and resumed", not failed and first == third != "", found))
    return rows
