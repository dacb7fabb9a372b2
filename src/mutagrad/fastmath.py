"""Scalar mathematics for kernels: plain functions that the compiler inlines into each loop.

They call the C library's functions, whose error is below 1 ulp in float64, and work in the dtype of their
argument: float32 in, float32 out. So they hold no literals, which would widen float32; what needs constants is
written as an expression over other ops, where constants have the kernel's type.
"""

from __future__ import annotations

import math

import numpy as np


def sin(x):
    return math.sin(x)


def cos(x):
    return math.cos(x)


def tan(x):
    return math.tan(x)


def tanh(x):
    return math.tanh(x)


def sinh(x):
    return math.sinh(x)


def cosh(x):
    return math.cosh(x)


def arctan(x):
    return math.atan(x)


def arctan2(y, x):
    return math.atan2(y, x)


def arcsin(x):
    return math.asin(x)


def arccos(x):
    return math.acos(x)


def arcsinh(x):
    return math.asinh(x)


def arccosh(x):
    return math.acosh(x)


def arctanh(x):
    return math.atanh(x)


def exp(x):
    return math.exp(x)


def expm1(x):
    return math.expm1(x)


def log(x):
    return math.log(x)


def log1p(x):
    return math.log1p(x)


def exp2(x):
    return np.exp2(x)


def log2(x):
    return np.log2(x)


def log10(x):
    return np.log10(x)


def logaddexp(x, y):
    return np.logaddexp(x, y)


def logaddexp2(x, y):
    return np.logaddexp2(x, y)


def erf(x):
    return math.erf(x)


def sqrt(x):
    return math.sqrt(x)


def absolute(x):
    return math.fabs(x)


def power(x, y):
    return x**y


def hypot(x, y):
    return math.hypot(x, y)


def copysign(x, y):
    return math.copysign(x, y)


def signbit(x):
    return np.signbit(x)


# Python's own floor, ceil and trunc give integers.
def floor(x):
    return np.floor(x)


def ceil(x):
    return np.ceil(x)


def trunc(x):
    return np.trunc(x)


def rint(x):
    return np.rint(x)


def fmod(x, y):
    return np.fmod(x, y)


def recurrence(out, a, b):
    for row in range(out.shape[0]):
        y = b[row, 0]
        out[row, 0] = y
        for i in range(1, out.shape[1]):
            y = (a[row, i] * y if y != 0 else y) + b[row, i]
            out[row, i] = y
