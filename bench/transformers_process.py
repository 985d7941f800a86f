"""Runs a loop over transformers' GPT2LMHeadModel, BertForMaskedLM or ViTForImageClassification, as a program that makes a
step whenever it is told to.

    python transformers_process.py '{"model": "gpt2", "attention": "eager", ...case...}'

Prints the loss of the first step, of a fixed batch, when it is warm; then reads how many steps to make, makes
them and prints their seconds, until its input ends.
"""

import itertools
import json
import math
import sys
import time

WARM_UP = 2  # steps, of which torch.compile compiles in the first
PATCH = 16  # rows and columns of an image's patch


def make_model(case):
    return dict(gpt2=make_gpt2, bert=make_bert, vit=make_vit)[case["model"]](case)


def image_side(case):
    """Returns the rows and columns of an image that is `context` tokens: the class token and its patches."""
    return PATCH * math.isqrt(case["context"] - 1)


def implementation(case):
    return "eager" if case["attention"] == "eager" else "sdpa"


def make_bert(case):
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=case["vocabulary"], max_position_embeddings=case["context"], hidden_size=case["width"],
        num_hidden_layers=case["layers"], num_attention_heads=case["heads"], intermediate_size=4 * case["width"],
        hidden_dropout_prob=case["dropout"], attention_probs_dropout_prob=case["dropout"],
        attn_implementation=implementation(case),
    )  # fmt: skip
    return BertForMaskedLM(config)


def make_vit(case):
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        image_size=image_side(case), patch_size=PATCH, hidden_size=case["width"], num_hidden_layers=case["layers"],
        num_attention_heads=case["heads"], intermediate_size=4 * case["width"],
        id2label={number: str(number) for number in range(case["vocabulary"])},  # as IDX files name classes
        hidden_dropout_prob=case["dropout"], attention_probs_dropout_prob=case["dropout"],
        attn_implementation=implementation(case),
    )  # fmt: skip
    return ViTForImageClassification(config)


def make_gpt2(case):
    from transformers import GPT2Config, GPT2LMHeadModel

    drop = case["dropout"]
    config = GPT2Config(
        vocab_size=case["vocabulary"], n_positions=case["context"], n_embd=case["width"], n_layer=case["layers"],
        n_head=case["heads"], resid_pdrop=drop, embd_pdrop=drop, attn_pdrop=drop,
        attn_implementation=implementation(case), bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def stepper(case):
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(case["threads"])
    model = make_model(case).train()
    forward = torch.compile(model) if case["attention"] == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    half = torch.autocast("cpu", torch.bfloat16, enabled=case["precision"] == "bf16")
    draw = torch.Generator().manual_seed(1)

    def gpt2_loss():
        ids = torch.randint(case["vocabulary"], (case["batch"], case["context"] + 1), generator=draw)
        logits = forward(input_ids=ids[:, :-1], use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())

    def bert_loss():
        """Returns the model's own loss, over scores at every token, where 15 in 100 tokens are asked for."""
        ids = torch.randint(case["vocabulary"], (case["batch"], case["context"]), generator=draw)
        asked = torch.rand(ids.shape, generator=draw) < 0.15
        return forward(input_ids=ids.masked_fill(asked, 4), labels=ids.masked_fill(~asked, -100)).loss

    if case["model"] == "vit":  # images are made once: reading them costs nothing
        images = torch.randn(2, case["batch"], 3, image_side(case), image_side(case), generator=draw)
        classes = torch.arange(case["batch"]) % case["vocabulary"]
        turns = itertools.cycle(images)

    def vit_loss():
        return forward(pixel_values=next(turns), labels=classes).loss

    losses = dict(gpt2=gpt2_loss, bert=bert_loss, vit=vit_loss)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with half:
            loss = losses[case["model"]]()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def serve(step, clock=time.perf_counter):
    first, *_ = [step() for _ in range(WARM_UP)]
    print(first, flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            began = clock()
            step()
            seconds.append(clock() - began)
        print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    case = json.loads(sys.argv[1])
    serve(stepper(case), time.process_time if case.get("cpu_seconds") else time.perf_counter)
