"""Tests that what we read from config.json, and from generation_config.json beside it, is what the configuration
classes of transformers read: with each key absent in turn, with null where a class takes null, and with none at all."""

import json
import subprocess

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

BERT = {"vocab_size": 97, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 100,
        "hidden_act": "relu", "hidden_dropout_prob": 0.25, "attention_probs_dropout_prob": 0.3, "type_vocab_size": 3,
        "max_position_embeddings": 40, "initializer_range": 0.03, "layer_norm_eps": 1e-6, "tie_word_embeddings": False}  # fmt: skip
TRANSLATOR = {"vocab_size": 97, "max_position_embeddings": 24, "d_model": 48, "encoder_layers": 2, "decoder_layers": 3,
              "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 100, "decoder_ffn_dim": 100,
              "dropout": 0.25, "attention_dropout": 0.3, "init_std": 0.03, "activation_function": "relu", "scale_embedding": True,
              "tie_word_embeddings": False}  # fmt: skip
LLAMA = {"vocab_size": 97, "hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 64, "num_key_value_heads": 16,
         "intermediate_size": 100, "max_position_embeddings": 24, "head_dim": 4, "hidden_act": "gelu", "initializer_range": 0.03,
         "rms_norm_eps": 1e-5, "rope_theta": 5e5, "attention_dropout": 0.3, "tie_word_embeddings": True}  # fmt: skip
WINDOW = {"use_sliding_window": True, "max_window_layers": 2, "sliding_window": 9}
MODERNBERT = {"vocab_size": 97, "hidden_size": 48, "num_hidden_layers": 7, "num_attention_heads": 4, "intermediate_size": 100,
              "max_position_embeddings": 40, "norm_eps": 1e-4, "initializer_range": 0.03, "attention_bias": True, "mlp_bias": True,
              "norm_bias": True, "decoder_bias": False, "classifier_bias": True, "attention_dropout": 0.3, "embedding_dropout": 0.25,
              "hidden_activation": "silu", "classifier_activation": "relu", "local_attention": 10, "tie_word_embeddings": False,
              "global_attn_every_n_layers": 2, "global_rope_theta": 70.0, "local_rope_theta": 9.0}  # fmt: skip
LLAMAS = ("llama", "mistral", "qwen2", "qwen3", "gemma")
# This has every key that we read of a family, with a value that is not its default, and the class that is counted.
FAMILIES = {
    "gpt2": ("GPT2LMHeadModel", {"vocab_size": 97, "n_positions": 24, "n_embd": 48, "n_layer": 3, "n_head": 4, "n_inner": 100,
             "resid_pdrop": 0.25, "attn_pdrop": 0.3, "layer_norm_epsilon": 1e-6, "initializer_range": 0.03,
             "activation_function": "relu", "tie_word_embeddings": False, "scale_attn_weights": False}),
    "bert": ("BertModel", BERT),
    "roberta": ("RobertaModel", {**BERT, "pad_token_id": 3}),
    "xlm-roberta": ("XLMRobertaModel", {**BERT, "pad_token_id": 3}),
    "distilbert": ("DistilBertModel", {"vocab_size": 97, "max_position_embeddings": 40, "dim": 48, "n_layers": 3, "n_heads": 4,
                   "hidden_dim": 100, "dropout": 0.25, "attention_dropout": 0.3, "activation": "relu", "initializer_range": 0.03,
                   "tie_word_embeddings": False}),
    "albert": ("AlbertModel", {**BERT, "hidden_size": 64, "embedding_size": 16, "num_hidden_layers": 4, "num_hidden_groups": 2,
               "inner_group_num": 1}),
    "marian": ("MarianMTModel", {**TRANSLATOR, "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 61}),
    "bart": ("BartForConditionalGeneration", TRANSLATOR),
    "mbart": ("MBartForConditionalGeneration", TRANSLATOR),
    "llama": ("LlamaForCausalLM", {**LLAMA, "attention_bias": True, "mlp_bias": True}),
    "mistral": ("MistralForCausalLM", LLAMA),
    "qwen2": ("Qwen2ForCausalLM", {**LLAMA, **WINDOW}),
    "qwen3": ("Qwen3ForCausalLM", {**LLAMA, **WINDOW, "attention_bias": True}),
    "modernbert": ("ModernBertForMaskedLM", MODERNBERT),
    "gemma": ("GemmaForCausalLM", {**LLAMA, "hidden_act": "silu", "tie_word_embeddings": False, "attention_bias": True}),
}  # fmt: skip
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu": "gelu_erf", "relu": "relu", "silu": "silu"}
# This maps our option to what is equal to it in a configuration of theirs: a key, or a function.
COMMON = {"vocabulary": "vocab_size", "context": "max_position_embeddings", "d-model": "hidden_size", "layers": "num_hidden_layers",
          "heads": "num_attention_heads", "tie-embeddings": "tie_word_embeddings", "init-deviation": "initializer_range"}  # fmt: skip
OF_BERT = {**COMMON, "feed-forward-width": "intermediate_size", "segments": "type_vocab_size", "dropout": "hidden_dropout_prob",
           "attention-dropout": "attention_probs_dropout_prob", "norm-epsilon": "layer_norm_eps",
           "activation": lambda c: ACTIVATIONS[c.hidden_act]}  # fmt: skip
OF_TRANSLATORS = {**COMMON, "vocabulary": lambda c: getattr(c, "decoder_vocab_size", c.vocab_size), "source-vocabulary": "vocab_size",
                  "layers": "encoder_layers", "decoder-layers": "decoder_layers", "heads": "encoder_attention_heads",
                  "feed-forward-width": "encoder_ffn_dim", "dropout": "dropout", "attention-dropout": "attention_dropout",
                  "init-deviation": "init_std", "scale-embeddings": "scale_embedding",
                  "activation": lambda c: ACTIVATIONS[c.activation_function]}  # fmt: skip
OF_LLAMA = {**COMMON, "feed-forward-width": "intermediate_size", "head-width": lambda c: getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads,
            "groups": "num_key_value_heads", "norm-epsilon": "rms_norm_eps", "attention-dropout": "attention_dropout",
            "rotary-base": lambda c: c.rope_parameters["rope_theta"],
            "feed-forward": lambda c: {"silu": "swiglu", "gelu": "geglu_erf"}.get(c.hidden_act, "geglu")}  # fmt: skip
OF_MODERNBERT = {**COMMON, "feed-forward-width": "intermediate_size", "norm-epsilon": "norm_eps", "projection-bias": "attention_bias",
                 "feed-forward-bias": "mlp_bias", "dropout": "embedding_dropout", "attention-dropout": "attention_dropout",
                 "local-window": "sliding_window", "activation": lambda c: ACTIVATIONS[c.classifier_activation],
                 "feed-forward": lambda c: {"silu": "swiglu", "gelu": "geglu_erf"}[c.hidden_activation],
                 "global-every": lambda c: 1 + c.layer_types[1:].index("full_attention"),
                 "rotary-base": lambda c: c.rope_parameters["full_attention"]["rope_theta"],
                 "local-rotary-base": lambda c: c.rope_parameters["sliding_attention"]["rope_theta"]}  # fmt: skip
OPTIONS = {
    "gpt2": {**COMMON, "dropout": "resid_pdrop", "attention-dropout": "attn_pdrop", "norm-epsilon": "layer_norm_epsilon",
             "feed-forward-width": lambda c: c.n_inner or 4 * c.n_embd, "activation": lambda c: ACTIVATIONS[c.activation_function],
             "attention-scale": lambda c: (c.n_embd // c.n_head) ** -0.5 if c.scale_attn_weights else 1},
    "bert": OF_BERT,
    "roberta": {**OF_BERT, "context": lambda c: c.max_position_embeddings - c.pad_token_id - 1},
    "xlm-roberta": {**OF_BERT, "context": lambda c: c.max_position_embeddings - c.pad_token_id - 1},
    "distilbert": {**COMMON, "feed-forward-width": "hidden_dim", "dropout": "dropout", "attention-dropout": "attention_dropout",
                   "segments": lambda c: 0, "norm-epsilon": lambda c: 1e-12, "activation": lambda c: ACTIVATIONS[c.activation]},
    "albert": {**OF_BERT, "embedding-width": "embedding_size", "layer-groups": "num_hidden_groups"},
    **dict.fromkeys(("marian", "bart", "mbart"), OF_TRANSLATORS),
    "modernbert": OF_MODERNBERT,
    **dict.fromkeys(LLAMAS, OF_LLAMA),
}  # fmt: skip


@pytest.fixture(scope="module")
def readings(build_dir):
    """Returns what headshare makes of configuration files, with one start of a program."""
    tool = build_dir / "obj" / "convert" / "shape_tool"
    if not tool.is_file():
        pytest.skip(f"{tool} is not built: configure with HEADSHARE_TESTS")

    def read(paths):
        done = subprocess.run([tool], input="".join(f"{path}\n" for path in paths), capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    return read


def with_keys_absent(values):
    """Yields all keys, each key left out, and none; each is named after what is left out. The default of a mark may be
    no token of a small vocabulary."""
    marks = {"decoder_start_token_id": 5, "eos_token_id": 7, **({"pad_token_id": 1} if {"encoder_layers", "local_attention"} & values.keys() else {})}
    yield "nothing", {**values, **marks}
    yield "everything", {}
    for key in values:
        yield key, {name: value for name, value in values.items() if name != key} | marks


def written(folder, values, generation=None):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(values))
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    return folder / "config.json"


def their_parameters(model, config):
    with torch.device("meta"):
        return getattr(transformers, model)(config).num_parameters()


@pytest.mark.parametrize("family", FAMILIES)
def test_absent_keys_have_the_defaults_of_the_family(readings, tmp_path, family):
    model, values = FAMILIES[family]
    cases = dict(with_keys_absent(values))
    paths = [written(tmp_path / key, {"model_type": family, "architectures": [model], **kept}) for key, kept in cases.items()]
    compared = 0
    for key, path, found in zip(cases, paths, readings(paths), strict=True):
        config = transformers.AutoConfig.from_pretrained(path.parent)
        assert type(config).model_type == family
        expected = {ours: theirs(config) if callable(theirs) else getattr(config, theirs) for ours, theirs in OPTIONS[family].items()}
        if "error" in found:  # the sizes of two sides differ, heads do not divide the width, or one embedding is not two
            assert impossible(family, config), (key, found)
            assert key in found["error"] or config.hidden_size % config.num_attention_heads, found
            continue
        options = {**found["options"], "groups": groups_of(found["options"])}
        assert {name: options[name] for name in expected if options[name] != pytest.approx(expected[name])} == {}, (key, expected)
        if key in {"nothing", "everything"} or "size" in key or "bias" in key or "heads" in key or "tie" in key:
            unread = (config.pad_token_id + 1) * config.hidden_size if "roberta" in family else 0
            assert found["parameters"] == their_parameters(model, config) - unread, key
        compared += 1
    assert compared > len(cases) * 2 / 3


def groups_of(options):
    return {"mha": options["heads"], "mqa": 1}.get(options["scheme"], options["groups"])


def impossible(family, config):
    if family in {"marian", "bart", "mbart"}:
        sides = [(config.encoder_attention_heads, config.encoder_ffn_dim), (config.decoder_attention_heads, config.decoder_ffn_dim)]
        shared = getattr(config, "share_encoder_decoder_embeddings", True)
        return sides[0] != sides[1] or config.d_model % config.encoder_attention_heads or (
            shared and getattr(config, "decoder_vocab_size", config.vocab_size) != config.vocab_size)  # fmt: skip
    if family in LLAMAS:
        return config.num_attention_heads % config.num_key_value_heads or config.hidden_size % config.num_attention_heads
    return config.hidden_size % config.num_attention_heads


@pytest.mark.parametrize("family", LLAMAS)
def test_null_is_not_absent(readings, tmp_path, family):
    """Reads null, which has no groups, whatever is the default: where the class takes null at all."""
    path = written(tmp_path / "null", {"model_type": family, **FAMILIES[family][1], "num_key_value_heads": None})
    [found] = readings([path])
    assert found["options"]["scheme"] == "mha" and groups_of(found["options"]) == 64
    if family not in {"mistral", "gemma"}:
        assert transformers.AutoConfig.from_pretrained(path.parent).num_key_value_heads == 64


ROTATIONS = [
    {"rope_theta": 3e5},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 3e5}},
    {"rope_parameters": {"rope_type": "default"}, "rope_theta": 4e5},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 3e5}, "rope_theta": 4e5},
    {"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_theta": 4e5},
    {"rope_scaling": {"rope_type": "linear", "factor": 2.0}, "rope_parameters": {"rope_type": "default", "rope_theta": 3e5}},
    {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 3e5}},
    {"rope_scaling": None},
    {},
]


@pytest.mark.parametrize("family", LLAMAS)
def test_rotations(readings, tmp_path, family):
    values = {name: value for name, value in FAMILIES[family][1].items() if name != "rope_theta"}
    paths = [written(tmp_path / str(i), {"model_type": family, **values, **more}) for i, more in enumerate(ROTATIONS)]
    for path, found in zip(paths, readings(paths), strict=True):
        expected = transformers.AutoConfig.from_pretrained(path.parent).rope_parameters
        assert found["options"]["rotary-base"] == expected["rope_theta"], path.read_text()
        scaling = {"default": "none"}.get(expected["rope_type"], expected["rope_type"])
        assert found["options"]["rotary-scaling"] == scaling, path.read_text()


# These are what config.json says of generation, and generation_config.json where that is there.
MARKS = [
    ({}, None),
    ({"decoder_start_token_id": 9, "eos_token_id": 7, "bos_token_id": 4}, None),
    ({"decoder_start_token_id": 9, "bos_token_id": 4, "forced_bos_token_id": 11, "forced_eos_token_id": 12}, None),
    ({"bos_token_id": 4, "eos_token_id": [7]}, None),
    ({"bos_token_id": 4, "decoder_start_token_id": 9, "force_bos_token_to_be_generated": True}, None),
    ({"decoder_start_token_id": 9, "force_bos_token_to_be_generated": True, "forced_bos_token_id": 11}, None),
    ({"bos_token_id": 4, "decoder_start_token_id": 9, "force_bos_token_to_be_generated": True, "forced_bos_token_id": 11}, None),
    ({"bos_token_id": 4, "decoder_start_token_id": 9, "force_bos_token_to_be_generated": False}, None),
    ({"decoder_start_token_id": 9, "bad_words_ids": [[13]]}, None),
    ({"decoder_start_token_id": 9, "suppress_tokens": [13]}, None),
    ({"decoder_start_token_id": 9, "forced_bos_token_id": 11, "forced_eos_token_id": 12, "bad_words_ids": [[13]]},
     {"decoder_start_token_id": 8, "eos_token_id": 7}),
    ({"decoder_start_token_id": 9, "eos_token_id": 7}, {"bos_token_id": 6, "eos_token_id": 5, "forced_bos_token_id": 3}),
    ({"decoder_start_token_id": 9, "eos_token_id": 7}, {"decoder_start_token_id": 8, "eos_token_id": 5, "bad_words_ids": [[14], [5]]}),
    ({"decoder_start_token_id": 9, "eos_token_id": 7}, {"decoder_start_token_id": 8, "eos_token_id": 5, "suppress_tokens": [14]}),
    ({"force_bos_token_to_be_generated": True, "bos_token_id": 4},
     {"decoder_start_token_id": 8, "eos_token_id": 5, "bos_token_id": 4, "forced_bos_token_id": None}),
]  # fmt: skip


@pytest.mark.parametrize("family", ["marian", "bart", "mbart"])
def test_marks_are_those_of_generate(readings, tmp_path, family):
    """Compares with a model that transformers loads from the same files, and what its generate() prepares."""
    model, values = FAMILIES[family]
    values = {name: value for name, value in values.items() if not name.endswith("token_id")}
    config = {"model_type": family, "architectures": [model], **values, "pad_token_id": 1}
    paths = [written(tmp_path / str(i), {**config, **said}, generation) for i, (said, generation) in enumerate(MARKS)]
    kind = getattr(transformers, model)
    kind(transformers.AutoConfig.from_pretrained(paths[1].parent)).save_pretrained(tmp_path / "saved")
    for path, found in zip(paths, readings(paths), strict=True):
        (path.parent / "model.safetensors").symlink_to(tmp_path / "saved" / "model.safetensors")
        loaded = kind.from_pretrained(path.parent)
        prepared, _ = loaded._prepare_generation_config(None)
        try:
            loaded._prepare_special_tokens(prepared, device="cpu")
        except ValueError:
            assert path.parent.name == "0", "no start is named: generate() refuses, and we take the family's"
            continue
        prepared.max_length, behind = 20, torch.tensor([[9, 20]])
        processors = loaded._get_logits_processor(prepared, input_ids_seq_length=1, encoder_input_ids=behind, device="cpu")
        never = processors(behind, torch.zeros(1, 61)).isinf().nonzero()[:, 1].tolist()
        ours = found["options"]
        assert ours["start-id"] == prepared._decoder_start_token_tensor.item(), path.read_text()
        if prepared._eos_token_tensor is not None:
            assert ours["end-id"] == prepared._eos_token_tensor.item()
        assert ours["forced-first-id"] == ("auto" if prepared.forced_bos_token_id is None else prepared.forced_bos_token_id)
        assert ours["forced-last-id"] == ("auto" if prepared.forced_eos_token_id is None else prepared.forced_eos_token_id)
        assert ours["never-produced-id"] == (never[0] if never else "auto"), path.read_text()
