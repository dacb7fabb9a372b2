"""Functions of functions: grad, value_and_grad, vjp, jvp, jacobian, hessian, hvp.

Inside them arguments are private: the function may mutate them, and the caller's arrays are never touched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import record
from .call import Call, leaves, parts, positions, rebuild
from .errors import DTypeError, GradientError, ShapeError, describe
from .node import TensorState, node_of
from .operands import dtype_of, raw, shape_of
from .ops import OPS
from .run import FLOATS


def _callable(what: str, function: Any, argnums: Any = 0) -> None:
    if not callable(function):
        raise DTypeError(f"{what}: expected a function, got {describe(function)}.")
    positions(what, argnums, None)


def _scalar(run: Call) -> Any:
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
        run = Call(what, function, args, kwargs, argnums, has_aux)
        result = _scalar(run)
        gradient = run.trees(run.pull([result], [None]))
        value = run.value(result)
        return ((value, _untracked(run, run.aux)) if has_aux else value), gradient

    return differentiated


def _untracked(run: Call, aux: Any) -> Any:
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
    run = Call("vjp()", function, args, {}, range(len(args)), False)
    results = list(leaves(run.result))
    # As they are now, whatever is written to the value later.
    outputs = [
        record.make(t._array, t._value, t._kind, node_of(t), t._born) if isinstance(t, TensorState) else t
        for t in results
    ]

    def pull(cotangent: Any) -> Any:
        return run.trees(run.pull(outputs, list(parts("vjp()", run.result, cotangent))))

    return rebuild(run.result, (run.value(t) for t in results)), pull


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of `function` at `primals`, and its derivative along `tangents`.

    The function runs once, recorded, and the tangents are pushed along its graph.

    Parameters
    ----------
    function : callable
        Takes arrays or nests (tuples, lists, dicts) of them, returns a tensor or a nest of them.
    primals : tuple or list
        The arguments, one an entry.
    tangents : tuple or list
        A direction for each argument, of its structure and shapes.

    Returns
    -------
    value, tangent
        Both of the structure of what `function` returns, mirrored as the arguments were given.

    Raises
    ------
    ShapeError
        If tangents do not match the primals.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> mg.jvp(lambda x, y: x * y, (np.array([1.0, 2.0]), 3.0), (np.array([1.0, 0.0]), 1.0))
    (array([3., 6.]), array([4., 2.]))
    """
    return _jvp("jvp()", function, primals, tangents)


def _jvp(what: str, function: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
    _callable(what, function)
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise DTypeError(f"{what}: {name} must be a tuple with an entry for each argument, got {describe(given)}.")
    directions = list(parts(what, tuple(primals), tuple(tangents)))
    run = Call(what, function, primals, {}, range(len(primals)), beside=directions)
    results = list(leaves(run.result))
    found = run.push(results, directions)
    return rebuild(run.result, (run.value(t) for t in results)), rebuild(run.result, iter(found))


def jacobian(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns the Jacobian of `function`, by one reverse sweep for each element of the value.

    Parameters
    ----------
    function : callable
        Returns a tensor of any shape, or a nest of them.
    argnums : int or sequence of int
        By which arguments.

    Returns
    -------
    callable
        Returns, for each tensor of the value and each argument asked for, an array of shape
        `value.shape + argument.shape`.

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

    return _jacobian("jacobian()", function, argnums)


def _jacobian(what: str, function: Callable[..., Any], argnums: int | Sequence[int]) -> Callable[..., Any]:
    _callable(what, function, argnums)

    @functools.wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        run = Call(what, function, args, kwargs, argnums)
        blocks = [_rows(run, t) for t in leaves(run.result)]
        return rebuild(run.result, iter(blocks))

    return differentiated


def _rows(run: Call, result: Any) -> Any:
    """The Jacobian of one result, by a reverse sweep for each of its elements."""
    if not isinstance(result, TensorState):
        raise DTypeError(f"{run.what}: the function must return a tensor, or a nest of them, got {describe(result)}.")
    shape, dtype = shape_of(result), dtype_of(result)
    rows = []
    for i in range(int(np.prod(shape))):
        unit = np.zeros(shape, dtype)
        unit.reshape(-1)[i] = 1
        rows.append(run.pull([result], [unit]))
    if not rows:
        return run.trees([np.zeros(shape + n.shape, n.dtype) for n in run.nodes])
    return run.trees([_stacked(row, shape) for row in zip(*rows, strict=True)])


def _stacked(row: Sequence[Any], shape: tuple[int, ...]) -> Any:
    if any(isinstance(r, TensorState) for r in row):
        return OPS["reshape"](OPS["stack"](list(row)), shape + shape_of(row[0]))
    full = np.stack([np.asarray(r) for r in row])
    full = full.reshape(shape + full.shape[1:])
    return full if full.shape or isinstance(row[0], np.ndarray) else full.item()


def hessian(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of `function`: the Jacobian of its gradient.

    Parameters
    ----------
    function : callable
        Returns a scalar tensor.
    argnums : int or sequence of int
        By which arguments; with a sequence the result is a tuple of tuples of blocks.

    Returns
    -------
    callable
        Returns an array of shape `argument.shape + argument.shape`.

    Raises
    ------
    DTypeError, ShapeError
        By the returned function, if an argument is not real or the result is not a scalar.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> mg.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
    array([[6., 2.],
           [2., 0.]])
    """
    return functools.wraps(function)(_jacobian("hessian()", _gradient("hessian()", function, argnums), argnums))


def _gradient(what: str, function: Callable[..., Any], argnums: int | Sequence[int]) -> Callable[..., Any]:
    both = _differentiated(what, function, argnums, False)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


def hvp(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of `function` times a vector, without forming the Hessian.

    Parameters
    ----------
    function : callable
        Returns a scalar tensor.
    argnums : int or sequence of int
        By which arguments.

    Returns
    -------
    callable
        Takes what `function` takes, and last the vector, of the structure and shape of the argument (a tuple of
        them for a sequence of arguments); returns the product, of that structure. The gradient's graph takes
        one tangent along: forward over reverse.

    Raises
    ------
    DTypeError, ShapeError
        By the returned function, if arguments or vector do not fit, or the result is not a scalar.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> product = mg.hvp(lambda x: x[0] ** 2 * x[1])
    >>> product(np.array([1.0, 3.0]), np.array([1.0, 0.0]))
    array([6., 2.])
    """
    gradient = _gradient("hvp()", function, argnums)

    @functools.wraps(function)
    def product(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 2:
            raise DTypeError("hvp(): expected the arguments and last the vector, all positional.")
        *point, vector = args
        numbers = positions("hvp()", argnums, len(point))
        vectors = vector if isinstance(argnums, Sequence) else (vector,)

        def along(*active: Any) -> Any:
            for k, a in zip(numbers, active, strict=True):
                point[k] = a
            return gradient(*point, **kwargs)

        return _jvp("hvp()", along, [point[k] for k in numbers], vectors)[1]

    return product
