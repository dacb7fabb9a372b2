"""Huge arguments modulo pi/2, in whole numbers.

The method is M. Payne and R. Hanek's (Radian reduction for trigonometric functions, SIGNUM Newsletter 18, 1983):
of the product of the significand and 2/pi only the 256 bits matter that follow the last multiple of four.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from .bits import bits, fma, intrinsic, scalar

# A word of zeros, then 1216 bits of 2/pi after the binary point, computed with mpmath.
DIGITS = """
    0000000000000000 a2f9836e4e441529 fc2757d1f534ddc0 db6295993c439041 fe5163abdebbc561
    b7246e3a424dd2e0 06492eea09d1921c fe1deb1cb129a73e e88235f52ebb4484 e99c7026b45f7e41
    3991d639835339f4 9c845f8bbdf9283b 1ff897ffde05980f ef2f118b5a0a6d1f 6d367ecf27cb09b7
    4f463f669e5fea2d 7527bac7ebe5f17b 3d0739f78a5292ea 6bfb5fb11f8d5d08 56033046fc7b6bab
"""
TWO_OVER_PI = np.array([int(word, 16) for word in DIGITS.split()], np.uint64)
HALF_PI_1, HALF_PI_REST = 1.5707963267948966, 6.123233995736766e-17
ONE, TWO, SIGNIFICAND = np.uint64(1), np.uint64(2), np.uint64(2**52 - 1)


@intrinsic
def _upper(typingctx, a, b):
    """The upper 64 of the 128 bits of a product."""

    def code(context, builder, signature, args):
        wide = [builder.zext(x, ir.IntType(128)) for x in args]
        product = builder.lshr(builder.mul(*wide), ir.IntType(128)(64))
        return builder.trunc(product, ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), code


@scalar
def _join(high, low, shift):
    """The upper 64 of the 128 bits of two words, shifted left by 0 to 63."""
    return (high << shift) | ((low >> ONE) >> (np.uint64(63) - shift))


@scalar
def reduce_huge(x):
    """r, rest and k with r - rest = x - k pi/2, for |x| >= 1; nan for what has no sine."""
    pattern = bits(abs(x))
    exponent = (pattern >> 52) - 1075
    if exponent > 1023 - 52:
        return np.nan, np.nan, 0
    m = np.uint64(pattern) & SIGNIFICAND | (SIGNIFICAND + ONE)
    first = (exponent + 62) >> 6
    shift = np.uint64((exponent + 62) & 63)
    # The product modulo 2**256, from its last word to its first.
    a, b, c, d = TWO_OVER_PI[first], TWO_OVER_PI[first + 1], TWO_OVER_PI[first + 2], TWO_OVER_PI[first + 3]
    p3 = m * d
    carry = _upper(m, d)
    p2 = m * c + carry
    carry = _upper(m, c) + np.uint64(p2 < carry)
    p1 = m * b + carry
    carry = _upper(m, b) + np.uint64(p1 < carry)
    p0 = m * a + carry
    # Two bits of k, then the fraction, rounded to the nearest: its first bit becomes its sign.
    p0, p1, p2 = _join(p0, p1, shift), _join(p1, p2, shift), _join(p2, p3, shift)
    k = np.int64(p0 >> np.uint64(62))
    p0, p1, p2 = _join(p0, p1, TWO), _join(p1, p2, TWO), p2 << TWO
    negative = np.int64(p0) < 0
    if negative:
        k += 1
        p0, p1, p2 = ~p0, ~p1, ~p2  # off by one unit of 2**-192
    high = np.float64(p0 >> np.uint64(11)) * 2.0**-53
    middle = np.float64(((p0 & np.uint64(2047)) << np.uint64(42)) | (p1 >> np.uint64(22))) * 2.0**-106
    low = np.float64(((p1 & np.uint64(2**22 - 1)) << np.uint64(31)) | (p2 >> np.uint64(33))) * 2.0**-159
    head = high + middle
    tail = (high - head) + middle + low
    r = head * HALF_PI_1
    rest = -(fma(head, HALF_PI_1, -r) + (fma(head, HALF_PI_REST, tail * HALF_PI_1)))
    if negative != (x < 0.0):
        r, rest = -r, -rest
    return r, rest, -k if x < 0.0 else k
