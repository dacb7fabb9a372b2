"""Value and gradient of a dozen expressions: mutagrad against code by hand and other libraries, and against memory.

Each expression is one formula, run by every library, and written by hand for NumPy and for Numba with its gradients.
All must agree (to 1e-9 of the largest gradient in float64, 1e-4 in float32) before they are timed, in turns. The
floor is the time in which as many bytes as the operands and their gradients have go through the processor, by a loop
that reads two arrays and writes one, timed in the same turns. The first call, which compiles, is timed apart:
kernels that mutagrad finds on disk are not compiled again (MUTAGRAD_CACHE_DIR set to an empty folder forbids it).
"cores" is processor time by wall time. All run on one thread if not told otherwise.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numpy as np

import mutagrad as mg
from mutagrad import expr, totals
from mutagrad.codegen import Kernel, Total
from mutagrad.expr import Expr
from mutagrad.ops import OPS
from perf import tables
from perf.expressions import EXPRESSIONS, Expression
from perf.tables import Row, Table, Timing, rounded

Run = Callable[[], tuple[Any, Sequence[Any]]]
SYSTEMS = ["mutagrad", "jit", "fused", "numpy", "numba", "torch", "torch.compile", "jax.jit", "autograd", "mygrad"]
SIZES = [1, 1000, 100_000, 10_000_000]
DTYPES = ["float64", "float32"]
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}
FUNCTIONS = ("sin", "exp", "log", "tanh")


# Systems: what runs an expression on given arrays, again and again; None where there is no such thing


class Summed(NamedTuple):
    """What `sum` makes of a symbolic operand."""

    body: Expr


class Symbols:
    """The library's ops on symbols."""

    def __getattr__(self, name: str) -> Any:
        return OPS[name]

    def sum(self, a: Any) -> Summed:
        """The sum over everything."""
        return Summed(expr.lift(a))


def fused(expression: type[Expression]) -> Callable[..., tuple[Any, Sequence[Any]]] | None:
    """mutagrad's fused kernel of an expression: takes its operands (ndarrays), returns its value and gradients.

    None where the expression is more than a sum of one value an element.
    """
    names = list(inspect.signature(expression.formula).parameters)[1:]
    try:
        total = expression.formula(Symbols(), *map(expr.name, names))
    except (TypeError, KeyError):
        return None
    if not isinstance(total, Summed):
        return None
    pulled = expr.pull(total.body, expr.const(1.0), names[: expression.active])
    outputs = [expr.lift(0.0 if g is None else g) for g in pulled]
    kernel = Kernel(f"fused_{expression.name}", names, outputs, [Total(total.body, OPS["sum"])])
    cache: dict[Any, Any] = {}

    def call(*operands: Any) -> tuple[Any, Sequence[Any]]:
        gradients, (value,) = totals.fused(kernel, cache, operands, operands[0].shape, operands[0].dtype)
        return value, gradients

    return call


def recorded(formula: Callable[..., Any], leaves: Sequence[Any], constants: Iterable[Any], clear: Any = None) -> Run:
    """Runs of a library that records: forward, backward, and the leaves' gradients taken away."""
    constants = list(constants)

    def run() -> tuple[Any, Sequence[Any]]:
        value = formula(*leaves, *constants)
        value.backward()
        gradients = [leaf.grad for leaf in leaves]
        for leaf in leaves:
            if clear is None:
                leaf.grad = None
            else:
                clear(leaf)
        return value, gradients

    return run


def on(expression: type[Expression], xp: Any) -> Callable[..., Any]:
    """An expression's formula in a library's functions."""
    formula = expression.formula
    return lambda *operands: formula(xp, *operands)


class Systems:
    """All the libraries there are; compiled functions are kept for the next size."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.kept: dict[Any, Any] = {}

    def make(self, name: str, expression: type[Expression], arrays: tuple[np.ndarray, ...]) -> Run | None:
        """A system's run of an expression."""
        split = expression.active
        return getattr(self, "_" + name.replace(".", "_"))(expression, arrays[:split], arrays[split:])

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def _mutagrad(self, expression: Any, active: Any, rest: Any, formula: Any = None) -> Run:
        leaves = [mg.asarray(v, requires_grad=True) for v in active]
        return recorded(formula or on(expression, mg), leaves, map(mg.asarray, rest))

    def _jit(self, expression: Any, active: Any, rest: Any) -> Run | None:
        jit = getattr(mg, "jit", None)
        if jit is None:
            return None
        formula = self._once(("jit", expression.name), lambda: jit(on(expression, mg)))
        return self._mutagrad(expression, active, rest, formula)

    def _fused(self, expression: Any, active: Any, rest: Any) -> Run | None:
        function = self._once(("fused", expression.name), lambda: fused(expression))
        return None if function is None else lambda: function(*active, *rest)

    def _numpy(self, expression: Any, active: Any, rest: Any) -> Run | None:
        if expression.by_hand_needs and not tables.peer(expression.by_hand_needs, self.given):
            return None
        return lambda: expression.by_hand(*active, *rest)

    def _numba(self, expression: Any, active: Any, rest: Any) -> Run:
        function = expression.compiled(active[0].dtype.type)
        return lambda: function(*active, *rest)

    def _torch(self, expression: Any, active: Any, rest: Any, compiled: bool = False) -> Run | None:
        torch = tables.peer("torch", self.given)
        if not torch:
            return None
        torch.set_num_threads(self.given.threads)
        names = ("sin", "cos", "exp", "log", "log1p", "sqrt", "tanh", "arcsin", "abs", "where", "sum", "erf")
        xp = SimpleNamespace(**{name: getattr(torch, name) for name in names}, max=torch.amax)
        formula = on(expression, xp)
        if compiled:
            formula = self._once(("torch", expression.name, active[0].dtype), lambda: torch.compile(formula))
        leaves = [torch.from_numpy(v).requires_grad_() for v in active]
        return recorded(formula, leaves, map(torch.from_numpy, rest))

    def _torch_compile(self, expression: Any, active: Any, rest: Any) -> Run | None:
        return self._torch(expression, active, rest, compiled=True)

    def _jax_jit(self, expression: Any, active: Any, rest: Any) -> Run | None:
        # What XLA takes for the number of processors, when it starts.
        os.environ.setdefault("NPROC", str(self.given.threads))
        jax = tables.peer("jax", self.given)
        if not jax:
            return None
        jax.config.update("jax_enable_x64", True)
        import jax.numpy as jnp
        from jax.scipy.special import erf

        names = ("sin", "cos", "exp", "log", "log1p", "sqrt", "tanh", "arcsin", "abs", "where", "sum", "max")
        xp = SimpleNamespace(**{name: getattr(jnp, name) for name in names}, erf=erf)
        places = tuple(range(len(active)))
        function = self._once(("jax", expression.name), lambda: jax.jit(jax.value_and_grad(on(expression, xp), places)))
        operands = [jnp.asarray(v) for v in (*active, *rest)]
        return lambda: jax.block_until_ready(function(*operands))

    def _autograd(self, expression: Any, active: Any, rest: Any) -> Run | None:
        autograd = tables.peer("autograd", self.given)
        if not autograd or (expression.needs and not tables.peer("scipy.special", self.given)):
            return None
        import autograd.numpy as anp

        names = ("sin", "cos", "exp", "log", "log1p", "sqrt", "tanh", "arcsin", "abs", "where", "sum", "max")
        xp = SimpleNamespace(**{name: getattr(anp, name) for name in names})
        if expression.needs:
            from autograd.scipy.special import erf

            xp.erf = erf
        function = autograd.value_and_grad(on(expression, xp), tuple(range(len(active))))
        return lambda: function(*active, *rest)

    def _mygrad(self, expression: Any, active: Any, rest: Any) -> Run | None:
        mygrad = tables.peer("mygrad", self.given)
        if not mygrad or not all(hasattr(mygrad, name) for name in expression.needs):
            return None
        leaves = [mygrad.tensor(v, copy=False) for v in active]
        constants = [mygrad.tensor(v, copy=False, constant=True) for v in rest]
        return recorded(on(expression, mygrad), leaves, constants, lambda leaf: leaf.null_grad())


def agree(name: str, expression: type[Expression], got: Any, want: Any, dtype: str) -> None:
    """Raise unless value and gradients are those expected."""
    tolerance = TOLERANCE[dtype]
    for part, a, b in [("value", got[0], want[0]), *zip(["gradient"] * 9, got[1], want[1], strict=False)]:
        a, b = (np.asarray(v.detach() if hasattr(v, "detach") else v, np.float64) for v in (a, b))
        if a.shape != b.shape or not np.max(np.abs(a - b)) <= tolerance * max(np.max(np.abs(b)), 1e-30):
            off = np.max(np.abs(a - b)) if a.shape == b.shape else f"shape {a.shape}"
            raise AssertionError(f"{expression.name}, {dtype}: the {part} by {name} is off by {off}")
    assert len(got[1]) == len(want[1]) == expression.active


# Measuring


def measure(systems: Systems, expression: type[Expression], n: int, dtype: str, given: argparse.Namespace) -> Row:
    """One expression at one size: what every system takes."""
    arrays = expression.values(n, dtype)
    reference = expression.compiled(np.float64)
    compiling, want = tables.clock(lambda: reference(*(v.astype(np.float64) for v in arrays)))
    row: Row = {"expression": expression.name, "n": n, "dtype": dtype}
    runs: dict[str, Callable[[], Any]] = {}
    for name in given.systems:
        try:
            run = systems.make(name, expression, arrays)
            if run is None:
                continue
            took, got = tables.clock(run)
        except Exception as error:
            if name in ("mutagrad", "jit", "fused", "numpy", "numba"):
                raise
            # A peer that cannot do it is no reason to measure nothing.
            print(f"{name} on {expression.name}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
            continue
        agree(name, expression, got, want, dtype)
        del got
        row[f"{name}_first_s"] = compiling if (name, dtype) == ("numba", "float64") else took
        runs[name] = run
    moved = sum(v.nbytes for v in arrays) + sum(v.nbytes for v in arrays[: expression.active])
    if n >= 1000:
        runs["floor"] = tables.moving(moved, dtype, given.threads)
    # Long calls are few: a call of 10⁷ elements takes up to some seconds.
    repeats = given.repeats or (2 if given.quick else 3 if n >= 10**6 else 11)
    times = tables.interleave(runs, repeats, 1e-5 if given.quick else 0.003)
    own = [name for name in runs if name != "floor"]
    best = min(own, key=lambda name: times[name].least)
    for name, timing in times.items():
        row[f"{name}_us"] = timing.least * 1e6
        row[f"{name}_median_us"] = timing.median * 1e6
        if name != "floor":
            row[f"{name}_to_best"] = timing.to(times[best])
            if "floor" in times:
                row[f"{name}_to_floor"] = timing.to(times["floor"])
            if "mutagrad" in times:
                row[f"{name}_to_mutagrad"] = timing.to(times["mutagrad"])
            if n >= 100_000:
                row[f"{name}_cores"] = cores(runs[name])
    row["best"] = best
    if "floor" in times:
        row["gigabytes_a_second"] = moved / times["floor"].least / 1e9
    return row


def cores(run: Callable[[], Any]) -> float:
    """How many processors a call keeps busy."""
    wall, busy = time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < 0.02:
        run()
    return (time.process_time() - busy) / (time.perf_counter() - wall)


def summary(rows: Sequence[Row], given: argparse.Namespace) -> list[Row]:
    """Geometric means over the expressions; a system that lacks some is compared on those it has."""
    found: list[Row] = []
    for dtype in given.dtypes:
        for n in given.sizes:
            here = [row for row in rows if (row["n"], row["dtype"]) == (n, dtype)]
            for name in given.systems:
                having = [row for row in here if f"{name}_us" in row]
                if not having:
                    continue
                line: Row = {"dtype": dtype, "n": n, "system": name, "expressions": len(having)}
                for key in ("to_mutagrad", "to_best", "to_floor"):
                    ratios = [row[f"{name}_{key}"] for row in having if f"{name}_{key}" in row]
                    if ratios:
                        line[key] = math.exp(statistics.fmean(map(math.log, ratios)))
                if f"{name}_cores" in having[0]:
                    line["cores"] = statistics.median(row[f"{name}_cores"] for row in having)
                found.append(line)
    return found


def alone(given: argparse.Namespace) -> list[Row]:
    """Some functions by themselves: an op on tensors that are ready, not recorded, against NumPy and torch.

    The last column is the time with one huge argument among the others, which is computed with care.
    """
    rows: list[Row] = []
    torch = tables.peer("torch", given)
    if torch:
        torch.set_num_threads(given.threads)
    random = np.random.default_rng(1)
    for dtype in given.dtypes:
        for n in [10, 100] if given.quick else [n for n in given.sizes if n >= 100_000]:
            runs: dict[Any, Callable[[], Any]] = {}
            for name in FUNCTIONS:
                x = (random.uniform(0.1, 10, n) if name == "log" else random.uniform(-5, 5, n)).astype(dtype)
                runs["numpy", name] = functools.partial(getattr(np, name), x)
                runs["mutagrad", name] = functools.partial(getattr(mg, name), mg.asarray(x))
                if name == "sin":
                    huge = x.copy()
                    huge[n // 2] = 1e22
                    runs["huge", name] = functools.partial(getattr(mg, name), mg.asarray(huge))
                if torch:
                    runs["torch", name] = functools.partial(getattr(torch, name), torch.from_numpy(x))
            runs["floor"] = tables.moving(2 * x.nbytes, dtype, given.threads)
            repeats = given.repeats or (2 if given.quick else 5 if n >= 10**6 else 15)
            times: dict[Any, Timing] = tables.interleave(runs, repeats, 1e-5 if given.quick else 0.003)
            for name in FUNCTIONS:
                ours = times["mutagrad", name]
                row: Row = {"function": name, "dtype": dtype, "n": n, "ns_an_element": ours.least / n * 1e9}
                row |= {"mutagrad_us": ours.least * 1e6, "numpy_us": times["numpy", name].least * 1e6}
                row |= {"floor_us": times["floor"].least * 1e6, "to_floor": ours.to(times["floor"])}
                row["to_numpy"] = ours.to(times["numpy", name])
                if name == "sin":
                    row["huge"] = times["huge", name].to(ours)
                if torch:
                    row |= {"torch_us": times["torch", name].least * 1e6, "to_torch": ours.to(times["torch", name])}
                rows.append(row)
    return rows


# Showing


def plot(path: str, rows: Sequence[Row], given: argparse.Namespace) -> None:
    """A panel for each dtype and size: the time of every system against mutagrad's, expression by expression."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    shape = (len(given.dtypes), len(given.sizes))
    figure, panels = pyplot.subplots(*shape, figsize=(5 * shape[1], 4.5 * shape[0]), squeeze=False, sharey=True)
    for line, dtype in zip(panels, given.dtypes, strict=True):
        for panel, n in zip(line, given.sizes, strict=True):
            here = [row for row in rows if (row["n"], row["dtype"]) == (n, dtype)]
            for name in [*given.systems, "floor"]:
                pairs = [
                    (i, row[f"{name}_us"] / row["mutagrad_us"]) for i, row in enumerate(here) if f"{name}_us" in row
                ]
                if pairs:
                    style = "k_" if name == "floor" else "-" if name == "mutagrad" else "o"
                    panel.plot(*zip(*pairs, strict=True), style, label=name)
            panel.set(yscale="log", title=f"{dtype}, n = {rounded(n)}")
            panel.set_xticks(range(len(here)), [row["expression"] for row in here], rotation=60, ha="right")
            panel.grid(alpha=0.3)
        line[0].set_ylabel("time / mutagrad's")
    panels[0][-1].legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(path)


WHERE = {"expression": ("expression", ""), "n": ("n", ",d"), "dtype": ("dtype", "")}
SUMMARY = {
    "dtype": ("dtype", ""),
    "n": ("n", ",d"),
    "system": ("system", ""),
    "expressions": ("of", "d"),
    "to_mutagrad": ("/ mutagrad", ".3g"),
    "to_best": ("/ best", ".3g"),
    "to_floor": ("/ floor", ".3g"),
    "cores": ("cores", ".2f"),
}
ALONE = {
    "function": ("function", ""),
    "dtype": ("dtype", ""),
    "n": ("n", ",d"),
    "mutagrad_us": ("mutagrad", ",.1f"),
    "ns_an_element": ("ns an element", ".2f"),
    "numpy_us": ("numpy", ",.1f"),
    "torch_us": ("torch", ",.1f"),
    "floor_us": ("floor", ",.1f"),
    "to_numpy": ("/ numpy", ".2f"),
    "to_torch": ("/ torch", ".2f"),
    "to_floor": ("/ floor", ".2f"),
    "huge": ("with one 1e22", ".2f"),
}


def found(rows: Sequence[Row], given: argparse.Namespace) -> list[Table]:
    """The tables of all expressions, a column for each system that ran."""
    ran = [name for name in given.systems if any(f"{name}_us" in row for row in rows)]

    def table(title: str, heads: dict[str, tuple[str, str]]) -> Table:
        return Table(title, WHERE | heads, [{k: row[k] for k in WHERE | heads if k in row} for row in rows])

    firsts: dict[Any, Row] = {}
    for row in rows:
        line = firsts.setdefault((row["expression"], row["dtype"]), {k: row[k] for k in ("expression", "dtype")})
        for key in (f"{name}_first_s" for name in ran):
            if key in row:
                line[key] = max(row[key], line.get(key, 0))
    firsts_heads = WHERE | {f"{name}_first_s": (name, ".4f") for name in ran}
    del firsts_heads["n"]
    times = {f"{name}_us": (name, ",.1f") for name in [*ran, "floor"]}
    times["gigabytes_a_second"] = ("floor's GB/s", ".1f")
    ratios = {f"{name}_to_mutagrad": (f"{name} / mutagrad", ".3g") for name in ran if name != "mutagrad"}
    ratios |= {"mutagrad_to_floor": ("mutagrad / floor", ".3g"), "mutagrad_to_best": ("mutagrad / best", ".3g")}
    return [
        table("Microseconds for the value and all gradients, the least", times),
        table("Ratios", ratios | {"best": ("best", "")}),
        Table("Seconds of the longest first call of all sizes, compiling", firsts_heads, list(firsts.values())),
    ]


def main() -> None:
    parser = tables.options(__doc__)
    parser.add_argument("--expressions", type=tables.several(str, EXPRESSIONS), help=", ".join(EXPRESSIONS))
    parser.add_argument("--sizes", type=tables.several(tables.whole), help="elements, such as 1,1000,1e5,1e7")
    parser.add_argument("--dtypes", type=tables.several(str, DTYPES), help=", ".join(DTYPES))
    parser.add_argument("--systems", type=tables.several(str, SYSTEMS), default=SYSTEMS, help=", ".join(SYSTEMS))
    parser.add_argument("--repeats", type=int, help="turns of the timing")
    parser.add_argument("--threads", type=int, default=1, help="for every library that can be told")
    parser.add_argument("--plot", metavar="FILE", help="draw the ratios (needs matplotlib)")
    given = parser.parse_args()
    given.expressions = given.expressions or list(EXPRESSIONS)[:: 5 if given.quick else 1]
    given.sizes = given.sizes or ([1, 20] if given.quick else SIZES)
    given.dtypes = given.dtypes or (DTYPES[:1] if given.quick else DTYPES)
    tables.use_threads(given.threads)
    systems = Systems(given)
    rows = [
        measure(systems, EXPRESSIONS[name], n, dtype, given)
        for name in given.expressions
        for n in given.sizes
        for dtype in given.dtypes
    ]
    means = Table("Geometric means over the expressions", SUMMARY, summary(rows, given))
    title = "Functions alone, not recorded, on ready tensors: microseconds, the least"
    tables.publish(__file__, [*found(rows, given), means, Table(title, ALONE, alone(given))], given)
    if given.plot:
        plot(given.plot, rows, given)


if __name__ == "__main__":
    main()
