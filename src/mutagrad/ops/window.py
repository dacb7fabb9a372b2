"""Windows: how a view lies in the memory of its base, and the ops that read and write through it.

Whatever chain of slices, transposes and reshapes made a view, its place in the base's memory says it all,
so one entry differentiates every view.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from .entry import Movement


class Layout(NamedTuple):
    """How a base array lies in memory: shape, strides, bytes spanned, offset of its first element."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    span: int
    start: int

    def fresh(self, dtype: Any) -> np.ndarray:
        """A new array of zeros that lies as the base does."""
        if self.dense(np.dtype(dtype).itemsize):
            return np.zeros(self.shape, dtype)
        return np.ndarray(self.shape, dtype, np.zeros(self.span, np.uint8), self.start, self.strides)

    def dense(self, itemsize: int) -> bool:
        """Whether the base is contiguous in C order."""
        step = itemsize
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n > 1 and stride != step:
                return False
            step *= n
        return True

    def fits(self, array: np.ndarray) -> bool:
        """Whether an array that owns its memory lies as the base does."""
        return array.base is None and array.flags.c_contiguous and self.dense(array.itemsize)

    def arranged(self, values: np.ndarray) -> np.ndarray:
        """A copy of `values` that lies as the base does."""
        out = self.fresh(values.dtype)
        out[...] = values
        return out


@functools.lru_cache(maxsize=1024)
def dense_layout(shape: tuple[int, ...], itemsize: int) -> Layout:
    """The layout of a contiguous array."""
    strides = []
    span = itemsize
    for n in reversed(shape):
        strides.append(span)
        span *= n
    return Layout(shape, tuple(reversed(strides)), span, 0)


class Geometry(NamedTuple):
    """A window in a base: the base's layout, and the window's shape, strides and offset in bytes."""

    base: Layout
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int

    def of(self, array: np.ndarray) -> np.ndarray:
        """The window into an array that lies as the base does; it shares memory with it."""
        # An array made over part of a buffer has that buffer as its base.
        memory = array if array.base is None else array.base
        return np.ndarray(self.shape, array.dtype, memory, self.start, self.strides)  # type: ignore[arg-type]

    def folded(self, g: Any) -> Any:
        """The cotangent of the window, summed over what a stretched axis repeats."""
        repeated = tuple(a for a, (n, s) in enumerate(zip(self.shape, self.strides, strict=True)) if n > 1 and s == 0)
        return g.sum(axis=repeated, keepdims=True) if repeated else g

    def narrow(self) -> Geometry:
        """This window with stretched axes cut to length 1: no element twice."""
        shape = tuple(1 if s == 0 and n > 1 else n for n, s in zip(self.shape, self.strides, strict=True))
        return self._replace(shape=shape)


def _read(x: np.ndarray, geometry: Geometry) -> np.ndarray:
    return geometry.of(geometry.base.arranged(x))


def _embed(x: np.ndarray, geometry: Geometry) -> np.ndarray:
    out = geometry.base.fresh(x.dtype)
    geometry.narrow().of(out)[...] += geometry.folded(x)
    return out


def _write(x: np.ndarray, value: Any, geometry: Geometry) -> np.ndarray:
    out = geometry.base.arranged(x)
    geometry.of(out)[...] = value
    return out


window = Movement(
    "view(x, geometry)", "What a view sees of its base.", private=True, compute=_read,
    adjoints={"x": lambda g, geometry: embed(g, geometry)},
)  # fmt: skip

embed: Movement = Movement(
    "view_adjoint(x, geometry)", "Zeros with x added at a window.", private=True, compute=_embed,
    adjoints={"x": lambda g, geometry: window(g, geometry)},
)  # fmt: skip

write: Movement = Movement(
    "setitem(x, value, geometry)", "x with a window replaced.", operands=("x", "value"), private=True, compute=_write,
    adjoints={
        "x": lambda g, geometry: write(g, 0.0, geometry),
        "value": lambda g, geometry: window(g, geometry),
    },
)  # fmt: skip
