"""Tests report: tables and files made again, runs merged, what is refused."""

import csv
import io
import json
import re
import shutil

import pytest
import report_cases as cases
from conftest import run_command
from training import one_line_error

FILES = {"report.html", "results.json"}


def names(directory):
    return {path.name for path in directory.iterdir()}


def scheme_lines(text, scheme):
    return [line for line in text.splitlines() if re.match(rf"{scheme}( \*)?  ", line)]


@pytest.mark.parametrize("case", ["plain", "sweep", "accuracy", "hostile", "one seed", "benchmark"])
def test_tables_fit_a_terminal(run, tmp_path, case):
    what = {
        "plain": cases.results(cases.grid()),
        "sweep": cases.sweep(),
        "accuracy": cases.results(cases.grid(seeds=range(6), accuracy=True), accuracy=True),
        "hostile": cases.hostile(),
        "one seed": cases.results(cases.grid(seeds=[0])),
        "benchmark": cases.benchmark(),
    }[case]
    printed = run("report", cases.save(tmp_path / "run", what)).stdout
    assert max(map(len, printed.splitlines())) <= 80
    assert "\x1b" not in printed  # no colours in a pipe, and none from the file
    # Quality, differences to mha and sha, and cost each stand there at least once, and again where columns go on below.
    tables = len(scheme_lines(printed, "scheme"))
    assert tables >= 3
    for scheme in {one["variant"] for one in what["cells"]} - {cases.HOSTILE}:
        assert len(scheme_lines(printed, scheme)) == tables, scheme
    assert scheme_lines(printed, "mha")[0].startswith("mha *")
    if case == "accuracy":
        unfolded = " ".join(printed.split())
        assert "all of 8 intervals hold (Bonferroni)" in unfolded and "guessing reaches 0.062" in unfolded
    if case == "one seed":
        assert "One seed cannot separate noise from a real difference" in printed and "ignificantly" not in printed
    if case == "hostile":
        assert "Failed: <script>" in printed


def test_writes_beside_the_run_or_where_it_is_told(run, tmp_path):
    directory = cases.save(tmp_path / "run", cases.results(cases.grid()))
    before = (directory / "results.json").read_bytes()
    done = run("report", directory)
    assert f"wrote {directory / 'report.html'}" in done.stderr
    assert names(directory) == FILES and (directory / "results.json").read_bytes() == before
    run("report", directory, "--csv", "--latex", "--out", tmp_path / "new" / "page.html")
    assert names(tmp_path / "new") == {"page.html", "results.csv", "cells.csv", "table.tex"}
    run("report", directory / "results.json", "--out", tmp_path / "folder")
    assert names(tmp_path / "folder") == {"report.html"}
    assert (tmp_path / "folder" / "report.html").read_bytes() == (directory / "report.html").read_bytes()


def test_csv_holds_what_the_results_hold(run, tmp_path):
    what = cases.sweep()
    run("report", cases.save(tmp_path / "run", what), "--csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "run/results.csv").read_text())))
    assert [row["scheme"] for row in rows] == cases.SCHEMES
    mean = sum(one["quality"] for one in what["cells"] if one["variant"] == "sha" and "0.001" in one["setting"]) / 3
    assert float(rows[3]["quality"]) == pytest.approx(mean, rel=1e-12) and rows[3]["setting"] == "learning-rate=0.001"
    lines = list(csv.DictReader(io.StringIO((tmp_path / "run/cells.csv").read_text())))
    assert len(lines) == len(what["planned"])
    assert [line["reason"] for line in lines if line["state"] == "failed"] == [what["failed"][0]["reason"]]
    assert sorted(float(line["loss"]) for line in lines if line["loss"]) == sorted(c["test_loss"] for c in what["cells"])


@pytest.mark.parametrize("case", [cases.sweep, cases.hostile, cases.benchmark])
def test_latex_compiles(run, tmp_path, case):
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex: apt-get install texlive-latex-recommended")
    directory = cases.save(tmp_path / "run", case())
    run("report", directory, "--latex")
    (directory / "paper.tex").write_text(
        "\\documentclass{article}\n\\usepackage{booktabs,graphicx}\n\\begin{document}\n\\input{table}\n\\end{document}\n"
    )
    printed = run_command(["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper"], cwd=directory).stdout
    assert "Overfull" not in printed


def test_runs_of_one_comparison_become_one_table(run, tmp_path):
    first = cases.save(tmp_path / "first", cases.results(cases.grid(["mha", "sha"])))
    second = cases.results(cases.grid(["mha", "mqa"], seeds=[2, 3]), missing=[("mqa", "", 4)])
    second["options"] |= {"schemes": ["mha", "mqa"], "threads": 4}
    second["environment"]["processor"] = "Other 1"
    second = cases.save(tmp_path / "second", second)
    done = run("report", first, second, "--out", tmp_path / "both", "--json")
    merged = json.loads(done.stdout)
    assert [(c["variant"], c["seed"]) for c in merged["cells"]] == [
        *[("mha", seed) for seed in range(4)],
        *[("sha", seed) for seed in range(3)],
        *[("mqa", seed) for seed in (2, 3)],
    ]
    assert merged["complete"] is False and "Partial: 9 of 10 models finished" in merged["headline"]
    rows = {row["scheme"]: row for row in merged["rows"]}
    assert rows["sha"]["minus_reference"]["seeds"] == 3 and rows["mqa"]["minus_reference"]["seeds"] == 2
    assert merged["cells"][0]["model"].startswith(str(first))
    assert {"Example 9000 at 2.10GHz", "Other 1"} == {one["processor"] for one in merged["environment"].values()}
    assert names(tmp_path / "both") == {"report.html"}
    # Merged results can be reported again.
    again = cases.save(tmp_path / "again", merged)
    assert json.loads(run("report", again, "--json").stdout) == merged


def test_other_comparisons_become_sections(run, tmp_path):
    text = cases.save(tmp_path / "text", cases.results(cases.grid(["mha", "sha"])))
    offsets = cases.save(tmp_path / "offsets", cases.results(cases.grid(["mha"], accuracy=True), accuracy=True))
    done = run("report", text, offsets, "--out", tmp_path, "--csv", "--latex")
    assert done.stdout.index("test perplexity") < done.stdout.index("test accuracy")
    page = (tmp_path / "report.html").read_text()
    assert page.count("<section") == 2 and 'href="#c2"' in page
    assert (tmp_path / "table.tex").read_text().count("\\begin{tabular}") == 2
    subjects = [row["subject"] for row in csv.DictReader(io.StringIO((tmp_path / "results.csv").read_text()))]
    assert subjects == ["language-model", "language-model", "offsets"]
    both = json.loads(run("report", text, offsets, "--out", tmp_path, "--overwrite", "--json").stdout)
    assert [one["subject"]["name"] for one in both] == ["language-model", "offsets"]


def test_benchmarks_stand_side_by_side(run, tmp_path):
    schemes = ["mha", "sha", "mqa", "mhe_mul"]
    runs = []
    for name in ("glue", "superglue", "squad-v1.1", "squad-v2.0"):
        made = cases.benchmark(schemes=schemes[: 4 - (name == "glue")])
        made["subject"]["name"] = name
        runs.append(cases.save(tmp_path / name, made))
    done = run("report", *runs, "--out", tmp_path, "--latex", env={"COLUMNS": "100"})
    table, rest = done.stdout.split("* best of a benchmark.")
    assert max(map(len, table.splitlines())) <= 100 and rest.count("Quality") == 4
    first, second = table.rstrip().split("\n\n")
    assert "GLUE" in first and "SuperGLUE" in first and "SQuAD" in second and "v2.0" in second
    [mul] = [line.split() for line in first.splitlines() if line.startswith("mhe_mul")]
    assert mul[2:5] == ["-", "-", "-"] and float(mul[6]) == pytest.approx(93.8, abs=0.1)
    latex = (tmp_path / "table.tex").read_text()
    assert latex.count("\\multicolumn{3}{c}") == 4 and latex.count("\\begin{tabular}") == 9
    page = (tmp_path / "report.html").read_text()
    assert page.count("<section") == 5 and page.index('id="benchmarks"') < page.index('id="c1"')
    # One benchmark has nothing to put side by side.
    assert "best of a benchmark" not in run("report", runs[0], "--out", tmp_path / "one").stdout


def test_a_sweep_needs_a_trained_variant(run, tmp_path):
    what = cases.sweep()
    what["cells"] = [one for one in what["cells"] if one["variant"] == "el_lossless"]
    assert {one["setting"] for one in what["cells"]} and all("weights_of" in one for one in what["cells"])
    directory = cases.save(tmp_path / "run", what)
    run("report", directory)
    assert "lowest validation loss" not in (directory / "report.html").read_text()


def test_an_option_of_the_wrong_type_is_no_table(run, tmp_path):
    what = cases.results(cases.grid(["mha", "sha"]))
    what["variants"][1]["options"]["token-embedding"] = 5
    run("report", cases.save(tmp_path / "run", what))


def test_an_unfinished_run_is_marked(run, tmp_path):
    directory = cases.save(tmp_path / "run", cases.results(cases.grid(["mha"], seeds=[0]), missing=[("sha", "", 0)]))
    assert "Partial: 1 of 2 models finished" in run("report", directory).stdout
    assert '<span class="partial">partial</span>' in (directory / "report.html").read_text()
    nothing = cases.save(tmp_path / "nothing", cases.results([], missing=[("mha", "", 0)]))
    assert "No model is finished yet." in run("report", nothing).stdout


def test_mistakes_are_one_line(run, refused, tmp_path):
    directory = cases.save(tmp_path / "run", cases.results(cases.grid(["mha"], seeds=[0])))
    one_line_error(refused(2, "report"), "DIR is missing")
    one_line_error(refused(2, "report", directory, directory), "--out is missing")
    one_line_error(refused(1, "report", tmp_path / "nowhere"), tmp_path / "nowhere", "does not exist")
    (tmp_path / "empty").mkdir()
    one_line_error(refused(1, "report", tmp_path / "empty"), tmp_path / "empty", "has no results.json")

    file = tmp_path / "bad" / "results.json"
    for change, expected in {
        "{": ["is not JSON"],
        "[]": ["is not a JSON object"],
        '{"format": "other"}': ["not a file of headshare"],
        '{"format": "headshare comparison", "format_version": 1}': ["earlier headshare", "run the comparison again"],
        '{"format": "headshare comparison", "format_version": 4}': ["newer headshare"],
    }.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(change)
        one_line_error(refused(1, "report", file.parent), file, *expected)
        assert names(file.parent) == {"results.json"}  # nothing is written

    other = cases.results(cases.grid(["mha"], seeds=[0]))
    other["cells"][0]["test_loss"] += 1e-9
    cases.save(tmp_path / "other", other)
    message = refused(1, "report", directory, tmp_path / "other", "--out", tmp_path / "both")
    one_line_error(message, "mha seed 0 differs between", directory, tmp_path / "other")
