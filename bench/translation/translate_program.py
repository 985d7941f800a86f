"""Translates standard input with transformers or CTranslate2, as a whole program; batches have lines of like length.

    python translate_program.py transformers|ctranslate2 MODEL '{"beam": 4, "tokens": 16, "batch": 64, "threads": 1}' SECONDS

Writes a line for each line, and into the file SECONDS how long translating alone took, from lines to lines, with the
model loaded and warm.
"""

import json
import pathlib
import sys
import time


def batches(encoded, size):
    """Yields places of the sentences, longest first, so many at once."""
    order = sorted(range(len(encoded)), key=lambda i: -len(encoded[i]))
    return [order[first : first + size] for first in range(0, len(order), size)]


class Transformers:
    def __init__(self, folder, settings):
        import torch
        import transformers

        torch.set_num_threads(settings["threads"])
        self.settings, self.torch = settings, torch
        self.tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
        self.model = transformers.MarianMTModel.from_pretrained(folder).eval()

    def translate(self, lines):
        encoded = self.tokenizer(lines)["input_ids"]
        found = [None] * len(lines)
        fixed = dict(num_beams=self.settings["beam"], min_new_tokens=self.settings["tokens"],
                     max_new_tokens=self.settings["tokens"], do_sample=False)  # fmt: skip
        for chosen in batches(encoded, self.settings["batch"]):
            given = self.tokenizer.pad({"input_ids": [encoded[i] for i in chosen]}, return_tensors="pt")
            with self.torch.inference_mode():
                made = self.model.generate(**given, **fixed)
            for i, text in zip(chosen, self.tokenizer.batch_decode(made, skip_special_tokens=True)):
                found[i] = text
        return found


class CTranslate2:
    def __init__(self, folder, settings):
        import ctranslate2
        import sentencepiece

        self.settings = settings
        self.pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
        self.model = ctranslate2.Translator(
            str(folder / "ctranslate2"), device="cpu", compute_type="float32", inter_threads=1,
            intra_threads=settings["threads"],
        )  # fmt: skip

    def translate(self, lines):
        encoded = [[*pieces, "</s>"] for pieces in self.pieces.encode(lines, out_type=str)]
        # CTranslate2 sorts them by length itself.
        made = self.model.translate_batch(
            encoded, beam_size=self.settings["beam"], min_decoding_length=self.settings["tokens"],
            max_decoding_length=self.settings["tokens"], max_batch_size=self.settings["batch"],
        )  # fmt: skip
        return [self.pieces.decode(one.hypotheses[0]) for one in made]


def main():
    kind, folder, settings, seconds = sys.argv[1], pathlib.Path(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4]
    lines = sys.stdin.read().splitlines()
    translator = (Transformers if kind == "transformers" else CTranslate2)(folder, settings)
    clock = time.process_time if settings["threads"] == 1 else time.perf_counter
    translator.translate(lines[:1])
    began = clock()
    found = translator.translate(lines)
    pathlib.Path(seconds).write_text(str(clock() - began))
    print("\n".join(found))


if __name__ == "__main__":
    main()
