"""Source to machine code: one module per kernel, named by its content, cached on disk.

The only caller of `njit`.
"""

from __future__ import annotations

import builtins
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numba
from numba import types

from . import cache

FLOATS = {"d": types.float64, "f": types.float32, "?": types.boolean}

_lock = threading.RLock()
_inlined: dict[Any, Any] = {}
_loaded: dict[tuple[str, tuple[Any, ...]], Callable[..., Any]] = {}


class Compiled(NamedTuple):
    """One line of the compile report; `seconds` is wall time, `cached` whether it came from disk."""

    name: str
    dtype: str
    seconds: float
    cached: bool


report: list[Compiled] = []


def inlined(function: Callable[..., Any]) -> Any:
    """A scalar function for use inside kernels. Contraction only: a range reduction dies of reassociation."""
    if function not in _inlined:
        _inlined[function] = numba.njit(error_model="numpy", fastmath={"contract"})(function)
    return _inlined[function]


def kernel(reassociate: bool, release: bool) -> Callable[[Callable[..., Any]], Any]:
    """The decorator of every generated kernel. Never nnan or ninf: results stay right for nan and inf.

    Sums may be reassociated; `release` gives up the interpreter's lock while the kernel runs.
    """
    flags = {"contract", "reassoc"} if reassociate else {"contract"}
    return numba.njit(cache=True, nogil=release, error_model="numpy", fastmath=flags)


def array(dtype: str, ndim: int, contiguous: bool) -> Any:
    """The Numba type of an array argument."""
    return types.Array(FLOATS[dtype], ndim, "C" if contiguous else "A")


def scalar(dtype: str) -> Any:
    """The Numba type of a scalar argument."""
    return FLOATS[dtype]


def load(function: str, source: str, args: Sequence[Any]) -> Callable[..., Any]:
    """Compile `function` of a module's text for the argument types, or take it from disk.

    Returns the overload's entry point, which checks no types: the caller has chosen it by dtype and rank.
    """
    key = (source, tuple(args))
    with _lock:
        if key not in _loaded:
            start = time.perf_counter()
            dispatcher = getattr(_module(function, source), function)
            dispatcher.compile(tuple(args))
            dtypes = [str(getattr(a, "dtype", a)) for a in args]
            # Conditions come in any place; they say nothing of what is computed.
            dtype = next((d for d in dtypes if d != "bool"), "bool")
            cached = bool(dispatcher.stats.cache_hits[tuple(args)])
            report.append(Compiled(function, dtype, time.perf_counter() - start, cached))
            _loaded[key] = dispatcher.get_overload(tuple(args))
        return _loaded[key]


def _module(function: str, source: str) -> ModuleType:
    """The module of a kernel's text; what lies on disk is a copy, for whoever reads a traceback or a profile."""
    name = cache.name_of(function, source)
    if name in sys.modules:
        return sys.modules[name]
    file = f"{name}.py"
    text = source.encode()
    if text not in cache.read(file):
        cache.write(file, text)
    path = str((cache.cache_folder() or Path("<mutagrad>")) / file)
    module = ModuleType(name)
    module.__file__ = path
    # Numba finds the module of the code that it takes from disk by its name.
    sys.modules[name] = module
    cache.Locator.modules.add(name)
    try:
        exec(builtins.compile(source, path, "exec"), vars(module))
        getattr(module, function)._cache = cache.Shelf(name)
    except BaseException:
        del sys.modules[name]
        raise
    return module
