"""Makes training steps of transformers' MarianMTModel, or of torch.nn.Transformer, as a program that makes a step when
told to.

    python step_process.py '{"attention": "marian", ...case...}'

Its input and output are those of bench/transformers_process.py.
"""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import transformers_process  # noqa: E402


def make_marian(case):
    """Makes MarianMT and a forward that takes source and target inputs and gives logits."""
    from transformers import MarianConfig, MarianMTModel

    layers = {f"{side}_{what}": case[name] for side in ("encoder", "decoder")
              for what, name in (("layers", "layers"), ("attention_heads", "heads"), ("ffn_dim", "feed_forward"))}  # fmt: skip
    pad = case["vocabulary"] - 1
    model = MarianMTModel(MarianConfig(
        vocab_size=case["vocabulary"], d_model=case["width"], max_position_embeddings=2 * case["context"], **layers,
        dropout=case["dropout"], attention_dropout=0.0, activation_dropout=0.0, activation_function="relu",
        scale_embedding=True, pad_token_id=pad, decoder_start_token_id=pad, eos_token_id=0, forced_eos_token_id=None,
    ))  # fmt: skip

    def logits(source, inputs):
        return model(input_ids=source, decoder_input_ids=inputs, use_cache=False).logits

    return model, logits


def make_torch(case):
    """Makes torch.nn.Transformer with the same parts around it: dropout where MarianMT has it, no norm after its last
    layers."""
    import torch

    width = case["width"]
    sizes = dict(d_model=width, nhead=case["heads"], dim_feedforward=case["feed_forward"], dropout=case["dropout"],
                 activation="relu", batch_first=True)  # fmt: skip
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(**sizes), case["layers"], enable_nested_tensor=False)
    decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(**sizes), case["layers"])
    for layer in [*encoder.layers, *decoder.layers]:
        layer.dropout = torch.nn.Identity()  # within the feed-forward part
        layer.self_attn.dropout = 0.0
        if hasattr(layer, "multihead_attn"):
            layer.multihead_attn.dropout = 0.0
    model = torch.nn.ModuleDict(dict(
        table=torch.nn.Embedding(case["vocabulary"], width), dropout=torch.nn.Dropout(case["dropout"]),
        layers=torch.nn.Transformer(d_model=width, nhead=case["heads"], batch_first=True, custom_encoder=encoder,
                                    custom_decoder=decoder)))  # fmt: skip
    torch.nn.init.normal_(model["table"].weight, std=0.02)
    places, rates = torch.arange(case["context"])[:, None], 10000 ** (-torch.arange(0, width, 2) / width)
    positions = torch.cat([(places * rates).sin(), (places * rates).cos()], 1)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(case["context"])

    def embedded(ids):
        return model["dropout"](model["table"](ids) * width**0.5 + positions)

    def logits(source, inputs):
        hidden = model["layers"](embedded(source), embedded(inputs), tgt_mask=mask, tgt_is_causal=True)
        return torch.nn.functional.linear(hidden, model["table"].weight)

    return model, logits


def make(case):
    return (make_marian if case["attention"] == "marian" else make_torch)(case)


def parameters(case):
    """Counts the parameters that are learned; transformers has its sinusoids among its parameters."""
    import torch

    with torch.device("meta"):
        model, _ = make(case)
    return sum(one.numel() for name, one in model.named_parameters() if "embed_positions" not in name)


def stepper(case):
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(case["threads"])
    model, logits = make(case)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.1, fused=True)
    half = torch.autocast("cpu", torch.bfloat16, enabled=case["precision"] == "bf16")
    draw = torch.Generator().manual_seed(1)
    size = (2, case["batch"], case["context"])

    def step():
        optimizer.zero_grad(set_to_none=True)
        source, target = torch.randint(1, case["vocabulary"] - 1, size, generator=draw)
        inputs = torch.nn.functional.pad(target[:, :-1], (1, 0), value=case["vocabulary"] - 1)
        with half:
            scores = logits(source, inputs).flatten(0, 1)
            loss = torch.nn.functional.cross_entropy(scores, target.flatten(), label_smoothing=case["smoothing"])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def main():
    case = json.loads(sys.argv[1])
    transformers_process.serve(stepper(case), time.process_time if case["threads"] == 1 else time.perf_counter)


if __name__ == "__main__":
    main()
