"""What one op costs, in microseconds: recorded and not, on 8 elements and on none, against NumPy and others.

Arrays so small that the arithmetic takes no time show what the library itself costs. "leaves" are operands
that require grad, "results" are what recorded ops made of them. Each call drops its result, so the time
of freeing it is in. Ratios are taken repeat by repeat, and their median is shown. The last table is a
whole small program, forward and backward.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numpy as np

import mutagrad as mg
from perf import tables
from perf.tables import Row, Table

OPS = ("sin", "multiply", "add")
SHAPES = {"8 elements": (8,), "0-d": ()}


def calls(module: Any, x: Any, y: Any) -> dict[str, Callable[[], Any]]:
    """The measured ops on a pair of operands, spelt as users do."""
    sin = module.sin
    return {"sin": lambda: sin(x), "multiply": lambda: x * y, "add": lambda: x + y}


def values(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Two operands for NumPy."""
    x, y = np.linspace(0.1, 0.9, 8), np.linspace(0.3, 0.7, 8)
    return (x, y) if shape else (x[1], y[1])


def systems(shape: tuple[int, ...], given: argparse.Namespace) -> dict[tuple[str, str], Any]:
    """For every library and kind of operands, the measured ops."""
    x, y = values(shape)
    found = {("numpy", "plain"): calls(np, x, y)}
    pair = [mg.tensor(v, requires_grad=True) for v in (x, y)]
    found["mutagrad", "plain"] = calls(mg, mg.tensor(x), mg.tensor(y))
    found["mutagrad", "leaves"] = calls(mg, *pair)
    found["mutagrad", "results"] = calls(mg, *(p * 1.0 for p in pair))
    if torch := tables.peer("torch", given):
        pair = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (x, y)]
        found["torch", "plain"] = calls(torch, *(p.detach() for p in pair))
        found["torch", "leaves"] = calls(torch, *pair)
        found["torch", "results"] = calls(torch, *(p * 1.0 for p in pair))
    if mygrad := tables.peer("mygrad", given):
        found["mygrad", "leaves"] = calls(mygrad, mygrad.tensor(x), mygrad.tensor(y))
    return found


def ops(given: argparse.Namespace, repeats: int, seconds: float) -> list[Table]:
    """One table a shape: each op, their mean, and the mean against NumPy's and torch's."""
    made = []
    for name, shape in SHAPES.items():
        found = systems(shape, given)
        functions = {(*key, op): f for key, called in found.items() for op, f in called.items()}
        times = tables.interleave(functions, repeats, seconds)
        means = {key: tables.mean([times[(*key, op)] for op in OPS]) for key in found}
        rows: list[Row] = []
        for system, operands in found:
            mean = means[system, operands]
            row: Row = {"shape": name, "system": system, "operands": operands}
            for op in OPS:
                row[f"{op}_least_us"] = times[system, operands, op].least * 1e6
                row[f"{op}_median_us"] = times[system, operands, op].median * 1e6
            row |= {"mean_least_us": mean.least * 1e6, "mean_median_us": mean.median * 1e6}
            row["to_numpy"] = mean.to(means["numpy", "plain"])
            if ("torch", operands) in means:
                row["to_torch"] = mean.to(means["torch", operands])
            rows.append(row)
        made.append(Table(f"Microseconds an op, float64, {name}: least (median)", COLUMNS, rows))
    return made


COLUMNS = {
    "system": ("system", ""),
    "operands": ("operands", ""),
    **{f"{op}_least_us": (op, ".2f") for op in OPS},
    "mean_least_us": ("mean", ".2f"),
    "mean_median_us": ("(median)", ".2f"),
    "to_numpy": ("/ numpy", ".2f"),
    "to_torch": ("/ torch", ".2f"),
}


def program(module: Any, pair: list[Any], clear: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Forward, and forward with backward, of a small expression of two leaves."""
    x, y = pair
    sin, whole = module.sin, x.shape == ()

    def forward() -> Any:
        z = x * y + sin(x)
        return z if whole else z.sum()

    def both() -> None:
        forward().backward()
        clear(x)
        clear(y)

    return forward, both


def drop(x: Any) -> None:
    """Forget a leaf's gradient."""
    x.grad = None


def programs(given: argparse.Namespace, repeats: int, seconds: float) -> Table:
    """x * y + sin(x), summed, with both gradients."""
    rows: list[Row] = []
    for name, shape in SHAPES.items():
        x, y = values(shape)
        functions: dict[tuple[str, str], Callable[[], Any]] = {}

        def by_hand(x: Any = x, y: Any = y) -> Any:
            return (x * y + np.sin(x)).sum(), y + np.cos(x), x * 1.0

        def add(system: str, pair: tuple[Callable[[], Any], Callable[[], Any]], to: Any = functions) -> None:
            to[system, "forward"], to[system, "both"] = pair

        add("numpy by hand", (lambda x=x, y=y: (x * y + np.sin(x)).sum(), by_hand))
        add("mutagrad", program(mg, [mg.tensor(v, requires_grad=True) for v in (x, y)], drop))
        if torch := tables.peer("torch", given):
            pair = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (x, y)]
            add("torch", program(torch, pair, drop))
        if mygrad := tables.peer("mygrad", given):
            add("mygrad", program(mygrad, [mygrad.tensor(v) for v in (x, y)], lambda x: x.null_grad()))
        if autograd := tables.peer("autograd", given):
            sin = autograd.numpy.sin

            def expression(x: Any, y: Any, sin: Any = sin) -> Any:
                return (x * y + sin(x)).sum()

            both = autograd.value_and_grad(expression, (0, 1))
            add("autograd", (lambda f=expression, x=x, y=y: f(x, y), lambda f=both, x=x, y=y: f(x, y)))
        times = tables.interleave(functions, repeats, seconds)
        for system in dict.fromkeys(s for s, _ in functions):
            row: Row = {"shape": name, "system": system}
            for what in ("forward", "both"):
                row[f"{what}_least_us"] = times[system, what].least * 1e6
                row[f"{what}_median_us"] = times[system, what].median * 1e6
                if ("torch", what) in times:
                    row[f"{what}_to_torch"] = times[system, what].to(times["torch", what])
            rows.append(row)
    title = "Microseconds for x * y + sin(x), summed, and its two gradients"
    return Table(title, PROGRAM_COLUMNS, rows)


PROGRAM_COLUMNS = {
    "shape": ("shape", ""),
    "system": ("system", ""),
    "forward_least_us": ("forward", ".2f"),
    "forward_median_us": ("(median)", ".2f"),
    "forward_to_torch": ("/ torch", ".2f"),
    "both_least_us": ("with backward", ".2f"),
    "both_median_us": ("(median)", ".2f"),
    "both_to_torch": ("/ torch", ".2f"),
}


def main() -> None:
    given = tables.options(__doc__).parse_args()
    repeats, seconds = (2, 1e-5) if given.quick else (200, 0.0005)
    tables.publish(__file__, [*ops(given, repeats, seconds), programs(given, repeats, seconds)], given)


if __name__ == "__main__":
    main()
