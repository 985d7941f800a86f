"""How much faster is a training step of transformers with attn_implementation="headshare"?

GPT-2 of transformers, two layers of GPT-2's width, forward, backward and AdamW, dropout 0.1 as GPT-2 has it. All forms
are one model in one process, and take turns: eager attention, sdpa, headshare's, and none at all (the values are the
answer): what a step takes more than with none is attention's share. Before anything is timed the losses without dropout
must agree. A row per form: median and least milliseconds of a step; `share_ms` is attention's, `ratio_to_sdpa` sdpa's
over its own for the whole step, `share_ratio_to_sdpa` for attention's share.

    .venv/bin/python bench/transformers_backend/run.py --out build/bench/transformers_backend.json [--quick]
"""

import statistics
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import common  # noqa: E402

CASES = [dict(layers=2, heads=12, width=768, context=512, batch=4), dict(layers=2, heads=12, width=768, context=2048, batch=1)]
QUICK = [dict(layers=1, heads=2, width=32, context=32, batch=2)]
VOCABULARY = 1000  # few, so that the output layer, which is not attention, takes little
FORMS = ("headshare", "sdpa", "eager", "none")
DROPOUT = 0.1


def no_attention(module, query, key, value, mask, **_):
    return value.transpose(1, 2).contiguous(), None


def make_model(case, dropout):
    import transformers

    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=case["context"], n_embd=case["width"], n_layer=case["layers"],
        n_head=case["heads"], resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).train()


def check_losses(case, ids):
    import torch

    torch.manual_seed(0)
    model = make_model(case, dropout=0.0)
    losses = {}
    for form in FORMS[:-1]:
        model.set_attn_implementation(form)
        losses[form] = model(ids, labels=ids).loss.item()
    if max(losses.values()) - min(losses.values()) > 1e-4:
        sys.exit(f"losses differ ({losses}): not timing a wrong result")


def measure(case, threads):
    import torch

    torch.set_num_threads(threads)
    ids = torch.randint(VOCABULARY, (case["batch"], case["context"]), generator=torch.Generator().manual_seed(0))
    check_losses(case, ids)
    model = make_model(case, DROPOUT)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(form):
        model.set_attn_implementation(form)
        optimizer.zero_grad()
        model(ids, labels=ids).loss.backward()
        optimizer.step()

    seconds = common.take_turns({form: (lambda form=form: step(form)) for form in FORMS}, least=5, most=15, limit=60)
    medians = {form: 1000 * statistics.median(times) for form, times in seconds.items()}
    rows = []
    for form in FORMS:
        row = dict(contender=form, model="gpt2", **case, dropout=DROPOUT, threads=threads, **common.summary(seconds[form]))
        if form != "none":
            row["share_ms"] = medians[form] - medians["none"]
            row["ratio_to_sdpa"] = medians["sdpa"] / medians[form]
            row["share_ratio_to_sdpa"] = (medians["sdpa"] - medians["none"]) / row["share_ms"]
            print(f"T {case['context']} {form:10} step {medians[form]:7.0f} ms, attention {row['share_ms']:6.0f} ms: "
                  f"{row['share_ratio_to_sdpa']:.2f} x sdpa, step {row['ratio_to_sdpa']:.2f} x", flush=True)  # fmt: skip
        rows.append(row)
    return rows


def main():
    arguments = common.arguments_of(__doc__, threads=(2,))
    import transformers

    import headshare.transformers  # noqa: F401  (registers the attention)

    transformers.AttentionInterface.register("none", no_attention)
    transformers.AttentionMaskInterface.register("none", headshare.transformers.mask)
    rows = [row for threads in arguments.threads for case in (QUICK if arguments.quick else CASES) for row in measure(case, threads)]
    common.write_results(arguments.out, arguments.program, rows)


if __name__ == "__main__":
    main()
