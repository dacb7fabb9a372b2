"""The pool: memory is lent again, but never while anything can still see it; it is bounded, and given back."""

import contextlib
import copy
import ctypes
import gc
import os
import pickle
import queue
import random
import subprocess
import sys
import threading
import time
import traceback
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from test_programs import POLICIES, check

import mutagrad as mg
from mutagrad import fast, pool
from mutagrad.buffers import identity, owner_of
from mutagrad.pool import Pool

N = 20_000  # elements of the arrays here; 160 kB in float64
LINUX = sys.platform.startswith("linux")


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lender(clock):
    """A pool of its own, whose time stands still."""
    return Pool(1 << 30, clock=clock)


def address(array):
    return array.ctypes.data


# What it makes


@pytest.mark.parametrize("dtype", "?bhilqBHILQefd")
@pytest.mark.parametrize("shape", [N * 8, (N * 8,), (40, 50, 100), (1, N * 8, 1), (2, 0, N)])
def test_arrays_are_as_numpy_makes_them(lender, shape, dtype):
    dtype = np.dtype(dtype)
    made, want = lender.empty(shape, dtype), np.empty(shape, dtype)
    assert type(made) is np.ndarray
    assert made.dtype is want.dtype
    assert (made.shape, made.strides, made.nbytes) == (want.shape, want.strides, want.nbytes)
    for flag in ("c_contiguous", "f_contiguous", "aligned", "writeable"):
        assert getattr(made.flags, flag) == getattr(want.flags, flag)
    if made.nbytes >= pool.SMALL:
        assert address(made) % pool.ALIGNMENT == 0
        assert lender.stats().in_use >= made.nbytes


@pytest.mark.parametrize("dtype", [object, ">f8", "f8,i4", "U3", "M8[s]", "F"])
def test_what_is_no_plain_number_is_numpys_own(lender, dtype):
    assert lender.empty(N, np.dtype(dtype)).base is None
    assert lender.empty(pool.SMALL // 8 - 1, np.dtype(float)).base is None
    assert lender.stats().fresh == 0


@pytest.mark.parametrize("shape", [-1, (N, -1), (-N, -2)])
def test_negative_shapes_are_numpys_errors(lender, shape):
    with pytest.raises(ValueError, match="negative dimensions"):
        lender.empty(shape, np.dtype(float))
    assert lender.stats().in_use == 0


def test_arrays_copy_pickle_and_lock_as_usual(lender):
    made = lender.empty((100, 200), np.dtype(float))
    made[...] = np.arange(N).reshape(100, 200)
    for twin in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made)), made.copy(), np.array(made)):
        assert not np.may_share_memory(twin, made)
        np.testing.assert_array_equal(twin, made)
    view = made[1:]
    for a in (made, view):
        a.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 1.0
        a.flags.writeable = True
    with pytest.raises(ValueError, match="own its data"):
        made.resize((1, 1), refcheck=False)
    with pytest.raises(TypeError, match="copy the array"):
        copy.copy(made.base)


def test_copies_are_in_c_order(lender):
    given = np.arange(float(N)).reshape(100, 200)
    for a in (given, given.T, given[::-2, ::3], given[:2], given.astype("f4"), given.astype(object)):
        made = lender.copy(a)
        assert made.flags.c_contiguous
        assert made.dtype == a.dtype
        assert not np.may_share_memory(made, a)
        np.testing.assert_array_equal(made, a)


def test_at_most_an_eighth_is_wasted(lender):
    for nbytes in [*range(pool.SMALL, pool.SMALL + 50), *(int(1.037**k) for k in range(320, 500))]:
        before = lender.stats().in_use
        made = lender.empty(nbytes, np.dtype("b"))
        assert nbytes <= lender.stats().in_use - before <= 1.125 * nbytes
        del made


# Lending again


def test_memory_is_lent_again(lender):
    a, b = (lender.empty(N, np.dtype(float)) for _ in "ab")
    at = {address(a), address(b)}
    del a, b
    a, b = lender.empty((2, N), np.dtype("f4")), lender.empty(N * 8 - 7, np.dtype("b"))
    assert {address(a), address(b)} == at
    assert lender.stats()[3:] == (2, 2)


def test_what_came_back_last_is_lent_first(lender):
    """It is warm in the cache, and the others grow old."""
    held = [lender.empty(N, np.dtype(float)) for _ in range(3)]
    last = address(held[1])
    for k in (0, 2, 1):
        held[k] = None
    assert address(lender.empty(N, np.dtype(float))) == last


def test_tells_what_it_holds(lender):
    a = lender.empty(1 << 17, np.dtype(float))
    b = lender.empty(1 << 16, np.dtype(float))
    assert lender.stats() == (3 << 19, 0, 3 << 19, 0, 2)
    del a
    assert lender.stats() == (1 << 19, 1 << 20, 3 << 19, 0, 2)
    c = lender.empty(1 << 17, np.dtype(float))
    stats = lender.stats()
    assert stats == (3 << 19, 0, 3 << 19, 1, 2)
    assert repr(stats) == "MemoryStats(in_use=1.6 MB, idle=0.0 MB, peak=1.6 MB, recycled=1, fresh=2)"
    with pytest.raises(AttributeError):
        stats.idle = 1
    del b, c
    assert lender.stats() == (0, 3 << 19, 3 << 19, 1, 2)


class Shell:
    """Hands on a capsule, or what `__array_interface__` says, of an array it may hold."""

    def __init__(self, **given):
        vars(self).update(given)

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def raising(array):
    try:
        raise RuntimeError
    except RuntimeError as error:
        return error


def generating(array):
    yield
    yield array


def started(array):
    made = generating(array)
    next(made)
    return made


def buffers(array):
    found = []
    pickle.dumps(array, protocol=5, buffer_callback=found.append)
    return found


def from_traceback(error):
    (frame,) = [f for f, _ in traceback.walk_tb(error.__traceback__)]
    return frame.f_locals["array"]


# How something comes to see an array's memory, and how it reads it again when the array's own name is gone.
SEERS = {
    "view": (lambda a: a[5:], np.asarray),
    "view of views": (lambda a: a.reshape(100, 200)[3:, ::2].T[1:][::-1], np.asarray),
    "empty view": (lambda a: a[:0], lambda v: np.ndarray(N, float, v.base)),
    "other dtype": (lambda a: a.view("u1")[8:].view("f8"), np.asarray),
    "subclass": (lambda a: a.view(np.recarray), np.asarray),
    "masked array": (lambda a: np.ma.masked_array(a, copy=False), lambda m: m.data),
    "strided": (lambda a: np.lib.stride_tricks.as_strided(a, (10, 20), (80, 8)), np.asarray),
    "windows": (lambda a: np.lib.stride_tricks.sliding_window_view(a, 7), np.asarray),
    "stretched": (lambda a: np.broadcast_to(a, (2, N)), np.asarray),
    "flat": (lambda a: a.flat, lambda f: f.base),
    "nditer": (lambda a: np.nditer(a, ["external_loop"]), lambda i: i.operands[0]),
    "memoryview": (lambda a: memoryview(a), np.asarray),
    "part of a memoryview": (lambda a: memoryview(a)[7:].cast("B")[8:].cast("d"), np.asarray),
    "frombuffer": (lambda a: np.frombuffer(memoryview(a)), np.asarray),
    "frombuffer of the array": (lambda a: np.frombuffer(a, "f8", 10, 80), np.asarray),
    "ndarray on the array": (lambda a: np.ndarray(9, "f8", a, 80), np.asarray),
    "real part": (lambda a: a.view("c16").real, np.asarray),
    "dlpack": (lambda a: np.from_dlpack(a), np.asarray),
    "capsule": (lambda a: a.__dlpack__(), lambda c: np.from_dlpack(Shell(capsule=c))),
    "view's capsule": (lambda a: a[5:].__dlpack__(), lambda c: np.from_dlpack(Shell(capsule=c))),
    "interface": (lambda a: Shell(__array_interface__=a.__array_interface__, array=a[:]), np.asarray),
    "array on an interface": (lambda a: np.asarray(Shell(__array_interface__=a.__array_interface__, a=a)), np.asarray),
    "ctypes": (lambda a: a.ctypes, lambda c: np.ctypeslib.as_array(c.data_as(ctypes.POINTER(ctypes.c_double)), (9,))),
    "data_as": (
        lambda a: a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)),
        lambda p: np.ctypeslib.as_array(p, (N,)),
    ),
    "from_buffer": (lambda a: (ctypes.c_double * 100).from_buffer(a), np.asarray),
    "as_ctypes": (lambda a: np.ctypeslib.as_ctypes(a), np.asarray),
    "pickle buffer": (lambda a: pickle.PickleBuffer(a), lambda b: np.frombuffer(b)),
    "pickled buffers": (buffers, lambda found: np.frombuffer(found[0])),
    "loaded from buffers": (
        lambda a: pickle.loads(pickle.dumps(a, protocol=5, buffer_callback=(b := []).append), buffers=b),
        np.asarray,
    ),
    "block": (lambda a: a.base, lambda b: np.ndarray(N, float, b)),
    "array on the block": (lambda a: np.asarray(memoryview(a.base).cast("B").cast("d")[:N]), np.asarray),
    "traceback": (raising, from_traceback),
    "generator": (started, next),
    "tensor": (lambda a: mg.asarray(a), lambda t: t.numpy()),
    "tensor's view": (lambda a: mg.asarray(a)[5:], lambda t: t.numpy()),
    "tensor's numpy": (lambda a: mg.asarray(a).numpy()[5:], np.asarray),
    "detached": (lambda a: mg.asarray(a).detach()[2:], lambda t: t.numpy()),
    "kept value": (
        lambda a: (mg.ones(N, requires_grad=True) * mg.asarray(a)).sum(),
        lambda t: t._node.inputs[0].kept[0].array,
    ),
}


@pytest.mark.parametrize("name", SEERS)
def test_what_can_be_seen_is_not_lent_again(lender, name):
    see, read = SEERS[name]
    array = lender.copy(np.full(N, 7.0))
    seer = see(array)
    del array
    others = [lender.copy(np.full(N, 8.0)) for _ in range(3)]
    del others
    others = [lender.copy(np.full(N, 9.0)) for _ in range(5)]
    seen = read(seer)
    assert seen.size
    assert (seen == 7.0).all()
    assert lender.stats().in_use == 6 * _size(N * 8)
    del seen, seer, others
    gc.collect()  # ctypes and errors make cycles
    assert lender.stats().in_use == 0
    assert lender.stats().idle == 6 * _size(N * 8)


def _size(nbytes):
    probe = Pool(0)
    held = probe.empty(nbytes, np.dtype("b"))
    return probe.stats().in_use if held.size else 0


def test_cycles_hold_until_they_are_collected(lender):
    gc.collect()
    gc.disable()
    try:
        array = lender.copy(np.full(N, 7.0))
        cycle = [array[3:]]
        cycle.append(cycle)
        watched = Shell(cycle=cycle, seen=None)
        cycle.append(watched)
        del array, cycle, watched
        assert lender.stats().idle == 0
        gc.collect()
        assert lender.stats().in_use == 0
        assert lender.stats().idle > 0
    finally:
        gc.enable()


def test_a_finalizer_sees_what_it_held(lender):
    """The collector may finalize a block before others that hold it: what they do then must be safe."""
    found = []

    class Last:
        def __del__(self):
            other = lender.copy(np.full(N, 9.0))
            found.append((np.ndarray(N, float, self.block), other))

    array = lender.copy(np.full(N, 7.0))
    # Older objects are finalized first. An array in between would not be collected by itself, and would hold the block.
    last = Last()
    last.block, last.itself = array.base, last
    del array, last
    gc.collect()
    ((seen, other),) = found
    assert (seen == 7.0).all()
    del other
    others = [lender.copy(np.full(N, 8.0)) for _ in range(3)]
    assert (seen == 7.0).all()
    del seen, others
    found.clear()
    assert lender.stats().in_use == 0


# Threads and processes


def _tokens(lender, seed, rounds, inbox, outbox, wrong):
    """Fill arrays with a token of their own, hold them for a while in one way or another, and look at them again."""
    draw = random.Random(seed)
    held = []
    for k in range(rounds):
        token = seed * 1e6 + k
        array = lender.empty(draw.choice([9_000, 16_000, 16_384, 40_000]), np.dtype(float))
        array.fill(token)
        form = draw.randrange(4)
        seer = [array, array[3:], memoryview(array), np.frombuffer(memoryview(array)[5:])][form]
        if draw.random() < 0.1:
            cycle = Shell(seer=seer)
            cycle.itself = cycle
        held.append((token, seer))
        del array, seer
        if draw.random() < 0.2:
            outbox.put(held.pop(draw.randrange(len(held))))
        if draw.random() < 0.2:
            with contextlib.suppress(queue.Empty):
                held.append(inbox.get_nowait())
        if len(held) > 12:
            token, seer = held.pop(draw.randrange(len(held)))
            if not (np.asarray(seer) == token).all():
                wrong.append(token)
    for token, seer in held:
        if not (np.asarray(seer) == token).all():
            wrong.append(token)


@contextlib.contextmanager
def _hurried():
    """Threads switch and the collector runs as often as they can."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)


@pytest.mark.parametrize("limit", [1 << 30, 1 << 20])
def test_threads_never_share(limit):
    lender = Pool(limit, lasts=0.01)
    boxes = [queue.SimpleQueue() for _ in range(6)]
    wrong = []
    threads = [
        threading.Thread(target=_tokens, args=(lender, k + 1, 400, boxes[k], boxes[k - 1], wrong)) for k in range(6)
    ]
    with _hurried():
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong
    assert lender.stats().recycled > 100
    boxes.clear()
    gc.collect()
    # No count was lost.
    assert lender.stats().in_use == 0
    lender.give_back()
    assert lender.stats().idle == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_goes_on_by_itself():
    lender = Pool(1 << 30)
    wrong, ready = [], threading.Event()

    def work():
        for k in range(40):
            _tokens(lender, k + 1, 20, queue.SimpleQueue(), queue.SimpleQueue(), wrong)
            ready.set()

    thread = threading.Thread(target=work)
    mine = lender.copy(np.full(N, 7.0))
    with _hurried(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
        thread.start()
        ready.wait()
        children = []
        for _ in range(5):
            child = os.fork()
            if not child:
                bad = [0.0]
                try:
                    bad = []
                    _tokens(lender, 99, 50, queue.SimpleQueue(), queue.SimpleQueue(), bad)
                    bad += [1.0] * (not (mine == 7.0).all())
                    mine.fill(8.0)
                finally:
                    os._exit(len(bad) > 0)
            children.append(child)
        statuses = [_waited(child) for child in children]
        thread.join()
    assert statuses == [0] * 5
    assert not wrong
    assert (mine == 7.0).all()


def _waited(child):
    """The status of a child; one that hangs is ended."""
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.05)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "hangs"


def _script(text):
    return subprocess.run([sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, timeout=120)


def test_silent_at_shutdown():
    done = _script(
        "import atexit, builtins, sys, threading, time, numpy as np\n"
        "from mutagrad import pool\n"
        "pool.shared.limit, pool.shared.lasts = 1 << 20, 0.0\n"
        "make = lambda: pool.empty(20_000, np.dtype(float))\n"
        "held = [make() for _ in range(20)]\n"
        "builtins.held, sys.held, pool.held, np.held = make(), make(), make(), make()\n"
        "cycle = [make(), make().base]; cycle.append(cycle); threading.held = cycle\n"
        "def work():\n"
        "    while True:\n"
        "        make()\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "atexit.register(lambda kept=make(): make())\n"
        "time.sleep(0.05)\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Bounded, and given back


def test_idle_memory_is_bounded_and_the_oldest_goes_first(clock):
    size = _size(N * 8)
    lender = Pool(4 * size, clock=clock)
    held = [lender.empty(N, np.dtype(float)) for _ in range(9)]
    at = [address(a) for a in held]
    while held:
        clock.now += 0.1
        held.pop(0)
        assert lender._idle <= lender.limit
    assert lender.stats().idle == 4 * size
    assert {address(a) for a in [lender.empty(N, np.dtype(float)) for _ in range(4)]} == set(at[-4:])


def test_the_oldest_of_all_sizes_goes_first(clock):
    sizes = [9_500, 50_000, 20_000]
    lender = Pool(sum(_size(8 * n) for n in sizes), clock=clock)
    for n in sizes:
        lender.empty(n, np.dtype(float))
        clock.now += 0.1
    lender.empty(9_000, np.dtype(float))  # one too many
    assert lender.stats()[3:] == (0, 4)
    for n in sizes[1:]:
        lender.empty(n, np.dtype(float))
    assert lender.stats()[3:] == (2, 4)
    lender.empty(sizes[0], np.dtype(float))
    assert lender.stats()[3:] == (2, 5)


def test_what_is_larger_than_the_limit_is_not_kept(clock):
    lender = Pool(pool.SMALL, clock=clock)
    lender.empty(N, np.dtype(float))
    assert lender._idle == 0


@pytest.mark.parametrize("activity", ["request", "return", "stats"])
def test_what_was_idle_for_long_is_given_back(clock, lender, activity):
    held = lender.empty(1 << 15, np.dtype(float))
    tracemalloc.start()
    try:
        lender.empty(N, np.dtype(float))
        clock.now += 4.0
        recent = [lender.empty(1 << 16, np.dtype(float))]
        recent.clear()
        assert lender.stats().idle == _size(8 * N) + (1 << 19)
        clock.now += 4.0
        before = tracemalloc.get_traced_memory()[0]
        if activity == "request":
            held = lender.empty(1 << 14, np.dtype(float)), held
        elif activity == "return":
            del held
        else:
            lender.stats()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    if activity == "request":
        after -= 1 << 17
    assert before - after > 0.9 * 8 * N
    assert lender._idle == (1 << 19) + (1 << 18) * (activity == "return")


@pytest.mark.skipif(not LINUX, reason="reads /proc")
def test_the_system_gets_it_back(clock, lender):
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    made = lender.empty(10_000_000, np.dtype(float))
    made.fill(1.0)
    del made
    full = resident()
    clock.now += 10.0
    lender.stats()
    assert full - resident() > 70_000_000


@pytest.mark.skipif(not LINUX, reason="limits the address space")
def test_a_request_that_fails_is_tried_again_without_idle_memory():
    done = _script(
        "import resource, numpy as np\n"
        "from pathlib import Path\n"
        "from mutagrad import pool\n"
        "lender = pool.Pool(1 << 40)\n"
        "used = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 600_000_000,) * 2)\n"
        "lender.empty(400_000_000, np.dtype('b'))\n"
        "print(lender.stats().idle >= 400_000_000)\n"
        "held = lender.empty(300_000_000, np.dtype('b'))\n"
        "print(lender.stats().idle)\n"
        "try:\n"
        "    lender.empty(700_000_000, np.dtype('b'))\n"
        "except MemoryError:\n"
        "    print(lender.stats().in_use < 310_000_000)\n"
    )
    assert (done.stdout.split(), done.stderr) == (["True", "0", "True"], "")


# In the library


@pytest.mark.skipif(not LINUX, reason="counts page faults")
def test_a_second_run_pays_no_fresh_pages():
    import resource

    x = mg.tensor(np.linspace(0.0, 1.0, 5_000_000))  # so large that the system's allocator does not recycle

    def run():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        y = x * 2.0
        z = [y * y, y + x, y - x, y * 0.5]
        del y, z
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    run()
    before = mg.memory_stats()
    assert min(run(), run()) < 10
    after = mg.memory_stats()
    assert (after.recycled - before.recycled, after.fresh - before.fresh) == (10, 0)


def test_gradients_of_big_arrays(monkeypatch):
    """The same numbers, in the caller's own writable memory, as without the pool."""

    def f(u, w):
        v = u * w
        v[1:] += v[:-1] * v[1:]
        v[100:200] = w[:100]
        v.sin_()
        return mg.sum(v * w + mg.exp(u[::2])[0] * v[3])

    u, w = np.linspace(0.1, 0.9, N), np.linspace(-1.0, 1.0, N)
    value, (gu, gw) = mg.value_and_grad(f, argnums=(0, 1))(u, w)
    before = gu.copy(), gw.copy()
    gu += 1.0
    value_again, again = mg.value_and_grad(f, argnums=(0, 1))(u, w)
    np.testing.assert_array_equal(gw, before[1])
    np.testing.assert_array_equal(gu, before[0] + 1.0)
    monkeypatch.setattr(pool, "SMALL", 1 << 60)
    value_plain, plain = mg.value_and_grad(f, argnums=(0, 1))(u, w)
    assert value == value_again == value_plain
    for got, want in zip((*before, *again), plain * 2, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_kept_array_is_locked_and_writable_again():
    array = pool.copy(np.ones(N))
    view = array[5:]
    x = mg.tensor(np.ones(N - 5), requires_grad=True)
    y = x * mg.asarray(view)
    assert not array.flags.writeable
    assert not view.flags.writeable
    y.sum().backward()
    del y
    view[0] = array[0] = 2.0


def test_memory_is_known_through_buffers():
    array = pool.copy(np.zeros(N))
    through = np.frombuffer(memoryview(array[2:]))
    assert owner_of(array[3:].reshape(-1, 1)) is array
    assert identity(owner_of(through)) == identity(array) != identity(pool.copy(np.zeros(N)))
    whole, part = mg.asarray(array), mg.asarray(through)
    part += 1.0
    assert whole.sum().item() == N - 2
    kept = whole * mg.ones(N, requires_grad=True)
    with pytest.raises(mg.InplaceError, match="still needed"):
        part += 1.0
    del kept


@pytest.mark.parametrize("policy", POLICIES)
def test_random_programs_in_recycled_memory(policy, monkeypatch):
    monkeypatch.setattr(pool, "SMALL", 9)
    monkeypatch.setattr(fast, "MANY", 0)
    check(policy, max_examples=30, derandomize=True)
