"""Compiling ahead: the kernels of the common forms of ops, so that later processes find them on disk.

Every elementwise op and reduction is run through the public functions, on a few numbers where it is
differentiable. What forms an op takes stands here; which kernels they are, nobody has to say.
"""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import mutagrad as mg
from mutagrad import cache
from mutagrad.compile import Compiled, report
from mutagrad.ops import OPS, Elementwise, Entry

DTYPES = (np.float64, np.float32)
# Samples are taken no further from zero than this where the op would allow any number.
REACH = 2.5


def common() -> dict[str, Entry]:
    """The ops whose kernels are compiled ahead, by every public name."""
    return {name: entry for name, entry in OPS.items() if is_common(entry)}


def is_common(entry: Entry) -> bool:
    """An elementwise op, or a reduction that needs to be told nothing but its operand."""
    needed = [p for p in entry.signature.parameters.values() if p.default is p.empty]
    return isinstance(entry, Elementwise) or ("keepdims" in entry.params and len(needed) == 1)


def samples(entry: Entry, dtype: Any) -> list[np.ndarray]:
    """A few values for each operand, where an elementwise op is differentiable; conditions are masks."""
    if not isinstance(entry, Elementwise):
        return [np.linspace(0.5, 1.5, 3).astype(dtype)]
    found = []
    for name, intervals in zip(entry.operands, entry.sample, strict=True):
        low, high = np.clip(intervals[-1], -REACH, REACH)
        values = np.linspace(low, high, 5)[1:-1].astype(dtype)
        found.append(values > values[1] if name in entry.masks else values)
    return found


def forms(entry: Entry, dtype: Any) -> Iterator[Callable[[], Any]]:
    """The common uses of an op, each of which asks for a kernel or a few."""
    arrays = samples(entry, dtype)
    active = [a.dtype.kind == "f" and entry.differentiable for a in arrays]
    yield lambda: run(entry, arrays, active)
    if not isinstance(entry, Elementwise):
        return
    numbers = [a[1] for a in arrays]
    yield lambda: run(entry, numbers, active)
    if entry.inplace:
        yield lambda: run(entry, arrays, active, inplace=True)
    if len(arrays) == 2:
        for k in (0, 1):
            # One operand needs a gradient; the other is data, or a Python number.
            one = [a and i == k for i, a in enumerate(active)]
            number = [a if i == k else float(a[1]) for i, a in enumerate(arrays)]
            yield lambda one=one: run(entry, arrays, one)  # type: ignore[misc]
            yield lambda one=one, number=number: run(entry, number, one)  # type: ignore[misc]


def run(entry: Entry, operands: Sequence[Any], active: Sequence[bool], inplace: bool = False) -> None:
    """Run an op, forward and, where it has a derivative, backward."""
    given = [
        a if type(a) is float or a.dtype == bool else mg.tensor(a, requires_grad=t)
        for a, t in zip(operands, active, strict=True)
    ]
    # A leaf is not overwritten: what was computed from it is.
    out = getattr(given[0] + 0.0, f"{entry.name}_")(*given[1:]) if inplace else getattr(mg, entry.name)(*given)
    if not out.requires_grad:
        return
    # The cotangent is an array where another op follows, and one number where a sum does.
    out.backward(np.ones(out.shape, out.dtype), retain_graph=True)
    if out.shape:
        mg.sum(out).backward()


def compile_ahead(entries: Sequence[Entry]) -> Iterator[tuple[Entry, list[Compiled]]]:
    """Run the forms of ops, and tell for each op and dtype which kernels were new to this process."""
    for entry in entries:
        for dtype in DTYPES:
            first = len(report)
            with np.errstate(all="ignore"):
                for form in forms(entry, dtype):
                    form()
            yield entry, report[first:]


def line(found: Compiled) -> str:
    """What is said of one kernel."""
    origin = "from disk" if found.cached else "compiled"
    return f"  {found.name:46}{found.dtype:10}{1e3 * found.seconds:8.1f} ms   {origin}"


def refusal(names: Sequence[str]) -> str:
    """Why names cannot be warmed up, in one sentence; nothing if they can."""
    for name in names:
        if name in common():
            continue
        if name in OPS:
            return f"{name} has no kernel to compile ahead: only elementwise ops and reductions have."
        near = difflib.get_close_matches(name, common(), 1)
        return f"{name!r} is not an op: " + (f"did you mean {near[0]}?" if near else "see the table in the README.")
    return ""


def warm(names: Sequence[str] = ()) -> int:
    """Compile the kernels of ops ahead, of all where none are named, and print them; return the exit status."""
    if why := refusal(names):
        print(f"python -m mutagrad warmup: {why}", file=sys.stderr)
        return 2
    entries = list(dict.fromkeys(common()[name] for name in names or common()))
    began, first = time.perf_counter(), len(report)
    try:
        from tqdm import tqdm
    except ImportError:
        for _, found in compile_ahead(entries):
            for kernel in found:
                print(line(kernel), flush=True)
    else:
        with tqdm(total=len(DTYPES) * len(entries), unit="op") as bar:
            for entry, _ in compile_ahead(entries):
                bar.set_description(entry.name)
                bar.update()
    made = report[first:]
    cached = sum(kernel.cached for kernel in made)
    seconds = time.perf_counter() - began
    print(f"{len(made)} kernels: {len(made) - cached} compiled, {cached} from disk; {seconds:.1f} s in all.")
    if cache.cache_folder() != cache.wanted():
        print(
            f"Nothing is kept: {cache.wanted()} cannot be written or is not private; name a folder in {cache.VARIABLE}."
        )
        return 1
    print(f"They lie in {cache.wanted()}.")
    return 0
