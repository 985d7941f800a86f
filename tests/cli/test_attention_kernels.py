"""Tests the fused attention kernels in training: they give the loss curve of the plain formula, in every scheme, with
dropout."""

import json

import pytest
from conftest import SCHEMES
from training import TINY, metrics, own_cache, sentences, text  # noqa: F401 (fixtures)

STEPS = 200
# These sizes give several blocks of queries (64) and of keys (128), the last ones not full.
BLOCKS = {"--context": 150, "--batch-size": 2, "--threads": 2}


def changed(flags, values):
    return [values.get(before, flag) for before, flag in zip([None, *flags], flags, strict=False)]


def curve(run, text, out, scheme, backend, *more):
    run(
        "train", *changed(TINY, BLOCKS), "--text", text, "--out", out, "--scheme", scheme, "--steps", STEPS,
        "--learning-rate", 0.01, "--attention-dropout", 0.1, "--evaluate-every", STEPS, *more,
        env={"HEADSHARE_BACKEND": backend},
    )  # fmt: skip
    return [line["loss"] for line in metrics(out) if line["event"] == "step"]


# Both use the same masks, so that curves differ by rounding alone. Training is chaotic: rounding of 1e-7 a step grows,
# so the whole curve gets 5e-3; a mask, a scale or a gradient that is wrong shows within ten.
@pytest.mark.parametrize("scheme", SCHEMES)
def test_fused_kernels_follow_the_curve_of_the_plain_formula(run, text, tmp_path, scheme):  # noqa: F811
    plain = curve(run, text, tmp_path / "plain", scheme, "reference")
    fused = curve(run, text, tmp_path / "fused", scheme, "fused")
    assert plain[-1] < 0.8 * plain[0]
    assert fused[:10] == pytest.approx(plain[:10], rel=1e-5)
    assert fused == pytest.approx(plain, rel=5e-3)


@pytest.mark.parametrize("positions", ["learned", "alibi"])
def test_the_factorised_kernel_follows_too(run, text, tmp_path, positions):  # noqa: F811
    shared = ["--attention-dropout-mask", "shared", "--positions", positions]
    plain = curve(run, text, tmp_path / "plain", "mhe_add", "reference", *shared)
    factorised = curve(run, text, tmp_path / "factorised", "mhe_add", "factorised", *shared)
    assert factorised[:10] == pytest.approx(plain[:10], rel=1e-5)
    assert factorised == pytest.approx(plain, rel=5e-3)
    resolved = (tmp_path / "factorised" / "resolved.yaml").read_text()
    assert "attention-dropout-mask: shared" in resolved


def test_a_forced_kernel_that_cannot_run_says_why(run, text, tmp_path):  # noqa: F811
    done = run(
        "train", *TINY, "--text", text, "--out", tmp_path / "run", "--scheme", "mha", "--steps", 1,
        env={"HEADSHARE_BACKEND": "factorised"}, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "HEADSHARE_BACKEND=factorised cannot run this attention" in done.stderr
    assert "one head of queries, keys and values, not" in done.stderr


def test_decoding_gives_the_tokens_of_the_plain_formula(run, text, tmp_path):  # noqa: F811
    for scheme in ("mqa", "mhe_add", "collaborative"):
        out = tmp_path / scheme
        run("train", *TINY, "--text", text, "--out", out, "--scheme", scheme, "--steps", 30, "--learning-rate", 0.01)
        words = [
            json.loads(
                run(
                    "generate", out, "--prompt", "The ", "--max-new-tokens", 8, "--json",
                    env={"HEADSHARE_BACKEND": backend},
                ).stdout
            )["tokens"]
            for backend in ("", "reference")
        ]  # fmt: skip
        assert words[0] == words[1], scheme
