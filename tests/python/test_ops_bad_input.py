"""Tests that what operations cannot take is an exception with the numbers, and that odd input is served."""

import os
import threading
import time

import headshare
import pytest
import torch

ops = headshare.ops
raw = torch.ops.headshare


def heads(*sizes, **options):
    return torch.randn(*(sizes or (2, 4, 5, 8)), **options)


REFUSED = {
    "three dimensions": (lambda: ops.attention(heads(2, 5, 8), heads(), heads()), r"queries must be .* not \[2, 5, 8\]"),
    "widths differ": (lambda: ops.attention(heads(), heads(2, 4, 5, 6), heads()), r"\[2, 4, 5, 8\] and \[2, 4, 5, 6\]"),
    "lengths differ": (lambda: ops.attention(heads(), heads(), heads(2, 4, 6, 8)), r"the same length"),
    "batches differ": (lambda: ops.attention(heads(), heads(1, 4, 5, 8), heads(1, 4, 5, 8)), r"the same batch"),
    "heads do not divide": (lambda: ops.attention(heads(), heads(2, 3, 5, 8), heads()), r"divides 4, not \[2, 3, 5, 8\]"),
    "no heads": (lambda: ops.attention(heads(), heads(), heads(), heads=0), r"at least one head, not 0"),
    "no width": (lambda: ops.attention(heads(), heads(), heads(2, 4, 5, 0)), r"at least 1 wide, not \[2, 4, 5, 0\]"),
    "devices": (lambda: ops.attention(heads(), heads(), heads(device="meta")), r"one device, not on cpu and meta"),
    "norm's devices": (lambda: ops.rms_norm(heads(), torch.ones(8, device="meta")), r"one device, not on cpu and meta"),
    "integers": (lambda: ops.attention(*[heads().long()] * 3), r"floating-point tensors, not Long"),
    "types differ": (lambda: ops.attention(heads(), heads().double(), heads()), r"one type, not Float, Double"),
    "mask of another type": (
        lambda: ops.attention(heads(), heads(), heads(), visible_keys=torch.ones(2, 5)),
        r"bool \[batch, keys\] = \[2, 5\]",
    ),
    "mask of another shape": (
        lambda: ops.attention(heads(), heads(), heads(), visible_keys=torch.ones(2, 4, dtype=torch.bool)),
        r"= \[2, 5\], not Bool \[2, 4\]",
    ),
    "short bias": (lambda: ops.attention(heads(), heads(), heads(), key_bias=heads(2, 4, 4)), r"\[2, 4, 5\], not \[2, 4, 4\]"),
    "shift of many keys": (lambda: ops.attention(heads(), heads(), heads(), query_shift=heads(4, 8)), r"one head .* not 4 and 4"),
    "short shift": (
        lambda: ops.attention(*[heads(2, 1, 5, 8)] * 3, heads=4, query_shift=heads(3, 8)),
        r"\[4, 8\], not \[3, 8\]",
    ),
    "slopes": (lambda: ops.attention(heads(), heads(), heads(), alibi_slopes=torch.ones(3)), r"each of 4 heads, not \[3\]"),
    "learned slopes": (
        lambda: ops.attention(heads(), heads(), heads(), alibi_slopes=torch.ones(4, requires_grad=True)),
        r"no gradient of alibi_slopes",
    ),
    "dropout without a key": (lambda: ops.attention(heads(), heads(), heads(), dropout=0.1), r"0.1 needs a dropout_key"),
    "dropout of all": (lambda: ops.attention(heads(), heads(), heads(), dropout=1.0, dropout_key=1), r"below 1, not 1"),
    "key of floats": (lambda: ops.dropout(heads(), 0.5, torch.ones(2)), r"int64 .* not \[2\] of type Float"),
    "empty key": (lambda: ops.dropout(heads(), 0.5, []), r"not \[0\]"),
    "dropout of integers": (lambda: ops.dropout(torch.ones(3, dtype=torch.int64), 0.5, 1), r"not Long"),
    "gelu's form": (lambda: ops.gelu(heads(), "sigmoid"), r"none or tanh, not by sigmoid"),
    "gelu of integers": (lambda: ops.gelu(torch.ones(3, dtype=torch.int32)), r"not Int"),
    "norm's width": (lambda: ops.rms_norm(heads(), torch.ones(7)), r"not \[2, 4, 5, 8\] and \[7\]"),
    "norm's type": (lambda: ops.rms_norm(heads(), torch.ones(8).double()), r"must be float32, not Double"),
    "norm of a number": (lambda: ops.rms_norm(torch.tensor(1.0), torch.ones(1)), r"not \[\] and \[1\]"),
    "linear's width": (lambda: ops.linear(heads(), heads(9, 7)), r"\[2, 4, 5, 8\] and \[9, 7\]"),
    "linear's types": (lambda: ops.linear(heads(), heads(9, 8).double()), r"Float and Double"),
    "linear's bias": (lambda: ops.linear(heads(), heads(9, 8), heads(8)), r"\[9\], not Float \[8\]"),
    "rotation of three": (lambda: ops.rotate(heads(2, 5, 8)), r"not \[2, 5, 8\]"),
    "odd rotation": (lambda: ops.rotate(heads(), width=3), r"last 8 dimensions can turn, not 3"),
    "rotation's period": (lambda: ops.rotate(heads(), period=6), r"divide 8, not 6"),
    "far positions": (lambda: ops.rotate(heads(), first=2**62), r"2\^52, not 4611686018427387904 and 5"),
    "rotation's base": (lambda: ops.rotate(heads(), base=0.0), r"above 0, not 0"),
    "targets": (lambda: ops.cross_entropy(heads(3, 6), heads(9, 6), torch.tensor([1, 9, 2])), r"target 9 .* vocabulary of 9"),
    "targets of another type": (lambda: ops.cross_entropy(heads(3, 6), heads(9, 6), torch.ones(3)), r"int64.* Float"),
    "targets for others": (lambda: ops.cross_entropy(heads(3, 6), heads(9, 6), torch.ones(4).long()), r"each of 3 rows"),
    "targets of another order": (
        lambda: ops.cross_entropy(heads(2, 3, 6), heads(9, 6), torch.ones(3, 2).long()),
        r"\[2, 3, 6\].*\[3, 2\]",
    ),
    "key on another device": (
        lambda: ops.attention(heads(), heads(), heads(), dropout=0.5, dropout_key=torch.zeros(1, device="meta").long()),
        r"key .* not on meta",
    ),
    "dropout's key on another device": (
        lambda: ops.dropout(heads(), 0.5, torch.zeros(1, device="meta").long()),
        r"key .* not on meta",
    ),
    "loss's widths": (lambda: ops.cross_entropy(heads(3, 6), heads(9, 5), torch.ones(3).long()), r"\[3, 6\] and \[9, 5\]"),
    "loss's bias": (lambda: ops.cross_entropy(heads(3, 6), heads(9, 6), torch.ones(3).long(), heads(8)), r"9 tokens.* \[8\]"),
    "no reduction": (lambda: ops.cross_entropy(heads(3, 6), heads(9, 6), torch.ones(3).long(), reduction="none"), r"'none'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_numbers(name):
    call, message = REFUSED[name]
    with pytest.raises(RuntimeError, match=message):
        call()


def test_a_backward_pass_refuses_what_no_forward_pass_left():
    args = ops._problem(heads(), heads(), heads())[:-1]
    out, lse, m, by_head, backend = raw.attention_forward(*args, True)
    with pytest.raises(RuntimeError, match=r"does not fit 2 sentences of 5 queries and 4 heads: \[0\]"):
        raw.attention_backward(*args, out, lse.new_empty(0), m, by_head, backend, out)
    with pytest.raises(RuntimeError, match=r"factorised did not compute .* one head of queries, keys and values, not 4, 4"):
        raw.attention_backward(*args, out, lse, m, by_head, torch.tensor([1], dtype=torch.uint8), out)
    with pytest.raises(RuntimeError, match=r"6 backends, and none is number 9"):
        raw.attention_backward(*args, out, lse, m, by_head, torch.tensor([9], dtype=torch.uint8), out)
    with pytest.raises(RuntimeError, match=r"must be \[2, 4, 5, 8\], not .* \[2, 4, 1, 8\]"):
        raw.attention_backward(*args, out, lse, m, by_head, backend, out[:, :, :1])
    with pytest.raises(RuntimeError, match=r"linear map must be \[3, 9\], not \[2, 9\]"):
        raw.linear_backward(heads(2, 9), heads(3, 8), heads(9, 8), None, True, True, True)
    with pytest.raises(RuntimeError, match=r"3 rows left 3 factors, not \[2\]"):
        raw.rms_norm_backward(heads(3, 8), heads(3, 8), heads(8), heads(2), 1e-5)
    with pytest.raises(RuntimeError, match=r"gelu must be \[3\], not \[2\]"):
        raw.gelu_backward(heads(2), heads(3), "none")


def test_a_forward_pass_without_gradients_says_so_in_the_backward_pass():
    query = heads(requires_grad=True)
    args = ops._problem(query, query, query)[:-1]
    with pytest.raises(RuntimeError, match="gradients=False"):
        raw.attention_forward(*args, False)[0].sum().backward()
    hidden = heads(3, 6, requires_grad=True)
    loss = raw.cross_entropy_forward(hidden, heads(9, 6), torch.ones(3).long(), None, -100, None, False, False, False)[0]
    with pytest.raises(RuntimeError, match="hidden_wanted=False"):
        loss.backward()


SECOND = {
    "attention": lambda x: ops.attention(x, x, x),
    "gelu": ops.gelu,
    "rms_norm": lambda x: ops.rms_norm(x, torch.ones(8)),
    "linear": lambda x: ops.linear(x, torch.ones(9, 8)),
    "cross_entropy": lambda x: ops.cross_entropy(x, torch.ones(9, 8), torch.ones(2, 4, 5).long()),
}


@pytest.mark.parametrize("name", SECOND)
def test_a_second_derivative_is_refused(name):
    x = heads(requires_grad=True)
    gradient = torch.autograd.grad(SECOND[name](x).sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match=f"headshare.ops.{name} has no second derivative"):
        gradient.square().sum().backward()


@pytest.mark.parametrize("layout", ["transposed", "expanded", "stepped", "reversed"])
def test_layouts_are_served(layout):
    plain = heads(2, 4, 5, 8)
    strange = {
        "transposed": plain.transpose(1, 2).contiguous().transpose(1, 2),
        "expanded": plain[:1, :1].expand(2, 4, 5, 8),
        "stepped": heads(4, 4, 10, 16)[::2, :, ::2, ::2],
        "reversed": plain.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    }[layout].detach()
    weight = torch.ones(8)
    for call in (
        lambda x: ops.attention(x, x, x, causal=True),
        lambda x: ops.rms_norm(x, weight),
        lambda x: ops.dropout(x, 0.5, 3),
        lambda x: ops.linear(x, torch.ones(9, 8)),
        ops.gelu,
        ops.rotate,
    ):
        given, dense = strange.detach().requires_grad_(), strange.contiguous().detach().requires_grad_()
        torch.testing.assert_close(call(given), call(dense))
        (found,) = torch.autograd.grad(call(given).sum(), given)
        (wanted,) = torch.autograd.grad(call(dense).sum(), dense)
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("sizes", [(0, 4, 5, 8), (2, 4, 0, 8)])
def test_empty_batches_are_served(sizes):
    x = torch.randn(sizes, requires_grad=True)
    weight = torch.ones(8)
    results = [ops.attention(x, x, x), ops.gelu(x), ops.rms_norm(x, weight), ops.dropout(x, 0.5, 1), ops.rotate(x)]
    results.append(ops.linear(x, torch.ones(9, 8)))
    sum(y.sum() for y in results).backward()
    assert x.grad.shape == x.shape
    hidden = torch.randn(0, 6, requires_grad=True)
    loss = ops.cross_entropy(hidden, torch.ones(9, 6), torch.ones(0).long(), reduction="sum")
    loss.backward()
    assert loss.item() == 0


def test_integers_cannot_learn():
    with pytest.raises(RuntimeError, match="floating point"):
        heads().long().requires_grad_()
    with pytest.raises(RuntimeError, match="not Long"):
        ops.linear(torch.ones(3, 8, dtype=torch.int64), torch.ones(9, 8, requires_grad=True))


def work():
    x = heads(2, 4, 70, 16, requires_grad=True)
    y = ops.attention(x, x, x, causal=True, dropout=0.1, dropout_key=1)
    ops.cross_entropy(y.flatten(0, 2), torch.ones(300, 16, requires_grad=True), torch.ones(560).long()).backward()
    return x.grad


def test_several_threads_at_once():
    torch.manual_seed(1)
    x = heads(2, 4, 70, 16)
    expected = ops.attention(x, x, x, causal=True)
    wrong = []

    def run():
        for _ in range(5):
            work()
            if not torch.equal(ops.attention(x, x, x, causal=True), expected):
                wrong.append(threading.get_ident())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_child_computes_alone():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    work()
    child = os.fork()
    if child == 0:  # no exception may reach pytest in here
        status = 1
        try:
            status = 0 if work() is not None and torch.get_num_threads() == 1 else 2
        finally:
            os._exit(status)
    torch.set_num_threads(before)
    for _ in range(300):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0
            return
        time.sleep(0.05)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pytest.fail("the child waits for threads that it does not have")


def test_forward_mode_is_refused():
    """Its tangents would silently be 0."""
    x = torch.randn(2, 2, 4, 8)
    for function in (lambda x: ops.attention(x, x, x), ops.gelu, lambda x: ops.rotate(x)):
        with pytest.raises(RuntimeError, match="no forward-mode derivative"):
            torch.func.jvp(function, (x,), (x,))
