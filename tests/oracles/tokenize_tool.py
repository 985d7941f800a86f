"""Drives headshare/text/tokenize_tool of the build under test: texts in, ids out. Makes random texts for it."""

import random
import struct
import subprocess
import unicodedata


def run_tool(tool, *arguments, frames=()):
    """Takes frames of bytes and returns the raw output."""
    given = b"".join(struct.pack("<I", len(frame)) + frame for frame in frames)
    done = subprocess.run([tool, *map(str, arguments)], input=given, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def read_frames(output, item_bytes):
    frames, at = [], 0
    while at < len(output):
        end = at + 4 + item_bytes * struct.unpack_from("<I", output, at)[0]
        frames.append(output[at + 4 : end])
        at = end
    return frames


def number_frames(output):
    return [list(struct.unpack(f"<{len(frame) // 4}i", frame)) for frame in read_frames(output, 4)]


def as_bytes(texts):
    return [text.encode() if isinstance(text, str) else text for text in texts]


def encode(tool, path, texts, verb="encode"):
    """Returns the ids of each text; verb "special" reads special tokens from the texts."""
    return number_frames(run_tool(tool, verb, path, frames=as_bytes(texts)))


def encode_with_spans(tool, path, texts):
    """Returns for each text a list of (id, begin, end), in bytes."""
    frames = number_frames(run_tool(tool, "spans", path, frames=as_bytes(texts)))
    return [list(zip(frame[0::3], frame[1::3], frame[2::3])) for frame in frames]


def decode(tool, path, all_ids):
    frames = b"".join(struct.pack(f"<I{len(ids)}i", len(ids), *ids) for ids in all_ids)
    done = subprocess.run([tool, "decode", str(path)], input=frames, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    return read_frames(done.stdout, 1)


def first_difference(texts, ours, theirs):
    """Returns None, or the first text whose ids differ, with both."""
    assert len(ours) == len(theirs) == len(texts)
    return next((case for case in zip(texts, ours, theirs) if case[1] != case[2]), None)


def code_points():
    """Returns all characters that Python's Unicode version knows. The next version's letters are signs to a PCRE2 that
    does not know them, and letters to Hugging Face's tables, which are newer."""
    return [point for point in range(0x110000) if unicodedata.category(chr(point)) not in ("Cn", "Cs")]


def random_texts(count, seed):
    """Returns texts that mix ASCII, white space, contractions and code points of every plane."""
    generator = random.Random(seed)
    points = code_points()
    parts = [" ", "  ", "\n", "\t", "\u00a0", "\u180e", "\u2028", "'s", "'ll", "don't", "The", "42", "!?", "é", "日本"]
    draws = (
        lambda: generator.choice(parts),
        lambda: chr(generator.randrange(0x20, 0x7F)),
        lambda: chr(generator.choice(points[:0x3000])),
        lambda: chr(generator.choice(points)),
    )
    return ["".join(generator.choice(draws)() for _ in range(generator.randrange(80))) for _ in range(count)]
