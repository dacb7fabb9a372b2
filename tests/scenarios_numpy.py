"""NumPy's side of the scenarios: arrays spelled as tensors are, and runs that undo and replay writes."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np


def weights(shape: Sequence[int]) -> np.ndarray:
    """Weights without symmetry: a permuted or a summed gradient is noticed."""
    n = int(np.prod(shape))
    return ((1.0 + 0.3 * np.arange(n)) * np.where(np.arange(n) % 2, -0.9, 1.0)).reshape(shape)


class Array(np.ndarray):
    """NumPy's array with the tensor's spellings; a single number still is an array, of no axes."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Array:
        return array if isinstance(array, Array) else array.view(Array)

    def __getitem__(self, key: Any) -> Any:
        return _array(super().__getitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        # NumPy copies a value that overlaps the target, but not where masks are written by.
        if isinstance(value, np.ndarray) and np.may_share_memory(self, value):
            value = value.copy()
        super().__setitem__(key, value)

    def __getattr__(self, name: str) -> Any:
        if not name.endswith("_") or name.startswith("_"):
            raise AttributeError(name)

        def write(*args: Any, **kwargs: Any) -> Array:
            np.copyto(self, function(name[:-1])(self.copy(), *args, **kwargs))
            return self

        return write

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Array:
        return super().astype(_exact(dtype), *args, **kwargs)

    def clone(self) -> Array:
        return self.copy()

    def detach(self) -> Array:
        return self[...]

    def detach_(self) -> Array:
        return self

    def numpy(self) -> np.ndarray:
        seen = self.view(np.ndarray)
        seen.flags.writeable = False
        return seen

    def copy_(self, value: Any) -> Array:
        self[...] = value
        return self

    fill_ = copy_

    def zero_(self) -> Array:
        return self.copy_(0)

    def masked_fill_(self, mask: Any, value: Any) -> Array:
        self[np.broadcast_to(mask, self.shape)] = value
        return self

    def requires_grad_(self, value: bool = True) -> Array:
        return self


def _exact(dtype: Any) -> Any:
    """NumPy's run computes in float64 throughout, or differences would be noise."""
    return np.float64 if dtype is not None and np.dtype(dtype).kind == "f" else dtype


def _array(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value).view(Array) if not isinstance(value, Array) else value
    return value


def _softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _wrap(data: Any, dtype: Any = None, requires_grad: bool = False) -> Any:
    return np.asarray(data, _exact(dtype))


def _copy(data: Any, dtype: Any = None, requires_grad: bool = False) -> Any:
    return np.array(data, _exact(dtype))


def _add_at(target: Any, index: Any, value: Any) -> Any:
    np.add.at(target, index, value)
    return target


# What NumPy lacks, or has otherwise.
_OWN: dict[str, Callable[..., Any]] = {
    "add_at": _add_at,
    "asarray": _wrap,
    "diagonal": lambda x: np.einsum("ii->i", x),
    "logsumexp": lambda x, **axes: np.log(np.sum(np.exp(x), **axes)),
    "norm": lambda x, **axes: np.sqrt(np.sum(np.square(x), **axes)),
    "erf": lambda x: np.vectorize(math.erf)(x),
    "relu": lambda x: np.where(np.asarray(x) > 0, x, 0.0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softmax": _softmax,
    "softplus": lambda x: np.logaddexp(x, 0.0),
    "tensor": _copy,
}


@functools.cache
def function(name: str) -> Callable[..., Any]:
    """NumPy's function of a name, its results as `Array`."""
    plain = _OWN.get(name) or getattr(np, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        if "dtype" in kwargs:
            kwargs["dtype"] = _exact(kwargs["dtype"])
        if "out" in kwargs and not isinstance(plain, np.ufunc):
            out = kwargs.pop("out")
            np.copyto(out, plain(*args, **kwargs))
            return out
        return _array(plain(*args, **kwargs))

    return call


class OnNumpy:
    """`xp` of a run by NumPy.

    Parameters
    ----------
    refused : set of int
        Numbers of the writes that are to be undone.
    constants : list or None
        What another run recorded as constant, to be replayed; None to record.
    """

    def __init__(self, refused: frozenset[int] = frozenset(), constants: list[Any] | None = None) -> None:
        self.refused = refused
        self.recorded = constants is None
        self.constants: list[Any] = [] if constants is None else list(constants)
        self._replayed = iter(self.constants)
        self._recording = True
        self._count = 0
        self.total = 0.0

    def __getattr__(self, name: str) -> Any:
        return function(name)

    def _constant(self, value: Any) -> Any:
        if self.recorded:
            self.constants.append(np.array(value))
            return value
        return next(self._replayed)

    @contextlib.contextmanager
    def _switched(self, recording: bool) -> Iterator[None]:
        before, self._recording = self._recording, recording
        yield
        self._recording = before

    def no_grad(self) -> Any:
        return self._switched(False)

    def enable_grad(self) -> Any:
        return self._switched(True)

    @contextlib.contextmanager
    def write(self, *watched: Any, recorded: bool = True) -> Iterator[None]:
        number, self._count = self._count, self._count + 1
        before = [np.array(w) for w in watched]
        try:
            yield
        except (ValueError, TypeError, IndexError):
            if number not in self.refused:
                raise
        if number in self.refused:
            for w, old in zip(watched, before, strict=True):
                if w.flags.writeable:
                    w[...] = old
        elif not (self._recording and recorded):
            added = [self._constant(np.asarray(w) - old) for w, old in zip(watched, before, strict=True)]
            for w, old, change in zip(watched, before, added, strict=True):
                w[...] = old + change

    def constant(self, value: Any) -> Any:
        return _array(self._constant(value))

    def in_threads(self, *functions: Callable[[], Any]) -> None:
        for f in functions:
            f()

    def backward(self, result: Any, gradient: Any = None, **options: Any) -> None:
        self.total += float(np.sum(result * (weights(result.shape) if gradient is None else gradient)))
