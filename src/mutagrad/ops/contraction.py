"""Ops that sum products; values through BLAS, as NumPy has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .entry import Contraction, Entry
from .indexing import scatter
from .movement import broadcast_to, expand_dims, transpose

TABLE: dict[str, Entry] = {}


def contraction(call: str, doc: str, **rule: Any) -> Contraction:
    made = Contraction(call, doc, **rule)
    TABLE[made.name] = made
    return made


def _swapped(x: Any) -> Any:
    order = list(range(x.ndim))
    order[-2:] = order[-1], order[-2]
    return transpose(x, order)


def _matmul_x(g: Any, y: Any, x_shape: Any) -> Any:
    if y.ndim == 1:
        return expand_dims(g, -1) * y
    if len(x_shape) == 1:
        return matmul(y, expand_dims(g, -1))[..., 0]
    return matmul(g, _swapped(y))


def _matmul_y(g: Any, x: Any, y_shape: Any) -> Any:
    if len(y_shape) == 1:
        return expand_dims(g, -1) * x if x.ndim == 1 else matmul(_swapped(x), expand_dims(g, -1))[..., 0]
    if x.ndim == 1:
        return expand_dims(x, -1) * expand_dims(g, -2)
    return matmul(_swapped(x), g)


matmul = contraction(
    "matmul(x, y)", "Matrix product, with NumPy's rules for vectors and stacks.",
    example=("mg.matmul(mg.eye(2), mg.tensor([3.0, 4.0])).tolist()", "[3.0, 4.0]"), operands=("x", "y"),
    ufunc=np.matmul, adjoints={"x": _matmul_x, "y": _matmul_y},
)  # fmt: skip


def explicit(subscripts: str, ndims: list[int]) -> tuple[list[str], str]:
    """Write einsum subscripts with an output and without ellipses: "...i,i" -> ["Ai", "i"], "A"."""
    subscripts = subscripts.replace(" ", "")
    left, arrow, out = subscripts.partition("->")
    terms = left.split(",")
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in subscripts]
    widest = max((n - len(t) + 3 for t, n in zip(terms, ndims, strict=True) if "..." in t), default=0)
    dots = "".join(spare[:widest])
    full = [
        t.replace("...", dots[widest - (n - len(t) + 3) :] if "..." in t else "")
        for t, n in zip(terms, ndims, strict=True)
    ]
    if not arrow:
        labels = sorted(c for c in set(left) - {",", "."} if left.count(c) == 1)
        return full, dots + "".join(labels)
    return full, out.replace("...", dots)


def _einsum_adjoint(g: Any, i: int, operands: Any, shapes: Any, subscripts: str) -> Any:
    """The cotangent of one operand: einsum of g with the others, output and operand trading places."""
    terms, out = explicit(subscripts, [len(s) for s in shapes])
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, n in zip(term, shape, strict=True):
            sizes[label] = n if sizes.get(label, 1) == 1 else sizes[label]
    mine = "".join(dict.fromkeys(terms[i]))
    others = [j for j in range(len(terms)) if j != i]
    known = set(out).union(*(terms[j] for j in others))
    seen = "".join(label for label in mine if label in known)
    inputs = ",".join([out, *(terms[j] for j in others)])
    pulled = einsum(f"{inputs}->{seen}", g, *(operands[j] for j in others))
    # A label that only this operand has was summed away: its cotangent is the same along that axis.
    pulled = pulled[tuple(slice(None) if label in seen else None for label in mine)]
    pulled = broadcast_to(pulled, tuple(sizes[label] for label in mine))
    if mine == terms[i]:
        return pulled
    # A repeated label reads a diagonal.
    index = {}
    for k, label in enumerate(mine):
        spread = [1] * len(mine)
        spread[k] = sizes[label]
        index[label] = np.arange(sizes[label]).reshape(spread)
    return scatter(pulled, shapes[i], tuple(index[label] for label in terms[i]))


einsum = contraction(
    "einsum(subscripts, *operands, out=None)", "Sum of products by Einstein's convention, subscripts as text.",
    example=("mg.einsum('ii', mg.eye(3)).item()", "3.0"), operands=("*operands",),
    compute=lambda *operands, subscripts: np.einsum(subscripts, *operands, optimize=len(operands) > 2), numpy=np.einsum,
    adjoints=_einsum_adjoint, method=False,
)  # fmt: skip
