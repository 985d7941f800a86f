"""Tests that studies/judging.py, which marks the tables of docs/results, judges as the program does."""

import itertools
import json
import statistics
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "studies"))
import comparison_results  # noqa: E402
import judging  # noqa: E402

# These have perplexity and accuracy, one and several variants, three and five seeds, two seeds (not judged), a sweep,
# fine-tuned encoders.
FILES = ["demo_text", *(f"compare/{name}" for name in ("dyck-alibi", "induction-mhe", "offsets-rotary", "ablation-heads", "finetune-glue"))]


@pytest.mark.parametrize("degrees_of_freedom", [2, 4, 16 / 3, 13.3, 40])
@pytest.mark.parametrize("probability", [0.75, 0.975, 1 - 0.025 / 8, 0.9999])
def test_student_t(degrees_of_freedom, probability):
    stats = pytest.importorskip("scipy.stats")
    assert judging.student_t(degrees_of_freedom, probability) == pytest.approx(
        stats.t.ppf(probability, degrees_of_freedom), rel=1e-7
    )


@pytest.mark.parametrize("name", FILES)
def test_judges_as_the_program(name, run, tmp_path):
    path = ROOT / f"docs/results/{name}.json"
    ours = judging.differences(comparison_results.read(path))
    rows = json.loads(run("report", path, "--json", "--out", tmp_path).stdout)["rows"]
    theirs = {row["variant"]: row["minus_reference"] for row in rows if row["minus_reference"] and row["trained"]}
    assert ours.keys() == theirs.keys()
    for variant, difference in ours.items():
        assert difference.mean == pytest.approx(theirs[variant]["mean"], abs=1e-12)
        interval = theirs[variant]["interval"]
        assert difference.interval == (None if interval is None else pytest.approx(tuple(interval), abs=1e-9))


def test_direction():
    lists = {"better": [0.2, 0.21, 0.19], "worse": [-0.2, -0.21, -0.19], "close": [0.01, -0.01, 0.0]}
    assert [one.direction for one in judging.judge(lists).values()] == [1, -1, 0]


def test_two_seeds_judge_nothing():
    difference = judging.judge({"far": [9.0, 9.0]})["far"]
    assert difference.interval is None and difference.direction == 0


@pytest.mark.parametrize("degrees_of_freedom", [2, 16 / 3, 13.3, 40])
@pytest.mark.parametrize("t", [0.0, 0.5, 2.1, 9.0, 60.0])
def test_tail(degrees_of_freedom, t):
    stats = pytest.importorskip("scipy.stats")
    assert judging.tail(degrees_of_freedom, t) == pytest.approx(2 * stats.t.sf(t, degrees_of_freedom), rel=1e-6)


@pytest.mark.parametrize(
    "ours, theirs",
    [([1, 2, 3], [4, 5, 6]), ([1, 1, 2], [1, 3, 3, 9]), ([float("inf")] * 3, [5, 7, float("inf")]), ([4, 4], [4, 4])],
)
def test_rank_sums_are_dealt_in_every_way(ours, theirs):
    ranks = [sum(other < one for other in ours + theirs) + sum(other == one for other in ours + theirs) / 2 for one in ours + theirs]
    sums = [sum(dealt) for dealt in itertools.combinations(ranks, len(ours))]
    middle = statistics.fmean(sums)
    extreme = [abs(one - middle) >= abs(sum(ranks[: len(ours)]) - middle) - 1e-9 for one in sums]
    assert judging.rank_sum_p(ours, theirs) == pytest.approx(sum(extreme) / len(sums))


def test_p_values_agree_with_intervals():
    """Checks Bonferroni over the comparison: below 0.05 / k exactly where the interval does not contain 0."""
    for name in ("dyck-alibi", "offsets-rotary"):
        found = judging.differences(comparison_results.read(ROOT / f"docs/results/compare/{name}.json"))
        for one in found.values():
            assert (one.p < 0.05 / len(found)) == (one.direction != 0)


def test_holm():
    # 0.005 <= 0.05 / 4 and 0.01 <= 0.05 / 3; 0.03 > 0.05 / 2 ends it, though 0.04 <= 0.05.
    assert judging.holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}) == {"a", "d"}
    assert judging.holm({}) == set()


def test_arrows_need_a_size_and_survive_the_whole_table():
    sure = judging.Difference(0.5, (0.4, 0.6), 1e-9)
    small = judging.Difference(-0.001, (-0.002, -0.0005), 1e-9)
    weak = judging.Difference(-0.5, (-0.9, -0.1), 0.02)
    two_seeds = judging.Difference(0.5, None)
    nothing = {f"nothing {n}": judging.Difference(0.02, (-0.1, 0.1), 0.6) for n in range(4)}
    row = {"sure": sure, "small": small, "weak": weak, "few": two_seeds}
    assert judging.arrows({"row": row, "other": nothing}, 0.01) == {("row", "sure"): 1}
    assert judging.arrows({"row": {"weak": weak}}, 0.01) == {("row", "weak"): -1}


def test_ratio_interval_is_the_programs():
    """PRR of scores is a ratio of means, for which the files have the program's Fieller interval."""
    results = comparison_results.read(ROOT / "docs/results/compare/finetune-glue.json")
    by_seed = {}
    for cell in results["cells"]:
        by_seed.setdefault(cell["variant"], {})[cell["seed"]] = cell["quality"]
    for row in results["rows"]:
        ours, theirs = by_seed[row["variant"]], by_seed["mha"]
        interval = judging.ratio_interval([ours[seed] for seed in theirs], list(theirs.values()))
        assert [100 * end for end in interval] == pytest.approx(row["prr"]["interval"], abs=1e-6)


def test_two_seeds_and_a_reference_near_0_have_no_ratio_interval():
    assert judging.ratio_interval([1.0, 1.1], [1.0, 1.2]) is None
    assert judging.ratio_interval([1.0, 1.1, 1.2], [-0.1, 0.1, 0.2]) is None


def test_a_scheme_is_kept_where_its_whole_interval_loses_less_than_the_margin():
    import table_parts

    def difference(low, high):
        return judging.Difference((low + high) / 2, (low, high))

    assert table_parts.mark_of_loss(difference(-0.01, 0.019), 0) == " kept"
    assert table_parts.mark_of_loss(difference(-0.01, 0.0199), 0) == ""  # 2 % of perplexity is 0.0198 nats
    assert table_parts.mark_of_loss(difference(0.005, 0.015), 1) == " ↓"
    assert table_parts.mark_of_loss(judging.Difference(0.0, None), 0) == ""


def test_floors_of_tasks():
    import encoder_tables

    assert encoder_tables.floor_of("glue/sst-2", 872) == pytest.approx(100 * 444 / 872)
    always = (1740 / 4700 + 2 * 1740 / (1740 + 4700)) / 2  # "duplicate" to every pair of QQP beats "no duplicate"
    assert encoder_tables.floor_of("glue/qqp", 4700) == pytest.approx(100 * always)
    with pytest.raises(SystemExit, match="LABELS"):
        encoder_tables.floor_of("glue/qqp", 4800)
