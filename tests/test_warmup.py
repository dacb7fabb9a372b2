"""Kernels compiled ahead: which, what is printed, and that later processes find them."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from mutagrad import cache, warmup
from mutagrad.__main__ import main
from mutagrad.compile import Compiled
from mutagrad.ops import OPS, Elementwise

# The one op of few kernels that these tests compile.
OP = "negative"
PROGRAM = f"""
import sys
import numba
before = set(sys.modules)
import numpy as np
import mutagrad as mg
from mutagrad.compile import report
for dtype in ("float64", "float32"):
    x = mg.tensor(np.arange(3.0, dtype=dtype), requires_grad=True)
    y = mg.{OP}(x)
    y.{OP}_()
    y.sum().backward()
    s = mg.tensor(np.array(2.0, dtype), requires_grad=True)
    mg.{OP}(s).backward()
print([kernel.name for kernel in report if not kernel.cached])
print(sorted({{"hypothesis", "numpy.ma", "numpy.testing", "unittest", "json", "tqdm"}} & sys.modules.keys() - before))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


def run(folder, *arguments, **environment):
    environment = os.environ | {cache.VARIABLE: str(folder)} | {k: str(v) for k, v in environment.items()}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def warmed(folder):
    """What the first warmup of one op printed, without tqdm even if it is installed."""
    without = "import sys; sys.modules['tqdm'] = None; from mutagrad.__main__ import main; sys.exit(main())"
    return run(folder, "-c", without, "warmup", OP)


KERNEL = r"^  (\w+) +(float64|float32) +[\d.]+ ms   (compiled|from disk)$"


def test_prints_a_line_for_each_kernel_and_the_total(warmed, folder):
    assert (warmed.returncode, warmed.stderr) == (0, "")
    *lines, total, place = warmed.stdout.splitlines()
    kernels = [re.match(KERNEL, line) for line in lines]
    assert all(kernels)
    assert {f"{OP}_flat", f"{OP}_scalar", f"{OP}_backward_x_flat"} <= {k[1] for k in kernels}
    assert {k[2] for k in kernels} == {"float64", "float32"}
    compiled = sum(k[3] == "compiled" for k in kernels)
    assert compiled
    assert re.match(rf"{len(kernels)} kernels: {compiled} compiled, {len(kernels) - compiled} from disk; ", total)
    assert place == f"They lie in {folder}."
    assert max(map(len, lines)) <= 110


def test_a_line_says_where_a_kernel_came_from():
    lines = [warmup.line(Compiled("f", "float64", 0.1234, cached)) for cached in (False, True)]
    assert [re.match(KERNEL, line)[3] for line in lines] == ["compiled", "from disk"]
    assert all(" 123.4 ms " in line for line in lines)


def test_a_later_process_compiles_nothing_and_imports_little(warmed, folder):
    done = run(folder, "-c", PROGRAM)
    assert done.stderr == ""
    assert done.stdout == "[]\n[]\n"


def test_a_bar_where_tqdm_is_to_be_had(warmed, folder, tmp_path):
    (tmp_path / "tqdm.py").write_text(
        "class tqdm:\n"
        "    def __init__(self, total, unit): self.total, self.done = total, 0\n"
        "    def __enter__(self): return self\n"
        "    def __exit__(self, *_): print('bar', self.done, 'of', self.total)\n"
        "    def set_description(self, text): print('at', text)\n"
        "    def update(self): self.done += 1\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run(folder, "-m", "mutagrad", "warmup", OP, PYTHONPATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    *bar, total, _ = done.stdout.splitlines()
    assert bar == [f"at {OP}"] * 2 + ["bar 2 of 2"]
    assert " 0 compiled, " in total


def test_where_nothing_can_be_kept_it_says_so(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file"))
    monkeypatch.setattr(cache, "_told", True)
    monkeypatch.setattr(cache, "_own", None)
    assert main(["warmup", "positive"]) == 1
    assert f"Nothing is kept: {tmp_path / 'file'} cannot be written or is not private;" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("sni", "'sni' is not an op: did you mean sin?"),
        ("qqqq", "'qqqq' is not an op: see the table in the README."),
        ("reshape", "reshape has no kernel to compile ahead: only elementwise ops and reductions have."),
    ],
)
def test_unknown_names_are_refused_before_anything_is_compiled(name, sentence, capsys):
    assert main(["warmup", OP, name]) == 2
    printed = capsys.readouterr()
    assert printed.err == f"python -m mutagrad warmup: {sentence}\n"
    assert printed.out == ""


def test_only_warmup_takes_names(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["nist", OP])
    assert caught.value.code == 2
    assert "only warmup takes names of ops: negative" in capsys.readouterr().err


def test_common_ops_are_the_elementwise_ones_and_the_reductions():
    found = warmup.common()
    assert {name for name, entry in OPS.items() if isinstance(entry, Elementwise)} < found.keys()
    assert {"sum", "amax", "prod", "var", "norm", "any", "argmax"} < found.keys()
    assert not {"reshape", "diff", "cumsum", "matmul", "sort"} & found.keys()


@pytest.mark.parametrize("name", warmup.common())
def test_samples_lie_where_the_op_is_differentiable(name):
    entry = OPS[name]
    for dtype in warmup.DTYPES:
        arrays = warmup.samples(entry, dtype)
        assert all(a.shape == (3,) and a.dtype in (dtype, bool) for a in arrays)
        for k, a in enumerate(arrays if isinstance(entry, Elementwise) else ()):
            assert (a.dtype == bool) == (entry.operands[k] in entry.masks)
            inside = [(low < a) & (a < high) for low, high in entry.domain[k]]
            assert a.dtype == bool or np.any(inside, axis=0).all()


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) for n in warmup.common()] + ["where", "prod"])
def test_the_forms_of_an_op_run(name):
    for dtype in warmup.DTYPES:
        forms = list(warmup.forms(OPS[name], dtype))
        assert forms
        for form in forms:
            form()
