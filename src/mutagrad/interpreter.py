"""A plain NumPy interpreter of programs with in-place writes: the reference that random programs are checked against.

It knows nothing of graphs. It runs a program's statements on arrays that are really mutated, and finds gradients
by running the whole program again from moved leaves. What the contract does not record is held constant then: of
a write under `no_grad()` or through `detach()` the moved runs add what the first run added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True, repr=False)
class Statement:
    """One statement: a line of Python for tensors, and what it does to arrays.

    Attributes
    ----------
    text : str
        The line, as a user would write it; `mg` and `np` and the variables are in scope.
    kind : str
        "new": binds `name` to memory of its own; "view": binds it to what NumPy gives, a view or a copy; "write":
        writes into `name`; "detach", "drop", "backward".
    name : str
        The variable that is bound, written, dropped or differentiated.
    reads : tuple of str
        The variables read, in the order `compute` takes them.
    compute : callable
        From arrays to the result; for a write `compute(target, *operands)` mutates its first argument.
    recorded : bool
        False under `no_grad()`.
    policy : str or None
        The in-place policy of a block around it.
    window : callable or None
        The part of the target that a write touches; None for all of it.
    cuts : bool
        The write overwrites: what was there has no part in the result.
    itself : bool
        The write assigns a tensor to itself if target and operand are the same window.
    retain : bool
        Of a backward: the graph is retained.
    """

    text: str
    kind: str
    name: str
    reads: tuple[str, ...] = ()
    compute: Callable[..., Any] = np.positive
    recorded: bool = True
    policy: str | None = None
    window: Callable[[np.ndarray], Any] | None = None
    cuts: bool = False
    itself: bool = False
    retain: bool = False

    def __repr__(self) -> str:
        return self.line()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.line())

    def line(self, refused: bool = False) -> str:
        """The text inside the blocks it stands in; of a refused one, with its error suppressed."""
        blocks = ["suppress(mg.InplaceError)"] if refused else []
        if not self.recorded:
            blocks.append("mg.no_grad()")
        if self.policy is not None:
            blocks.append(f'mg.inplace_policy("{self.policy}")')
        return f"with {', '.join(blocks)}: {self.text}" if blocks else self.text


class Memory:
    """What one place of the graph sees of a piece of memory.

    `group` are the places on it: one, and one more for each `detach()`. In the first run their numbers agree; in a
    moved run each has those of its own history. `history` are the numbers of the statements that the value
    depends on, None while it is untracked.
    """

    def __init__(self, flat: np.ndarray, group: list[Memory], history: frozenset[int] | None) -> None:
        self.flat, self.group, self.history = flat, group, history
        self.leaf = False
        group.append(self)


class Variable(NamedTuple):
    """An array, the memory it is a window of, and of a view the number of the statement that took it."""

    array: np.ndarray
    memory: Memory
    taken: frozenset[int] = frozenset()

    @property
    def history(self) -> frozenset[int] | None:
        """What the memory's value depends on, and the view's own step."""
        return None if self.memory.history is None else self.memory.history | self.taken


def weigh(array: Any) -> Any:
    """A weighted sum without symmetry, of arrays or tensors: what programs differentiate."""
    return (array * weights(array.shape)).sum()


def weights(shape: tuple[int, ...]) -> np.ndarray:
    """The weights of `weigh`."""
    return np.cos(1.0 + np.arange(int(np.prod(shape)))).reshape(shape)


class Interpreter:
    """Runs statements on NumPy arrays.

    Parameters
    ----------
    leaves : mapping of str to ndarray
        The leaves that require grad.
    others : mapping of str to ndarray
        Variables that do not.
    held : sequence of ndarray, optional
        `held` of a first run: this one is moved, and takes from there what is constant.
    """

    def __init__(
        self,
        leaves: Mapping[str, np.ndarray],
        others: Mapping[str, np.ndarray] | None = None,
        held: Sequence[Any] | None = None,
    ) -> None:
        self.variables: dict[str, Variable] = {}
        self.loss = 0.0
        self.count = 0
        self.released: set[int] = set()
        self.held: list[Any] = []
        self._given = None if held is None else iter(held)
        for name, array in {**leaves, **(others or {})}.items():
            self._bind(name, np.array(array), frozenset() if name in leaves else None)
            self.variables[name].memory.leaf = name in leaves

    def __getitem__(self, name: str) -> np.ndarray:
        return self.variables[name].array

    # What a statement does

    def run(self, statement: Statement) -> None:
        """Execute one statement."""
        self.count += 1
        with np.errstate(all="ignore"):
            getattr(self, f"_{statement.kind}")(statement)

    def _hold(self, value: Any) -> Any:
        """A constant: in a moved run what the first one had here."""
        if self._given is not None:
            return next(self._given).copy()
        self.held.append(np.copy(value, order="K"))
        return value

    def _history(self, names: Iterable[str]) -> frozenset[int] | None:
        found = [h for n in names if (h := self.variables[n].history) is not None]
        return frozenset().union(*found, [self.count]) if found else None

    def _bind(self, name: str, array: np.ndarray, history: frozenset[int] | None) -> None:
        flat = array.ravel(order="K")
        if array.size and not np.shares_memory(flat, array):
            raise AssertionError("a new array is not dense")
        self.variables[name] = Variable(array, Memory(flat, [], history))

    def _new(self, s: Statement) -> None:
        made = np.asarray(s.compute(*(self[n] for n in s.reads)))
        if made.base is not None or any(made is self[n] for n in s.reads):
            made = made.copy(order="K")
        self._bind(s.name, made if s.recorded else self._hold(made), self._history(s.reads) if s.recorded else None)

    def _view(self, s: Statement) -> None:
        (source,) = s.reads
        array, memory, _ = self.variables[source]
        made = np.asarray(s.compute(array))
        if not np.may_share_memory(made, memory.flat):
            self._new(s)
            if not made.size and made.base is not None:
                # A view of nothing: no memory to share, but read-only where its source is, and with its history.
                self[s.name].flags.writeable = array.flags.writeable
                self.variables[s.name].memory.history = self._history(s.reads)
        else:
            stretched = any(n > 1 and step == 0 for n, step in zip(made.shape, made.strides, strict=True))
            writable = array.flags.writeable and not stretched
            seen = _window(made, memory.flat, memory.flat, writable)
            self.variables[s.name] = Variable(seen, memory, frozenset([self.count]))

    def _detach(self, s: Statement) -> None:
        array, memory, _ = self.variables[s.reads[0]]
        twin = Memory(self._hold(memory.flat.copy()), memory.group, None)
        seen = _window(array, memory.flat, twin.flat, array.flags.writeable)
        self.variables[s.name] = Variable(seen, twin)

    def _write(self, s: Statement) -> None:
        if self.idle(s):
            return
        array, memory, _ = self.variables[s.name]
        before = [m.flat.copy() for m in memory.group]
        operands = [self[n].copy(order="K") for n in s.reads]
        s.compute(array, *operands)
        k = next(i for i, m in enumerate(memory.group) if m is memory)
        added = self._hold(memory.flat - before[k])
        for m, old in zip(memory.group, before, strict=True):
            if m is not memory or not s.recorded:
                m.flat[...] = memory.flat if self._given is None else old + added
        seen = self.touched(s)
        if s.recorded and seen.size:
            # By an advanced index, which gives a copy, the same element may be written twice and another never.
            whole = s.cuts and seen.size == memory.flat.size and np.may_share_memory(seen, memory.flat)
            history = self._history([*s.reads, *([] if whole else [s.name])])
            # Overwritten by a constant it stays tracked.
            memory.history = history if history is not None or memory.history is None else frozenset([self.count])

    def _drop(self, s: Statement) -> None:
        memory = self.variables.pop(s.name).memory
        if all(v.memory is not memory for v in self.variables.values()) and not memory.leaf:
            memory.group[:] = [m for m in memory.group if m is not memory]

    def _backward(self, s: Statement) -> None:
        self.loss += float(weigh(self[s.name]))
        if not s.retain:
            self.released |= self.variables[s.name].history or set()

    # What the contract says beforehand

    def touched(self, statement: Statement) -> np.ndarray:
        """The part of the target that a write touches."""
        array = self[statement.name]
        return array if statement.window is None else np.asarray(statement.window(array))

    def idle(self, s: Statement) -> bool:
        """Whether a write assigns a window to itself."""
        if not s.itself or self.variables[s.reads[0]].memory is not self.variables[s.name].memory:
            return False
        a, b = self[s.reads[0]], self.touched(s)
        return a.shape == b.shape and a.strides == b.strides and a.ctypes.data == b.ctypes.data

    def refuses(self, s: Statement) -> bool:
        """Whether a write is refused whatever is kept: its target is read-only, or a leaf while recording."""
        array, memory, _ = self.variables[s.name]
        if self.idle(s):
            return False
        if not array.flags.writeable:
            return True
        return memory.leaf and s.recorded and self.touched(s).size > 0

    def spent(self, name: str) -> bool:
        """Whether a backward may find that an earlier one has released part of the variable's graph."""
        return bool((self.variables[name].history or frozenset()) & self.released)

    def total(self, names: Iterable[str]) -> float:
        """The losses differentiated so far and the weighed sum of some variables."""
        return self.loss + sum(float(weigh(self[n])) for n in names)


def _window(array: np.ndarray, old: np.ndarray, new: np.ndarray, writable: bool) -> np.ndarray:
    """The window of `new` that `array` is of `old`."""
    if not array.size:
        return np.empty(array.shape, new.dtype)
    start = array.ctypes.data - old.ctypes.data
    seen: np.ndarray = np.ndarray(array.shape, new.dtype, new.data, start, array.strides)
    seen.flags.writeable = writable
    return seen


class Differences(NamedTuple):
    """Central differences of a program by one leaf, and where they can be trusted: at no kink and no step."""

    gradient: np.ndarray
    smooth: np.ndarray


def differentiate(
    statements: Sequence[Statement],
    leaves: Mapping[str, np.ndarray],
    others: Mapping[str, np.ndarray],
    names: Sequence[str],
    step: float = 1e-5,
) -> dict[str, Differences]:
    """Gradients of a program's losses by central differences of the whole program in float64.

    Parameters
    ----------
    statements : sequence of Statement
    leaves, others : mapping of str to ndarray
        The variables at the start.
    names : sequence of str
        The variables whose weighed sum is the last loss.
    step : float
        Of the differences.

    Returns
    -------
    dict of str to Differences
        One for each leaf.
    """
    base = {n: np.asarray(a, np.float64) for n, a in leaves.items()}
    rest = {n: np.asarray(a, np.float64) for n, a in others.items()}

    def total(moved: Mapping[str, np.ndarray], held: Sequence[Any] | None) -> tuple[float, Sequence[Any]]:
        found = Interpreter(moved, rest, held)
        for s in statements:
            found.run(s)
        return found.total(names), found.held

    here, held = total(base, None)
    results = {}
    for name, array in base.items():
        gradient, smooth = np.zeros(array.shape), np.zeros(array.shape, bool)
        for i in np.ndindex(array.shape):
            slopes, bends = [], []
            for width in (step, step / 2):
                ends = []
                for by in (width, -width):
                    moved = array.copy()
                    moved[i] += by
                    ends.append(total({**base, name: moved}, held)[0])
                slopes.append((ends[0] - ends[1]) / (2 * width))
                bends.append((ends[0] - 2 * here + ends[1]) / width)
            gradient[i] = slopes[1] + (slopes[1] - slopes[0]) / 3  # the error of second order cancels
            # A smooth bend halves with the width; a kink, where one-sided slopes differ, stays as it is.
            kink = abs(2 * bends[1] - bends[0]) + abs(slopes[1] - slopes[0])
            smooth[i] = kink < 1e-5 * max(1.0, abs(slopes[1]))
        results[name] = Differences(gradient, smooth)
    return results
