"""Writes into existing tensors: plan, judge, commit. Every writer goes through here.

A plan checks shapes, dtypes and indices and touches nothing. The judge looks at the bytes. The commit
moves kept windows away where the policy says so, runs the kernel in the target's own memory, and moves the
memory's place in the graph; an interrupt that strikes during the commit is raised when it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import judge, pool, run
from .buffers import Buffer, Window, lock, overlap, same_window
from .errors import DTypeError, describe
from .fast import case_in_place
from .modes import recording, transform
from .node import Node, Place, TensorState, born, new_node, node_of
from .operands import array_of, bind, broadcast, cast, dtype_spec, operand, operands_of, raw
from .ops import Elementwise, Entry
from .ops.elementwise import where as select
from .ops.window import Geometry, dense_layout
from .ops.window import write as write_window
from .record import keep, keep_operand, keep_written, make, nodes_of, place_of, site


class Write:
    """One planned write: where, who asks, and what becomes of the graph."""

    def __init__(self, op: str, target: Any, array: np.ndarray, where: judge.Site) -> None:
        self.op, self.target, self.array, self.site = op, target, array, where
        self.place: Place = place_of(target)
        self.whole = same_window(array, self.place.array)
        self.recorded = recording.get()
        self.forget = False
        self.hits: Callable[[np.ndarray], bool] = lambda kept: overlap(kept, array)

    def judge(self, tracked: bool) -> list[Window]:
        return judge.judge(self.op, self.target, self.array, self.site, self.hits, tracked, self.recorded)

    def commit(
        self,
        moved: Sequence[Window],
        function: Callable[..., Any],
        args: Sequence[Any],
        node_after: Callable[[], Node | None],
    ) -> None:
        """Write, by one call. `node_after` gives the node of the window's new value, asked once it is written."""
        for w in moved:
            if w.kept is not None:
                w.kept.array = pool.copy(w.kept.array)
                w.kept = None
        done: list[Any] = []
        place, buffer = self.place, self.place.buffer
        version, number = buffer.version + 1, place.number + 1
        settled: list[tuple[Node | None, Node | None]] = []

        def finish() -> None:
            buffer.version = version
            if not self.recorded:
                return
            if not settled:
                node = node_after()
                settled.append((node, self._base_after(node)))
            node, base = settled[0]
            place.node, place.number = base, number
            target = self.target
            # Where it must be derived anew the old node is dropped: it would keep values that nobody can reach.
            own = self.array is target._array
            target._node, target._number = (base if self.whole else node, number) if own else (None, -1)

        try:
            run.once(done, function, args)
            finish()
        except BaseException:
            # Once the kernel ran, the graph must say so, whatever struck in between.
            if done:
                finish()
            raise

    def _base_after(self, node: Node | None) -> Node | None:
        """The node of the whole base once this window of it has changed."""
        base = self.place.node
        if (node is None and base is None) or (self.whole and (node is not None or self.forget)):
            return node
        if self.array.size == self.place.array.size:
            base = None  # every element is overwritten, in whatever order
        geometry = self.place.geometry(self.array)
        # Overwritten by a constant, it stays tracked: a backward through it is no error and finds nothing.
        make_node = new_node if node is None and base is None else born
        return make_node(
            write_window, (base, node), (), None, geometry, self.place.array.shape, self.place.array.dtype, self.site
        )


def target_array(target: Any, op: str) -> np.ndarray:
    if not isinstance(target, TensorState):
        raise DTypeError(f"{op}: the target must be a Tensor, got {describe(target)}.")
    return array_of(target)


def _shadow(t: Any, copies: dict[int, Any]) -> Any:
    """A private tensor with the value and the node that `t` has now: it is read as if copied before the write."""
    found = copies.get(id(t))
    if found is None:
        found = copies[id(t)] = make(pool.copy(array_of(t)), None, "", node_of(t), t._born)
    return found


def _beside_memory(args: Any, buffer: Buffer, copies: dict[int, Any]) -> list[Any]:
    """The operands, those on the buffer as if copied."""
    found = []
    for a in args:
        if isinstance(a, list | tuple):
            a = type(a)(_beside_memory(a, buffer, copies))
        elif isinstance(a, TensorState) and a._place is not None and a._place.buffer is buffer:
            a = _shadow(a, copies)
        found.append(a)
    return found


# Computing into a tensor


def apply(entry: Entry, target: Any, args: Sequence[Any], op: str = "", where: Any = True, **params: Any) -> Any:
    """Compute an op into an existing tensor: `x.sin_()`, `x += y`, `np.sin(y, out=x)`.

    `args` are all operands of the op, the target among them where it is one.
    """
    here = site(2)
    if type(entry) is Elementwise and where is True and isinstance(target, TensorState):
        if not params and _quick(entry, target, args, here):
            return target
    op = op or f"{entry.name}_"
    array = target_array(target, op)
    if isinstance(entry, Elementwise) and where is True:
        operands, (compute, out_dtype) = operands_of(entry, args, params, op)
        judge.dtype(op, array, out_dtype, here)
        judge.shape(op, array, _result_shape(op, operands, array), here)
        if compute is not None and compute == array.dtype:
            return _elementwise(entry, target, operands, op, here)
        args, params = operands, {}
    return _beside(entry, target, args, params, op, here, where)


def _quick(entry: Elementwise, target: Any, args: Sequence[Any], here: judge.Site) -> bool:
    """`_elementwise` without ceremony, where the judge has nothing to look at; False where it has.

    That is: the target is a whole memory with no leaf, no kept window and no array of the user's in it, and the
    first operand; the other operand is a number, the target itself, or another memory of the same shape.
    """
    if len(args) != len(entry.operands) or len(args) > 2 or args[0] is not target or transform.get() is not None:
        return False
    other: Any = args[1] if len(args) > 1 else None
    kinds: tuple[str, ...] = (target._kind,)
    if len(args) > 1:
        kinds = *kinds, other._kind if isinstance(other, TensorState) else "w" if type(other) is float else ""
    fast = case_in_place(entry, kinds, "==" if other is target else "=")
    if fast is None:
        return False
    call, kind, dtype, arrays, plans = fast
    if kind != target._kind or not arrays & 1 or plans is None:
        return False
    with lock:
        array, place = target._array, place_of(target)
        buffer = place.buffer
        if array is not place.array or place.detached or not 0 < array.size < run.MANY or not array.flags.writeable:
            return False
        values: list[Any] = [array]
        nodes = [place.node]
        if len(args) > 1:
            tensor = isinstance(other, TensorState)
            value = other._array if arrays & 2 else other.item() if tensor else other
            if arrays & 2 and other is not target:
                if value.shape != array.shape or (other._place is not None and other._place.buffer is buffer):
                    return False
            values.append(value)
            nodes.append(node_of(other) if tensor else None)
        recorded = recording.get()
        if buffer.guarded(recorded):
            return False
        node, number = place.node, place.number
        if recorded:
            number += 1
            mask = sum(1 << k for k, n in enumerate(nodes) if n is not None)
            if mask:
                plan = plans[mask]
                old = pool.copy(array) if any(p >= 0 and values[p] is array for p in plan.positions) else None
                kept = tuple(
                    [
                        keep_written(target) if p < 0
                        else old if values[p] is array
                        else keep(args[p]) if arrays & 1 << p
                        else values[p]
                        for p in plan.positions
                    ]
                )  # fmt: skip
                node = born(entry, tuple(nodes), kept, plan, None, array.shape, dtype, here)
        version = buffer.version + 1
        given = [array, *[v for v in values if v is not array]]
        if arrays & 4:
            given = [v if type(v) is float else v.reshape(-1) for v in given]
        done: list[Any] = []
        try:
            run.once(done, call, given)
            _settle(target, node, number, version)
        except BaseException:
            # Once the kernel ran, the graph must say so, whatever struck in between.
            if done:
                _settle(target, node, number, version)
            raise
    return True


def _settle(target: Any, node: Node | None, number: int, version: int) -> None:
    """Say of a whole memory what was written to it."""
    place = target._place
    place.buffer.version = version
    place.node = target._node = node
    place.number = target._number = number


def _beside(
    entry: Entry, target: Any, args: Sequence[Any], params: dict[str, Any], op: str, here: judge.Site, where: Any = True
) -> Any:
    """Compute into new memory, then overwrite the target: for what has no kernel that works in place."""
    array = target_array(target, op)
    with lock:
        copies: dict[int, Any] = {}
        if entry.differentiable:
            buffer = place_of(target).buffer
            args = _beside_memory(args, buffer, copies)
            params = dict(zip(params, _beside_memory(params.values(), buffer, copies), strict=True))
        computed = entry(*args, **params)
        if where is not True:
            computed = select(where, computed, _shadow(target, copies))
        # A ufunc's output may be wider than its inputs; what other functions compute must fit as it is.
        return assign(op, target, array, computed, here, exact=not isinstance(entry, Elementwise))


def _result_shape(op: str, operands: Sequence[Any], array: np.ndarray) -> tuple[int, ...]:
    """The shape of the result with the target taking part, as in NumPy: an output may be wider than its inputs."""
    values = [raw(a) for a in operands]
    shape = array.shape
    if all(not isinstance(v, np.ndarray) or v.shape == shape for v in values):
        return shape
    shape = broadcast(op, values)
    try:
        return np.broadcast_shapes(shape, array.shape)
    except ValueError:
        return shape


def _elementwise(entry: Elementwise, target: Any, operands: list[Any], op: str, here: judge.Site) -> Any:
    """The op's own kernel, in the target's own memory."""
    with lock:
        array = target._array
        task = Write(op, target, array, here)
        nodes = nodes_of(operands) if task.recorded and entry.differentiable else None
        moved = task.judge(nodes is not None)
        if array.size == 0:
            return target
        plan = None if nodes is None else entry.plan(tuple(n is not None for n in nodes))
        copies: dict[int, Any] = {}
        sources = []
        for i, a in enumerate(operands):
            found = raw(a)
            if isinstance(found, np.ndarray) and np.may_share_memory(found, array):
                needed = plan is not None and i in plan.positions
                if (needed or not same_window(found, array)) and overlap(found, array):
                    a = _shadow(a, copies) if isinstance(a, TensorState) else pool.copy(found)
            sources.append(a)
        values = [
            cast(raw(a), array.dtype, mask=o in entry.masks) for a, o in zip(sources, entry.operands, strict=True)
        ]
        kernel = run.forward_kernel(entry)
        call, arguments, _ = run.prepared(kernel, entry.kernels, values, array.shape, array.dtype, [array])

        def node_after() -> Node | None:
            if plan is None or nodes is None:
                return None
            kept = tuple(
                keep_written(target) if p == -1 else keep_operand(sources[p], values[p]) for p in plan.positions
            )
            return born(entry, tuple(nodes), kept, plan, None, array.shape, array.dtype, here)

        task.commit(moved, call, arguments, node_after)
        return target


# Overwriting


def assign(op: str, target: Any, array: np.ndarray, value: Any, here: judge.Site, exact: bool = False) -> Any:
    """Overwrite a window of the target: `x[1:3] = v`, `copy_`, `fill_`.

    With `exact` the value's own shape must be the window's: what computed it has broadcast already.
    """
    value = operand(value, op)
    with lock:
        found = raw(value)
        if isinstance(value, TensorState) and isinstance(found, np.ndarray) and same_window(found, array):
            if value is target or (value._place is not None and value._place is target._place):
                return target
        plain = fitted(op, found, dtype_spec(value), array, here, exact)
        task = Write(op, target, array, here)
        nodes = nodes_of([value]) if task.recorded else None
        moved = task.judge(nodes is not None)
        if array.size == 0:
            return target
        if np.may_share_memory(plain, array):
            plain = pool.copy(plain)
        own = task.whole or array is target._array

        def node_after() -> Node | None:
            return None if nodes is None or nodes[0] is None else _arrival(nodes[0], array, own, here)

        task.commit(moved, np.copyto, (array, plain, "same_kind"), node_after)
    return target


def fitted(op: str, value: Any, spec: Any, array: np.ndarray, here: judge.Site, exact: bool) -> np.ndarray:
    """The value as an array that broadcasts to the window, its dtype and shape checked."""
    if isinstance(spec, np.dtype):
        plain = np.asarray(value, spec)
    else:
        plain = _number(op, value, array)
    judge.dtype(op, array, plain.dtype, here)
    if exact:
        judge.shape(op, array, plain.shape, here)
    if plain.shape == array.shape or not plain.ndim:
        return plain
    extra = plain.ndim - array.ndim
    if extra > 0 and all(n == 1 for n in plain.shape[:extra]):
        plain = plain.reshape(plain.shape[extra:])
    try:
        shape = np.broadcast_shapes(plain.shape, array.shape)
    except ValueError:
        shape = plain.shape
    judge.shape(op, array, shape, here)
    return plain


def _number(op: str, value: Any, array: np.ndarray) -> np.ndarray:
    """A Python number in the target's dtype where NumPy lets it be weak, else in its own."""
    if isinstance(value, bool) or np.result_type(array.dtype, value) != array.dtype:
        return np.asarray(value)
    try:
        return np.asarray(value, array.dtype)
    except OverflowError:
        raise DTypeError(f"{op}: {value} is out of range for {array.dtype}.") from None


def _arrival(node: Node, array: np.ndarray, own: bool, here: judge.Site) -> Node:
    """The node of a value once it fills a window.

    It is the value's own node, unless the window must be told apart from it, or the value was broadcast or cast.
    """
    if not own and node.entry is not None and node.shape == array.shape and node.dtype == array.dtype:
        return node
    layout = dense_layout(array.shape, array.itemsize)
    geometry = Geometry(layout, array.shape, layout.strides, 0)
    return born(write_window, (None, node), (), None, geometry, array.shape, array.dtype, here)


def overwrite(op: str, target: Any, value: Any) -> Any:
    """Overwrite the whole target."""
    return assign(op, target, target_array(target, op), value, site(2))


def into(entry: Entry, target: Any, args: Sequence[Any], kwargs: dict[str, Any], op: str) -> Any:
    """`apply` with arguments as a NumPy function got them."""
    if not isinstance(entry, Elementwise):
        return _beside(entry, target, args, kwargs, op, site(2))
    bound = bind(entry, tuple(args), kwargs)
    return apply(entry, target, [bound.pop(o) for o in entry.operands], op, **bound)


def cut(target: Any) -> None:
    """Cut the history of the target's value, as if it were overwritten with the same numbers."""
    here = site(2)
    with lock:
        array = array_of(target)
        task = Write("detach_", target, array, here)
        task.recorded = task.forget = True
        judge.leaf("detach_", target, task.place, array, here)
        if node_of(target) is not None:
            version = task.place.buffer.version
            task.commit([], bool, (), lambda: None)
            task.place.buffer.version = version
