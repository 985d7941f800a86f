"""Reads and writes the files of benchmarks: what the rows of one case share stands once, before a row of figures for
each contender.

    {"environment": {...}, "columns": ["contender", "median_ms", ...],
     "results": [{...case..., "contenders": [["headshare", 1.5, ...], ...]}, ...]}
"""

import json

# These fields make two rows one case; a row without any of them is a case of its own.
CASE = ("name", "case", "model", "scheme", "pass", "causal", "dropout", "dropout_masks", "precision", "batch_size", "heads")
CASE += ("rows", "depth", "columns", "queries", "keys", "head_width", "key_width")
CASE += ("layers", "width", "context", "batch", "vocabulary", "steps", "threads")
CASE += ("commit",)  # of the program, where it is not that of the environment: measured by an earlier call
FIGURES = 5  # significant: more than a time repeats


def write(path, environment, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(key for row in rows for key in row if key not in CASE))
    lines = ",\n  ".join(json.dumps(case) for case in grouped(rows, columns))
    head = json.dumps(dict(environment=environment), indent=1)[:-2]
    path.write_text(f'{head},\n "columns": {json.dumps(columns)},\n "results": [\n  {lines}\n ]\n}}\n')
    print(f"{len(rows)} rows in {path}", flush=True)


def rounded(x):
    return float(f"{x:.{FIGURES}g}") if isinstance(x, float) else x


def grouped(rows, columns):
    cases, last = [], None
    for row in rows:
        case = {key: row[key] for key in CASE if key in row}
        if case != last:
            cases.append({**case, "contenders": []})
            last = case
        cases[-1]["contenders"].append([rounded(row.get(key)) for key in columns])
    return cases


def rows_of(results):
    """Returns every contender's row with its case's fields, of a file's parsed content; what is null is left out."""
    rows = []
    for case in results["results"]:
        shared = {key: value for key, value in case.items() if key != "contenders"}
        for figures in case["contenders"]:
            own = {key: value for key, value in zip(results["columns"], figures, strict=True) if value is not None}
            rows.append({**shared, **own})
    return rows


def case_of(row):
    """Returns what identifies a case across programs: not how many steps were timed, nor whose commit timed them."""
    row = {"model": "gpt2", **row} if "layers" in row else row  # rows from before there were others
    return tuple(row.get(key) for key in CASE if key not in ("commit", "case", "steps"))


def require_processor(path, processor):
    """Refuses rows of two machines in one file, which would be read as those of one; asked before anything is
    measured."""
    earlier = json.loads(path.read_text())["environment"]["processor"]
    if earlier != processor:
        raise SystemExit(f"{path} was measured on another processor ({earlier}, not {processor}): measure all of it again")


def rows_left(path, measured, commit):
    """Returns the rows of an earlier result whose cases are not among those measured now, each with its program's
    commit."""
    earlier = json.loads(path.read_text())
    fresh = {case_of(row) for row in measured}
    left = [{"commit": earlier["environment"]["commit"], **row} for row in rows_of(earlier) if case_of(row) not in fresh]
    return [{key: value for key, value in row.items() if key != "commit" or value != commit} for row in left]


def read(path):
    return rows_of(json.loads(path.read_text()))
