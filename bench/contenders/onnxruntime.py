"""Runs ONNX Runtime: its fused MultiHeadAttention where every head has keys of its own, else the standard's operator
Attention. Tensors are handed over without copies."""

import numpy
import onnx
import torch

import onnxruntime

NAME = "onnxruntime"

OPSETS = (onnx.helper.make_opsetid("", 23), onnx.helper.make_opsetid("com.microsoft", 1))

sessions = {}


def applies(case):
    return case["pass"] == "forward" and case["dropout"] == 0 and case["precision"] == "fp32"


def is_fused(case, query, key):
    return case["queries"] > 1 and key.shape[1] == query.shape[1]


def made(case, query, key):
    """Returns a session of one operator. A new token has its keys [B, H, S, D] as they lie in a cache, all else is
    [B, T, H D]."""
    own, shared, scale = query.shape[1], key.shape[1], case["head_width"] ** -0.5
    causal = int(case["causal"] and case["queries"] > 1)
    inputs, outputs = ["query", "key", "value"], ["heads"]
    if is_fused(case, query, key):
        fused = dict(domain="com.microsoft", num_heads=own, unidirectional=causal, scale=scale)
        node = onnx.helper.make_node("MultiHeadAttention", inputs, outputs, **fused)
    elif case["queries"] > 1:
        sizes = dict(q_num_heads=own, kv_num_heads=shared)
        node = onnx.helper.make_node("Attention", inputs, outputs, is_causal=causal, scale=scale, **sizes)
    else:
        node = onnx.helper.make_node("Attention", inputs, outputs, scale=scale)
    infos = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in inputs + outputs]
    graph = onnx.helper.make_graph([node], "attention", infos[:3], infos[3:])
    model = onnx.helper.make_model(graph, opset_imports=OPSETS, ir_version=11)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def flat(heads):
    """Returns [B, H, T, D], whose heads lie side by side in memory, as [B, T, H D]."""
    return heads.transpose(1, 2).flatten(2)


def heads(case, query, key, value):
    name = (case["name"], case["threads"])
    if name not in sessions:
        sessions[name] = made(case, query, key)
    batch, own, length, width = *query.shape[:3], value.shape[3]
    given = (query, key, value) if length == 1 else map(flat, (query, key, value))
    feed = {name: tensor.detach().numpy() for name, tensor in zip(("query", "key", "value"), given)}
    found = torch.from_numpy(numpy.asarray(sessions[name].run(None, feed)[0]))
    return found if length == 1 else found.view(batch, length, own, width).transpose(1, 2)
