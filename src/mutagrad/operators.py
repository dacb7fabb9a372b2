"""What Python and NumPy do with a tensor: operators, conversions to plain numbers, iteration."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import index, record, write
from .buffers import identity, known, owner_of
from .errors import DTypeError, GradientCutWarning, ShapeError, describe
from .fast import KNOWN, binary_of, unary_of
from .modes import recording
from .node import TensorState, node_of
from .operands import array_of, dtype_of, operand, raw, shape_of
from .ops import OPS
from .record import place_of

add, subtract, multiply, divide, power = (OPS[n] for n in ("add", "subtract", "multiply", "divide", "power"))
floor_divide, remainder = OPS["floor_divide"], OPS["remainder"]


def _operator(entry: Any) -> Callable[[Any, Any], Any]:
    return binary_of(entry, operator=True)


def _reflected(entry: Any) -> Callable[[Any, Any], Any]:
    binary = binary_of(entry, depth=2, operator=True)

    def operate(self: Any, other: Any) -> Any:
        return binary(other, self)

    return operate


def _augmented(entry: Any) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        if isinstance(other, KNOWN):
            return write.apply(entry, self, (self, other))
        return NotImplemented

    return operate


_power = binary_of(power, depth=2, operator=True)
_square = unary_of(OPS["square"], 2)


def _bitwise(ufunc: Any, *operands: Any) -> Any:
    values = [raw(operand(a, ufunc.__name__)) for a in operands]
    for v in values:
        if np.asarray(v).dtype.kind not in "iub":
            raise DTypeError(f"{ufunc.__name__}: expected integers or bools, got {describe(np.asarray(v))}.")
    try:
        return record.new(np.asarray(ufunc(*values)))
    except (ValueError, TypeError, OverflowError) as error:
        raise ShapeError(f"{ufunc.__name__}: {str(error).rstrip('.')}.") from None


class Operators(TensorState):
    """The operators and conversions of a tensor."""

    __slots__ = ()
    __hash__ = object.__hash__

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return shape_of(self)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the elements."""
        return dtype_of(self)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return 0 if self._array is None else self._array.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return 1 if self._array is None else self._array.size

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self.dtype.itemsize

    __add__, __radd__, __iadd__ = _operator(add), _reflected(add), _augmented(add)
    __sub__, __rsub__, __isub__ = _operator(subtract), _reflected(subtract), _augmented(subtract)
    __mul__, __rmul__, __imul__ = _operator(multiply), _reflected(multiply), _augmented(multiply)
    __truediv__, __rtruediv__, __itruediv__ = _operator(divide), _reflected(divide), _augmented(divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = (f(floor_divide) for f in (_operator, _reflected, _augmented))
    __mod__, __rmod__, __imod__ = _operator(remainder), _reflected(remainder), _augmented(remainder)
    __rpow__, __ipow__ = _reflected(power), _augmented(power)
    __lt__, __le__ = _operator(OPS["less"]), _operator(OPS["less_equal"])
    __gt__, __ge__ = _operator(OPS["greater"]), _operator(OPS["greater_equal"])
    __eq__, __ne__ = _operator(OPS["equal"]), _operator(OPS["not_equal"])  # type: ignore[assignment]

    def __pow__(self, other: Any) -> Any:
        if type(other) in (int, float) and other == 2:
            return _square(self)
        return _power(self, other)

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other) if isinstance(other, KNOWN) else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self) if isinstance(other, KNOWN) else NotImplemented

    def __matmul__(self, other: Any) -> Any:
        return OPS["matmul"](self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return OPS["matmul"](other, self)

    def __imatmul__(self, other: Any) -> Any:
        return write.apply(OPS["matmul"], self, (self, other))

    __neg__, __pos__, __abs__ = unary_of(OPS["negative"]), unary_of(OPS["positive"]), unary_of(OPS["absolute"])

    def __iand__(self, other: Any) -> Any:
        return write.overwrite("__iand__", self, self & other)

    def __ior__(self, other: Any) -> Any:
        return write.overwrite("__ior__", self, self | other)

    def __ixor__(self, other: Any) -> Any:
        return write.overwrite("__ixor__", self, self ^ other)

    def __and__(self, other: Any) -> Any:
        return _bitwise(np.bitwise_and, self, other)

    def __or__(self, other: Any) -> Any:
        return _bitwise(np.bitwise_or, self, other)

    def __xor__(self, other: Any) -> Any:
        return _bitwise(np.bitwise_xor, self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Any:
        return _bitwise(np.invert, self)

    def numpy(self) -> np.ndarray:
        """A read-only NumPy view of the memory."""
        array, buffer = array_of(self), place_of(self).buffer
        if owner_of(array) is owner_of(buffer.memory):
            # Should the view come back through `asarray`, it is known whose memory it is.
            known.setdefault(identity(owner_of(array)), buffer)
        seen = array.view()
        seen.flags.writeable = False
        return seen

    def item(self) -> Any:
        """The one element as a Python number.

        Raises
        ------
        ShapeError
            If there is not exactly one.
        """
        if self.size != 1:
            raise ShapeError(f"item(): only a tensor with one element has an item, this one has shape {self.shape}.")
        return self._value if self._array is None else self._array.item()

    def tolist(self) -> Any:
        """The elements as nested Python lists."""
        return self._value if self._array is None else self._array.tolist()

    def _cut(self, what: str) -> None:
        if recording.get() and node_of(self) is not None:
            warnings.warn(
                f"{what} of a tracked tensor gives plain numbers and cuts the gradient; "
                "use .item() or .numpy() if that is meant, and assign to a tensor (mg.zeros) instead of an array.",
                GradientCutWarning,
                stacklevel=3,
            )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._cut("np.asarray()")
        if copy is False and dtype is not None and np.dtype(dtype) != self.dtype:
            raise ValueError(f"cannot convert {self.dtype} to {dtype} without a copy")
        changed = dtype is not None and np.dtype(dtype) != self.dtype
        return np.array(array_of(self), dtype=dtype) if copy or changed else self.numpy()

    def __float__(self) -> float:
        self._cut("float()")
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        self._cut("complex()")
        return complex(self.item())

    def __round__(self, ndigits: int | None = None) -> Any:
        return OPS["round"](self, ndigits) if ndigits is not None else round(self._one("round"))

    def __floor__(self) -> int:
        return math.floor(self._one("floor"))

    def __ceil__(self) -> int:
        return math.ceil(self._one("ceil"))

    def __trunc__(self) -> int:
        return math.trunc(self._one("trunc"))

    def _one(self, op: str) -> Any:
        """The one element, of which Python makes an integer."""
        if self.size != 1:
            raise ShapeError(
                f"{op}(): Python makes an integer of one element, this tensor has shape {self.shape}; use .{op}()."
            )
        return self.item()

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.size != 1:
            raise DTypeError(f"Only an integer tensor with one element is an index, this one is {describe(self)}.")
        return int(self.item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                f"The truth value of a tensor of shape {self.shape} is ambiguous; use .any() or .all() of its numpy()."
            )
        return bool(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise DTypeError("len() of a tensor without axes.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise DTypeError("A tensor without axes cannot be iterated over.")
        return (index.getitem(self, i) for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool((array_of(self) == raw(value)).any())
