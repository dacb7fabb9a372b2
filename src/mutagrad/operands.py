"""What a user passed: tensors, arrays and numbers, their dtypes and shapes, checked and worded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .buffers import lock
from .errors import DTypeError, RangeError, ShapeError, describe, word
from .node import TensorState
from .ops import Elementwise, Entry
from .run import BOOL, FLOATS

SCALAR_TYPES: dict[str, np.dtype[Any]] = {"d0": np.dtype(np.float64), "f0": np.dtype(np.float32)}


def array_of(t: Any) -> np.ndarray:
    """The tensor's window; a scalar held by value moves into memory first."""
    if t._array is None:
        with lock:
            if t._array is None:
                t._array = np.array(t._value, SCALAR_TYPES[t._kind])
    return t._array


def dtype_of(t: Any) -> np.dtype[Any]:
    return SCALAR_TYPES[t._kind] if t._array is None else t._array.dtype


def shape_of(t: Any) -> tuple[int, ...]:
    return () if t._array is None else t._array.shape


def stretched(array: np.ndarray) -> bool:
    """Whether elements share memory along an axis."""
    return array.size > 0 and any(s == 0 and n > 1 for n, s in zip(array.shape, array.strides, strict=True))


def check_dtype(dtype: np.dtype[Any], op: str) -> None:
    """Refuse what no op can compute with, in one sentence."""
    if dtype.kind == "c":
        raise DTypeError(f"{op}: complex numbers are not supported; use real and imaginary parts as two tensors.")
    if dtype.kind not in "fiub":
        raise DTypeError(f"{op}: dtype {dtype} is not numeric; convert it, e.g. with np.asarray(values, float).")
    if not dtype.isnative:
        raise DTypeError(
            f"{op}: byte-swapped dtype {dtype.str!r} is not supported; "
            "convert it with a.astype(a.dtype.newbyteorder('='))."
        )
    if dtype.char == "g":
        raise DTypeError(f"{op}: extended precision ({dtype}) is not supported; use float64.")


def check_array(x: np.ndarray, op: str) -> None:
    """Refuse what an array is, in one sentence."""
    # There is one only where the module has been imported, and importing it here would take some 15 ms.
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(x, masked.MaskedArray):
        raise DTypeError(f"{op}: masked arrays are not supported; use .filled(value), or where(mask, ...).")
    check_dtype(x.dtype, op)


def operand(x: Any, op: str) -> Any:
    """What a user passed, as a Tensor, an ndarray or a Python number."""
    if isinstance(x, TensorState) or type(x) in (float, int, bool):
        return x
    if isinstance(x, np.ndarray):
        check_array(x, op)
        return x if type(x) is np.ndarray else x.view(np.ndarray)
    if isinstance(x, np.generic):
        check_dtype(x.dtype, op)
        return np.asarray(x)
    if isinstance(x, list | tuple):
        if any(isinstance(e, TensorState) for e in x):
            raise DTypeError(f"{op}: got a {type(x).__name__} of tensors; join them with mg.stack first.")
        try:
            made = np.asarray(x)
        except ValueError as error:
            raise ShapeError(f"{op}: {str(error).rstrip('.')}.") from None
        check_dtype(made.dtype, op)
        return made
    if isinstance(x, complex):
        check_dtype(np.dtype(complex), op)
    raise DTypeError(f"{op}: expected a tensor, an array or a number, got {describe(x)}.")


def raw(x: Any) -> Any:
    """The numbers of an operand: an array, or a Python number for scalars."""
    if isinstance(x, TensorState):
        return x._value if x._array is None else x._array
    return x


def dtype_spec(x: Any) -> Any:
    """An operand's dtype, or the Python type of a weak scalar."""
    if isinstance(x, TensorState):
        return dtype_of(x)
    if isinstance(x, np.ndarray):
        return x.dtype
    return BOOL if isinstance(x, bool) else type(x)  # Python's bool is not weak


_resolved: dict[Any, Any] = {}


def resolve(entry: Elementwise, specs: tuple[Any, ...]) -> tuple[np.dtype[Any] | None, np.dtype[Any]]:
    """By NumPy's rules: the dtype our kernel computes in (None: NumPy's ufunc does), and the result's."""
    key = (entry, specs)
    found = _resolved.get(key)
    if found is None:
        try:
            found = _resolved[key] = _resolve(entry, specs)
        except TypeError:
            raise DTypeError(f"{entry.name}: no rule for {', '.join(map(_say, specs))}.") from None
    return found


def _resolve(entry: Elementwise, specs: tuple[Any, ...]) -> tuple[np.dtype[Any] | None, np.dtype[Any]]:
    if entry.like == "derived":
        dtype = next((s for s in specs if isinstance(s, np.dtype) and s != BOOL), np.dtype(np.float64))
        return dtype, dtype
    # None stands for an argument left at its default: it has no say.
    counted = [s for s, o in zip(specs, entry.operands, strict=True) if o not in entry.masks and s is not None]
    if not any(isinstance(s, np.dtype) for s in counted):
        counted = [np.dtype(s) for s in counted]
    rule = entry.like
    if len(counted) < rule.nin:
        counted.append(int)
    loop = rule.resolve_dtypes((*counted[: rule.nin], *(None,) * rule.nout))
    for further in counted[rule.nin :]:
        loop = rule.resolve_dtypes((loop[-1], further, None))
    out = loop[-1]
    return (out if out in FLOATS and loop[0] == out else None), out


def _say(spec: Any) -> str:
    return str(spec) if isinstance(spec, np.dtype) else spec.__name__


def broadcast(name: str, values: Sequence[Any]) -> tuple[int, ...]:
    """The common shape, or a ShapeError that names the shapes."""
    shapes = [v.shape for v in values if isinstance(v, np.ndarray)]
    if not shapes:
        return ()
    first = shapes[0]
    if all(s == first for s in shapes):
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        said = " and ".join(str(tuple(s)) for s in shapes)
        raise ShapeError(f"{name}: shapes {said} do not broadcast.") from None


def bind(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name, defaults filled in."""
    try:
        named = {entry.keywords.get(k, k): v for k, v in kwargs.items()}
        if len(named) < len(kwargs):
            raise TypeError(f"{' and '.join(kwargs)} name one argument twice")
        bound = entry.signature.bind(*args, **named)
    except TypeError as error:
        raise DTypeError(f"{entry.call}: {error}.") from None
    bound.apply_defaults()
    return bound.arguments


def cast(value: Any, dtype: np.dtype[Any], mask: bool = False) -> Any:
    """A value in the dtype of the kernel; masks become bool, weak scalars floats."""
    if isinstance(value, np.ndarray):
        wanted = BOOL if mask else dtype
        return value if value.dtype == wanted else value.astype(wanted)
    try:
        return bool(value) if mask else float(value)
    except OverflowError:
        raise DTypeError(f"A Python {type(value).__name__} is out of range for {dtype}.") from None


def operands_of(entry: Elementwise, args: Sequence[Any], kwargs: dict[str, Any], op: str) -> tuple[list[Any], Any]:
    """The operands of an elementwise op, checked, and what `resolve` says of their dtypes."""
    if kwargs or len(args) != len(entry.operands):
        args = list(bind(entry, tuple(args), kwargs).values())
    if not entry.optional:
        operands = [operand(a, op) for a in args]
        return operands, resolve(entry, tuple([dtype_spec(a) for a in operands]))
    # An argument left at its default, or None, has no say in the dtype.
    args = [d if a is None else a for a, d in zip(args, entry.defaults, strict=True)]
    operands = [operand(a, op) for a in args]
    specs = [None if a is d else dtype_spec(a) for a, d in zip(operands, entry.defaults, strict=True)]
    return operands, resolve(entry, tuple(specs))


def static(value: Any) -> Any:
    """A static parameter without tensors: arrays and lists are copied, so they cannot change under the node."""
    if isinstance(value, TensorState):
        found = raw(value)
        return found.copy() if isinstance(found, np.ndarray) else found
    if type(value) in (list, tuple):
        return type(value)(map(static, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def in_words(op: Entry | str, operands: Sequence[Any], error: Exception) -> Exception:
    """NumPy's complaint, with the op and its arguments named."""
    name = op if isinstance(op, str) else op.name
    said = "; ".join(describe(a) if isinstance(a, TensorState | np.ndarray) else repr(a) for a in operands)
    kinds: list[tuple[type, type]] = [
        (IndexError, RangeError),
        (TypeError, DTypeError),
        (OverflowError, DTypeError),
        (ValueError, ShapeError),
    ]
    kind = next((ours for theirs, ours in kinds if isinstance(error, theirs)), ShapeError)
    text = " ".join(str(error).split()).rstrip(". ").removeprefix(f"{name}: ").removeprefix(f"{name}() ")
    return kind(word(f"{name}: {text}.", [f"given {said}"] if said else []))


def as_array(x: Any) -> np.ndarray:
    if isinstance(x, TensorState):
        return np.asarray(raw(x), dtype_of(x)) if x._array is None else x._array
    return np.asarray(x)
