"""Programs that people reported trouble with elsewhere: what they compute, and how the library behaves."""

import gc
import threading
import tracemalloc

import numpy as np
import pytest

import mutagrad as mg

# In place: values and gradients of whole programs


def overwritten_elements_drop_their_path(x, v):
    y = mg.exp(x)
    y[1:3] = v
    return mg.sum(y * y)


def scratch_buffer_read_and_filled(x, y, z):
    b = mg.zeros(4)
    b[3] = x
    b[1] = y
    b[0] = b[3] * b[1]
    b[2] = b[0] * z
    return b[2] + b[0]


def scratch_matrix_read_and_filled(a):
    b = mg.zeros((3, 3))
    b[:2, 1:] = a
    b[2] = b[0] * b[1]
    return mg.sum(b * b)


def tanh_partly_overwritten(x):
    t = mg.tanh(x)
    t[:2] = 0.25
    return mg.sum(t * t)


def tanh_spelled_with_exp_partly_overwritten(x):
    t = 1.0 - 2.0 / (mg.exp(2.0 * x) + 1.0)
    t[:2] = 0.25
    return mg.sum(t * t)


def sine_of_itself_assigned(x):
    y = x * x
    y[...] = mg.sin(y)
    return y


def slice_assigned_its_product(w, v):
    y = w * 1.0
    y[0, :2] = y[0, :2] * v
    return mg.sum(y * y)


def slice_multiplied(w, v):
    y = w * 1.0
    y[0, :2] *= v
    return mg.sum(y * y)


def part_of_an_iterated_row_written(x):
    y = x * 1.0
    rows = [r for r in y]  # noqa: C416  (iteration is the point)
    part = rows[1][1:]
    part *= 3.0
    return mg.sum(y * y)


def repeated_index_assigned(v):
    y = mg.zeros(3)
    y[[0, 0, 1]] = v
    return mg.sum(y * mg.array([1.0, 10.0, 100.0]))


def reversed_view_of_a_view_written(x):
    y = x * 3.0
    v = y[1:]
    w = v[::-1]
    w[0] = x[0] * x[1]
    return mg.sum(y * y)


MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
TANH = 0.136218687427113

PROGRAMS = [
    (
        overwritten_elements_drop_their_path,
        ([0.1, 0.2, 0.3, 0.4], 5.0),
        53.4469436866526,
        ([2.44280551632034, 0.0, 0.0, 4.45108185698494], 20.0),
    ),
    (scratch_buffer_read_and_filled, (2.0, 3.0, 5.0), 36.0, (18.0, 12.0, 6.0)),
    (scratch_matrix_read_and_filled, ([[1.0, 2.0], [3.0, 4.0]],), 103.0, ([[20.0, 68.0], [12.0, 40.0]],)),
    (tanh_partly_overwritten, ([0.5, -1.0, 2.0],), 1.05434917514684, ([0.0, 0.0, TANH],)),
    (tanh_spelled_with_exp_partly_overwritten, ([0.5, -1.0, 2.0],), 1.05434917514684, ([0.0, 0.0, TANH],)),
    (sine_of_itself_assigned, ([1.5, -0.5],), 1.02547715614244, ([-1.88452086816822, -0.968912421710645],)),
    (
        slice_assigned_its_product,
        (MATRIX, [3.0, 5.0]),
        195.0,
        ([[18.0, 100.0, 6.0], [8.0, 10.0, 12.0]], [6.0, 40.0]),
    ),
    (slice_multiplied, (MATRIX, [3.0, 5.0]), 195.0, ([[18.0, 100.0, 6.0], [8.0, 10.0, 12.0]], [6.0, 40.0])),
    (part_of_an_iterated_row_written, (MATRIX,), 579.0, ([[2.0, 4.0, 6.0], [8.0, 90.0, 108.0]],)),
    (repeated_index_assigned, ([2.0, 3.0, 5.0],), 53.0, ([0.0, 1.0, 10.0],)),
    (reversed_view_of_a_view_written, ([1.0, 2.0, 3.0],), 49.0, ([26.0, 40.0, 0.0],)),
]


@pytest.mark.parametrize(("program", "args", "value", "gradients"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_transformed(program, args, value, gradients):
    arrays = [np.array(a) if isinstance(a, list) else a for a in args]
    found, pull = mg.vjp(program, *arrays)
    np.testing.assert_allclose(np.sum(found), value, rtol=1e-13)
    for got, want in zip(pull(np.ones(np.shape(found))), gradients, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("program", "args", "value", "gradients"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
@pytest.mark.parametrize("policy", ["refuse", "preserve"])
def test_on_the_tape(program, args, value, gradients, policy):
    leaves = [mg.tensor(a, requires_grad=True) for a in args]
    with mg.inplace_policy(policy):
        try:
            found = program(*leaves)
        except mg.InplaceError:
            assert policy == "refuse"
            return
        found.backward(np.ones(found.shape))
    np.testing.assert_allclose(found.numpy().sum(), value, rtol=1e-13)
    for leaf, want in zip(leaves, gradients, strict=True):
        np.testing.assert_allclose(leaf.grad.numpy(), want, rtol=1e-12, atol=1e-15)


def test_write_through_a_broadcast_view_is_refused_there():
    def program(a):
        b = mg.broadcast_to(a, (2, 3))
        b *= 2.0
        return mg.sum(b)

    with pytest.raises(ValueError, match=r"b .*broadcast view") as caught:
        mg.grad(program)(np.array([1.0, 2.0, 3.0]))
    assert caught.traceback[-1].frame.code.name != "program"
    assert any("b *= 2.0" in str(entry.statement) for entry in caught.traceback)


# Size


@pytest.mark.parametrize(
    ("n", "gradient"), [(1000, 1.0010004996661261), (5000, 1.005012518346458), (100_000, 1.105170862808048)]
)
def test_long_chain(n, gradient):
    errors = []

    def chain():
        try:
            x = mg.tensor(2.0, requires_grad=True)
            y = x
            for _ in range(n):
                y = y * 1.000001 + 1e-7
            y.backward(retain_graph=True)
            assert x.grad.item() == pytest.approx(gradient, rel=1e-11)
            del y
        except BaseException as error:
            errors.append(error)

    # A small stack: neither the sweep nor the freeing of the graph may recurse.
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=chain)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert not errors


def test_losses_added_up_hold_no_graphs():
    w = mg.tensor(np.ones(100), requires_grad=True)
    total = 0.0

    def steps(n):
        nonlocal total
        for _ in range(n):
            loss = mg.sum(mg.exp(w) * w)
            loss.backward()
            with mg.no_grad():
                w.subtract_(1e-6 * w.grad)
            w.grad = None
            total = total + loss

    steps(50)
    gc.collect()
    tracemalloc.start()
    try:
        steps(100)
        early = tracemalloc.get_traced_memory()[0]
        steps(500)
        late = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # What grows is at most the chain of released sums, far less than one array a step.
    assert (late - early) / 500 < w.nbytes
    with pytest.raises(mg.GradientError, match="released"):
        total.backward()


# Values


def test_not_a_number_is_noticed():
    def program(x):
        return mg.sum(mg.where(mg.isnan(x), 100.0, x))

    value, gradient = mg.value_and_grad(program)(np.array([np.nan, 1.0, 2.0]))
    assert value == 103.0
    np.testing.assert_array_equal(gradient, [0.0, 1.0, 1.0])


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


@pytest.mark.parametrize(
    "make",
    [
        read_only,
        lambda a: a[::2],
        lambda a: a[::-1],
        lambda a: a.T,
        lambda a: np.broadcast_to(a[0], (4, 4)),
        lambda a: a[:, :1],
    ],
    ids=["read-only", "strided", "reversed", "transposed", "broadcast", "column"],
)
def test_layout_of_an_argument_does_not_matter(make):
    x = make(np.arange(16.0).reshape(4, 4))
    before = x.copy()
    value, gradient = mg.value_and_grad(lambda x: mg.sum(x * x))(x)
    assert value == np.sum(before * before)
    np.testing.assert_array_equal(gradient, 2 * before)
    np.testing.assert_array_equal(x, before)
    assert gradient.flags.writeable
    assert not np.shares_memory(gradient, x)


def test_whole_numbers_and_an_accumulator_from_zero():
    def program(a):
        w = 0
        for i in range(a.shape[0]):
            w += mg.sqrt(a[i])
            if i == 1:
                a = a * w
        return mg.sum(a)

    whole = np.array([1, 2, 3])
    assert program(mg.tensor(whole)).item() == pytest.approx(14.485281374238571, rel=1e-15)
    value, gradient = mg.value_and_grad(program)(whole)
    assert value == pytest.approx(14.485281374238571, rel=1e-15)
    # sum(a) * (sqrt(a0) + sqrt(a1))
    np.testing.assert_allclose(gradient, 1 + np.sqrt(2) + 6 * np.array([0.5, 0.5 / np.sqrt(2), 0.0]))
