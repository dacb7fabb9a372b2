"""Tensors from data."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import pool, record
from .buffers import Buffer, identity, known, lock, owner_of, writable_alias
from .errors import DTypeError, GradientError, ShapeError
from .modes import recording, tick
from .node import Place, TensorState, kind_of
from .operands import array_of, check_array, check_dtype, raw
from .ops import OPS
from .tensors import Tensor


def _finish(t: Tensor, requires_grad: bool) -> Tensor:
    return t.requires_grad_() if requires_grad else t


def _number(value: Any, op: str) -> Any:
    """The numbers of an argument; of a tracked one, with a warning."""
    if isinstance(value, Tensor):
        value._cut(f"{op}()")
        return raw(value)
    return value


def _tracked(data: Any) -> bool:
    """Whether nested sequences hold a tracked tensor."""
    if isinstance(data, list | tuple):
        return any(map(_tracked, data))
    return isinstance(data, Tensor) and data.requires_grad and recording.get()


def _stacked(data: Any) -> Any:
    """Nested sequences of tensors and numbers as one tensor that depends on them."""
    return OPS["stack"]([_stacked(d) for d in data]) if isinstance(data, list | tuple) else data


def _array(data: Any, dtype: Any, op: str) -> np.ndarray:
    """Data as a new array."""
    if isinstance(data, TensorState):
        data = _number(data, op)
    if isinstance(data, list | tuple):
        data = _plain(data)
    if isinstance(data, np.ndarray):
        check_array(data, op)
    try:
        plain = type(data) is np.ndarray and dtype is None
        made = pool.copy(data) if plain else np.array(data, dtype=dtype, order="C")
    except (ValueError, TypeError, OverflowError) as error:
        raise ShapeError(f"{op}: {str(error).rstrip('.')}.") from None
    check_dtype(made.dtype, op)
    return made


def _plain(data: Any) -> Any:
    if isinstance(data, TensorState):
        return array_of(data)
    return [_plain(d) for d in data] if isinstance(data, list | tuple) else data


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of the data.

    Parameters
    ----------
    data : array_like
        Numbers, nested sequences, an array or a tensor. Sequences with tracked tensors in them are stacked, so
        the result depends on them; a tracked tensor itself is copied as numbers, with a warning (see `clone`).
    dtype : dtype, optional
        By default that of the data.
    requires_grad : bool
        Make it a leaf whose gradient `backward()` computes.

    Raises
    ------
    DTypeError
        If the dtype is complex, object, byte-swapped, or not floating and `requires_grad` is set.
    ShapeError
        If nested sequences are ragged.

    Examples
    --------
    >>> import mutagrad as mg
    >>> mg.tensor([1.0, 2.0], requires_grad=True)
    tensor([1., 2.], dtype=float64, requires_grad=True)
    """
    if isinstance(data, list | tuple) and _tracked(data):
        if requires_grad:
            raise GradientError(
                "tensor(): requires_grad=True makes a leaf, but the data are tracked; detach them first."
            )
        made = _stacked(data)
        return made if dtype is None else made.astype(dtype)
    return _finish(record.new(_array(data, dtype, "tensor")), requires_grad)


array = tensor


def asarray(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor that shares the memory of a NumPy array; a tensor is returned as it is, other data are copied.

    While a live graph keeps this memory the array is read-only, so NumPy refuses a write to it on the line
    where it happens. Views, memoryviews and pointers taken from the array before are outside this promise. An
    array whose elements overlap (stretched, or a sliding window) is copied. Tensors on one memory are views of one
    another: if one of them is tracked, so is the next that wraps it.

    Parameters
    ----------
    data : array_like
    dtype : dtype, optional
        If it differs from the data's, they are copied.
    requires_grad : bool
        Make it a leaf.

    Raises
    ------
    DTypeError
        As for `tensor`.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> a = np.zeros(2)
    >>> t = mg.asarray(a)
    >>> t += 1.0
    >>> a
    array([1., 1.])
    """
    if isinstance(data, Tensor):
        if dtype is not None and np.dtype(dtype) != data.dtype:
            data = data.astype(dtype)
        return _finish(data, requires_grad)
    overlapping = isinstance(data, np.ndarray) and _overlapping(data)
    if not isinstance(data, np.ndarray) or overlapping or (dtype is not None and np.dtype(dtype) != data.dtype):
        return tensor(data, dtype, requires_grad)
    check_array(data, "asarray")
    with lock:
        return _finish(_share(data), requires_grad)


def _overlapping(data: np.ndarray) -> bool:
    """Whether elements may share memory, as in stretched arrays and sliding windows: such are copied."""
    reach = data.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(data.strides, data.shape, strict=True) if n > 1):
        if stride < reach and data.size:
            return True
        reach += (n - 1) * stride
    return False


def _share(data: np.ndarray) -> Tensor:
    owner = owner_of(data)
    buffer = known.get(identity(owner))
    if buffer is None:
        buffer = known[identity(owner)] = Buffer(owner, tick(), shared=True)
    if not buffer.shared:
        # A view that `numpy()` gave of a tensor's memory: the same bytes, none of its history.
        seen = data.view(np.ndarray)
        place = Place(buffer, seen, None, detached=True)
    else:
        seen = _seen(data, buffer)
        place = _place(seen, buffer)
        buffer.watch(owner)
        buffer.watch(data)
    made = record.make(seen, None, kind_of(seen), None, buffer.born)
    made._place, made._number = place, -1
    return made


def _seen(data: np.ndarray, buffer: Buffer) -> np.ndarray:
    """The array as we see it: writable for us also while the user's own is locked, if it was writable before."""
    if data.flags.writeable:
        return data.view(np.ndarray)
    return writable_alias(data) if buffer.locked and buffer.writable else data.view(np.ndarray)


def _place(seen: np.ndarray, buffer: Buffer) -> Place:
    """The place of a window on the user's memory: the one it lies in, or a new one if it touches none."""
    places = [p for r in buffer.places if (p := r()) is not None]
    touched = [p for p in places if np.may_share_memory(p.array, seen)]
    for place in touched:
        if place.array.dtype == seen.dtype and place.covers(seen):
            return place
    if touched:
        memory = _seen(buffer.memory, buffer)
        if len(places) == 1 and touched[0].node is None and memory.dtype == touched[0].array.dtype == seen.dtype:
            # Nothing is tracked yet, so the whole owner can become the base.
            touched[0].widen(memory)
            if touched[0].covers(seen):
                return touched[0]
        raise ShapeError(
            "asarray: part of this memory is wrapped through another window or dtype already; "
            "wrap the whole array first, or use mg.tensor to copy it."
        )
    place = Place(buffer, seen, None)
    buffer.places = [*map(weakref.ref, places), weakref.ref(place)]
    return place


# NumPy's constants and dtypes, under its names.
CONSTANTS = {
    name: getattr(np, name)
    for name in """pi e euler_gamma inf nan newaxis float16 float32 float64 int8 int16 int32 int64 intp
    uint8 uint16 uint32 uint64 bool_ finfo iinfo""".split()
}


def _new(op: str, requires_grad: bool, make: Callable[..., np.ndarray], *args: Any, **kwargs: Any) -> Tensor:
    """A tensor on what NumPy makes; its complaints are worded with the op's name."""
    try:
        made = make(*args, **kwargs)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError, MemoryError) as error:
        kind = DTypeError if isinstance(error, TypeError) else ShapeError
        raise kind(f"{op}: {str(error).rstrip('.')}.") from None
    check_dtype(made.dtype, op)
    return _finish(record.new(made), requires_grad)


def _filled(
    name: str, make: Callable[..., np.ndarray], example: str, shown: str, fill: str = ""
) -> Callable[..., Tensor]:
    def function(shape: Any, *args: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
        if args and isinstance(args[0], Tensor):
            return empty(shape, dtype=dtype or args[0].dtype).fill_(args[0])
        wanted = np.float64 if dtype is None and not args else dtype
        return _new(name, requires_grad, make, shape, *args, dtype=wanted)

    what = fill or name
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""A new tensor of {what}.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype, optional
        By default float64, or that of the value for `full`.
    requires_grad : bool
        Make it a leaf.

    Examples
    --------
    >>> import mutagrad as mg
    >>> {example}
    {shown}
    """
    return function


zeros = _filled("zeros", np.zeros, "mg.zeros(2)", "tensor([0., 0.], dtype=float64)")
ones = _filled("ones", np.ones, "mg.ones(2)", "tensor([1., 1.], dtype=float64)")
empty = _filled("empty", np.empty, "mg.empty((2, 3)).shape", "(2, 3)", "uninitialised values")
full = _filled("full", np.full, "mg.full(2, 7.0)", "tensor([7., 7.], dtype=float64)", "one value, the second argument")


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """Ones on the `k`-th diagonal of an N x M matrix, zeros elsewhere.

    Examples
    --------
    >>> import mutagrad as mg
    >>> mg.eye(2)
    tensor([[1., 0.],
            [0., 1.]], dtype=float64)
    """
    return _new("eye", requires_grad, np.eye, N, M, k, dtype)


def arange(*args: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """`arange([start,] stop[, step])`: evenly spaced values, stop excluded; integers give an integer tensor.

    Examples
    --------
    >>> import mutagrad as mg
    >>> mg.arange(3.0)
    tensor([0., 1., 2.], dtype=float64)
    """
    return _new("arange", requires_grad, np.arange, *(_number(a, "arange") for a in args), dtype=dtype)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`num` evenly spaced values from start to stop.

    Examples
    --------
    >>> import mutagrad as mg
    >>> mg.linspace(0.0, 1.0, 3)
    tensor([0. , 0.5, 1. ], dtype=float64)
    """
    start, stop = _number(start, "linspace"), _number(stop, "linspace")
    return _new("linspace", requires_grad, np.linspace, start, stop, num, endpoint, dtype=dtype)


def zeros_like(x: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros in the shape and dtype of `x`."""
    return _new("zeros_like", requires_grad, np.zeros_like, np.asarray(raw(x)), dtype)


def ones_like(x: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones in the shape and dtype of `x`."""
    return _new("ones_like", requires_grad, np.ones_like, np.asarray(raw(x)), dtype)


def empty_like(x: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Uninitialised values in the shape and dtype of `x`."""
    return _new("empty_like", requires_grad, np.empty_like, np.asarray(raw(x)), dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """One value in the shape and dtype of `x`."""
    if isinstance(fill_value, Tensor):
        return empty_like(x, dtype).fill_(fill_value)
    return _new("full_like", requires_grad, np.full_like, np.asarray(raw(x)), fill_value, dtype)
