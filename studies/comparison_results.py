"""Reads results.json of `headshare compare`, of format 2 or 3, with the names of format 3 (docs/results-format.md)."""

import json


def read(path):
    results = json.loads(path.read_text())
    if results.get("format") == "headshare comparison" and results["format_version"] == 2:
        for row in results["rows"]:
            row["variant"] = row["scheme"]
            row["minus_reference"] = row.pop("minus_mha")
            for one in [row, *row.get("settings", [])]:
                one["scores"] = _scores(one)
        for cell in results["cells"]:
            cell["variant"] = cell.pop("scheme")
            cell["weights_of"] = None if cell.pop("trained") else "mha"
    return results


def _scores(row):
    """Returns the scores of a row of format 2, which had a key for each score."""
    named = {name: row.pop(name.replace("-", "_"), None) for name in ("bits-per-byte", "pseudo-perplexity")}
    return {name: summary for name, summary in named.items() if summary is not None}
