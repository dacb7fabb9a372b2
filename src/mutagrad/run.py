"""Kernels on buffers: choose the variant by dtype and layout, allocate, call. Reductions stand in `totals`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any

import numpy as np

from . import codegen, compile, pool
from .buffers import same_window
from .codegen import PART, Kernel
from .expr import Expr
from .ops import Elementwise, Plan, Structural
from .workers import Doubting, Shared, shared, worth_sharing

FLOAT64, FLOAT32, BOOL = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.bool_)
FLOATS = {FLOAT64: "d", FLOAT32: "f"}
# Up to so many elements, what does not lie as the result does is copied first: it takes no longer than loops for its
# layout, and one compiled form serves all layouts.
FEW = 4096
# What is in doubt is computed again by so many elements.
PIECE = 65536
# Elements from which on it may pay to recycle memory and to share work: any fewer take less than the pool lends.
MANY = pool.SMALL // 8


def once(done: list[Any], function: Callable[..., Any], args: Sequence[Any]) -> None:
    """Call `function` and note that it ran, in one step that no interrupt can split.

    Interrupts strike between bytecodes; here call and note happen inside one C call. What is shared among threads is
    noted when it begins, and is done when this returns or raises.
    """
    if isinstance(function, Shared):
        function.begin(args, done)
    else:
        done.extend(starmap(function, (args,)))


def forward_kernel(entry: Elementwise) -> Kernel:
    """The kernel that computes an entry."""
    found = entry.kernels.get("forward")
    if found is None:
        found = entry.kernels["forward"] = Kernel(entry.name, entry.operands, [entry.body])
    return found


def pull_kernel(plan: Plan) -> tuple[Kernel | None, tuple[int, ...], tuple[int, ...]]:
    """The kernel of a plan's cotangents, which operands it serves, and which are handed `g` itself."""
    found = plan.kernels.get("pull")
    if found is None:
        served = [(i, e) for i, e in enumerate(plan.outputs) if e is not None and not passes(e)]
        kernel = None
        if served:
            suffix = "_".join(plan.entry.operands[i] for i, _ in served)
            kernel = Kernel(f"{plan.entry.name}_backward_{suffix}", ("g", *plan.keep), [e for _, e in served])
        passing = tuple(i for i, e in enumerate(plan.outputs) if e is not None and passes(e))
        found = plan.kernels["pull"] = kernel, tuple(i for i, _ in served), passing
    return found


def passes(e: Expr) -> bool:
    """True if a cotangent is handed on unchanged."""
    return e.op is None and e.value == "g"


def variant(
    kernel: Kernel, dtype: str, outs: str, kinds: str, depth: int | None, cache: dict[Any, Any], whole: bool = False
) -> Callable[..., Any]:
    """Compiled code for a kernel whose results and inputs lie as their letters say.

    With `whole` one call of compiled code does it all, doubtful elements included, also where it reads.
    """
    key = (dtype, outs, kinds, depth, whole)
    found = cache.get(key)
    if found is None:
        function, source = kernel.source(dtype, outs, kinds, depth, whole)
        rank = depth or 0
        args = [compile.array(dtype, rank, rank == 1)] * len(kernel.totals)
        for k in outs + kinds.replace("=", ""):
            of = "?" if k in "bBpt" else dtype
            args.append(compile.scalar(of) if k in "st" else compile.array(of, rank, k in "ab" and rank == 1))
        args += [compile.scalar(dtype)] * any(t.finished for t in kernel.totals)
        found = compile.load(function, source, args)
        if kernel.doubtful and depth is not None and not whole:
            found = Doubting(found, lambda: variant(kernel, dtype, outs, kinds, depth, cache, True))
        cache[key] = found
    return found


def elementwise(
    kernel: Kernel, cache: dict[Any, Any], inputs: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> list[Any]:
    """Run an elementwise kernel: results are new arrays, or Python floats where everything is scalar.

    `inputs` are Python floats, or arrays of the compute dtype (or bool for masks) that broadcast to `shape`.
    """
    if len(shape) == 1 and not kernel.totals:
        # The common case: numbers and contiguous vectors of one length, or one number stretched to it.
        kinds, given = "", list[Any]()
        for a in inputs:
            if type(a) is np.ndarray and a.dtype is dtype and a.shape == shape:
                if not a.flags.c_contiguous:
                    if a.strides != (0,):
                        break
                    a = np.full(shape, a.item(0), dtype) if shape[0] <= FEW else a.item(0)
                kinds += "s" if type(a) is float else "a"
            elif type(a) is float:
                kinds += "s"
            else:
                break
            given.append(a)
        else:
            call = cache.get((dtype.char, kinds))
            if call is None:
                letters = "a" * len(kernel.outputs)
                call = cache[dtype.char, kinds] = variant(kernel, FLOATS[dtype], letters, kinds, 1, cache)
            if shape[0] < MANY:
                made = [np.empty(shape, dtype) for _ in kernel.outputs]
            else:
                made = [pool.empty(shape, dtype) for _ in kernel.outputs]
                call = _divided(kernel, call, (*made, *given), shape, dtype)
            call(*made, *given)
            return made
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
    letter = FLOATS[dtype]
    values: list[Any] = []
    kinds = ""
    flat = regular = True
    few = math.prod(shape) <= FEW
    for a in inputs:
        if isinstance(a, np.ndarray):
            if few and a.ndim and a.size and not any(a.strides):
                a = np.full(a.shape, a.item(0), a.dtype)
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
        return variant(kernel, letter, "", kinds, None, cache), values, None
    written = outs is not None
    if outs is None:
        outs = [_allocate(values, shape, dtype, regular) for _ in kernel.outputs]
    else:
        taken = [isinstance(a, np.ndarray) and same_window(a, outs[0]) for a in values]
        kinds = "".join("=" if t else k for t, k in zip(taken, kinds, strict=True))
        values = [a for t, a in zip(taken, values, strict=True) if not t]
    arrays = [*outs, *values]
    letters = "a" * len(outs) + kinds.replace("=", "")
    depth = 1
    if 0 in shape:
        arrays = [np.empty(0, a.dtype) if isinstance(a, np.ndarray) else a for a in arrays]
    elif flat and all(a.flags.c_contiguous for a in outs):
        if len(shape) != 1:
            arrays = [a.reshape(-1) if isinstance(a, np.ndarray) else a for a in arrays]
    else:
        arrays = [np.broadcast_to(a, shape) if isinstance(a, np.ndarray) and a.shape != shape else a for a in arrays]
        # The longest strides outermost, as the result lies in memory.
        first = next(a for a in arrays if isinstance(a, np.ndarray))
        order = sorted(range(len(shape)), key=lambda d: -abs(first.strides[d]))
        if order != list(range(len(shape))):
            arrays = [a.transpose(order) if isinstance(a, np.ndarray) else a for a in arrays]
        if few and all(a.flags.c_contiguous for a in arrays[: len(outs)]):
            arrays = [np.ascontiguousarray(a).reshape(-1) if isinstance(a, np.ndarray) else a for a in arrays]
        else:
            collapsed = _collapse([shape[d] for d in order], [a for a in arrays if isinstance(a, np.ndarray)])
            depth = len(collapsed)
            arrays = [a.reshape(collapsed) if isinstance(a, np.ndarray) else a for a in arrays]
            letters = "".join(map(_lies, letters, arrays))
    rest = iter(letters[len(outs) :])
    kinds = "".join("=" if k == "=" else next(rest) for k in kinds)
    call = variant(kernel, letter, letters[: len(outs)], kinds, depth, cache, written)
    if not kernel.totals:
        return _divided(kernel, call, arrays, arrays[0].shape, dtype, written), arrays, outs
    shape = next(a.shape for a in arrays if isinstance(a, np.ndarray))
    parts = [np.empty((*shape[:-1], max(1, -(-shape[-1] // PART))), dtype) for _ in kernel.totals]
    args = (*parts, *arrays)
    call = _divided(kernel, call, args, shape, dtype)
    if any(t.finished for t in kernel.totals):
        args = (*args, float(math.prod(shape)) if parts[0].size == 1 else -1.0)
    return call, args, outs


def filled(
    entry: Elementwise, call: Callable[..., Any], shape: tuple[int], dtype: np.dtype[Any], inputs: Sequence[Any]
) -> np.ndarray:
    """A large vector, the result of an entry's code on numbers and contiguous vectors of that length."""
    made = pool.empty(shape, dtype)
    args = (made, *inputs)
    _divided(forward_kernel(entry), call, args, shape, dtype)(*args)
    return made


def _divided(
    kernel: Kernel,
    call: Callable[..., Any],
    args: Sequence[Any],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    written: bool = False,
) -> Callable[..., Any]:
    """The call of a kernel, in pieces where several threads have enough to do or results may be in doubt."""
    size, totals = math.prod(shape), len(kernel.totals)
    work = size * (kernel.cost * dtype.itemsize + (len(args) - totals) * dtype.itemsize / 40)
    # A whole variant computes again line by line.
    least = size // PIECE if kernel.doubtful and not written else 1
    if least <= 1 and not worth_sharing(work):
        return call
    *outer, last = range(len(shape))
    ways = [[(d, 1)] * len(args) for d in outer]
    ways.append([(last, 1)] * totals + [(last, PART)] * (len(args) - totals))
    return shared(call, args, ways, max(1, least))


def _lies(kind: str, a: Any) -> str:
    """The letter of an array by its innermost axis."""
    if kind in "st":
        return kind
    if a.strides[-1] == a.itemsize or a.shape[-1] == 1:
        return kind
    return ("p" if kind == "b" else "o") if a.strides[-1] == 0 else kind.upper()


def _allocate(values: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any], regular: bool) -> np.ndarray:
    """Memory for a result, laid out as NumPy would: along the operands' memory, so that views of it are NumPy's."""
    if regular or len(shape) < 2:
        return pool.empty(shape, dtype)
    arrays: list[Any] = [a for a in values if isinstance(a, np.ndarray)]
    if all(a.shape != shape for a in arrays):
        # What was stretched from one number is a number by now, and its axes would be missing.
        arrays[0] = np.broadcast_to(arrays[0], shape)
    flags: list[Any] = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    walk = np.nditer([*arrays, None], ["zerosize_ok"], flags, op_dtypes=[a.dtype for a in arrays] + [dtype])  # type: ignore[arg-type]
    made = walk.operands[-1]
    if made.nbytes < pool.SMALL:
        return made
    order = sorted(range(len(shape)), key=lambda d: -made.strides[d])
    back = [order.index(d) for d in range(len(shape))]
    return pool.empty(tuple(shape[d] for d in order), dtype).transpose(back)


def _collapse(shape: Sequence[int], arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
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


def scan(entry: Structural, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Run an entry's `fastmath` kernel along the last axis."""
    assert entry.kernel is not None
    shape = operands[0].shape
    dtype = np.result_type(*operands)
    rows = [np.ascontiguousarray(a, dtype).reshape(-1, shape[-1]) if a.size else a for a in operands]
    out = pool.empty(shape, dtype)
    if out.size:
        array = compile.array(FLOATS[dtype], 2, True)
        names = ["out", *entry.operands]
        call = compile.load(*codegen.plain(entry.kernel.__name__, names), [array] * len(names))
        call(out.reshape(-1, shape[-1]), *rows)
    return out
