"""Inverse trigonometric functions and the hypotenuse, in float64 and, with the suffix 32, in float32.

Arguments are moved to where a short odd polynomial is accurate: arcsine by arcsin x = pi/2 - 2 arcsin(sqrt((1-x)/2))
above 1/2, arctangent by arctan x = pi/4 + arctan((x-1)/(x+1)) between 1/2 and 2 and pi/2 - arctan(1/x) above
(M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 4.4). Multiples of pi enter in two parts.

The coefficients are minimax in the relative error, computed by sollya's `fpminimax` with the format of each coefficient
imposed, e.g. `fpminimax(atan(x), [|3,5,...,25|], [|D...|], [1b-12; 0.5], floating, relative, x)`.
"""

from __future__ import annotations

import math

import numpy as np

from .bits import Math, bits, fma, horner, real, scalar, select

SIGN = -(2**63)
QUARTER_PI, QUARTER_PI_REST = 0.7853981633974483, 3.061616997868383e-17  # the first has 51 bits at most
SIGN_32 = -(2**31)
QUARTER_PI_32, QUARTER_PI_REST_32 = np.float32(0.78539824), np.float32(-8.146034e-08)  # the first has 22 bits
ZERO_32, QUARTER_32, HALF_32 = np.float32(0.0), np.float32(0.25), np.float32(0.5)
ONE_32, TWO_32, FOUR_32 = np.float32(1.0), np.float32(2.0), np.float32(4.0)
INFINITY, INFINITY_32 = np.inf, np.float32(np.inf)

# (arcsin(s) - s) / s**3 in powers of s*s for |s| <= 1/2, relative error of arcsin s below 2**-55.9, float32 2**-27.6.
ARCSINE = (
    *(0.16666666666665408, 0.07500000000337102, 0.04464285682827013, 0.03038195913898113),
    *(0.02237175800873763, 0.017359705316377382, 0.013885230601972194, 0.012169240345067658),
    *(0.0065278627052364506, 0.019528546904781344, -0.01622466018037495, 0.03191252892823899),
)
ARCSINE_32 = tuple(np.float32(c) for c in (0.16666752, 0.0749531, 0.04546902, 0.024185503, 0.042157013))
# (arctan(t) - t) / t**3 for |t| <= 1/2, relative error of arctan t below 2**-57.7, float32 2**-27.4.
ARCTANGENT = (
    *(-0.3333333333333298, 0.19999999999903123, -0.1428571427638746, 0.11111110659708877),
    *(-0.09090896246524784, 0.07692073939411088, -0.0666381087746825, 0.05858300584703023),
    *(-0.051220128120938964, 0.04186522989600974, -0.02743523444709767, 0.010117037552571432),
)
ARCTANGENT_32 = tuple(np.float32(c) for c in (-0.33333233, 0.19994186, -0.14174582, 0.101581655, -0.051297754))

# Squares of numbers between the limits of hypot neither overflow nor lose bits to underflow.
BIG, SMALL, UP, DOWN = 2.0**500, 2.0**-400, 2.0**600, 2.0**-600
BIG_32, SMALL_32, UP_32, DOWN_32 = (np.float32(2.0**e) for e in (60, -50, 100, -100))


@scalar
def _arcsine(a):
    """For 0 <= a <= 1: whether a > 1/2, and the arcsine of a or of sqrt((1-a)/2) as a sum of two."""
    far = a > 0.5
    z = select(far, 0.5 - 0.5 * a, a * a)
    s = select(far, math.sqrt(z), a)
    return far, s, s * z * horner(z, ARCSINE)


@scalar
def arcsin(x):
    """Arcsine: 2.5 ulp."""
    far, s, tail = _arcsine(abs(x))
    head = select(far, 2.0 * QUARTER_PI, 0.0) + select(far, -2.0 * s, s)
    tail = select(far, 2.0 * QUARTER_PI_REST - 2.0 * tail, tail)
    return real(bits(head + tail) ^ (bits(x) & SIGN))


@scalar
def arccos(x):
    """Arccosine: 2.5 ulp."""
    far, s, tail = _arcsine(abs(x))
    quarters = select(far, select(x < 0.0, 4.0, 0.0), 2.0)
    scale = select(far, 2.0, -1.0)
    scale = select(x < 0.0, -scale, scale)
    return quarters * QUARTER_PI + (scale * s + (scale * tail + quarters * QUARTER_PI_REST))


@scalar
def _arctangent(t):
    """arctan(t) - t for |t| <= 1/2."""
    z = t * t
    return t * z * horner(z, ARCTANGENT)


@scalar
def arctan(x):
    """Arctangent: 2.5 ulp."""
    a = abs(x)
    low, high = a <= 0.5, a >= 2.0
    t = select(low, a, select(high, -1.0, a - 1.0)) / select(low, 1.0, select(high, a, a + 1.0))
    quarters = select(low, 0.0, select(high, 2.0, 1.0))
    angle = quarters * QUARTER_PI + (t + (_arctangent(t) + quarters * QUARTER_PI_REST))
    return real(bits(angle) ^ (bits(x) & SIGN))


@scalar
def arctan2(y, x):
    """Angle of the point (x, y): 2.5 ulp. One division, of numbers scaled so that their sum does not overflow."""
    a, b = abs(y), abs(x)
    # Written so that both are false for two infinities, whose difference is nan, and `low` is true for two zeros.
    low, high = b - a >= a, a - b >= b
    scale = select(a > 1.0, 0.25, 1.0)
    above = select(low, a, select(high, -b, select(a == b, 0.0, scale * (a - b))))
    below = select(low, b, select(high, a, scale * a + scale * b))
    t = above / select(below == 0.0, 1.0, below)
    quarters = select(low, 0.0, select(high, 2.0, 1.0))
    left = bits(x) < 0
    t = select(left, -t, t)
    quarters = select(left, 4.0 - quarters, quarters)
    angle = quarters * QUARTER_PI + (t + (_arctangent(t) + quarters * QUARTER_PI_REST))
    return real(bits(angle) ^ (bits(y) & SIGN))


@scalar
def hypot(x, y):
    """Length of the vector (x, y): 2.5 ulp."""
    a, b = abs(x), abs(y)
    larger = select(a > b, a, b)
    scale = select(larger > BIG, DOWN, select(larger < SMALL, UP, 1.0))
    back = select(larger > BIG, UP, select(larger < SMALL, DOWN, 1.0))
    u, v = scale * a, scale * b
    length = back * math.sqrt(fma(u, u, v * v))
    return select((a == INFINITY) | (b == INFINITY), INFINITY, length)


@scalar
def _arcsine32(a):
    far = a > HALF_32
    z = select(far, HALF_32 - HALF_32 * a, a * a)
    s = select(far, math.sqrt(z), a)
    return far, s, s * z * horner(z, ARCSINE_32)


@scalar
def arcsin32(x):
    """Arcsine: 3.5 ulp."""
    far, s, tail = _arcsine32(abs(x))
    head = select(far, TWO_32 * QUARTER_PI_32, ZERO_32) + select(far, -TWO_32 * s, s)
    tail = select(far, TWO_32 * QUARTER_PI_REST_32 - TWO_32 * tail, tail)
    return real(np.int32(bits(head + tail) ^ (bits(x) & SIGN_32)))


@scalar
def arccos32(x):
    """Arccosine: 3.5 ulp."""
    far, s, tail = _arcsine32(abs(x))
    quarters = select(far, select(x < ZERO_32, FOUR_32, ZERO_32), TWO_32)
    scale = select(far, TWO_32, -ONE_32)
    scale = select(x < ZERO_32, -scale, scale)
    return quarters * QUARTER_PI_32 + (scale * s + (scale * tail + quarters * QUARTER_PI_REST_32))


@scalar
def _arctangent32(t):
    z = t * t
    return t * z * horner(z, ARCTANGENT_32)


@scalar
def arctan32(x):
    """Arctangent: 3.5 ulp."""
    a = abs(x)
    low, high = a <= HALF_32, a >= TWO_32
    above = select(low, a, select(high, -ONE_32, a - ONE_32))
    t = above / select(low, ONE_32, select(high, a, a + ONE_32))
    quarters = select(low, ZERO_32, select(high, TWO_32, ONE_32))
    angle = quarters * QUARTER_PI_32 + (t + (_arctangent32(t) + quarters * QUARTER_PI_REST_32))
    return real(np.int32(bits(angle) ^ (bits(x) & SIGN_32)))


@scalar
def arctan2_32(y, x):
    """Angle of the point (x, y): 3.5 ulp."""
    a, b = abs(y), abs(x)
    low, high = b - a >= a, a - b >= b
    scale = select(a > ONE_32, QUARTER_32, ONE_32)
    above = select(low, a, select(high, -b, select(a == b, ZERO_32, scale * (a - b))))
    below = select(low, b, select(high, a, scale * a + scale * b))
    t = above / select(below == ZERO_32, ONE_32, below)
    quarters = select(low, ZERO_32, select(high, TWO_32, ONE_32))
    left = bits(x) < 0
    t = select(left, -t, t)
    quarters = select(left, FOUR_32 - quarters, quarters)
    angle = quarters * QUARTER_PI_32 + (t + (_arctangent32(t) + quarters * QUARTER_PI_REST_32))
    return real(np.int32(bits(angle) ^ (bits(y) & SIGN_32)))


@scalar
def hypot32(x, y):
    """Length of the vector (x, y): 3.5 ulp."""
    a, b = abs(x), abs(y)
    larger = select(a > b, a, b)
    scale = select(larger > BIG_32, DOWN_32, select(larger < SMALL_32, UP_32, ONE_32))
    back = select(larger > BIG_32, UP_32, select(larger < SMALL_32, DOWN_32, ONE_32))
    u, v = scale * a, scale * b
    length = back * math.sqrt(fma(u, u, v * v))
    return select((a == INFINITY_32) | (b == INFINITY_32), INFINITY_32, length)


TABLE = {
    "arcsin": Math(arcsin, arcsin32, 2.5),
    "arccos": Math(arccos, arccos32, 2.5),
    "arctan": Math(arctan, arctan32, 2.5),
    "arctan2": Math(arctan2, arctan2_32, 2.5),
    "hypot": Math(hypot, hypot32, 2.5),
}
