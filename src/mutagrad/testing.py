"""Checks of derivatives and of the in-place contract, for users' tests and for the library's own.

`mg.testing.strategies` holds Hypothesis strategies, `mg.testing.programs` a state machine of random programs;
both need the package `hypothesis`.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import record
from .errors import DTypeError, describe
from .modes import Switch, recording
from .node import TensorState
from .operands import array_of, dtype_of, raw, shape_of
from .ops import OPS
from .tensors import Tensor
from .transforms import grad, vjp

# Central differences of a float64 function with step h have an error of about h**2 plus 1e-16 / h.
STEP = 6e-6


def _cotangent(shape: tuple[int, ...]) -> np.ndarray:
    """Fixed weights without symmetry, so that permuted or summed gradients are noticed."""
    n = int(np.prod(shape))
    weights = 1.0 + 0.37 * np.arange(n)
    weights[1::2] *= -0.8
    return weights.reshape(shape)


def numerical_gradient(
    function: Callable[..., Any], args: Sequence[Any], argnum: int = 0, step: float = STEP
) -> np.ndarray:
    """Central differences of a scalar function by one of its arguments.

    Parameters
    ----------
    function : callable
        Takes arrays, returns a number.
    args : sequence of array_like
        Where to differentiate; not modified.
    argnum : int
        By which argument.
    step : float
        Half the distance of the two points, relative to max(1, |x|).

    Returns
    -------
    ndarray
        float64, of the argument's shape.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> np.round(mg.testing.numerical_gradient(lambda x: (x**3).sum(), [np.array([1.0, 2.0])]), 6)
    array([ 3., 12.])
    """
    base = np.array(args[argnum], dtype=np.float64)
    out = np.empty(base.shape)
    for i in np.ndindex(base.shape):
        h = step * max(1.0, abs(float(base[i])))
        ends = []
        for sign in (1, -1):
            moved = base.copy()
            moved[i] += sign * h
            inside = [np.array(a) for a in args]
            inside[argnum] = moved
            ends.append((float(_number(function(*inside))), float(moved[i])))
        out[i] = (ends[0][0] - ends[1][0]) / (ends[0][1] - ends[1][1])
    return out


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor | np.ndarray) else value


def gradcheck(
    function: Callable[..., Any],
    args: Sequence[Any],
    *,
    rtol: float = 1e-6,
    atol: float = 1e-7,
    step: float = STEP,
) -> bool:
    """Assert that the gradients of `function` agree with central differences.

    Parameters
    ----------
    function : callable
        Takes tensors, returns a tensor of any shape. It is called with private copies, also of tensors.
    args : sequence of array_like, or one array
        Floating arguments are differentiated by, others passed on.
    rtol, atol : float
        Tolerances of each element, relative to the largest of the gradient.
    step : float
        Of the central differences.

    Raises
    ------
    AssertionError
        Naming the argument and both gradients; otherwise the result is True.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> mg.testing.gradcheck(lambda x, y: mg.sin(x) * y, [np.array([0.5, 1.0]), np.array([2.0, 3.0])])
    True
    """
    arrays = _arguments(args)
    numbers = [k for k, a in enumerate(arrays) if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    if not numbers:
        raise DTypeError("gradcheck(): none of the arguments is floating.")

    def loss(*inside: Any) -> Any:
        out = function(*inside)
        if not isinstance(out, Tensor):
            raise DTypeError(f"gradcheck(): the function must return a tensor, got {describe(out)}.")
        return OPS["sum"](out * _cotangent(shape_of(out)))

    found = grad(loss, numbers)(*arrays)
    with Switch(recording, False):
        for k, got in zip(numbers, found, strict=True):
            want = numerical_gradient(lambda *inside: loss(*map(_private, inside)), arrays, k, step)
            scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
            np.testing.assert_allclose(
                got,
                want,
                rtol=rtol,
                atol=atol * scale,
                err_msg=f"gradient by argument {k} (got, then differences)",
            )
    return True


def _arguments(args: Any) -> list[Any]:
    """Private copies of the arguments; one array stands for a list of it."""
    if isinstance(args, TensorState | np.ndarray | float):
        args = [args]
    return [np.array(raw(a)) if isinstance(a, TensorState | np.ndarray | float) else a for a in args]


def _private(value: Any) -> Any:
    return record.new(np.array(value)) if isinstance(value, np.ndarray) else value


def gradgradcheck(
    function: Callable[..., Any],
    args: Sequence[Any],
    *,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    step: float = STEP,
) -> bool:
    """Assert that second derivatives of `function` agree with central differences of its gradients.

    Parameters and errors are those of `gradcheck`. Also the derivative by the cotangent is checked.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> mg.testing.gradgradcheck(mg.exp, [np.array([0.5, 1.0])])
    True
    """
    arrays = _arguments(args)
    numbers = [k for k, a in enumerate(arrays) if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    floating = [arrays[k] for k in numbers]

    def inner(*inside: Any) -> Any:
        everything = list(arrays)
        for k, a in zip(numbers, inside, strict=True):
            everything[k] = a
        return function(*everything)

    with Switch(recording, False):
        cotangent = _cotangent(shape_of(inner(*map(_private, floating))))
    for which in range(len(numbers)):

        def gradient(g: Any, *inside: Any, which: int = which) -> Any:
            _, pull = vjp(inner, *inside)
            return pull(g)[which]

        gradcheck(gradient, [cotangent, *floating], rtol=rtol, atol=atol, step=step)
    return True


@contextlib.contextmanager
def unchanged(*tensors: Any) -> Iterator[None]:
    """Assert that the block leaves tensors and arrays as they were: every byte, and the version of tensors.

    Parameters
    ----------
    *tensors : Tensor or ndarray

    Raises
    ------
    AssertionError
        If a byte, a version or a tensor's history changed.

    Examples
    --------
    >>> import mutagrad as mg
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> with mg.testing.unchanged(x):
    ...     try:
    ...         x.sin_()
    ...     except mg.InplaceError:
    ...         pass
    """

    def state(t: Any) -> tuple[Any, ...]:
        if isinstance(t, Tensor):
            return array_of(t).tobytes(), t.version, t.requires_grad, t.is_leaf, shape_of(t), dtype_of(t)
        return (np.asarray(t).tobytes(),)

    before = [state(t) for t in tensors]
    try:
        yield
    finally:
        for k, (t, was) in enumerate(zip(tensors, before, strict=True)):
            if state(t) != was:
                raise AssertionError(f"argument {k} of unchanged() was changed inside the block: now {t!r}")


def __getattr__(name: str) -> Any:
    # Imported when asked for, since hypothesis is no dependency of the library.
    if name in ("strategies", "programs"):
        return importlib.import_module(f"{__package__}.{name}")
    raise AttributeError(f"module 'mutagrad.testing' has no attribute {name!r}")
