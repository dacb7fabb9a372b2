"""What the scripts of this folder share: options, interleaved timing, memory and its bandwidth, threads, tables."""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import importlib.metadata
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from mutagrad import pool

HERE = Path(__file__).resolve().parent

# Python puts the folder of the script it runs on the path. There `profile` would hide the standard
# library's module of that name, which cProfile, and so torch, imports.
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != HERE]

Row = dict[str, Any]


# Options and peers


def options(description: str | None) -> argparse.ArgumentParser:
    """The options that every script takes."""
    assert description is not None
    parser = argparse.ArgumentParser(description=description.split("\n\n")[0])
    parser.add_argument("--json", metavar="FILE", help='write the rows there as JSON too; "-": only JSON, to stdout')
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that the script works")
    parser.add_argument("--alone", action="store_true", help="leave other libraries out even if installed")
    return parser


def peer(name: str, given: argparse.Namespace) -> Any:
    """Another library, or None if it is not to be had or not wanted."""
    if given.alone:
        return None
    try:
        found = importlib.import_module(name)
    except ImportError:
        return None
    if name == "torch":
        # One thread each: the kernels of small arrays run on one in every library.
        found.set_num_threads(1)
    return found


def several(kind: Callable[[str], Any], known: Iterable[Any] = ()) -> Callable[[str], list[Any]]:
    """A type of option: some of the known values, separated by commas."""
    known = list(known)

    def parse(text: str) -> list[Any]:
        found = [kind(part) for part in text.split(",")]
        if wrong := [value for value in found if known and value not in known]:
            raise argparse.ArgumentTypeError(f"{wrong[0]} is none of {', '.join(map(str, known))}")
        return found

    return parse


def whole(text: str) -> int:
    """A type of option: a count, which may be written 1e5."""
    return int(float(text))


def use_threads(count: int) -> None:
    """Let mutagrad, and torch if it is loaded, use so many threads; mutagrad has one where it cannot be told."""
    if change := getattr(sys.modules.get("mutagrad"), "set_num_threads", None):
        change(count)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(count)


# Time


class Timing(NamedTuple):
    """Seconds of one call in each repeat."""

    each: tuple[float, ...]

    @property
    def least(self) -> float:
        """The least over all repeats: the machine undisturbed."""
        return min(self.each)

    @property
    def median(self) -> float:
        """The median over all repeats."""
        return statistics.median(self.each)

    def to(self, other: Timing) -> float:
        """How many times as long as another: the median over the repeats, in each of which both met the same noise."""
        return statistics.median(a / b for a, b in zip(self.each, other.each, strict=True))


def mean(timings: Sequence[Timing]) -> Timing:
    """The mean of several, repeat by repeat."""
    return Timing(tuple(statistics.fmean(each) for each in zip(*(t.each for t in timings), strict=True)))


def interleave(
    functions: Mapping[Any, Callable[..., Any]],
    repeats: int = 30,
    seconds: float = 0.003,
    prepare: Mapping[Any, Callable[[], Any]] | None = None,
    before: Mapping[Any, Callable[[], Any]] | None = None,
) -> dict[Any, Timing]:
    """Time functions in turns, so that noise hits all alike.

    Each function is called often enough to fill `seconds`, once a repeat, with the collector off and the
    order reversed every other time. Where `prepare` has something for a function, it is called with what
    that gives, made anew for every call and outside of the measured time. Where `before` has something, it is
    called once before the calls of a repeat, and that counts neither.
    """
    prepare, before = prepare or {}, before or {}
    numbers = {}
    for name, function in functions.items():
        before.get(name, _nothing)()
        _batch(function, 1, prepare.get(name))
        number = 1
        while (took := _batch(function, number, prepare.get(name))) < seconds and number < 1 << 20:
            number = min(number * 8, int(number * seconds / max(took, 1e-9)) + 1)
        numbers[name] = number
    measured: dict[Any, list[float]] = {name: [] for name in functions}
    order = list(functions)
    for _ in range(repeats):
        for name in order:
            before.get(name, _nothing)()
            took = _batch(functions[name], numbers[name], prepare.get(name))
            measured[name].append(took / numbers[name])
        order.reverse()
    return {name: Timing(tuple(times)) for name, times in measured.items()}


def _nothing() -> None:
    pass


def _batch(function: Callable[..., Any], number: int, prepare: Callable[[], Any] | None) -> float:
    collecting = gc.isenabled()
    gc.disable()
    try:
        if prepare is not None:
            return sum(clock(functools.partial(function, prepare()))[0] for _ in range(number))
        start = time.perf_counter()
        for _ in range(number):
            function()
        return time.perf_counter() - start
    finally:
        if collecting:
            gc.enable()


def clock(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of one call, and what it gave."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


# Memory


@functools.cache
def _loops() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The loops that do nothing but move memory: a = b + s * c, and a sum."""
    import numba

    @numba.njit(nogil=True, fastmath=True)
    def triad(a, b, c, s):
        for i in range(a.size):
            a[i] = b[i] + s * c[i]

    @numba.njit(nogil=True, fastmath=True)
    def read(a):
        total = a.dtype.type(0)
        for i in range(a.size):
            total += a[i]
        return total

    return triad, read


def moving(size: float, dtype: Any, threads: int = 1, reading: bool = False) -> Callable[[], Any]:
    """A function that moves so many bytes through the processor and does next to nothing else with them.

    It reads two arrays and writes a third (STREAM's triad), or with `reading` only reads one. Its time, measured
    among the others, is the floor of whatever has as many bytes to move; lines of memory that must be read
    before they are written are not counted, for neither.
    """
    import numpy as np

    triad, read = _loops()
    n = max(int(size / np.dtype(dtype).itemsize / (1 if reading else 3)), threads)
    arrays = [np.full(n, 0.5, dtype) for _ in range(1 if reading else 3)]
    cuts = [n * k // threads for k in range(threads + 1)]
    parts = [[a[i:j] for a in arrays] for i, j in itertools.pairwise(cuts)]
    factor = np.dtype(dtype).type(0.5)
    run = read if reading else functools.partial(_scaled, triad, factor)
    if threads == 1:
        return functools.partial(run, *parts[0])
    crew = ThreadPoolExecutor(threads)
    return lambda: [done.result() for done in [crew.submit(run, *part) for part in parts]]


def _scaled(triad: Callable[..., Any], factor: Any, *arrays: Any) -> None:
    triad(*arrays, factor)


@contextlib.contextmanager
def _traced() -> Iterator[None]:
    """Trace what Python and NumPy hold; the pool keeps nothing idle meanwhile, or it would be counted as held."""
    limit, pool.shared.limit = pool.shared.limit, 0
    pool.shared.give_back()
    gc.collect()
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
        pool.shared.limit = limit


def peak(function: Callable[[Any], Any], prepare: Callable[[], Any]) -> int:
    """Bytes that Python and NumPy held at most during `function(prepare())`, beyond those held before the call."""
    with _traced():
        # Traced as well, since the call may free what was prepared.
        argument = prepare()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = function(argument)
        highest = tracemalloc.get_traced_memory()[1]
        del result
        return highest - before


def held(function: Callable[[], Any]) -> int:
    """Bytes that Python and NumPy hold for what a call returns."""
    with _traced():
        before = tracemalloc.get_traced_memory()[0]
        result = function()
        after = tracemalloc.get_traced_memory()[0]
        del result
        return after - before


def resident() -> int | None:
    """Bytes of this process in memory now; None where the system does not tell."""
    return _status("VmRSS")


def resident_peak(function: Callable[[Any], Any], prepare: Callable[[], Any]) -> int | None:
    """Bytes by which this process grew at most during `function(prepare())`; None where the system does not tell.

    For libraries whose memory Python does not see. Exact only for what is large against a page, and in a
    process that has not freed such memory before: see `child`.
    """
    argument = prepare()
    try:
        # Five resets the high-water mark, which importing a large library has raised.
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    before = resident()
    result = function(argument)
    highest = _status("VmHWM")
    del result
    return None if before is None or highest is None else max(highest - before, 0)


def _status(key: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":")), None)


def child(script: str, *args: object) -> Any:
    """What the script prints as JSON when run as `script --child args` in a process of its own."""
    command = [sys.executable, script, "--child", *map(str, args)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


# Tables


class Table(NamedTuple):
    """Rows under a title; `columns` maps a row's key to a heading and a format."""

    title: str
    columns: Mapping[str, tuple[str, str]]
    rows: Sequence[Row]

    def text(self) -> str:
        """The table as plain text, numbers to the right; what a row lacks is a dash."""
        body = [[_cell(row.get(key), form) for key, (_, form) in self.columns.items()] for row in self.rows]
        heads = [head for head, _ in self.columns.values()]
        widths = [max(map(len, column)) for column in zip(heads, *body, strict=True)]
        right = [form != "" for _, form in self.columns.values()]
        lines = [self.title, ""]
        for cells in [heads, *body]:
            padded = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True)]
            lines.append("  " + "  ".join(padded).rstrip())
        return "\n".join(lines) + "\n"


def _cell(value: Any, form: str) -> str:
    return "-" if value is None else format(value, form)


def rounded(number: float) -> str:
    """A count in as few characters as it takes: 1e6, 8."""
    exponent = len(str(int(number))) - 1
    return f"1e{exponent}" if number >= 1000 and number == 10**exponent else f"{number:g}"


def publish(script: str, tables: Iterable[Table], given: argparse.Namespace) -> None:
    """Print the tables, and write their rows where `--json` says."""
    tables = list(tables)
    found = {
        "script": Path(script).stem,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "versions": _versions(),
        "tables": [{"title": t.title, "rows": list(t.rows)} for t in tables],
    }
    text = json.dumps(found, indent=1)
    if given.json == "-":
        print(text)
        return
    print(f"Python {found['python']}, {found['cores']} cores, " + ", ".join(f"{n} {v}" for n, v in _versions().items()))
    for table in tables:
        print()
        print(table.text(), end="")
    if given.json:
        Path(given.json).write_text(text + "\n")


def _versions() -> dict[str, str]:
    known = ("mutagrad", "numpy", "scipy", "numba", "torch", "mygrad", "autograd", "jax", "mpmath")
    return {n: _version(n) for n in known if n in sys.modules}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        # On the path without being installed.
        return getattr(sys.modules[name], "__version__", "?")
