"""Reductions on buffers, and kernels with totals: parts are combined, and parts of those, until one is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import compile, expr, pool
from .codegen import LANES, PART, ROWS, Kernel, Total
from .ops import Reduction
from .run import FLOATS, MANY, prepared, variant
from .workers import shared, worth_sharing

# What the last part of a vector is written to where nobody asks for the parts.
_SCRATCH = {letter: np.empty(1, dtype) for dtype, letter in FLOATS.items()}


def _combining(entry: Reduction, letter: str, form: str, again: bool) -> tuple[Callable[..., Any], bool]:
    """Compiled code of a reduction, and whether it takes a count; `again` combines what it gave before."""
    key = (letter, form, again and entry.element is not _ELEMENT)
    found = entry.kernels.get(key)
    if found is None:
        element = _ELEMENT if key[2] else entry.element
        name = f"{entry.name}_of_parts" if key[2] else entry.name
        kernel = Kernel(name, ["x"], [], [Total(element, entry)])
        finished = kernel.totals[0].finished
        if form == "columns":
            types = [compile.array(letter, 3, False)] * 2
            code = compile.load(*kernel.columns(letter), types + [compile.scalar(letter)] * finished)
        else:
            code = variant(kernel, letter, "", "a", 1 if form == "vector" else 2, {})
        found = entry.kernels[key] = code, finished
    return found


_ELEMENT = expr.name("x")
# Elements of a part by form.
_PARTS = {"vector": PART, "rows": PART, "columns": ROWS}


def _row_of_parts(outer: tuple[int, ...], parts: int, init: float, dtype: np.dtype[Any]) -> np.ndarray:
    """Room for parts, filled up to what accumulators take at once, so that none is combined by itself."""
    width = parts if parts == 1 else -(-parts // LANES) * LANES
    made = pool.empty((*outer, width), dtype)
    made[..., parts:] = init
    return made


def _combined(entry: Reduction, x: np.ndarray, form: str, count: float, again: bool) -> Any:
    """Combine along the only axis, the last of two, or the middle one of three; unfinished where `count` is -1."""
    letter = FLOATS[x.dtype]
    while True:
        call, finished = _combining(entry, letter, form, again)
        parts = max(1, -(-x.shape[1 if form != "vector" else 0] // _PARTS[form]))
        ending = ((count if parts == 1 else -1.0),) if finished else ()
        if parts == 1 and form == "vector":
            return call(_SCRATCH[letter], x, *ending)
        if form == "columns":
            whole = part = pool.empty((x.shape[0], parts, x.shape[2]), x.dtype)
        else:
            whole = _row_of_parts(x.shape[:-1], parts, entry.init, x.dtype)
            part = whole[..., :parts]
        if x.size >= MANY:
            call = _shared_reduction(call, form, part, x)
        call(part, x, *ending)
        if parts == 1:
            return part
        x, again = whole, True


def _shared_reduction(call: Callable[..., Any], form: str, part: np.ndarray, x: np.ndarray) -> Callable[..., Any]:
    """The call of a reduction, by several threads if there is enough to do: each takes whole parts."""
    if not worth_sharing(x.size * (0.05 + x.itemsize / 40)):
        return call
    unit = _PARTS[form]
    cuts = [((0, 1), (0, unit))] if form == "vector" else [((0, 1), (0, 1)), ((1, 1), (1, unit))]
    if form == "columns":
        cuts.append(((2, LANES), (2, LANES)))
    return shared(call, (part, x), cuts)


def _outermost_first(x: np.ndarray) -> list[int]:
    """The axes as NumPy takes them, the longest strides first; one that is stretched says nothing of its place."""
    if 0 not in x.strides:
        return sorted(range(x.ndim), key=lambda d: -abs(x.strides[d]))
    order = list(range(x.ndim))[::-1]
    for i, axis in enumerate(order[1:], 1):
        place = i
        for j in reversed(range(i)):
            inner, own = abs(x.strides[order[j]]), abs(x.strides[axis])
            if inner and own:
                if inner <= own:
                    break
                place = j
        order.insert(place, order.pop(i))
    return order[::-1]


def reduce(entry: Reduction, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray | float:
    """Reduce a floating array along axes; the result has them dropped. A full reduction gives a float."""
    if len(axes) == x.ndim and (x.size < MANY or x.flags.forc):
        return _combined(entry, x.ravel("K"), "vector", float(x.size), False)
    # As the operand lies in memory, with neighbouring axes of one sort as one.
    order = _outermost_first(x)
    if len(axes) == x.ndim:
        y = x.transpose(order)
        if x.ndim == 1 or y.strides[-1] != y.itemsize:
            return _combined(entry, x.ravel("K"), "vector", float(x.size), False)
        rows = _combined(entry, y.reshape(-1, y.shape[-1]), "rows", -1.0, False)  # nothing so large is copied
        return _combined(entry, rows.reshape(-1), "vector", float(x.size), True)
    groups: list[tuple[bool, int]] = []
    for d in order:
        n = x.shape[d]
        if groups and groups[-1][0] is (d in axes):
            groups[-1] = (groups[-1][0], groups[-1][1] * n)
        elif n != 1:
            groups.append((d in axes, n))
    if not any(reduced for reduced, _ in groups):
        groups.append((True, 1))
    left = sum(reduced for reduced, _ in groups)
    kept = [d for d in order if d not in axes]
    shape = tuple(x.shape[d] for d in kept)
    count = float(math.prod(x.shape[a] for a in axes))
    y = x.transpose(order).reshape([n for _, n in groups])
    if y.size and y.strides[-1] != y.itemsize and y.shape[-1] != 1:
        y = np.ascontiguousarray(y)
    again = False
    while left:
        k = max(k for k, (reduced, _) in enumerate(groups) if reduced)
        beside = [math.prod(n for _, n in groups[k + 1 :])] * (k + 1 < len(groups))
        form = "columns" if beside else "rows"
        outer = math.prod(n for _, n in groups[:k])
        y = y.reshape(outer, groups[k][1], *beside)
        left -= 1
        y = _combined(entry, y, form, -1.0 if left else count, again)
        again = True
        del groups[k]
        y = y.reshape([n for _, n in groups])
    return y.reshape(shape).transpose([kept.index(d) for d in sorted(kept)])


def fused(
    kernel: Kernel, cache: dict[Any, Any], inputs: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[list[np.ndarray], list[float]]:
    """Run a kernel with totals over all elements: its results as new arrays, its totals as floats."""
    given = inputs if shape else [np.reshape(a, 1) if isinstance(a, np.ndarray) else a for a in inputs]
    call, args, outs = prepared(kernel, cache, given, shape or (1,), dtype)
    call(*args)
    assert outs is not None
    count = float(math.prod(shape))
    totals = []
    for total, part in zip(kernel.totals, args, strict=False):
        if part.size == 1:
            totals.append(part.item())
        else:
            row = _row_of_parts((), part.size, total.init, dtype)
            row[: part.size] = part.reshape(-1)
            totals.append(_combined(total.reduction, row, "vector", count, True))
    return [a.reshape(shape) for a in outs], totals
