"""Kernels as Python source: the only module that writes code as text.

A kernel's source holds no shape, no address and no user's name, so equal expressions give equal source.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from . import expr, fastmath
from .expr import Expr

TYPES = {"d": "float64", "f": "float32"}
# A sum is made of parts of so many elements, with as many accumulators as registers hold, and of the sums of parts in
# turn: so it is as exact as a pairwise one. A whole variant goes along lines of as many.
PART = 1024
# A part's last elements, fewer than the accumulators take at once, are combined by themselves.
LANES = 64
# Along columns each element has one accumulator: there a part is so many rows.
ROWS = 256
HEADER = '''"""{doc}"""

import numpy as np

from mutagrad.compile import careful, kernel
from mutagrad.fastmath import FORMS, beyond, fast
from mutagrad.mathematics.loops import plus, row, seldom, times, wide

'''
# A nan that enters these comes out.
PASSING = frozenset(("add", "subtract", "multiply", "divide", "negative", "guarded_product"))
STEPS = {"add": "plus({}, {})", "multiply": "times({}, {})"}


class Printer:
    """Prints statements, and collects the constants and functions that they use."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.type = dtype, f"np.{TYPES[dtype]}"
        self.constants: dict[str, str] = {}
        self.functions: dict[str, str] = {}

    def constant(self, value: float | bool) -> str:
        """A typed module-level constant: a bare literal would widen float32."""
        if isinstance(value, bool):
            return str(value)
        text = repr(value) if math.isfinite(value) else f'"{value}"'
        return self.constants.setdefault(text, f"C{len(self.constants)}")

    def expression(
        self, outputs: Iterable[Expr], names: dict[str, str], temporary: str = "t", quick: bool = False
    ) -> list[str]:
        """Statements that compute `outputs`; the results' texts come last, in the same number.

        The `quick` ones call the vectorised functions and guard no product.
        """
        outputs = list(outputs)
        order = list(expr.walk(outputs))
        uses = Counter(a for e in order for a in e.args) + Counter(outputs)
        text: dict[Expr, str] = {}
        lines: list[str] = []
        for e in order:
            if expr.is_name(e):
                text[e] = names[e.value]
            elif e.op is None:
                text[e] = self.constant(e.value)
            else:
                code = self._apply(e, [text[a] for a in e.args], quick)
                if uses[e] > 1:
                    variable = f"{temporary}{len(lines)}"
                    lines.append(f"{variable} = {code}")
                    code = variable
                text[e] = code
        return lines + [text[e] for e in outputs]

    def _apply(self, e: Expr, args: list[str], quick: bool) -> str:
        forward = e.op.forward
        if forward is None:
            raise TypeError(f"{e.op.name} is written with other ops and must be expanded before printing")
        if isinstance(forward, str):
            if quick and e.op.name == "guarded_product":
                forward = "({0} * {1})"
            return forward.format(*args)
        name = forward.__name__
        alike = fastmath.careful(name, self.dtype) is fastmath.fast(name, self.dtype)
        return self.call(name if quick or alike else f"{name}_careful", args)

    def call(self, function: str, args: Sequence[str]) -> str:
        """A call of a function of `fastmath`: "sin", "sin_careful" or "sin_beyond"."""
        name, _, form = function.rpartition("_")
        if form not in ("careful", "beyond"):
            name, form = function, "fast"
        self.functions[function] = f'{form}("{name}", "{self.dtype}")'
        return f"{function}({', '.join(args)})"

    def step(self, combine: Expr, acc: str, x: str) -> str:
        """The next accumulator of a sum, a product or a selection."""
        if combine.op.name in STEPS:
            return STEPS[combine.op.name].format(acc, x)
        lines = self.expression([combine], {"acc": acc, "x": x}, quick=True)
        assert len(lines) == 1, f"{combine!r} combines in more than one step"
        return lines[0]

    def module(self, doc: str, function: str, args: Sequence[str], body: Sequence[str], loop: bool = True) -> str:
        """The whole module of one kernel; only one with a loop is worth letting other threads run meanwhile."""
        lines = [f"{name} = {made}" for name, made in sorted(self.functions.items())]
        lines += [f"{name} = {self.type}({text})" for text, name in self.constants.items()]
        if loop:
            numbers = {"ZERO": 0, "PART": PART, "ROWS": ROWS, "BULK": 2**64 - LANES}
            used = [name for name in numbers if name in " ".join(body)]
            lines += [f"{name} = np.uint64({numbers[name]})" for name in used]
        lines += ["", "", f"@kernel(release={loop})", f"def {function}({', '.join(args)}):"]
        lines += ["    " + line for line in (["wide()", *body] if loop else body)]
        return HEADER.format(doc=doc) + "\n".join(lines) + "\n"


def expand(e: Expr) -> Expr:
    """Replace ops written with other ops by what they are written with, down to what can be printed."""
    done: dict[Expr, Expr] = {}
    for s in expr.walk([e]):
        if s.op is None:
            done[s] = s
        else:
            args = [done[a] for a in s.args]
            if s.op.forward is None:
                values = dict(zip(s.op.operands, args, strict=True))
                done[s] = expr.substitute(expand(s.op.body), values)
            else:
                done[s] = expr.apply(s.op, args)
    return done[e]


class Total(NamedTuple):
    """A value combined over the elements, as a reduction of the table combines them."""

    value: Expr
    reduction: Any

    @property
    def combine(self) -> Expr:
        """The next accumulator of "acc" and "x"."""
        return expand(self.reduction.combine)

    @property
    def init(self) -> float:
        """The first accumulator."""
        return self.reduction.init

    @property
    def finish(self) -> Expr:
        """What becomes of the last accumulator "acc" of "n" elements."""
        return expand(self.reduction.finish)

    @property
    def finished(self) -> bool:
        """Whether anything does."""
        return self.reduction.finish is not expr.name("acc")


def indented(lines: Iterable[str]) -> list[str]:
    return ["    " + line for line in lines]


class Kernel:
    """One loop: `outputs` over `inputs`, element by element, and `totals` over them.

    Its variants differ in dtype and in how each array lies: a letter an array says what it is along the innermost
    axis. "a" is contiguous, "A" strided, "o" one element repeated; "b", "B" and "p" are the same for masks; "s" is a
    number and "t" a truth value; "=" is an input whose place the result takes. `depth` is the number of nested loops,
    None for no loop at all.

    The loop runs plain products and vectorised functions, and tells by its result whether an element is in doubt: a nan
    appeared that may be a zero times an infinity, or an argument is beyond a function's reach. A `whole` variant goes
    line by line, looks first, and computes what is in doubt with guarded products and careful functions; so it can
    write where it reads.

    Totals are combined in parts of `PART` elements, so that whoever shares the parts out gets the same bits. The
    call's first arguments take them: arrays of as many axes as loops, the last for the parts of a row.
    """

    def __init__(
        self, title: str, inputs: Sequence[str], outputs: Sequence[Expr], totals: Sequence[Total] = ()
    ) -> None:
        self.title = title
        self.inputs = tuple(inputs)
        self.outputs = [expand(e) for e in outputs]
        self.totals = [Total(expand(t.value), t.reduction) for t in totals]
        self.values = [*self.outputs, *(t.value for t in self.totals)]
        self.watched = self._watched()
        functions = [e for e in expr.walk(self.values) if e.op is not None and callable(e.op.forward)]
        self.reached = [e for e in functions if fastmath.beyond(e.op.forward.__name__, "d") is not None]
        self.doubtful = bool(self.watched or self.reached)
        # What it costs to compute a byte of an element, in nanoseconds or so.
        self.cost = sum(0.006 * max(e.op.cost, 1) for e in expr.walk(self.values) if e.op is not None)

    def _watched(self) -> list[Expr]:
        """The expressions that are nan wherever a guarded product is that should be zero."""
        order = list(expr.walk(self.values))
        shows = dict.fromkeys(self.values)
        for e in reversed(order):
            if e in shows and e.op is not None and e.op.name in PASSING:
                shows.update(dict.fromkeys(e.args))
        holds: set[Expr] = set()
        watched = []
        for e in order:
            if e.op is None:
                continue
            guarded = e.op.name == "guarded_product"
            if guarded and e not in shows:
                watched.append(e)
            elif guarded or (e.op.name in PASSING and any(a in holds for a in e.args)):
                holds.add(e)
        return watched + [e for e in dict.fromkeys(self.values) if e in holds]

    def source(self, dtype: str, outs: str, kinds: str, depth: int | None, whole: bool) -> tuple[str, str]:
        """The name of the function and the text of its module."""
        form = "scalar" if depth is None else f"rows{depth}" if depth > 1 else "flat"
        function = f"{self.title}_{form}{'_whole' if whole and self.doubtful else ''}"
        doc = f"{self.title}({', '.join(self.inputs)}): {'; '.join(map(repr, self.values))}"
        printer = Printer(dtype)
        if depth is None:
            lines = printer.expression(self.outputs, dict(zip(self.inputs, self.inputs, strict=True)))
            cut = len(lines) - len(self.outputs)
            body = [*lines[:cut], f"return {', '.join(lines[cut:])}"]
            return function, printer.module(doc, function, self.inputs, body, loop=False)
        loop = _Loop(self, printer, outs, kinds, depth, whole)
        return function, printer.module(doc, function, loop.args, loop.body())

    def columns(self, dtype: str) -> tuple[str, str]:
        """The kernel that takes the one total of its one input along the middle of three axes, column beside column.

        Columns lie side by side in memory; a strip of them stays in the cache while its rows are run through.
        """
        (total,), (x,) = self.totals, self.inputs
        function = f"{self.title}_columns"
        printer = Printer(dtype)
        init = printer.constant(total.init)

        *before, value = printer.expression([total.value], {x: "cut[j]"}, quick=True)
        body = [
            f"length, width = np.uint64({x}.shape[1]), np.uint64({x}.shape[2])",
            f"for a in range(np.uint64({x}.shape[0])):",
            "    for part in range(np.uint64(part0.shape[1])):",
            "        line = row(part0, (a, part))",
            "        for left in range(ZERO, width, PART):",
            "            right = min(left + PART, width)",
            "            for j in range(left, right):",
            f"                line[j] = {init}",
            "            for k in range(part * ROWS, min(part * ROWS + ROWS, length)):",
            f"                cut = row({x}, (a, k))",
            "                for j in range(left, right):",
            *("                    " + line for line in before),
            f"                    line[j] = {printer.step(total.combine, 'line[j]', value)}",
        ]
        if total.finished:
            finish = printer.expression([total.finish], {"acc": "line[j]", "n": "combined"})
            body += ["            if combined >= 0:", "                for j in range(left, right):"]
            body += indented(indented(indented(indented(indented([*finish[:-1], f"line[j] = {finish[-1]}"])))))
        args = ["part0", x, *(["combined"] if total.finished else [])]
        doc = f"{self.title}: acc = {total.combine!r}; {total.finish!r}"
        return function, printer.module(doc, function, args, body)


class _Loop:
    """The text of one variant's loops."""

    def __init__(self, kernel: Kernel, printer: Printer, outs: str, kinds: str, depth: int, whole: bool) -> None:
        self.kernel, self.printer, self.whole = kernel, printer, whole
        self.axes = [f"i{d}" for d in range(depth - 1)]
        self.totals = list(enumerate(kernel.totals))
        self.outs = [f"out{k}" for k in range(len(outs))]
        inputs = list(zip(kernel.inputs, kinds, strict=True))
        taken = [n for n, k in inputs if k != "="]
        ending = ["combined"] if any(t.finished for t in kernel.totals) else []
        self.args = [*(f"part{k}" for k, _ in self.totals), *self.outs, *taken, *ending]
        read = set(expr.free_names(kernel.values))
        self.cuts: list[str] = []
        targets = [self.element(n, k) for n, k in zip(self.outs, outs, strict=True)]
        self.loads: list[str] = []
        names: dict[str, str] = {}
        for name, kind in inputs:
            if name not in read or kind in "st":
                names[name] = name
            elif kind in "op":
                self.cuts.append(f"{name}_row = {name}[{', '.join([*self.axes, 'ZERO'])}]")
                names[name] = f"{name}_row"
            else:
                self.loads.append(f"{name}_i = {targets[0] if kind == '=' else self.element(name, kind)}")
                names[name] = f"{name}_i"
        long = [*self.outs, *(n for n, k in inputs if k in "aAbB"), *(n for n, k in inputs if k in "op")]
        self.length = f"length = np.uint64({long[0]}.shape[{depth - 1}])"
        self.names, self.targets = names, targets
        reached = [(e, e.op.forward.__name__) for e in kernel.reached]
        self.quick, self.doubt, values = self.looked(reached)
        self.results = self.stored(values)

    def looked(self, reached: Sequence[tuple[Expr, str]]) -> tuple[list[str], str, list[str]]:
        """The quick computation of an element: its statements, the condition under which it is in doubt, its values."""
        kernel = self.kernel
        wanted = [*kernel.values, *kernel.watched, *(e.args[0] for e, _ in reached)]
        lines = self.printer.expression(wanted, self.names, quick=True)
        cut, count = len(lines) - len(wanted), len(kernel.values)
        values, doubts = lines[cut : cut + count], lines[cut + count :]
        texts = [f"({text} != {text})" for text in doubts[: len(kernel.watched)]]
        named = zip(reached, doubts[len(kernel.watched) :], strict=True)
        texts += [self.printer.call(f"{name}_beyond", [text]) for (_, name), text in named]
        return lines[:cut], " | ".join(dict.fromkeys(texts)), values

    def element(self, name: str, kind: str) -> str:
        """An array's element in the innermost loop."""
        if not self.axes:
            return f"{name}[i]"
        if kind in "ab":
            self.cuts.append(f"{name}_row = row({name}, ({', '.join(self.axes)},))")
            return f"{name}_row[i]"
        return f"{name}[{', '.join([*self.axes, 'i'])}]"

    def stored(self, values: Sequence[str]) -> list[str]:
        """What is done with the values of an element."""
        stores = [f"{target} = {value}" for target, value in zip(self.targets, values, strict=False)]
        return stores + [f"value{k} = {values[len(stores) + k]}" for k, _ in self.totals]

    def line(self, start: str, stop: str) -> list[str]:
        """The loop over one line."""
        head = f"for i in range({start}, {stop}):"
        steps = [f"acc{k} = {self.printer.step(t.combine, f'acc{k}', f'value{k}')}" for k, t in self.totals]
        plain = [head, *indented([*self.loads, *self.quick, *self.results, *steps])]
        if not self.doubt and self.totals and not self.outs:
            both = [f"acc{k} = {self.printer.step(t.combine, f'acc{k}', f'rest{k}')}" for k, t in self.totals]
            return [
                f"middle = {start} + (({stop} - {start}) & BULK)",
                *self.reset(),
                f"for i in range(middle, {stop}):",
                *plain[1:],
                *(f"rest{k} = acc{k}" for k, _ in self.totals),
                *self.reset(),
                f"for i in range({start}, middle):",
                *plain[1:],
                *both,
            ]
        if not self.doubt:
            return [*self.reset(), *plain]
        noted = [*self.loads, *self.quick, f"bad |= {self.doubt}"]
        if not self.whole:
            return [*self.reset(), head, *indented([*noted[:-1], *self.results, *steps, noted[-1]])]
        lines = self.printer.expression(self.kernel.values, self.names, "c")
        cut = len(lines) - len(self.kernel.values)
        careful = [*lines[:cut], *self.stored(lines[cut:])]
        each = ["seldom()", *self.loads, *self.quick]
        each += [f"if {self.doubt}:", *indented(careful), "else:", *indented(self.results), *steps]
        again = [*self.reset(), head, *indented(each)]
        plain = [*self.reset(), *plain]
        return ["bad = False", head, *indented(noted), "if bad:", *indented(again), "else:", *indented(plain)]

    def reset(self) -> list[str]:
        return [f"acc{k} = {self.printer.constant(t.init)}" for k, t in self.totals]

    def row(self) -> list[str]:
        """The loops over a row."""
        if not self.totals:
            if not self.doubt or not self.whole:
                return self.line("ZERO", "length")
            inner = ["stop = min(start + PART, length)", *self.line("start", "stop")]
            return ["for start in range(ZERO, length, PART):", *indented(inner)]
        part = ["start = part * PART", "stop = min(start + PART, length)", *self.line("start", "stop")]
        for k, t in self.totals:
            if t.finished:
                finish = self.printer.expression([t.finish], {"acc": f"acc{k}", "n": "combined"}, f"f{k}_")
                part += ["if combined >= 0:", *indented([*finish[:-1], f"acc{k} = {finish[-1]}"])]
            part.append(f"part{k}[{', '.join([*self.axes, 'part'])}] = acc{k}")
        return [*self.reset(), "for part in range(np.uint64(part0.shape[-1])):", *indented(part)]

    def body(self) -> list[str]:
        """All loops."""
        body = [*self.cuts, *self.row()]
        for d in reversed(range(len(self.axes))):
            array = self.args[0]
            body = [f"for i{d} in range(np.uint64({array}.shape[{d}])):", *indented(body)]
        body = [self.length, *body]
        if self.doubt and not self.whole:
            return ["bad = False", *body, "return bad"]
        if self.totals and not self.axes:
            body.append(f"return {', '.join(f'acc{k}' for k, _ in self.totals)}")
        return body


def plain(function: str, args: Sequence[str]) -> tuple[str, str]:
    """A kernel that is a function of `fastmath`, called as it is."""
    printer = Printer("d")
    name = f"{function}_kernel"
    return name, printer.module(f"fastmath.{function}", name, args, [printer.call(function, args)])


def symbol(name: str, letter: str) -> tuple[str, str]:
    """The careful form of a function of `mathematics` as a function that others call by its symbol."""
    printer = Printer(letter)
    result = f"{printer.type}({name}(np.float64(x)))"
    lines = [f'{name} = FORMS["{name}"].careful', "", "", "@kernel(release=False, symbol=True)"]
    lines += [f"def {name}_careful(x):", f"    return {result}"]
    return f"{name}_careful", HEADER.format(doc=f"{name}(x) at every x") + "\n".join(lines) + "\n"
