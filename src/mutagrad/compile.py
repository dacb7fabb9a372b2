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

import llvmlite.binding
import numba
from numba import types

from . import cache, codegen, fastmath

FLOATS = {"d": types.float64, "f": types.float32, "?": types.boolean}

lock = threading.RLock()
_loaded: dict[tuple[str, tuple[Any, ...]], Callable[..., Any]] = {}


class Compiled(NamedTuple):
    """One line of the compile report; `seconds` is wall time, `cached` whether it came from disk."""

    name: str
    dtype: str
    seconds: float
    cached: bool


report: list[Compiled] = []


def kernel(release: bool, symbol: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """The decorator of every generated kernel.

    Without any licence to compute otherwise than it says: what is fused gives the bits that its parts give.
    `release` gives up the interpreter's lock while the kernel runs; with `symbol` others can call it as C calls.
    """
    options: Any = {"error_model": "numpy", "no_cfunc_wrapper": not symbol}
    return numba.njit(nogil=release, **options)


def careful(name: str, letter: str) -> Any:
    """A function of `fastmath` that is right at every argument, for use inside kernels; what it calls is at hand."""
    symbol = fastmath.symbol(name, letter)
    if fastmath.symbolic(name) and llvmlite.binding.address_of_symbol(symbol) is None:
        with lock:
            function, source = codegen.symbol(name, letter)
            dispatcher = getattr(_module(function, source), function)
            dispatcher.compile((FLOATS[letter],))
            made = dispatcher.overloads[FLOATS[letter],]
            address = made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name)
            llvmlite.binding.add_symbol(symbol, address)
    return fastmath.careful(name, letter)


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
    with lock:
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
    try:
        exec(builtins.compile(source, path, "exec"), vars(module))
        getattr(module, function)._cache = cache.Shelf(name)
    except BaseException:
        del sys.modules[name]
        raise
    return module
