"""Corners where a value, a write or a gradient could go wrong in silence; each was wrong once."""

import gc
import sys
import threading

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import totals


def leaf(values):
    return mg.tensor(values, requires_grad=True)


# Views and shared memory


def test_squeeze_with_nothing_to_squeeze_is_a_view():
    t, w = mg.tensor([1.0, 2.0, 3.0]), leaf([1.0, 1.0, 1.0])
    s = t.squeeze()
    y = (w * t).sum()
    with pytest.raises(mg.InplaceError):
        s += 100.0
    y.backward()
    s *= w
    assert t.requires_grad
    assert mg.squeeze(w * 1.0).requires_grad
    assert mg.flip(mg.tensor(True)).item() is True


def test_subclasses_of_arrays_are_copied_when_kept():
    class Sub(np.ndarray):
        pass

    m, x = np.ones((2, 2)).view(Sub), leaf([[1.0, 2.0]])
    y = mg.matmul(x, m).sum()
    m[:] = 50.0
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 2]])


def test_overwriting_with_ones_own_detached_values_cuts():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 2.0
    y[1:] = y[1:].detach()
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 0, 0])


def test_a_view_of_a_leaf_cannot_be_detached_in_place():
    x = leaf([1.0, 2.0, 3.0])
    with pytest.raises(mg.InplaceError, match="leaf"):
        x[1:].detach_()
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4, 6])


def test_one_memory_with_two_numpy_owners():
    exporter = bytearray(24)
    first, second = np.frombuffer(exporter), np.frombuffer(exporter)
    first[:] = [1.0, 2.0, 3.0]
    t, u, w = mg.asarray(first), mg.asarray(second), leaf([1.0, 1.0, 1.0])
    y = (w * t).sum()
    with pytest.raises(mg.InplaceError):
        u += 100.0
    y.backward()
    np.testing.assert_array_equal(w.grad.numpy(), [1, 2, 3])


def test_a_flat_vector_split_into_leaves():
    flat = np.arange(10.0)
    a, b = mg.asarray(flat[:4], requires_grad=True), mg.asarray(flat[4:], requires_grad=True)
    ((a * a).sum() + (b * 3.0).sum()).backward()
    with mg.no_grad():
        a -= a.grad
        b -= b.grad
    np.testing.assert_array_equal(flat, [0, -1, -2, -3, 1, 2, 3, 4, 5, 6])
    with pytest.raises(mg.ShapeError, match="wrap the whole array first"):
        mg.asarray(flat[2:6])


def test_views_locked_with_their_array_are_unlocked_with_it():
    a = np.ones(4)
    y = leaf(np.ones(4)) * mg.asarray(a)
    v = a[:2]
    mg.asarray(v)
    del y
    assert a.flags.writeable
    assert v.flags.writeable


# Transforms


def test_gradients_of_a_transform_share_no_memory():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    gx, gy = mg.grad(lambda x, y: (x + y).sum(), (0, 1))(x, y)
    gx += 5.0
    np.testing.assert_array_equal(gy.numpy(), [1, 1])
    c = mg.tensor([1.0, 1.0])
    _, pull = mg.vjp(lambda x, y: x + y, x, y)
    g, h = pull(c)
    g *= 5.0
    np.testing.assert_array_equal(c.numpy(), [1, 1])
    np.testing.assert_array_equal(h.numpy(), [1, 1])


def test_vjp_is_of_the_value_as_it_was():
    value, pull = mg.vjp(lambda x: x + 1.0, leaf([1.0, 2.0]))
    value *= 5.0
    np.testing.assert_array_equal(pull(np.ones(2))[0].numpy(), [1, 1])


def test_cotangents_are_matched_by_structure():
    _, pull = mg.vjp(lambda x: {"a": x * 2.0, "b": x * 3.0}, np.array([1.0]))
    np.testing.assert_array_equal(pull({"b": np.array([1.0]), "a": np.array([0.0])})[0], [3.0])
    for wrong in ({"a": np.ones(1)}, [np.ones(1), np.ones(1)]):
        with pytest.raises(mg.ShapeError):
            pull(wrong)


def test_argnums():
    f = lambda x, y: x * y * y
    assert mg.grad(f, np.int64(1))(2.0, 3.0) == 12.0
    assert mg.grad(f, (-1, 0))(2.0, 3.0) == (12.0, 9.0)
    with pytest.raises(mg.DTypeError, match="twice"):
        mg.grad(f, (1, -1))(2.0, 3.0)
    for wrong in (1.5, None, "a", (0.0,)):
        with pytest.raises(mg.DTypeError, match="argnums"):
            mg.grad(f, wrong)


def test_a_tensor_gradient_depends_on_captured_leaves():
    w = leaf(3.0)
    g = mg.grad(lambda x: w * x * x)(mg.tensor(2.0))
    g.backward()
    assert w.grad.item() == 4.0
    assert mg.grad(lambda x: w * x * x)(2.0) == 12.0


def test_a_leaf_frozen_and_unfrozen_gets_both_gradients():
    x = leaf([1.0, 2.0])
    a = (x * 2.0).sum()
    x.requires_grad_(False)
    x.requires_grad_(True)
    (a + (x * 3.0).sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [5, 5])


# Values


def test_integers_are_clipped_as_integers():
    assert mg.clip(mg.tensor([2**63 - 1]), 0).tolist() == [2**63 - 1]
    assert mg.clip(mg.tensor([2**53 + 1]), max=2**60).tolist() == [2**53 + 1]
    assert mg.clip(mg.tensor([0.5, 3.0], dtype=np.float16), max=1.0).tolist() == [0.5, 1.0]


def test_numpys_positional_arguments_are_numpys():
    x = mg.ones((2, 3))
    assert np.sum(x, 0, np.float32).dtype == np.float32
    out = mg.zeros(3)
    np.max(x, 0, out)
    np.testing.assert_array_equal(out.numpy(), [1, 1, 1])
    assert np.sum(x, 0).shape == (3,)
    assert np.mean(x, axis=1, keepdims=True).shape == (2, 1)


def test_products_with_infinite_elements():
    np.testing.assert_array_equal(mg.grad(mg.prod)(np.array([np.inf, 2.0, 3.0])), [6, np.inf, np.inf])


def test_reductions_of_numbers_take_their_axis():
    for name in ("sum", "mean", "max", "min", "norm"):
        assert getattr(mg, name)(mg.tensor(3.0), axis=0).item() == 3.0
        assert getattr(mg, name)(mg.tensor(3.0), axis=-1).item() == 3.0
    with pytest.raises(mg.RangeError):
        mg.sum(mg.tensor(3.0), axis=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: mg.tensor([1, 2]) ** -1,
        lambda: mg.ones(2) + 10**400,
        lambda: mg.tensor([1, 2]) & mg.tensor([1, 2, 3]),
        lambda: mg.concatenate([mg.ones(2)], axis=10**30),
        lambda: mg.eye(-1),
        lambda: mg.arange(0, 1, 0),
        lambda: mg.linspace(0, 1, -1),
        lambda: mg.full_like(mg.ones(2), [1, 2, 3, 4, 5]),
        lambda: mg.ones(2).astype("foo"),
        lambda: mg.ones(3)[[1, [2, 3]]],
        lambda: setattr(leaf([1.0]), "grad", "abc"),
        lambda: mg.take_along_axis(mg.ones(2), None),
        lambda: mg.ones(2).masked_fill_([True, False, True], 0.0),
        lambda: mg.testing.gradcheck(lambda x: 3.0, np.ones(2)),
        lambda: mg.grad(3),
    ],
)
def test_bad_calls_meet_the_librarys_errors(call):
    with pytest.raises(mg.MutagradError):
        call()


# Lifetime


def test_writes_by_index_arrays_make_no_cycles():
    gc.disable()
    try:
        x = leaf([1.0, 2.0, 3.0]) * 1.0
        t = mg.sin(x)
        t[[0]] = 1.0
        mg.add_at(t, [0], 1.0)
        del t
        x += 1.0
    finally:
        gc.enable()


# Threads


def threads(*functions):
    """Run functions side by side with frequent switches; their exceptions are raised here."""
    caught = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            caught.append(error)

    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        running = [threading.Thread(target=guarded, args=(f,)) for f in functions]
        for each in running:
            each.start()
        for each in running:
            each.join()
    finally:
        sys.setswitchinterval(old)
    if caught:
        raise caught[0]


def test_a_value_and_its_gradient_agree_beside_a_writer():
    w = leaf(2.0)
    done = threading.Event()
    y = mg.ones(3) * w

    def write():
        with mg.inplace_policy("preserve"):
            for _ in range(400):
                y.__imul__(1.01)
        done.set()

    def read():
        while not done.is_set():
            total = mg.sum(y)
            value = total.item()
            # y is a multiple of w, so the derivative times w is the value.
            w.grad = None
            total.backward(retain_graph=True)
            assert w.grad.item() * 2.0 == pytest.approx(value, rel=1e-12)

    threads(write, read)


@pytest.mark.parametrize("entry", ["sum", "mean", "max"])
def test_a_write_while_a_total_is_taken(entry, monkeypatch):
    """The first write into a memory comes between the look at it and the reading of it, as another thread's may."""
    w = leaf(2.0)
    y = mg.ones(3) * w
    reduce = totals.reduce

    def interrupted(*args):
        monkeypatch.setattr(totals, "reduce", reduce)
        with mg.inplace_policy("preserve"):
            y.__imul__(3.0)
        return reduce(*args)

    monkeypatch.setattr(totals, "reduce", interrupted)
    total = getattr(mg, entry)(y)
    assert totals.reduce is reduce
    total.backward()
    assert w.grad.item() * 2.0 == total.item()


def test_what_is_kept_at_the_moment_of_a_write_is_known():
    for _ in range(80):
        w, x = leaf(np.ones(3)), mg.tensor([1.0, 2.0, 3.0])
        results = []

        def product():
            results.append(w * x)

        def write():
            try:
                x.__iadd__(100.0)
            except mg.InplaceError:
                pass

        threads(product, product, write)
        for y in results:
            w.grad = None
            y.backward(np.ones(3))
            np.testing.assert_array_equal(w.grad.numpy(), y.numpy())


def test_one_mode_object_in_two_threads():
    off = mg.no_grad()
    x = leaf([1.0])

    def work():
        for _ in range(300):
            with off:
                assert not (x * 2.0).requires_grad
            assert (x * 2.0).requires_grad

    threads(work, work)


def test_a_scalar_written_by_two_threads():
    for _ in range(100):
        s = mg.tensor(1.0)
        threads(lambda: s.__iadd__(1.0), lambda: s.__iadd__(5.0))
        assert s.item() == 7.0


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum], ids=lambda u: u.__name__)
def test_ufunc_methods_are_numpys(ufunc):
    table = np.array([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]])
    x = leaf(table)
    assert ufunc.reduce(x).tolist() == ufunc.reduce(table).tolist()
    assert ufunc.reduce(x, axis=1, keepdims=True).tolist() == ufunc.reduce(table, axis=1, keepdims=True).tolist()
    if ufunc in (np.add, np.multiply):
        assert ufunc.accumulate(x, axis=1).tolist() == ufunc.accumulate(table, axis=1).tolist()


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_softmax_and_logsumexp_of_nothing(shape):
    x = leaf(np.zeros(shape))
    y = mg.softmax(x)
    assert y.shape == shape
    y.sum().backward()
    assert x.grad.shape == shape
    assert mg.logsumexp(x, axis=-1).tolist() == np.full(shape[:-1], -np.inf if 0 in shape[-1:] else 0.0).tolist()
    assert mg.softmax(np.zeros(shape, "float32")).dtype == np.float32
