"""Holds a vision transformer of transformers, as a program that scores a folder's test images when told to.

    python classifying_process.py '{"folder": MODEL, "attention": "sdpa", "images": FOLDER, "threads": 1}'

Reads how many images to score at once, scores all and prints the seconds of an image and the mean loss, until its input ends.
"""

import json
import pathlib
import sys
import time


def read_idx(path):
    import torch

    content = path.read_bytes()
    sizes = [int.from_bytes(content[at : at + 4], "big") for at in range(4, 4 + 4 * content[3], 4)]
    return torch.frombuffer(bytearray(content[4 + 4 * content[3] :]), dtype=torch.uint8).view(sizes)


def scorer(case):
    import torch
    from transformers import ViTForImageClassification

    torch.set_num_threads(case["threads"])
    implementation = "eager" if case["attention"] == "eager" else "sdpa"
    model = ViTForImageClassification.from_pretrained(case["folder"], attn_implementation=implementation).eval()
    forward = torch.compile(model, dynamic=False) if case["attention"] == "compiled" else model
    folder = pathlib.Path(case["images"])
    pixels = (read_idx(folder / "test-images-idx3-ubyte").permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.5
    labels = read_idx(folder / "test-labels-idx1-ubyte").long()
    clock = time.process_time if case["threads"] == 1 else time.perf_counter

    def score(batch):
        began, nats = clock(), 0.0
        with torch.inference_mode():
            for images, classes in zip(pixels.split(batch), labels.split(batch), strict=True):
                scores = forward(pixel_values=images).logits
                nats += torch.nn.functional.cross_entropy(scores, classes, reduction="sum").item()
        return (clock() - began) / len(labels), nats / len(labels)

    return score


def main():
    score = scorer(json.loads(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(score(int(line))), flush=True)


if __name__ == "__main__":
    main()
