"""What the scalar mathematics is built from: bit casts, fused multiply-add, selection, and the table's entry.

Each intrinsic is one machine instruction, on one number in plain code and on a register of them in a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import extending, types

# Untyped: what it decorates is called without its first argument.
intrinsic: Any = extending.intrinsic
# Contraction only: reassociation would undo the range reductions, and nan and inf must stay what they are. Always
# inlined: a call left in a loop keeps it from being vectorised. Nobody calls them from C: that saves a fourth of their
# compile time.
scalar = extending.register_jitable(error_model="numpy", fastmath={"contract"}, forceinline=True, no_cfunc_wrapper=True)

INTEGERS = {types.float64: types.int64, types.float32: types.int32}
FLOATS = {integer: real for real, integer in INTEGERS.items()}


class Math(NamedTuple):
    """One function of the scalar mathematics, in both dtypes.

    `fast` (float64) and `single` (float32) vectorise. Where `beyond` (`beyond_single`) of the arguments is
    true they may be wrong, and `careful`, which may branch and takes float64, is right. `ulp` bounds the error of
    `fast`; that of `single` is one more.
    """

    fast: Callable[..., Any]
    single: Callable[..., Any]
    ulp: float
    beyond: Callable[..., Any] | None = None
    beyond_single: Callable[..., Any] | None = None
    careful: Callable[..., Any] | None = None


def _cast(name: str, pairs: dict[Any, Any], doc: str) -> Any:
    def typer(typingctx, x):
        if x not in pairs:
            return None
        signature = pairs[x](x)

        def code(context, builder, signature, args):
            return builder.bitcast(args[0], context.get_value_type(signature.return_type))

        return signature, code

    typer.__name__, typer.__doc__ = name, doc
    return intrinsic(typer)


bits = _cast("bits", INTEGERS, "The integer of the same width that has the bits of a float.")
real = _cast("real", FLOATS, "The float of the same width that has the bits of an integer.")


@intrinsic
def fma(typingctx, a, b, c):
    """a * b + c with one rounding, where an algorithm depends on it."""
    if a not in INTEGERS or (b, c) != (a, a):
        return None

    def code(context, builder, signature, args):
        return builder.fma(*args)

    return a(a, a, a), code


@intrinsic
def select(typingctx, condition, yes, no):
    """`yes` if `condition` else `no`, both computed: never a branch."""
    if condition != types.boolean or yes != no:
        return None

    def code(context, builder, signature, args):
        return builder.select(*args)

    return yes(condition, yes, no), code


@intrinsic
def like(typingctx, x, value):
    """`value` in the dtype of `x`."""
    if x not in INTEGERS:
        return None

    def code(context, builder, signature, args):
        return context.cast(builder, args[1], signature.args[1], signature.return_type)

    return x(x, value), code


@intrinsic
def horner(typingctx, x, coefficients):
    """The sum of coefficients[i] * x**i, from the last to the first."""
    if x not in INTEGERS or coefficients.dtype != x:
        return None

    def code(context, builder, signature, args):
        kind = args[0].type
        fuse = builder.module.declare_intrinsic("llvm.fmuladd", [kind], ir.FunctionType(kind, [kind] * 3))
        *terms, total = (builder.extract_value(args[1], i) for i in range(len(coefficients)))
        for term in reversed(terms):
            total = builder.call(fuse, [total, args[0], term])
        return total

    return x(x, coefficients), code
