"""Kernels on disk: what their names depend on, which folders are used, and what may be wrong with both.

One kernel that takes little time to compile serves all. Most tests make this process forget what it has
loaded; what only a process of its own can show runs in one.
"""

import json
import operator
import os
import pickle
import shutil
import stat
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from test_house import SOURCE, imported

import mutagrad as mg
from mutagrad import cache, compile

TEXT = """
from mutagrad.compile import kernel


@kernel(release=False)
def tiny(x):
    return x + {}
"""
FLOAT = [compile.scalar("d")]

# Its own time is spent on imports; it prints what it found as JSON.
CHILD = """
import json, os, sys, warnings
import mutagrad
from mutagrad import cache, compile
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    value = compile.load("tiny", sys.argv[1], [compile.scalar("d")])(1.0)
folder = cache.cache_folder()
if "fork" in sys.argv:
    child = os.fork()
    if not child:
        sys.exit()
    os.waitpid(child, 0)
print(json.dumps({
    "value": value, "cached": compile.report[-1].cached, "folder": str(folder), "exists": folder.is_dir(),
    "warnings": [str(w.message) for w in caught],
}))
"""


def start(amount=1.0, *words, before=None, **environment):
    """A process that loads the kernel; TEXT is filled with the amount it adds."""
    command = [sys.executable, "-c", CHILD, TEXT.format(amount), *words]
    kept = {k: v for k, v in os.environ.items() if k not in (cache.VARIABLE, "XDG_CACHE_HOME")}
    environment = kept | {k: str(v) for k, v in environment.items()}
    return subprocess.Popen(
        command, env=environment, preexec_fn=before, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def end(process):
    """What the process printed."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert err == ""
    return json.loads(out)


def forget():
    """Make this process forget the kernel, as a new process knows nothing of it."""
    for key in [k for k in compile._loaded if "def tiny(" in k[0]]:
        del compile._loaded[key]
    for name in [n for n in sys.modules if n.startswith("tiny_")]:
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A kernel cache of this test's own, which is not made yet."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "kernels"))
    monkeypatch.setattr(cache, "_told", False)
    monkeypatch.setattr(cache, "_own", None)
    forget()
    yield tmp_path / "kernels"
    forget()


def load(amount=1.0):
    """Load the kernel anew, check what it computes, and say whether it came from disk."""
    forget()
    assert compile.load("tiny", TEXT.format(amount), FLOAT)(1.0) == 1.0 + amount
    return compile.report[-1].cached


def files(folder, suffix):
    return sorted(folder.glob(f"tiny_*{suffix}"))


# Names


def test_a_name_depends_on_the_text(folder):
    names = {cache.name_of("tiny", TEXT.format(k)) for k in (1.0, 2.0, 2.0)}
    assert len(names) == 2
    assert all(name.startswith("tiny_") for name in names)


@pytest.mark.parametrize("file", ["fastmath.py", "compile.py", "mathematics/bits.py", "mathematics/special.py"])
def test_a_name_depends_on_every_file_that_a_kernel_reaches(file, tmp_path, monkeypatch):
    before = cache.surroundings.__wrapped__()
    shutil.copytree(SOURCE, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(cache, "HERE", tmp_path / "copy")
    assert cache.surroundings.__wrapped__() == before
    with open(tmp_path / "copy" / file, "a") as edited:
        edited.write("\n")
    assert cache.surroundings.__wrapped__() != before


def test_kernels_reach_no_other_file():
    # What they call stands in `fastmath`, and that imports nothing but the mathematics.
    for path in [SOURCE / "fastmath.py", *(SOURCE / "mathematics").glob("*.py")]:
        assert {parts[0] for parts in imported(path)} <= {"mathematics"}, path.name


@pytest.mark.parametrize("what", ["numba", "llvmlite", "python", "cpu", "setting"])
def test_a_name_depends_on_compilers_python_and_cpu(what, monkeypatch):
    before = cache.surroundings.__wrapped__()
    codegen = cache.cpu_target.target_context.codegen()
    triple, cpu, features = codegen.magic_tuple()
    target, name, value = {
        "numba": (cache.numba, "__version__", "0.0"),
        "llvmlite": (cache.llvmlite, "__version__", "0.0"),
        "python": (sys.implementation, "cache_tag", "other-00"),
        "cpu": (codegen, "magic_tuple", lambda: (triple, cpu, features + ",+other")),
        "setting": (cache.numba.config, "BOUNDSCHECK", 1),
    }[what]
    monkeypatch.setattr(target, name, value)
    assert cache.surroundings.__wrapped__() != before


def test_the_types_of_arguments_have_files_of_their_own(folder):
    load()
    forget()
    compile.load("tiny", TEXT.format(1.0), [compile.scalar("f")])
    assert len(files(folder, ".py")) == 1
    assert len(files(folder, ".bin")) == 2
    assert load()


# Files


def test_the_next_process_compiles_nothing(folder):
    first, second = (end(start(MUTAGRAD_CACHE_DIR=folder)) for _ in range(2))
    assert (first["value"], first["cached"]) == (2.0, False)
    assert (second["value"], second["cached"]) == (2.0, True)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [p.read_text() for p in folder.glob("*.py")] == [TEXT.format(1.0)]
    # And this one too.
    assert load()


class Raises:
    def __reduce__(self):
        return operator.truediv, (1, 0)


def sealed(path, content):
    """A file whose seal is right, whatever it holds."""
    payload = pickle.dumps(content)
    return cache.digest([path.name.encode(), payload]) + payload


BROKEN = {
    "empty": lambda path, data, other: b"",
    "truncated": lambda path, data, other: data[: len(data) // 2],
    "seal only": lambda path, data, other: data[:32],
    "a bit flipped": lambda path, data, other: data[:-100] + bytes([data[-100] ^ 1]) + data[-99:],
    "zeros": lambda path, data, other: bytes(len(data)),
    "text": lambda path, data, other: b"not a kernel",
    "another kernel": lambda path, data, other: other,
    "a pickle that raises": lambda path, data, other: sealed(path, Raises()),
    "a pickle of something else": lambda path, data, other: sealed(path, {"x": 1}),
}


@pytest.mark.parametrize("how", BROKEN)
def test_broken_machine_code_is_compiled_anew_and_replaced(how, folder):
    load(2.0)
    (path,) = files(folder, ".bin")
    other = path.read_bytes()
    path.unlink()
    assert not load(1.0)
    (path,) = files(folder, ".bin")
    good = path.read_bytes()
    path.write_bytes(BROKEN[how](path, good, other))
    assert not load(1.0)
    assert len(path.read_bytes()) == len(good)
    assert load(1.0)


@pytest.mark.parametrize("text", ["", "raise SystemExit('run')", TEXT.format(3.0), "\udcff\0"])
def test_text_on_disk_is_not_run_and_put_right(text, folder):
    load()
    (path,) = files(folder, ".py")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert load()
    assert path.read_text() == TEXT.format(1.0)


def test_what_is_no_file_is_left_alone(folder):
    load()
    for path in (*files(folder, ".bin"), *files(folder, ".py")):
        path.unlink()
        path.mkdir()
    assert not load()
    assert not list(folder.glob("*.tmp"))


def test_another_processs_file_of_another_kernel_is_not_run(folder):
    end(start(1.0, MUTAGRAD_CACHE_DIR=folder))
    (mine,) = files(folder, ".bin")
    data = mine.read_bytes()
    mine.unlink()
    end(start(2.0, MUTAGRAD_CACHE_DIR=folder))
    (other,) = files(folder, ".bin")
    other.write_bytes(data)
    found = end(start(2.0, MUTAGRAD_CACHE_DIR=folder))
    assert (found["value"], found["cached"]) == (3.0, False)


def test_a_full_disk_is_done_without(folder):
    resource = pytest.importorskip("resource")
    # No file may have a byte: this fails as a full disk does, when data is written.
    found = end(start(before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)), MUTAGRAD_CACHE_DIR=folder))
    assert (found["value"], found["cached"], found["warnings"]) == (2.0, False, [])
    assert list(folder.iterdir()) == []


def test_a_folder_that_vanishes_is_made_again(folder):
    load()
    shutil.rmtree(folder)
    assert not load()
    assert load()


# Folders


def test_without_a_home_a_temporary_folder_serves_and_is_removed(tmp_path):
    home = tmp_path / "file"
    home.write_text("no folder")
    found = end(start(1.0, "fork", HOME=home, TMPDIR=tmp_path))
    assert (found["value"], found["warnings"]) == (2.0, [])
    assert found["exists"], "a forked child removed its parent's folder"
    assert Path(found["folder"]).parent == tmp_path
    assert list(tmp_path.iterdir()) == [home]


def test_a_read_only_folder_is_read(folder, monkeypatch):
    load(1.0)
    before = sorted(folder.iterdir())
    # As it is on a medium mounted so; who runs the tests may be the one user whom modes do not bind.
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder and allowed(path, mode))
    assert load(1.0)
    assert not load(2.0)
    assert load(2.0)
    assert sorted(folder.iterdir()) == before
    assert cache.cache_folder() != folder


def test_nowhere_to_write_is_done_without(folder, monkeypatch):
    def full(**_):
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(cache.tempfile, "mkdtemp", full)
    folder.write_text("no folder")
    with pytest.warns(mg.CacheWarning, match="cannot be made: File exists"):
        assert not load()
    assert not load()
    assert cache.cache_folder() is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users and modes are of Unix")
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_named_folder_that_others_can_write_to_is_refused_once(mode, folder):
    folder.mkdir()
    folder.chmod(mode)
    with pytest.warns(mg.CacheWarning) as caught:
        load(1.0)
    # Warnings are errors here: a second one would be seen.
    load(2.0)
    (warning,) = caught
    text = str(warning.message)
    assert f"{cache.VARIABLE}={folder} is not used as kernel cache:\n    others can write to it" in text
    assert f"chmod go-w {folder}" in text
    assert list(folder.iterdir()) == []
    assert cache.cache_folder().is_dir()
    # The way out that is named is one.
    folder.chmod(mode & ~0o022)
    assert not load(3.0)
    assert load(3.0)
    assert files(folder, ".bin")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users and modes are of Unix")
def test_another_users_folder_is_refused(folder, monkeypatch):
    load()
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    with pytest.warns(mg.CacheWarning, match=f"belongs to another user \\(uid {mine}\\)"):
        assert not load()


def test_the_users_own_cache_folder_is_refused_quietly(folder, monkeypatch):
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    (folder / "mutagrad").mkdir(parents=True)
    assert cache.cache_folder() == folder / "mutagrad"
    (folder / "mutagrad").chmod(0o777)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not load()
    assert list((folder / "mutagrad").iterdir()) == []


def test_an_unknown_home_puts_nothing_into_the_working_folder(folder, monkeypatch):
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    folder.mkdir()
    monkeypatch.chdir(folder)
    load()
    assert list(folder.iterdir()) == []


# At the same time


def test_processes_that_compile_the_same_kernel(folder):
    found = [end(p) for p in [start(MUTAGRAD_CACHE_DIR=folder) for _ in range(4)]]
    assert [f["value"] for f in found] == [2.0] * 4
    assert len(list(folder.iterdir())) == 2, "files are left over"
    assert load()


def test_threads_compile_a_kernel_once(folder):
    first, found = len(compile.report), []
    together = threading.Barrier(4)

    def work():
        together.wait()
        found.append(compile.load("tiny", TEXT.format(1.0), FLOAT))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4
    assert len(set(map(id, found))) == 1
    assert len(compile.report) == first + 1
