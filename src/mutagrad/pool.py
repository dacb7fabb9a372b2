"""The pool: big arrays lie in blocks of memory that are lent out again once nothing can see them.

There is no lock: the garbage collector may run a block's `__del__` in the middle of any function of the pool, and a
fork may come at any time. Every step is one operation on a deque or a dict, or an augmented assignment of a number,
which CPython does not interrupt.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from collections import deque
from typing import Any, NamedTuple

import numpy as np

# Smaller arrays are NumPy's own: there the system recycles as fast.
SMALL = 1 << 16
ALIGNMENT = 64
ITEMSIZES = {dtype: np.dtype(dtype).itemsize for c in "?bhilqBHILQefd" for dtype in (np.dtype(c), np.dtype(c).type)}


class MemoryStats(NamedTuple):
    """What the pool holds for arrays of 64 KiB and more, in bytes, and how it served the requests for them.

    Attributes
    ----------
    in_use : int
        Bytes of arrays that something can still see.
    idle : int
        Bytes kept for the next request.
    peak : int
        The most bytes that were in use at once.
    recycled, fresh : int
        Requests served from idle memory, and by the system.
    """

    in_use: int
    idle: int
    peak: int
    recycled: int
    fresh: int

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={getattr(self, name) / 1e6:.1f} MB" for name in ("in_use", "idle", "peak"))
        return f"MemoryStats({sizes}, recycled={self.recycled}, fresh={self.fresh})"


class _Alone:
    """Tells the reference count that `__del__` sees of an object nothing else refers to."""

    count = 0

    def __del__(self) -> None:
        _Alone.count = sys.getrefcount(self)


_Alone()


class _Block:
    """Memory lent to one array; whatever can see the memory holds it.

    Each size has a class of its own, derived from a ctypes array too: so a block exports a writable buffer.
    """

    __slots__ = ()
    pool: Pool
    size: int
    idle: deque[tuple[float, tuple[np.ndarray, int]]]
    memory: tuple[np.ndarray, int]  # and its first aligned address
    nbytes: int  # of the array

    def __del__(self, alone: int = _Alone.count, count: Any = sys.getrefcount) -> None:
        try:
            memory = self.memory
        except AttributeError:  # an interrupt struck before it was lent
            return
        pool = self.pool
        pool._in_use -= self.size
        # Of a cycle, what the garbage collector finalizes may still be seen by the others' `__del__`.
        if count(self) <= alone:
            now = pool._clock()
            pool._idle += self.size
            self.idle.append((now, memory))
            if now > pool._due or pool._idle > pool.limit:
                pool._tidy(now)

    @classmethod
    def since(cls) -> float:
        """When the oldest idle memory of this size came back; `inf` if there is none."""
        try:
            return cls.idle[0][0]
        except IndexError:
            return math.inf

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a block of the pool cannot be copied; copy the array")


class Pool:
    """Lends memory, and keeps what comes back for a while: at most `limit` bytes, each for about `lasts` seconds."""

    def __init__(self, limit: int, lasts: float = 5.0, clock: Any = time.monotonic) -> None:
        self.limit, self.lasts, self._clock = limit, lasts, clock
        self._kinds: dict[int, Any] = {}  # the class of blocks of a size
        self._in_use = self._idle = self._peak = self._recycled = self._fresh = 0
        self._due = 0.0

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        """A new array in C order, its values uninitialised, as `np.empty` makes it."""
        nbytes = (shape if type(shape) is int else math.prod(shape)) * ITEMSIZES.get(dtype, 0)  # type: ignore[arg-type]
        if nbytes < SMALL:
            return np.empty(shape, dtype)
        shift = (nbytes - 1).bit_length() - 4
        size = ((nbytes - 1 >> shift) + 1) << shift  # at most an eighth more
        kind = self._kinds.get(size) or self._kind(size)
        try:
            _, memory = kind.idle.pop()
            self._idle -= size
            self._recycled += 1
        except IndexError:
            memory = self._from_system(size)
            self._fresh += 1
        block = kind.from_address(memory[1])
        block.nbytes = nbytes
        self._in_use += size
        block.memory = memory
        if self._in_use > self._peak:
            self._peak = self._in_use
        return np.ndarray(shape, dtype, block)

    def copy(self, array: np.ndarray) -> np.ndarray:
        """A copy in C order."""
        if array.nbytes < SMALL:
            return array.copy()
        out = self.empty(array.shape, array.dtype)
        np.copyto(out, array)
        return out

    def _kind(self, size: int) -> Any:
        own = {"__slots__": ("memory", "nbytes"), "pool": self, "size": size, "idle": deque()}
        return self._kinds.setdefault(size, type("Block", (_Block, ctypes.c_char * size), own))

    def _from_system(self, size: int) -> tuple[np.ndarray, int]:
        self._tidy(self._clock())
        try:
            raw = np.empty(size + ALIGNMENT, np.uint8)
        except MemoryError:
            self.give_back()
            raw = np.empty(size + ALIGNMENT, np.uint8)
        address = raw.ctypes.data
        return raw, address + -address % ALIGNMENT

    def _tidy(self, now: float) -> None:
        """Give back the oldest idle memory: what is over the limit, and what has lasted long enough."""
        self._due = now + self.lasts / 4
        kinds = tuple(self._kinds.values())
        idle = sum([len(kind.idle) * kind.size for kind in kinds])
        while idle > 0:
            oldest = min(kinds, key=lambda kind: kind.since())
            if idle <= self.limit and oldest.since() > now - self.lasts:
                break
            try:
                oldest.idle.popleft()
            except IndexError:  # lent out meanwhile
                pass
            idle -= oldest.size
        # Counted as memory comes and goes; an interrupt may have lost a step, so it is put right here.
        self._idle = max(idle, 0)

    def give_back(self) -> None:
        """Give back all idle memory."""
        for kind in tuple(self._kinds.values()):
            kind.idle.clear()
        self._tidy(self._clock())

    def stats(self) -> MemoryStats:
        """What is in use and idle now, once what has lasted long enough is given back."""
        self._tidy(self._clock())
        return MemoryStats(self._in_use, self._idle, self._peak, self._recycled, self._fresh)


def _memory() -> int:
    """How many bytes of memory this process may use."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        found = 8 << 30  # where the system does not say
    try:
        with open("/sys/fs/cgroup/memory.max") as limit:  # a container's
            return min(found, int(limit.read()))
    except (OSError, ValueError):
        return found


shared = Pool(_memory() // 8)
empty, copy = shared.empty, shared.copy


def memory_stats() -> MemoryStats:
    """How much memory big arrays (64 KiB and more) use, and how much is kept idle for the next ones.

    Memory that nothing can see any more is lent to the next array of about its size. What is idle is at most an eighth
    of the machine's memory, and is given back to the system after about five seconds, when the pool is next used.

    Returns
    -------
    MemoryStats
        Bytes `in_use`, `idle` and at `peak`; how many requests were `recycled`, and how many `fresh`.

    Examples
    --------
    >>> import mutagrad as mg
    >>> x = mg.sin(mg.ones(100_000))
    >>> mg.memory_stats().in_use >= x.nbytes
    True
    """
    return shared.stats()
