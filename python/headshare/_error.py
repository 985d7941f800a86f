from __future__ import annotations


class Error(RuntimeError):
    """What headshare refuses or cannot do, in one sentence that names the numbers and the way out."""
