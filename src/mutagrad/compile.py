"""Source to machine code: one importable module per kernel, named by its content, cached on disk.

The only caller of `njit`. A kernel's name is the hash of its own text and of the text of the scalar
mathematics it may reach, since Numba's cache does not notice edits in other files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numba
from numba import types

from . import fastmath

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
            dtype = next((str(a.dtype) for a in args if hasattr(a, "dtype")), str(args[-1]))
            cached = bool(dispatcher.stats.cache_hits)
            report.append(Compiled(function, dtype, time.perf_counter() - start, cached))
            _loaded[key] = dispatcher.get_overload(tuple(args))
        return _loaded[key]


def _reachable() -> str:
    assert fastmath.__file__ is not None
    return Path(fastmath.__file__).read_text() + Path(__file__).read_text() + numba.__version__


_reach = ""


def _module(function: str, source: str) -> Any:
    global _reach
    _reach = _reach or _reachable()
    digest = hashlib.sha256((source + _reach).encode()).hexdigest()[:20]
    name = f"{function}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    path = cache_folder() / f"{name}.py"
    if not path.exists() or path.read_text() != source:
        # Written whole under another name first, so that a concurrent process never reads half a file.
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w") as file:
            file.write(source)
        os.replace(temporary, path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


_folder: Path | None = None


def cache_folder() -> Path:
    """Where compiled kernels live: `MUTAGRAD_CACHE_DIR`, else the user's cache folder; private to the user.

    A folder that cannot be made, written or trusted is replaced by a temporary one for this process.
    """
    global _folder
    if _folder is None:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        wanted = Path(os.environ.get("MUTAGRAD_CACHE_DIR") or os.path.join(base, "mutagrad"))
        _folder = wanted if _usable(wanted) else Path(tempfile.mkdtemp(prefix="mutagrad-"))
    return _folder


def _usable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError:
        return False
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return False
    return os.access(folder, os.W_OK | os.X_OK)
