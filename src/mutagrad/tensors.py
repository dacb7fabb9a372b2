"""The Tensor: operators and NumPy protocols, each a line that records; no mathematics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import index, placement, pool, protocols, record, write
from .backward import backward
from .buffers import same_window
from .errors import DTypeError, GradientError, ShapeError, describe
from .node import Holder, Node, Place, kind_of, new_node, node_of
from .operands import array_of, check_dtype, operand, raw
from .operators import Operators
from .ops import OPS
from .ops.movement import astype
from .record import place_of


class Tensor(Operators):
    """A NumPy-style array, or scalar, that records how it was computed.

    Make one with `mg.tensor`, `mg.asarray` or a creation function. `+ - * / ** @`, comparisons, indexing,
    NumPy ufuncs and the library's functions compute with it; `+=` and its kin, `x[i] = v`, methods that
    end in an underscore and `out=` write into it, under the in-place contract.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        # The methods derived from the table.
        def __getattr__(self, name: str) -> Any: ...

    __array_priority__ = 1000

    # What it is

    @property
    def version(self) -> int:
        """How many times its memory was written in place, through whatever tensor."""
        return 0 if self._place is None else self._place.buffer.version

    @property
    def T(self) -> Tensor:
        """The axes reversed; a view."""
        return OPS["transpose"](self)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged; a view."""
        return OPS["matrix_transpose"](self)

    # Gradients

    @property
    def requires_grad(self) -> bool:
        """Whether it is tracked: a leaf that requires grad, or computed from one."""
        return self._leaf or node_of(self) is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def stop_gradient(self) -> bool:
        """The negation of `requires_grad`."""
        return not self.requires_grad

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self.requires_grad_(not value)

    @property
    def is_leaf(self) -> bool:
        """True if no recorded op made it."""
        return self._leaf or node_of(self) is None

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Make it a leaf that requires grad, or an untracked tensor again; returns itself.

        Raises
        ------
        DTypeError
            If its dtype is not float64 or float32.
        GradientError
            If it is a view, or was computed by recorded ops.
        """
        if self._leaf == bool(requires_grad) and (requires_grad or node_of(self) is None):
            return self
        if not self.is_leaf:
            if requires_grad:
                return self
            raise GradientError(
                "requires_grad cannot be switched off on a tensor that recorded ops made; "
                "use .detach() for one without history, or .detach_() to cut the history of this one."
            )
        if not requires_grad:
            assert self._holder is not None
            self._holder.leaf = False
            self._restart(None)
            return self
        if self.dtype not in record.FLOATS:
            raise DTypeError(
                f"Only float64 and float32 tensors can require grad, this one is {self.dtype}; "
                "convert it with .astype(float)."
            )
        if self._place is not None and not same_window(array_of(self), self._place.array):
            raise GradientError(
                "A view cannot require grad: make its base a leaf, or take a .clone() or .detach().clone() of the view."
            )
        holder = self._holder or Holder(leaf=True)
        leaf = new_node(None, (), (), None, None, self.shape, self.dtype)
        leaf.holder = self._holder = holder
        holder.leaf = True
        self._restart(leaf)
        if self._place is not None:
            self._place.buffer.add_leaf(self)
        return self

    def _restart(self, node: Node | None) -> None:
        """Give the value another node, for its views too."""
        self._node = node
        if self._place is not None:
            self._place.node = node
            self._place.number += 1
            self._number = self._place.number

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf, a Tensor; None before any backward. Reset it with `x.grad = None`."""
        if self._holder is not None:
            return self._holder.grad
        if not self.is_leaf:
            raise GradientError(
                "This tensor is not a leaf, so it has no .grad (call .retain_grad() before backward() to get one). "
                "If it should be a parameter, note that x = x - lr * g makes a new tensor that is no leaf; "
                "to update the leaf itself write: with mg.no_grad(): x -= lr * g"
            )
        return None

    @grad.setter
    def grad(self, value: Any) -> None:
        if self._holder is None:
            if value is None:
                return
            raise GradientError("Only a leaf that requires grad, or a tensor with retain_grad(), has a .grad to set.")
        if value is None:
            self._holder.grad = None
            return
        given = value if isinstance(value, Tensor) else record.new(np.array(raw(operand(value, ".grad")), self.dtype))
        if given.shape != self.shape or given.dtype != self.dtype:
            raise ShapeError(f".grad must be {self.dtype}, shape {self.shape}, got {describe(given)}.")
        self._holder.grad = given

    def retain_grad(self) -> None:
        """Keep the gradient of this tensor's present value in `.grad` at the next backward.

        Raises
        ------
        GradientError
            If it is not tracked.
        """
        node = node_of(self)
        if node is None:
            raise GradientError("retain_grad(): this tensor is not tracked.")
        if node.holder is None:
            node.holder = Holder()
        self._holder = node.holder

    def backward(self, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Add to the `.grad` of every leaf the derivative of this tensor by it; `.grad` is a new tensor each time.

        Parameters
        ----------
        gradient : array_like, optional
            The cotangent of this tensor, of its shape; a scalar needs none.
        retain_graph : bool
            Keep what the graph holds for a further backward.
        create_graph : bool
            Record the sweep, so that gradients differentiate again; implies `retain_graph`.

        Raises
        ------
        GradientError
            If it is not tracked, not a scalar and no gradient is given, or its graph was released. No `.grad`
            has changed then.
        ShapeError
            If the gradient's shape is not the tensor's.

        Examples
        --------
        >>> import mutagrad as mg
        >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.], dtype=float64)
        """
        backward(self, gradient, retain_graph, create_graph)

    def detach(self) -> Tensor:
        """The same memory without history; writes through it change values, not history."""
        array = array_of(self)
        place = place_of(self)
        seen = array[...]
        made = record.make(seen, None, kind_of(array), None, self._born)
        made._place, made._number = Place(place.buffer, seen, None, detached=True), 0
        return made

    def detach_(self) -> Tensor:
        """Cut the history of the present value, as if it were overwritten with itself; returns itself."""
        if self._leaf:
            return self.requires_grad_(False)
        write.cut(self)
        return self

    # Copies and conversions

    def clone(self) -> Tensor:
        """A copy in memory of its own, with history."""
        return OPS["positive"](self) if self.dtype in record.FLOATS else Tensor._of(pool.copy(array_of(self)))

    copy = clone

    @staticmethod
    def _of(array: np.ndarray) -> Tensor:
        return record.new(array)

    def astype(self, dtype: Any) -> Tensor:
        """A copy in another dtype; differentiable between float64 and float32."""
        try:
            wanted = np.dtype(dtype)
        except TypeError as error:
            raise DTypeError(f"astype: {error}.") from None
        check_dtype(wanted, "astype")
        return astype(self, wanted)

    def __copy__(self) -> Tensor:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise GradientError("Only leaves can be deep-copied; use .detach().clone() or .clone().")
        made = Tensor._of(pool.copy(array_of(self)))
        memo[id(self)] = made
        return made.requires_grad_() if self._leaf else made

    def __reduce__(self) -> Any:
        if not self.is_leaf:
            raise GradientError("Only leaves can be pickled: a graph cannot. Use .detach() first.")
        return _restore, (np.array(array_of(self)), self._leaf, self._holder.grad if self._holder else None)

    def __dlpack__(self, *, copy: bool | None = None, **options: Any) -> Any:
        # A copy, since consumers do not heed that memory is read-only, and what is kept must not change.
        if self.requires_grad:
            raise GradientError("A tracked tensor cannot be exported: other libraries hold no history. Use .detach().")
        if copy is False:
            raise BufferError("A tensor is exported as a copy; copy=False cannot be had.")
        return pool.copy(array_of(self)).__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return array_of(self).__dlpack_device__()

    def __repr__(self) -> str:
        body = np.array2string(np.asarray(raw(self)), separator=", ", prefix="tensor(")
        if self._array is None and self.dtype == np.float32:
            body = str(np.float32(self._value))  # type: ignore[arg-type]
        made = ""
        node = node_of(self)
        if self._leaf:
            made = ", requires_grad=True"
        elif node is not None and node.entry is not None:
            made = f", made_by={node.entry.name}"
        return f"tensor({body}, dtype={self.dtype}{made})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)

    # Indexing

    def __getitem__(self, key: Any) -> Tensor:
        return index.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        index.setitem(self, key, value)

    # In-place methods that are not ops of the table

    def copy_(self, other: Any) -> Tensor:
        """Overwrite with another tensor's values, broadcasting; the gradient of what was there is cut."""
        return write.overwrite("copy_", self, other)

    def fill_(self, value: Any) -> Tensor:
        """Overwrite every element with one value, which may be a tracked scalar."""
        if np.ndim(raw(value)) != 0:
            raise ShapeError(f"fill_: expected a scalar, got {describe(value)}; use copy_ for an array.")
        return write.overwrite("fill_", self, value)

    def zero_(self) -> Tensor:
        """Overwrite every element with zero."""
        return write.overwrite("zero_", self, 0)

    def masked_fill_(self, mask: Any, value: Any) -> Tensor:
        """Overwrite the elements where `mask`, boolean and broadcast to this shape, is true."""
        found = np.asarray(raw(operand(mask, "masked_fill_")))
        if found.dtype != np.bool_:
            raise DTypeError(f"masked_fill_: the mask must be bool, got {found.dtype}.")
        try:
            found = np.broadcast_to(found, self.shape)
        except ValueError:
            raise ShapeError(f"masked_fill_: a mask of shape {found.shape} does not fit shape {self.shape}.") from None
        index.setitem(self, found, value, "masked_fill_")
        return self

    def put(self, ind: Any, v: Any, mode: str = "raise") -> None:
        """Write values in place at indices of the flattened tensor, as `mg.put` does."""
        placement.put(self, ind, v, mode)

    def sort(self, axis: int = -1) -> None:
        """Sort in place along an axis, as NumPy's method does; `mg.sort` gives a new tensor."""
        write.apply(OPS["sort"], self, (self,), "sort", axis=axis)

    def partition(self, kth: Any, axis: int = -1) -> None:
        """Partition in place along an axis, as NumPy's method does; `mg.partition` gives a new tensor."""
        write.apply(OPS["partition"], self, (self,), "partition", kth=kth, axis=axis)

    # NumPy protocols

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, where: Any = True, **kwargs: Any
    ) -> Any:
        return protocols.array_ufunc(ufunc, method, inputs, out, where, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return protocols.array_function(function, args, kwargs)


record.Tensor = Tensor


def _restore(array: np.ndarray, leaf: bool, grad: Any) -> Tensor:
    made = record.new(array)
    if leaf:
        made.requires_grad_()
        made._holder.grad = grad
    return made
