"""The house: a room imports only rooms above it, files stay small, nothing forbidden is used."""

import ast
import re
from pathlib import Path

import pytest

import mutagrad

SOURCE = Path(mutagrad.__file__).parent
ROOMS = """errors modes pool expr mathematics fastmath ops codegen cache compile workers buffers run totals node
    operands judge record fast write index placement pulls backward forward protocols operators tensors functions
    creation call transforms strategies testing interpreter statements writing programs __init__ nist warmup
    __main__""".split()
PACKAGES = {
    "ops": """entry window elementwise rounding movement indexing reduction norms statistics joining contraction
        __init__""".split(),
    "mathematics": "__init__ bits loops floats reduction angles trigonometric exponential logarithm special".split(),
}
FILES = sorted(SOURCE.rglob("*.py"))


def imported(path):
    """The rooms of the library that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parent
            for _ in range(node.level - 1):
                base = base.parent
            parts = base.relative_to(SOURCE).parts + tuple((node.module or "").split(".") if node.module else ())
            for alias in node.names:
                full = (*parts, alias.name)
                names.add(full if (SOURCE / "/".join(full)).with_suffix(".py").exists() else parts or full)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mutagrad"):
            names.add(("__init__",))
        elif isinstance(node, ast.Import) and any(a.name.startswith("mutagrad") for a in node.names):
            names.add(("__init__",))
    return names


def place(parts):
    return ROOMS.index(parts[0]) if parts[0] in ROOMS else None


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_imports_go_upwards(path):
    mine = path.relative_to(SOURCE).with_suffix("").parts
    assert mine[0] in ROOMS, f"{path.name} is in no room of the house"
    for other in imported(path):
        if mine[0] in PACKAGES and other[0] == mine[0]:
            order, theirs = PACKAGES[mine[0]], other[1] if len(other) > 1 else "__init__"
            assert order.index(theirs) < order.index(mine[1]), f"{mine} imports {other}"
        else:
            assert place(other) < place(mine), f"{mine} imports {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_files_stay_small(path):
    limit = 460  # "past some 400 lines is two rooms"
    assert len(path.read_text().splitlines()) <= limit


def test_only_compile_calls_njit():
    users = [p.name for p in FILES if re.search(r"\bnjit\(|\bjit\(|import njit", p.read_text())]
    assert users == ["compile.py"]


def test_no_room_bears_a_public_functions_name():
    rooms = {p.stem for p in SOURCE.glob("*.py")} - {"testing", "__init__", "__main__"}
    assert not rooms & set(mutagrad.__all__)


def test_public_names_are_documented():
    for name in mutagrad.__all__:
        if callable(getattr(mutagrad, name)):
            assert (getattr(mutagrad, name).__doc__ or "").strip(), name


def test_runtime_needs_numba_and_numpy_only():
    allowed = {"numba", "numpy", "mutagrad", "llvmlite"}
    import sys

    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [a.name.split(".")[0] for a in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [(node.module or "").split(".")[0]]
            for n in names:
                optional = (
                    path.name in ("strategies.py", "statements.py", "writing.py", "programs.py") and n == "hypothesis"
                )
                optional |= path.name == "warmup.py" and n == "tqdm"
                assert n in allowed or n in sys.stdlib_module_names or optional, f"{path.name} imports {n}"
