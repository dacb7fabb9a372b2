"""The in-place judge: one function and one error text a rule. It looks and refuses; it never writes."""

from __future__ import annotations

import ast
import gc
import linecache
import os
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from . import modes
from .buffers import Buffer, Kept, LockedKept, Window, bounds, overlap, same_window
from .errors import DTypeError, InplaceError, ShapeError, word
from .node import Node, Place, TensorState
from .operands import stretched

Site = tuple[CodeType | None, int]


def judge(
    op: str,
    target: TensorState,
    array: np.ndarray,
    site: Site,
    hits: Callable[[np.ndarray], bool],
    tracked: bool,
    recorded: bool,
) -> list[Window]:
    """Every rule about whether bytes may be overwritten; shape and dtype are checked before.

    Parameters
    ----------
    op : str
        The in-place op, "sin_".
    target : TensorState
        The tensor written to.
    array : ndarray
        The window of it that is written.
    site : (code, instruction)
        Where the user wrote the statement.
    hits : callable
        Whether the write touches a given window.
    tracked : bool
        The written value is tracked.
    recorded : bool
        The write is recorded as history.

    Returns
    -------
    list of Window
        Kept windows to be moved to private copies first: empty under "refuse".
    """
    writable(op, array, site)
    place = target._place
    assert place is not None
    if array.size == 0:
        return []
    if recorded:
        leaf(op, target, place, array, site)
        if tracked:
            captured(op, place.buffer, array, site)
    return kept(op, place, array, site, hits)


def writable(op: str, array: np.ndarray, site: Site) -> None:
    """Rule: a target whose elements share memory, or a read-only one, is refused."""
    if not array.flags.c_contiguous and stretched(array):
        raise InplaceError(
            word(
                f"{op} cannot write to {name(array, site)}: its elements share memory, it is a broadcast view.",
                ways="Write to the tensor before it was broadcast, or to a .clone() of this one.",
            )
        )
    if not array.flags.writeable:
        raise InplaceError(
            word(
                f"{op} cannot write to {name(array, site)}: its memory is read-only.",
                ways="Write to a .clone() of it, or make it from an array that is writable.",
            )
        )


def shape(op: str, array: np.ndarray, result: tuple[int, ...], site: Site) -> None:
    """Rule: the broadcast result must have the target's shape."""
    if result != array.shape:
        raise ShapeError(
            word(
                f"{op} cannot write a result of shape {result} into {name(array, site)}.",
                ways="The value must broadcast to the part that is written."
                if op in _OVERWRITES
                else "An in-place op keeps the shape of its target; use the out-of-place op to make a new tensor.",
            )
        )


def dtype(op: str, array: np.ndarray, result: Any, site: Site) -> None:
    """Rule: the result must cast to the target's dtype under NumPy's same_kind."""
    if result != array.dtype and not np.can_cast(result, array.dtype, "same_kind"):
        raise DTypeError(
            word(
                f"{op} cannot write {result} values into {name(array, site)}: the cast is not of the same kind.",
                ways=f"Convert the target with .astype({str(result)!r}) first, or the value to {array.dtype}.",
            )
        )


def leaf(op: str, target: TensorState, place: Place, array: np.ndarray, site: Site) -> None:
    """Rule: while recording, bytes of a leaf that requires grad are not overwritten.

    A write through `detach()` is not recorded in the history of what it was detached from.
    """
    for reference in place.buffer.leaves:
        found = reference()
        if found is None or not found._leaf or (place.detached and found._place is not place):
            continue
        seen = found._array
        if seen is not None and np.may_share_memory(seen, array) and overlap(seen, array):
            text = target_text(site)
            itself = found is target and same_window(seen, array)
            what = "it is" if itself else "it shares memory with"
            use = f"Use {_out_of_place(op, text)}" if itself and _rebinds(text) else "Write to a .clone() of the leaf"
            raise InplaceError(
                word(
                    f"{op} cannot overwrite {name(array, site)}: {what} a leaf that requires grad, "
                    "and its gradient would be that of a value that is gone.",
                    ways=f"{use} to make a new tensor, "
                    "or update the parameter's value under no_grad(): with mg.no_grad(): ...",
                )
            )


def captured(op: str, buffer: Buffer, array: np.ndarray, site: Site) -> None:
    """Rule: inside a transform, a tracked value is not written into memory made outside of it."""
    start = modes.transform.get()
    if start is not None and buffer.born < start:
        raise InplaceError(
            word(
                f"{op} cannot write a tracked value into {name(array, site)}: the tensor was made outside the "
                "function that is being differentiated.",
                ways="Make it inside the function, or pass it in as an argument; a .detach() value can be written.",
            )
        )


def kept(op: str, place: Place, array: np.ndarray, site: Site, hits: Callable[[np.ndarray], bool]) -> list[Window]:
    """Rule: bytes that a live node keeps are not overwritten, or moved away first under "preserve"."""
    buffer = place.buffer
    if buffer.unkept:
        return []
    low, high = bounds(array)
    touched = [w for w in buffer.near(low, high) if hits(w.array)]
    giving_way = ("always", "by default") if modes.policy.get() is None else ("always",)
    clashes = [w for w in touched if w.gives_way not in giving_way]
    if not clashes or modes.policy_in_force() == "preserve":
        return touched
    _forget_outdated()
    touched, clashes = [w for w in touched if w.live()], [w for w in clashes if w.live()]
    if not clashes:
        return touched
    why, others = [], False
    for node, position in _keepers([w.kept for w in clashes if w.kept is not None]):
        what = _operand(node, position)
        others = others or what != "its result"
        why.append(f"{node.entry.name:<10} {_line(node.code, node.instruction)}   keeps {what} for its gradient")
    text = target_text(site)
    if not modes.recording.get():
        ways = "Drop the result (del) if it is no longer wanted, or call backward() before the update;"
    elif _rebinds(text) and same_window(array, place.array):
        ways = f"Use {_out_of_place(op, text)}, or {text} = {text}.clone() first;"
    else:
        ways = "Write to a .clone() of the whole tensor, and take views of it anew;"
    ways += ' under mg.inplace_policy("preserve") the old value is copied.'
    if others and modes.recording.get():
        ways += "\n  If that result is no longer wanted, drop it (del) or compute it under no_grad()."
    raise InplaceError(
        word(f"{op} cannot overwrite {name(array, site)}: its old value is still needed.", sorted(set(why)), ways)
    )


def _forget_outdated() -> None:
    """Drop the nodes of views whose memory was written since they were last read: nothing can reach them."""
    for t in gc.get_objects():
        if isinstance(t, TensorState) and t._place is not None and t._number != t._place.number:
            t._node = None


def _rebinds(text: str | None) -> bool:
    """Whether the target stands as a name, which can be bound anew; a slice of a tensor cannot."""
    return text is not None and text.isidentifier()


# The sign of an in-place op that Python has an augmented assignment for.
_SIGNS = {"add_": "+", "subtract_": "-", "multiply_": "*", "divide_": "/", "power_": "**", "matmul_": "@"}
_OVERWRITES = (
    "setitem", "copy_", "fill_", "zero_", "masked_fill_", "add_at", "copyto", "put", "put_along_axis", "putmask",
    "place", "fill_diagonal",
)  # fmt: skip


def _out_of_place(op: str, text: str | None) -> str:
    """How to get the same values in a new tensor."""
    if text is None:
        return "the out-of-place op"
    if op in _SIGNS:
        return f"{text} = {text} {_SIGNS[op]} ..."
    if op in _OVERWRITES:
        return "mg.where or mg.concatenate"
    if op.endswith("(out=)"):
        return f"{text} = mg.{op.removesuffix('(out=)')}(...)"
    if not op.endswith("_"):
        return f"{text} = mg.{op}({text})"
    return f"{text} = {text}.{op.removesuffix('_')}()"


def _keepers(kept: Sequence[Kept]) -> list[tuple[Node, int]]:
    """The nodes that keep some windows, and at which position; slow, for error texts only."""
    wanted = {id(k) for k in kept}
    found = []
    # One pass over everything there is; asking for referrers takes one a step.
    for node in gc.get_objects():
        if type(node) is Node and node.kept:
            for i, k in enumerate(node.kept):
                if id(k._kept if type(k) is LockedKept else k) in wanted:
                    found.append((node, i))
    return found


def _operand(node: Node, position: int) -> str:
    """What a node keeps, in the user's words where code positions tell it."""
    names = getattr(node.plan, "keep", node.plan)
    if not isinstance(names, tuple) or position >= len(names):
        return "a value"
    kept_name = names[position]
    if kept_name == "out":
        return "its result"
    if isinstance(kept_name, int):
        return f"operand {kept_name}"
    index = list(node.entry.operands).index(kept_name) if kept_name in node.entry.operands else -1
    return _argument(node, index) or f"its operand {kept_name}"


def _position(code: CodeType | None, instruction: int) -> tuple[int | None, ...] | None:
    if code is None:
        return None
    positions = list(code.co_positions())
    return positions[instruction // 2] if instruction // 2 < len(positions) else None


def _line(code: CodeType | None, instruction: int) -> str:
    position = _position(code, instruction)
    if code is None or position is None:
        return "?"
    return f"{os.path.basename(code.co_filename)}:{position[0]}"


def _statement(code: CodeType | None, instruction: int) -> ast.AST | None:
    """The syntax at an instruction, parsed from the source file; None where there is none."""
    position = _position(code, instruction)
    if code is None or position is None or None in position:
        return None
    first, last, start, stop = (int(p) for p in position if p is not None)
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    if not lines or not lines[0]:
        return None
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][start:]
    try:
        body = ast.parse(b"".join(lines).decode()).body
    except (SyntaxError, ValueError):
        return None
    if len(body) != 1:
        return None
    return body[0].value if isinstance(body[0], ast.Expr) else body[0]


def _argument(node: Node, index: int) -> str | None:
    """The text of a node's operand where the user called the op."""
    syntax = _statement(node.code, node.instruction)
    operands: list[ast.AST] = []
    if isinstance(syntax, ast.BinOp):
        operands = [syntax.left, syntax.right]
    elif isinstance(syntax, ast.UnaryOp):
        operands = [syntax.operand]
    elif isinstance(syntax, ast.AugAssign):
        operands = [syntax.target, syntax.value]
    elif isinstance(syntax, ast.Call):
        operands = [*syntax.args]
        if len(operands) < len(node.entry.operands) and isinstance(syntax.func, ast.Attribute):
            operands.insert(0, syntax.func.value)  # a method: its first operand stands before the dot
    return _short(operands[index]) if 0 <= index < len(operands) else None


def _short(syntax: ast.AST) -> str | None:
    text = ast.unparse(syntax)
    return text if len(text) <= 40 else None


def target_text(site: Site) -> str | None:
    """The target in the user's words, where the source tells: "x", "state[1:3]"."""
    syntax = _statement(*site)
    target: ast.AST | None = None
    if isinstance(syntax, ast.AugAssign):
        target = syntax.target
    elif isinstance(syntax, ast.Subscript):
        target = syntax
    elif isinstance(syntax, ast.Assign):
        target = syntax.targets[0]
    elif isinstance(syntax, ast.Call):
        out = [k.value for k in syntax.keywords if k.arg == "out"]
        if out:
            target = out[0]
        elif isinstance(syntax.func, ast.Attribute) and _writes(syntax.func.attr, syntax):
            target = syntax.func.value
        elif syntax.args:
            target = syntax.args[0]
    return _short(target) if isinstance(target, ast.Name | ast.Attribute | ast.Subscript) else None


def _writes(method: str, call: ast.Call) -> bool:
    """Whether a call by attribute is a method that writes: `x.put(i, v)` is, `np.put(x, i, v)` is not."""
    given = [a for a in call.args if not (isinstance(a, ast.Constant) and isinstance(a.value, str))]
    given += [k.value for k in call.keywords if k.arg != "mode"]
    return method.endswith("_") or method in ("sort", "partition") or (method == "put" and len(given) == 2)


def name(array: np.ndarray, site: Site) -> str:
    """The target with its dtype and shape: "x (float64, shape (3,))", or "the tensor (...)"."""
    return f"{target_text(site) or 'the tensor'} ({array.dtype}, shape {array.shape})"
