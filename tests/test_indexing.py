"""Indexing: every kind of index against NumPy, read and written; readers beyond what the table's tests say."""

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.testing import gradcheck

random = np.random.default_rng(0)
SHAPE = (2, 3, 4)


class Two:
    def __index__(self):
        return 2


# As written by a user, for an array of SHAPE.
KEYS = {
    "list of bools": [True, False],
    "bools in a tuple": ([True, False], [0, 2]),
    "tuple of lists": ([0, 1], [1, 2]),
    "tuple of tuples": ((0, 1), (1, 1)),
    "repeated rows by a tuple": (0, (1, 1)),
    "list axis comes first": (1, slice(None), [0, 3, 0]),
    "list beside an integer": (0, [0, 1], slice(1, 3)),
    "lists around an ellipsis": ([1, 1], ..., [0, 2]),
    "lists around an axis": (None, [0, 1], slice(None), [1, 1]),
    "list after an ellipsis": (..., [0, 3, 3]),
    "negative step, one element": (0, slice(2, 1, -1)),
    "negative steps": (slice(None, None, -2), slice(5, 0, -2)),
    "ellipsis": ...,
    "nothing": (),
    "new axis": (None, 0, None),
    "new axis and list": (0, None, [0, 1]),
    "uint8": np.uint8(1),
    "int8, to the end": (np.int8(-1), np.int8(-1), np.int8(-1)),
    "uint8 array": np.array([1, 0, 1], np.uint8),
    "narrow arrays": (np.array([1, 1], np.uint8), np.array([2, -1], np.int8)),
    "ix_": np.ix_([0, 1], [2, 0], [3, 3]),
    "ix_ of bools": np.ix_([True, False], [2, 0]),
    "true": True,
    "false": np.False_,
    "bool array without axes": np.array(True),
    "true beside an integer": (0, True),
    "mask": np.array([[True, False, True], [False, False, True]]),
    "mask of everything": np.ones(SHAPE, bool),
    "mask of nothing": np.zeros(2, bool),
    "mask along an axis": (slice(None), np.array([True, False, True])),
    "empty list": [],
    "empty lists": ([], []),
    "integer array without axes": np.array(1),
    "index object": (slice(None), Two()),
    "ends with an index": slice(np.int64(0), np.uint8(2)),
    "range": (0, range(3)),
    "two-dimensional lists": (0, [[0, 1], [2, 0]], [[3], [0]]),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("reverse", [False, True])
def test_every_kind_of_index(key, reverse):
    """Read and written, through a base and through a view of it, with gradients by differences."""
    seen = (lambda a: a[::-1, :, ::-1]) if reverse else lambda a: a
    x = random.normal(size=SHAPE)
    want = seen(x)[key]
    got = seen(mg.tensor(x))[key]
    np.testing.assert_array_equal(got.numpy(), want)
    assert got.shape == want.shape
    if want.size > 1:
        base = mg.tensor(x)
        assert np.shares_memory(seen(base)[key].numpy(), base.numpy()) == np.shares_memory(want, x)
    gradcheck(lambda x: seen(x * 1.0)[key], [x])

    def written(x, value):
        x = x * 1.0
        seen(x)[key] = value * 1.0
        return x * x

    value = random.normal(size=want.shape)
    np.testing.assert_array_equal(written(mg.tensor(x), mg.tensor(value)).numpy(), written(x, value))
    gradcheck(written, [x, value])


def test_tensors_are_indices():
    x = mg.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    k, rows, mask = mg.tensor([2.0, 5.0]).argmax(), mg.tensor([0, 0]), mg.tensor([True, False, True])
    assert x[k].tolist() == [4.0, 5.0, 6.0, 7.0]
    assert np.shares_memory(x[k].numpy(), x.numpy())  # as with the number that NumPy's argmax gives
    assert x[rows, k].tolist() == [1.0, 1.0]
    assert x[mask].shape == (2, 4)
    assert x[[k, k]].shape == (2, 4)
    assert x[mg.tensor(True)].shape == (1, 3, 4)
    assert x[: k + 1].shape == (2, 4)
    y = x[rows]
    rows += 1
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy().sum(1), [8, 0, 0])


def test_narrow_integers_reach_far_elements():
    x = mg.tensor(np.arange(300.0), requires_grad=True)
    assert x[np.uint8(200)].item() == 200.0
    x[np.uint8(200)].backward()
    assert np.flatnonzero(x.grad.numpy()).tolist() == [200]
    y, value = x * 1.0, mg.tensor([1.0, 2.0], requires_grad=True)
    y[np.array([200, 200], np.uint8)] = value
    y.sum().backward()
    assert value.grad.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("key", "error", "said"),
    [
        (5, IndexError, "index 5 is out of bounds for axis 0 with size 2"),
        ((0, [0, 5]), IndexError, "index 5 is out of bounds for axis 1 with size 3"),
        ((0, 0, 0, 0), IndexError, "too many indices"),
        (np.ones(3, bool), IndexError, "boolean index did not match"),
        ([0.5], IndexError, "integer"),
        (1.5, IndexError, "integers"),
        (mg.tensor(1.5), IndexError, "integers"),
        ("a", IndexError, "integers"),
        ((..., ...), IndexError, "single ellipsis"),
        (([0, 1], [0, 1, 2]), IndexError, r"shapes \(2,\) \(3,\)\.\n"),
        ([[0, 1], [2]], ValueError, "inhomogeneous"),
        (slice("a"), TypeError, "slice indices"),
    ],
)
def test_wrong_indices_are_said(key, error, said):
    x = mg.tensor(np.zeros(SHAPE))
    with pytest.raises(error, match=f"getitem: .*{said}") as raised:
        x[key]
    assert isinstance(raised.value, mg.MutagradError)
    with mg.testing.unchanged(x), pytest.raises(error, match=f"setitem: .*{said}"):
        x[key] = 1.0


# Readers


def test_indices_are_kept_as_they_were():
    for make in (list, np.array, mg.tensor):
        x, places = mg.tensor([5.0, 6.0, 7.0], requires_grad=True), make([0, 0])
        y = mg.take(x, places)
        z = mg.take_along_axis(x, places, 0)
        places[1] = 2
        (y + z).sum().backward()
        assert x.grad.tolist() == [4.0, 0.0, 0.0]


def test_readers_through_numpy_and_as_methods():
    x = random.normal(size=(3, 4))
    t = mg.tensor(x, requires_grad=True)
    for got, want in [
        (np.take(t, [0, 2], axis=1), np.take(x, [0, 2], axis=1)),
        (t.take([0, 9], mode="wrap"), x.take([0, 9], mode="wrap")),
        (np.compress([True, False, True], t, axis=0), np.compress([True, False, True], x, axis=0)),
        (np.compress(condition=[0, 1], a=t), np.compress(condition=[0, 1], a=x)),
        (t.compress([0, 1], axis=1), x.compress([0, 1], axis=1)),
        (t.compress(condition=[0, 1]), x.compress(condition=[0, 1])),
        (np.extract(t > 0, t), np.extract(x > 0, x)),
        (np.choose([1, 0, 2, 0], t), np.choose([1, 0, 2, 0], x)),
        (np.select([t > 0], [t], -1.0), np.select([x > 0], [x], -1.0)),
        (np.sort(t, axis=0), np.sort(x, axis=0)),
        (np.interp(t, [-1.0, 1.0], [0.0, 3.0]), np.interp(x, [-1.0, 1.0], [0.0, 3.0])),
        (np.unique(t), np.unique(x)),
        (np.searchsorted([-1.0, 0.0, 1.0], t), np.searchsorted([-1.0, 0.0, 1.0], x)),
        (np.bincount(mg.tensor([1, 2, 1])), np.bincount([1, 2, 1])),
        (np.isin(t, x[0]), np.isin(x, x[0])),
    ]:
        np.testing.assert_array_equal(got.numpy(), want)
        assert got.dtype == want.dtype
    for got, want in [(np.where(t > 0), np.where(x > 0)), (mg.where(x > 0), np.where(x > 0)),
                      ((t > 0).nonzero(), (x > 0).nonzero())]:  # fmt: skip
        assert [g.tolist() for g in got] == [w.tolist() for w in want]


def test_readers_write_where_out_says():
    t, out = mg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True), mg.zeros((2, 2))
    mg.compress([0, 1, 1], t, 1, out)
    assert out.tolist() == [[1.0, 2.0], [4.0, 5.0]]
    np.take(t, [0, 0], axis=1, out=out)
    out.sum().backward()
    assert t.grad.tolist() == [[2.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
    with mg.testing.unchanged(out), pytest.raises(mg.ShapeError, match=r"compress\(out=\) cannot write"):
        mg.compress([0, 1], t, 1, out=out)


def test_unique_sends_the_gradient_to_first_occurrences():
    x = np.array([3.0, 1.0, 3.0, 1.0, 0.0])
    gradient = mg.grad(lambda x: (mg.unique(x) * np.array([1.0, 2.0, 3.0])).sum())(x)
    assert gradient.tolist() == [3.0, 2.0, 0.0, 0.0, 1.0]
    got = mg.unique(mg.tensor(x), return_index=True, return_inverse=True, return_counts=True)
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    assert [g.tolist() for g in got] == [w.tolist() for w in want]
    assert mg.unique([np.nan, np.nan]).shape == (1,)
    assert mg.unique([np.nan, np.nan], equal_nan=False).shape == (2,)


def test_partition_orders_so_far():
    x = random.normal(size=(4, 9))
    got = mg.partition(mg.tensor(x), 3, axis=1).numpy()
    np.testing.assert_array_equal(np.sort(got), np.sort(x))
    np.testing.assert_array_equal(got[:, 3], np.sort(x)[:, 3])
    assert (got[:, :3] <= got[:, 3:4]).all()
    assert (got[:, 4:] >= got[:, 3:4]).all()
    np.testing.assert_array_equal(np.take_along_axis(x, mg.argpartition(x, 3).numpy(), 1), got)


def test_interp_at_knots_and_outside():
    xp, fp = np.array([0.0, 1.0, 2.0]), np.array([5.0, 6.0, 4.0])
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
    by_x, by_fp = mg.grad(lambda x, fp: mg.interp(x, xp, fp).sum(), [0, 1])(x, fp)
    assert by_x.tolist() == [0.0, 1.0, 1.0, -2.0, -2.0, 0.0]
    assert by_fp.tolist() == [2.5, 1.5, 2.0]
    gradient = mg.grad(lambda left, right: mg.interp(x, xp, fp, left, right).sum(), [0, 1])
    assert gradient(-7.0, mg.tensor(8.0))[0] == 1.0
    assert gradient(-7.0, 8.0) == (1.0, 1.0)
    # a jump: the gradient goes to the point that NumPy takes, and none of it is nan
    by_xp, by_fp = mg.grad(lambda xp, fp: mg.interp([0.5, 1.0, 1.0], xp, fp).sum(), [0, 1])(
        np.array([0.0, 1.0, 1.0]), fp
    )
    assert by_fp.tolist() == [0.5, 0.5, 2.0]
    assert by_xp.tolist() == [-0.5, -0.5, 0.0]


def test_bincount_counts_or_sums():
    assert mg.bincount([0, 2, 2], minlength=5).tolist() == [1, 0, 2, 0, 0]
    single = mg.bincount([0, 2, 2], np.float32([1, 2, 3]))
    assert single.dtype == np.bincount([0, 2, 2], np.float32([1, 2, 3])).dtype
    assert mg.bincount([True, False, True], [1.0, 2.0, 3.0]).tolist() == [2.0, 4.0]
    with pytest.raises(mg.ShapeError, match=r"bincount: weights of shape \(2,\)"):
        mg.bincount([0, 2, 2], [1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda t: mg.take(t, [9]), mg.RangeError, "take: index 9 is out of bounds"),
        (lambda t: mg.take(t, np.array([0.5])), mg.DTypeError, "take: "),
        (lambda t: mg.nonzero(t[0]), mg.ShapeError, r"nonzero: .*reshape it to \(1,\)"),
        (lambda t: mg.select([t], [t]), mg.DTypeError, "select: the conditions must be bool, got float64"),
        (lambda t: mg.select([t > 0], [t, t]), mg.ShapeError, "select: expected as many"),
        (lambda t: mg.choose([0, 2, 0], [t, t]), mg.ShapeError, "choose: invalid entry"),
        (lambda t: mg.interp(0.5, [0.0, 1.0], t), mg.ShapeError, "interp: fp and xp are not of the same length"),
        (lambda t: mg.bincount([-1]), mg.ShapeError, "bincount: "),
    ],
)
def test_readers_say_what_does_not_fit(call, error, said):
    with pytest.raises(error, match=said):
        call(mg.tensor([1.0, 2.0, 3.0]))
