"""Logarithms and what is made of them, in float64 and float32; a bound of n ulp is n + 1 in float32.

x = 2**e m with m in [sqrt(1/2), sqrt(2)); with f = m - 1 and s = f/(2 + f), log m = 2 artanh s, that is
f - f*f/2 + s (f*f/2 + R(s*s)) (P. T. P. Tang, ACM Transactions on Mathematical Software 16, 1990, on where the
rounding errors go). The large terms e log 2 and f are added exactly, all the others are small against them. The sum
of a number and its rounding error, such as 1 + x, is a logarithm's argument in two parts: log(u + v) = log u + v/u.

Coefficients of (artanh(s)/s - 1 - z/3)/z**2, z = s*s, are minimax (Remez, by sollya with 300 bits, rounded to the
dtype): `remez(a(x) * x**2, n, [2**-30; ((sqrt(2)-1)/(sqrt(2)+1))**2], x**2)`, absolute error 2**-66.3, float32
2**-36.8. `power` needs so much; for the logarithms fewer coefficients of R/z do, by least squares with Lawson's
weights: relative error of log m 2**-59.2, float32 2**-30.1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import exponential
from .bits import Math, fma, like, scalar, select
from .exponential import decay
from .floats import clamp, copysign, fast_two_sum, pick, polynomial, split, sqrt, two_sum, two_to


class Constants(NamedTuple):
    """What the logarithms know of a dtype."""

    exp: exponential.Constants
    artanh: Any
    remainder: Any  # R/z
    normal: Any  # the smallest normal number
    large: Any  # x*x + 1 is x*x above
    two: Any  # for base 2 and 10: log 2 in two parts, 1/log(base) and what that lacks
    ten: Any


ARTANH = (
    0.20000000000001128,
    0.1428571428504962,
    0.1111111125998997,
    0.09090892181233799,
    0.0769337876743375,
    0.06628406604625549,
    0.06598184634735274,
)
ARTANH32 = tuple(np.float32(c) for c in (0.200000762939453125, 0.14273564517498016357, 0.117093503475189208984))
DOUBLE = Constants(
    exp=exponential.DOUBLE,
    artanh=ARTANH,
    remainder=(
        0.6666666666666734,
        0.39999999999416314,
        0.285714287420315,
        0.22222198608845276,
        0.18183562520301652,
        0.15314095545494252,
        0.14795511209760348,
    ),
    normal=2.0**-1022,
    large=2.0**28,
    two=(1.0, 0.0, 1.4426950408889634, 2.0355273740931033e-17),
    ten=(0.30102999566383914, 1.42050232272661e-13, 0.4342944819032518, 1.098319650216765e-17),
)
SINGLE = Constants(
    exp=exponential.SINGLE,
    artanh=ARTANH32,
    remainder=tuple(np.float32(c) for c in (0.66666776, 0.39977574, 0.29870945)),
    normal=np.float32(2.0**-126),
    large=np.float32(2.0**13),
    two=tuple(np.float32(c) for c in (1.0, 0.0, 1.442695, 1.925963e-08)),
    ten=tuple(np.float32(c) for c in (0.3010254, 4.605039e-06, 0.4342945, -1.010305e-08)),
)


@scalar
def normalise(x, c):
    """(m, e) of a positive `x`, subnormal or not."""
    low = x < c.normal
    m, e = split(select(low, x * like(x, 2.0**54), x))
    return m, select(low, e - like(x, 54.0), e)


@scalar
def tail(f, c):
    """log(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2))."""
    s = f / (like(f, 2.0) + f)
    z = s * s
    half = like(f, 0.5) * f * f
    return s * (half + z * polynomial(z, c.remainder)) - half


@scalar
def settle(x, y):
    """The logarithm `y` of `x`, put right where x is 0, inf, negative or nan."""
    zero = like(x, 0.0)
    y = select(x < like(x, math.inf), y, x)
    return select(x > zero, y, select(x == zero, like(x, -math.inf), like(x, math.nan)))


@scalar
def log(x):
    """Natural logarithm: 1.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    m, e = normalise(x, c)
    f = m - like(x, 1.0)
    head, rest = fast_two_sum(e * c.exp.ln2, f)
    return settle(x, head + (tail(f, c) + (e * c.exp.ln2_rest + rest)))


@scalar
def _log_to(x, base, c):
    head, rest, factor, lost = base
    m, e = normalise(x, c)
    f = m - like(x, 1.0)
    near = f * factor
    total, error = fast_two_sum(e * head, near)
    small = fma(f, factor, -near) + (f * lost + (e * rest + error))
    return settle(x, total + (tail(f, c) * factor + small))


@scalar
def log2(x):
    """Logarithm to base 2, e + log(m)/log(2): 2.5 ulp; exact for powers of two."""
    c = pick(x, DOUBLE, SINGLE)
    return _log_to(x, c.two, c)


@scalar
def log10(x):
    """Logarithm to base 10: 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    return _log_to(x, c.ten, c)


@scalar
def log_near_one(x, v, extra, c):
    """log(1 + x + v) + extra log(2) for x > -1, |v| small against 1 + x."""
    one = like(x, 1.0)
    u, lost = two_sum(one, x)
    m, e = split(u)
    f = m - one
    # lost/u needs a few bits only, but all of them where f is small.
    rest = (
        (lost + v)
        * two_to(c.exp.magic - clamp(e, c.exp.smallest, -c.exp.smallest))
        * (one - f * (one - like(x, 0.75) * f))
    )
    e = e + extra
    head, error = fast_two_sum(e * c.exp.ln2, f)
    return head + (tail(f, c) + (e * c.exp.ln2_rest + (error + rest)))


@scalar
def log1p(x):
    """log(1 + x): 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    zero = like(x, 0.0)
    return copysign(settle(like(x, 1.0) + x, log_near_one(x, zero, zero, c)), x)


@scalar
def softplus(x):
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)): 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    zero = like(x, 0.0)
    y, rest = decay(abs(x), zero, c.exp)
    return select(x > zero, x, zero) + log_near_one(y, rest, zero, c)


@scalar
def logaddexp(x, y):
    """log(exp(x) + exp(y)): 2.5 ulp of the larger operand or of the result, whichever is larger."""
    c = pick(x, DOUBLE, SINGLE)
    zero = like(x, 0.0)
    larger = select(x > y, x, y)
    gap, lost = two_sum(x, -y)
    lost = select(x > y, lost, -lost)
    # Infinities are equal or a gap without a second part away.
    gap = select(x == y, zero, abs(gap))
    d, rest = decay(gap, select((gap > zero) & (gap < like(x, math.inf)), lost, zero), c.exp)
    return larger + log_near_one(d, rest, zero, c)


@scalar
def arcsinh(x):
    """Inverse hyperbolic sine, log(a + sqrt(a*a + 1)) with the sign of x, log(2a) where a*a + 1 = a*a: 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    zero, one = like(x, 0.0), like(x, 1.0)
    a = abs(x)
    large = a > c.large
    b = select(large, one, a)
    # sqrt(a*a + 1) - 1, without cancellation.
    w, v = fast_two_sum(b, b * b / (one + sqrt(b * b + one)))
    y = log_near_one(select(large, a - one, w), select(large, zero, v), select(large, one, zero), c)
    return copysign(select(a < like(x, math.inf), y, a), x)


@scalar
def arccosh(x):
    """Inverse hyperbolic cosine, log(x + sqrt(x*x - 1)) by way of x - 1: 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    zero, one = like(x, 0.0), like(x, 1.0)
    t = x - one
    large = x > c.large
    b = select(large, one, t)
    w, v = fast_two_sum(sqrt(b * b + (b + b)), b)
    y = log_near_one(select(large, t, w), select(large, zero, v), select(large, one, zero), c)
    return select(x >= one, select(x < like(x, math.inf), y, x), like(x, math.nan))


@scalar
def arctanh(x):
    """Inverse hyperbolic tangent, log1p(2a/(1 - a))/2 with the sign of x: 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    zero, one = like(x, 0.0), like(x, 1.0)
    a = abs(x)
    w = (a + a) / (one - a)
    return copysign(like(x, 0.5) * settle(one + w, log_near_one(w, zero, zero, c)), x)


TABLE = {
    "log": Math(log, log, 1.5),
    "log2": Math(log2, log2, 2.5),
    "log10": Math(log10, log10, 2.5),
    "log1p": Math(log1p, log1p, 2.5),
    "softplus": Math(softplus, softplus, 2.5),
    "logaddexp": Math(logaddexp, logaddexp, 2.5),
    "arcsinh": Math(arcsinh, arcsinh, 2.5),
    "arccosh": Math(arccosh, arccosh, 2.5),
    "arctanh": Math(arctanh, arctanh, 2.5),
}
