"""How long a new process takes from `import numba` done to its first gradient, and one kernel to load.

Every measurement is a process of its own. The first one finds an empty kernel cache and compiles ("cold"), the
others find what it left ("warm"). Numba's own start (its typing and lowering tables, which it fills when the
first function is compiled or loaded) is timed apart from the first gradient, which would otherwise hold it. The
first kernel of a process is left out of the second table: with it come imports that no other one needs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from perf import tables
from perf.tables import Row, Table

STEPS = ("import_numba", "import_mutagrad", "numba_start", "first_gradient")


def child() -> Row:
    """Milliseconds of each step in this process, and of its kernels."""
    began = [time.perf_counter()]
    import numba
    import numpy as np

    began.append(time.perf_counter())
    import mutagrad as mg

    began.append(time.perf_counter())
    numba.core.registry.cpu_target.target_context.refresh()
    began.append(time.perf_counter())
    x: Any = mg.tensor(np.arange(3.0), requires_grad=True)
    (x.sin() * x).sum().backward()
    began.append(time.perf_counter())
    assert x.grad is not None

    from mutagrad.compile import report

    kernels = [(kernel.name, 1e3 * kernel.seconds, kernel.cached) for kernel in report]
    steps = {name: 1e3 * (b - a) for name, a, b in zip(STEPS, began, began[1:], strict=False)}
    return steps | {"after_numba": 1e3 * (began[-1] - began[1]), "kernels": kernels}


def measure(repeats: int) -> tuple[Row, list[Row]]:
    """The cold process, and the warm ones."""
    # Installed packages have their bytecode on disk, so these processes may write it, and have done so before.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("PYTHONPYCACHEPREFIX", os.path.join(folder, "bytecode"))
        found = []
        for name in ("first", "kernels", *["kernels"] * repeats):
            os.environ["MUTAGRAD_CACHE_DIR"] = os.path.join(folder, name)
            found.append(tables.child(__file__))
    _, cold, *warm = found
    assert not any(cached for _, _, cached in cold["kernels"])
    assert all(cached for run in warm for _, _, cached in run["kernels"])
    return cold, warm


def first_gradient(cold: Row, warm: list[Row]) -> Table:
    """One row a step; the last is all that follows `import numba`."""
    rows: list[Row] = []
    for step in (*STEPS, "after_numba"):
        each = [run[step] for run in warm]
        row: Row = {"step": step.replace("_", " "), "cold_ms": cold[step]}
        rows.append(row | {"warm_least_ms": min(each), "warm_median_ms": statistics.median(each)})
    return Table("Milliseconds until the first gradient, (x.sin() * x).sum().backward()", STEP_COLUMNS, rows)


def kernels(cold: Row, warm: list[Row]) -> Table:
    """One row a kernel but the first."""
    rows: list[Row] = []
    for k, (name, milliseconds, _) in enumerate(cold["kernels"]):
        if k:
            each = [run["kernels"][k][1] for run in warm]
            row: Row = {"kernel": name, "cold_ms": milliseconds}
            rows.append(row | {"warm_least_ms": min(each), "warm_median_ms": statistics.median(each)})
    return Table("Milliseconds a kernel: compiled, and loaded from disk", {"kernel": ("kernel", ""), **TIMES}, rows)


TIMES = {"cold_ms": ("cold", ".1f"), "warm_least_ms": ("warm", ".1f"), "warm_median_ms": ("(median)", ".1f")}
STEP_COLUMNS = {"step": ("step", ""), **TIMES}


def main() -> None:
    parser: argparse.ArgumentParser = tables.options(__doc__)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child()))
        return
    cold, warm = measure(1 if given.quick else 15)
    import mutagrad  # noqa: F401  so that versions are told

    tables.publish(__file__, [first_gradient(cold, warm), kernels(cold, warm)], given)


if __name__ == "__main__":
    main()
