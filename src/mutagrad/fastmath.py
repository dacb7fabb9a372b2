"""Scalar mathematics for kernels: plain functions that the compiler inlines into each loop.

They call the C library's functions, whose error is below 1 ulp in float64, and work in the dtype of their
argument: float32 in, float32 out.
"""

from __future__ import annotations

import math


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


def exp(x):
    return math.exp(x)


def expm1(x):
    return math.expm1(x)


def log(x):
    return math.log(x)


def log1p(x):
    return math.log1p(x)


def sqrt(x):
    return math.sqrt(x)


def absolute(x):
    return math.fabs(x)


def power(x, y):
    return x**y


def recurrence(out, a, b):
    for row in range(out.shape[0]):
        y = b[row, 0]
        out[row, 0] = y
        for i in range(1, out.shape[1]):
            y = (a[row, i] * y if y != 0 else y) + b[row, i]
            out[row, i] = y
