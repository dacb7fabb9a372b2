"""Memory: buffers, the windows that tensors see of them, and which windows somebody keeps."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import compile

# Covers plan, judge and commit of every write, and a kernel's run together with the registration of what
# its derivative keeps.
lock = threading.RLock()
# Covers the flags of the user's arrays. The garbage collector may free a node at any moment, in any thread, whatever
# locks that holds, in a worker too that the holder of `lock` waits for: so nothing is waited for under this one, and it
# is re-entrant.
_flags = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A child must not find them, nor Numba's own, held by a thread that it has not. Who registers last is asked first,
    # so they are taken in the order in which others take them.
    for _each in (_flags, compile.lock, lock):
        os.register_at_fork(before=_each.acquire, after_in_parent=_each.release, after_in_child=_each.release)


class Kept:
    """A window somebody keeps. Nodes hold it; `array` moves to a private copy under "preserve"."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


class LockedKept(Kept):
    """A kept window of memory shared with NumPy: while it lives, the user's arrays are read-only."""

    __slots__ = ("_buffer", "_kept")

    def __init__(self, kept: Kept, buffer: Buffer) -> None:
        self._kept, self._buffer = kept, buffer
        buffer.lock_arrays()

    @property
    def array(self) -> np.ndarray:  # type: ignore[override]
        return self._kept.array

    def __del__(self) -> None:
        self._buffer.unlock_arrays()


class Window:
    """What a tensor sees of a buffer, made when it is first kept.

    `kept` is the one object that all nodes share that keep this window; it is alive as long as any of them
    holds it, which its reference count tells. `gives_way` says when it moves to a private copy for
    a write: "always" for the result of an op in place, "by default" for what was kept under "preserve" (unless
    an explicit policy refuses), "" where only the policy of the write decides.
    """

    __slots__ = ("array", "gives_way", "high", "kept", "low")

    def __init__(self, array: np.ndarray, gives_way: str = "", kept: Kept | None = None) -> None:
        self.array, self.gives_way = array, gives_way
        self.kept: Kept | None = kept or Kept(array)
        self.low = self.high = 0

    def live(self) -> bool:
        """True if some node keeps this window."""
        return sys.getrefcount(self.kept) > _BASELINE if self.kept is not None else False


_probe = Window(np.empty(0))
_BASELINE = sys.getrefcount(_probe.kept)


def bounds(array: np.ndarray) -> tuple[int, int]:
    """First and one past the last byte address that an array touches; equal for an empty one."""
    low = high = array.ctypes.data
    if array.size == 0:
        return low, low
    if array.flags.c_contiguous:
        return low, low + array.nbytes
    for n, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (n - 1) * stride
        else:
            high += (n - 1) * stride
    return low, high + array.itemsize


def overlap(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays share an element's memory; where that cannot be decided in time, yes."""
    try:
        return np.shares_memory(a, b, max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def same_window(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are the same elements in the same layout."""
    return a is b or (
        a.shape == b.shape and a.dtype == b.dtype and a.strides == b.strides and a.ctypes.data == b.ctypes.data
    )


class _Memory:
    """Presents an array's memory as writable; what is made from it keeps the array alive."""

    def __init__(self, array: np.ndarray) -> None:
        self.base = array
        described = dict(array.__array_interface__)
        described["data"] = (described["data"][0], False)
        self.__array_interface__ = described


def writable_alias(array: np.ndarray) -> np.ndarray:
    """The same elements through an array that can be written although `array` is locked."""
    return np.asarray(_Memory(array))


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array at the bottom of a chain of views, also of views made by strides or by `writable_alias`."""
    while True:
        base: Any = array.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)
        if not isinstance(base, np.ndarray):
            return array
        array = base


def identity(owner: np.ndarray) -> int:
    """What tells a memory from others: the object that exports it, or the array that owns it."""
    base: Any = owner.base
    if isinstance(base, memoryview):
        base = base.obj
        if isinstance(base, np.ndarray):
            return identity(owner_of(base))
    return id(owner if base is None else base)


# The buffers that NumPy arrays can lead to, by the identity of what owns the memory. A buffer holds its owner,
# so an identity cannot be reused while its entry lives.
known: weakref.WeakValueDictionary[int, Buffer] = weakref.WeakValueDictionary()


class Buffer:
    """One piece of memory: its version, the windows kept of it, the leaves that live in it.

    Kept windows lie in a grid of byte intervals by size class, so a write asks only those near it.
    """

    __slots__ = (
        "__weakref__",
        "_arrays",
        "_cells",
        "_classes",
        "_count",
        "_limit",
        "_locks",
        "born",
        "leaves",
        "memory",
        "places",
        "shared",
        "version",
        "writable",
    )

    def __init__(self, memory: np.ndarray, born: int, shared: bool = False) -> None:
        self.memory, self.born, self.shared = memory, born, shared
        self.writable = memory.flags.writeable
        self.version = 0
        self.leaves: list[weakref.ref[Any]] = []
        self.places: list[weakref.ref[Any]] = []  # of the user's memory; weak, so that no cycle can form
        self._cells: dict[tuple[int, int], list[Window]] = {}
        self._classes: set[int] = set()
        self._count, self._limit = 0, 64
        self._locks = 0
        self._arrays: list[weakref.ref[np.ndarray]] = []

    @property
    def locked(self) -> bool:
        """Whether the user's arrays are read-only now because the memory is kept."""
        return self._locks > 0

    @property
    def unkept(self) -> bool:
        """Whether no window was ever kept, or all were dropped."""
        return self._count == 0

    def guarded(self, recorded: bool) -> bool:
        """Whether a write needs judging: there is a kept window, an array of the user's, or a leaf."""
        if self._count:
            self._prune()
        return bool(self._count or self.shared or (recorded and self.leaves))

    def register(self, window: Window) -> None:
        """Enter a kept window into the grid."""
        window.low, window.high = bounds(window.array)
        if window.low == window.high:
            return
        size = (window.high - window.low - 1).bit_length()
        self._classes.add(size)
        for cell in range(window.low >> size, ((window.high - 1) >> size) + 1):
            self._cells.setdefault((size, cell), []).append(window)
        self._count += 1
        if self._count > self._limit:
            self._prune()

    def _prune(self) -> None:
        live: dict[int, Window] = {}
        for windows in self._cells.values():
            for w in windows:
                if w.live():
                    live[id(w)] = w
                else:
                    w.kept = None
        self._cells, self._classes, self._count = {}, set(), 0
        self._limit = max(64, 2 * len(live))
        for w in live.values():
            self.register(w)

    def near(self, low: int, high: int) -> Iterator[Window]:
        """The live kept windows whose bytes from first to last meet an interval."""
        seen = set()
        for size in self._classes:
            first, last = low >> size, (high - 1) >> size
            if last - first < len(self._cells):
                keys = [(size, cell) for cell in range(first, last + 1)]
            else:
                keys = [k for k in self._cells if k[0] == size]
            for key in keys:
                for w in self._cells.get(key, ()):
                    if w.low < high and low < w.high and id(w) not in seen and w.live():
                        seen.add(id(w))
                        yield w

    def add_leaf(self, tensor: Any) -> None:
        """Remember a leaf that requires grad; those that are gone are forgotten."""
        self.leaves = [r for r in self.leaves if r() is not None and r() is not tensor]
        self.leaves.append(weakref.ref(tensor))

    def watch(self, array: np.ndarray) -> None:
        """Remember a user's array on this memory, to be locked while the memory is kept."""
        with _flags:
            ours = self._locks > 0 and self.writable  # a view of a locked array is read-only because of us
            if not (array.flags.writeable or ours) or any(r() is array for r in self._arrays):
                return
            self._arrays = [r for r in self._arrays if r() is not None]
            self._arrays.append(weakref.ref(array))
            if self._locks:
                array.flags.writeable = False

    def lock_arrays(self) -> None:
        """Make the user's arrays read-only, counted."""
        with _flags:
            self._locks += 1
            if self._locks == 1:
                # Only what is writable now is locked, and so unlocked later.
                self._arrays = [r for r in self._arrays if (a := r()) is not None and a.flags.writeable]
                for r in self._arrays:
                    if (a := r()) is not None:
                        a.flags.writeable = False

    def unlock_arrays(self) -> None:
        """Undo one `lock_arrays`; the last one makes the arrays writable again."""
        with _flags:
            self._locks -= 1
            if self._locks == 0:
                # The owner first: a view cannot be writable while its owner is not; a view of another kind stays.
                for r in self._arrays:
                    if (a := r()) is not None:
                        with contextlib.suppress(ValueError):
                            a.flags.writeable = True
