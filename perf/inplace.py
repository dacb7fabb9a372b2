"""Time and memory of writing in place, against making new arrays.

Two programs of equal work, each a chain of ops on one tensor. The linear one (`x += 0.5; x *= 0.75`) has a
derivative that reads no value, so in place it needs no memory at all, and out of place one array more than
it starts with. The nonlinear one (`x.sin_()`) has a derivative that reads every intermediate value: they
are kept either way, once each, and writing in place saves nothing. In no case does it change how time or
memory grow with the length of the chain or the size of the array.

Memory is the highest point above that at the start, in arrays. Python's tracemalloc tells it of NumPy and
mutagrad; of other libraries the growth of a process of its own, where an array is large against a page.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numpy as np

import mutagrad as mg
from perf import tables
from perf.tables import Row, Table, rounded

LENGTH = 10
# The growth of a process tells little of smaller arrays: the allocator keeps some of what was freed.
LARGE = 10_000_000


def chain(program: str, inplace: bool) -> Callable[[list[Any]], Any]:
    """A chain of `LENGTH` ops on the tensor in a box, which is taken out, so that nobody else holds it."""

    def linear(box: list[Any]) -> Any:
        x = box.pop()
        for _ in range(LENGTH // 2):
            x = x + 0.5
            x = x * 0.75
        return x

    def linear_inplace(box: list[Any]) -> Any:
        x = box.pop()
        for _ in range(LENGTH // 2):
            x += 0.5
            x *= 0.75
        return x

    def nonlinear(box: list[Any]) -> Any:
        x = box.pop()
        for _ in range(LENGTH):
            x = x.sin()
        return x

    def nonlinear_inplace(box: list[Any]) -> Any:
        x = box.pop()
        for _ in range(LENGTH):
            x.sin_()
        return x

    forms = {"linear": (linear, linear_inplace), "nonlinear": (nonlinear, nonlinear_inplace)}
    return forms[program][inplace]


class Case(NamedTuple):
    """One thing to measure; its fields are also a row's."""

    system: str
    program: str
    inplace: bool
    recorded: bool

    def operand(self, size: int) -> list[Any]:
        """A boxed tensor to be written: tracked, but no leaf, where recorded."""
        values = np.linspace(0.1, 0.9, size)
        if self.system == "numpy":
            return [values]
        x = importlib.import_module(self.system).tensor(values)
        return [x.requires_grad_() * 1.0 if self.recorded else x]

    def run(self, box: list[Any]) -> Any:
        """The chain on a boxed operand."""
        function = chain(self.program, self.inplace)
        if self.recorded or self.system == "numpy":
            return function(box)
        with importlib.import_module(self.system).no_grad():
            return function(box)


def cases(given: argparse.Namespace) -> list[Case]:
    """All that there is to compare."""
    systems = ["numpy", "mutagrad", *(["torch"] if tables.peer("torch", given) else [])]
    return [
        Case(system, program, inplace, recorded)
        for program in ("linear", "nonlinear")
        for recorded in (True, False)
        for system in systems
        for inplace in (False, True)
        # NumPy records nothing, and has no sin in place that is not spelt otherwise.
        if system != "numpy" or (program == "linear" and not recorded)
    ]


def measure(size: int, given: argparse.Namespace) -> list[Row]:
    """Time and memory of every case at one size; a row has both forms of a program."""
    found = cases(given)
    times = tables.interleave(
        {case: case.run for case in found},
        2 if given.quick else 25 if size <= 100_000 else 5,
        1e-5 if given.quick else 0.002,
        {case: (lambda case=case: case.operand(size)) for case in found},
    )
    rows: list[Row] = []
    for outside in (case for case in found if not case.inplace):
        row: Row = {"elements": size, **outside._asdict()}
        del row["inplace"]
        inside = outside._replace(inplace=True)
        for form, case in {"out": outside, "in": inside}.items():
            row[f"{form}_least_us"] = times[case].least / LENGTH * 1e6
            row[f"{form}_median_us"] = times[case].median / LENGTH * 1e6
            memory = None
            if case.system != "torch":
                memory = tables.peak(case.run, lambda case=case: case.operand(size))
            elif size >= LARGE:
                memory = tables.child(__file__, json.dumps([*case, size]))
            if memory is not None:
                row |= {f"{form}_peak_bytes": memory, f"{form}_peak_arrays": memory / (8 * size)}
        row["ratio"] = times[inside].to(times[outside])
        torch = outside._replace(system="torch")
        if outside.system == "mutagrad" and torch in times:
            row["out_to_torch"] = times[outside].to(times[torch])
            row["in_to_torch"] = times[inside].to(times[torch._replace(inplace=True)])
        rows.append(row)
    return rows


def child(system: str, program: str, inplace: bool, recorded: bool, size: int) -> int | None:
    """The growth of this process during a chain."""
    case = Case(system, program, inplace, recorded)
    case.run(case.operand(8))
    return tables.resident_peak(case.run, lambda: case.operand(size))


def _add(x: Any, y: Any) -> None:
    x += y


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "x += 1.0": lambda x, y: _add(x, 1.0),
    "x += y": _add,
    "x[1:] = 0.0": lambda x, y: x.__setitem__(slice(1, None), 0.0),
    "x.exp_()": lambda x, y: x.exp_(),
    "x.sin_()": lambda x, y: x.sin_(),
    "x * x": lambda x, y: x * x,
}


def single(size: int) -> list[Row]:
    """What one write of a large tensor allocates, an op out of place beside it."""
    rows: list[Row] = []
    for statement, write in WRITES.items():
        for recorded in (True, False):

            def pair(n: int = size, recorded: bool = recorded) -> tuple[Any, Any]:
                return Case("mutagrad", "", True, recorded).operand(n).pop(), mg.ones(n)

            with mg.enable_grad() if recorded else mg.no_grad():
                # A small one first, so that nothing is compiled or cached in the one that is measured.
                write(*pair(8))
                memory = tables.peak(lambda both, write=write: write(*both), pair)
            row: Row = {"statement": statement, "recorded": recorded, "tensor_bytes": 8 * size}
            rows.append(row | {"peak_bytes": memory, "peak_arrays": memory / (8 * size)})
    return rows


COLUMNS = {
    "elements": ("elements", ",d"),
    "program": ("program", ""),
    "recorded": ("recorded", ""),
    "system": ("system", ""),
    "out_least_us": ("new array", ".2f"),
    "out_median_us": ("(median)", ".2f"),
    "in_least_us": ("in place", ".2f"),
    "in_median_us": ("(median)", ".2f"),
    "ratio": ("in / new", ".2f"),
    "out_to_torch": ("new / torch", ".2f"),
    "in_to_torch": ("in / torch", ".2f"),
    "out_peak_arrays": ("peak new", ".2f"),
    "in_peak_arrays": ("peak in", ".2f"),
}
SINGLE = {
    "statement": ("statement", ""),
    "recorded": ("recorded", ""),
    "peak_bytes": ("peak, bytes", ",d"),
    "peak_arrays": ("arrays", ".3f"),
}


def main() -> None:
    parser = tables.options(__doc__)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(*json.loads(given.child))))
        return
    sizes = (100, 1000) if given.quick else (1000, 10_000, 100_000, 1_000_000, 10_000_000)
    large = 100_000 if given.quick else 10_000_000
    rows = [row for size in sizes for row in measure(size, given)]
    found = [
        Table(f"One write of {rounded(large)} float64, {large * 8 / 1e6:g} MB", SINGLE, single(large)),
        Table(f"Chains of {LENGTH} ops: microseconds an op, peak memory in arrays", COLUMNS, rows),
    ]
    tables.publish(__file__, found, given)


if __name__ == "__main__":
    main()
