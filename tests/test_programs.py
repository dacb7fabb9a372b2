"""Random programs of ops, views, writes, modes and backward calls, against a plain NumPy interpreter.

The programs, the interpreter and the checks are shipped: `mg.testing.programs`.
"""

import gc

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

import mutagrad as mg
from mutagrad import statements
from mutagrad.interpreter import Interpreter, Statement, differentiate, weigh, weights
from mutagrad.ops import OPS, Elementwise
from mutagrad.testing import programs

POLICIES = [None, "preserve"]
COMMON = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": False,
    "report_multiple_bugs": False,
    "stateful_step_count": 20,
}


def check(policy, seen=None, **options):
    """Run random programs; `seen` is shown each machine that passed."""

    class Machine(programs.Programs):
        def teardown(self):
            super().teardown()
            if seen is not None and not self.failed:
                seen(self)

    Machine.policy = policy
    # A refusal searches the heap for who keeps the value; what was there before is none of its business.
    gc.collect()
    gc.freeze()
    try:
        run_state_machine_as_test(Machine, settings=settings(**{**COMMON, **options}))
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("policy", POLICIES, ids=["refuse", "preserve"])
def test_random_programs(policy):
    check(policy, max_examples=30, derandomize=True)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES, ids=["refuse", "preserve"])
@pytest.mark.parametrize("part", range(10))
def test_many_random_programs(policy, part):
    check(policy, max_examples=250, derandomize=False, database=None)


def test_programs_are_printed_as_python():
    kinds = set()

    def runs(machine):
        namespace = {}
        exec(machine.source(), namespace)  # it ends with assertions of its own
        for name in machine.reference.variables:
            np.testing.assert_array_equal(namespace[name].numpy(), machine.namespace[name].numpy())
        for name in machine.leaves:
            # The order of a sum of cotangents depends on when views were looked at.
            got, want = namespace[name].grad.numpy(), machine.namespace[name].grad.numpy()
            np.testing.assert_allclose(got, want, rtol=machine.tolerance[2], atol=machine.tolerance[2])
        kinds.update(s.kind for s in machine.done)
        machine.checks[-1] = machine.checks[-1].replace(".grad.numpy()", ".grad.numpy() * 2 + 1")
        if "[]" not in machine.checks[-1]:
            with pytest.raises(AssertionError):
                exec(machine.source(), {})

    check(None, runs, max_examples=15, derandomize=True, phases=[Phase.generate])
    check("preserve", runs, max_examples=5, derandomize=True, phases=[Phase.generate])
    assert kinds >= {"new", "view", "write", "detach", "backward"}


@pytest.mark.parametrize("shrink", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["whole", "shrunk"])
def test_a_failing_program_is_printed(monkeypatch, shrink):
    monkeypatch.setattr(mg.Tensor, "detach", lambda self: self.clone())  # no memory is shared
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    with pytest.raises(AssertionError) as caught:
        check(None, max_examples=100, derandomize=True, stateful_step_count=5, database=None, phases=phases)
    (note,) = (n for n in caught.value.__notes__ if n.startswith("The program:"))
    program = note.removeprefix("The program:\n\n")
    assert not shrink or sum(line.startswith(("v", "mg.", "with ")) for line in program.splitlines()) <= 3
    with pytest.raises(AssertionError):
        exec(program, {})
    monkeypatch.undo()
    exec(program, {})


# The interpreter, by itself

X = {"x": np.array([0.5, -1.5, 2.0])}


def double(x):
    return 2.0 * x


def added(number):
    return lambda target: np.add(target, number, out=target)


def multiplied(target, factor):
    target *= factor


def new(name, compute, *reads, **options):
    return Statement(f"{name} = ...", "new", name, reads, compute, **options)


def write(name, compute, *reads, **options):
    return Statement(f"{name}[...] = ...", "write", name, reads, compute, **options)


SQUARE = new("y", np.square, "x")
DETACHED = Statement("d = y.detach()", "detach", "d", ("y",))
VIEW = Statement("v = y[::-1]", "view", "v", ("y",), lambda y: y[::-1])
W = weights((3,))
x = X["x"]
KNOWN = {
    "recorded": ([SQUARE, write("y", multiplied, "x")], "y", 3 * x**2 * W),
    "an unrecorded write adds a constant": (
        [SQUARE, write("y", added(3.0), recorded=False), new("z", np.square, "y")],
        "z",
        2 * (x**2 + 3) * 2 * x * W,
    ),
    "an unrecorded product adds a constant": (
        [SQUARE, write("y", multiplied, "x", recorded=False), new("z", np.square, "y")],
        "z",
        2 * x**3 * 2 * x * W,
    ),
    "an unrecorded op is a constant": ([SQUARE, new("z", double, "y", recorded=False)], "z", 0 * x),
    "a detached value is a constant": ([SQUARE, DETACHED, new("z", np.multiply, "d", "y")], "z", x**2 * 2 * x * W),
    "a write through detach adds a constant": (
        [SQUARE, DETACHED, write("d", multiplied, "x"), new("z", np.square, "y")],
        "z",
        2 * x**3 * 2 * x * W,
    ),
    "and has its own history": ([SQUARE, DETACHED, write("d", multiplied, "x")], "d", x**2 * W),
    "what is detached sees later values": (
        [SQUARE, DETACHED, write("y", multiplied, "x"), new("z", np.multiply, "d", "y")],
        "z",
        x**3 * 3 * x**2 * W,
    ),
    "a write through a view": (
        [SQUARE, VIEW, write("v", multiplied, "x")],
        "y",
        W * x[::-1] * 2 * x + W[::-1] * x[::-1] ** 2,
    ),
    "an update of a leaf": ([write("x", added(1.0), recorded=False), SQUARE], "y", 2 * (x + 1) * W),
    "losses add up": ([SQUARE, Statement("", "backward", "y"), write("y", multiplied, "x")], "x", (2 * x + 1) * W),
}


@pytest.mark.parametrize("name", KNOWN)
def test_interpreter_differentiates(name):
    program, loss, want = KNOWN[name]
    found = differentiate(program, X, {}, [loss])["x"]
    assert found.smooth.all()
    np.testing.assert_allclose(found.gradient, want, rtol=1e-7, atol=1e-9)


def test_interpreter_knows_a_kink():
    found = differentiate([new("y", np.abs, "x")], {"x": np.array([0.0, 1.0, -4e-6])}, {}, ["y"])["x"]
    assert found.smooth.tolist() == [False, True, False]
    found = differentiate([new("y", np.floor, "x")], {"x": np.array([0.5, 1.0])}, {}, ["y"])["x"]
    assert found.smooth.tolist() == [True, False]


def test_interpreter_knows_what_must_be_refused():
    reference = Interpreter(X, {"c": np.zeros((2, 3))})
    reference.run(Statement("v = x[1:]", "view", "v", ("x",), lambda a: a[1:]))
    reference.run(Statement("b = ...", "view", "b", ("c",), lambda a: np.broadcast_to(a, (2, 2, 3))))
    reference.run(Statement("d = x.detach()", "detach", "d", ("x",)))
    assert [reference.refuses(write(n, added(1.0))) for n in ("x", "v", "b", "c", "d")] == [True] * 3 + [False] * 2
    assert not reference.refuses(write("v", added(1.0), recorded=False))
    assert not reference.refuses(write("v", np.copyto, "v", itself=True))
    assert not reference.refuses(write("x", added(1.0), window=lambda a: a[:0]))


def test_an_empty_view_is_read_only_and_tracked_where_its_source_is():
    reference = Interpreter(X)
    reference.run(Statement("b = ...", "view", "b", ("x",), lambda a: np.broadcast_to(a, (2, 3))))
    reference.run(Statement("e = b[:0]", "view", "e", ("b",), lambda a: a[:0]))
    reference.run(Statement("f = x[:0]", "view", "f", ("x",), lambda a: a[:0], recorded=False))
    assert reference.variables["f"].history is not None
    assert reference.refuses(write("e", added(1.0)))
    assert not reference.refuses(write("f", added(1.0)))


def test_interpreter_knows_what_is_released():
    reference = Interpreter(X)
    for statement in (SQUARE, new("z", double, "y"), Statement("", "backward", "z"), new("w", double, "x")):
        reference.run(statement)
    assert {n: reference.spent(n) for n in "xyzw"} == {"x": False, "y": True, "z": True, "w": False}
    reference.run(write("y", np.copyto, "w", cuts=True))
    assert not reference.spent("y")
    assert reference.loss == pytest.approx(float(weigh(2 * x**2)))


def test_elementwise_ops_join_by_themselves():
    drawn = {e.name for e in statements.ELEMENTWISE}
    assert drawn == {e.name for e in OPS.values() if isinstance(e, Elementwise) and e.differentiable}
    assert {"sum", "prod", "max", "cumsum", "sort", "flip"} <= {e.name for e in statements.SINGLE}
    assert "matmul" in {e.name for e in statements.PAIRS}
    assert {"concatenate", "stack"} <= {e.name for e in statements.JOINS}


def test_scalar_maximum_of_float32_differentiates():
    x = mg.tensor([1.0, 3.0, 3.0], dtype="float32", requires_grad=True)
    mg.max(x).backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.5]
    assert x.grad.dtype == np.float32
