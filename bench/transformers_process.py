"""A loop over transformers' GPT2LMHeadModel, as a program that makes a step whenever it is told to.

    python transformers_process.py '{"model": "eager", ...case...}'

Prints the loss of the first step, of a fixed batch, when it is warm; then reads how many steps to make, makes
them and prints their seconds, until its input ends.
"""

import json
import sys
import time

WARM_UP = 2  # steps, of which torch.compile compiles in the first


def make_model(case):
    from transformers import GPT2Config, GPT2LMHeadModel

    drop = case["dropout"]
    config = GPT2Config(
        vocab_size=case["vocabulary"], n_positions=case["context"], n_embd=case["width"], n_layer=case["layers"],
        n_head=case["heads"], resid_pdrop=drop, embd_pdrop=drop, attn_pdrop=drop,
        attn_implementation="eager" if case["model"] == "eager" else "sdpa", bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def stepper(case):
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(case["threads"])
    model = make_model(case).train()
    forward = torch.compile(model) if case["model"] == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    half = torch.autocast("cpu", torch.bfloat16, enabled=case["precision"] == "bf16")
    draw = torch.Generator().manual_seed(1)

    def step():
        ids = torch.randint(case["vocabulary"], (case["batch"], case["context"] + 1), generator=draw)
        optimizer.zero_grad(set_to_none=True)
        with half:
            logits = forward(input_ids=ids[:, :-1], use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def main():
    step = stepper(json.loads(sys.argv[1]))
    first, *_ = [step() for _ in range(WARM_UP)]
    print(first, flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            began = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - began)
        print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    main()
