"""Programs made from the table: each op's operands and result are written after the op used them."""

import numpy as np
from scenarios import EITHER, EXACT, M23, M33, N33, X6, scenario

from mutagrad.ops import OPS, Elementwise

FRACTIONS = np.array([[0.25, 0.4, 0.85], [0.45, 0.7, 0.2], [0.8, 0.35, 0.6]])
CONDITION = np.array([True, False, True])

# Calls of the ops that are not elementwise, and what they are given.
CALLS = {
    "sum": ("x", lambda op, x: op(x, axis=1), [M23]),
    "mean": ("x", lambda op, x: op(x, axis=0, keepdims=True), [M23]),
    "max": ("x", lambda op, x: op(x, axis=0), [M33]),
    "min": ("x", lambda op, x: op(x, axis=1), [M33]),
    "norm": ("x", lambda op, x: op(x, axis=1), [M23]),
    "var": ("x", lambda op, x: op(x, axis=1, ddof=1), [M23]),
    "logsumexp": ("x", lambda op, x: op(x, axis=1), [M23]),
    "softmax": ("x", lambda op, x: op(x, axis=0), [M23]),
    "cumsum": ("x", lambda op, x: op(x, axis=1), [M23]),
    "cumprod": ("x", lambda op, x: op(x, axis=1), [M23]),
    "prod": ("x", lambda op, x: op(x, axis=1), [M23]),
    "reshape": ("x", lambda op, x: op(x.T, (2, 3)), [M23]),
    "ravel": ("x", lambda op, x: op(x.T), [M23]),
    "concatenate": ("xy", lambda op, x, y: op([x, y, x], axis=1), [M33, N33]),
    "stack": ("xy", lambda op, x, y: op([x, y, x], axis=1), [M33, N33]),
    "take_along_axis": ("x", lambda op, x: op(x, np.array([[2, 0], [1, 1]]), axis=1), [M23]),
    "sort": ("x", lambda op, x: op(x, axis=0), [M33]),
    "matmul": ("xy", lambda op, x, y: op(x, y), [M23, M33]),
    "einsum": ("xy", lambda op, x, y: op("ij,jk->k", x, y), [M23, M33]),
}


def _part(low, high):
    return max(low, 0.2 if high > 0.4 else -2.5), min(high, 2.0 if low < 1.5 else low + 1.5)


def _inside(entry):
    """Operands of an elementwise op where it is smooth, positive where they can be."""
    found = {}
    for k, (name, intervals) in enumerate(zip(entry.operands, entry.sample, strict=True)):
        low, high = _part(*intervals[-1])
        if name not in entry.masks:
            found[name] = low + (high - low) * FRACTIONS[k]
    return found


def _enter(identity, sound, title, program, leaves):
    program.__name__ = title
    scenario(identity, sound, **leaves)(program)


def _written_after(entry, call, leaves, position, sound):
    """The operand at `position`, or the result (-1), is written after the op."""

    def program(xp, **given):
        operands = [v + 0.0 for v in given.values()]
        y = call(getattr(xp, entry.name), *operands)
        target = y if position < 0 else operands[position]
        with xp.write(target, y):
            target *= 3.0
        return (y, *operands)

    name = "out" if position < 0 else list(leaves)[position]
    _enter(f"{entry.name}.{name}", sound, f"{name}_of_{entry.name}_written", program, leaves)


def _in_place(entry, call, leaves):
    """The op in place, then its target and the other operands are written."""

    def program(xp, **given):
        t, *others = (v + 0.0 for v in given.values())
        kept = t * 1.0
        with xp.write(t):
            call(getattr(t, f"{entry.name}_"), *others)
        z = t * kept
        for other in others:
            with xp.write(other, t):
                other *= 3.0
        with xp.write(t, z):
            t += 1.0
        return z, t

    _enter(f"{entry.name}_", EITHER, f"{entry.name}_in_place", program, leaves)


def _out_is_last_operand(entry, leaves):
    def program(xp, **given):
        *others, t = (v + 0.0 for v in given.values())
        with xp.write(t):
            getattr(xp, entry.name)(*others, t, out=t)
        with xp.write(t):
            t *= 2.0
        return t

    _enter(f"{entry.name}.out=", EITHER, f"last_operand_of_{entry.name}_is_its_out", program, leaves)


def _overlapping(entry):
    """Operands and target are windows of one memory, each in another layout."""

    def program(xp, x):
        t = x + 0.0
        windows = (t[1:4], t[2:5], t[5:2:-1])[: len(entry.operands)]
        with xp.write(t):
            getattr(xp, entry.name)(*windows, out=t[0:3])
        return t

    low, high = np.max([i[-1][0] for i in entry.sample]), np.min([i[-1][1] for i in entry.sample])
    memory = np.clip(X6, low, high) if low <= X6.min() and high >= X6.max() else np.linspace(*_part(low, high), 6)[::-1]
    _enter(f"{entry.name}.overlap", EITHER, f"out_of_{entry.name}_overlaps_its_operands", program, {"x": memory})


for entry in {e.name: e for e in OPS.values() if e.differentiable}.values():
    if isinstance(entry, Elementwise):
        leaves = _inside(entry)
        names = list(leaves)

        def call(op, *operands, masked=bool(entry.masks)):
            return op(CONDITION, *operands) if masked else op(*operands)

        keep = entry.plan(tuple(o in names for o in entry.operands)).keep
        for position, name in [*enumerate(names), (-1, "out")]:
            _written_after(entry, call, leaves, position, EITHER if name in keep else EXACT)
        if not entry.masks:
            _in_place(entry, call, leaves)
            if len(names) > 1:
                _out_is_last_operand(entry, leaves)
            _overlapping(entry)
    elif entry.name in CALLS:
        names, call, values = CALLS[entry.name]
        for position in (*range(len(names)), -1):
            _written_after(entry, call, dict(zip(names, values, strict=True)), position, EITHER)
