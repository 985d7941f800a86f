"""Tests tied weights under the name of the output layer alone, which transformers loads: `convert --from hf` takes them
too."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors.torch import load_file, save_file  # noqa: E402

BERT = {"vocab_size": 97, "hidden_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 50,
        "max_position_embeddings": 16}  # fmt: skip
TRANSLATOR = {"vocab_size": 97, "d_model": 48, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
              "decoder_attention_heads": 4, "encoder_ffn_dim": 50, "decoder_ffn_dim": 50, "max_position_embeddings": 16,
              "pad_token_id": 96, "decoder_start_token_id": 96}  # fmt: skip
# These are a class, its sizes, and both names of the weights.
MODELS = {
    "gpt2": ("GPT2LMHeadModel", {"vocab_size": 97, "n_embd": 48, "n_layer": 1, "n_head": 4, "n_positions": 16},
             "transformer.wte.weight", "lm_head.weight"),
    "bert": ("BertForMaskedLM", BERT, "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
    "roberta": ("RobertaForMaskedLM", BERT, "roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight"),
    "distilbert": ("DistilBertForMaskedLM",
                   {"vocab_size": 97, "dim": 48, "n_layers": 1, "n_heads": 4, "hidden_dim": 50, "max_position_embeddings": 16},
                   "distilbert.embeddings.word_embeddings.weight", "vocab_projector.weight"),
    "albert": ("AlbertForMaskedLM", {**BERT, "embedding_size": 20}, "albert.embeddings.word_embeddings.weight",
               "predictions.decoder.weight"),
    "marian": ("MarianMTModel", TRANSLATOR, "model.shared.weight", "lm_head.weight"),
    "bart": ("BartForConditionalGeneration", TRANSLATOR, "model.shared.weight", "model.decoder.embed_tokens.weight"),
}  # fmt: skip


@pytest.mark.parametrize("family", MODELS)
def test_the_output_layers_name_alone(run, tmp_path, family):
    name, sizes, embedding, other = MODELS[family]
    kind = getattr(transformers, name)
    model = kind(kind.config_class(**sizes))
    model.save_pretrained(tmp_path / "hf")
    path = tmp_path / "hf" / "model.safetensors"
    tensors = load_file(path)
    assert embedding in tensors and other not in tensors
    table = tensors.pop(embedding)
    save_file({**tensors, other: table}, path, metadata={"format": "pt"})
    loaded, info = kind.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not info["missing_keys"] and torch.equal(loaded.get_input_embeddings().weight, table)
    run("convert", "--from", "hf", tmp_path / "hf", tmp_path / "ours")
    assert torch.equal(load_file(tmp_path / "ours" / "model.safetensors")["token_embedding"], table)
