"""What threads gain: mutagrad with one thread and with several, by size, and called by several Python threads.

The first table has the time of ops for each count of threads (`mg.set_num_threads`, or one where this version has
none), the speed-up, and for each op the size from which on several threads are faster by a tenth at least. Small
sizes show what the choice costs. In the second, Python threads call the same op at once, each on its own arrays: the
calls a second of all of them against those of one thread, where what all must equal is checked bit by bit. The
floor is a loop that moves as much memory and does nothing else, on as many threads; called at once, it shows what
the machine has to give just then.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numpy as np

import mutagrad as mg
from perf import tables
from perf.tables import Row, Table

SIZES = [8, 1000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 10_000_000]


def add_in_place(x: Any, y: Any) -> None:
    x += y


def sin_in_place(x: Any, y: Any) -> None:
    # Of numbers in [-1, 1], so that any number of calls finds ordinary ones.
    x.sin_()


def whole(x: Any, y: Any) -> Any:
    """An expression and its gradients, as far as they are one kernel."""
    value = mg.sum(mg.sin(x) * y + x * x)
    value.backward()
    found = value, x.grad, y.grad
    x.grad = y.grad = None
    return found


# What is called; how many arrays of the operands' size it moves; and whether its operands require grad.
OPS: dict[str, tuple[Callable[[Any, Any], Any], int, bool]] = {
    "x + y": (lambda x, y: x + y, 3, False),
    "sin(x)": (lambda x, y: mg.sin(x), 2, False),
    "x += y": (add_in_place, 3, False),
    "x.sin_()": (sin_in_place, 2, False),
    "sum(x)": (lambda x, y: mg.sum(x), 1, False),
    "sum of rows": (lambda x, y: mg.sum(x, axis=1), 1, False),
    "value and gradients": (whole, 4, True),
}


def operands(name: str, size: int, seed: int = 1) -> tuple[Any, Any]:
    """Two tensors for an op."""
    random = np.random.default_rng(seed)
    shape = (size // 8, 8) if name == "sum of rows" else (size,)
    # Adding zeros in place leaves numbers as they are, call after call.
    x, y = random.uniform(-1, 1, shape), np.zeros(shape) if name == "x += y" else random.uniform(-1, 1, shape)
    return tuple(mg.tensor(v, requires_grad=OPS[name][2]) for v in (x, y))


def bits(result: Any) -> list[bytes]:
    """What a result is made of."""
    parts = result if isinstance(result, tuple) else (result,)
    return [part.detach().numpy().tobytes() for part in parts]


def by_size(given: argparse.Namespace) -> list[Row]:
    """Every op at every size, the counts of threads in turns."""
    rows: list[Row] = []
    for name, (function, arrays, _) in OPS.items():
        for size in given.sizes:
            runs: dict[Any, Callable[[], Any]] = {}
            before: dict[Any, Callable[[], None]] = {}
            x, y = operands(name, size)
            for count in given.threads:
                runs[count] = lambda function=function, x=x, y=y: function(x, y)
                before[count] = lambda count=count: tables.use_threads(count)
                runs["floor", count] = tables.moving(8 * arrays * size, np.float64, count)
            repeats = given.repeats or (2 if given.quick else 3 if size >= 10**6 else 9)
            times = tables.interleave(runs, repeats, 1e-5 if given.quick else 0.003, before=before)
            one = times[given.threads[0]]
            row: Row = {"op": name, "elements": size}
            for count in given.threads:
                row[f"on_{count}_us"] = times[count].least * 1e6
                row[f"on_{count}_to_floor"] = times[count].to(times["floor", count])
                if count != given.threads[0]:
                    row[f"gain_{count}"] = one.to(times[count])
                    row[f"floor_gain_{count}"] = times["floor", given.threads[0]].to(times["floor", count])
            rows.append(row)
    return rows


def pays(rows: Sequence[Row], given: argparse.Namespace) -> list[Row]:
    """For every op and count: from which size on it is faster by a tenth, and what small calls cost more."""
    found: list[Row] = []
    for name in OPS:
        for count in given.threads[1:]:
            mine = [row for row in rows if row["op"] == name]
            row: Row = {"op": name, "threads": count}
            gains = [(r["elements"], r[f"gain_{count}"]) for r in mine]
            late = [size for size, gain in gains if gain < 1.1]
            from_ = [size for size, _ in gains if not late or size > max(late)]
            if from_:
                row["pays_from"] = min(from_)
            row["best_gain"] = max(gain for _, gain in gains)
            small = min(mine, key=lambda r: r["elements"])
            row["small"] = small["elements"]
            row["small_ratio"] = 1 / small[f"gain_{count}"]
            found.append(row)
    return found


def at_once(given: argparse.Namespace) -> list[Row]:
    """Several Python threads call at once."""
    rows: list[Row] = []
    seconds = 0.02 if given.quick else 0.3
    for name in ("floor", "sin(x)", "x.sin_()", "sum(x)", "value and gradients"):
        for size in [8] if given.quick else [8, 10_000, 1_000_000]:
            for count in given.threads:
                tables.use_threads(count)
                alone = rate(name, size, 1, seconds)
                row: Row = {"op": name, "elements": size, "threads": count, "calls_a_second": alone}
                for callers in given.callers:
                    # One caller again beside each, so that both met the same noise.
                    ratios = [rate(name, size, callers, seconds) / rate(name, size, 1, seconds) for _ in range(3)]
                    row[f"callers_{callers}"] = sorted(ratios)[1]
                rows.append(row)
    tables.use_threads(given.threads[0])
    return rows


def rate(name: str, size: int, callers: int, seconds: float) -> float:
    """Calls a second of all callers together; raises if one of them gets other bits than a call by itself."""
    fixed = name != "floor" and not name.endswith("_()")
    function = OPS[name][0] if name != "floor" else None
    want = bits(function(*operands(name, size))) if fixed else []
    start, wrong = threading.Barrier(callers), []
    done: list[float] = []

    def call() -> None:
        if function is None:
            run = tables.moving(8 * size, np.float64, reading=True)
        else:
            run = functools.partial(function, *operands(name, size))
        try:
            run()
            start.wait()
            began, calls = time.perf_counter(), 0
            while (took := time.perf_counter() - began) < seconds or not calls:
                result = run()
                calls += 1
            if fixed and bits(result) != want:
                wrong.append("a call among others gave other bits than one by itself")
            done.append(calls / took)
        except BaseException as error:
            wrong.append(error)
            start.abort()

    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise AssertionError(f"{name}, {size} elements, {callers} callers: {wrong[0]!r}")
    return sum(done)


def main() -> None:
    parser = tables.options(__doc__)
    parser.add_argument("--sizes", type=tables.several(tables.whole), help="elements, such as 8,1e5,1e7")
    parser.add_argument("--threads", type=tables.several(int), help="counts to compare, the first one with the others")
    parser.add_argument("--callers", type=tables.several(int), default=[2, 4], help="Python threads that call at once")
    parser.add_argument("--repeats", type=int, help="turns of the timing")
    given = parser.parse_args()
    given.sizes = given.sizes or ([8, 100] if given.quick else SIZES)
    several = max(2, min(os.cpu_count() or 1, 8)) if hasattr(mg, "set_num_threads") else 1
    given.threads = given.threads or sorted({1, several})
    if given.threads != [1] and not hasattr(mg, "set_num_threads"):
        parser.error("this mutagrad has one thread only")
    rows = by_size(given)
    others = given.threads[1:]
    columns = {"op": ("op", ""), "elements": ("elements", ",d")}
    columns |= {f"on_{count}_us": (f"on {count}, us", ",.1f") for count in given.threads}
    columns |= {f"on_{count}_to_floor": ("/ floor", ".2f") for count in given.threads}
    columns |= {f"gain_{count}": (f"gain of {count}", ".2f") for count in others}
    columns |= {f"floor_gain_{count}": ("floor's", ".2f") for count in others}
    found = [Table("Microseconds by the count of threads, the least", columns, rows)]
    if others:
        found.append(Table("From which size on threads pay, and what they cost before", PAYS, pays(rows, given)))
    heads = {"op": ("op", ""), "elements": ("elements", ",d"), "threads": ("threads", "d")}
    heads |= {"calls_a_second": ("calls a second", ",.0f")}
    heads |= {f"callers_{count}": (f"{count} callers", ".2f") for count in given.callers}
    found.append(Table("Python threads that call at once: calls of all against those of one", heads, at_once(given)))
    tables.publish(__file__, found, given)


PAYS = {
    "op": ("op", ""),
    "threads": ("threads", "d"),
    "pays_from": ("pays from", ",d"),
    "best_gain": ("best gain", ".2f"),
    "small": ("at", ",d"),
    "small_ratio": ("time / one thread's", ".2f"),
}


if __name__ == "__main__":
    main()
