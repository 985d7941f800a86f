"""How fast are tokenizers on one thread? headshare against Hugging Face tokenizers.

Encodes WikiText-2 with GPT-2's byte-level BPE and BERT's WordPiece: the training text (10.8 MB) line by line,
the validation text (1.1 MB) as one text. The ids are compared before anything is timed. Seconds are CPU
seconds and the contenders take turns, so that other work on the machine favours neither; MB are 10^6 bytes
of UTF-8. Every pass of headshare is a new process with an empty memory of words; that of `tokenizers`' BPE stays
warm. `ratio_to_tokenizers` is against the fastest of their ways, for headshare_spans, which tells where each token
stands, against the fastest of those that tell it too (all but encode_batch_fast). Needs the tests' build
(obj/text/tokenize_tool) and the data sets ($HEADSHARE_DATA, default ../shared/data).

    .venv/bin/python bench/tokenizers/run.py --out build/bench/tokenizers.json [--quick]
"""

import gzip
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402
import results  # noqa: E402
import tokenizers  # noqa: E402
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers  # noqa: E402

DATA = pathlib.Path(os.environ.get("HEADSHARE_DATA", common.ROOT.parent / "shared" / "data")).resolve()


def unpack(name, folder=None):
    """Returns the content of DATA/name.gz; writes it into `folder` if that is given."""
    content = gzip.decompress((DATA / f"{name}.gz").read_bytes())
    if folder is not None:
        (folder / pathlib.Path(name).name).write_bytes(content)
    return content


# Each gives the argument of load_tokenizer and the same tokenizer of the peer.


def gpt2(folder):
    for name in ("encoder.json", "vocab.bpe"):
        unpack(f"tokenizers/gpt2/{name}", folder)
    reference = Tokenizer(models.BPE.from_file(f"{folder}/encoder.json", f"{folder}/vocab.bpe"))
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return folder, reference


def wordpiece(folder):
    unpack("tokenizers/bert-base-uncased/vocab.txt", folder)
    reference = Tokenizer(models.WordPiece.from_file(f"{folder}/vocab.txt", unk_token="[UNK]"))
    reference.normalizer = normalizers.BertNormalizer(lowercase=True)
    reference.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return folder / "vocab.txt", reference


def run_tool(tool, verb, path, texts, *arguments):
    frames = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    done = subprocess.run([tool, verb, path, *arguments], input=frames, stdout=subprocess.PIPE, check=True)
    return done.stdout


def number_frames(output):
    frames, at = [], 0
    while at < len(output):
        (count,) = struct.unpack_from("<I", output, at)
        frames.append(list(struct.unpack_from(f"<{count}i", output, at + 4)))
        at += 4 + 4 * count
    return frames


def check(tool, path, texts, expected):
    ids = number_frames(run_tool(tool, "encode", path, texts))
    with_spans = [numbers[0::3] for numbers in number_frames(run_tool(tool, "spans", path, texts))]
    if not ids == with_spans == expected:
        sys.exit(f"{path}: the ids differ from those of Hugging Face tokenizers: nothing was timed")


def contenders(tool, path, reference, texts):
    """Returns {name: a function that gives the CPU seconds of encoding all texts once}."""
    encoded = [text.encode() for text in texts]

    def ours(*arguments):
        return json.loads(run_tool(tool, "time", path, encoded, "1", *arguments))["seconds"][0]

    def theirs(action):
        start = time.process_time()
        action()
        return time.process_time() - start

    return {
        "headshare": ours,
        "headshare_spans": lambda: ours("spans"),
        "tokenizers_encode": lambda: theirs(lambda: [reference.encode(text) for text in texts]),
        "tokenizers_encode_batch": lambda: theirs(lambda: reference.encode_batch(texts)),
        "tokenizers_encode_batch_fast": lambda: theirs(lambda: reference.encode_batch_fast(texts)),
    }


def measure(name, tool, path, reference, texts, passes):
    encoded = [text.encode() for text in texts]
    megabytes = sum(map(len, encoded)) / 1e6
    expected = [reference.encode(text).ids for text in texts]
    check(tool, path, encoded, expected)
    chosen = contenders(tool, path, reference, texts)
    seconds = {one: [] for one in chosen}
    for turn in range(passes):
        at = turn % len(chosen)
        for one in [*chosen][at:] + [*chosen][:at]:
            seconds[one].append(chosen[one]())
    rows = []
    for one, times in seconds.items():
        summary = common.summary(times)
        rows.append(dict(name=name, threads=1, contender=one, **summary, megabytes=megabytes,
                         tokens=sum(map(len, expected)), MB_per_s=1000 * megabytes / summary["median_ms"]))  # fmt: skip
    for row in rows:
        peers = [one for one in rows if one["contender"].startswith("tokenizers")]
        if row["contender"] == "headshare_spans":
            peers = [one for one in peers if not one["contender"].endswith("fast")]
        row["ratio_to_tokenizers"] = min(one["median_ms"] for one in peers) / row["median_ms"]
        figures = f"{row['MB_per_s']:7.2f} MB/s, ratio {row['ratio_to_tokenizers']:.2f}"
        print(f"{name:22} {row['contender']:28} {figures}", flush=True)
    return rows


def main():
    arguments = common.arguments_of(__doc__, threads=(1,))
    program = arguments.program.resolve()
    tool = program.parent / "obj" / "text" / "tokenize_tool"
    for needed in (tool, DATA):
        if not needed.exists():
            sys.exit(f"no {needed}: build the tests, set HEADSHARE_DATA")
    lines = unpack("wikitext-2/train.txt").decode().splitlines(keepends=True)
    whole = unpack("wikitext-2/valid.txt").decode()
    if arguments.quick:
        lines, whole = lines[:1000], whole[:100_000]
    passes = 2 if arguments.quick else 7
    rows = []
    for make in (gpt2, wordpiece):
        with tempfile.TemporaryDirectory() as folder:
            path, reference = make(pathlib.Path(folder))
            for name, texts in (("lines", lines), ("one text", [whole])):
                rows += measure(f"{make.__name__}, {name}", tool, path, reference, texts, passes)
    environment = dict(common.environment(program), tokenizers=tokenizers.__version__)
    results.write(arguments.out, environment, rows)


if __name__ == "__main__":
    main()
