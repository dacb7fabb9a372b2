"""Hypothesis strategies for users' tests and the library's own; needs the package `hypothesis`.

It is `mg.testing.strategies`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .ops import Elementwise


def shapes(max_dims: int = 3, max_side: int = 4, min_side: int = 0) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes, 0-d and empty ones included."""
    return st.lists(st.integers(min_side, max_side), max_size=max_dims).map(tuple)


@st.composite
def broadcastable(draw: Any, count: int = 2, max_dims: int = 3, max_side: int = 4) -> tuple[tuple[int, ...], ...]:
    """`count` shapes that broadcast together."""
    full = draw(shapes(max_dims, max_side))
    found = []
    for _ in range(count):
        kept = full[draw(st.integers(0, len(full))) :]
        found.append(tuple(n if draw(st.booleans()) else 1 for n in kept))
    return tuple(found)


@st.composite
def arrays(
    draw: Any,
    shape: tuple[int, ...],
    low: float = -2.0,
    high: float = 2.0,
    dtype: Any = np.float64,
    layouts: bool = True,
) -> np.ndarray:
    """Arrays of a shape with elements in [low, high], and unless switched off in any layout NumPy knows.

    Layouts are C and Fortran order, steps, reversed axes, read-only memory, and stretched axes.
    """
    seed = draw(st.integers(0, 2**32 - 1))
    values = np.random.default_rng(seed).uniform(max(low, -1e3), min(high, 1e3), shape).astype(dtype)
    if not layouts:
        return values
    layout = draw(st.sampled_from(["c", "fortran", "step", "reversed", "read-only", "stretched"]))
    if layout == "fortran":
        return np.asfortranarray(values)
    if layout == "step":
        wide = np.zeros(tuple(2 * n for n in shape), dtype)
        seen = wide[tuple(slice(None, None, 2) for _ in shape)]
        seen[...] = values
        return seen
    if layout == "reversed":
        return values[tuple(slice(None, None, -1) for _ in shape)]
    if layout == "read-only":
        values.flags.writeable = False
    if layout == "stretched" and shape and shape[0]:
        return np.broadcast_to(values[:1], shape)
    return values


@st.composite
def operands(draw: Any, entry: Elementwise, shape: tuple[int, ...], dtype: Any = np.float64) -> list[np.ndarray]:
    """Arguments of an elementwise entry inside its domain, in any layout."""
    found = []
    for name, intervals in zip(entry.operands, entry.sample, strict=True):
        if name in entry.masks:
            found.append(draw(arrays(shape)) > 0)
        else:
            low, high = draw(st.sampled_from(intervals))
            found.append(draw(arrays(shape, max(low, -3.0), min(high, 3.0), dtype)))
    return found


@st.composite
def basic_indices(draw: Any, shape: tuple[int, ...], newaxis: bool = True) -> Any:
    """Basic indices of a shape: integers, slices with any step, an ellipsis, new axes."""
    key: list[Any] = []
    dims = draw(st.integers(0, len(shape)))
    dots = draw(st.integers(0, dims)) if draw(st.booleans()) else None
    axes = list(range(dims)) if dots is None else [*range(dots), *range(len(shape) - dims + dots, len(shape))]
    for k, a in enumerate(axes):
        if k == dots:
            key.append(Ellipsis)
        if newaxis and draw(st.integers(0, 9)) == 0:
            key.append(None)
        n = shape[a]
        if n and draw(st.booleans()):
            key.append(draw(st.integers(-n, n - 1)))
        else:
            ends = st.none() | st.integers(-n - 1, n + 1)
            key.append(slice(draw(ends), draw(ends), draw(st.sampled_from([None, 1, 2, -1, -2]))))
    if dots is not None and dots >= len(axes):
        key.append(Ellipsis)
    return tuple(key)


@st.composite
def advanced_indices(draw: Any, shape: tuple[int, ...]) -> Any:
    """Advanced indices of a shape: integer arrays with repeats, masks, mixed with slices."""
    if not shape:
        return np.array(draw(st.booleans()))
    if draw(st.booleans()):
        dims = draw(st.integers(1, len(shape)))
        seed = draw(st.integers(0, 2**32 - 1))
        return np.random.default_rng(seed).random(shape[:dims]) > 0.5
    key: list[Any] = []
    length = draw(st.integers(1, 3))
    for n in shape[: draw(st.integers(1, len(shape)))]:
        if n and draw(st.integers(0, 2)):
            key.append(np.array(draw(st.lists(st.integers(-n, n - 1), min_size=length, max_size=length))))
        else:
            key.append(slice(None, None, draw(st.sampled_from([1, -1]))))
    return tuple(key)
