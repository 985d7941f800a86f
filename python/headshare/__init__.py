"""Attention whose heads share projections: headshare's C++ kernels as operations of torch.

    import headshare
    out = headshare.ops.attention(query, key, value, causal=True)

docs/python.md of the repository describes what there is.
"""

from headshare import _load

_load.load()

from headshare import ops  # noqa: E402  (the operations exist once the library is loaded)

__all__ = ["ops"]
