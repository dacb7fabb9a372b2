"""Kernels on buffers: choose the variant by dtype and layout, allocate, call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any

import numpy as np

from . import codegen, compile
from .codegen import Kernel, ReductionKernel
from .expr import Expr
from .ops import Elementwise, Plan, Reduction, Structural

FLOAT64, FLOAT32, BOOL = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.bool_)
FLOATS = {FLOAT64: "d", FLOAT32: "f"}


def once(done: list[Any], function: Callable[..., Any], args: Sequence[Any]) -> None:
    """Call `function` and note that it ran, in one step that no interrupt can split.

    Interrupts strike between bytecodes; here call and note happen inside one C call.
    """
    done.extend(starmap(function, (args,)))


def forward_kernel(entry: Elementwise) -> Kernel:
    """The kernel that computes an entry."""
    found = entry.kernels.get("forward")
    if found is None:
        found = entry.kernels["forward"] = Kernel(entry.name, entry.operands, [entry.body])
    return found


def pull_kernel(plan: Plan) -> tuple[Kernel | None, tuple[int, ...]]:
    """The kernel of a plan's cotangents, and which operands it serves.

    A cotangent that is `g` itself needs no kernel.
    """
    found = plan.kernels.get("pull")
    if found is None:
        served = [(i, e) for i, e in enumerate(plan.outputs) if e is not None and not passes(e)]
        kernel = None
        if served:
            suffix = "_".join(plan.entry.operands[i] for i, _ in served)
            kernel = Kernel(f"{plan.entry.name}_backward_{suffix}", ("g", *plan.keep), [e for _, e in served])
        found = plan.kernels["pull"] = kernel, tuple(i for i, _ in served)
    return found


def passes(e: Expr) -> bool:
    """True if a cotangent is handed on unchanged."""
    return e.op is None and e.value == "g"


def variant(kernel: Kernel, dtype: str, kinds: str, depth: int | None, cache: dict[Any, Any]) -> Callable[..., Any]:
    """Compiled code for a kernel: `kinds` has a letter an input, "a" array, "b" mask, "s" scalar, "t" truth value."""
    key = (dtype, kinds, depth)
    found = cache.get(key)
    if found is None:
        function, source = kernel.source(dtype, [k in "ab" for k in kinds], depth)
        args = [] if depth is None else [compile.array(dtype, max(depth, 1), depth == 0)] * len(kernel.outputs)
        for k in kinds:
            of = "?" if k in "bt" else dtype
            args.append(compile.array(of, max(depth or 0, 1), depth == 0) if k in "ab" else compile.scalar(of))
        found = cache[key] = compile.load(function, source, args)
    return found


def elementwise(
    kernel: Kernel, cache: dict[Any, Any], inputs: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> list[Any]:
    """Run an elementwise kernel: results are new arrays, or Python floats where everything is scalar.

    `inputs` are Python floats, or arrays of the compute dtype (or bool for masks) that broadcast to `shape`.
    """
    call, args, outs = prepared(kernel, cache, inputs, shape, dtype)
    result = call(*args)
    if outs is not None:
        return outs
    return list(result) if len(kernel.outputs) > 1 else [result]


def prepared(
    kernel: Kernel,
    cache: dict[Any, Any],
    inputs: Sequence[Any],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    outs: list[np.ndarray] | None = None,
) -> tuple[Callable[..., Any], Sequence[Any], list[np.ndarray] | None]:
    """The compiled code for these inputs, its arguments, and the arrays it will fill (None: it returns floats)."""
    if outs is None and len(shape) == 1:
        # The common case: numbers and contiguous vectors of one length.
        kinds = ""
        for a in inputs:
            if type(a) is float:
                kinds += "s"
            elif type(a) is np.ndarray and a.shape == shape and a.dtype is dtype and a.flags.c_contiguous:
                kinds += "a"
            else:
                break
        else:
            outs = [np.empty(shape, dtype) for _ in kernel.outputs]
            return variant(kernel, FLOATS[dtype], kinds, 0, cache), (*outs, *inputs), outs
    values: list[Any] = []
    kinds = ""
    flat = regular = True
    for a in inputs:
        if isinstance(a, np.ndarray):
            if a.flags.c_contiguous:
                if a.ndim:
                    kinds += "b" if a.dtype == BOOL else "a"
                    if a.shape != shape:
                        flat = False
                    values.append(a)
                    continue
                a = a.item()
            elif any(a.strides):
                kinds += "b" if a.dtype == BOOL else "a"
                flat = regular = False
                values.append(a)
                continue
            else:
                a = a.item(0)  # one number stretched to a shape, as the cotangent of a sum is
        kinds += "t" if isinstance(a, bool) else "s"
        values.append(a)
    if not shape and outs is None:
        return variant(kernel, FLOATS[dtype], kinds, None, cache), values, None
    if outs is None:
        outs = [_allocate(values, shape, dtype, regular) for _ in kernel.outputs]
    targets = list(outs)
    depth = 0
    if flat and all(a.flags.c_contiguous for a in targets):
        if len(shape) != 1:
            values = [a.reshape(-1) if isinstance(a, np.ndarray) else a for a in values]
            targets = [a.reshape(-1) for a in targets]
    else:
        values = [np.broadcast_to(a, shape) if isinstance(a, np.ndarray) else a for a in values]
        # The longest strides outermost, as the result lies in memory.
        order = sorted(range(len(shape)), key=lambda d: -abs(targets[0].strides[d]))
        if order != list(range(len(shape))):
            values = [a.transpose(order) if isinstance(a, np.ndarray) else a for a in values]
            targets = [a.transpose(order) for a in targets]
        collapsed = _collapse(targets[0].shape, [a for a in (*values, *targets) if isinstance(a, np.ndarray)])
        depth = len(collapsed)
        values = [a.reshape(collapsed) if isinstance(a, np.ndarray) else a for a in values]
        targets = [a.reshape(collapsed) for a in targets]
    return variant(kernel, FLOATS[dtype], kinds, depth, cache), (*targets, *values), outs


def _allocate(values: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any], regular: bool) -> np.ndarray:
    """Memory for a result, laid out as NumPy would: along the operands' memory, so that views of it are NumPy's."""
    if regular or len(shape) < 2:
        return np.empty(shape, dtype)
    arrays: list[Any] = [a for a in values if isinstance(a, np.ndarray)]
    if all(a.shape != shape for a in arrays):
        # What was stretched from one number is a number by now, and its axes would be missing.
        arrays[0] = np.broadcast_to(arrays[0], shape)
    flags: list[Any] = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    walk = np.nditer([*arrays, None], ["zerosize_ok"], flags, op_dtypes=[a.dtype for a in arrays] + [dtype])  # type: ignore[arg-type]
    return walk.operands[-1]


def _collapse(shape: tuple[int, ...], arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
    """The shape with neighbouring axes merged wherever every array lets them be one."""
    merged: list[int] = []
    strides: list[tuple[int, ...]] = []
    for a, n in enumerate(shape):
        if n == 1:
            continue
        here = tuple(x.strides[a] for x in arrays)
        if merged and all(p == n * s for p, s in zip(strides[-1], here, strict=True)):
            merged[-1] *= n
            strides[-1] = here
        else:
            merged.append(n)
            strides.append(here)
    return tuple(merged) or (1,)


def reduce(entry: Reduction, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray | float:
    """Reduce a floating array along axes; the result has them dropped. A full reduction gives a float."""
    letter = FLOATS[x.dtype]
    if len(axes) == x.ndim:
        return _reduction(entry, letter, "full")(np.ascontiguousarray(x).reshape(-1))
    rest = [a for a in range(x.ndim) if a not in axes]
    rows = math.prod(x.shape[a] for a in rest)
    # Kept axes lie in the result as they lie in the operand.
    order = sorted(range(len(rest)), key=lambda d: -abs(x.strides[rest[d]]))
    shape = tuple(x.shape[rest[d]] for d in order)
    moved = x.transpose([*(rest[d] for d in order), *axes]).reshape(rows, math.prod(x.shape[a] for a in axes))
    out = np.empty(rows, x.dtype)
    form = "rows" if abs(moved.strides[1]) <= abs(moved.strides[0]) else "columns"
    if form == "columns":
        moved = moved.T
    _reduction(entry, letter, form, moved.flags.c_contiguous)(out, moved)
    return out.reshape(shape).transpose([order.index(d) for d in range(len(order))])


def _reduction(entry: Reduction, letter: str, form: str, contiguous: bool = True) -> Callable[..., Any]:
    """Compiled code of a reduction in one form."""
    key = (letter, form, contiguous)
    found = entry.kernels.get(key)
    if found is None:
        kernel = ReductionKernel(entry.name, entry.combine, entry.init, entry.finish, entry.additive)
        function, source = kernel.source(letter, form)
        flat = compile.array(letter, 1, True)
        args = [flat] if form == "full" else [flat, compile.array(letter, 2, contiguous)]
        found = entry.kernels[key] = compile.load(function, source, args)
    return found


def scan(entry: Structural, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Run an entry's `fastmath` kernel along the last axis."""
    assert entry.kernel is not None
    shape = operands[0].shape
    dtype = np.result_type(*operands)
    rows = [np.ascontiguousarray(a, dtype).reshape(-1, shape[-1]) if a.size else a for a in operands]
    out = np.empty(shape, dtype)
    if out.size:
        array = compile.array(FLOATS[dtype], 2, True)
        names = ["out", *entry.operands]
        call = compile.load(*codegen.plain(entry.kernel.__name__, names), [array] * len(names))
        call(out.reshape(-1, shape[-1]), *rows)
    return out
