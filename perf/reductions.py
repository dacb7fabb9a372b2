"""Reductions along every kind of axis against NumPy, torch and memory, and the error of sums.

The arrays have about 10⁷, 10⁵ and 8 elements: rows, columns, a middle axis, all axes, and, if large, two very oblong
shapes. The
floor is the time of reading as many bytes in the order of memory, by a loop that adds them up as the compiler likes.
Tensors are ready and nothing is recorded; "gradient" is the same op of a leaf with its backward pass, against
torch's. The error of a sum is taken against `math.fsum` of each line and given in units of the rounding unit times
the sum of absolute values, the measure of a sum's conditioning: the largest over the lines.
"""

from __future__ import annotations

import argparse
import functools
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numpy as np

import mutagrad as mg
from perf import tables
from perf.tables import Row, Table, rounded

OPS = ["sum", "mean", "max", "prod"]
DTYPES = ["float64", "float32"]
TOLERANCE = {"float64": 1e-9, "float32": 1e-3}
SIZES = [8, 100_000, 10_000_000]


def shapes(size: int) -> list[tuple[tuple[int, ...], tuple[int | None, ...]]]:
    """Shapes of about so many elements, and the axes to reduce; None is all of them."""
    side, cube = round(size**0.5), max(2, round(size ** (1 / 3)))
    found: list[Any] = [((size,), (None,)), ((cube, cube, cube), (0, 1, 2))]
    if size >= 100:
        found += [((side, side), (None, 0, 1)), ((10, size // 10), (0, 1)), ((size // 10, 10), (0, 1))]
    return found


def torch_op(torch: Any, op: str, axis: int | None) -> Callable[[Any], Any]:
    """torch's spelling."""
    function = getattr(torch, "amax" if op == "max" else op)
    return function if axis is None else functools.partial(function, dim=axis)


def measure(size: int, dtype: str, given: argparse.Namespace) -> list[Row]:
    """All ops along all axes at one size."""
    torch = tables.peer("torch", given)
    if torch:
        torch.set_num_threads(given.threads)
    tables.use_threads(given.threads)
    repeats = given.repeats or (2 if given.quick else 3 if size >= 10**6 else 15)
    seconds = 1e-5 if given.quick else 0.002
    rows: list[Row] = []
    for shape, axes in shapes(size):
        # Near one, so that a product of many stays in range.
        values = (1 + np.random.default_rng(1).uniform(-1e-3, 1e-3, shape)).astype(dtype)
        ours, leaf = mg.asarray(values), mg.asarray(values, requires_grad=True)
        theirs = torch.from_numpy(values) if torch else None
        for axis in axes:
            runs: dict[Any, Callable[[], Any]] = {}
            for op in given.ops:
                by_numpy, by_us = getattr(np, op), getattr(mg, op)
                runs["numpy", op] = functools.partial(by_numpy, values, axis=axis)
                runs["mutagrad", op] = functools.partial(by_us, ours, axis=axis)
                runs["mutagrad gradient", op] = gradient(functools.partial(by_us, axis=axis), leaf)
                if torch:
                    by_torch = torch_op(torch, op, axis)
                    runs["torch", op] = functools.partial(by_torch, theirs)
                    runs["torch gradient", op] = gradient(by_torch, theirs.detach().requires_grad_())
                np.testing.assert_allclose(runs["mutagrad", op]().numpy(), runs["numpy", op](), rtol=TOLERANCE[dtype])
            runs["floor"] = tables.moving(values.nbytes, dtype, given.threads, reading=True)
            times = tables.interleave(runs, repeats, seconds)
            for op in given.ops:
                own, floor = times["mutagrad", op], times["floor"]
                row: Row = {
                    "op": op,
                    "shape": "x".join(map(rounded, shape)),
                    "axis": "all" if axis is None else str(axis),
                }
                row |= {"elements": values.size, "dtype": dtype, "mutagrad_us": own.least * 1e6}
                row |= {"numpy_us": times["numpy", op].least * 1e6, "floor_us": floor.least * 1e6}
                row |= {"to_numpy": own.to(times["numpy", op]), "to_floor": own.to(floor)}
                both = times["mutagrad gradient", op]
                row |= {"gradient_us": both.least * 1e6, "gradient_to_floor": both.to(floor)}
                if torch:
                    row |= {"torch_us": times["torch", op].least * 1e6, "to_torch": own.to(times["torch", op])}
                    row["gradient_to_torch"] = both.to(times["torch gradient", op])
                rows.append(row)
    return rows


def gradient(function: Callable[[Any], Any], leaf: Any) -> Callable[[], Any]:
    """The op and its backward pass; a result that is not a number gets a cotangent of ones, by a sum."""

    def run() -> Any:
        out = function(leaf)
        (out if out.shape == () else out.sum()).backward()
        found, leaf.grad = leaf.grad, None
        return found

    return run


# Errors of sums


def inputs(random: Any, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Numbers that are easy and not so easy to add up."""
    wide = np.exp(random.uniform(-20, 20, shape))
    return {
        "uniform": random.uniform(0, 1, shape),
        "normal": random.normal(0, 1, shape),
        "wide": wide,
        "growing": np.sort(wide, axis=None).reshape(shape),
        "a tenth": np.full(shape, 0.1),
    }


def lines(x: np.ndarray, axis: int | None) -> np.ndarray:
    """The numbers of each sum, as rows."""
    return x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])


def errors(size: int, dtype: str) -> list[Row]:
    """Errors of sums of about so many elements, on one axis, all axes, the first and the last."""
    rows: list[Row] = []
    wide = max(1, min(10, size // 4))
    unit = float(np.finfo(dtype).eps) / 2
    for shape, axis in [((size,), None), ((size // wide, wide), 0), ((wide, size // wide), 1)]:
        for name, x in inputs(np.random.default_rng(1), shape).items():
            x = x.astype(dtype)
            row: Row = {
                "numbers": name,
                "shape": "x".join(map(rounded, shape)),
                "axis": "all" if axis is None else str(axis),
            }
            row |= {"elements": x.size, "dtype": dtype}
            exact = [(math.fsum(line), math.fsum(np.abs(line))) for line in lines(x, axis).astype(np.float64)]
            sums = {"mutagrad": mg.sum(x, axis=axis).numpy(), "numpy": np.sum(x, axis=axis)}
            for system, got in sums.items():
                pairs = zip(np.ravel(got).tolist(), exact, strict=True)
                row[f"{system}_error"] = max(abs(a - b) / (unit * size) for a, (b, size) in pairs)
            rows.append(row)
    return rows


WHERE = {
    "shape": ("shape", ""),
    "axis": ("axis", ""),
    "dtype": ("dtype", ""),
}
COLUMNS = {
    "op": ("op", ""),
    **WHERE,
    "mutagrad_us": ("mutagrad", ",.1f"),
    "numpy_us": ("numpy", ",.1f"),
    "torch_us": ("torch", ",.1f"),
    "floor_us": ("floor", ",.1f"),
    "to_numpy": ("/ numpy", ".2f"),
    "to_torch": ("/ torch", ".2f"),
    "to_floor": ("/ floor", ".2f"),
    "gradient_us": ("gradient", ",.1f"),
    "gradient_to_torch": ("/ torch", ".2f"),
    "gradient_to_floor": ("/ floor", ".2f"),
}
ERRORS = {
    "numbers": ("numbers", ""),
    **WHERE,
    "mutagrad_error": ("mutagrad", ".3f"),
    "numpy_error": ("numpy", ".3f"),
}


def worst(rows: Sequence[Row]) -> list[Row]:
    """Those that NumPy is farthest ahead of, and behind."""
    ordered = sorted(rows, key=lambda row: -row["to_numpy"])
    return [*ordered[:5], *ordered[5:][-5:]]


def main() -> None:
    parser = tables.options(__doc__)
    parser.add_argument("--ops", type=tables.several(str, OPS), default=OPS)
    parser.add_argument("--sizes", type=tables.several(tables.whole), help="about how many elements, such as 8,1e5,1e7")
    parser.add_argument("--dtypes", type=tables.several(str, DTYPES), default=DTYPES)
    parser.add_argument("--repeats", type=int, help="turns of the timing")
    parser.add_argument("--threads", type=int, default=1, help="for every library that can be told")
    given = parser.parse_args()
    given.sizes = given.sizes or ([8, 120] if given.quick else SIZES)
    rows = [row for size in given.sizes for dtype in given.dtypes for row in measure(size, dtype, given)]
    large = [1000] if given.quick else [size for size in given.sizes if size >= 1000]
    wrong = [row for size in large for dtype in given.dtypes for row in errors(size, dtype)]
    found = [
        Table("Reductions: microseconds, the least", COLUMNS, rows),
        Table("The five that are slowest against NumPy's, and the five that are fastest", COLUMNS, worst(rows)),
        Table("Errors of sums, in rounding units of the sum of absolute values", ERRORS, wrong),
    ]
    tables.publish(__file__, found, given)


if __name__ == "__main__":
    main()
