"""Tests what an attack on the program once broke: runs that lost their links, files of others, options that changed,
odd paths."""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from training import (  # noqa: F401 (two fixtures)
    TINY,
    losses,
    metrics,
    one_line_error,
    own_cache,
    sentences,
    stop_when,
    text,
    weights,
    words,
)

pytestmark = pytest.mark.slow

STEPS = [*TINY, "--steps", 40, "--evaluate-every", 10, "--keep-last", 3]


def result(run, *arguments, **options):
    return json.loads(run("train", "--json", *arguments, **options).stdout)


def steps_of(out):
    return [step for event, step, _ in losses(out) if event == "step"]


@pytest.fixture
def trained(run, text, tmp_path):
    """Trains a finished run of 40 steps, with checkpoints of 20, 30 and 40."""
    out = tmp_path / "trained"
    run("train", *STEPS, "--text", text, "--out", out)
    return out


# --- A run goes on from the newest whole checkpoint -----------------------------------------------------------------


def without_link(out):
    (out / "checkpoints/last").unlink()


def link_to_nothing(out):
    (out / "checkpoints/last").unlink()
    (out / "checkpoints/last").symlink_to("step-00009999")


def links_copied_as_directories(out):
    copy = shutil.copytree(out, out.parent / "copy")  # follows links, as cp -rL does
    shutil.rmtree(out)
    copy.rename(out)


def newest_deleted(out):
    shutil.rmtree(out / "checkpoints/step-00000040")


def newest_cut_short(out):
    path = out / "checkpoints/step-00000040/optimizer.safetensors"
    path.write_bytes(path.read_bytes()[:500])


@pytest.mark.parametrize("damage", [without_link, link_to_nothing, links_copied_as_directories, newest_deleted, newest_cut_short])
def test_resume_takes_the_newest_whole_checkpoint(run, text, tmp_path, trained, damage):
    whole = tmp_path / "whole"
    run("train", *STEPS, "--text", text, "--out", whole, "--steps", 50, "--evaluate-every", 10)
    damage(trained)
    done = run("train", "--resume", "--out", trained, "--steps", 50)
    kept = 30 if damage in (newest_deleted, newest_cut_short) else 40
    assert f"going on after step {kept} of 50" in done.stderr
    assert ("going on from" in done.stderr and "optimizer.safetensors" in done.stderr) == (damage is newest_cut_short)
    assert steps_of(trained) == [*range(1, 51)]
    assert (trained / "checkpoints/last").is_symlink()
    assert not list(trained.rglob("*.partial-*"))


def test_a_run_whose_checkpoints_are_gone_is_not_begun_again(run, refused, trained):
    shutil.rmtree(trained / "checkpoints")
    before = (trained / "metrics.jsonl").read_bytes()
    one_line_error(refused(1, "train", "--resume", "--out", trained), trained, "are gone", "step 40")
    assert (trained / "metrics.jsonl").read_bytes() == before


def test_no_whole_checkpoint_changes_nothing(run, refused, trained):
    for path in (trained / "checkpoints").glob("step-*/training.json"):
        path.write_text("{")
    before = (trained / "metrics.jsonl").read_bytes()
    one_line_error(refused(1, "train", "--resume", "--out", trained), "step-00000040/training.json", "damaged")
    assert (trained / "metrics.jsonl").read_bytes() == before
    assert len(list((trained / "checkpoints").glob("step-*"))) == 3


def test_a_lost_best_model_is_said(run, trained):
    shutil.rmtree((trained / "checkpoints/best").resolve())
    done = run("train", "--resume", "--out", trained, "--steps", 50)
    assert "the best model" in done.stderr and "is gone" in done.stderr
    assert (trained / "checkpoints/best/model.safetensors").is_file()


# --- Files of others ------------------------------------------------------------------------------------------------

FOREIGN = {
    "train": ["metrics.jsonl", "result.json", "resolved.yaml", "checkpoints"],
    "compare": ["report.html", "results.csv", "cells.csv", "results.json", "tokenizer.json", "table.tex", "cells", "plan"],
    "finetune": ["results.json", "weights.json", "glue-cola"],
}


def make_foreign(path):
    if path.suffix:
        path.write_text("the user's own\n")
    else:
        path.mkdir()
        (path / "notes.txt").write_text("the user's own\n")


def content_of(path):
    return path.read_text() if path.is_file() else (path / "notes.txt").read_text()


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]], ids=["plain", "overwrite"])
@pytest.mark.parametrize("verb, name", [(verb, name) for verb in ("train", "compare") for name in FOREIGN[verb]])
def test_files_of_others_stay(refused, text, tmp_path, verb, name, overwrite):
    out = tmp_path / "out"
    out.mkdir()
    make_foreign(out / name)
    schemes = ["--schemes", "mha"] if verb == "compare" else []
    message = refused(1, verb, *TINY, *schemes, "--steps", 2, "--text", text, "--out", out, *overwrite)
    one_line_error(message, out / name, "--out")
    assert content_of(out / name) == "the user's own\n"
    assert [path.name for path in out.iterdir()] == [name]


@pytest.fixture
def encoder(run, text, tmp_path):
    out = tmp_path / "encoder"
    flags = ["--task", "mlm", "--bert", "--tokenizer", "wordpiece", "--vocabulary-size", 120, "--text", text, "--steps", 2]
    run("train", *[word for word in TINY if word not in ("--tokenizer", "bytes")], *flags, "--out", out)
    return out


@pytest.fixture
def table(tmp_path):
    """Returns the options for a table to learn from and one to validate on."""
    for part in ("train", "validation"):
        rows = "".join(f"the fox {i}\t{'ab'[i % 2]}\n" for i in range(24))
        (tmp_path / f"{part}.tsv").write_text("text\tlabel\n" + rows)
    return ["--train", tmp_path / "train.tsv", "--validation", tmp_path / "validation.tsv"]


@pytest.mark.parametrize("name", FOREIGN["finetune"])
def test_finetune_leaves_files_of_others(run, refused, encoder, table, tmp_path, name):
    out = tmp_path / "out"
    out.mkdir()
    make_foreign(out / name)
    call = ["finetune", encoder, "--task", "classify", *table, "--epochs", 1, "--seeds", 1]
    for more in ([], ["--overwrite"]):
        message = refused(1, *call, "--out", out, *more)
        assert str(out / name) in message and "would be lost" in message
    assert content_of(out / name) == "the user's own\n"
    assert [path.name for path in out.iterdir()] == [name]


def test_finetune_takes_a_lock(run, refused, encoder, table, tmp_path):
    out = tmp_path / "out"
    call = ["finetune", encoder, "--task", "classify", *table, "--epochs", 1, "--seeds", 1]
    run(*call, "--out", out)
    assert not [path for path in out.rglob("*") if not path.exists()], "a link to nothing: cp -rL would fail"
    with open(out / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for how in ("--overwrite", "--resume"):
            assert "in use by another" in refused(1, *call, "--out", out, how)
    assert (out / "results.json").is_file()


def test_unfinished_files_of_others_stay(run, refused, encoder, text, tmp_path):
    """Their names look like ours: anything.partial-NUMBER."""
    out, cache = tmp_path / "out", pathlib.Path(os.environ["HEADSHARE_CACHE"])
    (out / "checkpoints").mkdir(parents=True)
    cache.mkdir(exist_ok=True)
    foreign = [out / "notes.partial-4194303", out / "checkpoints" / "x.partial-4194303", cache / "notes.partial-4194303"]
    foreign.append(tmp_path / "notes.partial-4194303")
    for path in foreign:
        path.write_text("theirs")
        os.utime(path, (0, 0))
    one_line_error(refused(1, "train", *TINY, "--steps", 2, "--text", text, "--out", out), out / "checkpoints")
    free = tmp_path / "free"
    free.mkdir()
    foreign.append(free / "notes.partial-4194303")
    foreign[-1].write_text("theirs")
    for more in ([], ["--overwrite"]):
        run("train", *TINY, "--steps", 2, "--text", text, "--out", free, *more)
    run("convert", "--to", "hf", encoder, tmp_path / "exported")
    assert all(path.is_file() for path in foreign), [path for path in foreign if not path.is_file()]


def test_standard_input_kept_by_a_killed_call_is_no_obstacle(run, text, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "kept-input-0123456789abcdef0123456789abcdef.txt").write_text("kept before the run was marked")
    run("train", *TINY, "--steps", 2, "--text", "-", "--out", out, text_in=text.read_text())


def test_event_files_of_others_stay(run, text, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    theirs = out / "events.out.tfevents.1700000000.host.1.0"
    theirs.write_text("theirs")
    for more in ([], ["--overwrite"]):
        run("train", *TINY, "--steps", 2, "--text", text, "--out", out, *more)
        assert theirs.read_text() == "theirs"
        assert len(list(out.glob("events.out.tfevents.headshare.*"))) == 1


def test_what_stands_beside_a_run_survives_overwrite(run, trained):
    (trained / "notes.txt").write_text("mine")
    run("train", "--config", trained / "resolved.yaml", "--out", trained, "--overwrite", "--steps", 3)
    assert (trained / "notes.txt").read_text() == "mine" and steps_of(trained) == [1, 2, 3]


def test_standard_input_cannot_collide(run, refused, text, tmp_path):
    mine = tmp_path / "input.txt"
    mine.write_bytes(text.read_bytes())
    out = tmp_path / "out"
    piped = text.read_text()[:5000]
    run("compare", *TINY, "--schemes", "mha", "--steps", 2, "--text", "-", "--out", out, text_in=piped)
    [kept] = out.glob("kept-input-*.txt")
    assert kept.read_text() == piped
    # The comparison goes into the directory of the text itself.
    run("compare", *TINY, "--schemes", "mha", "--steps", 2, "--text", "-", "--out", tmp_path, text_in=piped)
    assert mine.read_bytes() == text.read_bytes()


def test_a_directory_of_another_verb(run, refused, text, trained):
    message = refused(1, "compare", *TINY, "--schemes", "mha", "--text", text, "--out", trained, "--overwrite")
    one_line_error(message, trained, "`headshare train`")
    assert steps_of(trained) == [*range(1, 41)]


def test_runs_from_before_marks(run, refused, text, trained):
    (trained / ".headshare").unlink()
    assert result(run, "--resume", "--out", trained)["steps"] == 40
    assert json.loads((trained / ".headshare").read_text())["verb"] == "train"
    (trained / ".headshare").unlink()
    run("train", *TINY, "--text", text, "--steps", 3, "--out", trained, "--overwrite")
    assert steps_of(trained) == [1, 2, 3]


# --- Resuming with other options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [["--batch-size", 8], ["--seed", 7], ["--learning-rate", 0.5], ["--optimizer", "lamb"], ["--batch-order", "shuffled"]],
    ids=str,
)
def test_options_that_change_a_run_are_refused(refused, trained, changed):
    before = (trained / "metrics.jsonl").read_bytes()
    message = refused(2, "train", "--resume", "--out", trained, "--steps", 50, *changed)
    one_line_error(message, changed[0], changed[1], "was begun with")
    assert (trained / "metrics.jsonl").read_bytes() == before


def test_options_that_may_change_are_recorded(run, refused, trained):
    run("train", "--resume", "--out", trained, "--steps", 50, "--log-every", 5)
    resolved = (trained / "resolved.yaml").read_text()
    assert "  steps: 50\n" in resolved and "  log-every: 5\n" in resolved
    assert result(run, "--resume", "--out", trained)["steps"] == 50
    message = refused(1, "train", "--resume", "--out", trained, "--steps", 30)
    one_line_error(message, trained, "50 steps already", "--steps 30")


def test_paths_are_found_from_another_directory(run, text, tmp_path):
    out = tmp_path / "out"
    run("train", *STEPS, "--text", text.name, "--out", out, cwd=text.parent)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run("train", "--resume", "--out", out, "--steps", 45, cwd=elsewhere)
    assert steps_of(out) == [*range(1, 46)]


def test_text_from_a_pipe_can_be_resumed(run, program, text, tmp_path):
    out = tmp_path / "out"
    run("train", *STEPS, "--text", "-", "--out", out, text_in=text.read_text())
    assert "going on after step 40 of 45" in run("train", "--resume", "--out", out, "--steps", 45).stderr
    command = " ".join(words(program, "train", *STEPS)) + f" --text <(cat {text}) --out {tmp_path / 'pipe'}"
    subprocess.run(["bash", "-c", command], check=True, capture_output=True, timeout=120)
    run("train", "--resume", "--out", tmp_path / "pipe", "--steps", 45)
    assert losses(tmp_path / "pipe") == losses(out)


# --- Odd paths and numbers ------------------------------------------------------------------------------------------


def odd_paths(folder):
    loop = folder / "loop"
    loop.symlink_to("loop")
    return {"over-long name": folder / ("n" * 300), "link loop": loop / "x", "loop itself": loop}


@pytest.mark.parametrize("what", ["over-long name", "link loop", "loop itself"])
@pytest.mark.parametrize("verb", ["train", "compare", "finetune", "convert", "info", "report", "evaluate", "text"])
def test_odd_paths_are_the_users_mistakes(program, text, tmp_path, verb, what):
    path = odd_paths(tmp_path)[what]
    calls = {
        "train": ["train", *TINY, "--steps", 2, "--text", text, "--out", path],
        "compare": ["compare", *TINY, "--schemes", "mha", "--steps", 2, "--text", text, "--out", path],
        "finetune": ["finetune", path, "--task", "cola", "--out", path],
        "convert": ["convert", "--from", "hf", tmp_path, path],
        "info": ["info", path],
        "report": ["report", path],
        "evaluate": ["evaluate", path, "--text", text],
        "text": ["train", *TINY, "--text", path, "--out", tmp_path / "out"],
    }
    done = subprocess.run(words(program, *calls[verb]), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout == ""
    *_, error = done.stderr.splitlines()
    assert "defect" not in error and "exists already" not in error, error
    assert path.name[:20] in error and ("too long" in error or "symbolic links" in error), error


def test_arguments_that_are_not_utf8(program, text, tmp_path):
    for name in (b"\xff.txt", b"ok.txt"):
        shutil.copy(text, os.fsencode(tmp_path) + b"/" + name)
    for call in (
        ["train", *TINY, "--text", os.fsencode(tmp_path) + b"/\xff.txt", "--out", tmp_path / "out"],
        ["compare", *TINY, "--text", text, "--out", os.fsencode(tmp_path) + b"/\xff"],
    ):
        done = subprocess.run([os.fsencode(str(word)) if not isinstance(word, bytes) else word for word in [program, *call]],
                              capture_output=True, timeout=60)
        assert done.returncode == 2 and b"is not UTF-8" in done.stderr
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("numbers", [["--max-gradient-norm", "1e-300"], ["--optimizer", "lamb", "--learning-rate", "1e300"]], ids=str)
def test_extreme_numbers_are_no_defect(program, text, tmp_path, numbers):
    call = ["train", *TINY, "--steps", 5, "--text", text, "--out", tmp_path / "out", *numbers]
    done = subprocess.run(words(program, *call), capture_output=True, text=True, timeout=60)
    assert "defect" not in done.stderr and "libtorch" not in done.stderr
    assert done.returncode == 0 or "smaller --learning-rate" in done.stderr or "has diverged" in done.stderr, done.stderr


# --- Outputs among the texts ----------------------------------------------------------------------------------------


def test_an_output_inside_the_folder_of_texts_is_no_text(run, text, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(text, folder / "a.txt")
    call = ["compare", *TINY, "--schemes", "mha,sha", "--steps", 3, "--json", "--text"]
    inside = json.loads(run(*call, folder, "--out", folder / "cmp").stdout)
    outside = json.loads(run(*call, text, "--out", tmp_path / "out").stdout)
    assert [cell["test_loss"] for cell in inside["cells"]] == [cell["test_loss"] for cell in outside["cells"]]
    run("compare", "--resume", "--out", folder / "cmp", "--schemes", "mha,sha,mqa")
    # Notes of the user's own beside them are text.
    (folder / "cmp" / "notes.txt").write_text("these are mine. " * 20)
    more = json.loads(run(*call, folder, "--out", tmp_path / "more").stdout)
    assert more["subject"]["fingerprint"] != outside["subject"]["fingerprint"]


# --- Smaller ones ---------------------------------------------------------------------------------------------------


def test_resuming_a_finished_average_appends_nothing(run, text, tmp_path):
    out = tmp_path / "out"
    run("train", *STEPS, "--average-last", 2, "--text", text, "--out", out)
    before = losses(out)
    for _ in range(2):
        run("train", "--resume", "--out", out)
    assert losses(out) == before
    assert [line["step"] for line in metrics(out) if line.get("averaged")] == [40]


def test_leftovers_of_dead_processes_are_swept(run, text, tmp_path):
    cache = pathlib.Path(os.environ["HEADSHARE_CACHE"])
    cache.mkdir()
    gone = subprocess.Popen(["true"])
    gone.wait()
    old, fresh, living = (cache / f"{name}.tokens.partial-{process}"
                          for name, process in (("old", gone.pid), ("fresh", gone.pid), ("living", os.getpid())))
    for path in (old, fresh, living):
        path.write_text("half")
        if path != fresh:
            os.utime(path, (0, 0))
    run("train", *TINY, "--steps", 1, "--text", text, "--out", tmp_path / "out")
    assert not old.exists() and fresh.exists() and living.exists()


def test_a_checkpoint_that_cannot_be_deleted_ends_no_run(run, text, tmp_path, trained):
    if os.geteuid() == 0:
        # Root may delete anything but what is immutable or in use as a mount point; a busy directory is neither here.
        pytest.skip("root deletes everything")
    stubborn = trained / "checkpoints/step-00000020"
    stubborn.chmod(0o500)
    done = run("train", "--resume", "--out", trained, "--steps", 60)
    assert "cannot delete" in done.stderr


def test_a_closed_terminal_saves_a_checkpoint(program, text, tmp_path):
    out = tmp_path / "out"
    call = [program, "train", *TINY, "--steps", 100000, "--text", text, "--out", out]
    stopped = stop_when(call, lambda: (out / "metrics.jsonl").exists() and steps_of_now(out) > 20, signal.SIGHUP)
    assert "stopped after step" in stopped.said
    assert (out / "checkpoints/last/training.json").is_file()


def steps_of_now(out):
    return (out / "metrics.jsonl").read_bytes().count(b"\n")


def test_a_closed_standard_error_writes_into_no_file(program, text, tmp_path):
    out = tmp_path / "out"
    call = " ".join(words(program, "train", *TINY, "--steps", 2, "--text", text, "--out", out))
    subprocess.run(["bash", "-c", f"{call} 2>&- >/dev/null"], check=True, timeout=60)
    assert (out / ".lock").read_bytes() == b""


def test_no_steps_does_not_suggest_itself(refused, text):
    message = refused(2, "train", "--no-steps", "--text", text)
    assert "--no-steps is not possible: --steps takes a value" in message and "did you mean" not in message


def test_info_sees_missing_tensors(run, refused, trained):
    best = trained / "checkpoints/best"
    config = json.loads((best / "config.json").read_text())
    config["model"]["layers"] = 2
    (best.resolve() / "config.json").write_text(json.dumps(config))
    one_line_error(refused(1, "info", trained), "model.safetensors", "blocks.1.", "is missing")


# --- Numbers that are none ------------------------------------------------------------------------------------------


def poison(path, tensor):
    """Makes the first value of a tensor NaN."""
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[:8], "little")
    start = 8 + size + json.loads(data[8 : 8 + size])[tensor]["data_offsets"][0]
    data[start : start + 4] = b"\x00\x00\xc0\x7f"
    path.write_bytes(data)


def test_fill_refuses_scores_that_are_no_numbers(run, refused, encoder):
    best = (encoder / "checkpoints/best").resolve()
    assert run("fill", best, "the [MASK] fox").stdout
    poison(best / "model.safetensors", "masked_head.output_bias")
    one_line_error(refused(1, "fill", best, "the [MASK] fox"), best, "not finite", "diverged")


def test_a_rate_that_diverges_never_wins(run, encoder, table, tmp_path):
    call = ["finetune", encoder, "--task", "classify", *table, "--epochs", 1, "--seeds", 1, "--batch-size", 32]
    done = run(*call, "--learning-rate", "1e30,1e-3", "--out", tmp_path / "out")
    assert "nan (best so far)" not in done.stderr
    [task] = json.loads((tmp_path / "out/results.json").read_text())["tasks"]
    assert task["learning_rate"] == 1e-3
    assert len(task["failures"]) == 1 and "1e+30" in task["failures"][0]
