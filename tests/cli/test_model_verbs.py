"""Tests info, evaluate and generate on a tiny random model, and on what is left of one."""

import json
import math
import pathlib
import shutil
import subprocess

import pytest
from tiny_model import BPE, model, write_model  # noqa: F401 (a fixture)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("The quick brown fox jumps over the lazy dog. " * 40)
    return path


@pytest.fixture
def copy(model, tmp_path):
    """Copies the model, to be damaged."""
    return shutil.copytree(model, tmp_path / "copy")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSHARE_CACHE", str(tmp_path / "cache"))


def test_info_on_the_machine(run):
    report = json.loads(run("info", "--json").stdout)
    assert report["cores"] >= 1 and report["memory_bytes"] > 0 and report["torch"]
    names = [one["name"] for one in report["attention_backends"]]
    assert names.index("fused") < names.index("sdpa") < names.index("reference")
    assert report["torch"] in run("info").stdout


def test_libtorchs_switch_limits_our_kernels_too(run):
    instructions = json.loads(run("info", "--kernels", "--json").stdout)["instruction_sets"]["headshare"]
    report = json.loads(run("info", "--kernels", "--json", env={"ATEN_CPU_CAPABILITY": "avx2"}).stdout)
    assert report["instruction_sets"]["headshare"] == ("AVX2" if "AVX" in instructions else instructions)


def test_info_on_a_model(run, model):
    report = json.loads(run("info", model, "--json").stdout)
    assert report["attention_parameters"] == 2 * 4 * 16 * 16
    assert report["options"]["d-model"] == 16
    assert report["tokenizer"]["kind"] == "bytes"
    assert report["weights_bytes"] == (model / "model.safetensors").stat().st_size
    assert "bytes, 256 tokens, lossless" in run("info", model).stdout


def test_info_on_kernels(run, model):
    report = json.loads(run("info", "--kernels", "--attention-dropout", 0.1, "--json").stdout)
    training, scoring, decoding = report["kernels"]
    assert (training["backend"], scoring["backend"], decoding["backend"]) == ("fused", "fused", "decode")
    refused = {one["backend"]: " ".join(one["reasons"]) for one in training["refused"]}
    assert "no dropout" in refused["decode"] and "one head of queries" in refused["factorised"]
    assert decoding["queries"] == 1 and decoding["refused"] == []
    [asked] = json.loads(
        run("info", "--kernels", "--scheme", "mhe_add", "--content-bias", "--queries", 5, "--keys", 9, "--json").stdout
    )["kernels"]
    assert (asked["queries"], asked["keys"]) == (5, 9) and asked["refused"]
    assert (training["dropout"], scoring["dropout"], training["precision"]) == (0.1, 0, "fp32")
    assert report["instruction_sets"]["libtorch"]
    both_sides = ("--scheme", "mhe_add", "--positions", "alibi", "--no-causal")
    assert "ALiBi" in run("info", "--kernels", *both_sides).stdout
    assert "decoding" in run("info", model, "--kernels").stdout
    forced = run("info", "--kernels", env={"HEADSHARE_BACKEND": "reference"}).stdout
    assert "reference" in forced and "HEADSHARE_BACKEND" in forced


def test_options_that_info_has_no_use_for_are_refused(refused, model):
    described = "--scheme describes a model, and MODEL is one; leave it out"
    assert described in refused(2, "info", model, "--kernels", "--scheme", "mqa")
    for words in (("--scheme", "mqa"), ("--keys", 9), ("--padding",)):
        for place in ((), (model,)):
            message = refused(2, "info", *place, *words)
            assert f"{words[0]} is about --kernels, which is not given; leave it out" in message


@pytest.mark.parametrize("scheme", ["mha", "mqa", "mhe_add", "mhe_mul", "collaborative", "el_shared"])
def test_info_on_kernels_in_bf16_with_padding(scheme, run):
    flags = ("--scheme", scheme, "--precision", "bf16", "--padding", "--attention-dropout", 0.1)
    report = json.loads(run("info", "--kernels", "--json", *flags).stdout)["kernels"]
    assert [one["situation"] for one in report] == ["training", "scoring", "decoding"]
    assert all(one["backend"] and one["padding"] and one["precision"] == "bf16" for one in report)
    # A processor that multiplies bf16 no faster widens it, but for one new query, where reading is what takes time.
    processor = pathlib.Path("/proc/cpuinfo").read_text()
    gains = "amx_bf16" in processor or ("avx512_bf16" in processor and "GenuineIntel" not in processor)
    widens = [not gains and one["backend"] in ("fused", "factorised") for one in report]
    assert [one["products"] for one in report] == ["fp32" if wide else "bf16" for wide in widens]
    text = " ".join(run("info", "--kernels", *flags).stdout.split())
    assert "256 queries, 256 keys, causal, padded, dropout 0.1, bf16)" in text
    assert text.count(", products in fp32") == sum(widens)
    assert "instructions: libtorch" in text


def evaluate(run, model, *arguments):
    return json.loads(run("evaluate", model, "--json", *arguments).stdout)


def test_evaluate(run, model, text):
    count = len(text.read_bytes())
    whole = evaluate(run, model, "--text", text)
    assert whole["tokens"] == whole["bytes"] == count - 1
    assert whole["context"] == whole["stride"] == 32
    assert whole["perplexity"] == pytest.approx(math.exp(whole["loss"]))
    assert whole["bits_per_byte"] == pytest.approx(whole["loss"] / math.log(2))
    for batch in (1, 7):
        batched = evaluate(run, model, "--text", text, "--batch-size", batch)
        assert batched["loss"] == pytest.approx(whole["loss"], rel=1e-6)
    sliding = evaluate(run, model, "--text", text, "--stride", 8)
    assert sliding["tokens"] == count - 1 and sliding["loss"] != whole["loss"]
    part = evaluate(run, model, "--text", text, "--part", "validation", "--validation-fraction", 0.25)
    assert part["tokens"] == count - int(count * 0.75) - 1
    printed = run("evaluate", model, "--text", text).stdout
    assert "stride 32, disjoint windows" in printed and "bits per byte" in printed


def test_a_context_longer_than_the_text_takes_no_more_memory(run, refused, text, tmp_path):
    write_model(tmp_path / "rotary", positions="rotary")
    whole = evaluate(run, tmp_path / "rotary", "--text", text, "--context", 2048)
    endless = evaluate(run, tmp_path / "rotary", "--text", text, "--context", 1 << 24)
    # Products may round differently where buffers lie differently in memory.
    assert endless["loss"] == pytest.approx(whole["loss"], rel=1e-6) and endless["context"] == 1 << 24
    write_model(tmp_path / "learned")
    long = ("--text", text, "--context", 1 << 24)
    assert "longer than the model's context of 32" in refused(1, "evaluate", tmp_path / "learned", *long)


def test_evaluate_from_standard_input(run, model, text):
    done = run("evaluate", model, "--json", "--text", "-", text_in=text.read_text())
    assert json.loads(done.stdout)["tokens"] == len(text.read_text()) - 1


def test_evaluate_refuses(run, refused, model, text, tmp_path):
    assert "--text" in refused(1, "evaluate", model)
    assert "MODEL is missing" in refused(2, "evaluate", "--text", text)
    assert "stride" in refused(1, "evaluate", model, "--text", text, "--stride", 64)
    assert "context" in refused(1, "evaluate", model, "--text", text, "--context", 64)
    empty = tmp_path / "empty.txt"
    empty.touch()
    assert "empty.txt" in refused(1, "evaluate", model, "--text", empty)
    assert "missing.txt" in refused(1, "evaluate", model, "--text", tmp_path / "missing.txt")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert str(folder) in refused(1, "evaluate", model, "--text", folder)


def generate(run, model, *arguments, **options):
    done = run("generate", model, "--json", *arguments, **options)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_generate(run, model):
    [one] = generate(run, model, "--prompt", "abc", "--max-new-tokens", 10, "--seed", 1)
    assert len(one["tokens"]) == 10 and one["stop_reason"] == "max_new_tokens"
    [again] = generate(run, model, "--prompt", "abc", "--max-new-tokens", 10, "--seed", 1)
    [other] = generate(run, model, "--prompt", "abc", "--max-new-tokens", 10, "--seed", 2)
    assert again["tokens"] == one["tokens"] != other["tokens"]


def test_stop_strings(run, model):
    [whole] = generate(run, model, "--prompt", "abc", "--greedy", "--max-new-tokens", 20)
    place, token = next((i, one) for i, one in enumerate(whole["tokens"]) if 0x30 <= one < 0x5B)
    [stopped] = generate(run, model, "--prompt", "abc", "--greedy", "--max-new-tokens", 20, "--stop", chr(token))
    assert stopped["stop_reason"] == "stop_string"
    assert stopped["tokens"] == whole["tokens"][: place + 1]


def test_generated_bytes_are_those_of_the_tokens(program, model, run):
    [one] = generate(run, model, "--prompt", "abc", "--max-new-tokens", 12)
    command = [program, "generate", model, "--prompt", "abc", "--max-new-tokens", "12"]
    done = subprocess.run(command, capture_output=True)
    assert done.stdout == b"abc" + bytes(one["tokens"]) + b"\n"
    silent = subprocess.run([*command, "--no-echo"], capture_output=True)
    assert silent.stdout == bytes(one["tokens"]) + b"\n"


def test_generate_with_a_cache_equals_scoring(run, model):
    """Greedy decoding from ever longer prompts gives the tokens of one decoding."""
    [whole] = generate(run, model, "--prompt", "ab", "--max-new-tokens", 6, "--greedy")
    prompt = b"ab"
    for token in whole["tokens"]:
        if prompt[-1] >= 0x80 or token >= 0x80:
            break  # prompts on the command line are text
        [next_one] = generate(run, model, "--prompt", prompt.decode(), "--max-new-tokens", 1, "--greedy")
        assert next_one["tokens"] == [token]
        prompt += bytes([token])


def test_prompts_from_standard_input(run, refused, model):
    objects = generate(run, model, "--max-new-tokens", 3, text_in="one\ntwo\r\nthree")
    assert [one["prompt"] for one in objects] == ["one", "two", "three"]
    assert "there is no prompt" in refused(1, "generate", model)
    samples = generate(run, model, "--max-new-tokens", 8, "--samples", 2, "--prompt", "x")
    assert samples[0]["tokens"] != samples[1]["tokens"]


def test_a_window_slides_where_positions_end(run, model, tmp_path):
    flags = ("--prompt", "x" * 30, "--max-new-tokens", 100, "--json")
    done = run("generate", model, *flags)
    [one] = [json.loads(line) for line in done.stdout.splitlines()]
    assert one["stop_reason"] == "max_new_tokens" and len(one["tokens"]) == 100
    assert done.stderr.count("note: ") == 1 and "longer than the context of 32 tokens" in done.stderr
    # The note comes once, however many continuations there are.
    assert run("generate", model, *flags, "--samples", 3).stderr.count("note: ") == 1
    # 33 tokens fit: the last one is not fed back.
    assert "note: " not in run("generate", model, "--prompt", "x" * 30, "--max-new-tokens", 3, "--json").stderr
    sinusoidal = write_model(tmp_path / "sinusoidal", positions="sinusoidal")
    [one] = generate(run, sinusoidal, *flags[:-1])
    assert len(one["tokens"]) == 100
    # Rotary positions have no end: the model sees all of the text, and nothing is said.
    rotary = write_model(tmp_path / "rotary", positions="rotary")
    done = run("generate", rotary, *flags)
    assert len(json.loads(done.stdout)["tokens"]) == 100 and "note: " not in done.stderr


def test_a_sliding_window_is_the_last_half_of_the_context(run, model):
    """Behind a slide the model answers as it does to a prompt of the last 16 tokens."""
    compared = 0
    for start in range(26):
        prompt = "".join(chr(97 + (start + i * i) % 26) for i in range(32))
        [whole] = generate(run, model, "--prompt", prompt, "--max-new-tokens", 2, "--greedy")
        first, second = whole["tokens"]
        if not 0x20 <= first < 0x7F:
            continue  # prompts on the command line are text
        [slid] = generate(run, model, "--prompt", prompt[-15:] + chr(first), "--max-new-tokens", 1, "--greedy")
        assert slid["tokens"] == [second]
        compared += 1
        if compared == 3:
            break
    assert compared > 0


def test_a_long_prompt_keeps_its_last_part(run, model):
    done = run("generate", model, "--prompt", "abc" * 20, "--max-new-tokens", 1, "--greedy", "--json")
    [one] = [json.loads(line) for line in done.stdout.splitlines()]
    assert "the prompt has 60 tokens" in done.stderr and "the last 32 of them" in done.stderr
    [cut] = generate(run, model, "--prompt", ("abc" * 20)[-32:], "--max-new-tokens", 1, "--greedy")
    assert one["tokens"] == cut["tokens"] and one["prompt"] == "abc" * 20
    done = run("generate", model, "--max-new-tokens", 1, "--json", text_in="x" * 10_000_000)
    assert "the prompt has 10000000 tokens" in done.stderr


def test_an_empty_prompt(run, refused, model, tmp_path):
    assert "end-of-text" in refused(1, "generate", model, "--prompt", "")
    with_end = write_model(tmp_path / "bpe", tokenizer=BPE, vocabulary=260)
    [one] = generate(run, with_end, "--prompt", "", "--max-new-tokens", 5)
    assert all(token < 257 for token in one["tokens"])
    # A line of standard input is a prompt, also one without text.
    lines = generate(run, with_end, "--max-new-tokens", 5, text_in="\na\n\r\n")
    assert [line["prompt"] for line in lines] == ["", "a", ""] and lines[0]["tokens"] == one["tokens"]
    stopped = run("generate", model, "--max-new-tokens", 1, "--json", text_in="a\n\nb\n", check=False)
    assert stopped.returncode == 1 and len(stopped.stdout.splitlines()) == 1
    assert "the prompt is empty" in stopped.stderr and "give a prompt with text" in stopped.stderr


def test_a_token_before_every_text(run, tmp_path, text):
    """Decoders that were trained with one get it before a prompt and before a document."""
    plain = write_model(tmp_path / "plain", tokenizer=BPE, vocabulary=260)
    begins = write_model(tmp_path / "begins", tokenizer={**BPE, "version": 2, "begin-of-text": 256}, vocabulary=260)
    done = run("generate", begins, "--prompt", "x" * 32, "--max-new-tokens", 1, "--json")
    assert "the prompt has 33 tokens" in done.stderr
    scored = [json.loads(run("evaluate", one, "--text", text, "--json").stdout)["tokens"] for one in (plain, begins)]
    assert scored[1] == scored[0] + 1


def test_damaged_models(run, refused, copy, tmp_path, text):
    weights = copy / "model.safetensors"
    whole = weights.read_bytes()
    verbs = (("info",), ("evaluate", "--text", text), ("generate", "--prompt", "x"))

    def all_refuse(path, *expected):
        for verb, *arguments in verbs:
            message = refused(1, verb, path, *arguments)
            assert all(part in message for part in expected), message

    for length in (0, 7, 100, len(whole) - 1):
        weights.write_bytes(whole[:length])
        all_refuse(copy, "model.safetensors")
    weights.unlink()
    all_refuse(copy, "model.safetensors")
    weights.mkdir()
    all_refuse(copy, "model.safetensors")
    weights.rmdir()
    weights.write_bytes(whole)
    config = (copy / "config.json").read_text()
    for content in ("", "{", "[]", config.replace('"heads"', '"haeds"'), config.replace("32", "-1")):
        (copy / "config.json").write_text(content)
        all_refuse(copy, "config.json")
    all_refuse(text, "is a file")
    all_refuse(tmp_path / "nothing", "nothing")
    all_refuse(tmp_path, "neither config.json")


def test_a_model_that_is_not_the_configured_one(refused, copy):
    config = json.loads((copy / "config.json").read_text())
    config["model"]["context"] = 64
    (copy / "config.json").write_text(json.dumps(config))
    message = refused(1, "generate", copy, "--prompt", "x")
    assert "position_embedding" in message and "32" in message and "64" in message


def test_devices(refused, run, model):
    report = json.loads(run("info", "--json").stdout)
    assert json.loads(run("info", "--json", "--threads", 1).stdout)["threads"] == 1
    if report["cuda_devices"] == 0:
        message = refused(1, "generate", model, "--prompt", "x", "--device", "cuda")
        assert "--device cpu" in message
