"""Scalar expressions: build, simplify, find free names, substitute, differentiate.

A partial derivative in a rule sheet is a Python function written with ops. Called with expressions it
returns an expression, and the names that the simplified expression still reads are the values that the
derivative keeps. Equal expressions are one object, so common subexpressions are shared by construction.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol
from weakref import WeakValueDictionary


class Op(Protocol):
    """What an expression needs of a table entry."""

    name: str

    def pull(self, g: Expr, args: Sequence[Expr], out: Expr) -> Sequence[Expr | None]:
        """The cotangent of each argument, given the cotangent `g` of the result."""


# The entries that Python's own operators stand for, filled by the rule sheets: "+" -> add.
SYNTAX: dict[str, Any] = {}

_interned: WeakValueDictionary[tuple[Any, ...], Expr] = WeakValueDictionary()


class Expr:
    """A scalar expression: a name, a constant, or an op applied to expressions."""

    __slots__ = ("__weakref__", "args", "op", "value")
    op: Any
    args: tuple[Expr, ...]
    value: Any

    def __add__(self, other: Any) -> Expr:
        return SYNTAX["+"](self, other)

    def __radd__(self, other: Any) -> Expr:
        return SYNTAX["+"](other, self)

    def __sub__(self, other: Any) -> Expr:
        return SYNTAX["-"](self, other)

    def __rsub__(self, other: Any) -> Expr:
        return SYNTAX["-"](other, self)

    def __mul__(self, other: Any) -> Expr:
        return SYNTAX["*"](self, other)

    def __rmul__(self, other: Any) -> Expr:
        return SYNTAX["*"](other, self)

    def __truediv__(self, other: Any) -> Expr:
        return SYNTAX["/"](self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return SYNTAX["/"](other, self)

    def __pow__(self, other: Any) -> Expr:
        return SYNTAX["**"](self, other)

    def __neg__(self) -> Expr:
        return SYNTAX["neg"](self)

    def __lt__(self, other: Any) -> Expr:
        return SYNTAX["<"](self, other)

    def __le__(self, other: Any) -> Expr:
        return SYNTAX["<="](self, other)

    def __gt__(self, other: Any) -> Expr:
        return SYNTAX[">"](self, other)

    def __ge__(self, other: Any) -> Expr:
        return SYNTAX[">="](self, other)

    def __and__(self, other: Any) -> Expr:
        return SYNTAX["&"](self, other)

    def __or__(self, other: Any) -> Expr:
        return SYNTAX["|"](self, other)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value: write where(condition, a, b)")

    def __repr__(self) -> str:
        if self.op is None:
            return str(self.value)
        return f"{self.op.name}({', '.join(map(repr, self.args))})"


def _intern(op: Any, args: tuple[Expr, ...], value: Any) -> Expr:
    # repr() tells -0.0 from 0.0 and makes nan equal to itself.
    key = (op, args) if op is not None else (type(value), repr(value))
    found = _interned.get(key)
    if found is None:
        found = Expr()
        found.op, found.args, found.value = op, args, value
        _interned[key] = found
    return found


class _Symbol(str):
    """The text of a free name, told apart from constants by its type."""


def name(text: str) -> Expr:
    """The free name `text`."""
    return _intern(None, (), _Symbol(text))


def const(value: float | bool) -> Expr:
    """A constant."""
    return _intern(None, (), value if isinstance(value, bool) else float(value))


def is_name(e: Expr) -> bool:
    return e.op is None and isinstance(e.value, _Symbol)


def is_const(e: Expr, value: float | None = None) -> bool:
    return e.op is None and not isinstance(e.value, _Symbol) and (value is None or e.value == value)


def lift(value: Any) -> Expr:
    """Turn a number into a constant, leave an expression as it is."""
    return value if isinstance(value, Expr) else const(value)


def apply(op: Op, args: Iterable[Any]) -> Expr:
    """Apply an op, simplifying what is exact in IEEE arithmetic."""
    lifted = tuple(lift(a) for a in args)
    simpler = _simplify(op, lifted)
    return _intern(op, lifted, None) if simpler is None else simpler


def _finite(e: Expr) -> bool:
    """True if `e` is finite whatever the names in it hold."""
    if e.op is None:
        return is_const(e) and math.isfinite(e.value)
    return e.op.name == "where" and _finite(e.args[1]) and _finite(e.args[2])


def _simplify(op: Op, args: tuple[Expr, ...]) -> Expr | None:
    a = args[0]
    b = args[1] if len(args) > 1 else a
    match op.name:
        case "multiply":
            if is_const(a) and is_const(b):
                return const(a.value * b.value)
            if is_const(a, 1):
                return b
            if is_const(b, 1):
                return a
            if is_const(a, -1):
                return -b
            if is_const(b, -1):
                return -a
        case "add" if is_const(a) and is_const(b):
            return const(a.value + b.value)
        case "subtract" if is_const(b) and (is_const(a) or b.value == 0):
            return const(a.value - b.value) if is_const(a) else a
        case "divide" if is_const(b, 1):
            return a
        case "negative":
            if is_const(a):
                return const(-a.value)
            if a.op is not None and a.op.name == "negative":
                return a.args[0]
        case "power" if is_const(b, 1):
            return a
        case "where":
            if args[1] is args[2]:
                return args[1]
            if is_const(a):
                return args[1] if a.value else args[2]
        case "guarded_product":
            return _simplify_guarded(a, b)
    return None


def _simplify_guarded(g: Expr, p: Expr) -> Expr | None:
    """The guard is dropped where the partial is finite or the cotangent is not zero; signs move outwards."""
    if _finite(p) or (is_const(g) and g.value != 0):
        return g * p
    for factor, other in ((p, g), (g, p)):
        if factor.op is not None and factor.op.name == "negative":
            inner = factor.args[0]
            return -(zmul(other, inner) if factor is p else zmul(inner, other))
    return None


def zmul(g: Any, p: Any) -> Expr:
    """The guarded product: zero where the cotangent `g` is zero, also if `p` is not finite."""
    return SYNTAX["zmul"](g, p)


def walk(outputs: Iterable[Expr]) -> Iterator[Expr]:
    """Every subexpression once, arguments before what uses them; iterative, so depth is no limit."""
    seen: set[Expr] = set()
    stack = [(e, False) for e in reversed(list(outputs))]
    while stack:
        e, ready = stack.pop()
        if ready:
            yield e
        elif e not in seen:
            seen.add(e)
            stack.append((e, True))
            stack.extend((a, False) for a in reversed(e.args) if a not in seen)


def free_names(outputs: Iterable[Expr]) -> list[str]:
    """The names that the expressions read, in order of first use."""
    return [str(e.value) for e in walk(outputs) if is_name(e)]


def infix(e: Expr) -> str:
    """The expression as a person writes it, guards left out."""
    symbols = {op: symbol for symbol, op in SYNTAX.items()} | {SYNTAX["zmul"]: "*"}
    text: dict[Expr, str] = {}
    for s in walk([e]):
        args = [text[a] for a in s.args]
        if s.op is None:
            text[s] = f"{s.value:g}" if is_const(s) else str(s.value)
        elif s.op not in symbols:
            text[s] = f"{s.op.name}({', '.join(args)})"
        else:
            text[s] = f"(-{args[0]})" if len(args) == 1 else f"({args[0]} {symbols[s.op]} {args[1]})"
    # Parsed and printed again, it has only the parentheses it needs.
    return ast.unparse(ast.parse(text[e], mode="eval"))


def substitute(e: Expr, values: dict[str, Expr]) -> Expr:
    """Replace free names."""
    done: dict[Expr, Expr] = {}
    for s in walk([e]):
        if is_name(s):
            done[s] = values.get(s.value, s)
        else:
            done[s] = s if s.op is None else apply(s.op, [done[a] for a in s.args])
    return done[e]


def pull(out: Expr, g: Expr, wrt: Sequence[str]) -> list[Expr | None]:
    """Differentiate in reverse: the cotangents of the names `wrt`, given the cotangent `g` of `out`.

    None stands for a derivative that is zero everywhere.
    """
    order = list(walk([out]))
    wanted = {e for e in order if is_name(e) and e.value in wrt}
    depends: set[Expr] = set(wanted)
    for e in order:
        if any(a in depends for a in e.args):
            depends.add(e)
    cotangents: dict[Expr, Expr] = {out: g}
    for e in reversed(order):
        if e.op is None or e not in depends or e not in cotangents:
            continue
        for a, c in zip(e.args, e.op.pull(cotangents[e], e.args, e), strict=True):
            if c is not None and a in depends:
                cotangents[a] = cotangents[a] + c if a in cotangents else c
    # By their text: two threads that meet a new name at once make two of it.
    found = {str(e.value): cotangents.get(e) for e in wanted}
    return [found.get(w) for w in wrt]
