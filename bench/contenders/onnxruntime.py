"""Runs ONNX Runtime: its fused MultiHeadAttention where every head has keys of its own, else the standard's operator
Attention; with one query its GroupQueryAttention, which reads a cache and appends the new token to it in place. Tensors
are handed over without copies."""

import numpy
import onnx
import torch

import onnxruntime

NAME = "onnxruntime"

OPSETS = (onnx.helper.make_opsetid("", 23), onnx.helper.make_opsetid("com.microsoft", 1))

sessions = {}


def applies(case):
    return case["pass"] == "forward" and case["dropout"] == 0 and case["precision"] == "fp32"


def is_fused(query, key):
    return key.shape[1] == query.shape[1]


def session_of(node, names, whole=()):
    """Returns a session of one operator whose inputs are all float32, except those of `whole`, which are int32."""
    types = {name: onnx.TensorProto.INT32 if name in whole else onnx.TensorProto.FLOAT for name in (*names, *node.output)}
    infos = {name: onnx.helper.make_tensor_value_info(name, kind, None) for name, kind in types.items()}
    graph = onnx.helper.make_graph([node], "attention", [infos[name] for name in names], [infos[name] for name in node.output])
    model = onnx.helper.make_model(graph, opset_imports=OPSETS, ir_version=11)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    # Its threads would otherwise wait on a core while another contender has its turn.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def many_queries(case, query, key):
    """Returns a session for queries, keys and values of shape [B, T, H D]."""
    own, shared, scale = query.shape[1], key.shape[1], case["head_width"] ** -0.5
    causal, inputs = int(case["causal"]), ["query", "key", "value"]
    if is_fused(query, key):
        fused = dict(domain="com.microsoft", num_heads=own, unidirectional=causal, scale=scale)
        node = onnx.helper.make_node("MultiHeadAttention", inputs, ["heads"], **fused)
    else:
        sizes = dict(q_num_heads=own, kv_num_heads=shared)
        node = onnx.helper.make_node("Attention", inputs, ["heads"], is_causal=causal, scale=scale, **sizes)
    return session_of(node, inputs)


def flat(heads):
    """Returns [B, H, T, D], whose heads lie side by side in memory, as [B, T, H D]."""
    return heads.transpose(1, 2).flatten(2)


class Decoding:
    """This holds a cache [B, kv heads, S, D] that has room for the new token, which is its last one, and bindings in which
    the cache before and after are one: nothing but the new token is written."""

    INPUTS = ["query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length"]
    OUTPUTS = ["heads", "present_key", "present_value"]

    def __init__(self, case, query, key, value):
        own, shared, scale = query.shape[1], key.shape[1], case["head_width"] ** -0.5
        node = onnx.helper.make_node("GroupQueryAttention", self.INPUTS, self.OUTPUTS, domain="com.microsoft",
                                     num_heads=own, kv_num_heads=shared, scale=scale)  # fmt: skip
        self.session = session_of(node, self.INPUTS, whole=self.INPUTS[-2:])
        self.shape, self.given = query.shape, (query, key, value)  # nobody else gets their memory while this lives
        caches = [one.clone(memory_format=torch.contiguous_format).numpy() for one in (key, value)]
        new = [flat(one[:, :, -1:]).contiguous().numpy() for one in (key, value)]
        for cache in caches:
            cache[:, :, -1] = numpy.nan  # the operator must write it
        before = numpy.full(len(query), key.shape[2] - 1, dtype=numpy.int32)
        total = numpy.array([key.shape[2]], dtype=numpy.int32)
        heads = numpy.empty((len(query), 1, own * value.shape[3]), dtype=numpy.float32)
        given = (flat(query).contiguous().numpy(), *new, *caches, before, total)
        self.tensors = [onnxruntime.OrtValue.ortvalue_from_numpy(one) for one in (*given, heads)]
        self.arrays = (*given, heads)  # the tensors refer to their memory
        self.binding = self.session.io_binding()
        for name, tensor in zip(self.INPUTS, self.tensors):
            self.binding.bind_ortvalue_input(name, tensor)
        for name, tensor in zip(self.OUTPUTS, (self.tensors[-1], *self.tensors[3:5])):
            self.binding.bind_ortvalue_output(name, tensor)

    def heads(self):
        self.session.run_with_iobinding(self.binding)
        return torch.from_numpy(self.tensors[-1].numpy()).view(self.shape[0], 1, self.shape[1], -1).transpose(1, 2)


def heads(case, query, key, value):
    query, key, value = (one.detach() for one in (query, key, value))
    if case["queries"] == 1:
        name = (case["name"], case["threads"], query.data_ptr(), key.data_ptr())
        if name not in sessions:
            sessions.clear()  # caches are large
            sessions[name] = Decoding(case, query, key, value)
        return sessions[name].heads()
    name = (case["name"], case["threads"])
    if name not in sessions:
        sessions[name] = many_queries(case, query, key)
    batch, own, length, width = *query.shape[:3], value.shape[3]
    feed = {name: flat(tensor).numpy() for name, tensor in zip(("query", "key", "value"), (query, key, value))}
    found = torch.from_numpy(numpy.asarray(sessions[name].run(None, feed)[0]))
    return found.view(batch, length, own, width).transpose(1, 2)
