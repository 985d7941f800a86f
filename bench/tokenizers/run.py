"""How fast is byte-level BPE on one thread? headshare against Hugging Face tokenizers.

Encodes WikiText-2 with GPT-2's vocabulary: the training text (10.8 MB) line by line, the validation
text (1.1 MB) as one text. The ids are compared before anything is timed. Seconds are CPU seconds, the
contenders take turns, so other work on the machine favours neither; MB are 10^6 bytes of UTF-8.
Every pass of headshare is a new process with an empty word cache. Needs the tests' build
(obj/text/tokenize_tool) and the data sets ($HEADSHARE_DATA, default ../shared/data).

    .venv/bin/python bench/tokenizers/run.py --out build/bench/tokenizers.json
"""

import argparse
import gzip
import json
import os
import pathlib
import platform
import statistics
import struct
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def unpack(path):
    return gzip.decompress(path.read_bytes())


def run_tool(tool, arguments, texts):
    frames = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return subprocess.run([tool, *arguments], input=frames, stdout=subprocess.PIPE, check=True).stdout


def split_ids(output):
    all_ids, at = [], 0
    while at < len(output):
        (count,) = struct.unpack_from("<I", output, at)
        all_ids.append(list(struct.unpack_from(f"<{count}i", output, at + 4)))
        at += 4 + 4 * count
    return all_ids


def cpu_seconds(action):
    start = time.process_time()
    action()
    return time.process_time() - start


def summary(seconds, megabytes):
    return {
        "median_MB_per_s": round(megabytes / statistics.median(seconds), 2),
        "best_MB_per_s": round(megabytes / min(seconds), 2),
        "seconds": [round(second, 4) for second in seconds],
    }


def measure(tool, folder, reference, texts, passes):
    encoded = [text.encode() for text in texts]
    megabytes = sum(map(len, encoded)) / 1e6
    expected = [reference.encode(text).ids for text in texts]
    if split_ids(run_tool(tool, ["encode", folder], encoded)) != expected:
        sys.exit("the ids differ from those of Hugging Face tokenizers: nothing was timed")
    seconds = {"headshare": [], "tokenizers encode": [], "tokenizers encode_batch_fast": []}
    for _ in range(passes):
        seconds["headshare"] += json.loads(run_tool(tool, ["time", folder, "1"], encoded))["seconds"]
        seconds["tokenizers encode"].append(cpu_seconds(lambda: [reference.encode(text) for text in texts]))
        # headshare returns ids only; this is Hugging Face's way without character offsets.
        seconds["tokenizers encode_batch_fast"].append(cpu_seconds(lambda: reference.encode_batch_fast(texts)))
    result = {
        "megabytes": round(megabytes, 3),
        "tokens": sum(map(len, expected)),
        **{name: summary(times, megabytes) for name, times in seconds.items()},
    }
    best_of_theirs = max(result[name]["median_MB_per_s"] for name in result if name.startswith("tokenizers "))
    result["times_faster_than_the_better"] = round(result["headshare"]["median_MB_per_s"] / best_of_theirs, 2)
    return result


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, help="the JSON file to write (default: standard output)")
    parser.add_argument("--passes", type=int, default=5)
    options = parser.parse_args()
    build = pathlib.Path(os.environ.get("HEADSHARE_BUILD", ROOT / "build")).resolve()
    data = pathlib.Path(os.environ.get("HEADSHARE_DATA", ROOT.parent / "shared" / "data")).resolve()
    tool = build / "obj" / "text" / "tokenize_tool"
    for needed in (tool, data):
        if not needed.exists():
            sys.exit(f"no {needed}: build the tests and set HEADSHARE_BUILD and HEADSHARE_DATA")

    with tempfile.TemporaryDirectory() as folder:
        for name in ("encoder.json", "vocab.bpe"):
            pathlib.Path(folder, name).write_bytes(unpack(data / "tokenizers" / "gpt2" / f"{name}.gz"))
        reference = Tokenizer(models.BPE.from_file(f"{folder}/encoder.json", f"{folder}/vocab.bpe"))
        reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        train = unpack(data / "wikitext-2" / "train.txt.gz").decode().splitlines(keepends=True)
        valid = unpack(data / "wikitext-2" / "valid.txt.gz").decode()
        result = {
            "question": "encoding speed of GPT-2's byte-level BPE on WikiText-2, one thread",
            "machine": {"processor": processor(), "load_at_start": os.getloadavg()[0]},
            "versions": {"headshare": commit(), "tokenizers": tokenizers.__version__},
            "lines": measure(tool, folder, reference, train, options.passes),
            "one_text": measure(tool, folder, reference, [valid], options.passes),
        }
    rendered = json.dumps(result, indent=2) + "\n"
    if options.out is None:
        sys.stdout.write(rendered)
    else:
        options.out.write_text(rendered)
        for case in ("lines", "one_text"):
            print(f"{case}: {result[case]['headshare']['median_MB_per_s']} MB/s, "
                  f"{result[case]['times_faster_than_the_better']} x the better of tokenizers' two ways")


if __name__ == "__main__":
    main()
