"""Maps the names of parameters of transformers' Llama and its kin to ours."""

# This maps theirs -> ours, within a block.
NAMES = {
    "self_attn.q_proj": "attention.scheme.query", "self_attn.k_proj": "attention.scheme.key",
    "self_attn.v_proj": "attention.scheme.value", "self_attn.o_proj": "attention.scheme.output",
    "self_attn.q_norm": "attention.scheme.query_norm", "self_attn.k_norm": "attention.scheme.key_norm",
    "self_attn.kv_a_proj_with_mqa": "attention.scheme.latent", "self_attn.kv_a_layernorm": "attention.scheme.latent_norm",
    "input_layernorm": "attention_norm", "post_attention_layernorm": "feed_forward_norm",
    "mlp.gate_proj": "feed_forward.gate", "mlp.up_proj": "feed_forward.expand", "mlp.down_proj": "feed_forward.contract",
}  # fmt: skip
FIXED = {"model.embed_tokens.weight": "token_embedding", "lm_head.weight": "output_embedding", "model.norm.weight": "norm.weight"}


def ours(name):
    if name in FIXED:
        return FIXED[name]
    _, _, layer, rest = name.split(".", 3)
    part, end = rest.rsplit(".", 1)
    return f"blocks.{layer}.{NAMES[part]}.{end}"
