"""What the exponential family is built from: powers of two, fractions and exponents, polynomials, exact sums.

Everything works in the dtype of its first argument. Integers stay inside: AVX2 converts no 64-bit integer, so a
whole number k travels as the float `magic + k`, magic = 1.5 * 2**52 (2**23), which holds k in its lowest bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba import types

from .bits import intrinsic


class Layout(NamedTuple):
    """How a float type is stored; `root` is the bits of sqrt(1/2)."""

    real: ir.Type
    integer: ir.IntType
    mantissa: int
    one: int
    root: int


LAYOUTS = {
    types.float64: Layout(ir.DoubleType(), ir.IntType(64), 52, 1023 << 52, 0x3FE6A09E667F3BCD),
    types.float32: Layout(ir.FloatType(), ir.IntType(32), 23, 127 << 23, 0x3F3504F3),
}


def _call(builder: Any, name: str, *args: Any) -> Any:
    kind = args[0].type
    function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind] * len(args)))
    return builder.call(function, args)


@intrinsic
def pick(typingctx, x, double, single):
    """The constants for the dtype of `x`."""
    which = 1 if x == types.float64 else 2

    def code(context, builder, signature, args):
        return args[which]

    return (double if which == 1 else single)(x, double, single), code


@intrinsic
def sqrt(typingctx, x):
    """The square root: Python's calls the C library for negative numbers."""

    def code(context, builder, signature, args):
        return _call(builder, "llvm.sqrt", *args)

    return x(x), code


@intrinsic
def copysign(typingctx, x, sign):
    """`x` with the sign of `sign`."""

    def code(context, builder, signature, args):
        return _call(builder, "llvm.copysign", *args)

    return x(x, x), code


@intrinsic
def floor(typingctx, x):
    """The whole number below `x`, as a float."""

    def code(context, builder, signature, args):
        return _call(builder, "llvm.floor", *args)

    return x(x), code


@intrinsic
def maximum(typingctx, a, b):
    """The larger; nan if either is nan."""

    def code(context, builder, signature, args):
        return _call(builder, "llvm.maximum", *args)

    return (a(a, b), code) if a == b and a in LAYOUTS else None


@intrinsic
def minimum(typingctx, a, b):
    """The smaller; nan if either is nan."""

    def code(context, builder, signature, args):
        return _call(builder, "llvm.minimum", *args)

    return (a(a, b), code) if a == b and a in LAYOUTS else None


@intrinsic
def polynomial(typingctx, x, coefficients):
    """The sum of coefficients[i] * x**i in Estrin's order, pairs and then pairs of pairs: a short chain."""

    def code(context, builder, signature, args):
        x, terms = args[0], [builder.extract_value(args[1], i) for i in range(len(signature.args[1]))]
        while len(terms) > 1:
            pairs = [_call(builder, "llvm.fmuladd", b, x, a) for a, b in zip(terms[::2], terms[1::2], strict=False)]
            terms = pairs + terms[len(terms) & ~1 :]
            x = builder.fmul(x, x)
        return terms[0]

    return x(x, coefficients), code


@intrinsic
def two_to(typingctx, t):
    """2**k for t = magic + k: normal numbers only, and 0 one step below them."""

    def code(context, builder, signature, args):
        layout = LAYOUTS[signature.return_type]
        shifted = builder.shl(builder.bitcast(args[0], layout.integer), layout.integer(layout.mantissa))
        return builder.bitcast(builder.add(shifted, layout.integer(layout.one)), layout.real)

    return t(t), code


@intrinsic
def split(typingctx, x):
    """(m, e) with x = m * 2**e and m in [sqrt(1/2), sqrt(2)), for a normal positive `x`; e is a float."""

    def code(context, builder, signature, args):
        real, integer, mantissa, one, root = LAYOUTS[signature.return_type.dtype]
        moved = builder.add(builder.bitcast(args[0], integer), integer(one - root))
        low = builder.and_(moved, integer((1 << mantissa) - 1))
        m = builder.bitcast(builder.add(low, integer(root)), real)
        # The biased exponent, put into the lowest bits of 2**mantissa, is a float again after one subtraction.
        bias = one >> mantissa
        biased = builder.or_(builder.lshr(moved, integer(mantissa)), integer(bias + mantissa << mantissa))
        e = builder.fsub(builder.bitcast(biased, real), real(float((1 << mantissa) + bias)))
        return context.make_tuple(builder, signature.return_type, [m, e])

    return types.UniTuple(x, 2)(x), code


@intrinsic
def nearly_inverse(typingctx, x):
    """1/x to an eighth, for a positive float32: its bits are nearly a constant less those of x."""
    if x != types.float32:
        return None

    def code(context, builder, signature, args):
        given = builder.bitcast(args[0], ir.IntType(32))
        return builder.bitcast(builder.sub(ir.IntType(32)(0x7EF311C7), given), ir.FloatType())

    return x(x), code


@intrinsic
def clamp(typingctx, x, low, high):
    """`x` within bounds; nan stays."""

    def code(context, builder, signature, args):
        x, low, high = args
        x = builder.select(builder.fcmp_ordered(">", x, high), high, x)
        return builder.select(builder.fcmp_ordered("<", x, low), low, x)

    return x(x, x, x), code


@intrinsic
def two_sum(typingctx, a, b):
    """a + b and its rounding error, whichever is larger (Knuth). The instructions carry no flag, so none is fused."""

    def code(context, builder, signature, args):
        a, b = args
        total = builder.fadd(a, b)
        shadow = builder.fsub(total, a)
        rest = builder.fadd(builder.fsub(a, builder.fsub(total, shadow)), builder.fsub(b, shadow))
        return context.make_tuple(builder, signature.return_type, [total, rest])

    return types.UniTuple(a, 2)(a, b), code


@intrinsic
def fast_two_sum(typingctx, a, b):
    """a + b and its rounding error, for |a| >= |b| or a = 0 (Dekker)."""

    def code(context, builder, signature, args):
        a, b = args
        total = builder.fadd(a, b)
        rest = builder.fsub(b, builder.fsub(total, a))
        return context.make_tuple(builder, signature.return_type, [total, rest])

    return types.UniTuple(a, 2)(a, b), code
