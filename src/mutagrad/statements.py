"""Hypothesis strategies for one statement of a random program, given the values that its variables have.

Ops are drawn from the table, so a new entry joins by itself. Operands outside of an op's domain are squashed into
it, and results that grow are scaled down: programs of any length stay where central differences tell something.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from .functions import FUNCTIONS
from .interpreter import Interpreter, Statement
from .modes import Switch, recording
from .operands import array_of
from .ops import OPS, Composite, Elementwise, Entry, Structural
from .strategies import advanced_indices, basic_indices, limits

ENTRIES: list[Any] = list({e.name: e for e in OPS.values() if e.differentiable}.values())
ELEMENTWISE = [e for e in ENTRIES if isinstance(e, Elementwise)]
# Most of any program is sums and products.
OFTEN = [OPS["multiply"], OPS["add"], OPS["multiply"], OPS["divide"]] * 3


def _plain_call(entry: Entry, operands: int) -> bool:
    """Whether an entry that is not elementwise can be called with `operands` arrays and nothing else."""
    others = [entry.signature.parameters[p] for p in entry.params]
    return (
        not isinstance(entry, Elementwise)
        and not entry.variadic
        and len(entry.operands) == operands
        and all(p.default is not p.empty for p in others)
    )


SINGLE = [e for e in ENTRIES if _plain_call(e, 1)]
PAIRS = [e for e in ENTRIES if _plain_call(e, 2)]
JOINS = [e for e in ENTRIES if e.sequence]
LARGE = 4.0  # results above are scaled down
NUMBERS = st.sampled_from([0.5, -0.7, 1.3, 0.25, -1.1])


def numpy_of(entry: Entry) -> Callable[..., Any]:
    """What NumPy calls an op. What it has not, the op itself computes, on plain arrays."""

    def compute(*args: Any, **kwargs: Any) -> np.ndarray:
        with Switch(recording, False):
            return np.array(array_of(FUNCTIONS[entry.name](*args, **kwargs)))

    return entry.numpy or compute


# Expressions


class Term(NamedTuple):
    """An expression: its text, the variables it reads, and its value by their arrays."""

    text: str
    reads: tuple[str, ...]
    value: Callable[..., Any]


def variable(name: str) -> Term:
    return Term(name, (name,), lambda array: array)


def constant(value: Any) -> Term:
    return Term(literal(value), (), lambda: value)


def applied(text: str, function: Callable[..., Any], *terms: Term) -> Term:
    """`function` of terms; their texts fill the placeholders of `text`."""

    def value(*arrays: Any) -> Any:
        rest = iter(arrays)
        return function(*[t.value(*[next(rest) for _ in t.reads]) for t in terms])

    reads = tuple(n for t in terms for n in t.reads)
    return Term(text.format(*(t.text for t in terms)), reads, value)


def literal(value: Any) -> str:
    """A value as Python."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.size == 0:
        return f"np.zeros({value.shape}, {value.dtype.name!r})"
    return f"np.array({value.tolist()})"


def index_text(key: Any) -> str:
    """An index as it stands between brackets."""
    if isinstance(key, tuple):
        return ", ".join(map(index_text, key)) + ("," if len(key) == 1 else "") if key else "()"
    if key is Ellipsis:
        return "..."
    if isinstance(key, slice):
        ends = ["" if e is None else str(e) for e in (key.start, key.stop)]
        return ":".join(ends) + ("" if key.step is None else f":{key.step}")
    return literal(key)


def part_of(array: np.ndarray, key: Any) -> np.ndarray:
    """What an index names; by a basic one always a view, also of a single element."""
    parts = key if isinstance(key, tuple) else (key,)
    basic = all(p is None or p is Ellipsis or isinstance(p, int | slice) for p in parts)
    dots = () if Ellipsis in [p for p in parts if not isinstance(p, np.ndarray)] else (Ellipsis,)
    return array[(*parts, *dots)] if basic else np.asarray(array[key])


def evaluate(term: Term, reference: Interpreter) -> Any:
    with np.errstate(all="ignore"):
        return term.value(*(reference[n] for n in term.reads))


def inside(value: Any, intervals: Sequence[tuple[float, float]]) -> bool:
    found = np.asarray(value)
    return bool(np.all(np.any([(found > low) & (found < high) for low, high in intervals], axis=0)))


def squashed(term: Term, reference: Interpreter, entry: Elementwise, k: int) -> Term:
    """The term, or a smooth function of it where it leaves the domain of an entry's operand."""
    if inside(evaluate(term, reference), entry.sample[k]):
        return term
    low, high = limits(entry, k, 2.0)
    middle, half = round((low + high) / 2, 3), round(0.4 * (high - low), 3)
    if not term.reads:
        return constant(round(middle + half * float(np.tanh(term.value())), 3))
    return applied(f"({middle} + {half} * mg.tanh({{}}))", lambda a: middle + half * np.tanh(a), term)


def scaled(term: Term, reference: Interpreter) -> Term | None:
    """The term, scaled down if its value is large; None if NumPy refuses it or its value is not finite."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the mean of nothing, which is left out below
            warnings.simplefilter("error", DeprecationWarning)  # the cross product of two-dimensional vectors
            found = evaluate(term, reference)
        value = np.asarray(found)
    except (ValueError, IndexError, TypeError, DeprecationWarning):
        return None
    if isinstance(found, tuple | list):  # unstack and its kin give several
        return None
    if value.size > 64 or value.ndim > 4 or value.dtype.kind != "f":
        return None
    top = float(np.max(np.abs(value), initial=0.0))
    if not top <= 1e6:
        return None
    if top <= LARGE:
        return term
    factor = float(f"{2 / top:.2g}")
    return applied(f"{{}} * {factor}", lambda a: a * factor, term)


def fits(reference: Interpreter, shape: tuple[int, ...], widen: bool = False) -> list[str]:
    """The variables that broadcast to a shape, or with it."""
    found = []
    for name, (array, *_) in reference.variables.items():
        try:
            if np.broadcast_shapes(array.shape, shape) == shape or widen:
                found.append(name)
        except ValueError:
            pass
    return found


def names_of(reference: Interpreter) -> st.SearchStrategy[str]:
    return st.sampled_from(list(reference.variables))


def _fresh(reference: Interpreter) -> str:
    return f"v{reference.count}"


def operands_of(draw: Any, reference: Interpreter, entry: Elementwise, first: str, whole: bool = False) -> list[Term]:
    """Terms for an entry's operands; the first that is no mask is a variable, or `first` itself if `whole`."""
    shape = reference[first].shape
    terms: list[Term] = []
    leading = next(k for k, o in enumerate(entry.operands) if o not in entry.masks)
    for k, o in enumerate(entry.operands):
        if o in entry.masks:
            terms.append(constant(draw(masks(shape))))
        elif k == leading:
            terms.append(variable(first) if whole else squashed(variable(first), reference, entry, k))
        else:
            names = fits(reference, shape, widen=not whole)
            other = draw(st.sampled_from(names).map(variable) | NUMBERS.map(constant))
            terms.append(squashed(other, reference, entry, k))
    return terms


def _call(entry: Entry, terms: Sequence[Term], options: dict[str, Any] | None = None, out: str = "") -> Term:
    given = "".join(f", {k}={v!r}" for k, v in (options or {}).items())
    places = ", ".join(["{}"] * len(terms))
    function = numpy_of(entry)
    return applied(f"mg.{entry.name}({places}{given}{out})", lambda *a: function(*a, **(options or {})), *terms)


def masks(shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    """Masks of the last axis of a shape."""
    bits = st.lists(st.booleans(), min_size=shape[-1], max_size=shape[-1]) if shape else st.booleans()
    return bits.map(lambda b: np.array(b, bool))


# Statements that bind a variable


def _bound(reference: Interpreter, term: Term | None, fallback: str, kind: str = "new") -> Statement:
    small = term and scaled(term, reference)
    if small is None:
        small = applied("{} * 0.5", lambda a: a * 0.5, variable(fallback))
    name = _fresh(reference)
    return Statement(f"{name} = {small.text}", kind if small is term else "new", name, small.reads, small.value)


@st.composite
def elementwise(draw: Any, reference: Interpreter) -> Statement:
    """An elementwise op of the table."""
    entry, first = draw(st.sampled_from(ELEMENTWISE + OFTEN)), draw(names_of(reference))
    return _bound(reference, _call(entry, operands_of(draw, reference, entry, first)), first)


@st.composite
def single(draw: Any, reference: Interpreter) -> Statement:
    """An op on one array: a reduction, a running sum, a sort, a view."""
    entry, first = draw(st.sampled_from(SINGLE)), draw(names_of(reference))
    options = {}
    ndim = reference[first].ndim
    if "axis" in entry.params and ndim and draw(st.booleans()):
        options["axis"] = draw(st.integers(-ndim, ndim - 1))
    if "keepdims" in entry.params and draw(st.booleans()):
        options["keepdims"] = True
    # A composite over views is a view where NumPy's result is one.
    view = isinstance(entry, Composite) or (isinstance(entry, Structural) and entry.view)
    return _bound(reference, _call(entry, [variable(first)], options), first, "view" if view else "new")


@st.composite
def pair(draw: Any, reference: Interpreter) -> Statement:
    """An op on two arrays: a matrix product."""
    entry, first = draw(st.sampled_from(PAIRS)), draw(names_of(reference))
    options = []
    for name in reference.variables:
        term = scaled(_call(entry, [variable(first), variable(name)]), reference)
        options += [] if term is None else [term]
    return _bound(reference, draw(st.sampled_from(options)) if options else None, first)


@st.composite
def join(draw: Any, reference: Interpreter) -> Statement:
    """Concatenate, stack and their kin."""
    entry, first = draw(st.sampled_from(JOINS)), draw(names_of(reference))
    alike = [n for n in reference.variables if reference[n].ndim == reference[first].ndim]
    names = [first, *draw(st.lists(st.sampled_from(alike), max_size=2))]
    options = {"axis": draw(st.integers(-1, 1))} if "axis" in entry.params and draw(st.booleans()) else {}
    function = numpy_of(entry)
    given = "".join(f", {k}={v}" for k, v in options.items())
    text = f"mg.{entry.name}([{', '.join(['{}'] * len(names))}]{given})"
    return _bound(reference, applied(text, lambda *a: function(a, **options), *map(variable, names)), first)


@st.composite
def view(draw: Any, reference: Interpreter) -> Statement:
    """A view: a basic index, axes permuted, reshaped, stretched."""
    name = draw(names_of(reference))
    array = reference[name]
    shape = array.shape
    axes = draw(st.permutations(range(array.ndim)))
    key = draw(basic_indices(shape))
    forms: list[tuple[str, Callable[..., Any]]] = [
        (f"{{}}[{index_text(key)}]", lambda a: a[key]),
        ("{}.T", lambda a: a.T),
        ("{}.reshape(-1)", lambda a: a.reshape(-1)),
        (f"mg.transpose({{}}, {axes})", lambda a: np.transpose(a, axes)),
        ("mg.expand_dims({}, 0)", lambda a: np.expand_dims(a, 0)),
        (f"mg.broadcast_to({{}}, {(2, *shape)})", lambda a: np.broadcast_to(a, (2, *shape))),
        ("{}[...]", lambda a: a[...]),
    ]
    if array.size % 2 == 0:
        forms.append(("{}.reshape(2, -1)" if array.size else "{}.reshape(2, 0)", lambda a: a.reshape(2, a.size // 2)))
    if array.ndim > 1:
        forms.append(("mg.diagonal({}, 1)", lambda a: np.diagonal(a, 1)))
    text, compute = draw(st.sampled_from(forms[:1] * 3 + forms[1:]))
    return _bound(reference, applied(text, compute, variable(name)), name, "view")


@st.composite
def gather(draw: Any, reference: Interpreter) -> Statement:
    """An advanced index; where it turns out to have slices only, a view."""
    name = draw(names_of(reference))
    key = draw(advanced_indices(reference[name].shape))
    return _bound(reference, applied(f"{{}}[{index_text(key)}]", lambda a: a[key], variable(name)), name, "view")


@st.composite
def detach(draw: Any, reference: Interpreter) -> Statement:
    """`detach()`: the same memory without history."""
    name, made = draw(names_of(reference)), _fresh(reference)
    return Statement(f"{made} = {name}.detach()", "detach", made, (name,))
