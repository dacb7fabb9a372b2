"""Scalar mathematics for kernels: plain functions that the compiler inlines into each loop.

The functions of this module call the C library's, and work in the dtype of their argument: float32 in, float32 out. So
they hold no literals, which would widen float32; what needs constants is written as an expression over other ops, where
constants have the kernel's type. In loops the forms of `mathematics` stand for them, which are vectorised.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from .mathematics import angles, exponential, logarithm, special, trigonometric
from .mathematics.bits import intrinsic, scalar
from .mathematics.floats import maximum, minimum

__all__ = ["maximum", "minimum"]

FORMS = {**trigonometric.TABLE, **angles.TABLE, **exponential.TABLE, **logarithm.TABLE, **special.TABLE}

# Nothing in the C library is as exact.
exp2, sigmoid = exponential.exp2, exponential.sigmoid
log2, log10, logaddexp, softplus = logarithm.log2, logarithm.log10, logarithm.logaddexp, logarithm.softplus
cbrt = special.cbrt


_symbols: dict[tuple[str, str], Any] = {}


def careful(name: str, letter: str) -> Callable[..., Any]:
    """The function for single numbers, and for arguments beyond the reach of the vectorised one."""
    return _called(name, letter) if symbolic(name) else globals()[name]


def symbolic(name: str) -> bool:
    """Whether the careful form is called by its symbol: as machine code it is there once, not in every kernel."""
    return name in FORMS and FORMS[name].careful is not None


def symbol(name: str, letter: str) -> str:
    """The symbol of a careful form."""
    return f"mutagrad_{name}_careful_{letter}"


def _called(name: str, letter: str) -> Any:
    if (name, letter) not in _symbols:

        def typer(typingctx, x):
            def code(context, builder, signature, args):
                kind = ir.FunctionType(args[0].type, [args[0].type])
                return builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol(name, letter)), args)

            return x(x), code

        typer.__name__ = f"{name}_careful"
        _symbols[name, letter] = intrinsic(typer)
    return _symbols[name, letter]


def fast(name: str, letter: str) -> Callable[..., Any]:
    """The function that loops call: vectorised where there is such a form."""
    found = FORMS.get(name)
    if found is None:
        return globals()[name]
    return found.fast if letter == "d" else found.single


def beyond(name: str, letter: str) -> Callable[..., Any] | None:
    """Tells the arguments at which only the careful function is right; None if there are none."""
    found = FORMS.get(name)
    if found is None:
        return None
    return found.beyond if letter == "d" else found.beyond_single


@scalar
def sin(x):
    return math.sin(x)


@scalar
def cos(x):
    return math.cos(x)


@scalar
def tan(x):
    return math.tan(x)


@scalar
def tanh(x):
    return math.tanh(x)


@scalar
def sinh(x):
    return math.sinh(x)


@scalar
def cosh(x):
    return math.cosh(x)


@scalar
def arctan(x):
    return math.atan(x)


@scalar
def arctan2(y, x):
    return math.atan2(y, x)


@scalar
def arcsin(x):
    return math.asin(x)


@scalar
def arccos(x):
    return math.acos(x)


@scalar
def arcsinh(x):
    return math.asinh(x)


@scalar
def arccosh(x):
    return math.acosh(x)


@scalar
def arctanh(x):
    return math.atanh(x)


@scalar
def exp(x):
    return math.exp(x)


@scalar
def expm1(x):
    return math.expm1(x)


@scalar
def log(x):
    return math.log(x)


@scalar
def log1p(x):
    return math.log1p(x)


@scalar
def logaddexp2(x, y):
    return np.logaddexp2(x, y)


@scalar
def erf(x):
    return math.erf(x)


@scalar
def sqrt(x):
    return math.sqrt(x)


@scalar
def absolute(x):
    return math.fabs(x)


@scalar
def power(x, y):
    return x**y


@scalar
def hypot(x, y):
    return math.hypot(x, y)


@scalar
def copysign(x, y):
    return math.copysign(x, y)


@scalar
def signbit(x):
    return np.signbit(x)


# Python's own floor, ceil and trunc give integers.
@scalar
def floor(x):
    return np.floor(x)


@scalar
def ceil(x):
    return np.ceil(x)


@scalar
def trunc(x):
    return np.trunc(x)


@scalar
def rint(x):
    return np.rint(x)


@scalar
def fmod(x, y):
    return np.fmod(x, y)


@scalar
def recurrence(out, a, b):
    for row in range(out.shape[0]):
        y = b[row, 0]
        out[row, 0] = y
        for i in range(1, out.shape[1]):
            y = (a[row, i] * y if y != 0 else y) + b[row, i]
            out[row, i] = y
