"""Random programs of ops, views and writes, against NumPy running the very same program.

A program runs on tensors and on arrays side by side. Its gradient is compared with central differences of
the whole program run by NumPy, real mutation included. What the contract refuses is left out of the program
after it was checked that nothing changed.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import mutagrad as mg
from mutagrad import strategies

UNARY = ["sin", "tanh", "cos", "exp", "sigmoid", "square", "negative", "absolute", "arctan", "relu"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]
NUMPY = {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "relu": lambda x: np.maximum(x, 0.0)}
SQUASH = 0.7  # keeps values of long programs small


def run(statement, env, xp):
    """Execute one statement on tensors (xp is mutagrad) or arrays (xp is numpy); new values join `env`."""
    known = len(env)
    execute(statement, env, xp)
    if xp is np:
        env[known:] = [np.asarray(v) for v in env[known:]]


def execute(statement, env, xp):
    kind, *args = statement
    ours = xp is mg

    def unary(name, x):
        return getattr(mg, name)(x) if ours else NUMPY.get(name, getattr(np, name, None))(x)

    if kind == "unary":
        env.append(unary(args[0], env[args[1]]) * SQUASH)
    elif kind == "binary":
        env.append(getattr(xp, args[0])(env[args[1]], env[args[2]]) * SQUASH)
    elif kind == "sum":
        env.append(xp.sum(env[args[0]], axis=args[1]) * SQUASH)
    elif kind == "view":
        env.append(env[args[0]][(*args[1], ...)] if Ellipsis not in args[1] else env[args[0]][args[1]])
    elif kind == "transpose":
        env.append(env[args[0]].T)
    elif kind == "reshape":
        env.append(env[args[0]].reshape(-1))
    elif kind == "reverse":
        env.append(xp.flip(env[args[0]]))
    elif kind == "diagonal":
        x = env[args[0]]
        env.append(mg.diagonal(x) if ours else np.einsum("ii->i", x))
    elif kind == "gather":
        env.append(env[args[0]][args[1]])
    elif kind == "unary_":
        name, x = args[0], env[args[1]]
        if ours:
            getattr(x, name + "_")()
        else:
            x[...] = unary(name, x.copy())
    elif kind == "binary_":
        name, x, y = args[0], env[args[1]], env[args[2]]
        if ours:
            getattr(x, name + "_")(y)
        else:
            getattr(np, name)(x, y, out=x)
    elif kind == "out":
        name, x, y = args[0], env[args[1]], env[args[2]]
        getattr(np, name)(x, y, out=env[args[3]])
    elif kind == "scale_":
        x = env[args[0]]
        x *= args[1]
    elif kind == "assign":
        env[args[0]][args[1]] = env[args[2]] if isinstance(args[2], int) else args[2]
    elif kind == "augment":
        env[args[0]][args[1]] += env[args[2]]
    elif kind == "fill":
        env[args[0]][...] = args[1]
    elif kind == "add_at":
        (mg.add_at if ours else np.add.at)(env[args[0]], args[1], env[args[2]])
    elif kind == "copy":
        env.append(env[args[0]] * 1.0)


def start(xp, leaves):
    return [leaf + 0.0 if xp is mg else np.asarray(leaf + 0.0) for leaf in leaves] + [
        (mg.zeros if xp is mg else np.zeros)((3, 3))
    ]


def loss_of(env, xp):
    total = 0.0
    for k, v in enumerate(env):
        n = int(np.prod(v.shape))
        weights = (0.3 + 0.17 * np.arange(n) - 0.05 * k).reshape(v.shape)
        total = xp.sum(v * weights) + total
    return total


def replay(program, leaves):
    env = start(np, leaves)
    for statement in program:
        run(statement, env, np)
    return float(loss_of(env, np))


@st.composite
def statements(draw, env):
    """One statement that fits the shapes of the values there are."""
    index = st.integers(0, len(env) - 1)
    kind = draw(
        st.sampled_from(
            "unary binary sum view view transpose reshape reverse diagonal gather unary_ binary_ binary_ out scale_ "
            "assign assign augment fill add_at copy".split()
        )
    )
    a = draw(index)
    shape = env[a].shape
    fits = [k for k, v in enumerate(env) if _broadcasts(v.shape, shape)]
    b = draw(st.sampled_from(fits))
    if kind in ("unary", "unary_"):
        return kind, draw(st.sampled_from(UNARY)), a
    if kind in ("binary", "binary_"):
        return kind, draw(st.sampled_from(BINARY)), a, b
    if kind == "out":
        return kind, draw(st.sampled_from(BINARY)), draw(st.sampled_from(fits)), b, a
    if kind == "sum":
        return kind, a, draw(st.sampled_from([None, *range(len(shape))]))
    if kind == "view":
        return kind, a, draw(strategies.basic_indices(shape))
    if kind == "diagonal":
        return (kind, a) if len(shape) == 2 and shape[0] == shape[1] else ("transpose", a)
    if kind == "gather":
        return kind, a, draw(strategies.advanced_indices(shape))
    if kind == "scale_":
        return kind, a, draw(st.sampled_from([0.5, -1.0, 0.9]))
    if kind == "fill":
        return kind, a, 0.25
    if kind in ("assign", "augment", "add_at"):
        advanced = kind == "add_at" or draw(st.booleans())
        key = draw(strategies.advanced_indices(shape) if advanced else strategies.basic_indices(shape, newaxis=False))
        target = env[a][key].shape
        choices = [k for k, v in enumerate(env) if _broadcasts(v.shape, target)]
        if not choices:
            return "fill", a, 0.5
        return kind, a, key, draw(st.sampled_from(choices))
    return kind, a


def _broadcasts(shape, target):
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


LEAVES = [
    np.array([[0.3, -0.7, 1.2], [0.9, 0.45, -1.1], [-0.35, 0.8, 0.65]]),
    np.array([0.55, -0.25, 1.05]),
    np.array(0.85),
]


def check_program(data, policy, length):
    tensors = [mg.tensor(a, requires_grad=True) for a in LEAVES]
    ours, theirs = start(mg, tensors), start(np, [a.copy() for a in LEAVES])
    program = []
    with mg.inplace_policy(policy):
        for _ in range(length):
            statement = data.draw(statements(theirs))
            before = [v.numpy().tobytes() for v in ours]
            try:
                run(statement, ours, mg)
            except mg.InplaceError as caught:
                refusal = str(caught)
            else:
                refusal = None
            if refusal is not None:
                note(f"# refused: {statement} {refusal}")
                assert policy == "refuse"
                assert before == [v.numpy().tobytes() for v in ours[: len(before)]]
                assert len(ours) == len(before)
                continue
            note(f"run({statement!r}, env, xp)")
            run(statement, theirs, np)
            program.append(statement)
            for mine, numpy in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(mine.numpy(), numpy, rtol=1e-12, atol=1e-13)
        loss = loss_of(ours, mg)
        loss.backward()
    for k, t in enumerate(tensors):
        with np.errstate(all="ignore"):
            want, error = differences(program, k)
        got = np.zeros(t.shape) if t.grad is None else t.grad.numpy()
        # At a kink of |x|, relu or a maximum of equals, differences say nothing.
        smooth = error < 1e-4
        np.testing.assert_allclose(got[smooth], want[smooth], rtol=2e-4, atol=2e-6)


def differences(program, k, step=1e-5):
    """Central differences, and how far the one-sided ones are apart."""
    base = LEAVES[k]
    want, error = np.zeros(base.shape), np.zeros(base.shape)
    here = replay(program, [a.copy() for a in LEAVES])
    for i in np.ndindex(base.shape):
        ends = []
        for sign in (1, -1):
            moved = [a.copy() for a in LEAVES]
            moved[k][i] += sign * step
            ends.append(replay(program, moved))
        want[i] = (ends[0] - ends[1]) / (2 * step)
        error[i] = abs(ends[0] - 2 * here + ends[1]) / step / max(1.0, abs(want[i]))
    return want, error


COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}


@pytest.mark.parametrize("policy", ["refuse", "preserve"])
@settings(max_examples=60, derandomize=True, **COMMON)
@given(data=st.data(), length=st.integers(1, 14))
def test_random_programs(policy, data, length):
    check_program(data, policy, length)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["refuse", "preserve"])
@settings(max_examples=2500, **COMMON)
@given(data=st.data(), length=st.integers(1, 25))
def test_many_random_programs(policy, data, length):
    check_program(data, policy, length)
