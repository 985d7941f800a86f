"""headshare.nn against torch.nn.MultiheadAttention, and what users do with modules."""

import concurrent.futures
import copy
import gc
import io
import pickle
import weakref

import pytest
import torch
from torch import nn

from headshare.nn import SharedHeadAttention

SCHEMES = [
    "mha", "gqa", "mqa", "sha", "skv", "el_shared", "el_lossless", "mhe_add", "mhe_mul", "collaborative", "lrkv",
    "shared_query", "mla",
]  # fmt: skip


def sample(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def pair(**options):
    """Returns torch's layer with biases that are not 0, and ours with its weights."""
    torch.manual_seed(0)
    source = nn.MultiheadAttention(16, 4, **options)
    with torch.no_grad():
        for one in source.parameters():
            one.copy_(torch.randn_like(one) * 0.3)
    return source, SharedHeadAttention.from_torch(source)


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_mha_is_torchs(batch_first, bias):
    theirs, ours = pair(batch_first=batch_first, bias=bias)
    x, memory = sample(3, 5, 16), sample(3, 7, 16, seed=1)
    if not batch_first:
        x, memory = x.transpose(0, 1), memory.transpose(0, 1)
    padding = torch.arange(7) >= torch.tensor([[7], [4], [1]])
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    for arguments, options in (
        ((x, x, x), {}),
        ((x, memory, memory), {}),
        ((x, memory, memory), {"key_padding_mask": padding}),
        ((x, x, x), {"attn_mask": causal, "is_causal": True}),
        ((x, x, x), {"attn_mask": causal}),
        ((x, x, x), {"attn_mask": causal == float("-inf"), "key_padding_mask": padding[:, :5]}),
    ):
        expected, weights = theirs(*arguments, **options, need_weights=True)
        output, where = ours(*arguments, **options, need_weights=True)
        close(output, expected)
        close(where, weights)
        every = ours(*arguments, **options, need_weights=True, average_attn_weights=False)[1]
        assert every.shape == (3, 4, *weights.shape[1:])
        assert ours(*arguments, **options)[1] is None


def test_gradients_are_torchs():
    theirs, ours = pair(batch_first=True)
    x = [sample(2, 5, 16).requires_grad_() for _ in range(2)]
    theirs(x[0], x[0], x[0])[0].square().sum().backward()
    ours(x[1])[0].square().sum().backward()
    close(x[1].grad, x[0].grad)
    close(ours.query.weight.grad, theirs.in_proj_weight.grad[:16])
    close(ours.value.bias.grad, theirs.in_proj_bias.grad[32:])
    close(ours.output.weight.grad, theirs.out_proj.weight.grad)
    assert not ours.key.bias.requires_grad  # softmax cancels it


def test_a_query_that_sees_nothing_gives_the_output_bias():
    theirs, ours = pair(batch_first=True)
    x = sample(1, 3, 16)
    hidden = torch.ones(1, 3, dtype=torch.bool)
    output = ours(x, key_padding_mask=hidden)[0]
    close(output, ours.output.bias.expand(1, 3, 16))
    close(output, theirs(x, x, x, key_padding_mask=hidden, need_weights=False)[0])


def test_one_sequence_without_a_batch():
    theirs, ours = pair()
    x = sample(5, 16)
    expected, weights = theirs(x, x, x)
    output, where = ours(x, x, x, need_weights=True)
    close(output, expected)
    close(where, weights)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_learns_decodes_and_is_copied(scheme):
    torch.manual_seed(1)
    layer = SharedHeadAttention(16, 4, scheme=scheme, batch_first=True, init_deviation=0.3, output_deviation=0.3)
    x = sample(2, 6, 16)
    output, _ = layer(x, is_causal=True)
    output.square().sum().backward()
    for name, one in layer.named_parameters():
        assert one.requires_grad == (one.grad is not None), name
    # Token by token gives the same, and the cache holds what `cost` says.
    cache, steps = None, []
    for token in x.split(1, dim=1):
        step, cache = layer.decode(token, cache)
        steps.append(step)
    torch.testing.assert_close(torch.cat(steps, 1), output, rtol=1e-4, atol=1e-5)
    assert sum(one.shape[1] * one.shape[3] for one in cache) == layer.cost["cache_elements"]
    cost = layer.cost
    assert cost["parameters"] + cost["biases"] == sum(one.numel() for one in layer.parameters())
    # Copies share nothing and compute the same.
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x, is_causal=True)[0], output)
        with torch.no_grad():
            twin.output.weight.zero_()
        assert torch.equal(layer(x, is_causal=True)[0], output)


def test_state_dict_names_are_stable():
    names = {
        scheme: sorted(name for name in SharedHeadAttention(16, 4, scheme=scheme, bias=False).state_dict())
        for scheme in ("mqa", "mhe_mul", "collaborative")
    }
    plain = ["key.weight", "output.weight", "query.weight", "value.weight"]
    assert names["mqa"] == plain
    assert names["mhe_mul"] == sorted([*plain, "query_embedding", "key_embedding", "value_embedding"])
    assert names["collaborative"] == sorted([*plain, "mixing"])


def test_the_state_is_saved_and_loaded():
    torch.manual_seed(2)
    layer, other = (SharedHeadAttention(16, 4, scheme="mhe_add") for _ in range(2))
    x = sample(6, 2, 16)
    assert not torch.equal(layer(x)[0], other(x)[0])
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    assert torch.equal(layer(x)[0], other(x)[0])


def test_functional_call_and_grad_reach_other_parameters():
    layer = SharedHeadAttention(16, 4, scheme="mhe_mul", batch_first=True)
    x = sample(2, 4, 16)
    doubled = {name: one * 2 for name, one in layer.named_parameters()}
    output = torch.func.functional_call(layer, doubled, (x,))[0]
    assert not torch.equal(output, layer(x)[0])
    for name, one in layer.named_parameters():
        if not one.requires_grad:
            continue
        (gradient,) = torch.autograd.grad(output.square().sum(), one, retain_graph=True)
        assert gradient.abs().max() > 0, name


def test_dropout_follows_torchs_seed():
    layer = SharedHeadAttention(16, 4, dropout=0.5, scheme="mqa", batch_first=True)
    x = sample(2, 8, 16)

    def drawn(seed):
        torch.manual_seed(seed)
        return layer(x)[0]

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    layer.eval()
    assert torch.equal(drawn(1), drawn(2))


def test_dtype_moves_and_autocast():
    layer = SharedHeadAttention(16, 4, scheme="mhe_mul", batch_first=True, init_deviation=0.3)
    x = sample(2, 5, 16)
    single = layer(x)[0]
    with torch.autocast("cpu", torch.bfloat16):
        half = layer(x)[0]
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), single, rtol=0.1, atol=0.02)
    double = layer.double()(x.double())[0]
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), single, rtol=1e-4, atol=1e-6)


def test_a_layer_inside_a_compiled_model():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = SharedHeadAttention(16, 4, scheme="mhe_add", batch_first=True)

        def forward(self, x):
            return self.attention(x * 2)[0] + x

    net, x = Net(), sample(2, 5, 16)
    compiled = torch.compile(net, backend="eager")
    close(compiled(x), net(x))
    compiled(x).sum().backward()
    assert net.attention.query.weight.grad is not None


def test_positions():
    x, order = sample(1, 6, 16), torch.tensor([2, 0, 1, 3, 5, 4])
    for options in ({"rotary": True}, {"alibi": True}):
        layer = SharedHeadAttention(16, 4, scheme="mqa", batch_first=True, init_deviation=0.5, **options)
        moved = layer(x[:, order])[0]
        assert (moved - layer(x)[0][:, order]).abs().max() > 1e-4, options  # order matters


def test_a_cache_of_another_layer_is_refused():
    layers = {name: SharedHeadAttention(16, 4, scheme=name, batch_first=True) for name in ("mha", "mqa", "skv")}
    x = sample(2, 5, 16)
    caches = {name: layer.decode(x)[1] for name, layer in layers.items()}
    for name, cache, message in (
        ("mqa", caches["mqa"][:1], "has 1 tensors; the scheme mqa keeps 2"),
        ("mha", caches["skv"], "has 1 tensors; the scheme mha keeps 2"),
        ("mqa", caches["mha"], r"\[2, 4, 5, 4\]; the scheme mqa keeps \[2, 1, tokens, 4\]"),
        ("mha", [one[:1] for one in caches["mha"]], r"\[1, 4, 5, 4\]"),
        ("mha", [one.long() for one in caches["mha"]], "Long"),
        ("mha", [one.double() for one in caches["mha"]], "cache is torch.float64, the layer torch.float32"),
    ):
        with pytest.raises(RuntimeError, match=message):
            layers[name].decode(x, cache)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_second_derivative_is_refused(scheme):
    layer = SharedHeadAttention(64, 4, scheme=scheme, batch_first=True)
    x = sample(4, 32, 64).requires_grad_()
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(layer(x)[0].square().sum(), x, create_graph=True)


@pytest.mark.parametrize(
    "scheme, options",
    [
        ("mha", {}),
        ("mha", {"output_gate": "head"}),
        ("skv", {"shared_qk": True}),
        ("el_lossless", {}),
        ("collaborative", {}),
        ("shared_query", {}),
    ],
)
def test_a_bias_that_changes_before_the_backward_pass_is_noticed(scheme, options):
    layer = SharedHeadAttention(16, 4, scheme=scheme, batch_first=True, **options)
    output, _ = layer(sample(2, 5, 16))
    with torch.no_grad():
        layer.get_parameter("value.bias").add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


def test_dropout_is_chosen_when_the_layer_is_made():
    layer = SharedHeadAttention(16, 4, dropout=0.5)
    assert layer.dropout == 0.5
    with pytest.raises(AttributeError):
        layer.dropout = 0.0


def test_dropout_keeps_the_mean():
    torch.manual_seed(0)
    layer = SharedHeadAttention(16, 4, dropout=0.3, batch_first=True, init_deviation=0.3, output_deviation=0.3)
    x = sample(1, 8, 16)
    mean = torch.stack([layer(x)[0] for _ in range(4000)]).mean(0)
    torch.testing.assert_close(mean, layer.eval()(x)[0], rtol=0, atol=0.1)  # the values deviate by 1


def test_inference_mode_first_and_training_afterwards():
    layer = SharedHeadAttention(16, 4, rotary=True, batch_first=True, rotary_base=777)
    x = sample(2, 5, 16)
    with torch.inference_mode():
        layer(x)
    layer(x)[0].sum().backward()
    assert layer.query.weight.grad is not None


def test_a_part_that_is_replaced_is_heard():
    torch.manual_seed(0)
    layer, other = (SharedHeadAttention(16, 4, batch_first=True) for _ in range(2))
    x = sample(2, 5, 16)
    for name in ("query", "key", "value", "output"):
        setattr(layer, name, copy.deepcopy(getattr(other, name)))
    assert torch.equal(layer(x)[0], other(x)[0])


def test_parameters_are_in_one_place():
    layer = SharedHeadAttention(16, 4, batch_first=True)
    layer.key.weight = nn.Parameter(layer.key.weight.to("meta"))
    with pytest.raises(RuntimeError, match="key.weight is on meta, the first one on cpu"):
        layer(sample(2, 5, 16))


def test_tracing_is_refused():
    layer, x = SharedHeadAttention(16, 4, batch_first=True), sample(2, 5, 16)
    from torch.fx.experimental.proxy_tensor import make_fx

    with pytest.raises(RuntimeError, match="cannot be traced or exported"):
        make_fx(lambda x: layer(x)[0])(x)
    with pytest.raises(RuntimeError, match="cannot be traced or exported"):
        torch.export.export(layer, (x,), strict=False)
    with pytest.raises(RuntimeError, match="run in C\\+\\+, outside of torch's graphs"):
        torch.compile(layer, fullgraph=True)(x)


def test_a_layer_of_torchs_encoder():
    encoder = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    x = sample(2, 5, 16)
    expected = encoder(x)
    encoder.self_attn = SharedHeadAttention.from_torch(encoder.self_attn)
    close(encoder(x), expected)


def test_a_stack_of_torchs_encoder_layers():
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    layer.self_attn = SharedHeadAttention(16, 4, scheme="mqa", batch_first=True, init_deviation=0.3)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x, padding = sample(2, 5, 16), torch.arange(5) >= torch.tensor([[5], [3]])
    expected = encoder.train()(x, src_key_padding_mask=padding)
    by_hand = x
    for one in encoder.layers:
        by_hand = one(by_hand, src_key_padding_mask=padding)
    assert torch.equal(by_hand, expected)
    with torch.no_grad():
        close(encoder.eval()(x, src_key_padding_mask=padding), expected)
    with pytest.warns(UserWarning, match="_qkv_same_embed_dim was not True"):
        nn.TransformerEncoder(layer, 2)


@pytest.mark.parametrize("bias", [True, False])
def test_a_part_of_torchs_transformer(bias):
    """Its encoder was made of torch's layers, for which it meant to take its fast path."""
    torch.manual_seed(0)
    theirs = nn.Transformer(16, 4, 2, 2, 32, dropout=0.0, batch_first=True, bias=bias)
    ours = copy.deepcopy(theirs)
    for layer in (*ours.encoder.layers, *ours.decoder.layers):
        for name in ("self_attn", "multihead_attn"):
            if hasattr(layer, name):
                setattr(layer, name, SharedHeadAttention.from_torch(getattr(layer, name)))
    source, target = sample(2, 7, 16), sample(2, 5, 16, seed=1)
    padding = torch.arange(7) >= torch.tensor([[7], [4]])
    given = {"tgt_mask": nn.Transformer.generate_square_subsequent_mask(5) == float("-inf"), "tgt_is_causal": True,
             "src_key_padding_mask": padding, "memory_key_padding_mask": padding}  # fmt: skip
    expected = theirs(source, target, **given)
    close(ours(source, target, **given), expected)
    with torch.no_grad():
        close(ours.eval()(source, target, **given), expected)


def test_what_torchs_layer_does_not_learn_ours_does_not():
    source = nn.MultiheadAttention(16, 4)
    source.in_proj_weight.requires_grad_(False)
    source.out_proj.bias.requires_grad_(False)
    learned = {name for name, one in SharedHeadAttention.from_torch(source).named_parameters() if one.requires_grad}
    assert learned == {"query.bias", "value.bias", "output.weight"}


def test_a_functional_calls_graph_is_let_go():
    layer, x = SharedHeadAttention(16, 4, batch_first=True), sample(2, 5, 16)
    doubled = {name: one * 2 for name, one in layer.named_parameters()}
    watched = weakref.ref(doubled["query.weight"])
    torch.func.functional_call(layer, doubled, (x,))
    del doubled
    gc.collect()
    assert watched() is None


def test_unfreezing_leaves_parameters_that_cannot_learn():
    layer = SharedHeadAttention(16, 4).requires_grad_(False).requires_grad_(True)
    assert layer.query.weight.requires_grad and not layer.key.bias.requires_grad


def test_threads_share_a_layer():
    layer, x = SharedHeadAttention(16, 4, scheme="mhe_mul", batch_first=True), sample(8, 5, 16)
    expected = layer(x)[0]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda i: layer(x[i : i + 1])[0], list(range(8)) * 20))
    for i, one in enumerate(found):
        close(one[0], expected[i % 8])


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        ((16, 3), {}, "heads must divide d-model"),
        ((16, 4), {"scheme": "mhe_adds"}, "did you mean 'mhe_add'"),
        ((16, 4), {"groups": 2}, "groups matters only to the scheme gqa"),
        ((16, 4), {"no_such": 2}, "no-such"),
        ((16, 4), {"kdim": 8}, "kdim 8"),
        ((16, 4), {"add_bias_kv": True}, "add tokens"),
        ((16, 4), {"rotary": True, "alibi": True}, "not both"),
        ((16, 4), {"dropout": 2.0}, "dropout"),
        ((16, 4), {"dropout": float("nan")}, "dropout must be a finite number, not nan"),
        ((16, 4), {"rotary": True, "rotary_base": float("inf")}, "rotary_base must be a finite number, not inf"),
        ((16, 4), {"projection_bias": False}, "is the argument bias"),
        ((16, 4), {"d_model": 32}, "is the argument embed_dim"),
        ((16, 4), {"scheme": "gqa", "groups": 3}, "set groups to a divisor of 4"),
    ],
)
def test_impossible_options_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        SharedHeadAttention(*arguments, **options)


def test_a_detached_memory_gets_no_gradient():
    layer = SharedHeadAttention(16, 4, batch_first=True)
    x = sample(2, 5, 16).requires_grad_()
    detached, other = x.detach(), x.detach().clone()
    (got,) = torch.autograd.grad(layer(x, detached, detached)[0].square().sum(), x)
    (wanted,) = torch.autograd.grad(layer(x, other, other)[0].square().sum(), x)
    torch.testing.assert_close(got, wanted)
    (itself,) = torch.autograd.grad(layer(x, x[:], x.view(x.shape))[0].square().sum(), x)
    torch.testing.assert_close(itself, torch.autograd.grad(layer(x)[0].square().sum(), x)[0])
    with torch.no_grad():
        view = x[:]
    torch.testing.assert_close(torch.autograd.grad(layer(x, view, view)[0].square().sum(), x)[0], wanted)
    with pytest.raises(ValueError, match="one memory"):
        layer(x, x, detached)
    with torch.no_grad():
        torch.testing.assert_close(layer(x, x, detached)[0], layer(x)[0])


def test_bad_input_is_refused_with_both_numbers():
    layer = SharedHeadAttention(16, 4, batch_first=True)
    x, memory = sample(2, 5, 16), sample(3, 5, 16)
    for bad, message in (
        (lambda: layer(x[..., :8]), r"\[2, 5, 8\].*16"),
        (lambda: layer(x.long()), "floating-point"),
        (lambda: layer(x, x, x * 1), "one memory"),
        (lambda: layer(x, x), "one memory"),
        (lambda: layer(x, attn_mask=torch.zeros(5, 5)), "causal mask"),
        (lambda: layer(x, attn_mask=torch.ones(4, 5, dtype=torch.bool)), r"\[4, 5\]"),
        (lambda: layer(x, key_padding_mask=torch.zeros(2, 6, dtype=torch.bool)), r"\[2, 6\].*\[2, 5\]"),
        (lambda: layer(x, key_padding_mask=torch.full((2, 5), 0.5)), "0 and -inf"),
        (lambda: layer(x, key_padding_mask=torch.zeros(2, 5).long()), "bool or floating-point.*torch.int64"),
        (lambda: layer(x, memory, memory), "2 sequences, the memory 3"),
        (lambda: layer(x, memory[:2], memory[:2], is_causal=True), "no causal order"),
        (lambda: layer.to("meta")(x), "meta"),
    ):
        with pytest.raises((ValueError, RuntimeError), match=message):
            bad()
