"""What loops are built from: wide registers, sums in any order, rows of arrays."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.np.arrayobj import make_array, populate_array

from .bits import INTEGERS, intrinsic


@intrinsic
def wide(typingctx):
    """Lets the loops of a function use the widest registers: left alone, the compiler halves those of 512 bits."""

    def code(context, builder, signature, args):
        # The compiler knows this attribute; the set that holds them would refuse it.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), code


@intrinsic
def seldom(typingctx):
    """Says of the loop it stands in that it seldom runs: the compiler neither vectorises nor unrolls it."""

    def code(context, builder, signature, args):
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", (), side_effect=True)
        return context.get_dummy_value()

    return types.none(), code


def _loose(instruction: str, doc: str) -> Any:
    def typer(typingctx, a, b):
        if a not in INTEGERS or a != b:
            return None

        def code(context, builder, signature, args):
            return getattr(builder, instruction)(*args, flags=("reassoc",))

        return a(a, b), code

    typer.__name__ = typer.__doc__ = doc
    return intrinsic(typer)


# Only these steps of a kernel may be taken in another order, so that its loop has many accumulators.
plus = _loose("fadd", "One step of a sum.")
times = _loose("fmul", "One step of a product.")


@intrinsic
def row(typingctx, array, index):
    """A row of an array that is contiguous along its last axis, as a contiguous array that owns nothing."""
    cut = types.Array(array.dtype, 1, "C")

    def code(context, builder, signature, args):
        given = make_array(signature.args[0])(context, builder, args[0])
        strides, shape = (
            [builder.extract_value(x, k) for k in range(array.ndim)] for x in (given.strides, given.shape)
        )
        address = builder.ptrtoint(given.data, ir.IntType(64))
        for k, stride in enumerate(strides[:-1]):
            address = builder.add(address, builder.mul(stride, builder.extract_value(args[1], k)))
        made = make_array(cut)(context, builder)
        data = builder.inttoptr(address, given.data.type)
        populate_array(made, data, shape[-1:], strides[-1:], given.itemsize, None)
        return made._getvalue()

    return cut(array, index), code
