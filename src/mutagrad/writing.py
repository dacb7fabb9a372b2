"""Hypothesis strategies for the statements of a random program that write, drop or differentiate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .interpreter import Interpreter, Statement
from .ops import OPS
from .statements import (
    ELEMENTWISE,
    NUMBERS,
    Term,
    constant,
    fits,
    index_text,
    inside,
    literal,
    masks,
    numpy_of,
    operands_of,
    part_of,
    squashed,
    variable,
)
from .strategies import advanced_indices, basic_indices

AUGMENTED = {"add": "+=", "subtract": "-=", "multiply": "*=", "divide": "/="}
HUGE = 20.0  # no write makes anything larger


def tame(value: Any) -> bool:
    """Whether numbers are finite and not too large."""
    return bool(np.all(np.abs(value) <= HUGE))


def _written(
    reference: Interpreter, text: str, name: str, compute: Callable[..., Any], *terms: Term, **options: Any
) -> Statement:
    """A write if its result stays small, else the target is scaled down."""

    def change(target: np.ndarray, *arrays: Any) -> None:
        rest = iter(arrays)
        compute(target, *[t.value(*[next(rest) for _ in t.reads]) for t in terms])

    reads = tuple(n for t in terms for n in t.reads)
    trial = reference[name].copy()
    try:
        with np.errstate(all="ignore"):
            change(trial, *(reference[n].copy() for n in reads))
        good = tame(trial)
    except (ValueError, IndexError, TypeError):
        good = False
    if good:
        return Statement(text.format(*(t.text for t in terms)), "write", name, reads, change, **options)
    return _scaled_down(name)


def _scaled_down(name: str) -> Statement:
    return Statement(f"{name} *= 0.25", "write", name, (), lambda target: np.multiply(target, 0.25, out=target))


def _into(function: Callable[..., Any]) -> Callable[..., None]:
    def compute(target: np.ndarray, *operands: Any) -> None:
        value = function(*operands)
        if value.ndim > target.ndim:
            raise ValueError("copyto would drop axes of length 1, which no ufunc does")
        np.copyto(target, value, casting="same_kind")

    return compute


def _targets(reference: Interpreter) -> st.SearchStrategy[str]:
    """Variables to write to: seldom a leaf or a view of one, since most such writes are refused."""
    names = list(reference.variables)
    return st.sampled_from([n for n in names if not reference.variables[n].memory.leaf] * 4 + names)


def _value(draw: Any, reference: Interpreter, shape: tuple[int, ...]) -> Term:
    """What can be written to a window of a shape."""
    numbers = NUMBERS.map(constant)
    names = fits(reference, shape)
    return draw(st.sampled_from(names).map(variable) | numbers if names else numbers)


@st.composite
def inplace(draw: Any, reference: Interpreter) -> Statement:
    """An in-place method of the table."""
    entry = draw(st.sampled_from([e for e in ELEMENTWISE if not e.masks]))
    name = draw(_targets(reference))
    terms = operands_of(draw, reference, entry, name, whole=True)[1:]
    if not inside(reference[name], entry.sample[0]):
        entry, terms = OPS["tanh"], []
    function = numpy_of(entry)
    text = f"{name}.{entry.name}_({', '.join(['{}'] * len(terms))})"
    return _written(reference, text, name, lambda t, *a: _into(function)(t, t.copy(), *a), *terms)


@st.composite
def augmented(draw: Any, reference: Interpreter) -> Statement:
    """`x += y` and its kin, of a variable or of a part of it."""
    op = draw(st.sampled_from(list(AUGMENTED)))
    name = draw(_targets(reference))
    shape = reference[name].shape
    key = draw(st.none() | basic_indices(shape, newaxis=False) | advanced_indices(shape))
    where = name if key is None else f"{name}[{index_text(key)}]"
    seen = reference[name] if key is None else np.asarray(reference[name][key])
    value = _value(draw, reference, seen.shape)
    value = squashed(value, reference, OPS[op], 1)
    ufunc = OPS[op].ufunc

    def compute(target: np.ndarray, operand: Any) -> None:
        part = Ellipsis if key is None else key
        found = part_of(target, part)
        if np.may_share_memory(found, target):
            ufunc(found, operand, out=found, casting="same_kind")
        else:
            target[part] = ufunc(found, operand)

    window = None if key is None else lambda a: part_of(a, key)
    return _written(reference, f"{where} {AUGMENTED[op]} {{}}", name, compute, value, window=window)


@st.composite
def product(draw: Any, reference: Interpreter) -> Statement:
    """`x @= y`."""
    names = {n: v.array.shape for n, v in reference.variables.items() if v.array.ndim}
    name = draw(st.sampled_from(list(names) or list(reference.variables)))
    square = [n for n, shape in names.items() if name in names and shape == names[name][-1:] * 2]
    if not square:
        return _scaled_down(name)
    other = draw(st.sampled_from(square))
    return _written(reference, f"{name} @= {{}}", name, lambda t, y: np.copyto(t, np.matmul(t, y)), variable(other))


@st.composite
def out(draw: Any, reference: Interpreter) -> Statement:
    """An op with `out=`, now and then with `where=`; a sum with `out=`."""
    name = draw(_targets(reference))
    shape = reference[name].shape
    sums = [n for n, v in reference.variables.items() if v.array.ndim and v.array.shape[1:] == shape]
    form = draw(st.sampled_from(["mg", "np", "where", "sum"]))
    if form == "sum" and sums:
        other = draw(st.sampled_from(sums))
        text = f"np.sum({{}}, axis=0, out={name})"
        return _written(reference, text, name, _into(lambda a: np.sum(a, axis=0)), variable(other), cuts=True)
    entry = draw(st.sampled_from(ELEMENTWISE))
    first = draw(st.sampled_from(fits(reference, shape)))
    terms = operands_of(draw, reference, entry, first)
    places = ", ".join(["{}"] * len(terms))
    function = numpy_of(entry)
    if form == "where" and entry.ufunc:
        mask = draw(masks(shape))
        text = f"np.{entry.ufunc.__name__}({places}, out={name}, where={literal(mask)})"
        return _written(
            reference, text, name, lambda t, *a: np.copyto(t, function(*a), where=mask, casting="same_kind"), *terms
        )
    spelled = f"np.{entry.ufunc.__name__}" if entry.ufunc and form == "np" else f"mg.{entry.name}"
    return _written(reference, f"{spelled}({places}, out={name})", name, _into(function), *terms, cuts=True)


@st.composite
def assign(draw: Any, reference: Interpreter) -> Statement:
    """Item assignment."""
    name = draw(_targets(reference))
    shape = reference[name].shape
    key = draw(basic_indices(shape, newaxis=False) | advanced_indices(shape))
    value = _value(draw, reference, np.asarray(reference[name][key]).shape)

    def compute(target: np.ndarray, operand: Any) -> None:
        target[key] = operand

    text = f"{name}[{index_text(key)}] = {{}}"
    return _written(
        reference, text, name, compute, value, window=lambda a: part_of(a, key), cuts=True, itself=bool(value.reads)
    )


@st.composite
def add_at(draw: Any, reference: Interpreter) -> Statement:
    """`add_at`: repeated indices accumulate."""
    name = draw(_targets(reference))
    key = draw(advanced_indices(reference[name].shape))
    value = _value(draw, reference, np.asarray(reference[name][key]).shape)
    spelled = draw(st.sampled_from(["mg.add_at", "np.add.at"]))
    text = f"{spelled}({name}, np.s_[{index_text(key)}], {{}})"
    return _written(reference, text, name, lambda t, v: np.add.at(t, key, v), value, window=lambda a: part_of(a, key))


@st.composite
def overwrite(draw: Any, reference: Interpreter) -> Statement:
    """`copy_`, `fill_`, `zero_`, `masked_fill_`."""
    name = draw(_targets(reference))
    shape = reference[name].shape
    form = draw(st.sampled_from(["copy_", "fill_", "zero_", "masked_fill_"]))
    if form == "zero_":
        return _written(reference, f"{name}.zero_()", name, lambda t: t.fill(0.0), cuts=True)
    if form == "copy_":
        value = _value(draw, reference, shape)
        return _written(reference, f"{name}.copy_({{}})", name, np.copyto, value, cuts=True, itself=bool(value.reads))
    value = _value(draw, reference, ())
    if form == "fill_":
        return _written(reference, f"{name}.fill_({{}})", name, np.copyto, value, cuts=True, itself=bool(value.reads))
    mask = draw(masks(shape))
    text = f"{name}.masked_fill_({literal(mask)}, {{}})"
    full = np.broadcast_to(mask, shape)
    return _written(
        reference, text, name, lambda t, v: np.copyto(t, v, where=mask), value, window=lambda a: a[full], cuts=True
    )


# Statements about the graph


@st.composite
def drop(draw: Any, reference: Interpreter) -> Statement:
    """`del`: what nobody refers to is kept no longer."""
    name = draw(st.sampled_from([n for n, (_, memory, _) in reference.variables.items() if n.startswith("v")]))
    return Statement(f"del {name}", "drop", name)


@st.composite
def backward(draw: Any, reference: Interpreter) -> Statement:
    """A backward in the middle of the program."""
    ready = [n for n, v in reference.variables.items() if v.memory.history is not None and not reference.spent(n)]
    name, retain = draw(st.sampled_from(ready)), draw(st.booleans())
    return Statement(
        f"weigh({name}).backward({'retain_graph=True' if retain else ''})", "backward", name, retain=retain
    )
