"""Says what the operations do inside of torch.autocast.

torch.library.register_autocast casts every floating-point tensor to one type that is fixed at registration. Here the type
is the one that the user asked for, and biases of scores, slopes and the loss stay as they are.
"""

import torch

_library = torch.library.Library("headshare", "FRAGMENT")


def _cast(x, dtype):
    return x.to(dtype) if x is not None and x.is_floating_point() and x.dtype != torch.float64 else x


def _first_three(args, dtype):
    return [*(_cast(x, dtype) for x in args[:3]), *args[3:]]


def _cross_entropy(args, dtype):
    # The products take `dtype`; hidden states, weights and their gradients keep their types.
    hidden, products = args[0], args[5]
    if products is None and hidden.dtype != torch.float64:
        products = dtype
    return [*args[:5], products, *args[6:]]


def _register(name, adapted):
    operation = getattr(torch.ops.headshare, name).default
    for device in ("cpu", "cuda"):
        key = "Autocast" + torch._C._dispatch_key_for_device(device)
        keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

        def kernel(_, *args, device=device, keys=keys):
            with torch._C._ExcludeDispatchKeyGuard(keys):
                return operation(*adapted(args, torch.get_autocast_dtype(device)))

        _library.impl(name, kernel, key, with_keyset=True)


_register("attention_forward", _first_three)
_register("cross_entropy_forward", _cross_entropy)
_register("linear", _first_three)
