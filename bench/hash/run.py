"""How fast are words hashed on one core? headshare against plain Python.

The words are those of WikiText-2's training text, lower-cased and cut as both do. Four questions:

- `md, text`: all its words in a row, which repeat; each is cut, numbered and, when it is new, hashed.
- `md`, `lsh`: signatures of its different words. Python has hmac.digest (OpenSSL's) and numpy's RandomState.
- `lsh bucket`: buckets of the first different words. Python has numpy's Fourier transform, or adds rotations.

Python keeps what headshare keeps: the hash of a word, the projection of a feature. All hashes are compared before
anything is timed. Seconds are CPU seconds and the contenders take turns, so that other work on the machine favours
neither; every pass starts with empty memories. `ratio_to_python` is the fastest way of Python over headshare. Needs the
tests' build (obj/text/tokenize_tool) and the data sets ($HEADSHARE_DATA, default ../shared/data); without WikiText-2
nothing is measured.

    .venv/bin/python bench/hash/run.py --out build/bench/hash.json [--quick]
"""

import collections
import gzip
import hmac
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common  # noqa: E402
import numpy  # noqa: E402
import results  # noqa: E402

DATA = pathlib.Path(os.environ.get("HEADSHARE_DATA", common.ROOT.parent / "shared" / "data")).resolve()
TEXT = DATA / "wikitext-2" / "train.txt.gz"
BUCKETS = 50260


def cut(text):
    return re.findall(r"\w+|[^\w\s]+", text.lower())


# ------------------------------------------------------------------------------------------------- plain Python


def digest(word):
    return hmac.digest(b"en", word.encode(), "md5")


def md_of_text(lines):
    kept = {}
    for line in lines:
        for word in cut(line):
            if word not in kept:
                kept[word] = digest(word)
    return [one.hex() for one in kept.values()]


def md(words):
    return [digest(word).hex() for word in words]


def features(word):
    """Returns (digest, weight) of the word, its prefixes and its suffixes."""
    parts = collections.Counter([word])
    if len(word) <= 100:
        for at in range(1, len(word)):
            parts[word[:at]] += 1
            parts[word[at:]] += 1
    return [(digest(part), count / max(len(word) + 1 - len(part), 1)) for part, count in parts.items()]


def lsh(words):
    projections, found = {}, []
    for word in words:
        total = numpy.zeros(128)
        for value, weight in features(word):
            seed = int.from_bytes(value[:4], "big")
            if seed not in projections:
                projections[seed] = numpy.random.RandomState(seed).standard_normal(128)
            total += weight * projections[seed]
        found.append(numpy.packbits(total > 0).tobytes().hex())
    return found


def places(word):
    return [(int.from_bytes(value, "big") % BUCKETS, weight) for value, weight in features(word)]


def rotation_numbers():
    return numpy.random.RandomState(42).standard_normal(BUCKETS)


def best(scores):
    scores[BUCKETS // 2 :] *= -1
    return int(scores.argmax())


def bucket_by_fft(words):
    transformed, found = numpy.fft.rfft(rotation_numbers()), []
    for word in words:
        weights = numpy.zeros(BUCKETS)
        for place, weight in places(word):
            weights[place] += weight
        found.append(best(numpy.fft.irfft(transformed * numpy.conj(numpy.fft.rfft(weights)), BUCKETS)))
    return found


def bucket_by_sums(words):
    twice, found = numpy.tile(rotation_numbers(), 2), []
    for word in words:
        scores = numpy.zeros(BUCKETS)
        for place, weight in places(word):
            scores += weight * twice[place : place + BUCKETS]
        found.append(best(scores))
    return found


# -------------------------------------------------------------------------------------------------- the benchmark


def hashed(tool, tokenizer, what, texts):
    """Returns what tokenize_tool answers: a new process, whose memory of words is empty."""
    frames = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    done = subprocess.run([tool, "hash", tokenizer, what], input=frames, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def headshare(tool, tokenizer, what, texts, whole):
    """Returns a function that gives CPU seconds and hashes. Without `whole` the seconds are those of the hashes
    alone."""
    encoded = [text.encode() for text in texts]

    def run():
        answer = hashed(tool, tokenizer, what, encoded)
        return answer["hash_seconds"] + whole * answer["encode_seconds"], answer["hashes"]

    return run


def python(action, texts):
    def run():
        start = time.process_time()
        found = action(texts)
        return time.process_time() - start, found

    return run


def questions(tool, folder, lines, buckets):
    """Returns (name, words, {contender: function})."""
    words = [word for line in lines for word in cut(line)]
    different = list(dict.fromkeys(words))
    few = different[:buckets]
    header = {"format": "headshare-tokenizer", "version": 1}
    kinds = {"md": {**header, "kind": "hash-md"}, "lsh": {**header, "kind": "hash-lsh", "features": "affix"}}
    for kind, settings in kinds.items():
        (folder / f"{kind}.json").write_text(json.dumps(settings))

    def ours(kind, what, texts, whole=False):
        return headshare(tool, folder / f"{kind}.json", what, texts, whole)

    yield "md, text", len(words), {
        "headshare": ours("md", "signatures", lines, whole=True),
        "python_hmac": python(md_of_text, lines),
    }
    yield "md", len(different), {"headshare": ours("md", "signatures", different), "python_hmac": python(md, different)}
    yield "lsh", len(different), {
        "headshare": ours("lsh", "signatures", different),
        "python_numpy": python(lsh, different),
    }
    yield "lsh bucket", len(few), {
        "headshare": ours("lsh", "buckets", few),
        "python_numpy_fft": python(bucket_by_fft, few),
        "python_numpy_sums": python(bucket_by_sums, few),
    }


def check(name, contenders):
    """Ends the benchmark where hashes differ. This first run of each is not timed."""
    found = {one: run()[1] for one, run in contenders.items()}
    for one, hashes in found.items():
        if hashes != found["headshare"]:
            sys.exit(f"{name}: the hashes of {one} differ from headshare's: nothing was timed")


def measure(name, words, contenders, passes):
    check(name, contenders)
    seconds = {one: [] for one in contenders}
    for turn in range(passes):
        at = turn % len(contenders)
        for one in [*contenders][at:] + [*contenders][:at]:
            seconds[one].append(contenders[one]()[0])
    rows = []
    for one, times in seconds.items():
        summary = common.summary(times)
        row = dict(name=name, threads=1, contender=one, **summary, words=words)
        rows.append({**row, "words_per_s": 1000 * words / summary["median_ms"]})
    fastest = min(row["median_ms"] for row in rows if row["contender"] != "headshare")
    for row in rows:
        row["ratio_to_python"] = fastest / row["median_ms"]
        print(f"{name:12}{row['contender']:20}{row['words_per_s']:12,.0f} words/s, ratio {row['ratio_to_python']:.2f}", flush=True)
    return rows


def main():
    arguments = common.arguments_of(__doc__, threads=(1,))
    program = arguments.program.resolve()
    tool = program.parent / "obj" / "text" / "tokenize_tool"
    if not tool.exists():
        sys.exit(f"no {tool}: build the tests")
    if not TEXT.exists():
        print(f"no {TEXT}: hashing is not measured (set HEADSHARE_DATA)")
        return
    lines = gzip.decompress(TEXT.read_bytes()).decode().splitlines(keepends=True)
    if arguments.quick:
        lines = lines[:50]
    passes, buckets = (2, 20) if arguments.quick else (7, 1000)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, words, contenders in questions(tool, pathlib.Path(folder), lines, buckets):
            rows += measure(name, words, contenders, passes)
    results.write(arguments.out, dict(common.environment(program), numpy=numpy.__version__), rows)


if __name__ == "__main__":
    main()
