"""Tensors from data."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import record
from .buffers import Buffer, lock
from .errors import DTypeError, ShapeError
from .modes import tick
from .node import Place, TensorState, kind_of
from .operands import array_of, check_array, check_dtype, raw, stretched
from .tensors import Tensor

# The place of each piece of NumPy memory that is shared, by the identity of the array that owns it. The
# place's buffer holds the owner, so an identity cannot be reused while its entry lives.
_shared: weakref.WeakValueDictionary[int, Place] = weakref.WeakValueDictionary()


def _finish(t: Tensor, requires_grad: bool) -> Tensor:
    return t.requires_grad_() if requires_grad else t


def _array(data: Any, dtype: Any, op: str) -> np.ndarray:
    """Data as a new array."""
    if isinstance(data, TensorState):
        data = raw(data)
    if isinstance(data, list | tuple):
        data = _plain(data)
    if isinstance(data, np.ndarray):
        check_array(data, op)
    try:
        made = np.array(data, dtype=dtype, order="C")
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
        Numbers, nested sequences, an array or a tensor (whose history is not copied; see `clone`).
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
    return _finish(record.new(_array(data, dtype, "tensor")), requires_grad)


array = tensor


def asarray(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor that shares the memory of a NumPy array; a tensor is returned as it is, other data are copied.

    While a live graph keeps this memory the array is read-only, so NumPy refuses a write to it on the line
    where it happens. Views, memoryviews and pointers taken from the array before are outside this promise.

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
    overlapping = isinstance(data, np.ndarray) and stretched(data)
    if not isinstance(data, np.ndarray) or overlapping or (dtype is not None and np.dtype(dtype) != data.dtype):
        return tensor(data, dtype, requires_grad)
    check_array(data, "asarray")
    with lock:
        return _finish(_share(data), requires_grad)


def _share(data: np.ndarray) -> Tensor:
    owner = data
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    place = _shared.get(id(owner))
    if place is None:
        seen = data.view(np.ndarray)
        place = Place(Buffer(owner, tick(), shared=True), seen, None)
        _shared[id(owner)] = place
    else:
        seen = _again(data, place)
    place.buffer.watch(owner)
    place.buffer.watch(data)
    made = Tensor(seen, None, kind_of(seen), None, place.buffer.born)
    made._place = place
    made._number = -1
    return made


def _again(data: np.ndarray, place: Place) -> np.ndarray:
    """A window on memory that is wrapped already, writable although the array may be locked now."""
    base = place.array
    if data.dtype != base.dtype:
        raise DTypeError(
            f"asarray: this memory is wrapped as {base.dtype} already and cannot be shared as {data.dtype}; "
            "use mg.tensor to copy it."
        )
    geometry = place.geometry(data)
    reach = sum((n - 1) * s for n, s in zip(data.shape, data.strides, strict=True) if s > 0) + data.itemsize
    back = sum((n - 1) * s for n, s in zip(data.shape, data.strides, strict=True) if s < 0)
    inside = geometry.start + back >= 0 and geometry.start + reach <= geometry.base.span
    if data.size and not inside:
        if place.node is not None:
            raise ShapeError(
                "asarray: part of this memory is tracked through another window already; wrap the whole array first."
            )
        # Nothing is tracked yet, so the whole owner can become the base.
        owner = place.buffer.memory
        place.array = owner.view(np.ndarray)
        place._layout = None
        place.number += 1
    return data.view(np.ndarray) if not base.flags.writeable else _writable(data, place)


def _writable(data: np.ndarray, place: Place) -> np.ndarray:
    if data.flags.writeable or data.size == 0:
        return data.view(np.ndarray)
    base = place.array
    memory = base
    while isinstance(memory.base, np.ndarray) and memory.base.flags.writeable:
        memory = memory.base
    offset = data.ctypes.data - base.ctypes.data
    return np.lib.stride_tricks.as_strided(_at(base, offset), data.shape, data.strides)


def _at(base: np.ndarray, offset: int) -> np.ndarray:
    """A one-element window `offset` bytes from the first element of `base`."""
    index = []
    for stride, n in sorted(zip(base.strides, base.shape, strict=True), key=lambda p: -abs(p[0])):
        step = offset // stride if stride and n > 1 else 0
        index.append((stride, step))
        offset -= step * stride
    steps = dict(index)
    return base[tuple(slice(steps[s], None) for s in base.strides)]


def _filled(
    name: str, make: Callable[..., np.ndarray], example: str, shown: str, fill: str = ""
) -> Callable[..., Tensor]:
    def function(shape: Any, *args: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
        try:
            made = make(shape, *(raw(a) for a in args), dtype=np.float64 if dtype is None and not args else dtype)
        except (ValueError, TypeError) as error:
            raise ShapeError(f"{name}: {str(error).rstrip('.')}.") from None
        check_dtype(made.dtype, name)
        return _finish(record.new(made), requires_grad)

    what = fill or name
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""A new tensor of {what}.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype, optional
        float64 by default.
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


def _new(array: np.ndarray, requires_grad: bool, op: str) -> Tensor:
    check_dtype(array.dtype, op)
    return _finish(record.new(array), requires_grad)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """Ones on the `k`-th diagonal of an N x M matrix, zeros elsewhere.

    Examples
    --------
    >>> import mutagrad as mg
    >>> mg.eye(2)
    tensor([[1., 0.],
            [0., 1.]], dtype=float64)
    """
    return _new(np.eye(N, M, k, dtype), requires_grad, "eye")


def arange(*args: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """`arange([start,] stop[, step])`: evenly spaced values, stop excluded; integers give an integer tensor.

    Examples
    --------
    >>> import mutagrad as mg
    >>> mg.arange(3.0)
    tensor([0., 1., 2.], dtype=float64)
    """
    return _new(np.arange(*(raw(a) for a in args), dtype=dtype), requires_grad, "arange")


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
    return _new(np.linspace(raw(start), raw(stop), num, endpoint, dtype=dtype), requires_grad, "linspace")


def zeros_like(x: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros in the shape and dtype of `x`."""
    return _new(np.zeros_like(np.asarray(raw(x)), dtype, order="C"), requires_grad, "zeros_like")


def ones_like(x: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones in the shape and dtype of `x`."""
    return _new(np.ones_like(np.asarray(raw(x)), dtype, order="C"), requires_grad, "ones_like")


def empty_like(x: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Uninitialised values in the shape and dtype of `x`."""
    return _new(np.empty_like(np.asarray(raw(x)), dtype, order="C"), requires_grad, "empty_like")


def full_like(x: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """One value in the shape and dtype of `x`."""
    return _new(np.full_like(np.asarray(raw(x)), raw(fill_value), dtype, order="C"), requires_grad, "full_like")
