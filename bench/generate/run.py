"""Measures how fast an imported Llama writes, against transformers.

A model of SmolLM-135M's shape (30 layers of 576, 9 heads that share 3 key heads, 49,152 tokens) with random weights is
saved by transformers, imported with `headshare convert`, and continues a text of 1,983 tokens greedily, both in float32.
The time of a token is the difference between writing 65 tokens and writing one, over 64, which leaves out reading the prompt.
It leaves out loading, too: the program prints its own seconds, and transformers holds its model in memory. Both must write
the same tokens.

    .venv/bin/python bench/generate/run.py --out build/bench/generate.json [--quick]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402

SHAPE = dict(
    hidden_size=576,
    num_hidden_layers=30,
    num_attention_heads=9,
    num_key_value_heads=3,
    intermediate_size=1536,
    vocab_size=49152,
    max_position_embeddings=2048,
    tie_word_embeddings=True,
    initializer_range=0.04,
)
SMALL = dict(SHAPE, hidden_size=72, num_hidden_layers=2, intermediate_size=96, vocab_size=512, max_position_embeddings=256)
ATTENTIONS = ("eager", "sdpa")


def write_model(folder, shape):
    """Writes a random Llama and a tokenizer whose first 256 tokens are the bytes; the text has no others."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    torch.manual_seed(0)
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape)).save_pretrained(folder)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = letters + [f"{letters[i // 256 % 256]}{letters[i % 256]}{letters[i // 65536]}" for i in range(shape["vocab_size"] - 256)]
    tokenizer = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))


def prompt_of(tokens):
    text = " ".join(f"The {i * i % 97}th fox jumps over {i % 7} lazy dogs." for i in range(tokens))
    return text[:tokens]


def their_writer(folder, prompt, attention):
    """Returns a function that writes a number of tokens with transformers and returns its seconds and their text."""
    import torch
    import transformers

    model = transformers.LlamaForCausalLM.from_pretrained(folder, attn_implementation=attention, dtype=torch.float32).eval()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False).input_ids

    def write(tokens):
        began = time.perf_counter()
        with torch.inference_mode():
            options = dict(min_new_tokens=tokens, max_new_tokens=tokens, do_sample=False, pad_token_id=0, eos_token_id=[])
            out = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
        return time.perf_counter() - began, tokenizer.decode(out[0, ids.shape[1] :])

    return write


def our_writer(program, model, prompt, threads):
    def write(tokens):
        command = [program, "generate", model, "--greedy", "--json", "--threads", threads]
        done = subprocess.run(
            [*map(str, command), "--max-new-tokens", str(tokens), "--prompt", prompt], check=True, capture_output=True, text=True
        )
        written = json.loads(done.stdout)
        return written["seconds"], written["text"]

    return write


def measure(writers, turns, tokens=64):
    """Returns the seconds of a token of each of {name: writer}, turn by turn."""
    texts = {name: write(tokens + 1)[1] for name, write in writers.items()}
    if len(set(texts.values())) > 1:
        sys.exit(f"what they write differs: {json.dumps(texts)}")
    seconds = {name: [] for name in writers}
    for _ in range(turns):
        for name, write in writers.items():
            one, _ = write(1)
            all_of_them, _ = write(tokens + 1)
            seconds[name].append((all_of_them - one) / tokens)
    return seconds


def rows_of(seconds, threads):
    rows = [dict(contender=name, threads=threads, **common.summary(turns)) for name, turns in seconds.items()]
    for row in rows:
        row["tokens_per_s"] = 1000 / row["median_ms"]
    for attention in ATTENTIONS:
        [theirs] = [row for row in rows if row["contender"] == attention]
        for row in rows:
            row[f"ratio_to_{attention}"] = theirs["median_ms"] / row["median_ms"]
            row[f"ratio_of_least_to_{attention}"] = theirs["minimum_ms"] / row["minimum_ms"]
    return rows


def main():
    import torch

    arguments = common.arguments_of(__doc__)
    shape = SMALL if arguments.quick else SHAPE
    prompt = prompt_of(shape["max_position_embeddings"] - 65)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        theirs, ours = (pathlib.Path(name) / part for part in ("theirs", "ours"))
        write_model(theirs, shape)
        subprocess.run([str(arguments.program), "convert", "--from", "hf", str(theirs), str(ours)], check=True, stdout=sys.stderr)
        for threads in arguments.threads:
            torch.set_num_threads(threads)
            writers = {"headshare": our_writer(arguments.program, ours, prompt, threads)}
            writers |= {attention: their_writer(theirs, prompt, attention) for attention in ATTENTIONS}
            rows += rows_of(measure(writers, 1 if arguments.quick else 5), threads)
    common.write_results(arguments.out, arguments.program, rows)


if __name__ == "__main__":
    main()
