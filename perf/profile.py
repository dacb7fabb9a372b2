"""What the kernels of a program cost: `python perf/profile.py script.py args...`.

Runs the script as Python would, and prints for each kernel its calls, time, memory read and written, and
compile time, sorted by time. Time is on the clock of the calling thread, with a share of a microsecond a
call for taking it; bytes are those of the arrays among the arguments, an axis that repeats one element
counted once. The first kernel also pays for Numba's own start. What remains of the script's time is Python:
recording, sweeping, and the script itself.

Without a script, a small program of its own is run.
"""

from __future__ import annotations

import ast
import contextlib
import runpy
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numpy as np

import mutagrad as mg
import mutagrad.compile
from perf import tables
from perf.tables import Row, Table


class Profile:
    """Counts what every kernel does that is loaded while it watches."""

    def __init__(self) -> None:
        self.rows: dict[Any, Row] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch inside a `with` block; kernels loaded before it are not seen."""
        module = mutagrad.compile
        load = module.load

        def watched(function: str, source: str, args: Sequence[Any]) -> Callable[..., Any]:
            return self._wrap(load, function, source, args)

        module.load = watched
        try:
            yield
        finally:
            module.load = load

    def _wrap(
        self, load: Callable[..., Callable[..., Any]], function: str, source: str, args: Sequence[Any]
    ) -> Callable[..., Any]:
        reported = len(mutagrad.compile.report)
        took, entry = tables.clock(lambda: load(function, source, args))
        fresh = mutagrad.compile.report[reported:]
        with self._lock:
            row = self.rows.setdefault(
                (source, tuple(args)),
                {
                    "kernel": function,
                    "computes": (ast.get_docstring(ast.parse(source)) or "").split("\n")[0],
                    "arguments": " ".join(_shown(a) for a in args),
                    "dtype": next((str(a.dtype) for a in args if hasattr(a, "dtype")), str(args[-1])),
                    "calls": 0,
                    "seconds": 0.0,
                    "bytes": 0,
                    "compile_seconds": 0.0,
                    "from_disk": all(c.cached for c in fresh),
                },
            )
            row["compile_seconds"] += took
        lock, clock = self._lock, time.perf_counter

        def timed(*values: Any) -> Any:
            start = clock()
            result = entry(*values)
            took = clock() - start
            with lock:
                row["calls"] += 1
                row["seconds"] += took
                row["bytes"] += sum(_bytes(v) for v in values if isinstance(v, np.ndarray))
            return result

        return timed

    def table(self, took: float, most: int) -> Table:
        """The kernels that ran, the dearest first, `most` of them; `took` is the time of the whole script."""
        rows = [row for row in self.rows.values() if row["calls"]]
        for row in rows:
            row["us_a_call"] = row["seconds"] / row["calls"] * 1e6
            row["gigabytes_a_second"] = row["bytes"] / row["seconds"] / 1e9
            row["share"] = row["seconds"] / took
        rows.sort(key=lambda row: -row["seconds"])
        spent, built = (sum(r[key] for r in self.rows.values()) for key in ("seconds", "compile_seconds"))
        title = f"{took:.3f} s in all: {spent:.3f} in kernels, {built:.3f} compiling or loading them, "
        title += f"{took - spent - built:.3f} elsewhere"
        if len(rows) > most:
            title += f"; the first {most} of {len(rows)} kernels"
        return Table(title, COLUMNS, rows[:most])


def _shown(argument: Any) -> str:
    """A kernel's argument: an array of some rank, or a number."""
    rank = getattr(argument, "ndim", None)
    return "number" if rank is None else f"{rank}-D{'' if argument.layout == 'C' else ' strided'}"


def _bytes(array: np.ndarray) -> int:
    size = array.itemsize
    for n, stride in zip(array.shape, array.strides, strict=True):
        size *= n if stride or not n else 1
    return size


COLUMNS = {
    "kernel": ("kernel", ""),
    "arguments": ("arguments", ""),
    "dtype": ("dtype", ""),
    "calls": ("calls", ",d"),
    "seconds": ("seconds", ".6f"),
    "share": ("share", ".1%"),
    "us_a_call": ("us a call", ".2f"),
    "bytes": ("bytes", ",d"),
    "gigabytes_a_second": ("GB/s", ".2f"),
    "compile_seconds": ("compile s", ".3f"),
    "from_disk": ("from disk", ""),
}


def example(size: int) -> None:
    """A small program: some ops, in place and not, and their gradients."""
    x = mg.tensor(np.linspace(0.1, 0.9, size), requires_grad=True)
    y = mg.sin(x) * x
    y += 1.0
    y.sum().backward()


def run(script: str, args: Sequence[str]) -> None:
    """Run a script as `python script args` does."""
    folder = Path(script).resolve().parent
    sys.argv = [script, *args]
    if folder != tables.HERE:
        sys.path.insert(0, str(folder))
    runpy.run_path(script, run_name="__main__")


def main() -> None:
    parser = tables.options(__doc__)
    parser.add_argument("--most", type=int, default=25, metavar="N", help="show the N dearest kernels (25)")
    parser.add_argument("script", nargs="?", help="the script to run")
    parser.add_argument("args", nargs="...", help="its arguments")
    given = parser.parse_args()
    profile = Profile()
    start = time.perf_counter()
    # The script's own printing must not get into the JSON.
    with contextlib.redirect_stdout(sys.stderr) if given.json == "-" else contextlib.nullcontext():
        try:
            with profile.watching():
                if given.script:
                    run(given.script, given.args)
                else:
                    example(8 if given.quick else 1_000_000)
        finally:
            # Also when the script ends by an error or by sys.exit.
            took = time.perf_counter() - start
            with contextlib.redirect_stdout(sys.__stdout__):
                tables.publish(__file__, [profile.table(took, given.most)], given)


if __name__ == "__main__":
    main()
