"""Long chains of eager ops: time an op of forward, backward and free, and memory a node.

A chain alternates `x = sin(x)` and `x = x * a`, with `a` a leaf, on scalars and on 8 elements. Each column
should be the same at every length: recording, sweeping and freeing are linear. Python's collector visits
every live object now and then, so it adds to the forward of a long chain; a column shows it without. "free"
drops a whole graph that no backward has released. Bytes are counted by Python's tracemalloc, in a run of its
own; "resident" is the growth of a process of its own, the same for every library.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numpy as np

from perf import tables
from perf.tables import Row, Table

SHAPES = {"0-d": (), "8 elements": (8,)}


class Chain:
    """The chain of one library and shape."""

    def __init__(self, system: str, shape: str) -> None:
        self.system, self.shape = system, shape
        self.module = importlib.import_module(system)
        values = np.full(SHAPES[shape], 0.7)
        self.x, self.a = (self.module.tensor(v, requires_grad=True) for v in (values, values + 0.2))

    def forward(self, length: int) -> Any:
        """The end of a chain of that many ops."""
        sin, x, a = self.module.sin, self.x, self.a
        for _ in range(length // 2):
            x = sin(x)
            x = x * a
        return x

    def backward(self, end: Any) -> None:
        """Sweep it, and forget the gradients."""
        (end.sum() if SHAPES[self.shape] else end).backward()
        self.x.grad = self.a.grad = None


def measure(system: str, shape: str, length: int, repeats: int) -> Row:
    """The row of one chain: the least time of each phase over some repeats."""
    made = Chain(system, shape)
    made.backward(made.forward(10))
    phases: dict[str, list[float]] = {"forward": [], "uncollected": [], "backward": [], "free": []}
    for _ in range(repeats):
        gc.collect()
        took, end = tables.clock(lambda: made.forward(length))
        phases["forward"].append(took)
        box = [end]
        del end
        phases["free"].append(tables.clock(box.clear)[0])
        gc.disable()
        took, end = tables.clock(lambda: made.forward(length))
        gc.enable()
        phases["uncollected"].append(took)
        phases["backward"].append(tables.clock(lambda end=end: made.backward(end))[0])
        del end
    return {
        "system": system,
        "shape": shape,
        "length": length,
        **{f"{phase}_us": min(times) / length * 1e6 for phase, times in phases.items()},
    }


def memory(system: str, shape: str, length: int, given: argparse.Namespace) -> Row:
    """Bytes a node, by both ways of telling."""
    row: Row = {}
    if system == "mutagrad" and length <= 100_000:  # tracing each object is slow
        made = Chain(system, shape)
        row["bytes_per_node"] = tables.held(lambda: made.forward(length)) / length
    if length >= 100_000:
        grown = tables.child(__file__, json.dumps([system, shape, length]))
        if grown is not None:
            row["resident_per_node"] = grown / length
    return row


def child(system: str, shape: str, length: int) -> int | None:
    """The growth of this process by one chain."""
    made = Chain(system, shape)
    made.backward(made.forward(10))
    gc.collect()
    return tables.resident_peak(made.forward, lambda: length)


COLUMNS = {
    "shape": ("shape", ""),
    "system": ("system", ""),
    "length": ("ops", ",d"),
    "forward_us": ("forward", ".2f"),
    "uncollected_us": ("collector off", ".2f"),
    "backward_us": ("backward", ".2f"),
    "free_us": ("free", ".3f"),
    "forward_to_torch": ("forward / torch", ".2f"),
    "uncollected_to_torch": ("off / torch", ".2f"),
    "backward_to_torch": ("backward / torch", ".2f"),
    "bytes_per_node": ("bytes a node", ".0f"),
    "resident_per_node": ("resident", ".0f"),
}


def main() -> None:
    parser = tables.options(__doc__)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(*json.loads(given.child))))
        return
    lengths = (100, 1000) if given.quick else (10_000, 100_000, 1_000_000)
    systems = ["mutagrad", *(["torch"] if tables.peer("torch", given) else [])]
    rows: list[Row] = []
    for shape in SHAPES:
        for length in lengths:
            repeats = 1 if given.quick else max(1, min(5, 300_000 // length))
            found = [measure(system, shape, length, repeats) for system in systems]
            for row in found:
                row |= memory(row["system"], shape, length, given)
                if len(found) > 1 and row is found[0]:
                    for phase in ("forward", "uncollected", "backward"):
                        row[f"{phase}_to_torch"] = row[f"{phase}_us"] / found[1][f"{phase}_us"]
            rows += found
    rows.sort(key=lambda row: (row["shape"], row["system"]))
    tables.publish(__file__, [Table("Microseconds an op of a chain", COLUMNS, rows)], given)


if __name__ == "__main__":
    main()
