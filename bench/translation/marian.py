"""Makes a MarianMT model of random weights, in the forms that transformers, headshare and CTranslate2 load."""

import os
import pathlib
import subprocess
import sys
import sysconfig

import common
import inputs

CTRANSLATE2 = "4.8.0"  # against which the target was set
SHAPE = dict(layers=3, heads=8, width=256, feed_forward=1024, vocabulary=8000)
QUICK = dict(layers=1, heads=4, width=64, feed_forward=128, vocabulary=500)


def write_model(folder, shape, texts):
    """Writes transformers' directory. Weights are wide enough that translations differ from source to source."""
    import torch
    from transformers import MarianConfig, MarianMTModel

    vocabulary = inputs.write_pieces(folder, shape["vocabulary"], texts)
    pad = vocabulary - 1
    layers = {f"{side}_{what}": shape[name] for side in ("encoder", "decoder")
              for what, name in (("layers", "layers"), ("attention_heads", "heads"), ("ffn_dim", "feed_forward"))}  # fmt: skip
    torch.manual_seed(0)
    model = MarianMTModel(MarianConfig(
        vocab_size=vocabulary, d_model=shape["width"], max_position_embeddings=512, **layers,
        activation_function="relu", scale_embedding=True, init_std=shape["width"] ** -0.5, pad_token_id=pad,
        decoder_start_token_id=pad, eos_token_id=0, forced_eos_token_id=None))  # fmt: skip
    with torch.no_grad():
        make_lively(model)
        model.get_input_embeddings().weight[pad].zero_()  # what CTranslate2 begins with
    model.generation_config.bad_words_ids = [[pad]]
    model.save_pretrained(folder)
    return folder


def make_lively(model):
    """Spreads the weights. Without this one token follows all others: tied embeddings repeat a token, long or common
    directions win."""
    import torch

    table = model.get_input_embeddings().weight
    table -= table.mean(0)
    table /= table.norm(dim=1, keepdim=True).clamp_min(1e-9)
    for name, weight in model.named_parameters():
        if "layer_norm.weight" in name:
            weight.copy_(torch.randint(2, weight.shape) * 2.0 - 1)
        elif "fc2.weight" in name:  # relu's numbers are positive
            weight -= weight.mean(1, keepdim=True)


def convert_to_headshare(program, model, out):
    common.timed_program([program, "convert", "--from", "hf", model, out])
    return out


def ctranslate2_python():
    """Returns the interpreter of an environment of its own, made when it is wanted: ours with CTranslate2; None without
    it."""
    folder = common.ROOT / "build/bench-venv"
    python = folder / "bin/python"
    version = [python, "-c", f"import ctranslate2; assert ctranslate2.__version__ == '{CTRANSLATE2}'"]
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not python.exists() or subprocess.run(version, **quiet).returncode != 0:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        packages = pathlib.Path(sysconfig.get_paths()["purelib"])
        name = f"python{sys.version_info.major}.{sys.version_info.minor}"
        (folder / "lib" / name / "site-packages/ours.pth").write_text(f"{packages}\n")
        wanted = [python, "-m", "pip", "install", "--quiet", "--no-deps", f"ctranslate2=={CTRANSLATE2}"]
        done = subprocess.run(wanted, capture_output=True, text=True)
        if done.returncode != 0 or subprocess.run(version, **quiet).returncode != 0:
            print(f"  without CTranslate2 {CTRANSLATE2}, which does not install: {done.stderr.strip()[-300:]}", flush=True)
            return None
    return python


def convert_to_ctranslate2(python, model, out):
    code = "import sys; from ctranslate2.converters import TransformersConverter as C; C(sys.argv[1]).convert(sys.argv[2])"
    environment = dict(os.environ, TRANSFORMERS_VERBOSITY="error")
    done = subprocess.run([python, "-W", "ignore", "-c", code, model, out], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"CTranslate2's converter: {done.stderr[-2000:]}")
    return out
