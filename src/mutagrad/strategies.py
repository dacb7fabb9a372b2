"""Hypothesis strategies for users' tests and the library's own; needs the package `hypothesis`.

It is `mg.testing.strategies`: shapes, dtypes, arrays in every layout, operands from an op's domain, index
expressions. Whole random programs stand in `mg.testing.programs`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .ops import Elementwise

LAYOUTS = ("c", "fortran", "step", "reversed", "read-only")


def shapes(max_dims: int = 3, max_side: int = 4, min_side: int = 0) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes, 0-d and empty ones included.

    Examples
    --------
    >>> import mutagrad as mg
    >>> from hypothesis import given
    >>> from mutagrad.testing import strategies
    >>> @given(strategies.shapes(max_dims=2))
    ... def check(shape):
    ...     assert mg.zeros(shape).shape == shape
    >>> check()
    """
    return st.lists(st.integers(min_side, max_side), max_size=max_dims).map(tuple)


@st.composite
def broadcastable(draw: Any, count: int = 2, max_dims: int = 3, max_side: int = 4) -> tuple[tuple[int, ...], ...]:
    """`count` shapes that broadcast together.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> from hypothesis import given
    >>> from mutagrad.testing import strategies
    >>> @given(strategies.broadcastable(2))
    ... def check(pair):
    ...     assert (mg.ones(pair[0]) + mg.ones(pair[1])).shape == np.broadcast_shapes(*pair)
    >>> check()
    """
    full = draw(shapes(max_dims, max_side))
    found = []
    for _ in range(count):
        kept = full[draw(st.integers(0, len(full))) :]
        found.append(tuple(n if draw(st.booleans()) else 1 for n in kept))
    return tuple(found)


def dtypes(kinds: str = "f") -> st.SearchStrategy[np.dtype[Any]]:
    """Dtypes that ops compute with, by NumPy's letters of their kinds: "f" float64 and float32, "i", "u", "b".

    Examples
    --------
    >>> import mutagrad as mg
    >>> from hypothesis import given
    >>> from mutagrad.testing import strategies
    >>> @given(strategies.dtypes("fiub"))
    ... def check(dtype):
    ...     assert mg.zeros(2, dtype=dtype).dtype == dtype
    >>> check()
    """
    each = {"f": (np.float64, np.float32), "i": (np.int64, np.int32, np.int8), "u": (np.uint8, np.uint64), "b": (bool,)}
    return st.sampled_from([np.dtype(t) for kind in kinds for t in each[kind]])


@st.composite
def laid_out(draw: Any, values: np.ndarray, among: tuple[str, ...] = LAYOUTS) -> np.ndarray:
    """The same values in memory of their own, in one of NumPy's layouts.

    Parameters
    ----------
    values : ndarray
        Not modified.
    among : tuple of str
        "c" and "fortran" order, "step" (every second element of wider memory), "reversed" (negative strides),
        "read-only", and "stretched", which alone changes the values: the first along an axis stands for all.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> from hypothesis import given
    >>> from mutagrad.testing import strategies
    >>> table = np.arange(6.0).reshape(2, 3)
    >>> @given(strategies.laid_out(table))
    ... def check(array):
    ...     assert mg.sum(array).item() == table.sum()
    >>> check()
    """
    layout = draw(st.sampled_from(among))
    if layout == "fortran":
        return np.array(values, order="F")
    if layout == "step":
        wide = np.zeros(tuple(2 * n for n in values.shape), values.dtype)
        seen = wide[tuple(slice(None, None, 2) for _ in values.shape)]
        seen[...] = values
        return seen
    if layout == "reversed":
        return np.flip(np.flip(values).copy())
    if layout == "stretched" and values.ndim:
        axis = draw(st.integers(0, values.ndim - 1))
        return np.broadcast_to(np.take(values, range(min(1, values.shape[axis])), axis), values.shape)
    values = np.array(values, order="C")
    values.flags.writeable = layout != "read-only"
    return values


@st.composite
def arrays(
    draw: Any,
    shape: tuple[int, ...],
    low: float = -2.0,
    high: float = 2.0,
    dtype: Any = np.float64,
    layouts: bool = True,
) -> np.ndarray:
    """Arrays of a shape with elements in [low, high], and unless switched off in any layout, stretched ones too.

    Examples
    --------
    >>> import mutagrad as mg
    >>> from hypothesis import given
    >>> from mutagrad.testing import strategies
    >>> @given(strategies.arrays((2, 3)))
    ... def check(array):
    ...     assert mg.tensor(array).tolist() == array.tolist()
    >>> check()
    """
    seed = draw(st.integers(0, 2**32 - 1))
    values = np.random.default_rng(seed).uniform(max(low, -1e3), min(high, 1e3), shape).astype(dtype)
    return draw(laid_out(values, (*LAYOUTS, "stretched"))) if layouts else values


def limits(entry: Elementwise, operand: int = 0, reach: float = 3.0) -> tuple[float, float]:
    """Where an operand is sampled by the table, cut to [-reach, reach] where it is wider; the last part of several."""
    low, high = entry.sample[operand][-1]
    return (max(low, -reach) if high > -reach else low), (min(high, reach) if low < reach else high)


@st.composite
def operands(
    draw: Any, entry: Elementwise, shape: tuple[int, ...], dtype: Any = np.float64, reach: float = 3.0
) -> list[np.ndarray]:
    """Arguments of an elementwise entry of the table: arrays inside its domain, in any layout; masks are bool.

    Examples
    --------
    >>> import mutagrad as mg
    >>> from hypothesis import given
    >>> from mutagrad.ops import OPS
    >>> from mutagrad.testing import strategies
    >>> @given(strategies.operands(OPS["log"], (3,)))
    ... def check(args):
    ...     assert mg.testing.gradcheck(mg.log, args)
    >>> check()
    """
    found = []
    for k, name in enumerate(entry.operands):
        if name in entry.masks:
            found.append(draw(arrays(shape)) > 0)
        else:
            found.append(draw(arrays(shape, *limits(entry, k, reach), dtype)))
    return found


@st.composite
def basic_indices(draw: Any, shape: tuple[int, ...], newaxis: bool = True) -> Any:
    """Basic indices of a shape: integers, slices with any step, an ellipsis, new axes.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> from hypothesis import given
    >>> from mutagrad.testing import strategies
    >>> table = np.arange(6.0).reshape(2, 3)
    >>> @given(strategies.basic_indices((2, 3)))
    ... def check(key):
    ...     assert mg.tensor(table)[key].tolist() == table[key].tolist()
    >>> check()
    """
    key: list[Any] = []
    dims = draw(st.integers(0, len(shape)))
    dots = draw(st.integers(0, dims)) if draw(st.booleans()) else None
    axes = list(range(dims)) if dots is None else [*range(dots), *range(len(shape) - dims + dots, len(shape))]
    for k, a in enumerate(axes):
        if k == dots:
            key.append(Ellipsis)
        if newaxis and draw(st.integers(0, 9)) == 9:
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
    """Advanced indices of a shape: integer arrays with repeats, masks, mixed with slices.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> from hypothesis import given
    >>> from mutagrad.testing import strategies
    >>> table = np.arange(6.0).reshape(2, 3)
    >>> @given(strategies.advanced_indices((2, 3)))
    ... def check(key):
    ...     assert mg.tensor(table)[key].tolist() == table[key].tolist()
    >>> check()
    """
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


def indices(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Indices of a shape, basic and advanced.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> from hypothesis import given
    >>> from mutagrad.testing import strategies
    >>> table = np.arange(6.0).reshape(2, 3)
    >>> @given(strategies.indices((2, 3)))
    ... def check(key):
    ...     x = mg.tensor(table, requires_grad=True)
    ...     mg.sum(x[key]).backward()
    ...     count = np.zeros((2, 3))
    ...     np.add.at(count, key, 1.0)
    ...     assert x.grad.tolist() == count.tolist()
    >>> check()
    """
    return basic_indices(shape) | advanced_indices(shape)
