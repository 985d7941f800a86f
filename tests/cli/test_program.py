"""Tests the program as a whole: help, version, exit codes, broken pipes, Ctrl-C."""

import os
import pty
import re
import signal
import subprocess

import pytest
from conftest import ROOT
from tiny_model import model  # noqa: F401 (a fixture)

VERBS = re.findall(r'Verb\{"(\w+)"', (ROOT / "headshare/cli/program.cc").read_text())


def test_help_names_every_verb(run):
    done = run("--help")
    assert VERBS
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", done.stdout, re.MULTILINE)
    assert done.stderr == ""


def test_version(run, root):
    assert run("--version").stdout == "headshare " + (root / "version.txt").read_text().split()[0] + "\n"


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb(verb, run):
    text = run(verb, "--help").stdout
    assert text.startswith(f"Usage: headshare {verb}")
    assert len(text.splitlines()) <= 45
    assert all(len(line) <= 80 for line in text.splitlines())
    assert run("help", verb).stdout == text
    assert text.count(f"\n  headshare {verb} ") >= 2, "two examples"
    everything = run(verb, "--help-all").stdout
    assert "--config FILE.yaml" in everything
    assert set(re.findall(r"--[a-z][-a-z0-9]+", text)) <= set(re.findall(r"--[a-z][-a-z0-9]+", everything))
    narrow = run(verb, "--help-all", env={"COLUMNS": "60"}).stdout
    long_words = {word for word in narrow.split() if len(word) > 30}
    assert all(len(line) <= 60 or long_words & set(line.split()) for line in narrow.splitlines())


def test_no_verb_shows_the_help(run):
    for words in ([], ["--help-all"], ["-h"], ["help"]):
        assert run(*words).stdout == run("--help").stdout


@pytest.mark.parametrize("width", [60, 80])
def test_help_fits_the_screen(run, width):
    text = run("--help", env={"COLUMNS": str(width)}).stdout
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    assert "score scores predictions of any program: SQuAD, GLUE, SuperGLUE, translations" in words
    assert "prints one table of quality and cost" in words


def test_unknown_verbs(run, refused):
    assert "did you mean 'cost'?" in refused(2, "csot")
    assert "did you mean" not in refused(2, "quantise")
    assert "unknown verb" in refused(2, "x" * 100_000)
    for call in (["x" * 100_000], ["info", "x" * 100_000], ["score", "glue", "x " * 50_000], ["cost", "--schemes", "x" * 100_000]):
        done = run(*call, check=False)
        assert done.returncode in (1, 2) and len(done.stderr) < 1000, call


@pytest.mark.parametrize("verb", VERBS)
def test_unknown_flags_are_refused_with_the_nearest_name(verb, refused):
    assert "did you mean --config?" in refused(2, verb, "--confg", "x")
    assert f"`headshare {verb} --help-all`" in refused(2, verb, "--no-such-thing-here")


@pytest.mark.parametrize("words, says", [
    ("train --text x --out y --teacher-share 0.5", "--teacher-share needs --teacher MODEL"),
    ("train --task translation --source x --out y --validation-fraction 0.1", "--validation-fraction does nothing for"),
    ("train --text x --out y --validation-text z --validation-fraction 0.1", "--validation-text is the validation part"),
    ("train --text x --out y --validation-fraction 0 --patience 3", "--patience stops a run by its validation part"),
    ("train --text x --out y --tokenizer-path z --tokenizer bytes", "--tokenizer-path names one that there is"),
    ("train --text x --dry-run --json", "--json is about the result"),
    ("train --text x --out y --schedule constant --min-learning-rate 1e-5", "does nothing with --schedule constant"),
    ("train --text x --out y --decay-steps 3", "--decay-steps does nothing with --schedule cosine"),
    ("train --text x --out y --warmup-steps 3 --warmup-ratio 0.1", "--warmup-ratio does nothing beside --warmup-steps"),
    ("train --text x --out y --rotary-base 5000", "--rotary-base does nothing with --positions learned"),
    ("train --text x --out y --scheme mqa --groups 2", "--groups matters only to the scheme gqa"),
    ("train --text x --out y --scheme sha --mhe-deviation 0.1", "--mhe-deviation matters only to the schemes mhe_add and mhe_mul"),
    ("train --text x --out y --scheme mla --kv-rank 4", "--kv-rank matters only to the scheme lrkv"),
    ("train --text x --out y --scheme skv --kv-latents 2", "--kv-latents matters only to the scheme mla"),
    ("train --text x --out y --scheme mqa --kv-heads 2", "--kv-heads matters only to the scheme skv"),
    ("train --text x --out y --scheme mla --kv-shift", "--kv-shift matters only to the schemes mha, gqa, mqa, sha and shared_query"),
    ("train --text x --out y --scheme lrkv --query-map complex", "--query-map matters only to the scheme shared_query"),
    ("train --text x --out y --scheme shared_query --query-rank 2", "query-rank is the rank of --query-map low_rank, not of full"),
    ("train --text x --out y --layer-key-widths 8,16", "--layer-key-widths matters only to the scheme collaborative"),
    ("compare --text x --out y --schemes mha,mhe_add --mhe-mul-offset 0", "--mhe-mul-offset matters only to"),
    ("compare --text x --out y --schemes mha --sweep groups=1,2", "--sweep groups: groups matters only to the scheme gqa"),
    ("cost --schemes gqa --key-width 64", "--key-width matters only to the schemes mha, el_lossless and collaborative"),
    ("cost --schemes mha --sweep groups=1,2", "--sweep groups: groups matters only to the scheme gqa"),
    ("cost --kind encoder-decoder --schemes mha --cross-scheme sha --groups 2", "--groups matters only to"),
    ("info --kernels --scheme mha --groups 2", "--groups matters only to the scheme gqa"),
    ("train --text x --out y --attention-dropout-mask shared", "is about --attention-dropout, which is 0"),
    ("train --text x --out y --label-smoothing 0.1", "--label-smoothing belongs to --task translation"),
    ("compare --text x --out y --label-smoothing 0.1", "--label-smoothing belongs to --task translation"),
    ("compare --text x --out y --max-seeds 9", "--max-seeds is about --until-decided"),
    ("compare --text x --out y --sweep schedule=cosine,linear --decay-steps 3", "--decay-steps does nothing with"),
    ("compare --text x --teacher-temperature 2", "--teacher-temperature needs --teacher MODEL"),
    ("finetune x --task cola --data y --out z --text-column t", "--text-column is about your own table"),
    ("finetune x --task classify --train y --out z --data w", "--data is about the tasks of GLUE and SuperGLUE"),
    ("finetune x --task classify --train y --out z --doc-stride 8", "--doc-stride is about --task squad"),
    ("predict x y --overwrite", "--overwrite is about --out"),
    ("predict x y --no-score --label-column z", "--label-column is not read with --no-score"),
    ("generate x --json --echo", "--echo does nothing with --json"),
    ("generate x --greedy --top-k 3", "--top-k is about drawing tokens"),
    ("translate x --beam 1 --early-stopping true", "--early-stopping is about several hypotheses"),
    ("translate x --beam 1 --length-penalty 2", "--length-penalty chooses among several hypotheses"),
    ("translate x --max-length-extra 3", "--max-length-extra is added to --max-length-ratio"),
    ("translate x --scores --json", "--scores does nothing with --json"),
    ("score bleu x --reference y --json --width 3", "--width is about printed scores"),
])  # fmt: skip
def test_options_that_change_nothing_are_refused(refused, words, says):
    message = refused(2, *words.split())
    assert says in message and "leave it out" in message


@pytest.mark.parametrize("words, says", [
    ("train --text x --out y --scheme lrkv --d-model 64 --heads 4 --kv-rank 17", "kv-rank must be at most 16"),
    ("train --text x --out y --scheme mla --rotary-head-width 4 --positions learned", "set --positions rotary"),
    ("train --text x --out y --scheme mla --kv-latents 3", "kv-latents must divide heads"),
    ("train --text x --out y --scheme mla --layers 2 --layer-kv-latent-widths 4,8 --kv-latent-width 9", "leave --kv-latent-width out"),
    ("train --text x --out y --scheme skv --skv-rotary counter --positions learned", "set --positions rotary"),
    ("train --text x --out y --scheme gqa --key-offset", "set --positions rotary and --rotary-dimensions below"),
])  # fmt: skip
def test_sizes_that_no_model_has_are_refused(refused, words, says):
    assert says in refused(2, *words.split())


@pytest.mark.parametrize("verb", ["train", "compare"])
def test_a_dry_run_is_of_a_new_call(verb, refused):
    assert "--dry-run shows those of a new one; leave one out" in refused(2, verb, "--resume", "--dry-run", "--out", "x")


def test_config_files(run, refused, tmp_path):
    path = tmp_path / "cost.yaml"
    path.write_text("model:\n  layers: 12\n  d_model: 768\nheads: 12\njson: true\nschemes: [mhe_add]\n")
    from_file = run("cost", "--config", path).stdout
    flags = ("--n-layer", 12, "--hidden_size=768", "--heads", 12, "--scheme=mhe-add", "--json")
    assert from_file == run("cost", *flags).stdout
    assert run("cost", "--layers=1", "--config", path).stdout == run("cost", "--config", path, "--layers", 1).stdout
    path.write_text("layers: 12\nheds: 12\n")
    message = refused(2, "cost", "--config", path)
    assert f"{path}:2" in message and "did you mean 'heads'?" in message
    path.write_text("layers: 12\nn_layer: 6\n")
    assert f"{path}:2" in refused(2, "cost", "--config", path)
    for content in ("", "\0\1\2", "layers: [", "- 1\n", "layers: " + "9" * 10_000_000, "[" * 100_000, "{" * 100_000):
        path.write_text(content)
        done = run("cost", "--config", path, check=False)
        assert done.returncode == (0 if content == "" else 2), content[:20]
    assert "director" in refused(2, "cost", "--config", tmp_path)
    assert "missing.yaml" in refused(2, "cost", "--config", tmp_path / "missing.yaml")


def test_a_closed_pipe_ends_quietly(program):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([program, "cost"], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    assert done.returncode == 141
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_an_error(program):
    with open("/dev/full", "w") as full:
        done = subprocess.run([program, "cost"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot write to standard output")


def test_ctrl_c_while_waiting_for_a_prompt(program, model):
    waiting = subprocess.Popen(
        [program, "generate", model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    waiting.stdin.write(b"one\n")
    waiting.stdin.flush()
    assert waiting.stdout.readline()  # it has started
    waiting.send_signal(signal.SIGINT)
    _, messages = waiting.communicate(timeout=30)
    assert waiting.returncode == 130
    assert messages.endswith(b"note: stopped\n")


@pytest.mark.parametrize("refused", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_colours_on_a_terminal(program, refused):
    terminal, inside = pty.openpty()
    environment = {"TERM": "xterm", **refused}
    subprocess.run([program, "cost", "--nonsense"], stdout=inside, stderr=inside, env=environment, check=False)
    os.close(inside)
    said = os.read(terminal, 10_000).decode()
    os.close(terminal)
    assert "nonsense" in said
    assert ("\033[1;31merror:\033[0m" in said) == (not refused)


def test_no_colours_off_a_terminal(run):
    done = run("cost", "--nonsense", check=False)
    assert "\033" not in done.stderr + run("--help").stdout
