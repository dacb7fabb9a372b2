"""Sine, cosine and tangent, in float64 and, with the suffix 32, in float32.

The argument is reduced to r = x - k pi/2 with |r| <= pi/4 (W. J. Cody and W. Waite, Software Manual for the
Elementary Functions, 1980): pi/2 is a sum of three floats, subtracted in turn with fused multiply-adds, the first of
which is exact. Polynomials in r*r give the sine and the cosine of r, and k modulo 4 says which one, and
its sign. Sine and cosine of one argument share all but the last step, which the compiler finds by itself.

The coefficients are minimax in the relative error, computed by sollya's `fpminimax` with the format of each coefficient
imposed, e.g. `fpminimax(sin(x), [|3,5,7,9,11,13|], [|D...|], [1b-20; pi/4 + 1b-16], floating, relative, x)`.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from .bits import INTEGERS, Math, bits, fma, horner, intrinsic, scalar, select
from .reduction import HALF_PI_1, reduce_huge

# Below the limit k fits beside the bits of the second part of pi/2, so that their product is exact.
LIMIT = 2.0**22
TWO_OVER_PI = 0.6366197723675814
SHIFT = 1.5 * 2.0**52  # adding it rounds to an integer, whose bits are then the lowest ones of the sum
HALF_PI_2 = 6.12323399409214e-17  # 31 bits
HALF_PI_3 = 1.6446256936324258e-26  # 53 bits

LIMIT_32 = np.float32(2.0**16)
TWO_OVER_PI_32 = np.float32(0.63661975)
SHIFT_32 = np.float32(1.5 * 2.0**23)
# Rounded down, so that no part is negative: a product of signs would turn -0.0 into 0.0.
HALF_PI_1_32 = np.float32(1.5707963)
HALF_PI_2_32 = np.float32(7.5497894e-08)
HALF_PI_3_32 = np.float32(5.390303e-15)
ZERO_32, HALF_32, ONE_32 = np.float32(0.0), np.float32(0.5), np.float32(1.0)

# (r - sin r) / r**3 in powers of r*r, relative error of sin r below 2**-57.8, float32 2**-27.8.
SINE = (
    *(0.1666666666666663, -0.008333333333321922, 0.00019841269829463004),
    *(-2.755731358424785e-06, 2.5050742682724498e-08, -1.5895967073771657e-10),
)
SINE_32 = tuple(np.float32(c) for c in (0.16666654, -0.008332108, 0.00019508236))
# (cos r - 1 + r*r/2) / r**4, relative error of cos r below 2**-63.9, float32 2**-32.7.
COSINE = (
    *(0.041666666666666595, -0.0013888888888873348, 2.4801587289008015e-05),
    *(-2.7557314219004284e-07, 2.087570567746567e-09, -1.1358764008636432e-11),
)
COSINE_32 = tuple(np.float32(c) for c in (0.041666646, -0.0013887299, 2.4430286e-05))
# (r - tan(r) * (1 - POLE*r*r)) / r**3: without the nearest poles little is left to a polynomial. Relative error of
# tan r below 2**-56.4, float32 2**-27.6.
POLE = 0.4052847345693511  # 4 / pi**2
TANGENT = (
    *(0.07195140123601905, 0.001761578189731194, 6.97106417213729e-05, 3.0209437481105285e-06),
    *(1.3434347292314354e-07, 5.990221596882734e-09, 3.027077555814329e-10),
)
POLE_32 = np.float32(0.40528473)
TANGENT_32 = tuple(np.float32(c) for c in (0.071951546, 0.0017601728, 7.3509837e-05))


@scalar
def beyond(x):
    return abs(x) > LIMIT


@scalar
def beyond32(x):
    return abs(x) > LIMIT_32


@scalar
def _reduce(x):
    """r and rest with r - rest = x - k pi/2, rest being the rounding error of r, and bits that end in those of k."""
    shifted = fma(x, TWO_OVER_PI, SHIFT)
    k = shifted - SHIFT
    first = fma(-k, HALF_PI_1, x)
    r = fma(-k, HALF_PI_2, first)
    rest = fma(k, HALF_PI_3, fma(k, HALF_PI_2, r - first))
    return r, rest, bits(shifted)


@scalar
def _sin_cos(r, rest):
    """Sine and cosine of r - rest."""
    z = fma(r, r, -2.0 * r * rest)
    # Subtracted, so that -0.0 stays -0.0.
    return r - fma(r * z, horner(z, SINE), rest), fma(z, fma(z, horner(z, COSINE), -0.5), 1.0)


@intrinsic
def _turn(typingctx, s, c, k):
    """The sine after k quarter turns, where it was s and the cosine c."""
    if s not in INTEGERS or (c, k) != (s, INTEGERS[s]):
        return None

    def code(context, builder, signature, args):
        s, c, k = args
        sign = builder.and_(builder.shl(k, k.type(k.type.width - 2)), k.type(1 << k.type.width - 1))
        turned = builder.select(builder.trunc(k, ir.IntType(1)), c, s)
        return builder.bitcast(builder.xor(builder.bitcast(turned, k.type), sign), s.type)

    return s(s, c, k), code


@scalar
def _tan(r, rest, k):
    """The tangent of r - rest after k quarter turns."""
    z = fma(r, r, -2.0 * r * rest)
    s = r - fma(r * z, horner(z, TANGENT), rest)
    c = fma(-POLE, z, 1.0)
    odd = (k & 1) != 0
    return select(odd, -c, s) / select(odd, s, c)


@scalar
def sin(x):
    """Sine: 1.5 ulp for |x| <= 2**22."""
    r, rest, k = _reduce(x)
    s, c = _sin_cos(r, rest)
    return _turn(s, c, k)


@scalar
def cos(x):
    """Cosine: 1.5 ulp for |x| <= 2**22."""
    r, rest, k = _reduce(x)
    s, c = _sin_cos(r, rest)
    return _turn(c, -s, k)


@scalar
def tan(x):
    """Tangent: 2.5 ulp for |x| <= 2**22."""
    r, rest, k = _reduce(x)
    return _tan(r, rest, k)


@scalar
def _sin_cos32(x):
    """Sine and cosine of x - k pi/2, and bits that end in those of k."""
    shifted = fma(x, TWO_OVER_PI_32, SHIFT_32)
    k = shifted - SHIFT_32
    r = fma(-k, HALF_PI_3_32, fma(-k, HALF_PI_2_32, fma(-k, HALF_PI_1_32, x)))
    z = r * r
    # The zero keeps -0.0 from becoming 0.0.
    s = r - fma(r * z, horner(z, SINE_32), ZERO_32)
    return s, fma(z, fma(z, horner(z, COSINE_32), -HALF_32), ONE_32), bits(shifted)


@scalar
def sin32(x):
    """Sine: 2.5 ulp for |x| <= 2**16."""
    s, c, k = _sin_cos32(x)
    return _turn(s, c, k)


@scalar
def cos32(x):
    """Cosine: 2.5 ulp for |x| <= 2**16."""
    s, c, k = _sin_cos32(x)
    return _turn(c, -s, k)


@scalar
def tan32(x):
    """Tangent: 3.5 ulp for |x| <= 2**16."""
    shifted = fma(x, TWO_OVER_PI_32, SHIFT_32)
    k = shifted - SHIFT_32
    r = fma(-k, HALF_PI_3_32, fma(-k, HALF_PI_2_32, fma(-k, HALF_PI_1_32, x)))
    z = r * r
    s = r - fma(r * z, horner(z, TANGENT_32), ZERO_32)
    c = fma(-POLE_32, z, ONE_32)
    odd = (bits(shifted) & 1) != 0
    return select(odd, -c, s) / select(odd, s, c)


@scalar
def _reduce_any(x):
    return _reduce(x) if abs(x) <= LIMIT else reduce_huge(x)


@scalar
def sin_careful(x):
    """Sine: 1.5 ulp for every argument."""
    r, rest, k = _reduce_any(x)
    s, c = _sin_cos(r, rest)
    return _turn(s, c, k)


@scalar
def cos_careful(x):
    """Cosine: 1.5 ulp for every argument."""
    r, rest, k = _reduce_any(x)
    s, c = _sin_cos(r, rest)
    return _turn(c, -s, k)


@scalar
def tan_careful(x):
    """Tangent: 2.5 ulp for every argument."""
    r, rest, k = _reduce_any(x)
    return _tan(r, rest, k)


TABLE = {
    "sin": Math(sin, sin32, 1.5, beyond, beyond32, sin_careful),
    "cos": Math(cos, cos32, 1.5, beyond, beyond32, cos_careful),
    "tan": Math(tan, tan32, 2.5, beyond, beyond32, tan_careful),
}
