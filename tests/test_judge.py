"""The in-place contract, rule by rule: each refusal names its cause and the ways out, and changes nothing."""

import gc
import signal
import sys
import threading
import time

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import buffers
from mutagrad.record import inside
from mutagrad.testing import unchanged


def leaf(values=(0.3, 0.7, 1.2)):
    return mg.tensor(list(values), requires_grad=True)


def refused(match, *tensors, error=mg.InplaceError):
    class Both:
        def __enter__(self):
            self.same = unchanged(*tensors)
            self.same.__enter__()
            self.raises = pytest.raises(error, match=match)
            return self.raises.__enter__()

        def __exit__(self, *exc):
            caught = self.raises.__exit__(*exc)
            self.same.__exit__(None, None, None)
            return caught

    return Both()


# Leaf


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.sin_(),
        lambda x: x.__iadd__(1.0),
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x[1:].__imul__(2.0),
        lambda x: x.reshape(3, 1).fill_(1.0),
        lambda x: np.sin(mg.ones(3), out=x),
        lambda x: x.copy_(mg.ones(3)),
        lambda x: x.zero_(),
        lambda x: x.masked_fill_(x > 0.5, 0.0),
        lambda x: mg.add_at(x, [0], 1.0),
        lambda x: x.__setitem__([0, 1], 1.0),
        lambda x: np.copyto(x, np.ones(3)),
    ],
)
def test_every_writer_refuses_a_leaf(write):
    x = leaf()
    with refused("leaf that requires grad", x):
        write(x)
    with mg.no_grad():
        write(x)
    assert x.version == 1
    assert x.is_leaf
    (x * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy())


def test_the_first_overwrite_is_refused_and_both_updates_work():
    x = leaf()
    with refused(r"x = x\.sin\(\)", x) as caught:
        x.sin_()
    assert "sin_ cannot overwrite x (float64, shape (3,))" in str(caught.value)
    (x * x).sum().backward()
    g = x.grad
    y = x - 0.1 * g
    np.testing.assert_allclose(y.numpy(), x.numpy() * 0.8)
    with pytest.raises(mg.GradientError, match=r"x = x - lr \* g makes a new tensor.*with mg.no_grad"):
        _ = y.grad
    with mg.no_grad():
        x -= 0.1 * g
    np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_leaf_through_views_and_shared_memory():
    arr = np.array([1.0, 2.0, 3.0, 4.0])
    x = mg.asarray(arr).requires_grad_()
    again = mg.asarray(arr[2:])
    with mg.no_grad():
        view = x[::2]
    for t in (again, view, x[:1]):
        with refused("leaf", x, t):
            t += 1.0
    other = mg.asarray(np.zeros(3))
    other += 1.0


def test_detach_shares_bytes_but_not_history():
    x = leaf()
    y = x + 0.0
    d = y.detach()
    d *= 2.0
    np.testing.assert_allclose(y.numpy(), [0.6, 1.4, 2.4])
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(3))
    x.detach().add_(1.0)  # not recorded: the leaf's value is the new one
    assert x.version == 1
    assert x.is_leaf


# Kept values


def test_message_names_op_target_line_and_operand():
    x = leaf()
    total = x + 1.0
    y = mg.sin(total)
    with refused("old value is still needed", total, y) as caught:
        total *= 2.0
    text = str(caught.value)
    assert "multiply_ cannot overwrite total (float64, shape (3,))" in text
    line = sys._getframe().f_code.co_firstlineno + 3
    assert f"sin        test_judge.py:{line}   keeps total for its gradient" in text
    assert "total = total.clone()" in text
    assert 'inplace_policy("preserve")' in text
    assert "del" in text


def test_only_true_overlap_counts():
    x = mg.tensor(np.arange(1.0, 9.0), requires_grad=True)
    t = x + 0.0
    y = t[::2] * t[::2]
    t[1::2] = 0.0
    t[1:1] = 5.0
    t[[1, 3]] = 1.0
    t[mg.tensor([False, True] * 4)] *= 3.0
    mg.add_at(t, [1, 1], 1.0)
    for write in (lambda: t.__setitem__(0, 0.0), lambda: t.__setitem__([1, 2], 0.0), lambda: mg.add_at(t, [4], 1.0)):
        with refused("still needed", t, y):
            write()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [2, 0, 6, 0, 10, 0, 14, 0])


def test_no_clash_once_the_result_is_gone_or_released():
    x = leaf()
    t = x + 0.0
    y = t * t
    del y
    t += 1.0
    y = (t * t).sum()
    y.backward()
    t += 1.0
    with mg.no_grad():
        z = t * t
    t += 1.0
    assert z is not None


def test_also_under_no_grad_and_through_every_alias():
    x = leaf()
    y = x * x
    for alias in (x, x.detach(), x[:2], x.reshape(3, 1)):
        with mg.no_grad(), refused("still needed", x):
            alias += 1.0
    y.sum().backward()
    with mg.no_grad():
        x += 1.0


def test_constants_and_index_arrays():
    x, k = leaf(), mg.tensor([1.0, 2.0, 3.0])
    i, mask, raw = mg.tensor([2, 0]), mg.tensor([True, False, True]), np.array([2.0, 2.0, 2.0])
    y = x * k
    with refused("still needed", k):
        k += 1.0
    z = x[i].sum() + x[mask].sum() + (x * raw).sum()
    i[:] = 1
    mask[:] = False
    raw[:] = 0.0
    (y.sum() + z).backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 + 1 + 1 + 2, 2 + 2, 3 + 1 + 1 + 2])


def test_preserve_moves_what_is_kept():
    x = leaf()
    with mg.inplace_policy("preserve"):
        t = x + 0.0
        y = mg.sin(t)
        v = t[1:]
        z = v * v
        t.exp_()
        y *= t
        t[0] = 7.0
    (y.sum() + z.sum()).backward()
    a = np.array([0.3, 0.7, 1.2])
    want = np.cos(a) * np.exp(a) + np.sin(a) * np.exp(a)
    want[1:] += 2 * a[1:]
    np.testing.assert_allclose(x.grad.numpy(), want)


def test_explicit_policy_wins_inside_a_transform():
    def f(a):
        t = a + 0.0
        y = t * t
        with mg.inplace_policy("refuse"), pytest.raises(mg.InplaceError):
            t += 1.0
        t += 1.0
        return mg.sum(y * t)

    a = np.array([1.0, 2.0])
    np.testing.assert_allclose(mg.grad(f)(a), 3 * a**2 + 2 * a)


def test_an_in_place_result_gives_way_to_the_next_write():
    x = leaf()
    t = x + 0.0
    t.exp_()
    t.tanh_()
    t.sigmoid_()
    t *= t
    t.sum().backward()
    a = np.array([0.3, 0.7, 1.2])
    e = np.exp(a)
    h = np.tanh(e)
    s = 1 / (1 + np.exp(-h))
    np.testing.assert_allclose(x.grad.numpy(), 2 * s * s * (1 - s) * (1 - h * h) * e)


def test_second_derivatives_through_views_and_writes():
    from mutagrad.testing import gradcheck, gradgradcheck

    def stencil(x, w):
        t = x * 1.0
        t[1:-1] += 0.25 * (t[2:] - 2.0 * t[1:-1] + t[:-2])
        t[::2] *= w
        t[[0, 1, 1]] = w * t[2]
        v = t.reshape(2, 3).T
        v[1] = mg.sin(v[0]) * v[2]
        mg.add_at(t, [0, 0, 4], w * w)
        t[t > 10.0] = 0.0
        mg.diagonal(v)[...] = w[:2] * t[5]
        return t * t

    x, w = np.array([0.3, -0.7, 1.2, 0.5, 0.9, -0.4]), np.array([0.8, -1.1, 0.6])
    gradcheck(stencil, [x, w])
    gradgradcheck(stencil, [x, w])


def test_shared_reshaped_cotangents_are_not_written_twice():
    x, y = leaf(), mg.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    t = x + 0.0
    u = t + y
    (u * u + t * 3.0).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * (x.numpy() + y.numpy()[0]) + 3)
    np.testing.assert_allclose(y.grad.numpy(), 2 * (x.numpy() + y.numpy()))


# Shape, dtype, writable, captured


def test_shape_dtype_and_writable():
    t = mg.zeros(3)
    with refused("shape", t, error=mg.ShapeError):
        t += np.ones((2, 3))
    with refused("shape", t, error=mg.ShapeError):
        t[:2] = np.ones(3)
    with refused("shape", t, error=mg.ShapeError):
        np.sum(mg.ones((2, 2)), axis=0, out=t)
    with refused("shape", t, error=mg.ShapeError):
        np.sum(mg.ones(2), out=t)
    np.add(mg.ones(1), 1.0, out=t)
    np.testing.assert_array_equal(t.numpy(), [2, 2, 2])
    i = mg.tensor([1, 2, 3])
    with refused("int64", i, error=mg.DTypeError):
        i += 0.5
    with refused("int64", i, error=mg.DTypeError):
        i[0] = 1.7
    b = mg.broadcast_to(t, (2, 3))
    with refused("broadcast view", t, b):
        b += 1.0
    frozen = np.ones(3)
    frozen.flags.writeable = False
    r = mg.asarray(frozen)
    with refused("read-only", r):
        r += 1.0
    with refused("out of bounds", t, error=mg.RangeError):
        t[[0, 99]] = 1.0
    with refused("out of bounds|out of range", t, error=mg.RangeError):
        t[5] = 1.0
    with refused("boolean|mask|index", t, error=mg.RangeError):
        t[mg.tensor([True, False, True, True])] = 0.0


def test_one_element_is_a_number_as_in_numpy():
    x = leaf()
    t = x * 1.0
    first = t[0]
    t[0], t[1] = t[1], t[0]
    np.testing.assert_array_equal(t.numpy(), [0.7, 0.3, 1.2])
    first += 5.0
    t[-1] *= t[0] * first
    np.testing.assert_allclose(t.numpy(), [0.7, 0.3, 1.2 * 0.7 * 5.3])
    (t * mg.tensor([1.0, 10.0, 100.0])).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [10 + 100 * 1.2 * 0.7, 1 + 100 * 1.2 * 5.3, 100 * 0.7 * 5.3])
    view = t[0, ...]
    assert np.shares_memory(view.numpy(), t.numpy())


def test_captured_tensors_take_numbers_only():
    box = mg.zeros(3)

    def f(a):
        box[...] = a * a
        return mg.sum(box)

    with refused("made outside", box):
        mg.grad(f)(np.ones(3))

    def g(a):
        box[...] = (a * 2.0).detach()
        return mg.sum(a * a)

    np.testing.assert_array_equal(mg.grad(g)(np.ones(3)), 2 * np.ones(3))
    np.testing.assert_array_equal(box.numpy(), 2 * np.ones(3))


def test_arguments_are_private():
    a = np.array([1.0, 2.0])

    def f(x):
        x *= x
        x[0] = 5.0
        return mg.sum(x)

    np.testing.assert_array_equal(mg.grad(f)(a), [0.0, 4.0])
    np.testing.assert_array_equal(a, [1.0, 2.0])
    t = mg.tensor(a, requires_grad=True)
    g = mg.grad(f)(t)
    assert isinstance(g, mg.Tensor)
    np.testing.assert_array_equal(t.numpy(), a)
    g.sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), [0.0, 2.0])


# Shared NumPy memory


def test_shared_arrays_are_locked_while_kept():
    arr = np.array([1.0, 2.0, 3.0])
    part = arr[1:]
    x = mg.asarray(arr).requires_grad_()
    same = mg.asarray(part)
    y = x * x
    z = x * x
    for a in (arr, part):
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 9.0
    del y
    assert not arr.flags.writeable
    z.sum().backward()
    assert arr.flags.writeable
    assert part.flags.writeable
    arr[0] = 9.0
    assert x.numpy()[0] == 9.0
    with mg.no_grad():
        same[0] = 7.0
    assert arr[1] == 7.0


def test_two_wraps_of_one_memory_share_history():
    arr = np.zeros(4)
    a, b = mg.asarray(arr), mg.asarray(arr[::-1])
    w = leaf((1.0, 2.0, 3.0, 4.0))
    a += w
    (b * mg.arange(4.0)).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [3, 2, 1, 0])


def test_wrapping_locked_memory_again_stays_writable_for_us():
    arr = np.arange(6.0).reshape(2, 3)
    x = mg.asarray(arr)
    w = leaf()
    y = x[0] * w
    again = mg.asarray(arr)
    assert not arr.flags.writeable
    again[1] = 5.0
    np.testing.assert_array_equal(arr[1], [5, 5, 5])
    with refused("still needed", x):
        again[0] = 1.0
    y.sum().backward()
    assert arr.flags.writeable


def test_windows_made_by_strides_lead_to_their_owner():
    arr = np.arange(6.0)
    x = leaf()
    y = x * mg.asarray(arr)[:3]
    strided = mg.asarray(np.lib.stride_tricks.as_strided(arr, (3,), (16,)))
    with refused("still needed", strided):
        strided[0] = 9.0
    y.sum().backward()
    sliding = mg.asarray(np.lib.stride_tricks.as_strided(arr, (5, 2), (8, 8)))
    assert not np.shares_memory(sliding.numpy(), arr)


def test_a_numpy_view_that_comes_back_is_known():
    x = leaf()
    t = mg.ones(3)
    back = mg.asarray(t.numpy())
    y = x * back
    with refused("still needed", t):
        t += 1.0
    y.sum().backward()
    tracked = x * 2.0
    assert not mg.asarray(tracked.numpy()).requires_grad


def test_second_derivatives_keep_what_they_share():
    """A gradient's graph keeps values of the first graph; the judge knows of it after that graph is gone."""
    x = leaf()
    t = x * 1.0
    y = (t * t * t).sum()
    y.backward(create_graph=True)
    g = x.grad
    x.grad = None
    del y
    with refused("still needed", t):
        t += 1.0
    with mg.inplace_policy("preserve"):
        t += 1.0
    g.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * x.numpy())


# Threads and interrupts


def test_threads_adding_in_place_agree_with_their_gradient():
    x = leaf()
    w = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    t = x + 0.0

    def add():
        for _ in range(500):
            t.__iadd__(w)

    threads = [threading.Thread(target=add) for _ in range(4)]
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(old)
    np.testing.assert_allclose(t.numpy(), x.numpy() + 2000 * w.numpy())
    assert t.version == 2000
    t.sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), 2000 * np.ones(3))


class Stop(BaseException):
    pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_interrupts_leave_values_and_gradients_in_agreement():
    def strike(*_):
        raise Stop

    old = signal.signal(signal.SIGALRM, strike)
    struck = 0
    try:
        for attempt in range(150):
            w = leaf()
            t = mg.zeros(3)
            v = t[:2]
            try:
                signal.setitimer(signal.ITIMER_REAL, 20e-6 + 7e-6 * attempt)
                for _ in range(200):
                    t += w
                    v += w[1:]
                time.sleep(0.1)
            except Stop:
                struck += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            if not t.requires_grad:
                assert not t.numpy().any()
                continue
            t.sum().backward()
            whole = w.grad.numpy()[0]
            part = w.grad.numpy()[2]
            expected = np.array([0.3 * whole + 0.7 * (part - whole), 0.7 * whole + 1.2 * (part - whole), 1.2 * whole])
            np.testing.assert_allclose(t.numpy(), expected, atol=1e-12)
            assert t.version == whole + (part - whole)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert struck > 100


def test_interrupts_at_every_line_of_a_write():
    """A trace function raises at each line in turn; value and history must agree afterwards."""
    import mutagrad.write as module

    for line in range(1, 200):
        w = leaf()
        t = mg.zeros(3)
        count = [0]

        def trace(frame, event, arg):
            if frame.f_code.co_filename != module.__file__:
                return None
            if event == "line":
                count[0] += 1
                if count[0] == line:
                    sys.settrace(None)
                    raise Stop
            return trace

        sys.settrace(trace)
        try:
            t += w
            done = True
        except Stop:
            done = False
        finally:
            sys.settrace(None)
            # Raised at the line of a `with` that is being left, the exception skips its exit; signals cannot.
            while buffers.lock._is_owned():
                buffers.lock.release()
        written = bool(t.numpy().any())
        assert written == t.requires_grad
        assert t.version == int(written)
        if written:
            t.sum().backward()
            np.testing.assert_array_equal(w.grad.numpy(), np.ones(3))
        if done:
            break
    assert done
    assert line > 20


def test_an_interrupt_right_after_a_kernel():
    """Whatever Python is called on the way back, what was written is known to be."""
    for event in range(1, 100):
        w, t = mg.tensor(np.ones((2, 3)), requires_grad=True), mg.zeros((2, 3))
        count = [0]

        def trace(frame, what, arg):
            if not inside(frame.f_code):
                return None
            if what == "return" and t._array.any():
                count[0] += 1
                if count[0] == event:
                    sys.settrace(None)
                    raise Stop
            return trace

        sys.settrace(trace)
        try:
            t += w
            done = True
        except Stop:
            done = False
        finally:
            sys.settrace(None)
            while buffers.lock._is_owned():
                buffers.lock.release()
        assert t.numpy().all()
        assert t.requires_grad
        assert t.version == 1
        if done:
            break
    assert done
    assert event > 1


# Scale


def test_a_loop_of_small_writes_costs_n():
    def loop(n):
        w = mg.tensor(np.ones(n), requires_grad=True)
        out = mg.zeros(n)
        best = []
        gc.collect()
        start = time.perf_counter()
        for i in range(n):
            out[i] = w[i] * 2.0
        out.sum().backward()
        best.append(time.perf_counter() - start)
        np.testing.assert_array_equal(w.grad.numpy(), 2 * np.ones(n))
        return min(best) / n

    loop(100)
    small = min(loop(500) for _ in range(3))
    large = loop(8000)
    assert large < 4 * small


def test_a_loop_of_small_kept_windows_costs_n():
    def loop(n):
        w = mg.tensor(np.ones((n, 2)), requires_grad=True)
        base = w + 0.0
        results = []
        start = time.perf_counter()
        for i in range(n):
            results.append(base[i] * base[i])
            if i:
                base.detach()[i - 1 : i - 1] = 0.0
        for i in range(0, n, 2):
            with pytest.raises(mg.InplaceError) if i % 1000 == 0 else mg.no_grad():
                if i % 1000 == 0:
                    base[i] = 0.0
        return (time.perf_counter() - start) / n

    loop(200)
    assert loop(8000) < 4 * min(loop(1000) for _ in range(2))


def test_writing_in_place_allocates_nothing_of_the_size():
    import tracemalloc

    t = mg.zeros(2_000_000)
    x = mg.tensor(np.ones(2_000_000), requires_grad=True)
    t += 1.0
    u = x * 1.0
    mg.ones(3).sin_()
    tracemalloc.start()
    t += 1.0
    _, peak = tracemalloc.get_traced_memory()
    assert peak < 100_000
    tracemalloc.reset_peak()
    start, _ = tracemalloc.get_traced_memory()
    u.sin_()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - start < 1.1 * u.nbytes


def outdated_by_whole_overwrite(c, x):
    v = c * x
    v[()] = x


def outdated_view(c, x):
    v = c * x
    w = v[1:]
    assert w.requires_grad  # its node is read
    v.zero_()
    return w


def outdated_copy(c, x):
    v = c * x
    v @= mg.eye(3)
    v.zero_()


@pytest.mark.parametrize("program", [outdated_by_whole_overwrite, outdated_view, outdated_copy])
def test_history_that_was_overwritten_keeps_nothing(program):
    c, x = mg.ones(3), mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    alive = program(c, x)
    c += 1.0
    assert c.tolist() == [2.0, 2.0, 2.0]
    del alive


def test_an_overwrite_in_another_order_leaves_nothing_of_what_was_there():
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    c = mg.ones(3)
    y = c * x
    y.sum().backward()
    y[::-1] = x
    c += 1.0  # nobody keeps it
    (y * mg.tensor([1.0, 10.0, 100.0])).sum().backward()  # what was released is not reached
    assert x.grad.tolist() == [101.0, 11.0, 2.0]
    y[::-1] = 0.0
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [101.0, 11.0, 2.0]
