"""Where compiled kernels live on disk: a private folder, and for each kernel its text and its machine code.

Nothing that is found there is believed before it is checked, and no text from there is run: the text lies
there to be read. Whatever is wrong with a file or the folder, the kernel is compiled as if nothing were there.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import caching, serialize
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target

from .errors import CacheWarning, word

HERE = Path(__file__).parent
VARIABLE = "MUTAGRAD_CACHE_DIR"

# Numba's settings that change the code it makes.
SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")


# What a kernel's name depends on


@cache
def surroundings() -> bytes:
    """A digest of all that decides what a kernel's text becomes: what it reaches, the compilers, Python, the CPU."""
    parts = [numba.__version__, llvmlite.__version__, str(sys.implementation.cache_tag), getattr(sys, "abiflags", "")]
    # The triple, the CPU's name and its features.
    parts += map(str, cpu_target.target_context.codegen().magic_tuple())
    parts += [f"{name}={getattr(numba.config, name, None)}" for name in SETTINGS]
    # Numba's own cache does not notice edits in other files. An installation may hold bytecode alone (.pyc).
    files = [*HERE.glob("fastmath.py*"), *HERE.glob("compile.py*"), *HERE.glob("mathematics/*.py*")]
    return digest([*(p.encode() for p in parts), *(f.read_bytes() for f in sorted(files))])


def digest(parts: Iterable[bytes]) -> bytes:
    """One digest of several texts, which no other division into texts gives."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


def name_of(function: str, source: str) -> str:
    """The name of a kernel's module: the function's, and what its text and its surroundings are."""
    return f"{function}_{digest([source.encode(), surroundings()]).hex()[:20]}"


# The folder

_own: tuple[int, Path | None] | None = None
_told = False


def cache_folder() -> Path | None:
    """Where kernels are written: `MUTAGRAD_CACHE_DIR`, else the user's cache folder; private to the user.

    One that cannot be made, written or trusted is replaced by a temporary one of this process; None if there
    is no place for that either. It is looked at anew each time: a folder can vanish while the process runs.
    """
    folder = wanted()
    if _distrust(folder) or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return _temporary()
    return folder


def read_folders() -> list[Path]:
    """Where kernels are looked for. What was compiled ahead is of use even where nothing can be written."""
    found = [] if _distrust(wanted()) else [wanted()]
    if _own is not None and _own[1] is not None:
        found.append(_own[1])
    return found


def wanted() -> Path:
    """The folder that was asked for."""
    if named := os.environ.get(VARIABLE):
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base, "mutagrad")


def _distrust(folder: Path) -> str:
    """Why a folder is not used, which is said once if it was named; nothing if it is. It is made where it is missing.

    Files there hold machine code: who can write them can run what he likes.
    """
    why, way = "", "Name another folder"
    if not folder.is_absolute():
        return "the home folder is unknown"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        why = f"it cannot be made: {error.strerror or error}."
    else:
        if hasattr(os, "getuid") and found.st_uid != os.getuid():
            why = f"it belongs to another user (uid {found.st_uid}), who could change the machine code in it."
        elif hasattr(os, "getuid") and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            why = f"others can write to it (mode {stat.S_IMODE(found.st_mode):04o}) and could change its machine code."
            way = f"Take that right from them (chmod go-w {folder}), name another folder"
    if why and os.environ.get(VARIABLE):
        _tell(folder, why, way)
    return why


def _tell(folder: Path, why: str, way: str) -> None:
    global _told
    if _told:
        return
    _told = True
    ways = f"{way}, or unset {VARIABLE}. Until then every process compiles its kernels anew."
    warnings.warn(word(f"{VARIABLE}={folder} is not used as kernel cache:", [why], ways), CacheWarning, stacklevel=2)


def _temporary() -> Path | None:
    """A folder of this process, removed when it ends."""
    global _own
    here = os.getpid()
    # A forked child makes its own: its parent's goes when the parent ends.
    if _own is None or _own[0] != here or (_own[1] is not None and not _own[1].is_dir()):
        try:
            _own = here, Path(tempfile.mkdtemp(prefix="mutagrad-"))
        except OSError:
            _own = here, None
        else:
            atexit.register(_remove, *_own)
    return _own[1]


def _remove(process: int, folder: Path) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def write(name: str, data: bytes) -> None:
    """Write a file of the cache; where that is not possible, do without.

    It is written whole under another name first, so that a concurrent process never reads half a file.
    """
    folder = cache_folder()
    if folder is None:
        return
    with suppress(OSError):
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, folder / name)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


def read(name: str) -> Iterable[bytes]:
    """What files of a name hold, one folder after the other."""
    for folder in read_folders():
        with suppress(OSError):
            yield (folder / name).read_bytes()


# Numba's side


class Shelf(caching.NullCache):
    """What Numba asks for a kernel before it compiles, in place of its own cache.

    Numba's believes what it finds: a truncated file is an error, and another kernel's file runs as this one. A
    file here is Numba's result behind a digest of it and of the file's name.
    """

    def __init__(self, module: str) -> None:
        self.module = module

    def file(self, signature: Any) -> str:
        """The name of the file with the code for these types of arguments."""
        return f"{self.module}.{hashlib.sha256(repr(signature).encode()).hexdigest()[:12]}.bin"

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Numba's result from disk, or None."""
        context.refresh()
        name = self.file(signature)
        for data in read(name):
            seal, payload = data[: hashlib.sha256().digest_size], data[hashlib.sha256().digest_size :]
            if seal != digest([name.encode(), payload]):
                continue
            # The seal keeps out accidents. What else can be wrong is anybody's guess, and never worth an error.
            with suppress(Exception):
                return CompileResult._rebuild(context, *pickle.loads(payload))
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write Numba's result to disk, in place of a broken file too."""
        # Code that holds addresses of this process is of no use to another; no kernel of ours does.
        if result.lifted or result.library.has_dynamic_globals:
            return
        name = self.file(signature)
        with suppress(Exception):
            payload = serialize.dumps(result._reduce())
            write(name, digest([name.encode(), payload]) + payload)
