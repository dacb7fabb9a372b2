"""Functions, methods and docstrings, derived from the table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import inf
from typing import Any

from . import write
from .errors import DTypeError
from .expr import infix
from .fast import binary_of, unary_of
from .ops import OPS, Composite, Elementwise, Entry, Reduction, Structural
from .ops.entry import Contraction
from .record import elementwise
from .tensors import Tensor

# Functions and methods, derived from the table


def function_of(entry: Entry) -> Callable[..., Any]:
    """The public function of an entry, with its signature and docstring."""

    if isinstance(entry, Elementwise) and len(entry.operands) == 1:
        function = unary_of(entry, into=into(entry))
    elif isinstance(entry, Elementwise) and len(entry.operands) == 2:
        function = binary_of(entry, into=into(entry))
    elif isinstance(entry, Elementwise):
        written = into(entry)

        def function(*args: Any, out: Any = None, where: Any = True, **kwargs: Any) -> Any:  # type: ignore[misc]
            if out is not None or where is not True:
                return written(args, out, where, **kwargs)
            return elementwise(entry, *args, **kwargs)

    else:
        positional = [n for n, p in entry.public.parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        position = list(entry.public.parameters).index("out") if "out" in positional else sys.maxsize

        def function(*args: Any, **kwargs: Any) -> Any:  # type: ignore[misc]
            out = kwargs.pop("out", None)
            if len(args) > position:
                args, out = (*args[:position], *args[position + 1 :]), args[position]
            if out is None:
                return entry(*args, **kwargs)
            return write.into(entry, out, args, kwargs, f"{entry.name}(out=)")

    function.__name__ = function.__qualname__ = entry.name
    function.__doc__ = document(entry)
    function.__signature__ = entry.public  # type: ignore[attr-defined]
    function.__module__ = "mutagrad"
    return function


def into(entry: Elementwise) -> Callable[..., Any]:
    """How an elementwise op writes its result into what `out=` names, where `where=` holds."""

    def written(operands: tuple[Any, ...], out: Any, where: Any, **kwargs: Any) -> Any:
        if out is None:
            raise DTypeError(f"{entry.name}: where= needs out=, whose other elements stay as they are.")
        return write.apply(entry, out, operands, f"{entry.name}(out=)", where, **kwargs)

    return written


# What the parameters that many ops share may be.
STATIC = {
    "axis": "int, tuple of int or None",
    "dtype": "floating dtype, computed in",
    "keepdims": "bool",
    "where": "mask, array or tensor",
    "initial": "number or scalar tensor",
}


def document(entry: Entry) -> str:
    """An entry's docstring: the sentence, parameters, errors, what is kept, conventions, an example."""
    lines = [entry.doc, "", "Parameters", "----------"]
    for name, p in entry.signature.parameters.items():
        kind = "tensor, array or number, of any shape" if name in entry.operands else STATIC.get(name, "static")
        if entry.variadic and name == entry.operands[0]:
            kind = "tensors or arrays" if p.kind is p.VAR_POSITIONAL else "sequence of tensors or arrays"
        lines.append(f"{name} : {kind}" + ("" if p.default is p.empty else f", default {p.default}"))
    if isinstance(entry, Elementwise) or "out" in entry.public.parameters:
        lines += ["out : Tensor, optional", "    Write the result there, under the in-place contract."]
    shape = "Of the operands' broadcast shape." if isinstance(entry, Elementwise) else "Of the shape that NumPy gives."
    lines += ["", "Returns", "-------", "Tensor", f"    {shape} Dtypes follow NumPy."]
    lines += ["", "Raises", "------", "ShapeError, DTypeError, RangeError", "    If the arguments do not fit."]
    if said := formula(entry):
        lines += ["", f"Cotangents: {said}."]
    lines += ["", f"Keeps for its gradient: {kept_names(entry)}."]
    if domain_names(entry):
        lines += [f"Domain: {domain_names(entry)}."]
    if entry.conventions:
        lines += [f"Convention: {entry.conventions}."]
    code, shown = example(entry)
    prompt = ">" * 3
    lines += ["", "Examples", "--------", f"{prompt} import numpy as np, mutagrad as mg", f"{prompt} {code}", shown]
    return "\n".join(lines)


def example(entry: Entry) -> tuple[str, str]:
    """An expression that uses the op, and what it shows."""
    if entry.example[0]:
        return entry.example
    if isinstance(entry, Elementwise):
        values = [f"mg.tensor([{0.25 * (k + 1)}, {0.5 * (k + 1)}])" for k in range(len(entry.operands))]
        return f"mg.{entry.name}({', '.join(values)}).shape", "(2,)"
    return f"mg.{entry.name}(mg.ones((2, 3)), axis=1).shape", "(2,)"


def formula(entry: Entry) -> str:
    """The cotangents of an entry's operands, in words where they are no formula."""
    if not entry.differentiable:
        return ""
    if isinstance(entry, Elementwise):
        outputs = entry.plan((True,) * len(entry.operands)).outputs
        return ", ".join("0" if e is None else infix(e) for e in outputs)
    if isinstance(entry, Reduction):
        return ", ".join("0" if e is None else infix(e) for e in entry.plan.outputs)
    if not isinstance(entry, Structural):
        return "of its parts"
    if isinstance(entry, Contraction) and len(entry.operands) > 1:
        return entry.formula or "g times the others, summed likewise"
    return entry.formula or ("a view's: g, at the same elements" if entry.view else "g, moved back")


def kept_names(entry: Entry) -> str:
    """What an entry's derivative keeps, in words."""
    if not entry.differentiable:
        return "nothing, it is not differentiable"
    if isinstance(entry, Composite):
        return "what its parts keep"
    if isinstance(entry, Elementwise):
        kept = entry.plan((True,) * len(entry.operands)).keep
        names = [n for n in (*entry.operands, "out") if n in kept]
    elif isinstance(entry, Structural):
        data = {*entry.operands, "out"}
        given = {*entry.params, "g", "i", "shapes", "out"} | {f"{o}_shape" for o in entry.operands}
        reads = {r for read in entry.reads.values() for r in read}
        names = [n for n in (*entry.operands, "out") if n in reads & data] + sorted(reads - given - data)
        names += sorted(reads & {"indices", "key", "condition"})
    else:
        names = [n for n in entry.plan.keep if n != "n"]  # type: ignore[attr-defined]
    return ", ".join("its result" if n == "out" else n for n in names) or "nothing"


def domain_names(entry: Entry) -> str:
    """Where an entry is real and differentiable, in words; nothing where that is everywhere."""
    found = []
    for name, intervals in zip(entry.operands, getattr(entry, "domain", ()), strict=False):
        (low, _), (_, high) = intervals[0], intervals[-1]
        found += [f"{name} != {end:g}" for _, end in intervals[:-1]]
        if (low, high) != (-inf, inf):
            found.append((f"{low:g} < " if low > -inf else "") + name + (f" < {high:g}" if high < inf else ""))
    return ", ".join(found)


def _method(entry: Entry) -> Callable[..., Any]:
    function = FUNCTIONS[entry.name]
    if isinstance(entry, Elementwise) and len(entry.operands) == 1:
        return function
    place = list(entry.signature.parameters).index(entry.operands[0])

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if place:  # compress(condition, a): the tensor stands second
            if len(args) < place:
                return function(*args, **{entry.operands[0]: self}, **kwargs)
            return function(*args[:place], self, *args[place:], **kwargs)
        # Only the function knows of `out`, which stands behind another argument or has its name.
        if len(args) > 1 or "out" in kwargs:
            return function(self, *args, **kwargs)
        return entry(self, *args, **kwargs)

    if entry.name in ("reshape", "transpose", "squeeze", "flip"):

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            # NumPy's methods also take the sequence as separate arguments: x.reshape(2, 3).
            if len(args) > 1:
                args = (args,)
            return entry(self, *args, **kwargs)

    method.__name__, method.__doc__ = entry.name, function.__doc__
    return method


def _inplace_method(entry: Entry) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return write.apply(entry, self, (self, *args), **kwargs)

    method.__name__ = f"{entry.name}_"
    method.__doc__ = (
        f"`{entry.call}` written into this tensor; returns it.\n\n"
        "Raises\n------\nInplaceError\n    If the in-place contract refuses the write; nothing has changed then."
    )
    return method


# Public functions by every public name.
FUNCTIONS: dict[str, Callable[..., Any]] = {}
for _name, _entry in OPS.items():
    FUNCTIONS[_name] = FUNCTIONS[_entry.name] if _entry.name in FUNCTIONS else function_of(_entry)


def _install() -> None:
    for name, entry in OPS.items():
        if entry.method and not hasattr(Tensor, name):
            setattr(Tensor, name, _method(entry))
        if entry.inplace:
            setattr(Tensor, f"{name}_", _inplace_method(entry))


_install()
