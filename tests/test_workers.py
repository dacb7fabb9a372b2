"""Work shared among threads: the same bits for every number of them, from many callers at once, and after a fork."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import buffers, codegen, compile, expr, run, totals, workers
from mutagrad.ops import OPS

N = 9 * codegen.PART + 17
RNG = np.random.default_rng(7)
VECTOR, MATRIX = RNG.normal(size=N), RNG.normal(size=(70, 700))
CUBE = RNG.normal(size=(5, 600, 40))


@pytest.fixture(autouse=True)
def all_work_is_shared(monkeypatch):
    before = mg.get_num_threads()
    monkeypatch.setattr(workers, "WORTH_SHARING", 0)
    mg.set_num_threads(3)
    yield
    mg.set_num_threads(before)


def x_and_a():
    x, a = expr.name("x"), expr.name("a")
    body = OPS["sin"](x) * a + x * x
    pulled = expr.pull(body, expr.const(1.0), ["x", "a"])
    return codegen.Kernel("sine_and_square", ["x", "a"], pulled, [codegen.Total(body, OPS["sum"])])


FUSED, CACHE = x_and_a(), {}


def fused(x, a):
    outs, found = totals.fused(FUSED, CACHE, [x, a], x.shape, x.dtype)
    return [*outs, np.array(found)]


def in_place(x):
    t = mg.tensor(x)
    t.sin_()
    t *= 0.5
    return t.numpy()


def gradient(x):
    t = mg.tensor(x, requires_grad=True)
    (mg.exp(t) * t).sum().backward()
    return t.grad.numpy()


PROGRAMS = {
    "sin": lambda: mg.sin(VECTOR).numpy(),
    "huge": lambda: mg.sin(np.where(np.arange(N) % 1500 == 0, 1e22, VECTOR)).numpy(),
    "add": lambda: (mg.tensor(MATRIX) + MATRIX[0]).numpy(),
    "strided": lambda: mg.exp(MATRIX[:, ::2]).numpy(),
    "transposed": lambda: (mg.tensor(MATRIX.T) * MATRIX.T).numpy(),
    "in place": lambda: in_place(VECTOR),
    "rows in place": lambda: in_place(MATRIX),
    "gradient": lambda: gradient(VECTOR),
    "sum": lambda: mg.sum(VECTOR).numpy(),
    "mean": lambda: mg.mean(MATRIX).numpy(),
    "rows": lambda: mg.sum(RNG.permutation(1) + MATRIX, axis=1).numpy(),
    "long rows": lambda: mg.sum(VECTOR[: 2 * (N // 2)].reshape(2, -1), axis=1).numpy(),
    "columns": lambda: mg.mean(MATRIX, axis=0).numpy(),
    "middle": lambda: mg.max(CUBE, axis=1).numpy(),
    "outer and inner": lambda: mg.sum(CUBE, axis=(0, 2)).numpy(),
    "fused": lambda: np.concatenate([np.ravel(r) for r in fused(VECTOR, VECTOR[::-1].copy())]),
    "fused rows": lambda: np.concatenate([np.ravel(r) for r in fused(MATRIX, MATRIX[:, :1])]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bits_for_every_number_of_threads(name):
    found = []
    for threads in (1, 2, 3, 7):
        mg.set_num_threads(threads)
        found.append(PROGRAMS[name]())
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_fused_totals_are_the_sums():
    for x, a in ((VECTOR, VECTOR[::-1].copy()), (MATRIX, MATRIX[:, :1]), (VECTOR[:5], VECTOR[5:10])):
        by_x, by_a, total = fused(x, a)
        np.testing.assert_allclose(by_x, np.cos(x) * a + 2 * x, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(by_a, np.sin(x) * np.ones_like(a), rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(total, np.sum(np.sin(x) * a + x * x), rtol=1e-13)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 1, 3)])
def test_fused_of_any_shape(shape):
    x = np.full(shape, 0.5)
    by_x, by_a, total = fused(x, np.full(shape, 2.0))
    assert by_x.shape == by_a.shape == shape
    np.testing.assert_allclose(total, x.size * (np.sin(0.5) * 2 + 0.25), rtol=1e-15)
    np.testing.assert_allclose(by_x, np.cos(x) * 2 + 1, rtol=1e-15)


def test_work_is_shared_and_small_work_is_not(monkeypatch):
    took = []
    work = workers.Job.work

    def watched(self):
        took.append((self, threading.current_thread().name))
        work(self)

    def of(function):
        """Who works on the jobs of one call; a worker may look late at one that is done."""
        before = {id(job) for job, _ in took}
        function()
        return {name for job, name in list(took) if id(job) not in before}

    monkeypatch.setattr(workers.Job, "work", watched)
    monkeypatch.setattr(workers, "WORTH_SHARING", 200_000)
    assert not of(lambda: mg.sin(np.ones(run.MANY + 1)))
    assert of(lambda: mg.tensor(np.ones(10**6)).sin_()) == {"mutagrad"}
    assert "MainThread" in of(lambda: mg.sin(np.ones(10**6)))
    mg.set_num_threads(1)
    assert of(lambda: mg.sin(np.ones(10**6))) == {"MainThread"}


def test_many_callers_at_once():
    """Field case C05: the same numbers as serial, no hang."""
    want = [PROGRAMS[name]() for name in PROGRAMS]
    wrong = []

    def run_all():
        for _ in range(10):
            for name, expected in zip(PROGRAMS, want, strict=True):
                if not np.array_equal(PROGRAMS[name](), expected):
                    wrong.append(name)

    callers = [threading.Thread(target=run_all) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
        assert not caller.is_alive()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_child_has_threads_of_its_own():
    want = mg.sin(VECTOR).numpy()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(30)
        same = np.array_equal(mg.sin(VECTOR).numpy(), want) and np.array_equal(in_place(VECTOR), in_place(VECTOR))
        os.write(write, b"right" if same and mg.sum(VECTOR).item() == mg.sum(VECTOR).item() else b"wrong")
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        assert answer.read() == "right"
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_fork_while_another_thread_writes():
    """The child finds no lock held by a thread that it has not."""
    stop = threading.Event()
    target = mg.tensor(VECTOR)

    def write():
        while not stop.is_set():
            target.sin_()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            child = os.fork()
            if not child:
                signal.alarm(20)
                in_place(VECTOR)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        writer.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_fork_while_another_thread_compiles():
    """It waits for the compiler and must not hold meanwhile what a node needs that is freed there."""
    array = np.ones(4)
    node = [mg.tensor(np.ones(4), requires_grad=True) * mg.asarray(array)]
    begun = threading.Event()

    def compile_kernel():
        with compile.lock:
            begun.set()
            time.sleep(0.2)
            node.clear()

    compiling = threading.Thread(target=compile_kernel)
    compiling.start()
    begun.wait()
    signal.alarm(20)
    try:
        child = os.fork()
        if not child:
            os._exit(0)
    finally:
        signal.alarm(0)
    compiling.join()
    assert os.waitpid(child, 0)[1] == 0
    assert array.flags.writeable


def test_an_interrupt_leaves_a_shared_write_whole(monkeypatch):
    """It is raised once the write is complete, and the graph says so."""
    wait = workers.Job.wait
    struck = []

    def interrupted(self):
        if not struck:
            struck.append(True)
            raise KeyboardInterrupt
        wait(self)

    x = mg.tensor(VECTOR, requires_grad=True)
    y = x * 1.0
    monkeypatch.setattr(workers.Job, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        y.sin_()
    np.testing.assert_array_equal(y.numpy(), mg.sin(VECTOR).numpy())
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), mg.cos(VECTOR).numpy())


def test_an_error_in_a_worker_reaches_the_caller():
    def fails(out):
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        workers.Shared(fails, [(0, 1)], 5)(np.empty(5))
    np.testing.assert_array_equal(PROGRAMS["sin"](), PROGRAMS["sin"]())


def test_a_worker_never_waits_for_the_lock(monkeypatch):
    """What is freed in a worker may hold the user's arrays read-only; who waits for the worker may hold the lock."""
    array = np.ones(4)
    buffer = mg.asarray(array)
    node = [mg.tensor(np.ones(4), requires_grad=True) * buffer]
    assert not array.flags.writeable

    def free(out):
        node.clear()
        gc.collect()

    done = []
    with buffers.lock:
        workers.Shared(free, [(0, 1)], 2).begin([np.empty(2)], done)
    assert len(done) == 1
    assert array.flags.writeable


def test_what_is_freed_waits_for_no_lock():
    """The collector may free a node in a thread that compiles, while another holds the lock and waits to compile."""
    array = np.ones(4)
    node = [mg.tensor(np.ones(4), requires_grad=True) * mg.asarray(array)]
    assert not array.flags.writeable
    with buffers.lock:
        other = threading.Thread(target=node.clear, daemon=True)
        other.start()
        other.join(20)
        assert array.flags.writeable


def test_an_interrupt_as_a_job_begins(monkeypatch):
    """Nothing is given back before the workers are done."""
    ran = []

    class Interrupted(list):
        def extend(self, steps):
            super().extend(steps)
            raise KeyboardInterrupt

    def slow(out):
        time.sleep(0.05)
        ran.append(out)

    done = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        workers.Shared(slow, [(0, 1)], 4).begin([np.empty(4)], done)
    assert len(done) == 1
    assert len(ran) == 4

    def refused(*args):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(workers, "_grow", refused)
    with pytest.raises(RuntimeError):
        workers.Shared(slow, [(0, 1)], 4).begin([np.empty(4)], [])
    assert len(ran) == 4


def test_the_number_changes_while_work_is_prepared():
    out = np.zeros(5)
    work = workers.Shared(lambda piece: piece.fill(1.0), [(0, 1)], 5)
    mg.set_num_threads(1)
    work(out)
    assert out.all()
    work.begin([out], done := [])
    assert len(done) == 1


def test_a_thread_that_cannot_start_is_not_counted(monkeypatch):
    class Broken(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(workers.threading, "Thread", Broken)
        mg.set_num_threads(len(workers._alive) + 2)
        with pytest.raises(RuntimeError):
            mg.sin(VECTOR)
        with pytest.raises(RuntimeError):
            mg.tensor(VECTOR).sin_()
    assert all(t.is_alive() for t in workers._alive)
    np.testing.assert_array_equal(in_place(VECTOR), PROGRAMS["in place"]())


def test_number_of_threads():
    mg.set_num_threads(np.int64(2))
    assert mg.get_num_threads() == 2
    for wrong, error in ((0, mg.RangeError), (-1, mg.RangeError), (1.0, mg.DTypeError), (True, mg.DTypeError)):
        with pytest.raises(error, match="set_num_threads"):
            mg.set_num_threads(wrong)
    assert mg.get_num_threads() == 2


@pytest.mark.parametrize(("given", "said"), [("3", "3"), ("zero", "whole number"), ("0", "whole number")])
def test_the_environment_sets_it(given, said):
    code = "import mutagrad as mg; print(mg.get_num_threads())"
    environment = {**os.environ, "MUTAGRAD_NUM_THREADS": given}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert said in (ran.stdout if given == "3" else ran.stderr.splitlines()[-1])
