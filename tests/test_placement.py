"""NumPy's functions that write at places: value, gradient, refusal, each against the NumPy program."""

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.testing import gradcheck, numerical_gradient

random = np.random.default_rng(0)
MASK = np.array([[True, False, True, True], [False, True, False, True], [True, True, True, False]])
PLACES = np.array([[2, 0, 2], [1, 1, 3], [-1, 3, 0]])


def sorted_in_place(x, value):
    x.sort(axis=0)


def partitioned_in_place(x, value):
    x.partition((0, 1, 2, 3))


# By name: the statement, for a target of shape (3, 4) and this shape of values.
WRITERS = {
    "put": (lambda x, v: np.put(x, [5, 0, -1], v), (3,)),
    "put, method": (lambda x, v: x.put([5, 0, -1], v), (3,)),
    "put, repeated indices": (lambda x, v: np.put(x, [[5, 0], [5, 5]], v), (2, 2)),
    "put, values repeated": (lambda x, v: np.put(x, [1, 2, 3, 4, 1], v), (2,)),
    "put, values left over": (lambda x, v: np.put(x, [1, 2], v), (2, 3)),
    "put, one value": (lambda x, v: np.put(x, [1, 2, 1], v), ()),
    "put, one index": (lambda x, v: np.put(x, 7, v), (1,)),
    "put, wrap": (lambda x, v: np.put(x, [13, 1, -14], v, mode="wrap"), (3,)),
    "put, clip": (lambda x, v: x.put([99, 1, -14, 0], v, "clip"), (4,)),
    "put, nothing": (lambda x, v: np.put(x, [], v), (2,)),
    "put, no values": (lambda x, v: np.put(x, [1], v), (0,)),
    "put_along_axis": (lambda x, v: np.put_along_axis(x, PLACES[:, :2], v, axis=1), (3, 2)),
    "put_along_axis, repeated": (lambda x, v: np.put_along_axis(x, PLACES, v, axis=1), (3, 3)),
    "put_along_axis, broadcast": (lambda x, v: np.put_along_axis(x, np.array([[2, -1, 0, 0]]), v, axis=0), (4,)),
    "put_along_axis, rows broadcast": (lambda x, v: np.put_along_axis(x, np.array([[1, 3, 1]]), v, -1), (3, 3)),
    "put_along_axis, flat": (lambda x, v: np.put_along_axis(x, np.array([7, 0, 7]), v, None), (3,)),
    "putmask": (lambda x, v: np.putmask(x, MASK, v), (3, 4)),
    "putmask, values repeated": (lambda x, v: np.putmask(x, MASK, v), (5,)),
    "putmask, other shape": (lambda x, v: np.putmask(x, MASK.reshape(4, 3), v), (2, 1)),
    "putmask, one value": (lambda x, v: np.putmask(x, MASK, v), ()),
    "putmask, no values": (lambda x, v: np.putmask(x, MASK, v), (0,)),
    "place": (lambda x, v: np.place(x, MASK, v), (8,)),
    "place, values repeated": (lambda x, v: np.place(x, MASK, v), (3,)),
    "place, nothing": (lambda x, v: np.place(x, MASK & ~MASK, v), (0,)),
    "fill_diagonal": (lambda x, v: np.fill_diagonal(x, v), (3,)),
    "fill_diagonal, tall": (lambda x, v: np.fill_diagonal(x.reshape(6, 2), v), (2,)),
    "fill_diagonal, wrapped": (lambda x, v: np.fill_diagonal(x.reshape(6, 2), v, wrap=True), (3,)),
    "fill_diagonal, one value": (lambda x, v: np.fill_diagonal(x, v), ()),
    "fill_diagonal, three axes": (lambda x, v: np.fill_diagonal(x[:2].reshape(2, 2, 2), v), (2,)),
    "copyto": (lambda x, v: np.copyto(x, v), (4,)),
    "copyto, where": (lambda x, v: np.copyto(x, v, where=MASK), (3, 4)),
    "copyto, broadcast where": (lambda x, v: np.copyto(x, v, "same_kind", MASK[:, :1]), (1, 1, 4)),
    "copyto, one value": (lambda x, v: np.copyto(x, v, where=MASK[0]), ()),
    "copyto, nowhere": (lambda x, v: np.copyto(x, v, where=False), (3, 4)),
    "sort": (sorted_in_place, ()),
    "partition": (partitioned_in_place, ()),
}
SEEN = {
    "base": lambda x: x,
    "transposed": lambda x: x.reshape(4, 3).T,
    "reversed": lambda x: x.reshape(3, 4)[::-1, ::-1],
}


@pytest.mark.parametrize(("write", "shape"), WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("seen", SEEN.values(), ids=SEEN)
def test_writers(write, shape, seen):
    """Value and gradient are those of the NumPy program, through a base and through views of it."""
    contiguous = [WRITERS[n][0] for n in ("fill_diagonal, tall", "fill_diagonal, wrapped", "put_along_axis, flat")]
    if seen is not SEEN["base"] and write in contiguous:
        pytest.skip("NumPy makes a copy there, or refuses")

    def program(x, value):
        x = x * 1.0
        squares = (x * x).sum(axis=0)  # keeps the old value, in memory of its own
        target = seen(x * 1.0)
        write(target, value * 1.0)
        return target * target * 0.5 + squares[0]

    x, value = random.normal(size=(3, 4)), random.normal(size=shape)
    np.testing.assert_array_equal(program(mg.tensor(x), mg.tensor(value)).numpy(), program(x, value))
    weights = np.arange(1.0, 13).reshape(3, 4)

    def number(x, value):
        return (program(x, value) * weights).sum()

    for policy in ("refuse", "preserve"):
        with mg.inplace_policy(policy):
            leaves = [mg.tensor(x, requires_grad=True), mg.tensor(value, requires_grad=True)]
            number(*leaves).backward()
        for k, leaf in enumerate(leaves):
            got = np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy()
            np.testing.assert_allclose(got, numerical_gradient(number, [x, value], k), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("write", "shape"), WRITERS.values(), ids=WRITERS)
def test_writers_are_differentiated_twice(write, shape):
    def program(x, value):
        x = x * 1.0
        write(x, value * value)
        return x * x * x

    mg.testing.gradgradcheck(program, [random.normal(size=(3, 4)), random.normal(size=shape)])


def changes(write, shape):
    x = np.zeros((3, 4)) + np.arange(12.0)[::-1].reshape(3, 4)
    write(x, np.full(shape, -7.0))
    return not np.array_equal(x, np.arange(12.0)[::-1].reshape(3, 4))


WRITING = {name: each for name, each in WRITERS.items() if changes(*each)}


@pytest.mark.parametrize(("write", "shape"), WRITING.values(), ids=WRITING)
def test_writers_are_refused_before_a_byte_changes(write, shape):
    x, value = mg.tensor(random.normal(size=(3, 4)), requires_grad=True), mg.tensor(np.full(shape, 2.0))
    with mg.testing.unchanged(x, value), pytest.raises(mg.InplaceError, match="leaf that requires grad"):
        write(x, value)
    y = x * 1.0
    kept = y * y
    with mg.testing.unchanged(x, y, value), pytest.raises(mg.InplaceError, match="still needed"):
        write(y, value)
    with mg.inplace_policy("preserve"):
        write(y, value)
    kept.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy())
    whole = mg.tensor(np.zeros((3, 4), dtype=int))
    if not write.__name__.endswith("in_place"):
        with mg.testing.unchanged(whole), pytest.raises(mg.DTypeError, match=r"float64 values into .*int64"):
            write(whole, value)
    read_only = mg.broadcast_to(mg.zeros(4), (3, 4))
    if "reshape" not in write.__code__.co_names:
        with mg.testing.unchanged(read_only), pytest.raises(mg.InplaceError):
            write(read_only, value)


@pytest.mark.parametrize("name", [n for n in WRITING if n not in ("sort", "partition")])
def test_tracked_values_into_untracked_targets(name):
    write, shape = WRITERS[name]
    target, value = mg.zeros((3, 4)), mg.tensor(np.full(shape, 2.0), requires_grad=True)
    view = target.reshape(-1)
    write(target, value)
    assert target.requires_grad
    (view * view).sum().backward()
    plain = np.zeros((3, 4))
    write(plain, np.full(shape, 2.0))
    assert value.grad.sum().item() == 2 * plain.sum()
    single = mg.tensor(np.zeros((3, 4), np.float32))
    write(single, value)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single.numpy(), plain)


def test_only_a_true_overlap_counts():
    x = mg.tensor(np.arange(12.0), requires_grad=True)
    y = x * 1.0
    kept = y[1:10:3] ** 2  # keeps elements 1, 4, 7
    for write in (
        lambda: np.put(y, [0, 2, -2], 7.0),
        lambda: np.put_along_axis(y, np.array([0, 3]), 7.0, 0),
        lambda: np.putmask(y, np.arange(12) % 3 != 1, 7.0),
        lambda: np.place(y, np.arange(12) % 3 == 2, [7.0, 8.0]),
        lambda: np.copyto(y, 9.0, where=np.arange(12) % 3 != 1),
        lambda: np.fill_diagonal(y[3:7].reshape(2, 2), 5.0),
        lambda: np.put(y, [], 1.0),
    ):
        write()
    with mg.testing.unchanged(y), pytest.raises(mg.InplaceError, match="fill_diagonal cannot overwrite"):
        np.fill_diagonal(y[3:7].reshape(2, 2)[:, ::-1], 5.0)
    with mg.testing.unchanged(y), pytest.raises(mg.InplaceError, match="put cannot overwrite y"):
        np.put(y, [0, 4], 7.0)
    kept.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 2, 0, 0, 8, 0, 0, 14, 0, 0, 0, 0])


def test_operands_that_share_memory_are_read_as_if_copied():
    for write in (
        lambda x, y: np.put(x, [0, 1, 2, 3, 4], y[1:]),
        lambda x, y: np.put(x, [4, 3, 2, 1, 0], y),
        lambda x, y: np.put_along_axis(x, np.array([1, 2, 3]), y[:3], 0),
        lambda x, y: np.putmask(x, np.array([True] * 6), y[::-1]),
        lambda x, y: np.place(x, np.array([True] * 6), y[1:3]),
        lambda x, y: np.copyto(x[1:], y[:-1], where=np.array([True, True, False, True, True])),
        lambda x, y: np.copyto(x[1:], y[:-1]),
    ):

        def program(x, write=write):
            x = x * 1.0
            write(x, x)
            return x * x

        x = random.normal(size=6)
        want = x.copy()
        write(want, x)
        np.testing.assert_array_equal(program(mg.tensor(x)).numpy(), want * want)
        gradcheck(program, [x])


def test_a_number_held_by_value_is_a_target():
    x = mg.tensor(2.0, requires_grad=True)
    y = x * 1.0
    np.put(y, [0, 0], x * [3.0, 5.0])
    y.backward()
    assert (y.item(), x.grad.item()) == (10.0, 5.0)
    np.copyto(y, 1.0, where=False)
    assert y.item() == 10.0
    np.putmask(y, True, 4.0)
    assert y.item() == 4.0


def test_copyto_looks_at_casting():
    target = mg.tensor(np.zeros(2, np.float32))
    for casting in ("no", "equiv", "safe"):
        with mg.testing.unchanged(target), pytest.raises(mg.DTypeError, match=f"copyto: casting='{casting}' does not"):
            np.copyto(target, np.ones(2), casting)
    with mg.testing.unchanged(target), pytest.raises(mg.DTypeError, match="bool"):
        np.copyto(target, True, casting="no")
    with mg.testing.unchanged(target), pytest.raises(mg.ShapeError, match="copyto: casting must be one of"):
        np.copyto(target, 1.0, casting="some")
    np.copyto(target, 1.0, casting="no")  # a Python number has the target's dtype
    np.copyto(target[1:], np.full(1, 2.0))
    assert target.tolist() == [1.0, 2.0]
    whole = mg.arange(2)
    for casting in ("same_kind", "unsafe"):
        with mg.testing.unchanged(whole), pytest.raises(mg.DTypeError, match="not of the same kind"):
            np.copyto(whole, target, casting)


@pytest.mark.parametrize(
    ("write", "error", "said"),
    [
        (lambda t: np.put(t, [0, 9], 1.0), mg.RangeError, "put: index 9 is out of range for 6 elements"),
        (lambda t: np.put(t, [0.0], 1.0), mg.DTypeError, "put: the indices must be integers, got float64"),
        (lambda t: np.put(t, [0], 1.0, mode="some"), mg.ShapeError, "put: mode must be"),
        (lambda t: mg.put(np.zeros(3), [0], 1.0), mg.DTypeError, "put: the target must be a Tensor, got float64"),
        (lambda t: np.put_along_axis(t, np.array([[3]]), 1.0, 1), mg.RangeError, "put_along_axis: index 3 is out of"),
        (
            lambda t: np.put_along_axis(t, np.array([3]), 1.0, 1),
            mg.ShapeError,
            r"put_along_axis: indices of shape \(1,",
        ),
        (lambda t: np.put_along_axis(t, np.array([[0]]), 1.0, 2), mg.RangeError, "put_along_axis: axis 2"),
        (lambda t: np.put_along_axis(t, np.array([[0.5]]), 1.0, 1), mg.RangeError, "put_along_axis: the indices must"),
        (lambda t: np.put_along_axis(t, np.array([[0]]), [1.0, 2.0, 3.0], 1), mg.ShapeError, "put_along_axis cannot"),
        (lambda t: np.putmask(t, [True], 1.0), mg.ShapeError, r"putmask: a mask of shape \(1,\) has not the size"),
        (lambda t: np.place(t, [True], 1.0), mg.ShapeError, r"place: a mask of shape \(1,\) has not the size"),
        (lambda t: np.place(t, t < 1, []), mg.ShapeError, "place: expected at least one value"),
        (lambda t: np.fill_diagonal(t[0], 1.0), mg.ShapeError, r"fill_diagonal: .*got shape \(3,\)"),
        (lambda t: np.fill_diagonal(t[None], 1.0), mg.ShapeError, r"fill_diagonal: .*got shape \(1, 2, 3\)"),
        (lambda t: np.copyto(t, [1.0, 2.0]), mg.ShapeError, r"copyto cannot write a result of shape \(2,\)"),
        (lambda t: np.copyto(t, [1.0, 2.0], where=False), mg.ShapeError, r"copyto cannot write a result of shape \(2,"),
        (lambda t: np.copyto(t, 1.0, where=[True, False]), mg.ShapeError, r"copyto: where of shape \(2,\) does not"),
        (lambda t: t.sort(axis=2), mg.RangeError, "sort: axis 2 is out of bounds"),
    ],
)
def test_writers_say_what_does_not_fit(write, error, said):
    t = mg.tensor(np.zeros((2, 3)))
    with mg.testing.unchanged(t), pytest.raises(error, match=said):
        write(t)


def test_refusals_name_the_target():
    x = mg.tensor([3.0, 1.0], requires_grad=True)
    with pytest.raises(mg.InplaceError, match=r"^sort cannot overwrite x \(.*\n.*Use x = mg.sort\(x\)"):
        x.sort()
    with pytest.raises(mg.InplaceError, match=r"^put cannot overwrite x \(.*\n.*mg.where"):
        x.put([0], 1.0)
    with pytest.raises(mg.InplaceError, match=r"^put cannot overwrite x \("):
        x.put([0], v=1.0, mode="clip")
    with pytest.raises(mg.InplaceError, match=r"^put cannot overwrite x \("):
        np.put(x, [0], 1.0)
    with mg.no_grad():
        np.put(x, [0], 1.0)
        x.sort()
    assert x.tolist() == [1.0, 1.0]


def test_writers_inside_transforms():
    def program(x):
        np.put(x, [0, 2], x[1] * 2)
        np.fill_diagonal(x[1:].reshape(2, 1), 5.0)
        x.sort()
        return (x * np.array([1.0, 10.0, 100.0])).sum()

    x = np.array([4.0, 3.0, 9.0])
    assert mg.grad(program)(x).tolist() == [0.0, 220.0, 0.0]
    assert x.tolist() == [4.0, 3.0, 9.0]
    outside = mg.zeros(2)
    with pytest.raises(mg.InplaceError, match="made outside"):
        mg.grad(lambda x: np.put(outside, [0], x) or x)(1.0)


@pytest.mark.parametrize("name", ["put", "put_along_axis", "putmask", "place", "fill_diagonal", "copyto", "add_at"])
def test_docstrings_of_writers(name):
    import doctest

    found = doctest.DocTestParser().get_doctest(getattr(mg, name).__doc__, {}, name, None, 0)
    assert found.examples
    assert doctest.DocTestRunner().run(found).failed == 0
