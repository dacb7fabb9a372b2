"""In-place programs are exactly right, or refused before a byte is written."""

import gc
import importlib
import sys
import threading

import numpy as np
import pytest
from scenarios import (
    EITHER,
    EXACT,
    LEAF,
    REFUSED,
    SCENARIOS,
    OnMutagrad,
    answer,
    judge,
    outputs,
    run_on_tape,
    run_transformed,
)
from scenarios_numpy import weights

import mutagrad as mg

for part in ("values", "views", "graph", "targets", "ops", "leaves", "writes", "elements", "memory", "backward"):
    importlib.import_module(f"scenarios_{part}")

# What the contract permits: under "refuse" a clash with a kept value may be refused, elsewhere it is resolved.
PERMITTED = {
    "refuse": {EXACT: EXACT, EITHER: EITHER, REFUSED: REFUSED, LEAF: REFUSED},
    "preserve": {EXACT: EXACT, EITHER: EXACT, REFUSED: REFUSED, LEAF: REFUSED},
    "transform": {EXACT: EXACT, EITHER: EXACT, REFUSED: REFUSED, LEAF: EXACT},
}

# What a reader of a gradient may differentiate again: nothing in it is replayed as a constant.
TWICE = [
    c for c in SCENARIOS.values() if c.differentiates_twice and all(v.dtype == np.float64 for v in c.leaves.values())
]
QUICK = {"B01", "D11", "H03", "H09", "I04", "N08", "P01", "P02", "Q02", "R09", "X120", "X226", "X310", "X330", "X340"}


@pytest.fixture(scope="module", autouse=True)
def whole_heap():
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def small_heap(whole_heap):
    """The text of a refusal searches the heap for who keeps a value: leave out what was there before."""
    gc.freeze()


def every(cases):
    return pytest.mark.parametrize("case", [pytest.param(c, id=f"{c.id}-{c.program.__name__}") for c in cases])


@every(SCENARIOS.values())
@pytest.mark.parametrize("policy", ["refuse", "preserve"])
def test_sound_on_the_tape(case, policy):
    with mg.inplace_policy(policy):
        judge(case, PERMITTED[policy][case.sound], run_on_tape)


@every(c for c in SCENARIOS.values() if not c.on_tape)
def test_sound_in_a_transform(case):
    judge(case, PERMITTED["transform"][case.sound], run_transformed)


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c.id, marks=() if c.id in QUICK else pytest.mark.slow) for c in TWICE],
)
def test_second_derivatives(case):
    def loss(*leaves):
        xp = OnMutagrad(case.resumes)
        found = outputs(case.program(xp, **dict(zip(case.leaves, leaves, strict=True))))
        if xp.refused:
            pytest.skip("NumPy refuses this write to a read-only array")
        return sum(mg.sum(t * t * weights(t.shape)) for t in found)

    mg.testing.gradgradcheck(loss, list(case.leaves.values()), rtol=1e-4, atol=1e-5)


def test_a_wrong_answer_is_noticed(monkeypatch):
    case = SCENARIOS["B01"]
    monkeypatch.setattr(mg.judge, "kept", lambda *args: [])
    with pytest.raises(AssertionError, match="gradient by w"):
        judge(case, EXACT, run_on_tape)
    monkeypatch.undo()
    with pytest.raises(AssertionError, match="must be carried out"):
        judge(case, EXACT, run_on_tape)
    with mg.inplace_policy("preserve"):
        judge(case, EXACT, run_on_tape)
        with pytest.raises(AssertionError, match="must be refused"):
            judge(case, REFUSED, run_on_tape)
    wrong = answer(case.id, frozenset())
    monkeypatch.setitem(wrong.gradients, "x", wrong.gradients["x"] + 1e-4)
    with mg.inplace_policy("preserve"), pytest.raises(AssertionError, match="gradient by x"):
        judge(case, EXACT, run_on_tape)


def test_backward_while_another_thread_writes():
    w = mg.tensor(np.full(3, 2.0), requires_grad=True)
    t = mg.zeros(3)
    finished = threading.Event()

    def write():
        value = 0.0
        with mg.inplace_policy("preserve"):
            while not finished.is_set():
                value += 1.0
                t.fill_(value % 1000)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        with mg.inplace_policy("preserve"):
            for _ in range(1000):
                w.grad = None
                y = t * w
                y.backward(np.ones(3))
                np.testing.assert_array_equal(y.numpy(), 2.0 * w.grad.numpy())
    finally:
        finished.set()
        writer.join()
        sys.setswitchinterval(interval)


# Functions under a transform


A = np.array([1.0, 2.0, 3.0])


def test_arguments_are_private():
    def double(x, y):
        x *= 2.0
        y[0] = x[0] * x[1]
        return mg.sum(x * y)

    one = A.copy()
    found = mg.grad(double, (0, 1))(one, one)
    np.testing.assert_array_equal(one, A)
    np.testing.assert_allclose(found[0], [32.0, 12.0, 6.0])
    np.testing.assert_allclose(found[1], [0.0, 4.0, 6.0])


def test_arguments_in_a_nest_are_private():
    def function(nest):
        nest["a"] *= nest["b"][0]
        nest["b"][0].sin_()
        return mg.sum(nest["a"] + nest["b"][0])

    nest = {"a": A.copy(), "b": [A.copy()]}
    found = mg.grad(function)(nest)
    np.testing.assert_allclose(found["a"], A)
    np.testing.assert_allclose(found["b"][0], A + np.cos(A))
    np.testing.assert_array_equal(nest["a"], A)


def test_result_that_is_the_mutated_argument():
    def function(x, y):
        x *= y
        y += x
        return x

    value, pull = mg.vjp(function, A, A)
    np.testing.assert_allclose(value, A * A)
    for cotangent in (np.ones(3), np.array([1.0, 0.0, 0.0])):
        for found in pull(cotangent):
            np.testing.assert_allclose(found, A * cotangent)


def test_jacobian_of_a_mutating_function():
    def function(x):
        x[1:] *= x[:-1]
        return x

    np.testing.assert_allclose(mg.jacobian(function)(A), [[1, 0, 0], [2, 1, 0], [0, 3, 2]])


def test_gradient_of_a_gradient_of_a_mutating_function():
    def function(x):
        x[0:2] *= x[1:3]
        x.sin_()
        return mg.sum(x)

    def plain(x):
        return mg.sin(x[0] * x[1]) + mg.sin(x[1] * x[2]) + mg.sin(x[2])

    def twice(f):
        return mg.grad(lambda x: mg.sum(mg.grad(f)(x) * A))(A)

    np.testing.assert_allclose(mg.grad(function)(A), mg.grad(plain)(A))
    np.testing.assert_allclose(twice(function), twice(plain))


def test_outer_values_written_by_an_inner_gradient():
    def outer(x):
        y = x * 1.0

        def inner(z):
            z *= y
            z[0] = y[1] * z[1]
            return mg.sum(z * z)

        y *= 1.0
        return mg.sum(mg.grad(inner)(x * 1.0))

    def plain(x):
        # z = (y1 * z1 * y1, z1 * y1, z2 * y2): the gradient by z is 0, 2 z1 (y1**4 + y1**2), 2 z2 y2**2.
        return 2 * x[1] ** 5 + 2 * x[1] ** 3 + 2 * x[2] ** 3

    np.testing.assert_allclose(mg.grad(outer)(A), mg.grad(plain)(A))


@pytest.mark.parametrize("write", ["assign", "add", "element", "view", "detached"])
def test_tracked_value_into_a_captured_tensor(write):
    buffer = mg.zeros(3)

    def function(x):
        target = {"view": buffer[0:3], "detached": buffer.detach()}.get(write, buffer)
        if write == "add":
            target += x
        elif write == "element":
            target[0] = x[0]
        else:
            target[...] = x
        return mg.sum(buffer * x)

    with mg.testing.unchanged(buffer), pytest.raises(mg.InplaceError, match="made outside"):
        mg.grad(function)(A)


def test_constant_into_a_captured_tensor():
    buffer = mg.zeros(3)

    def function(x):
        buffer[1:] = 2.0
        return mg.sum(buffer * x)

    np.testing.assert_array_equal(mg.grad(function)(A), [0.0, 2.0, 2.0])
    np.testing.assert_array_equal(buffer.numpy(), [0.0, 2.0, 2.0])


def test_captured_leaf_stays_a_leaf():
    leaf = mg.tensor(A, requires_grad=True)

    def function(x):
        leaf.multiply_(2.0)
        return mg.sum(leaf * x)

    with mg.testing.unchanged(leaf), pytest.raises(mg.InplaceError, match="leaf"):
        mg.grad(function)(A)


def test_explicit_policy_wins_over_that_of_a_transform():
    def function(x):
        y = mg.exp(x)
        y += 1.0
        return mg.sum(y)

    np.testing.assert_allclose(mg.grad(function)(A), np.exp(A))
    with mg.inplace_policy("refuse"), pytest.raises(mg.InplaceError, match="still needed"):
        mg.grad(function)(A)
