"""The exponential and its kin in float64 and float32; a bound of n ulp is n + 1 in float32.

x = k log 2 + r with |r| <= log(2)/2, log 2 in two parts so that k times the first is exact (W. J. Cody and
W. Waite, Software Manual for the Elementary Functions, 1980). On that range cosh r = 1 + r**2 c(r**2) and
sinh r = r + r**3 s(r**2) with one pair of polynomials; exp r is their sum, and
sinh x = sinh(k log 2) cosh r + cosh(k log 2) sinh r has no cancellation that matters. 2**k is put together from
bits, in two factors where it may leave the normal numbers: the product then rounds once.

Each function works in the dtype of its argument; DOUBLE and SINGLE hold the constants. The coefficients are minimax
(Remez, by sollya with 300 bits, rounded to the dtype): `remez(c(x) * x, n, [2**-30; (log(2)/2)**2], x)`, and the
same for s. Absolute errors: 2**-58.0 and r 2**-61.7; float32 2**-34.3 and r 2**-37.5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .bits import Math, fma, like, scalar, select
from .floats import clamp, copysign, fast_two_sum, nearly_inverse, pick, polynomial, two_sum, two_to


class Constants(NamedTuple):
    """What the exponential functions know of a dtype."""

    magic: Any
    log2e: Any
    ln2: Any
    ln2_rest: Any
    ln2_nearest: Any  # log 2 rounded to the dtype, and what that lacks
    ln2_error: Any
    even: Any
    odd: Any
    lowest: Any  # exp is 0 below, in every rounding
    highest: Any  # exp is inf above
    lowest2: Any  # the same of exp2
    highest2: Any
    hyperbolic: Any  # sinh and cosh are inf above
    saturated: Any  # expm1(-saturated) is -1 and tanh(saturated) is 1
    smallest: Any  # 2**k is normal from here up
    tiny: Any  # x * (1 + x) is x below

    @property
    def series(self) -> tuple[Any, ...]:
        """(exp(r) - 1 - r) / r**2 in powers of r."""
        return tuple(c for pair in zip(self.even, self.odd, strict=True) for c in pair)


DOUBLE = Constants(
    magic=1.5 * 2.0**52,
    log2e=1.4426950408889634,
    ln2=0.6931471805598903,
    ln2_rest=5.497923018708371e-14,
    ln2_nearest=0.6931471805599453,
    ln2_error=2.3190468138462996e-17,
    even=(
        0.5000000000000013,
        0.04166666666651429,
        0.0013888888947261346,
        2.4801489722710638e-05,
        2.763134981890621e-07,
    ),
    odd=(
        0.16666666666666677,
        0.008333333333321615,
        0.00019841269886160336,
        2.755724418011771e-06,
        2.5109045511960037e-08,
    ),
    lowest=-746.0,
    highest=710.0,
    lowest2=-1080.0,
    highest2=1025.0,
    hyperbolic=710.6,
    saturated=40.0,
    smallest=-1022.0,
    tiny=2.0**-54,
)
SINGLE = Constants(
    magic=np.float32(1.5 * 2.0**23),
    log2e=np.float32(1.4426950408889634),
    ln2=np.float32(0.693145751953125),
    ln2_rest=np.float32(1.4286068203094172e-06),
    ln2_nearest=np.float32(0.6931471805599453),
    ln2_error=np.float32(-1.904654299957768e-09),
    even=(np.float32(0.5), np.float32(0.0416666255770778656), np.float32(0.00139462295919656754)),
    odd=(np.float32(0.16666667163372039795), np.float32(0.008333289064466953278), np.float32(0.000199049609364)),
    lowest=np.float32(-105.0),
    highest=np.float32(89.0),
    lowest2=np.float32(-155.0),
    highest2=np.float32(129.0),
    hyperbolic=np.float32(89.5),
    saturated=np.float32(18.0),
    smallest=np.float32(-126.0),
    tiny=np.float32(2.0**-25),
)


SERIES, SERIES_32 = DOUBLE.series, SINGLE.series


@scalar
def reduce(x, c):
    """(t, k, r, rest): x = k log 2 + r + rest, t = magic + k."""
    t = x * c.log2e + c.magic
    k = t - c.magic
    near = x - k * c.ln2
    r = near - k * c.ln2_rest
    return t, k, r, (near - r) - k * c.ln2_rest


@scalar
def growth(r, rest, c):
    """expm1(r + rest) for |r| <= log(2)/2, less its leading term r."""
    z = r * r
    return z * polynomial(z, c.even) + (r * z * polynomial(z, c.odd) + rest)


@scalar
def scale(p, k, c):
    """p * 2**k, rounded once where it is subnormal."""
    half = k * like(p, 0.5) + c.magic
    return p * two_to(half) * two_to((k - (half - c.magic)) + c.magic)


@scalar
def exp(x):
    """Exponential: 1.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    two = like(x, 2.0)
    x = clamp(x, c.lowest, c.highest)
    t = x * c.log2e + c.magic
    k = t - c.magic
    r = (x - k * c.ln2) - k * c.ln2_rest
    # Twice the power of r, since 2**k may be too large by a factor of two; what will be subnormal is rounded once, too.
    y = fma(fma(r * r, polynomial(r, pick(x, SERIES, SERIES_32)), r), two, two)
    below = k < c.smallest + two
    y = y * two_to(t + select(below, like(x, 63.0), like(x, -1.0)))
    return select(below, y * like(x, 2.0**-64), y)


@scalar
def decay(a, rest, c):
    """exp(-(a + rest)) for a >= 0 and a small `rest`, as the sum of two numbers."""
    one = like(a, 1.0)
    _, k, r, lost = reduce(clamp(-a, c.lowest, like(a, 0.0)), c)
    head, lost = fast_two_sum(one, r + growth(r, lost - rest, c))
    # The second number does not count where the first is subnormal: the clamp keeps its factor normal.
    return scale(head, k, c), lost * two_to(clamp(k, c.smallest, like(a, 0.0)) + c.magic)


@scalar
def exp2(x):
    """Power of two, 2**(k + r) = 2**k exp(r log 2): 2.5 ulp; exact for whole numbers."""
    c = pick(x, DOUBLE, SINGLE)
    x = clamp(x, c.lowest2, c.highest2)
    k = (x + c.magic) - c.magic
    r = (x - k) * c.ln2_nearest
    rest = fma(x - k, c.ln2_nearest, -r) + (x - k) * c.ln2_error
    return scale(like(x, 1.0) + (r + growth(r, rest, c)), k, c)


@scalar
def expm1(x):
    """exp(x) - 1 as (2**k - 1) + 2**k expm1(r): 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    half = like(x, 0.5)
    inside = clamp(x, -c.saturated, c.highest)
    t, _, r, rest = reduce(inside, c)
    # Half of the result, since 2**1024 is no number where exp(x) still is.
    power = two_to(t - like(x, 1.0))
    y = power * (r + growth(r, rest, c)) + (power - half)
    return select(abs(x) < c.tiny, x, y + y)


@scalar
def _hyperbolic(a, c):
    """A quarter of exp(k log 2) and of exp(-k log 2), and sinh r and cosh r - 1, for a = k log 2 + r >= 0."""
    t, k, r, rest = reduce(clamp(a, like(a, 0.0), c.hyperbolic), c)
    up = two_to(t - like(a, 2.0))
    # Beyond 2**-64 the lesser of the two no longer counts, but must stay a normal number.
    down = two_to((c.magic - like(a, 2.0)) - clamp(k, like(a, 0.0), like(a, 64.0)))
    z = r * r
    return up, down, r + (r * z * polynomial(z, c.odd) + rest), z * polynomial(z, c.even)


@scalar
def sinh(x):
    """Hyperbolic sine: 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    a = abs(x)
    up, down, s, co = _hyperbolic(a, c)
    y = (up - down) + ((up - down) * co + (up + down) * s)
    return copysign(select(a < c.tiny, a, y + y), x)


@scalar
def cosh(x):
    """Hyperbolic cosine: 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    up, down, s, co = _hyperbolic(abs(x), c)
    y = (up + down) + ((up + down) * co + (up - down) * s)
    return y + y


@scalar
def tanh(x):
    """Hyperbolic tangent as y/(y + 2), y = expm1(2|x|), which damps the error of a large y: 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    one = like(x, 1.0)
    a = abs(x)
    t, _, r, rest = reduce(clamp(a + a, like(x, 0.0), c.saturated), c)
    power = two_to(t)
    y = power * (r + growth(r, rest, c)) + (power - one)
    below, lost = two_sum(one + one, y)
    q = y / below
    # 1/below is (1 - q)/2: what the denominator's rounding lost is put right without another division.
    return copysign(q - q * lost * (like(x, 0.5) - like(x, 0.5) * q), x)


# (tanh(x)/x - 1) / x**2 in powers of x**2 for |x| < 0.625: least squares with Lawson's weights, relative error of the
# whole 2**-26.8.
TANH_BELOW = np.float32(0.625)
TANH_32 = tuple(
    np.float32(c) for c in (-0.33333280682564, 0.13331441581249, -0.05373971164227, 0.0206390786916, -0.00570497848094)
)


@scalar
def inverse32(d):
    """1/d to about an ulp for d from 1 to 2**100 in float32: a guess and three steps of Newton take half a division."""
    y = nearly_inverse(d)
    y = fma(y, fma(-d, y, like(d, 1.0)), y)
    y = fma(y, fma(-d, y, like(d, 1.0)), y)
    return fma(y, fma(-d, y, like(d, 1.0)), y)


@scalar
def tanh32(x):
    """Hyperbolic tangent in float32, a polynomial or 1 - 2/(exp(2|x|) + 1): 3.5 ulp."""
    c = SINGLE
    one = like(x, 1.0)
    a = abs(x)
    z = a * a
    below = a + a * z * polynomial(z, TANH_32)
    inside = clamp(a + a, like(x, 0.0), c.saturated + c.saturated)
    t = inside * c.log2e + c.magic
    k = t - c.magic
    r = (inside - k * c.ln2) - k * c.ln2_rest
    above = one - like(x, 2.0) * inverse32(two_to(t) * (one + (r + growth(r, like(x, 0.0), c))) + one)
    return copysign(select(a < TANH_BELOW, below, above), x)


@scalar
def sigmoid(x):
    """1/(1 + exp(-x)), with exp(-|x|) only, so that neither tail cancels: 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    one = like(x, 1.0)
    y, _ = decay(abs(x), like(x, 0.0), c)
    below, lost = fast_two_sum(one, y)
    left = x < like(x, 0.0)
    q = select(left, y, one) / below
    return q - q * lost * select(left, one - q, q)


TABLE = {
    "exp": Math(exp, exp, 1.5),
    "exp2": Math(exp2, exp2, 2.5),
    "expm1": Math(expm1, expm1, 2.5),
    "sinh": Math(sinh, sinh, 2.5),
    "cosh": Math(cosh, cosh, 2.5),
    "tanh": Math(tanh, tanh32, 2.5),
    "sigmoid": Math(sigmoid, sigmoid, 2.5),
}
