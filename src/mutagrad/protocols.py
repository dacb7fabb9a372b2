"""NumPy's protocols on tensors: differentiable, value only, or an honest refusal."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from . import index, placement, record, write
from .errors import DTypeError, describe
from .modes import recording
from .node import TensorState, node_of
from .operands import dtype_of, raw, shape_of
from .ops import BY_NUMPY


def array_ufunc(ufunc: Any, method: str, inputs: Any, out: Any, where: Any, kwargs: Any) -> Any:
    name = ufunc.__name__
    entry = BY_NUMPY.get(ufunc)
    tracked = any(isinstance(a, TensorState) and node_of(a) is not None for a in inputs) and recording.get()
    if method == "__call__" and entry is not None:
        unknown = [k for k in kwargs if k not in entry.params]
        if unknown:
            raise DTypeError(
                f"np.{name} with {', '.join(unknown)}= is not supported on tensors; convert with .astype()."
            )
        if out is None:
            if where is not True:
                raise DTypeError(f"np.{name} with where= needs out=, whose other elements stay as they are.")
            return entry(*inputs, **kwargs)
        (target,) = out
        if not isinstance(target, TensorState):
            if tracked:
                raise DTypeError(
                    f"np.{name} cannot write a tracked result into a NumPy array, which holds no history; "
                    "wrap it with mg.asarray, or call without out=."
                )
            if where is not True:
                kwargs["where"] = _plain(where)
            return ufunc(*map(_plain, inputs), out=target, **kwargs)
        return write.apply(entry, target, inputs, f"{name}(out=)", where, **kwargs)
    if ufunc is np.divmod and method == "__call__" and out is None and where is True and not kwargs:
        return BY_NUMPY[np.floor_divide](*inputs), BY_NUMPY[np.remainder](*inputs)
    if method == "outer" and entry is not None and out is None and not kwargs:
        x, y = inputs
        return entry(BY_NUMPY[np.reshape](x, (*np.shape(x), *[1] * len(np.shape(y)))), y)
    found = BY_NUMPY.get(getattr(ufunc, method)) if method in ("reduce", "accumulate") else None
    if found is not None:
        given = {k: v for k, v in kwargs.items() if v is not np._NoValue and (v is not None or k == "axis")}
        given = {"axis": 0} | given | ({} if where is True else {"where": where})
        if out is not None:
            return write.into(found, out[0], inputs, given, f"{name}.{method}(out=)")
        return found(*inputs, **given)
    if method == "at" and isinstance(inputs[0], TensorState):
        if ufunc is np.add:
            index.add_at(*inputs)
            return None
        raise DTypeError(f"np.{name}.at on a tensor is not supported; np.add.at is.")
    if tracked:
        how = f"np.{name}" + ("" if method == "__call__" else f".{method}")
        raise DTypeError(f"{how} has no derivative here; use .detach() for its value without a gradient.")
    if out is not None:
        raise DTypeError(f"np.{name} with out= is not supported on tensors; assign its result with copy_.")
    if where is not True:
        kwargs["where"] = _plain(where)
    values = getattr(ufunc, method)(*map(_plain, inputs), **kwargs)
    if values is None:
        return None
    if isinstance(values, tuple):
        return tuple(record.new(np.asarray(v)) for v in values)
    return record.new(np.asarray(values))


def _plain(value: Any) -> Any:
    return np.asarray(raw(value)) if isinstance(value, TensorState) else value


def array_function(function: Any, args: Any, kwargs: Any) -> Any:
    entry = BY_NUMPY.get(function)
    if entry is None:
        special = _FUNCTIONS.get(function)
        if special is not None:
            return special(*args, **kwargs)
        name = f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)
        raise DTypeError(f"{name} is not supported on tensors; use .numpy() for its value without a gradient.")
    args, kwargs = _named(function, args, kwargs)
    out = kwargs.pop("out", None)
    known = {*entry.signature.parameters, *entry.keywords}
    kwargs = {k: v for k, v in kwargs.items() if v is not np._NoValue}
    if any(p.kind is p.VAR_KEYWORD for p in entry.signature.parameters.values()):
        known |= set(kwargs)
    unknown = {k: v for k, v in kwargs.items() if k not in known}
    for k, v in unknown.items():
        if not (v is None or k in _NO_MATTER or _is_default(function, k, v)):
            raise DTypeError(f"np.{function.__name__} with {k}={v!r} is not supported on tensors.")
        del kwargs[k]
    if out is not None:
        if not isinstance(out, TensorState):
            raise DTypeError(f"np.{function.__name__}: out= must be a Tensor here, got {describe(out)}.")
        return write.into(entry, out, args, kwargs, f"{function.__name__}(out=)")
    return entry(*args, **kwargs)


# What may be asked of NumPy and changes no number here.
_NO_MATTER = ("kind", "stable", "subok", "optimize", "overwrite_input", "assume_unique")


def _is_default(function: Any, name: str, value: Any) -> bool:
    """Whether an argument is what NumPy takes by itself, as order="C" is."""
    signature = _signature(function)
    default = signature.parameters[name].default if signature is not None and name in signature.parameters else None
    return default is value or (isinstance(value, str | bool) and default == value)


@functools.lru_cache(maxsize=256)
def _signature(function: Any) -> inspect.Signature | None:
    """NumPy's own signature, where it tells one that binds by name."""
    try:
        found = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    kinds = {p.kind for p in found.parameters.values()}
    return None if inspect.Parameter.VAR_POSITIONAL in kinds else found


def _named(function: Any, args: Any, kwargs: Any) -> tuple[Any, dict[str, Any]]:
    """Arguments by NumPy's names, since ours may stand in another order."""
    signature = _signature(function)
    if signature is None:
        return args, dict(kwargs)
    bound = dict(signature.bind(*args, **kwargs).arguments)
    bound.update(bound.pop("kwargs", {}))
    first, *rest = signature.parameters.values()
    inward = [p.name for p in rest if p.kind is p.POSITIONAL_ONLY and p.name in bound]
    return tuple(bound.pop(n) for n in (first.name, *inward)), bound


def _like(make: Callable[..., np.ndarray]) -> Callable[..., Any]:
    def function(x: Any, *args: Any, **kwargs: Any) -> Any:
        return record.new(make(_plain(x), *map(_plain, args), **{k: v for k, v in kwargs.items() if k != "subok"}))

    return function


def _value(function: Callable[..., Any]) -> Callable[..., Any]:
    def value(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})

    return value


# Functions of NumPy that ask for numbers or properties, not for a derivative.
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.shape: shape_of,
    np.ndim: lambda a: len(shape_of(a)),
    np.size: lambda a, axis=None: int(np.prod(shape_of(a))) if axis is None else shape_of(a)[axis],
    np.put: placement.put,
    np.put_along_axis: placement.put_along_axis,
    np.putmask: placement.putmask,
    np.place: placement.place,
    np.fill_diagonal: placement.fill_diagonal,
    np.copyto: placement.copyto,
    np.zeros_like: _like(np.zeros_like),
    np.ones_like: _like(np.ones_like),
    np.empty_like: _like(np.empty_like),
    np.full_like: _like(np.full_like),
    np.array_equal: _value(np.array_equal),
    np.allclose: _value(np.allclose),
    np.shares_memory: _value(np.shares_memory),
    np.may_share_memory: _value(np.may_share_memory),
    np.array_repr: lambda a, *_, **__: repr(a),
    np.array_str: lambda a, *_, **__: str(a),
    np.isscalar: lambda a: False,
    np.iscomplexobj: lambda a: False,
    np.result_type: lambda *args: np.result_type(*(dtype_of(a) if isinstance(a, TensorState) else a for a in args)),
}
