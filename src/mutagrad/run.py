"""Kernels on buffers: choose the variant by dtype and layout, allocate, call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any

import numpy as np

from . import codegen, compile, expr, pool
from .buffers import same_window
from .codegen import LANES, PART, ROWS, Kernel, Total
from .expr import Expr
from .ops import Elementwise, Plan, Reduction, Structural
from .workers import Shared, shared, worth_sharing

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
            found = _doubting(found, lambda: variant(kernel, dtype, outs, kinds, depth, cache, True))
        cache[key] = found
    return found


def _doubting(quick: Callable[..., bool], whole: Callable[[], Callable[..., Any]]) -> Callable[..., None]:
    """The quick code, and where that doubts a result, which is seldom, the code that does not."""

    def call(*args: Any) -> None:
        if quick(*args):
            whole()(*args)

    return call


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


def fused(
    kernel: Kernel, cache: dict[Any, Any], inputs: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[list[np.ndarray], list[float]]:
    """Run a kernel with totals over all elements: its results as new arrays, its totals as floats."""
    given = inputs if shape else [np.reshape(a, 1) if isinstance(a, np.ndarray) else a for a in inputs]
    call, args, outs = prepared(kernel, cache, given, shape or (1,), dtype)
    call(*args)
    assert outs is not None
    count = float(math.prod(shape))
    totals = []
    for total, part in zip(kernel.totals, args, strict=False):
        if part.size == 1:
            totals.append(part.item())
        else:
            row = _row_of_parts((), part.size, total.init, dtype)
            row[: part.size] = part.reshape(-1)
            totals.append(_combined(total.reduction, row, "vector", count, True))
    return [a.reshape(shape) for a in outs], totals


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


# What the last part of a vector is written to where nobody asks for the parts.
_SCRATCH = {letter: np.empty(1, dtype) for dtype, letter in FLOATS.items()}


def _combining(entry: Reduction, letter: str, form: str, again: bool) -> tuple[Callable[..., Any], bool]:
    """Compiled code of a reduction, and whether it takes a count; `again` combines what it gave before."""
    key = (letter, form, again and entry.element is not _ELEMENT)
    found = entry.kernels.get(key)
    if found is None:
        element = _ELEMENT if key[2] else entry.element
        name = f"{entry.name}_of_parts" if key[2] else entry.name
        kernel = Kernel(name, ["x"], [], [Total(element, entry)])
        finished = kernel.totals[0].finished
        if form == "columns":
            types = [compile.array(letter, 3, False)] * 2
            code = compile.load(*kernel.columns(letter), types + [compile.scalar(letter)] * finished)
        else:
            code = variant(kernel, letter, "", "a", 1 if form == "vector" else 2, {})
        found = entry.kernels[key] = code, finished
    return found


_ELEMENT = expr.name("x")
# Elements of a part by form.
_PARTS = {"vector": PART, "rows": PART, "columns": ROWS}


def _row_of_parts(outer: tuple[int, ...], parts: int, init: float, dtype: np.dtype[Any]) -> np.ndarray:
    """Room for parts, filled up to what accumulators take at once, so that none is combined by itself."""
    width = parts if parts == 1 else -(-parts // LANES) * LANES
    made = pool.empty((*outer, width), dtype)
    made[..., parts:] = init
    return made


def _combined(entry: Reduction, x: np.ndarray, form: str, count: float, again: bool) -> Any:
    """Combine along the only axis, the last of two, or the middle one of three; unfinished where `count` is -1."""
    letter = FLOATS[x.dtype]
    while True:
        call, finished = _combining(entry, letter, form, again)
        parts = max(1, -(-x.shape[1 if form != "vector" else 0] // _PARTS[form]))
        ending = ((count if parts == 1 else -1.0),) if finished else ()
        if parts == 1 and form == "vector":
            return call(_SCRATCH[letter], x, *ending)
        if form == "columns":
            whole = part = pool.empty((x.shape[0], parts, x.shape[2]), x.dtype)
        else:
            whole = _row_of_parts(x.shape[:-1], parts, entry.init, x.dtype)
            part = whole[..., :parts]
        if x.size >= MANY:
            call = _shared_reduction(call, form, part, x)
        call(part, x, *ending)
        if parts == 1:
            return part
        x, again = whole, True


def _shared_reduction(call: Callable[..., Any], form: str, part: np.ndarray, x: np.ndarray) -> Callable[..., Any]:
    """The call of a reduction, by several threads if there is enough to do: each takes whole parts."""
    if not worth_sharing(x.size * (0.05 + x.itemsize / 40)):
        return call
    unit = _PARTS[form]
    cuts = [((0, 1), (0, unit))] if form == "vector" else [((0, 1), (0, 1)), ((1, 1), (1, unit))]
    if form == "columns":
        cuts.append(((2, LANES), (2, LANES)))
    return shared(call, (part, x), cuts)


def _outermost_first(x: np.ndarray) -> list[int]:
    """The axes as NumPy takes them, the longest strides first; one that is stretched says nothing of its place."""
    if 0 not in x.strides:
        return sorted(range(x.ndim), key=lambda d: -abs(x.strides[d]))
    order = list(range(x.ndim))[::-1]
    for i, axis in enumerate(order[1:], 1):
        place = i
        for j in reversed(range(i)):
            inner, own = abs(x.strides[order[j]]), abs(x.strides[axis])
            if inner and own:
                if inner <= own:
                    break
                place = j
        order.insert(place, order.pop(i))
    return order[::-1]


def reduce(entry: Reduction, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray | float:
    """Reduce a floating array along axes; the result has them dropped. A full reduction gives a float."""
    if len(axes) == x.ndim and (x.size < MANY or x.flags.forc):
        return _combined(entry, x.ravel("K"), "vector", float(x.size), False)
    # As the operand lies in memory, with neighbouring axes of one sort as one.
    order = _outermost_first(x)
    if len(axes) == x.ndim:
        y = x.transpose(order)
        if x.ndim == 1 or y.strides[-1] != y.itemsize:
            return _combined(entry, x.ravel("K"), "vector", float(x.size), False)
        rows = _combined(entry, y.reshape(-1, y.shape[-1]), "rows", -1.0, False)  # nothing so large is copied
        return _combined(entry, rows.reshape(-1), "vector", float(x.size), True)
    groups: list[tuple[bool, int]] = []
    for d in order:
        n = x.shape[d]
        if groups and groups[-1][0] is (d in axes):
            groups[-1] = (groups[-1][0], groups[-1][1] * n)
        elif n != 1:
            groups.append((d in axes, n))
    if not any(reduced for reduced, _ in groups):
        groups.append((True, 1))
    left = sum(reduced for reduced, _ in groups)
    kept = [d for d in order if d not in axes]
    shape = tuple(x.shape[d] for d in kept)
    count = float(math.prod(x.shape[a] for a in axes))
    y = x.transpose(order).reshape([n for _, n in groups])
    if y.size and y.strides[-1] != y.itemsize and y.shape[-1] != 1:
        y = np.ascontiguousarray(y)
    again = False
    while left:
        k = max(k for k, (reduced, _) in enumerate(groups) if reduced)
        beside = [math.prod(n for _, n in groups[k + 1 :])] * (k + 1 < len(groups))
        form = "columns" if beside else "rows"
        outer = math.prod(n for _, n in groups[:k])
        y = y.reshape(outer, groups[k][1], *beside)
        left -= 1
        y = _combined(entry, y, form, -1.0 if left else count, again)
        again = True
        del groups[k]
        y = y.reshape([n for _, n in groups])
    return y.reshape(shape).transpose([kept.index(d) for d in sorted(kept)])


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
