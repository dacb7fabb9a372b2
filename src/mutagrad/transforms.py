"""Functions of functions: grad, value_and_grad, vjp, jacobian.

Inside them arguments are private: the function may mutate them, and the caller's arrays are never touched.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import record
from .backward import Sweep, own, seed, start
from .errors import DTypeError, GradientError, ShapeError, describe
from .modes import Switch, recording, tick, transform
from .node import Node, TensorState, new_node, node_of
from .operands import dtype_of, operand, raw, shape_of
from .ops import OPS
from .run import FLOATS

# Trees: tuples, lists and dicts of arrays


def leaves(tree: Any) -> Iterator[Any]:
    """The arrays of a nest of tuples, lists and dicts, in order."""
    if isinstance(tree, tuple | list):
        for branch in tree:
            yield from leaves(branch)
    elif isinstance(tree, dict):
        for key in tree:
            yield from leaves(tree[key])
    elif tree is not None:
        yield tree


def rebuild(tree: Any, values: Iterator[Any]) -> Any:
    """The same nest around other values."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(rebuild(branch, values) for branch in tree))
    if isinstance(tree, tuple | list):
        return type(tree)(rebuild(branch, values) for branch in tree)
    if isinstance(tree, dict):
        return {key: rebuild(branch, values) for key, branch in tree.items()}
    return None if tree is None else next(values)


class _Run:
    """One call of a function under differentiation: its private arguments, its result, its graph."""

    def __init__(
        self,
        what: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Any,
        argnums: Any,
        aux: bool,
    ):
        self.what = what
        numbers = _positions(what, argnums, len(args))
        self.given = [args[k] for k in numbers]
        self.single = not isinstance(argnums, Sequence)
        plain = list(leaves(self.given))
        tracked = any(isinstance(a, TensorState) and node_of(a) is not None for a in plain)
        # Inside another transform, or with tracked arguments, the gradient is differentiated again.
        self.graph = recording.get() and (transform.get() is not None or tracked)
        self.floor = tick()
        self.nodes: list[Node] = []
        private = [self._argument(a) for a in plain]
        values = iter(private)
        inside = list(args)
        for k, tree in zip(numbers, self.given, strict=True):
            inside[k] = rebuild(tree, values)
        with Switch(transform, self.floor), Switch(recording, True):
            result = function(*inside, **kwargs)
        self.aux = None
        if aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise DTypeError(
                    f"{what}: with has_aux=True the function must return (value, aux), got {describe(result)}."
                )
            result, self.aux = result
        self.result = result

    def _argument(self, value: Any) -> Any:
        given = operand(value, self.what)
        outer = node_of(given) if isinstance(given, TensorState) and self.graph else None
        array = np.array(raw(given), dtype_of(given) if isinstance(given, TensorState) else None)
        if array.dtype.kind in "iu":
            array = array.astype(np.float64)
        if array.dtype not in FLOATS:
            raise DTypeError(
                f"{self.what}: arguments must be float64 or float32 (or whole numbers), got {describe(value)}."
            )
        entry = None if outer is None else OPS["positive"]
        plan = None if entry is None else entry.plan((True,))
        made = new_node(entry, () if outer is None else (outer,), (), plan, None, array.shape, array.dtype)
        self.nodes.append(made)
        if array.ndim == 0:
            return record.new_scalar(array.item(), array.dtype, made)
        return record.new(array, made)

    def pull(self, outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """The cotangents of all arguments, mirrored as they were given."""
        recorded = recording.get()
        sweep = Sweep(graph=self.graph, floor=self.floor)
        with Switch(recording, self.graph):
            for t, c in zip(outputs, cotangents, strict=True):
                if isinstance(t, TensorState) and node_of(t) is not None:
                    start(sweep, t, seed(t, c, self.what))
            sweep.run(self.nodes)
            given = list(leaves(self.given))
            if sweep.left and not self.graph and recorded and any(isinstance(a, TensorState) for a in given):
                # The gradient depends on tracked tensors from outside; as a Tensor it must say so.
                self.graph = True
                return self.pull(outputs, cotangents)
            return [
                self._mirror(node, sweep.found.get(node), like) for node, like in zip(self.nodes, given, strict=True)
            ]

    def _mirror(self, node: Node, slot: Any, like: Any) -> Any:
        if self.graph:
            return record.new(np.zeros(node.shape, node.dtype)) if slot is None else OPS["positive"](slot[0])
        array = np.zeros(node.shape, node.dtype) if slot is None else own(slot[0], slot[1], None, node.dtype)
        if isinstance(like, TensorState):
            return record.new(array)
        return array if isinstance(like, np.ndarray | list) else array.item()

    def trees(self, values: Sequence[Any]) -> Any:
        """Gradients in the shape of the arguments that were asked for."""
        found = iter(values)
        trees = [rebuild(tree, found) for tree in self.given]
        return trees[0] if self.single else tuple(trees)

    def value(self, t: Any) -> Any:
        """A result as the caller wants it: a Tensor where tensors went in, else plain numbers."""
        if not isinstance(t, TensorState) or self.graph:
            return t
        if any(isinstance(a, TensorState) for a in leaves(self.given)):
            return record.new(np.array(raw(t), dtype_of(t)))
        return np.asarray(raw(t)).item() if shape_of(t) == () else np.array(raw(t))


def _callable(what: str, function: Any, argnums: Any = 0) -> None:
    if not callable(function):
        raise DTypeError(f"{what}: expected a function, got {describe(function)}.")
    _positions(what, argnums, None)


def _positions(what: str, argnums: Any, count: int | None) -> list[int]:
    """The arguments to differentiate by, counted from the front; without `count` only their kind is checked."""
    try:
        numbers = [operator.index(k) for k in (argnums if isinstance(argnums, Sequence) else [argnums])]
    except TypeError:
        raise DTypeError(f"{what}: argnums must be an integer or a sequence of them, got {argnums!r}.") from None
    if count is None:
        return numbers
    for k in numbers:
        if not -count <= k < count:
            raise DTypeError(f"{what}: argnums {argnums} asks for argument {k}, the call has {count} positional.")
    found = [k % count for k in numbers]
    if len(set(found)) != len(found):
        raise DTypeError(f"{what}: argnums {argnums} names one argument twice.")
    return found


def _scalar(run: _Run) -> Any:
    result = run.result
    if not isinstance(result, TensorState):
        if isinstance(result, float | int | np.number) or (isinstance(result, np.ndarray) and result.ndim == 0):
            return record.new(np.asarray(result, float))
        raise DTypeError(f"{run.what}: the function must return a scalar tensor, got {describe(result)}.")
    if shape_of(result) != ():
        raise ShapeError(
            f"{run.what}: the function must return a scalar, got shape {shape_of(result)}; "
            "reduce it, or use jacobian or vjp."
        )
    if dtype_of(result) not in FLOATS:
        raise GradientError(f"{run.what}: the function returned {dtype_of(result)}, which has no gradient.")
    return result


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the value and the gradient of `function`.

    Parameters
    ----------
    function : callable
        Takes arrays or nests (tuples, lists, dicts) of them, returns a scalar tensor. It may mutate its
        arguments; the caller's arrays stay as they are.
    argnums : int or sequence of int
        By which arguments to differentiate; with a sequence the gradient is a tuple.
    has_aux : bool
        `function` returns `(value, aux)`, and the result is `((value, aux), gradient)`; tensors in `aux` come
        out untracked.

    Returns
    -------
    callable
        Takes what `function` takes; returns `(value, gradient)`. Gradients mirror the arguments: a writable
        ndarray for an ndarray, a float for a float, a Tensor for a Tensor. Whole numbers count as float64.

    Raises
    ------
    DTypeError, ShapeError
        By the returned function, if an argument is not real or the result is not a scalar.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> def f(x):
    ...     x *= x
    ...     return mg.sum(x)
    >>> mg.value_and_grad(f)(np.array([1.0, 2.0]))
    (5.0, array([2., 4.]))
    """

    return _differentiated("value_and_grad()", function, argnums, has_aux)


def _differentiated(
    what: str, function: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool
) -> Callable[..., Any]:
    _callable(what, function, argnums)

    @functools.wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        run = _Run(what, function, args, kwargs, argnums, has_aux)
        result = _scalar(run)
        gradient = run.trees(run.pull([result], [None]))
        value = run.value(result)
        return ((value, _untracked(run, run.aux)) if has_aux else value), gradient

    return differentiated


def _untracked(run: _Run, aux: Any) -> Any:
    """Auxiliary output, its tensors cut loose from the private graph."""
    if run.graph:
        return aux
    return rebuild(
        aux,
        (record.new(np.array(raw(a), dtype_of(a))) if isinstance(a, TensorState) else a for a in leaves(aux)),
    )


def grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `function`; with `has_aux`, `(gradient, aux)`.

    Parameters, results and errors are those of `value_and_grad`.

    Examples
    --------
    >>> import mutagrad as mg
    >>> mg.grad(lambda x: x * mg.sin(x))(0.0)
    0.0
    >>> mg.grad(mg.grad(lambda x: x**3))(2.0)
    12.0
    """
    both = _differentiated("grad()", function, argnums, has_aux)

    @functools.wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


def vjp(function: Callable[..., Any], *args: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of `function` at `args`, and the function that maps a cotangent of it to those of the arguments.

    Returns
    -------
    value
        What `function` returns, a tensor or a nest of them, mirrored as the arguments were given.
    pull : callable
        Takes a cotangent of the value's structure and shape, returns a tuple with one cotangent an
        argument; may be called again.

    Raises
    ------
    ShapeError
        By `pull`, if a cotangent's shape is not that of its value.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> value, pull = mg.vjp(lambda x, y: x * y, np.array([1.0, 2.0]), 3.0)
    >>> pull(np.array([1.0, 1.0]))
    (array([3., 3.]), 3.0)
    """
    _callable("vjp()", function)
    run = _Run("vjp()", function, args, {}, range(len(args)), False)
    results = list(leaves(run.result))
    # As they are now, whatever is written to the value later.
    outputs = [
        record.make(t._array, t._value, t._kind, node_of(t), t._born) if isinstance(t, TensorState) else t
        for t in results
    ]

    def pull(cotangent: Any) -> Any:
        return run.trees(run.pull(outputs, list(_parts(run.result, cotangent))))

    return rebuild(run.result, (run.value(t) for t in results)), pull


def _parts(value: Any, cotangent: Any) -> Iterator[Any]:
    """The parts of a cotangent in the order of the value's."""
    if isinstance(value, dict):
        if not isinstance(cotangent, dict) or value.keys() != cotangent.keys():
            raise ShapeError(f"vjp(): the value is a dict of {list(value)}, the cotangent must be one too.")
        for key in value:
            yield from _parts(value[key], cotangent[key])
    elif isinstance(value, tuple | list):
        if not isinstance(cotangent, tuple | list) or len(value) != len(cotangent):
            raise ShapeError(f"vjp(): the value has {len(value)} parts, the cotangent must have as many.")
        for v, c in zip(value, cotangent, strict=True):
            yield from _parts(v, c)
    elif value is not None:
        yield cotangent


def jacobian(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns the Jacobian of `function`, by one reverse sweep for each element of the value.

    Parameters
    ----------
    function : callable
        Returns a tensor of any shape.
    argnums : int or sequence of int
        By which arguments.

    Returns
    -------
    callable
        Returns, for each argument asked for, an array of shape `value.shape + argument.shape`.

    Raises
    ------
    DTypeError
        By the returned function, if the result is not a tensor.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> mg.jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """

    _callable("jacobian()", function, argnums)

    @functools.wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        run = _Run("jacobian()", function, args, kwargs, argnums, False)
        result = run.result
        if not isinstance(result, TensorState):
            raise DTypeError(f"jacobian(): the function must return a tensor, got {describe(result)}.")
        shape, dtype = shape_of(result), dtype_of(result)
        rows = []
        for i in range(int(np.prod(shape))):
            unit = np.zeros(shape, dtype)
            unit.reshape(-1)[i] = 1
            rows.append(run.pull([result], [unit]))
        if not rows:
            return run.trees([np.zeros(shape + n.shape, n.dtype) for n in run.nodes])
        return run.trees([_stacked(row, shape) for row in zip(*rows, strict=True)])

    return differentiated


def _stacked(row: Sequence[Any], shape: tuple[int, ...]) -> Any:
    if any(isinstance(r, TensorState) for r in row):
        return OPS["reshape"](OPS["stack"](list(row)), shape + shape_of(row[0]))
    full = np.stack([np.asarray(r) for r in row])
    return full.reshape(shape + full.shape[1:])
