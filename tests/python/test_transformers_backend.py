"""attn_implementation="headshare": models of transformers train and generate as with sdpa, or say what is missing."""

import pytest
import torch

import headshare.transformers as backend

transformers = pytest.importorskip("transformers")
from transformers import masking_utils  # noqa: E402

transformers.logging.set_verbosity_error()

SMALL = {"vocab_size": 60, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
WIDE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
GPT2 = {"n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
MODELS = {
    "GPT2LMHeadModel": ("GPT2Config", GPT2),
    "GPTBigCodeForCausalLM": ("GPTBigCodeConfig", {**GPT2, "multi_query": True}),
    "LlamaForCausalLM": ("LlamaConfig", {**WIDE, "num_key_value_heads": 2}),
    "BertForMaskedLM": ("BertConfig", {**WIDE, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}),
}


def made(name, implementation="headshare", **changes):
    config, options = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, name)(getattr(transformers, config)(**{**SMALL, **options, **changes}))
    with torch.no_grad():
        for one in model.parameters():
            one.add_(torch.randn_like(one) * 0.1)
    model.set_attn_implementation(implementation)
    return model


def sample():
    """Makes ids [3, 20] and their padding, on the left, as generation wants it."""
    ids = torch.randint(3, 60, (3, 20), generator=torch.Generator().manual_seed(1))
    return ids, (torch.arange(20) >= torch.tensor([[0], [7], [1]])).long()


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_losses_and_gradients_are_those_of_sdpa(name, padded):
    ids, padding = sample()
    padding = padding if padded else None
    labels = ids if padding is None else ids.masked_fill(padding == 0, -100)
    found = []
    for implementation in ("sdpa", "headshare"):
        model = made(name, implementation).train()
        loss = model(ids, attention_mask=padding, labels=labels).loss
        loss.backward()
        found.append((loss, [one.grad for one in model.parameters() if one.grad is not None]))
    torch.testing.assert_close(found[1][0], found[0][0], rtol=0, atol=1e-5)
    assert len(found[0][1]) == len(found[1][1])
    for expected, one in zip(found[0][1], found[1][1]):
        torch.testing.assert_close(one, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "BertForMaskedLM"])
def test_generation_is_that_of_sdpa(name):
    ids, padding = sample()
    texts = [
        made(name, implementation).eval().generate(
            ids[:, :9], attention_mask=padding[:, :9], max_new_tokens=12, do_sample=False, eos_token_id=None
        )
        for implementation in ("sdpa", "headshare")
    ]  # fmt: skip
    assert torch.equal(*texts)


def test_a_later_token_changes_nothing_before_it():
    """Guards against the silent trap: an attention without its mask would not be causal."""
    ids, _ = sample()
    model = made("GPT2LMHeadModel").eval()
    before = model(ids).logits
    ids[:, 12] = (ids[:, 12] + 1) % 50 + 3
    after = model(ids).logits
    assert torch.equal(before[:, :12], after[:, :12])
    assert not torch.equal(before[:, 12:], after[:, 12:])


ENCODER_DECODER = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
                   "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "d_model": 32, "max_position_embeddings": 64}  # fmt: skip
# Models whose attention modules say another thing about causality than the masks that they ask for.
OTHERS = {
    "SplinterModel": ("SplinterConfig", WIDE),  # an encoder whose modules say nothing
    "PegasusXModel": ("PegasusXConfig", {**ENCODER_DECODER, "block_size": 4}),  # a decoder whose modules say that they are open
    "BartModel": ("BartConfig", ENCODER_DECODER),
}


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_a_mask_says_whether_it_is_causal(name, padded):
    config, options = OTHERS[name]
    ids, padding = sample()
    padding = padding.flip(1) if padded else None
    found = []
    for implementation in ("eager", "headshare"):
        torch.manual_seed(0)
        model = getattr(transformers, name)(getattr(transformers, config)(**{**SMALL, **options})).eval()
        model.set_attn_implementation(implementation)
        more = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
        found.append(model(ids, attention_mask=padding, **more).last_hidden_state)
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=2e-5)


def test_masks_that_a_model_reads_itself_and_windows_without_a_size_are_refused():
    options = {"batch_size": 1, "q_length": 8, "kv_length": 8}
    causal, window = masking_utils.causal_mask_function, masking_utils.sliding_window_overlay(4)
    with pytest.raises(ValueError, match="reads itself"):
        backend.mask(**options, mask_function=causal, allow_is_causal_skip=False)
    with pytest.raises(ValueError, match="packed or custom masks"):
        backend.mask(**options, mask_function=masking_utils.and_masks(window, causal))
    with pytest.raises(ValueError, match="this one has 4 of 8 keys"):
        backend.mask(**options, mask_function=masking_utils.and_masks(window, causal), local_size=4)
    wide = backend.mask(**options, mask_function=masking_utils.and_masks(window, causal), local_size=9)
    assert wide.shape == (1, 1, 0)


def test_a_compiled_model_without_a_mask_is_told_to_give_one():
    compiled = torch.compile(made("LlamaForCausalLM").eval(), backend="aot_eager", fullgraph=True)
    with pytest.raises(Exception, match="cannot tell that nothing is packed: give one"):
        compiled(sample()[0], use_cache=False)


def test_vision_models_have_no_mask():
    config = transformers.ViTConfig(**WIDE, image_size=32, patch_size=8)
    torch.manual_seed(0)
    model = transformers.ViTForImageClassification(config).eval()
    images, labels = torch.randn(2, 3, 32, 32), torch.tensor([0, 1])
    found = []
    for implementation in ("sdpa", "headshare"):
        model.set_attn_implementation(implementation)
        model.zero_grad()
        loss = model(images, labels=labels).loss
        loss.backward()
        found.append((loss, next(model.parameters()).grad.clone()))
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-6)


def test_dropout_follows_torchs_seed():
    ids, padding = sample()
    model = made("GPT2LMHeadModel", attn_pdrop=0.5).train()

    def drawn(seed):
        torch.manual_seed(seed)
        return model(ids, attention_mask=padding).logits

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    model.eval()
    assert torch.equal(drawn(1), drawn(2))


@pytest.mark.parametrize("name", MODELS)
def test_a_compiled_model_is_one_graph(name):
    ids, padding = sample()
    model = made(name).eval()
    expected = model(ids, attention_mask=padding).logits
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(ids, attention_mask=padding).logits, expected, rtol=1e-4, atol=1e-5)


def test_an_attention_without_its_mask_is_refused():
    """Whoever registers the function alone, under another name, is told so."""
    transformers.AttentionInterface.register("half", backend.attention)
    ids, padding = sample()
    for name in ("GPT2LMHeadModel", "BertForMaskedLM"):
        model = made(name).eval()
        model.config._attn_implementation = "half"
        with pytest.raises(ValueError, match='no mask was made for attn_implementation="half"'):
            model(ids, attention_mask=padding)


def refused(message, model, **inputs):
    with pytest.raises(ValueError, match=message):
        model(**inputs)


def test_what_no_kernel_does_is_refused_by_name():
    ids, padding = sample()
    mistral = transformers.MistralConfig(**SMALL, **WIDE, num_key_value_heads=2, sliding_window=8)
    model = transformers.MistralForCausalLM(mistral).eval()
    model.set_attn_implementation("headshare")
    refused("sliding window", model, input_ids=ids)
    assert model(ids[:, :8]).logits.shape == (3, 8, 60)  # the window holds all
    gemma = transformers.Gemma2Config(**SMALL, **WIDE, num_key_value_heads=2, head_dim=8, attn_logit_softcapping=50.0)
    model = transformers.Gemma2ForCausalLM(gemma).eval()
    model.set_attn_implementation("headshare")
    refused("softcap", model, input_ids=ids)
    model = made("BertForMaskedLM").eval()
    open_mask = torch.ones(3, 1, 20, 20, dtype=torch.bool)
    refused(r"\[3, 1, 20, 20\]", model, input_ids=ids, attention_mask=open_mask)
    query = torch.randn(1, 4, 5, 8)
    for name in ("position_bias", "s_aux", "sinks", "block_indices", "indices"):
        with pytest.raises(ValueError, match=name):
            backend.attention(model, query, query, query, torch.zeros(1, 0, dtype=torch.bool), **{name: torch.ones(4)})
    for name in ("GPT2LMHeadModel", "LlamaForCausalLM", "BertForMaskedLM"):
        refused("output_attentions", made(name).eval(), input_ids=ids, output_attentions=True)
    refused("output_attentions", made("LlamaForCausalLM", output_attentions=True).eval(), input_ids=ids)
    wide = transformers.MistralForCausalLM(
        transformers.MistralConfig(**SMALL, **WIDE, num_key_value_heads=2, sliding_window=64)
    ).eval()
    wide.set_attn_implementation("headshare")
    for model, length in ((made("LlamaForCausalLM").eval(), 20), (wide, 20), (wide, 1)):
        with pytest.raises(ValueError, match="static cache"):
            model.generate(ids[:, :length], attention_mask=padding[:, :length].clamp(min=1), max_new_tokens=3,
                           cache_implementation="static", disable_compile=True)  # fmt: skip


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("window", [None, 9])
def test_a_static_cache_that_the_prompt_fills_is_that_of_sdpa(window, padded):
    """generate makes the mask first then, and the model hands it to the same function again."""
    ids, padding = sample()
    padding = padding[:, 3:12] if padded else torch.ones(3, 9).long()
    options = {**SMALL, **WIDE, "num_key_value_heads": 2}
    found = []
    for implementation in ("sdpa", "headshare"):
        model = made("LlamaForCausalLM", implementation).eval()
        if window:
            torch.manual_seed(0)
            model = transformers.MistralForCausalLM(transformers.MistralConfig(**options, sliding_window=window)).eval()
            model.set_attn_implementation(implementation)
        answer = model.generate(
            ids[:, :9], attention_mask=padding, max_new_tokens=1, do_sample=False, eos_token_id=None,
            cache_implementation="static", disable_compile=True, output_logits=True, return_dict_in_generate=True,
        )  # fmt: skip
        found.append(answer.logits[0])
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-5)


def test_a_static_window_that_is_full_is_read_as_sdpa_reads_it_or_refused():
    ids, _ = sample()
    config = transformers.MistralConfig(**SMALL, **WIDE, num_key_value_heads=2, sliding_window=9)
    torch.manual_seed(0)
    model = transformers.MistralForCausalLM(config).eval()
    options = {"max_new_tokens": 4, "do_sample": False, "eos_token_id": None, "cache_implementation": "static",
               "disable_compile": True, "output_logits": True, "return_dict_in_generate": True}  # fmt: skip

    def generated(implementation, mask):
        model.set_attn_implementation(implementation)
        return torch.stack(model.generate(ids[:, :9], attention_mask=mask, **options).logits)

    everything = torch.ones(3, 9).long()
    torch.testing.assert_close(generated("headshare", everything), generated("sdpa", everything), rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="static caches"):
        generated("headshare", everything.masked_fill(torch.arange(9) < 4, 0))


def test_packed_sequences_are_refused():
    ids, _ = sample()
    places = torch.cat([torch.arange(12), torch.arange(8)]).expand(3, 20)
    mistral = transformers.MistralConfig(**SMALL, **WIDE, num_key_value_heads=2, sliding_window=64)
    for model in (made("LlamaForCausalLM"), transformers.MistralForCausalLM(mistral)):
        model.set_attn_implementation("headshare")
        refused("packed or custom masks", model.eval(), input_ids=ids, position_ids=places, use_cache=False)


@pytest.mark.parametrize("length", [17, 23])
def test_a_mask_of_another_length_is_read_as_sdpa_reads_it(length):
    ids, _ = sample()
    padding = (torch.arange(length) >= torch.tensor([[0], [3], [1]])).long()
    positions = torch.arange(20).expand(3, 20)
    found = [
        made("LlamaForCausalLM", implementation).eval()(ids, attention_mask=padding, position_ids=positions).logits[0]
        for implementation in ("sdpa", "headshare")
    ]
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-5)
