"""Power, cube root and error function, in float64 and float32; a bound of n ulp is n + 1 in float32.

`power` is exp(y log x) with the logarithm in two numbers, right to some 2**-65 (float32 2**-34), so that y log x,
up to 745 (104), keeps its last bits: s = f/(2 + f), its rounding error, s*s and the first term of
log m = 2s (1 + z/3 + z*z*Q(z)) are taken in two parts, Q is not (T. J. Dekker, Numerische Mathematik 18, 1971, for the
exact sums and products).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import exponential, logarithm
from .bits import Math, fma, like, scalar, select
from .exponential import growth, scale
from .floats import clamp, copysign, fast_two_sum, floor, pick, polynomial, two_to
from .logarithm import normalise


class Constants(NamedTuple):
    """What these functions know of a dtype."""

    exp: exponential.Constants
    log: logarithm.Constants
    third: Any
    third_rest: Any
    root: Any  # m**(-1/3) for m in [sqrt(1/2), sqrt(2)), relative error 2**-17.4, float32 2**-11.9
    down: Any  # 2**(-1/3) and 2**(1/3)
    up: Any
    erf: Any  # erf(x)/x - 1 in x*x for |x| <= 1, relative error of erf 2**-55.6, float32 2**-29.3
    logerfc: Any  # log(erfc(x)) in x - 1 for 1 <= x <= full, relative error of erf 2**-54.8, float32 2**-29.8
    full: Any  # erf is 1 above


def _single(*values: float) -> Any:
    return tuple(np.float32(v) for v in values)


# Minimax (Remez by sollya, rounded to the dtype): remez(1, 5, [sqrt(1/2); sqrt(2)], x**(1/3));
# fpminimax(erf(sqrt(x))/sqrt(x) - 1, 11, [|D...|], [2**-40; 1.001], absolute); and
# remez(log(erfc(x + 1)) * w, 16, [0; 4.95], w), w = erfc(x + 1)/erf(x + 1).
DOUBLE = Constants(
    exp=exponential.DOUBLE,
    log=logarithm.DOUBLE,
    third=0.3333333333333333,
    third_rest=1.850371707708594e-17,
    root=(
        1.9991696736573514,
        -2.485915625580081,
        2.7922039985907747,
        -1.8981274884828006,
        0.7007373273613938,
        -0.10806403868761029,
    ),
    down=2.0 ** (-1 / 3),
    up=2.0 ** (1 / 3),
    erf=(
        0.12837916709551256,
        -0.3761263890318347,
        0.11283791670943219,
        -0.026866170643026162,
        0.005223977605720604,
        -0.000854832591896975,
        0.00012055293436114663,
        -1.492471178154262e-05,
        1.6447143828683642e-06,
        -1.6206508448666204e-07,
        1.3712132299376225e-08,
        -7.782029301676088e-10,
    ),
    logerfc=(
        -1.8496055099332485,
        -2.6389675142347323,
        -0.8431072563618512,
        -0.041561097972685045,
        0.010033824605612914,
        -0.0019778975192494114,
        0.00023730116081057372,
        2.6339039405022065e-05,
        -2.7282746010632704e-05,
        9.789306273179287e-06,
        -2.2526979361867017e-06,
        2.952028227715490e-07,
        8.735695391294890e-09,
        -1.410153087987336e-08,
        3.2508628606628546e-09,
        -3.6857462968204108e-10,
        1.7705738113781567e-11,
    ),
    full=5.95,
)
SINGLE = Constants(
    exp=exponential.SINGLE,
    log=logarithm.SINGLE,
    third=np.float32(0.33333334),
    third_rest=np.float32(-9.934108e-09),
    root=_single(1.73070967, -1.28573192, 0.71334064, -0.158539787),
    down=np.float32(2.0 ** (-1 / 3)),
    up=np.float32(2.0 ** (1 / 3)),
    erf=_single(0.128379166, -0.376126289, 0.112836182, -0.0268551223, 0.00519071659, -0.000803050934, 7.91918792e-05),
    logerfc=_single(-1.84960556, -2.6389668, -0.84311759, -0.0415034965, 0.00989546068, -0.00182938308, 0.000186379169),
    full=np.float32(3.95),
)


@scalar
def _log_pair(x, c):
    """log x of a positive finite `x` as the sum of two numbers."""
    one, two = like(x, 1.0), like(x, 2.0)
    m, e = normalise(x, c.log)
    f = m - one
    below, lost = fast_two_sum(two, f)
    inverse = one / below
    s = f * inverse
    s_rest = (fma(-s, below, f) - s * lost) * inverse
    z = s * s
    z_rest = fma(s, s, -z) + two * s * s_rest
    u = z * c.third
    u_rest = fma(z, c.third, -u) + (z * c.third_rest + z_rest * c.third)
    u, u_rest = fast_two_sum(u, u_rest + z * z * polynomial(z, c.log.artanh))
    p = s * u
    p_rest = fma(s, u, -p) + (s * u_rest + s_rest * u)
    head, p = fast_two_sum(s, p)
    rest = p + (s_rest + p_rest)
    total, lost = fast_two_sum(e * c.exp.ln2, two * head)
    return fast_two_sum(total, lost + (two * rest + e * c.exp.ln2_rest))


@scalar
def power(x, y):
    """x**y: 2.5 ulp, and C's special cases: nan for a negative x and a y not whole, 1 for y = 0 or x = 1."""
    c = pick(x, DOUBLE, SINGLE)
    zero, one, infinity = like(x, 0.0), like(x, 1.0), like(x, math.inf)
    a = abs(x)
    head, rest = _log_pair(a, c)
    regular = (a > zero) & (a < infinity)
    head = select(regular, head, select(a == zero, -infinity, a))
    p = y * head
    small = fma(y, head, -p) + y * rest
    # An exponent out of range has no use for its second part, which may be nan.
    small = select(abs(p) < -c.exp.lowest, small, zero)
    p = clamp(p, c.exp.lowest, -c.exp.lowest)
    k = (p * c.exp.log2e + c.exp.magic) - c.exp.magic
    r, lost = fast_two_sum(p - k * c.exp.ln2, small - k * c.exp.ln2_rest)
    # With 1 + r exact, little is lost before the last rounding: powers that are numbers come out exactly.
    near, left = fast_two_sum(one, r)
    result = scale(near + (left + growth(r, lost, c.exp)), k, c.exp)
    whole, half = floor(y) == y, like(x, 0.5) * y
    result = select(whole & (floor(half) != half), copysign(result, x), result)
    result = select((x < zero) & (a < infinity) & (floor(y) != y), like(x, math.nan), result)
    return select((y == zero) | (x == one) | ((a == one) & (abs(y) == infinity)), one, result)


@scalar
def cbrt(x):
    """Cube root: m**(-1/3) by a polynomial and one step of third order, then Newton's for the root itself: 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    zero, one = like(x, 0.0), like(x, 1.0)
    a = abs(x)
    m, e = normalise(a, c.log)
    t = e * c.third + c.exp.magic
    left = e - like(x, 3.0) * (t - c.exp.magic)
    # m**(-1/3) is approximated before m takes in what the exponent leaves when divided by three.
    y = polynomial(m, c.root) * select(left > zero, c.down, select(left < zero, c.up, one))
    m = m * select(left > zero, like(x, 2.0), select(left < zero, like(x, 0.5), one))
    h = one - m * y * y * y
    y = y + y * h * (c.third + like(x, 2 / 9) * h)
    root = m * y * y
    root = root + fma(-root, root * root, m) * (y * y * c.third)
    regular = (a > zero) & (a < like(x, math.inf))
    return select(regular, copysign(root * two_to(t), x), x)


@scalar
def erf(x):
    """Error function, 1 - exp(log erfc(x)) by a polynomial for the logarithm above 1: 2.5 ulp."""
    c = pick(x, DOUBLE, SINGLE)
    one = like(x, 1.0)
    a = abs(x)
    b = clamp(a, like(x, 0.0), c.full)
    # 1 - erfc, of which erf needs the fewer bits the larger x is.
    g = polynomial(b - one, c.logerfc)
    t, _, r, rest = exponential.reduce(clamp(g, like(x, -64.0), one), c.exp)
    outer = one - two_to(t) * (one + (r + growth(r, rest, c.exp)))
    inner = x + x * polynomial(x * x, c.erf)
    return select(a < one, inner, copysign(outer, x))


TABLE = {
    "power": Math(power, power, 2.5),
    "cbrt": Math(cbrt, cbrt, 2.5),
    "erf": Math(erf, erf, 2.5),
}
