"""Ops on scalars, element by element."""

from __future__ import annotations

import math
import operator
from math import inf
from typing import Any

import numpy as np

from .. import fastmath
from .entry import NO_DERIVATIVE, Elementwise, Entry

TABLE: dict[str, Entry] = {}
# Domains.
REALS = (-inf, inf)
NONZERO = ((-inf, 0), (0, inf))


def elementwise(call: str, doc: str, **rule: object) -> Elementwise:
    made = Elementwise(call, doc, **rule)  # type: ignore[arg-type]
    TABLE[made.name] = made
    return made


def declared(call: str, doc: str, **rule: object) -> Elementwise:
    """An op declared non-differentiable."""
    return elementwise(call, doc, differentiable=False, conventions=NO_DERIVATIVE, **rule)


# Arithmetic

add = elementwise("add(x, y)", "Sum.", ufunc=np.add, forward="({0} + {1})", syntax="+", partials=lambda: (1, 1))

subtract = elementwise(
    "subtract(x, y)", "Difference.", ufunc=np.subtract, forward="({0} - {1})", syntax="-", python=operator.sub,
    partials=lambda: (1, -1), aliases=("sub",),
)  # fmt: skip

multiply = elementwise(
    "multiply(x, y)", "Product.", ufunc=np.multiply, forward="({0} * {1})", syntax="*", python=operator.mul,
    partials=lambda x, y: (y, x), aliases=("mul",),
)  # fmt: skip

# y keeps x instead of the result, so that a loop of `t /= y` may overwrite each result.
divide = elementwise(
    "divide(x, y)", "Quotient.", ufunc=np.divide, forward="({0} / {1})", syntax="/",
    partials=lambda x, y: (1 / y, -(x / y) / y), domain=(REALS, NONZERO), aliases=("div", "true_divide"),
)  # fmt: skip

positive = elementwise("positive(x)", "A copy of x.", ufunc=np.positive, forward="(+{0})", partials=lambda: 1, cost=0)

negative = elementwise(
    "negative(x)", "Minus x.", ufunc=np.negative, forward="(-{0})", syntax="neg",
    partials=lambda: -1, cost=0, aliases=("neg",),
)  # fmt: skip

# Zero where the cotangent c is zero, also where p is not finite; what a masked branch never sent back must
# not come out as nan. The printed form is a select; p by c and c by p are guarded again.
guarded_product = elementwise(
    "guarded_product(c, p)", "c * p, and zero where c is zero.", syntax="zmul",
    forward="({0} * {1} if {0} != 0 else {0})", partials=lambda c, p: (p, c), private=True, like=np.multiply,
)  # fmt: skip

# Comparisons and logicals

equal = declared("equal(x, y)", "x == y.", ufunc=np.equal, forward="({0} == {1})")
not_equal = declared("not_equal(x, y)", "x != y.", ufunc=np.not_equal, forward="({0} != {1})")
less = declared("less(x, y)", "x < y.", ufunc=np.less, forward="({0} < {1})", syntax="<")
less_equal = declared("less_equal(x, y)", "x <= y.", ufunc=np.less_equal, forward="({0} <= {1})", syntax="<=")
greater = declared("greater(x, y)", "x > y.", ufunc=np.greater, forward="({0} > {1})", syntax=">")
greater_equal = declared("greater_equal(x, y)", "x >= y.", ufunc=np.greater_equal, forward="({0} >= {1})", syntax=">=")
logical_and = declared(
    "logical_and(x, y)", "Both true.", ufunc=np.logical_and, forward="(({0} != 0) & ({1} != 0))", syntax="&"
)
logical_or = declared(
    "logical_or(x, y)", "Either true.", ufunc=np.logical_or, forward="(({0} != 0) | ({1} != 0))", syntax="|"
)
logical_xor = declared(
    "logical_xor(x, y)", "One of the two true.", ufunc=np.logical_xor, forward="(({0} != 0) ^ ({1} != 0))"
)
logical_not = declared("logical_not(x)", "Not true.", ufunc=np.logical_not, forward="({0} == 0)")
isnan = declared("isnan(x)", "Is not a number.", ufunc=np.isnan, forward="({0} != {0})")
isfinite = declared("isfinite(x)", "Is neither infinite nor nan.", ufunc=np.isfinite, forward="({0} - {0} == 0)")
isinf = declared("isinf(x)", "Is infinite.", ufunc=np.isinf, forward="(({0} == {0}) & ({0} - {0} != 0))")
signbit = declared("signbit(x)", "Is negative, -0.0 included.", ufunc=np.signbit, forward=fastmath.signbit)

# The branch not taken gets a cotangent of zero, which guarded products keep at zero.
where: Elementwise = elementwise(
    "where(condition, x=None, y=None)", "x where the condition holds, else y.", numpy=np.where, like=np.add,
    masks=("condition",), forward="({1} if {0} else {2})",
    pull=lambda g, condition: (None, where(condition, g, 0), where(condition, 0, g)),
)  # fmt: skip

sign = declared(
    "sign(x)", "-1, 0 or 1.", ufunc=np.sign,
    expression=lambda x: where(x > 0, 1, where(x < 0, -1, where(equal(x, 0), 0, x))),
)  # fmt: skip

heaviside = declared(
    "heaviside(x, h0)", "0 where x is negative, 1 where positive, h0 where zero.", ufunc=np.heaviside,
    expression=lambda x, h0: where(x > 0, 1, where(x < 0, 0, where(equal(x, 0), h0, x))),
    example=("mg.heaviside(mg.tensor([-2.0, 0.0, 2.0]), 0.5).tolist()", "[0.0, 0.5, 1.0]"),
)  # fmt: skip

# Powers and roots

absolute = elementwise(
    "absolute(x)", "Absolute value.", ufunc=np.absolute, forward=fastmath.absolute, partials=lambda x: sign(x),
    cost=0, aliases=("abs",), conventions="the derivative at 0 is 0", special={0.0: 0.0}, squared=lambda x: x * x,
)  # fmt: skip

copysign: Elementwise = elementwise(
    "copysign(x, y)", "x with the sign of y.", ufunc=np.copysign, forward=fastmath.copysign, cost=0,
    partials=lambda x, y: (sign(x) * copysign(1, y), None),
    conventions="the derivative at x = 0 is 0, and by y it is 0 everywhere",
    example=("mg.copysign(mg.tensor([1.0, -2.0]), -0.0).tolist()", "[-1.0, -2.0]"),
)  # fmt: skip

square = elementwise("square(x)", "x * x.", ufunc=np.square, expression=lambda x: x * x, partials=lambda x: 2 * x)

sqrt = elementwise(
    "sqrt(x)", "Square root.", ufunc=np.sqrt, forward=fastmath.sqrt, partials=lambda out: 0.5 / out,
    domain=(0, inf), special={0.0: 0.0, 1.0: 1.0, inf: inf}, cost=5, squared=lambda x: x,
)  # fmt: skip


cbrt = elementwise(
    "cbrt(x)", "Cube root.", ufunc=np.cbrt, forward=fastmath.cbrt, partials=lambda out: 1 / (3 * out * out),
    domain=(NONZERO,), special={0.0: 0.0, -8.0: -2.0, -inf: -inf}, cost=20, conventions="the derivative at 0 is inf",
    example=("mg.cbrt(mg.tensor([-8.0, 27.0])).tolist()", "[-2.0, 3.0]"),
)  # fmt: skip


def _share(x: Any, length: Any) -> Any:
    return where(equal(length, 0), 0, x / length)


hypot = elementwise(
    "hypot(x, y)", "sqrt(x*x + y*y), without overflow.", ufunc=np.hypot, forward=fastmath.hypot, cost=10,
    partials=lambda x, y, out: (_share(x, out), _share(y, out)), conventions="the derivative at (0, 0) is 0",
    squared=lambda x, y: x * x + y * y, example=("mg.hypot(mg.tensor([3.0, 0.0]), 4.0).tolist()", "[5.0, 4.0]"),
)  # fmt: skip

# Like divide it keeps x: 1/x overwritten in place stays differentiable.
reciprocal = elementwise(
    "reciprocal(x)", "1 / x.", ufunc=np.reciprocal, expression=lambda x: 1 / x, partials=lambda x: -(1 / x) / x,
    domain=(NONZERO,), special={1.0: 1.0, inf: 0.0},
)  # fmt: skip

power: Elementwise = elementwise(
    "power(x, y)", "x to the power y.", ufunc=np.power, forward=fastmath.power, syntax="**", cost=20,
    partials=lambda x, y: (
        where(equal(y, 0), 0, y * power(x, y - 1)),
        # out * log(x) is nan at x = 0, where 0**y is constant in y on the side where it is finite.
        where(equal(x, 0), where(y >= 0, 0, -inf), power(x, y) * log(x)),
    ),
    domain=((0, inf), REALS), sample=((0.1, 4.0), (-3.0, 3.0)), aliases=("pow",),
    conventions="differentiable also for negative x and whole y; "
    "x**0 has gradient 0 everywhere; the derivative by y at x = 0, y >= 0 is 0",
)  # fmt: skip

# Exponentials and logarithms

exp = elementwise(
    "exp(x)", "e to the power x.", ufunc=np.exp, forward=fastmath.exp, partials=lambda out: out,
    special={0.0: 1.0, -inf: 0.0, inf: inf}, cost=10,
)  # fmt: skip

exp2 = elementwise(
    "exp2(x)", "2 to the power x.", ufunc=np.exp2, forward=fastmath.exp2, partials=lambda out: math.log(2) * out,
    special={0.0: 1.0, 3.0: 8.0, -inf: 0.0, inf: inf}, cost=10,
    example=("mg.exp2(mg.tensor([0.0, 3.0])).tolist()", "[1.0, 8.0]"),
)  # fmt: skip

# out + 1 loses all figures of exp(x) for very negative x; absolutely the error stays below 1e-16.
expm1 = elementwise(
    "expm1(x)", "exp(x) - 1, accurate near 0.", ufunc=np.expm1, forward=fastmath.expm1,
    partials=lambda out: out + 1, special={0.0: 0.0, -inf: -1.0, inf: inf}, cost=10,
)  # fmt: skip

log: Elementwise = elementwise(
    "log(x)", "Natural logarithm.", ufunc=np.log, forward=fastmath.log, partials=lambda x: 1 / x,
    domain=(0, inf), special={1.0: 0.0, 0.0: -inf, inf: inf}, cost=10,
)  # fmt: skip

log2 = elementwise(
    "log2(x)", "Logarithm to the base 2.", ufunc=np.log2, forward=fastmath.log2, partials=lambda x: 1 / math.log(2) / x,
    domain=(0, inf), special={1.0: 0.0, 8.0: 3.0, 0.0: -inf, inf: inf}, cost=10,
    example=("mg.log2(mg.tensor([1.0, 8.0])).tolist()", "[0.0, 3.0]"),
)  # fmt: skip

log10 = elementwise(
    "log10(x)", "Logarithm to the base 10.", ufunc=np.log10, forward=fastmath.log10,
    partials=lambda x: 1 / math.log(10) / x,
    domain=(0, inf), special={1.0: 0.0, 1000.0: 3.0, 0.0: -inf, inf: inf}, cost=10,
    example=("mg.log10(mg.tensor([1.0, 1000.0])).tolist()", "[0.0, 3.0]"),
)  # fmt: skip

log1p = elementwise(
    "log1p(x)", "log(1 + x), accurate near 0.", ufunc=np.log1p, forward=fastmath.log1p,
    partials=lambda x: 1 / (1 + x), domain=(-1, inf), special={0.0: 0.0, -1.0: -inf, inf: inf}, cost=10,
)  # fmt: skip

sigmoid = elementwise(
    "sigmoid(x)", "Logistic function 1 / (1 + exp(-x)).", forward=fastmath.sigmoid, like=np.exp,
    partials=lambda out: out * (1 - out), special={0.0: 0.5, inf: 1.0, -inf: 0.0}, cost=10,
)  # fmt: skip


def _apart(x: Any, y: Any) -> Any:
    """x - y, and 0 for two infinities of one sign."""
    return where(equal(x, y) & isinf(x), 0, x - y)


# The partials are sigmoids of the difference, not exp(x - out): out has lost the figures of a small difference.
logaddexp = elementwise(
    "logaddexp(x, y)", "log(exp(x) + exp(y)), without overflow.", ufunc=np.logaddexp, forward=fastmath.logaddexp,
    partials=lambda x, y: (sigmoid(_apart(x, y)), sigmoid(_apart(y, x))), cost=20,
    conventions="equal infinities share the gradient evenly",
    example=("mg.logaddexp(mg.tensor([-1000.0, 0.0]), 1000.0).tolist()", "[1000.0, 1000.0]"),
)  # fmt: skip

logaddexp2 = elementwise(
    "logaddexp2(x, y)", "log2(2**x + 2**y), without overflow.", ufunc=np.logaddexp2, forward=fastmath.logaddexp2,
    partials=lambda x, y: (sigmoid(math.log(2) * _apart(x, y)), sigmoid(math.log(2) * _apart(y, x))), cost=20,
    conventions="equal infinities share the gradient evenly",
    example=("mg.logaddexp2(mg.tensor([3.0, 10.0]), 3.0).tolist()[0]", "4.0"),
)  # fmt: skip

# 1 - exp(-out) is the sigmoid of x to all its figures, read from the result.
softplus = elementwise(
    "softplus(x)", "log(1 + exp(x)), without overflow.", forward=fastmath.softplus, like=np.exp,
    partials=lambda out: -expm1(-out), special={0.0: math.log(2), 1000.0: 1000.0, -inf: 0.0, inf: inf}, cost=20,
    example=("mg.softplus(mg.tensor([-1000.0, 1000.0])).tolist()", "[0.0, 1000.0]"),
)  # fmt: skip

erf = elementwise(
    "erf(x)", "Error function.", forward=fastmath.erf, like=np.exp,
    partials=lambda x: 2 / math.sqrt(math.pi) * exp(-(x * x)), special={0.0: 0.0, inf: 1.0, -inf: -1.0}, cost=10,
)  # fmt: skip

# Trigonometric and hyperbolic

# As a product it is accurate near 1, and with a partial of its own it differentiates again accurately near 0.
one_minus_square = elementwise(
    "one_minus_square(x)", "1 - x*x.", expression=lambda x: (1 - x) * (1 + x), partials=lambda x: -2 * x,
    private=True, like=np.multiply,
)  # fmt: skip

sin = elementwise(
    "sin(x)", "Sine.", ufunc=np.sin, forward=fastmath.sin, partials=lambda x: cos(x), special={0.0: 0.0}, cost=10,
)  # fmt: skip

cos: Elementwise = elementwise(
    "cos(x)", "Cosine.", ufunc=np.cos, forward=fastmath.cos, partials=lambda x: -sin(x), special={0.0: 1.0}, cost=10,
)  # fmt: skip

tan = elementwise(
    "tan(x)", "Tangent.", ufunc=np.tan, forward=fastmath.tan, partials=lambda out: 1 + out * out,
    sample=(-1.4, 1.4), special={0.0: 0.0}, cost=15,
)  # fmt: skip

# Reading the result lets the input be overwritten; it costs relative accuracy in the tails, where the
# derivative is below 1e-3, and the product form loses least there.
tanh = elementwise(
    "tanh(x)", "Hyperbolic tangent.", ufunc=np.tanh, forward=fastmath.tanh,
    partials=lambda out: one_minus_square(out), special={0.0: 0.0, inf: 1.0, -inf: -1.0}, cost=10,
)  # fmt: skip

arctan = elementwise(
    "arctan(x)", "Inverse tangent.", ufunc=np.arctan, forward=fastmath.arctan, partials=lambda x: 1 / (1 + x * x),
    special={0.0: 0.0, inf: np.pi / 2, -inf: -np.pi / 2}, cost=10, aliases=("atan",),
)  # fmt: skip

sinh = elementwise(
    "sinh(x)", "Hyperbolic sine.", ufunc=np.sinh, forward=fastmath.sinh, partials=lambda x: cosh(x),
    special={0.0: 0.0, inf: inf, -inf: -inf}, cost=10,
)  # fmt: skip

cosh: Elementwise = elementwise(
    "cosh(x)", "Hyperbolic cosine.", ufunc=np.cosh, forward=fastmath.cosh, partials=lambda x: sinh(x),
    special={0.0: 1.0, inf: inf, -inf: inf}, cost=10,
)  # fmt: skip

# By the length, whose square would overflow, and vanish in float32 already below 1e-22.
arctan2 = elementwise(
    "arctan2(y, x)", "The angle of the point (x, y).", ufunc=np.arctan2, forward=fastmath.arctan2,
    partials=lambda y, x: (
        _share(_share(x, hypot(x, y)), hypot(x, y)),
        -_share(_share(y, hypot(x, y)), hypot(x, y)),
    ),
    sample=((0.1, inf), NONZERO), cost=15, aliases=("atan2",), conventions="the derivative at (0, 0) is 0",
    example=("mg.arctan2(0.0, mg.tensor([1.0, 0.0])).tolist()", "[0.0, 0.0]"),
)  # fmt: skip

arcsin = elementwise(
    "arcsin(x)", "Inverse sine.", ufunc=np.arcsin, forward=fastmath.arcsin,
    partials=lambda x: 1 / sqrt(one_minus_square(x)), domain=(-1, 1), special={0.0: 0.0, 1.0: math.pi / 2}, cost=10,
    aliases=("asin",),
)  # fmt: skip

arccos = elementwise(
    "arccos(x)", "Inverse cosine.", ufunc=np.arccos, forward=fastmath.arccos,
    partials=lambda x: -(1 / sqrt(one_minus_square(x))), domain=(-1, 1), special={1.0: 0.0, -1.0: math.pi}, cost=10,
    aliases=("acos",),
)  # fmt: skip

arcsinh = elementwise(
    "arcsinh(x)", "Inverse hyperbolic sine.", ufunc=np.arcsinh, forward=fastmath.arcsinh,
    partials=lambda x: 1 / hypot(x, 1), special={0.0: 0.0, inf: inf, -inf: -inf}, cost=10, aliases=("asinh",),
)  # fmt: skip

# Two roots, since the product of what stands under them would overflow.
arccosh = elementwise(
    "arccosh(x)", "Inverse hyperbolic cosine.", ufunc=np.arccosh, forward=fastmath.arccosh,
    partials=lambda x: 1 / (sqrt(x - 1) * sqrt(x + 1)), domain=(1, inf), special={1.0: 0.0, inf: inf}, cost=10,
    aliases=("acosh",), example=("mg.arccosh(mg.tensor([1.0, 1.0])).tolist()", "[0.0, 0.0]"),
)  # fmt: skip

arctanh = elementwise(
    "arctanh(x)", "Inverse hyperbolic tangent.", ufunc=np.arctanh, forward=fastmath.arctanh,
    partials=lambda x: 1 / one_minus_square(x), domain=(-1, 1), special={0.0: 0.0, 1.0: inf, -1.0: -inf}, cost=10,
    aliases=("atanh",),
)  # fmt: skip

deg2rad = elementwise(
    "deg2rad(x)", "Degrees in radians.", ufunc=np.deg2rad, expression=lambda x: x * (math.pi / 180),
    aliases=("radians",), example=("mg.deg2rad(mg.tensor([0.0, 180.0])).tolist()", "[0.0, 3.141592653589793]"),
)  # fmt: skip

rad2deg = elementwise(
    "rad2deg(x)", "Radians in degrees.", ufunc=np.rad2deg, expression=lambda x: x * (180 / math.pi),
    aliases=("degrees",), example=("mg.rad2deg(mg.tensor([0.0, np.pi])).tolist()", "[0.0, 180.0]"),
)  # fmt: skip


def _sinc_slope(x: Any) -> Any:
    """The derivative of sinc: its power series where the closed form cancels, long enough to be differentiated."""
    t = math.pi * math.pi * x * x
    terms = [(-1) ** n * 2 * n / math.factorial(2 * n + 1) for n in range(1, 15)]
    series: Any = terms.pop()
    for term in reversed(terms):
        series = series * t + term
    return where(absolute(x) < 0.5, math.pi * math.pi * x * series, (cos(math.pi * x) - sinc(x)) / x)


sinc: Elementwise = elementwise(
    "sinc(x)", "sin(pi x) / (pi x), and 1 at 0.", numpy=np.sinc, like=np.sin,
    expression=lambda x: where(equal(x, 0), 1, sin(math.pi * x) / (math.pi * x)),
    partials=lambda x: _sinc_slope(x), special={0.0: 1.0}, cost=15,
    example=("mg.sinc(mg.tensor([0.0, 0.5])).tolist()", "[1.0, 0.6366197723675814]"),
)  # fmt: skip

# Selections

maximum = elementwise(
    "maximum(x, y)", "The larger; nan if either is nan.", ufunc=np.maximum, forward=fastmath.maximum,
    partials=lambda x, y: (where(x > y, 1, where(x < y, 0, 0.5)), where(x > y, 0, where(x < y, 1, 0.5))),
    conventions="ties share the gradient evenly",
)  # fmt: skip

minimum = elementwise(
    "minimum(x, y)", "The smaller; nan if either is nan.", ufunc=np.minimum, forward=fastmath.minimum,
    partials=lambda x, y: (where(x < y, 1, where(x > y, 0, 0.5)), where(x < y, 0, where(x > y, 1, 0.5))),
    conventions="ties share the gradient evenly",
)  # fmt: skip

# nan stands back: y is taken only where it is a number and the larger, or where x is none.
fmax = elementwise(
    "fmax(x, y)", "The larger; the number where one is nan.", ufunc=np.fmax,
    expression=lambda x, y: where((x >= y) | not_equal(y, y), x, y),
    partials=lambda x, y: _chosen(x > y, x < y, x, y), conventions="ties share the gradient evenly",
    example=("mg.fmax(mg.tensor([1.0, np.nan]), 0.5).tolist()", "[1.0, 0.5]"),
)  # fmt: skip

fmin = elementwise(
    "fmin(x, y)", "The smaller; the number where one is nan.", ufunc=np.fmin,
    expression=lambda x, y: where((x <= y) | not_equal(y, y), x, y),
    partials=lambda x, y: _chosen(x < y, x > y, x, y), conventions="ties share the gradient evenly",
    example=("mg.fmin(mg.tensor([1.0, np.nan]), 0.5).tolist()", "[0.5, 0.5]"),
)  # fmt: skip


def _chosen(first: Any, second: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The partials of a selection between two operands that passes a nan over."""
    first, second = first | not_equal(y, y), second | not_equal(x, x)
    return where(first, 1, where(second, 0, 0.5)), where(first, 0, where(second, 1, 0.5))


# It keeps its result, which is positive exactly where the input is.
relu = elementwise(
    "relu(x)", "x where positive, else 0.",
    expression=lambda x: where((x > 0) | not_equal(x, x), x, 0), like=np.maximum,
    partials=lambda out: where(out > 0, 1, 0), cost=0, conventions="the derivative at 0 is 0",
    special={0.0: 0.0, inf: inf, -inf: 0.0},
)  # fmt: skip

clip = elementwise(
    "clip(a, a_min=-inf, a_max=inf)", "a, limited to [a_min, a_max].", numpy=np.clip, like=np.maximum,
    expression=lambda a, a_min, a_max: minimum(maximum(a, a_min), a_max),
    partials=lambda a, a_min, a_max: (
        where((a >= a_min) & (a <= a_max), 1, 0),
        where((a < a_min) & (a_min <= a_max), 1, 0),
        where((a > a_max) | (a_min > a_max), 1, 0),
    ),
    keywords={"min": "a_min", "max": "a_max"}, cost=0, conventions="passes the gradient at its bounds",
    sample=((-2.0, 2.0), (-1.3, -1.1), (1.1, 1.3)),
)  # fmt: skip
