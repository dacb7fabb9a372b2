"""Ops on scalars, element by element."""

from __future__ import annotations

import operator
from math import inf

import numpy as np

from .. import fastmath
from .entry import NO_DERIVATIVE, Elementwise, Entry

TABLE: dict[str, Entry] = {}


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
    partials=lambda x, y: (1 / y, -(x / y) / y), domain=((-inf, inf), (0.1, inf)), aliases=("div", "true_divide"),
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
isinf = declared(
    "isinf(x)", "Is infinite.", ufunc=np.isinf, forward="(({0} == {0}) & ({0} - {0} != 0))"
)  # fmt: skip

# The branch not taken gets a cotangent of zero, which guarded products keep at zero.
where: Elementwise = elementwise(
    "where(condition, x, y)", "x where the condition holds, else y.", numpy=np.where, like=np.add, masks=("condition",),
    forward="({1} if {0} else {2})",
    pull=lambda g, condition: (None, where(condition, g, 0), where(condition, 0, g)),
)  # fmt: skip

sign = declared(
    "sign(x)", "-1, 0 or 1.", ufunc=np.sign,
    expression=lambda x: where(x > 0, 1, where(x < 0, -1, where(equal(x, 0), 0, x))),
)  # fmt: skip

# Powers and roots

absolute = elementwise(
    "absolute(x)", "Absolute value.", ufunc=np.absolute, forward=fastmath.absolute, partials=lambda x: sign(x),
    cost=0, aliases=("abs",), conventions="the derivative at 0 is 0", special={0.0: 0.0}, squared=lambda x: x * x,
)  # fmt: skip

square = elementwise("square(x)", "x * x.", ufunc=np.square, expression=lambda x: x * x, partials=lambda x: 2 * x)

sqrt = elementwise(
    "sqrt(x)", "Square root.", ufunc=np.sqrt, forward=fastmath.sqrt, partials=lambda out: 0.5 / out,
    domain=(0.05, inf), special={0.0: 0.0, 1.0: 1.0, inf: inf}, cost=5, squared=lambda x: x,
)  # fmt: skip

# Like divide it keeps x: 1/x overwritten in place stays differentiable.
reciprocal = elementwise(
    "reciprocal(x)", "1 / x.", ufunc=np.reciprocal, expression=lambda x: 1 / x, partials=lambda x: -(1 / x) / x,
    domain=(0.1, inf), special={1.0: 1.0, inf: 0.0},
)  # fmt: skip

power: Elementwise = elementwise(
    "power(x, y)", "x to the power y.", ufunc=np.power, forward=fastmath.power, syntax="**", cost=20,
    partials=lambda x, y: (
        where(equal(y, 0), 0, y * power(x, y - 1)),
        # out * log(x) is nan at x = 0, where 0**y is constant in y on the side where it is finite.
        where(equal(x, 0), where(y >= 0, 0, -inf), power(x, y) * log(x)),
    ),
    domain=((0.1, 4.0), (-3.0, 3.0)), aliases=("pow",),
    conventions="x**0 has gradient 0 everywhere; the derivative by y at x = 0, y >= 0 is 0",
)  # fmt: skip

# Exponentials and logarithms

exp = elementwise(
    "exp(x)", "e to the power x.", ufunc=np.exp, forward=fastmath.exp, partials=lambda out: out,
    domain=(-20, 20), special={0.0: 1.0, -inf: 0.0, inf: inf}, cost=10,
)  # fmt: skip

# out + 1 loses all figures of exp(x) for very negative x; absolutely the error stays below 1e-16.
expm1 = elementwise(
    "expm1(x)", "exp(x) - 1, accurate near 0.", ufunc=np.expm1, forward=fastmath.expm1,
    partials=lambda out: out + 1, domain=(-5, 20), special={0.0: 0.0, -inf: -1.0, inf: inf}, cost=10,
)  # fmt: skip

log: Elementwise = elementwise(
    "log(x)", "Natural logarithm.", ufunc=np.log, forward=fastmath.log, partials=lambda x: 1 / x,
    domain=(0.05, inf), special={1.0: 0.0, 0.0: -inf, inf: inf}, cost=10,
)  # fmt: skip

log1p = elementwise(
    "log1p(x)", "log(1 + x), accurate near 0.", ufunc=np.log1p, forward=fastmath.log1p,
    partials=lambda x: 1 / (1 + x), domain=(-0.9, inf), special={0.0: 0.0, -1.0: -inf, inf: inf}, cost=10,
)  # fmt: skip

# Trigonometric and hyperbolic

sin = elementwise(
    "sin(x)",
    "Sine.",
    ufunc=np.sin,
    forward=fastmath.sin,
    partials=lambda x: cos(x),
    special={0.0: 0.0},
    cost=10,
)

cos: Elementwise = elementwise(
    "cos(x)",
    "Cosine.",
    ufunc=np.cos,
    forward=fastmath.cos,
    partials=lambda x: -sin(x),
    special={0.0: 1.0},
    cost=10,
)

tan = elementwise(
    "tan(x)", "Tangent.", ufunc=np.tan, forward=fastmath.tan, partials=lambda out: 1 + out * out,
    domain=(-1.4, 1.4), special={0.0: 0.0}, cost=15,
)  # fmt: skip

# Reading the result lets the input be overwritten; it costs relative accuracy in the tails, where the
# derivative is below 1e-3, and the product form loses least there.
tanh = elementwise(
    "tanh(x)", "Hyperbolic tangent.", ufunc=np.tanh, forward=fastmath.tanh,
    partials=lambda out: (1 - out) * (1 + out), special={0.0: 0.0, inf: 1.0, -inf: -1.0}, domain=(-8, 8), cost=10,
)  # fmt: skip

arctan = elementwise(
    "arctan(x)", "Inverse tangent.", ufunc=np.arctan, forward=fastmath.arctan, partials=lambda x: 1 / (1 + x * x),
    special={0.0: 0.0, inf: np.pi / 2, -inf: -np.pi / 2}, cost=10,
)  # fmt: skip

sinh = elementwise(
    "sinh(x)", "Hyperbolic sine.", ufunc=np.sinh, forward=fastmath.sinh, partials=lambda x: cosh(x),
    domain=(-20, 20), special={0.0: 0.0, inf: inf, -inf: -inf}, cost=10,
)  # fmt: skip

cosh: Elementwise = elementwise(
    "cosh(x)", "Hyperbolic cosine.", ufunc=np.cosh, forward=fastmath.cosh, partials=lambda x: sinh(x),
    domain=(-20, 20), special={0.0: 1.0, inf: inf, -inf: inf}, cost=10,
)  # fmt: skip

arctan2 = elementwise(
    "arctan2(y, x)", "The angle of the point (x, y).", ufunc=np.arctan2, forward=fastmath.arctan2,
    partials=lambda y, x: (x / (x * x + y * y), -y / (x * x + y * y)), domain=((0.1, inf), (0.1, inf)), cost=15,
)  # fmt: skip

# exp(-x) overflows to inf for very negative x, and 1 / inf is the right limit.
sigmoid = elementwise(
    "sigmoid(x)", "Logistic function 1 / (1 + exp(-x)).", expression=lambda x: 1 / (1 + exp(-x)), like=np.exp,
    partials=lambda out: out * (1 - out), domain=(-20, 20), special={0.0: 0.5, inf: 1.0, -inf: 0.0}, cost=10,
)  # fmt: skip

# Selections

# nan != nan, so the second comparison lets a nan in either operand through, as in NumPy.
maximum = elementwise(
    "maximum(x, y)", "The larger; nan if either is nan.", ufunc=np.maximum,
    expression=lambda x, y: where((x >= y) | not_equal(x, x), x, y),
    partials=lambda x, y: (where(x > y, 1, where(x < y, 0, 0.5)), where(x > y, 0, where(x < y, 1, 0.5))),
    conventions="ties share the gradient evenly",
)  # fmt: skip

minimum = elementwise(
    "minimum(x, y)", "The smaller; nan if either is nan.", ufunc=np.minimum,
    expression=lambda x, y: where((x <= y) | not_equal(x, x), x, y),
    partials=lambda x, y: (where(x < y, 1, where(x > y, 0, 0.5)), where(x < y, 0, where(x > y, 1, 0.5))),
    conventions="ties share the gradient evenly",
)  # fmt: skip

# It keeps its result, which is positive exactly where the input is.
relu = elementwise(
    "relu(x)", "x where positive, else 0.",
    expression=lambda x: where((x > 0) | not_equal(x, x), x, 0), like=np.maximum,
    partials=lambda out: where(out > 0, 1, 0), cost=0, conventions="the derivative at 0 is 0",
    special={0.0: 0.0, inf: inf, -inf: 0.0},
)  # fmt: skip

clip = elementwise(
    "clip(x, min=-inf, max=inf)", "x, limited to [min, max].", numpy=np.clip, like=np.maximum,
    expression=lambda x, min, max: minimum(maximum(x, min), max),
    partials=lambda x, min, max: (
        where((x >= min) & (x <= max), 1, 0),
        where((x < min) & (min <= max), 1, 0),
        where((x > max) | (min > max), 1, 0),
    ),
    cost=0, conventions="passes the gradient at its bounds", domain=((-2.0, 2.0), (-1.3, -1.1), (1.1, 1.3)),
)  # fmt: skip
