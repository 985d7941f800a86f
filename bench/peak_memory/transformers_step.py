"""A loop over transformers' GPT2LMHeadModel: what most people would write. Run as a program it is the loop itself."""

import json
import sys


def names():
    return ["transformers_eager", "transformers_sdpa"]


def command(name, program, folder, case):
    return [sys.executable, __file__, json.dumps(dict(case, attention=name.removeprefix("transformers_")))]


def first_loss(folder, printed):
    return json.loads(printed.splitlines()[-1])


def train(case):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    torch.set_num_threads(case["threads"])
    drop = case["dropout"]
    config = GPT2Config(
        vocab_size=case["vocabulary"], n_positions=case["context"], n_embd=case["width"], n_layer=case["layers"],
        n_head=case["heads"], resid_pdrop=drop, embd_pdrop=drop, attn_pdrop=drop,
        attn_implementation=case["attention"], bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    half = torch.autocast("cpu", torch.bfloat16, enabled=case["precision"] == "bf16")
    losses = []
    for _ in range(case["steps"]):
        ids = torch.randint(case["vocabulary"], (case["batch"], case["context"] + 1))
        optimizer.zero_grad(set_to_none=True)
        with half:
            logits = model(input_ids=ids[:, :-1], use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    print(json.dumps(losses[0]))


if __name__ == "__main__":
    train(json.loads(sys.argv[1]))
