"""Kernels shared among threads of the library's own: each takes pieces of the arrays until none is left.

A job starts, and is noted as begun, in one step that no interrupt can split; from then on it ends by itself. So
what works on it may be the workers alone, where a write must not be left half done, or the caller as well.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from itertools import count, pairwise, zip_longest
from queue import SimpleQueue
from typing import Any

import numpy as np

from .errors import DTypeError, RangeError, describe

# Work that takes less, in nanoseconds or so, is not worth waking anybody.
WORTH_SHARING = 200_000
# Pieces a thread, so that one that is held up leaves its pieces to others.
PIECES = 4

# Where an array is cut: along which axis, and how many of its elements make one unit.
Cut = tuple[int, int]


def _asked() -> int:
    text = os.environ.get("MUTAGRAD_NUM_THREADS", "")
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise RangeError(f"MUTAGRAD_NUM_THREADS: expected a whole number from 1 up, got {text!r}.")
        return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_threads = _asked()
_queue: SimpleQueue[Job] = SimpleQueue()
_growing = threading.Lock()


def set_num_threads(n: int) -> None:
    """Set how many threads share the work on large arrays.

    The results are the same, bit for bit, for every number. The environment variable `MUTAGRAD_NUM_THREADS` sets it at
    the start; without it, it is the number of cores that the process may use.

    Parameters
    ----------
    n : int
        From 1 up; with 1 all work is done by the thread that asks for it.

    Raises
    ------
    DTypeError
        If `n` is no whole number.
    RangeError
        If it is less than 1.

    Examples
    --------
    >>> import mutagrad as mg
    >>> before = mg.get_num_threads()
    >>> mg.set_num_threads(1)
    >>> mg.get_num_threads()
    1
    >>> mg.set_num_threads(before)
    """
    global _threads
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise DTypeError(f"set_num_threads: n must be a whole number, got {describe(n)}.")
    n = n.__index__()
    if n < 1:
        raise RangeError(f"set_num_threads: n must be 1 or more, got {n}.")
    _threads = n


def get_num_threads() -> int:
    """How many threads share the work on large arrays.

    Returns
    -------
    int

    Examples
    --------
    >>> import mutagrad as mg
    >>> mg.get_num_threads() >= 1
    True
    """
    return _threads


class Doubting:
    """The quick code of a kernel, and where that doubts a result, which is seldom, the code that does not.

    Parameters
    ----------
    quick : callable
        It returns whether it doubts.
    whole : callable
        It returns the other code, which may have to be compiled first.
    """

    __slots__ = ("quick", "whole")

    def __init__(self, quick: Callable[..., bool], whole: Callable[[], Callable[..., Any]]) -> None:
        self.quick, self.whole = quick, whole

    def __call__(self, *args: Any) -> None:
        if self.quick(*args):
            self.whole()(*args)


class Job:
    """One call of a kernel in pieces; what it doubts is for the caller to do again: no worker compiles."""

    def __init__(self, call: Callable[..., Any], pieces: Sequence[Sequence[Any]], threads: int) -> None:
        self.doubting = isinstance(call, Doubting)
        self.call, self.total = call.quick if isinstance(call, Doubting) else call, len(pieces)
        self.doubted: list[Sequence[Any]] = []
        self.pieces = iter(pieces)
        self.joined, self.finished = count(1), count(1)
        self.threads = threads
        self.error: BaseException | None = None
        self.ended = threading.Lock()
        self.ended.acquire()

    def work(self) -> None:
        """Take pieces until none is left; whoever ends the last one says so."""
        for piece in self.pieces:
            try:
                if self.call(*piece) and self.doubting:
                    self.doubted.append(piece)
            except BaseException as error:
                self.error = error
            if next(self.finished) == self.total:
                self.ended.release()

    def wait(self) -> None:
        """Until all pieces are done."""
        with self.ended:  # an interrupt may strike here, and whoever waits again must find it free
            pass
        if self.error is not None:
            raise self.error


def _serve(queue: SimpleQueue[Job]) -> None:
    while True:
        job = queue.get()
        if next(job.joined) < job.threads:
            queue.put(job)  # there is room for one more
        job.work()
        del job  # it would hold its arrays until the next one comes


def _grow(threads: int) -> None:
    """See to it that there are so many workers."""
    with _growing:
        for _ in range(len(_alive), threads):
            worker = threading.Thread(target=_serve, args=(_queue,), name="mutagrad", daemon=True)
            worker.start()  # where the system has no more threads, it is not counted
            _alive.append(worker)


_alive: list[threading.Thread] = []


class Shared:
    """A kernel's call in pieces, by as many threads as are set.

    Parameters
    ----------
    call : callable
        The kernel.
    cuts : sequence of (Cut or None)
        Where each argument is cut; None leaves it whole.
    units : int
        How many units there are.
    least : int
        The least number of pieces, if there are as many units.
    """

    def __init__(self, call: Callable[..., Any], cuts: Sequence[Cut | None], units: int, least: int = 1) -> None:
        self.call, self.cuts, self.units, self.least = call, cuts, units, least

    def pieces(self, args: Sequence[Any]) -> list[Sequence[Any]]:
        """The arguments in pieces."""
        count = min(self.units, max(_threads * PIECES, self.least))
        bounds = [self.units * k // count for k in range(count + 1)]
        return [
            [a if cut is None else _cut(a, cut, low, high) for a, cut in zip_longest(args, self.cuts)]
            for low, high in pairwise(bounds)
        ]

    def __call__(self, *args: Any) -> None:
        doubted = _done(self.call, self.pieces(args))
        if doubted:
            _done(self.call.whole(), doubted)  # type: ignore[attr-defined]

    def begin(self, args: Sequence[Any], done: list[Any]) -> None:
        """Call it by workers alone, and note in the same step that it began; it is done when this returns or raises."""
        threads = _threads
        job = Job(self.call, self.pieces(args), threads)
        _grow(threads)
        try:
            done.extend(map(_queue.put, (job,)))
            job.wait()
        except BaseException:
            if done:
                job.wait()
            raise


def _done(call: Callable[..., Any], pieces: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """Call it with each piece, the workers and the caller together; the pieces that are in doubt."""
    others = _threads - 1
    job = Job(call, pieces, others)
    if others:
        _grow(others)
        _queue.put(job)
    job.work()
    job.wait()
    return job.doubted


def _cut(a: np.ndarray, cut: Cut, low: int, high: int) -> np.ndarray:
    axis, unit = cut
    return a[(slice(None),) * axis + (slice(low * unit, high * unit),)]


def worth_sharing(work: float) -> bool:
    """Whether work of about so many nanoseconds pays for waking other threads, and there are any."""
    return work >= WORTH_SHARING and _threads > 1


def shared(
    call: Callable[..., Any], args: Sequence[Any], ways: Sequence[Sequence[Cut]], least: int = 1
) -> Callable[..., Any]:
    """The kernel's call in pieces, by as many threads as are set.

    Parameters
    ----------
    call : callable
        The kernel.
    args : sequence
        Its arrays and numbers; further numbers may follow in the call.
    ways : sequence of (sequence of Cut)
        The ways to cut the arrays, the best first.
    least : int
        The least number of pieces.
    """
    best: tuple[int, Sequence[Cut | None]] = 1, ()
    for cuts in ways:
        units = max(-(-a.shape[c[0]] // c[1]) for a, c in zip(args, cuts, strict=True) if isinstance(a, np.ndarray))
        if units > best[0]:
            best = units, [c if isinstance(a, np.ndarray) else None for a, c in zip(args, cuts, strict=True)]
        if units >= max(_threads * PIECES, least):
            break
    return Shared(call, best[1], best[0], least) if best[0] > 1 else call


def _after_fork() -> None:
    # No thread but the one that forked lives on in the child.
    global _queue, _growing
    _queue, _growing = SimpleQueue(), threading.Lock()
    _alive.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
