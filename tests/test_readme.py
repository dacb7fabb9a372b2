"""The README is true: its code runs and prints what is shown, its tables are up to date, its commands are CI's."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import linecache
import pkgutil
import re
from typing import NamedTuple

import numpy as np
import pytest
from generate_reference import README, reference, split

import mutagrad as mg

TEXT = README.read_text(encoding="utf-8")
COMMANDS = [
    "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/python -m mutagrad",
    "python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/python -m pytest",
]


class Block(NamedTuple):
    section: str
    line: int
    language: str
    code: str


def _blocks() -> list[Block]:
    found, section = [], ""
    for match in re.finditer(r"^(#+) ([^\n]*)$|^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
        heading, title, language, code = match.groups()
        if heading:
            section = title
        else:
            found.append(Block(section, TEXT.count("\n", 0, match.start()) + 1, language, code))
    return found


BLOCKS = _blocks()


def _run_doctest(block: Block, namespace: dict[str, object]) -> None:
    parsed = doctest.DocTestParser().get_doctest(block.code, namespace, "README", "README.md", block.line)
    report: list[str] = []
    result = doctest.DocTestRunner().run(parsed, out=report.append, clear_globs=False)
    assert not result.failed, "".join(report)
    namespace.update(parsed.globs)


def _run_script(block: Block, shown: str, namespace: dict[str, object]) -> None:
    # Error texts name the line by the base of its file's name, and read its source from linecache.
    name = f"README.md:{block.line}/example.py"
    linecache.cache[name] = (len(block.code), None, block.code.splitlines(keepends=True), name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.code, name, "exec"), namespace)
    assert printed.getvalue() == shown


@pytest.mark.parametrize("section", dict.fromkeys(b.section for b in BLOCKS if b.language == "python"))
def test_code_runs_and_prints_what_is_shown(section):
    namespace: dict[str, object] = {"__name__": "example"}
    for block, after in zip(BLOCKS, [*BLOCKS[1:], None], strict=True):
        if block.section != section or block.language != "python":
            continue
        if block.code.startswith(">>> "):
            _run_doctest(block, namespace)
        else:
            _run_script(block, after.code if after and after.language == "text" else "", namespace)


def test_every_block_is_run():
    for before, block in zip([None, *BLOCKS[:-1]], BLOCKS, strict=True):
        assert block.language in ("sh", "python", "text"), f"line {block.line}"
        if block.language == "text":
            assert before is not None, f"line {block.line}"
            assert before.language == "python", f"line {block.line}"
            assert not before.code.startswith(">>> "), f"line {block.line}"


def test_the_two_commands_come_first():
    assert [b.code.strip() for b in BLOCKS if b.language == "sh"] == COMMANDS
    assert [b.language for b in BLOCKS[:2]] == ["sh", "sh"]


def test_ci_runs_the_test_command():
    assert COMMANDS[1] in (README.parent / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_op_table_is_up_to_date():
    assert split(TEXT)[1] == reference(), "run: python tests/generate_reference.py"


# The contract's table: the column of mutagrad


def _contract() -> dict[str, str]:
    body = TEXT.partition("<!-- contract -->\n")[2].partition("<!-- end of contract -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()]
    assert rows[0][:2] == ["program", "mutagrad"]
    assert {len(row) for row in rows} == {len(rows[0])}
    return {row[0]: row[1] for row in rows[2:]}


def _names(library, point):
    """What a row's program may use: a leaf x, t and v computed from it, and functions."""
    x = library.array(point) if library is np else mg.tensor(point, requires_grad=True)
    names = {"x": x, "t": x * 1.0, "v": x * 2.0}
    return names | {name: getattr(library, name) for name in ("exp", "sin", "zeros")}


def _results(names):
    return [names[n] for n in "tvya" if n in names]


def _loss(names):
    total = 0.0
    for value in _results(names):
        total = total + (value * np.arange(1.0, 1.0 + value.size).reshape(value.shape)).sum()
    return total


def _by_differences(code, point):
    def at(p):
        names = _names(np, p)
        exec(code, names)
        return _loss(names)

    h, gradient = 1e-6, np.empty_like(point)
    for i in np.ndindex(point.shape):
        step = np.zeros_like(point)
        step[i] = h
        gradient[i] = (at(point + step) - at(point - step)) / (2 * h)
    return gradient


def _outcome(code):
    """Run a program on tensors: refused with nothing changed, or exact; anything else fails here."""
    point = np.array([[0.3, 0.7], [1.2, 0.4]]) if ":, " in code else np.array([0.3, 0.7, 1.2])
    names = _names(mg, point)
    setup, _, write = code.rpartition("; ")
    exec(setup, names)
    tensors = [names["x"], *_results(names)]
    before = [(t.numpy().copy(), t.version) for t in tensors]
    try:
        exec(write, names)
    except mg.InplaceError:
        for t, (values, version) in zip(tensors, before, strict=True):
            np.testing.assert_array_equal(t.numpy(), values)
            assert t.version == version
        return "refused"
    _loss(names).backward()
    np.testing.assert_allclose(names["x"].grad.numpy(), _by_differences(code, point), rtol=1e-7, atol=1e-7)
    return "exact"


def _unrecorded():
    x = mg.tensor([0.3, 0.7, 1.2], requires_grad=True)
    y = x * x
    try:
        with mg.no_grad():
            x -= 0.1
        outcome = "exact"
    except mg.InplaceError:
        np.testing.assert_array_equal(x.numpy(), [0.3, 0.7, 1.2])
        outcome = "refused"
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.6, 1.4, 2.4])
    return outcome


def _broadcast_view():
    t = mg.zeros(1)
    with pytest.raises(mg.InplaceError, match="share memory"):
        mg.broadcast_to(t, (3,)).fill_(1.0)
    return "refused" if t.item() == 0.0 else "written"


def _numpy_writes(older_view):
    array = np.array([2.0, 3.0])
    view = array[:]
    x = mg.tensor([1.0, 1.0], requires_grad=True)
    y = x * mg.asarray(array)
    try:
        (view if older_view else array)[0] = 9.0
    except ValueError:
        return "refused by NumPy"
    y.sum().backward()
    return "exact" if x.grad.tolist() == [2.0, 3.0] else "wrong"


def _same():
    t = before = mg.zeros(3)
    address = t.numpy().ctypes.data
    t += 1
    return "same tensor, same memory" if t is before and t.numpy().ctypes.data == address else "other"


IN_WORDS = {
    "`y = x * x`, then `x -= 0.1` unrecorded": _unrecorded,
    "a broadcast view is written": _broadcast_view,
    "NumPy writes to an array that a live graph keeps": lambda: _numpy_writes(False),
    "… through an older view of that array": lambda: _numpy_writes(True),
    "`t += 1` gives": _same,
}


@pytest.mark.parametrize("program", _contract())
def test_contract_table(program):
    run = IN_WORDS.get(program) or (lambda: _outcome(program.split("`")[1]))
    outcomes = []
    for policy in ("refuse", "preserve"):
        with mg.inplace_policy(policy):
            outcomes.append(run())
    shown, _, preserved = _contract()[program].partition('; "preserve": ')
    assert outcomes == [shown, preserved or shown]


@pytest.mark.parametrize("module", [m.name for m in pkgutil.iter_modules(mg.__path__) if m.name != "__main__"])
def test_docstring_examples(module):
    found = importlib.import_module(f"mutagrad.{module}")
    result = doctest.testmod(found)
    assert not result.failed
    assert bool(result.attempted) == (">>> " in inspect.getsource(found))
