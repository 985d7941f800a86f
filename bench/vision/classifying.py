"""Times how many images a second a random ViT-tiny tells the classes of, against transformers.

The time of `headshare evaluate` is the difference between scoring the test images and scoring the few of the validation
part, which leaves out loading model and images; that pixels become numbers counts. transformers holds its model and the
pixels, as numbers, in memory.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import common
import step
import trainers
import transformers_process

BATCHES = (1, 32)
FEW = 32
IMAGES = FEW + 192


class Headshare:
    """This contender is `headshare evaluate` of the imported model."""

    def __init__(self, program, folder, images, threads):
        self.name, self.program, self.folder, self.images, self.threads = "headshare", program, folder, images, threads

    def score(self, batch):
        """Returns the seconds of an image, and the mean loss."""
        few, all_of_them = (self.evaluated(batch, part) for part in ("validation", "test"))
        return (all_of_them.seconds - few.seconds) / (IMAGES - FEW), json.loads(all_of_them.output)["loss"]

    def evaluated(self, batch, part):
        flags = {"images": self.images, "image-part": part, "batch-size": batch, "threads": self.threads}
        command = [self.program, "evaluate", self.folder / "ours", "--json", *trainers.words_of(flags)]
        return common.timed_program(command, self.threads)

    def stop(self):
        pass


class Transformers:
    """This contender is a process that holds a model in one form of attention, and scores when told to."""

    def __init__(self, folder, attention, images, threads):
        self.name = f"transformers_{attention}"
        case = dict(folder=str(folder / "theirs"), attention=attention, images=str(images), threads=threads)
        self.process = subprocess.Popen(
            [sys.executable, pathlib.Path(__file__).with_name("classifying_process.py"), json.dumps(case)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, OMP_NUM_THREADS=str(threads)), text=True,
        )  # fmt: skip

    def score(self, batch):
        self.process.stdin.write(f"{batch}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer else sys.exit(f"{self.name} ended: {self.process.wait()}")

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def write_models(program, folder, case):
    """Writes a random model of transformers, and what headshare makes of it."""
    import torch
    import transformers

    torch.manual_seed(0)
    transformers_process.make_model(dict(case, attention="eager")).save_pretrained(folder / "theirs")
    side = transformers_process.image_side(case)
    transformers.ViTImageProcessor(size=dict(height=side, width=side)).save_pretrained(folder / "theirs")
    command = [program, "convert", "--from", "hf", folder / "theirs", folder / "ours"]
    subprocess.run([str(word) for word in command], check=True, stdout=sys.stderr)


def rows_of(case, batch, found):
    """Returns a row for each contender of {name: [(seconds of an image, loss) of each turn]}."""
    losses = {name: turns[0][1] for name, turns in found.items()}
    if max(losses.values()) - min(losses.values()) > 1e-4:
        sys.exit(f"losses differ ({losses}): not timing a wrong result")
    sizes = {key: case[key] for key in ("model", "layers", "heads", "width", "context", "vocabulary", "threads", "precision")}
    rows = []
    for name, turns in found.items():
        timing = common.summary([seconds for seconds, _ in turns])
        row = dict(name="classifying", contender=name, scheme="mha", batch=batch, images=IMAGES, **sizes, **timing)
        rows.append(row | dict(images_per_second=1000 / timing["median_ms"]))
    for row in rows[:1]:
        row |= {f"ratio_to_{other['contender']}": other["median_ms"] / row["median_ms"] for other in rows[1:]}
    for row in rows:
        shown = "  ".join(f"{key[9:]} {value:.2f}" for key, value in row.items() if key.startswith("ratio_to_"))
        print(f"  {row['contender']:22} batch {batch:3} {row['images_per_second']:7.1f} images/s  {shown}".rstrip(), flush=True)
    return rows


def measure(program, quick, turns, threads):
    """Returns a row for each number of images at once and each contender."""
    case = dict(step.QUICK if quick else step.VIT_TINY, threads=threads, precision="fp32", dropout=0.0)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        common.apart(write_models, program, folder, case)
        images = folder / "images"
        for part, count in dict(train=case["vocabulary"], validation=FEW, test=IMAGES).items():
            trainers.write_idx(images, part, count, transformers_process.image_side(case), case["vocabulary"])
        chosen = [Headshare(program, folder, images, threads)]
        chosen += [Transformers(folder, attention, images, threads) for attention in step.MODELS]
        for batch in BATCHES:
            for one in chosen[1:]:
                one.score(batch)  # torch.compile compiles
            actions = {one.name: lambda one=one: one.score(batch) for one in chosen}
            rows += rows_of(case, batch, common.in_turns(actions, turns))
        for one in chosen:
            one.stop()
    return rows
