"""Kernels as Python source: the only module that writes code as text.

A kernel's source holds no shape, no address and no user's name, so equal expressions give equal source.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from . import expr
from .expr import Expr

TYPES = {"d": "float64", "f": "float32"}
HEADER = '''"""{doc}"""

import numpy as np

from mutagrad import fastmath
from mutagrad.compile import inlined, kernel

'''


class Printer:
    """Prints statements, and collects the constants and functions that they use."""

    def __init__(self, dtype: str) -> None:
        self.type = f"np.{TYPES[dtype]}"
        self.constants: dict[str, str] = {}
        self.functions: set[str] = set()

    def constant(self, value: float | bool) -> str:
        """A typed module-level constant: a bare literal would widen float32."""
        if isinstance(value, bool):
            return str(value)
        text = repr(value) if math.isfinite(value) else f'"{value}"'
        return self.constants.setdefault(text, f"C{len(self.constants)}")

    def expression(self, outputs: Iterable[Expr], names: dict[str, str], temporary: str = "t") -> list[str]:
        """Statements that compute `outputs`; the results' texts come last, in the same number."""
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
                code = self._apply(e, [text[a] for a in e.args])
                if uses[e] > 1:
                    variable = f"{temporary}{len(lines)}"
                    lines.append(f"{variable} = {code}")
                    code = variable
                text[e] = code
        return lines + [text[e] for e in outputs]

    def _apply(self, e: Expr, args: list[str]) -> str:
        forward = e.op.forward
        if forward is None:
            raise TypeError(f"{e.op.name} is written with other ops and must be expanded before printing")
        if isinstance(forward, str):
            return forward.format(*args)
        self.functions.add(forward.__name__)
        return f"{forward.__name__}({', '.join(args)})"

    def module(
        self, doc: str, function: str, args: Sequence[str], body: Sequence[str], fast: bool = False, loop: bool = True
    ) -> str:
        """The whole module of one kernel; only one with a loop is worth letting other threads run meanwhile."""
        lines = [f"{name} = inlined(fastmath.{name})" for name in sorted(self.functions)]
        lines += [f"{name} = {self.type}({text})" for text, name in self.constants.items()]
        if lines:
            lines.append("")
        lines += ["", f"@kernel(reassociate={fast}, release={loop})", f"def {function}({', '.join(args)}):"]
        lines += ["    " + line for line in body]
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


class Kernel:
    """One elementwise loop: `outputs` over `inputs`.

    Its variants differ in dtype, in which inputs are scalars, and in the depth of the loop: 0 for one flat
    loop over contiguous arrays, n for n nested loops over strided ones, None for no loop at all.
    """

    def __init__(self, title: str, inputs: Sequence[str], outputs: Sequence[Expr]) -> None:
        self.title = title
        self.inputs = tuple(inputs)
        self.outputs = [expand(e) for e in outputs]

    def source(self, dtype: str, arrays: Sequence[bool], depth: int | None) -> tuple[str, str]:
        """The name of the function and the text of its module."""
        printer = Printer(dtype)
        form = "scalar" if depth is None else f"strided{depth}" if depth else "flat"
        function = f"{self.title}_{form}"
        doc = f"{self.title}({', '.join(self.inputs)}): {'; '.join(map(repr, self.outputs))}"
        if depth is None:
            lines = printer.expression(self.outputs, dict(zip(self.inputs, self.inputs, strict=True)))
            cut = len(lines) - len(self.outputs)
            body = [*lines[:cut], f"return {', '.join(lines[cut:])}"]
            return function, printer.module(doc, function, self.inputs, body, loop=False)
        outs = [f"out{k}" for k in range(len(self.outputs))]
        index = ", ".join(f"i{d}" for d in range(max(depth, 1)))
        read = expr.free_names(self.outputs)
        loads = [f"{n}_i = {n}[{index}]" for n, a in zip(self.inputs, arrays, strict=True) if a and n in read]
        names = {n: f"{n}_i" if a else n for n, a in zip(self.inputs, arrays, strict=True)}
        lines = printer.expression(self.outputs, names)
        cut = len(lines) - len(outs)
        stores = [f"{out}[{index}] = {value}" for out, value in zip(outs, lines[cut:], strict=True)]
        body = _nest(outs[0], depth, [*loads, *lines[:cut], *stores])
        return function, printer.module(doc, function, [*outs, *self.inputs], body)


def _nest(array: str, depth: int, inner: Sequence[str]) -> list[str]:
    lines = []
    for d in range(max(depth, 1)):
        lines.append("    " * d + f"for i{d} in range({array}.shape[{d}]):")
    return lines + ["    " * max(depth, 1) + line for line in inner]


class ReductionKernel:
    """One reduction: combine along an axis, then finish.

    Its variants: "full" returns the reduction of a contiguous 1-D array; "rows" reduces each row of a 2-D
    array along its last axis; "columns" reduces along the first axis, row after row, so that it runs
    along memory.
    """

    BLOCK = 256

    def __init__(self, title: str, combine: Expr, init: float, finish: Expr, additive: bool) -> None:
        self.title, self.init, self.additive = title, init, additive
        self.combine, self.finish = expand(combine), expand(finish)

    def source(self, dtype: str, form: str) -> tuple[str, str]:
        """The name of the function and the text of its module."""
        printer = Printer(dtype)
        function = f"{self.title}_{form}"
        init, n = printer.constant(self.init), f"{printer.type}(n)"
        finish = printer.expression([self.finish], {"acc": "acc", "n": n})[-1]
        combine = printer.expression([self.combine], {"acc": "acc", "x": "x_"})[-1]
        if form == "columns":
            args = ["out", "x"]
            body = [
                "n = x.shape[0]",
                "for j in range(out.shape[0]):",
                f"    out[j] = {init}",
                "for i in range(n):",
                "    for j in range(out.shape[0]):",
                "        acc, x_ = out[j], x[i, j]",
                f"        out[j] = {combine}",
                "for j in range(out.shape[0]):",
                "    acc = out[j]",
                f"    out[j] = {finish}",
            ]
        else:
            element = "x[i]" if form == "full" else "x[k, i]"
            if self.additive:
                # Short blocks keep the rounding error near that of a pairwise sum.
                loop = [
                    f"total = {init}",
                    f"for start in range(0, n, {self.BLOCK}):",
                    f"    acc = {init}",
                    f"    for i in range(start, min(start + {self.BLOCK}, n)):",
                    f"        x_ = {element}",
                    f"        acc = {combine}",
                    "    total += acc",
                    "acc = total",
                ]
            else:
                loop = [f"acc = {init}", "for i in range(n):", f"    x_ = {element}", f"    acc = {combine}"]
            if form == "full":
                args, body = ["x"], ["n = x.shape[0]", *loop, f"return {finish}"]
            else:
                args = ["out", "x"]
                inner = [*loop, f"out[k] = {finish}"]
                body = ["n = x.shape[1]", "for k in range(out.shape[0]):", *("    " + line for line in inner)]
        doc = f"{self.title}: acc = {self.combine!r}; {self.finish!r}"
        return function, printer.module(doc, function, args, body, fast=self.additive)


def plain(function: str, args: Sequence[str]) -> tuple[str, str]:
    """A kernel that is a function of `fastmath`, called as it is."""
    printer = Printer("d")
    printer.functions.add(function)
    name = f"{function}_kernel"
    return name, printer.module(f"fastmath.{function}", name, args, [f"{function}({', '.join(args)})"])
