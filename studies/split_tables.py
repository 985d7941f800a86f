"""Makes the table of docs/results/fine-tuning.md that says which texts the parts of fine-tuning data shared."""

import json

from table_parts import RESULTS, table


def finetune_splits():
    """Tabulates the parts that studies/finetune_data writes, and what the parts of the committed results shared."""
    body = []
    for task in json.loads((RESULTS / "finetune-splits.json").read_text())["tasks"]:
        if task["task"] == "superglue/RTE":  # GLUE's, in another form
            continue
        shared = [f"{'/'.join(one['columns'])} {one['rows']:,}" for one in task["shared_before"] if one["rows"]]
        left_out = task["rows_before"][0] - task["rows"][0] if task["official"] else 0
        body.append(
            [
                task["task"].rpartition("/")[2],
                "official" if task["official"] else "ours",
                f"{task['rows_before'][1]:,}",
                ", ".join(shared) or "none",
                f"{task['rows'][0]:,}" + (f" ({left_out:,} left out)" if left_out else ""),
                f"{task['rows'][1]:,}",
            ]
        )
    headings = ["task", "split", "scored rows before", "of these share with training", "training rows now", "scored rows now"]
    return table(headings, body) + "\n\nNow no scored row shares a text with training."


TABLES = {"finetune_splits": finetune_splits}
