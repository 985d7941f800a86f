"""Tests that encoders and encoder-decoders whose heads share go out to transformers with their heads unfolded: BERT,
RoBERTa and MarianMT have the outputs of headshare, with padding."""

import json

import pytest
from conftest import run_command

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file  # noqa: E402

ENCODER = {"vocab_size": 61, "max_position_embeddings": 24, "hidden_size": 32, "num_hidden_layers": 2,
           "num_attention_heads": 4, "intermediate_size": 40}  # fmt: skip
# Sources end with [SEP], token 3, as a tokenizer.json of word pieces ends them.
TRANSLATOR = {"vocab_size": 61, "max_position_embeddings": 24, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
              "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40,
              "pad_token_id": 60, "decoder_start_token_id": 60, "eos_token_id": 3}  # fmt: skip


def randomise(model):
    numbers = torch.Generator().manual_seed(3)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_norm = "norm" in name.lower() and name.endswith("weight")
            parameter.data.normal_(1.0 if is_norm else 0.0, 0.2, generator=numbers)
    return model.eval()


@pytest.fixture
def shared(run, tmp_path):
    """Returns a headshare model with one key for all heads, made from a random model of transformers."""

    def convert(model):
        randomise(model).save_pretrained(tmp_path / "random")
        (tmp_path / "words").mkdir()
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(56))]
        (tmp_path / "words" / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
        run("convert", "--from", "hf", tmp_path / "random", tmp_path / "mha", "--tokenizer", tmp_path / "words")
        run("convert", tmp_path / "mha", tmp_path / "ours", "--to", "mqa")
        return tmp_path / "ours"

    return convert


@pytest.fixture
def ours(build_dir, tmp_path):
    def compute(directory, given):
        (tmp_path / "input.json").write_text(json.dumps({key: rows.tolist() for key, rows in given.items()}))
        tool = build_dir / "obj" / "models" / "model_tool"
        run_command([tool, directory, tmp_path / "input.json", tmp_path / "out.safetensors"])
        return load_file(tmp_path / "out.safetensors")

    return compute


def loaded(kind, path):
    model, notes = kind.from_pretrained(path, output_loading_info=True)
    assert not any(notes[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), notes
    return model.eval()


def rows(length, vocabulary, first=5):
    numbers = torch.Generator().manual_seed(1)
    visible = torch.arange(length) < torch.tensor([[length], [length // 2], [3]])
    return torch.randint(first, vocabulary, (3, length), generator=numbers), visible


@pytest.mark.parametrize("form, written", [("hf", "bert"), ("hf:roberta", "roberta")])
def test_encoders(run, shared, ours, tmp_path, form, written):
    encoder = shared(transformers.BertForMaskedLM(transformers.BertConfig(**ENCODER)))
    done = run("convert", encoder, tmp_path / "hf", "--to", form, "--verify")
    assert "the heads of mqa are written as mha, with the same outputs" in done.stderr
    model = loaded(transformers.AutoModelForMaskedLM, tmp_path / "hf")
    assert model.config.model_type == written
    ids, visible = rows(24, ENCODER["vocab_size"])
    ids = torch.where(visible, ids, 0)  # padding: RoBERTa counts positions without it
    with torch.no_grad():
        expected = model(ids, attention_mask=visible.long()).logits
    found = ours(encoder, {"ids": ids, "visible": visible.long()})["logits"]
    assert (found - expected)[visible].abs().max() < 1e-4 and expected.std() > 0.1


@pytest.mark.parametrize("changes", [{}, {"share_encoder_decoder_embeddings": False}])
def test_encoder_decoders(run, shared, ours, tmp_path, changes):
    random = transformers.MarianMTModel(transformers.MarianConfig(**TRANSLATOR, **changes))
    random.final_logits_bias.normal_(0.0, 0.5)
    translator = shared(random)
    run("convert", translator, tmp_path / "hf", "--to", "hf", "--verify")
    model = loaded(transformers.AutoModelForSeq2SeqLM, tmp_path / "hf")
    assert type(model).__name__ == "MarianMTModel" and model.generation_config.decoder_start_token_id == 60
    source, visible = rows(12, 60)
    targets, kept = rows(9, 60)
    with torch.no_grad():
        expected = model(source, attention_mask=visible.long(), decoder_input_ids=targets).logits
    found = ours(translator, {"source": source, "visible": visible.long(), "ids": targets})["logits"]
    assert (found - expected)[kept].abs().max() < 1e-4 and expected.std() > 0.1
