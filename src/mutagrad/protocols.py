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
from .ops import BY_NUMPY, OPS


def array_ufunc(ufunc: Any, method: str, inputs: Any, out: Any, where: Any, kwargs: Any) -> Any:
    name = ufunc.__name__
    entry = BY_NUMPY.get(ufunc)
    tracked = any(isinstance(a, TensorState) and node_of(a) is not None for a in inputs) and recording.get()
    if method == "__call__" and entry is not None:
        if kwargs:
            raise DTypeError(
                f"np.{name} with {', '.join(kwargs)}= is not supported on tensors; convert with .astype()."
            )
        if out is None:
            if where is not True:
                raise DTypeError(f"np.{name} with where= needs out=, whose other elements stay as they are.")
            return entry(*inputs)
        (target,) = out
        if not isinstance(target, TensorState):
            if tracked:
                raise DTypeError(
                    f"np.{name} cannot write a tracked result into a NumPy array, which holds no history; "
                    "wrap it with mg.asarray, or call without out=."
                )
            return ufunc(*map(_plain, inputs), out=target, where=_plain(where))
        return write.apply(entry, target, inputs, f"{name}(out=)", where)
    if method == "reduce" and (found := _REDUCE.get(ufunc)) is not None:
        return _reduce(found, name, inputs, out, where, kwargs)
    if method == "accumulate" and (found := _ACCUMULATE.get(ufunc)) is not None and out is None:
        return OPS[found](inputs[0], axis=inputs[1] if len(inputs) > 1 else kwargs.get("axis", 0))
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


_REDUCE = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}
_ACCUMULATE = {np.add: "cumsum", np.multiply: "cumprod"}


def _reduce(entry: str, name: str, inputs: Any, out: Any, where: Any, kwargs: Any) -> Any:
    given = {k: v for k, v in kwargs.items() if v is not None and v is not np._NoValue}
    axis = given.pop("axis", 0) if "axis" in kwargs else 0
    if "axis" in kwargs and kwargs["axis"] is None:
        axis = None
    keepdims = given.pop("keepdims", False)
    if given or where is not True or len(inputs) > 1:
        extra = ", ".join([*given, *(["where"] if where is not True else [])]) or "a second argument"
        raise DTypeError(f"np.{name}.reduce with {extra} is not supported on tensors; use mg.{entry}.")
    if out is not None:
        return write.apply(OPS[entry], out[0], inputs, f"{name}.reduce(out=)", axis=axis, keepdims=keepdims)
    return OPS[entry](inputs[0], axis=axis, keepdims=keepdims)


def _plain(value: Any) -> Any:
    return np.asarray(raw(value)) if isinstance(value, TensorState) else value


# NumPy's functions whose arguments are called otherwise than ours.
_NUMPY_NAMES = {
    "a": "x",
    "arr": "x",
    "m": "x",
    "array": "x",
    "a_min": "min",
    "a_max": "max",
    "newshape": "shape",
}


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
    known = set(entry.signature.parameters)
    kwargs = {k if k in known else _NUMPY_NAMES.get(k, k): v for k, v in kwargs.items() if v is not np._NoValue}
    for k in [k for k, v in kwargs.items() if k not in known and v is None]:
        del kwargs[k]
    unknown = [k for k in kwargs if k not in known]
    if unknown:
        raise DTypeError(f"np.{function.__name__} with {', '.join(unknown)}= is not supported on tensors.")
    if out is not None:
        if not isinstance(out, TensorState):
            raise DTypeError(f"np.{function.__name__}: out= must be a Tensor here, got {describe(out)}.")
        return write.into(entry, out, args, kwargs, f"{function.__name__}(out=)")
    return entry(*args, **kwargs)


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
    first = next(iter(signature.parameters))
    return (bound.pop(first),), bound


def _like(make: Callable[..., np.ndarray]) -> Callable[..., Any]:
    def function(x: Any, *args: Any, **kwargs: Any) -> Any:
        return record.new(make(_plain(x), *map(_plain, args), **{k: v for k, v in kwargs.items() if k != "subok"}))

    return function


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """`np.linalg.norm` where it is the Euclidean norm."""
    vector = isinstance(axis, int) or (axis is None and len(shape_of(x)) == 1)
    if not (ord is None or (ord == 2 and vector) or (ord == "fro" and not vector)):
        raise DTypeError(f"np.linalg.norm with ord={ord!r} is not supported on tensors; the Euclidean norm is.")
    return OPS["norm"](x, axis=axis, keepdims=keepdims)


def _value(function: Callable[..., Any]) -> Callable[..., Any]:
    def value(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})

    return value


# Functions of NumPy that ask for numbers or properties, not for a derivative.
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.shape: shape_of,
    np.ndim: lambda a: len(shape_of(a)),
    np.linalg.norm: _norm,
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
