"""Small programs that write into arrays: run by mutagrad, judged against the same program run by NumPy.

A program is a function `program(xp, x, w, ...)` in NumPy's style, returning what it computed. `xp` is
mutagrad or NumPy; the other arguments are the leaves. Writes stand in `with xp.write(t, ...)`, which names
the memory that changes: there a write may be refused, and then every byte of it must be as before.

The right answer is what NumPy computes, mutating for real, and the right gradient its central
differences. A refused write is undone in NumPy's run too, so a program goes on after a refusal and must
still be right. What is not recorded counts as a constant: NumPy's displaced runs replay it from the first.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scenarios_numpy import Array, OnNumpy, weights

import mutagrad as mg

# What may become of a program. LEAF is refused since it writes into a leaf; in a transform there are none.
EXACT, EITHER, REFUSED, LEAF = "exact", "exact or refused", "refused", "refused for a leaf"

X3, X4, X5, X6 = (np.array([0.3, 0.7, 1.2, 1.9, 0.45, 0.8][:n]) for n in (3, 4, 5, 6))
W2, W3, W4 = (np.array([1.5, -2.0, 0.5, 0.8][:n]) for n in (2, 3, 4))
M23 = np.array([[1.35, 0.69, 0.27], [0.23, 1.66, 1.84]])
M33 = np.array([[1.29, 1.51, 1.18], [1.88, 1.67, 0.2], [1.74, 0.26, 1.51]])
N33 = np.array([[-0.65, 0.73, 0.08], [-0.4, -0.16, -0.94], [-0.75, 0.34, 0.29]])

SCENARIOS: dict[str, Scenario] = {}

# Identities of programs met elsewhere about features that are not there, with the reason.
NOT_SUPPORTED = {
    "A09": "tensors have no .data",
    "A13": "tensors have no .data",
    "D19": "there is no cumsum_; np.cumsum(t, out=t) is X156",
    "E10": "tensors are not marked constant",
    "H24": "there is no as_strided, so no view whose elements overlap but a broadcast one",
    "H35": "there is no as_strided, so no view whose elements overlap but a broadcast one",
    "L06": "a raw pointer taken earlier is outside the promise of asarray",
    "M09": "there are no hooks",
    "M16": "there are no hooks",
    "T05": "np.errstate does not reach kernels",
    "W23": "there is no set_value",
}


@dataclass(frozen=True)
class Scenario:
    """One program and what may become of it.

    Attributes
    ----------
    sound : str
        EXACT: right under either policy. EITHER: under "refuse" it may be refused. REFUSED, LEAF: it must be.
    reference : callable or None
        Instead of NumPy's run, where that is not the right answer: the result as a function of the leaves.
    shared : bool
        The leaves wrap NumPy memory, which `xp.memory(name)` gives.
    resumes : bool
        The program can go on after a refused write.
    """

    id: str
    program: Callable[..., Any]
    leaves: dict[str, np.ndarray]
    sound: str
    reference: Callable[..., Any] | None = None
    shared: bool = False
    resumes: bool = True
    tolerance: float = 1e-6

    @property
    def title(self) -> str:
        """What it is about, in words."""
        return self.program.__name__.replace("_", " ")

    @property
    def on_tape(self) -> bool:
        """Whether it speaks of leaves, gradients or backward, which a transformed function does not have."""
        tape = {"backward", "grad", "requires_grad", "requires_grad_", "retain_grad", "memory"}
        return not tape.isdisjoint(_names(self.program.__code__))

    @property
    def differentiates_twice(self) -> bool:
        """Whether central differences of its gradient are its second derivative: nothing in it is cut."""
        cut = {"no_grad", "detach", "constant", "astype", "float32", "in_threads", "from_dlpack"}
        return not (self.on_tape or self.sound == REFUSED or cut & _names(self.program.__code__))


def _names(code: Any) -> set[str]:
    """The names that a function's code uses, and those of the functions inside it."""
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if hasattr(c, "co_names")))


def scenario(
    identity: str,
    sound: str = EXACT,
    *,
    reference: Callable[..., Any] | None = None,
    shared: bool = False,
    resumes: bool = True,
    tolerance: float = 1e-6,
    **leaves: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a program into the table, with the values of its leaves."""

    def enter(program: Callable[..., Any]) -> Callable[..., Any]:
        assert identity not in SCENARIOS | NOT_SUPPORTED, identity
        values = {k: v if isinstance(v, np.ndarray) else np.array(v, float) for k, v in leaves.items()}
        SCENARIOS[identity] = Scenario(identity, program, values, sound, reference, shared, resumes, tolerance)
        return program

    return enter


def outputs(result: Any) -> list[Any]:
    """The results of a program as a list."""
    if result is None:
        return []
    return list(result) if isinstance(result, tuple) else [result]


@dataclass
class Answer:
    """The right values, and the right gradient by each leaf."""

    values: list[np.ndarray]
    gradients: dict[str, np.ndarray]


@functools.cache
def answer(identity: str, refused: frozenset[int] = frozenset()) -> Answer:
    """What is right for a scenario some of whose writes were refused."""
    case = SCENARIOS[identity]

    def run(leaves: dict[str, np.ndarray], constants: list[Any] | None) -> tuple[float, list[Any], list[Any]]:
        xp = OnNumpy(refused, constants)
        private = {k: np.array(v, np.float64) for k, v in leaves.items()}
        if case.reference is not None:
            found = outputs(case.reference(**private))
        else:
            xp.memory = lambda name: private[name]
            found = outputs(case.program(xp, **{k: v.view(Array) for k, v in private.items()}))
        values = [np.asarray(v) for v in found]
        return xp.total + sum(float(np.sum(v * weights(v.shape))) for v in values), values, xp.constants

    _, values, constants = run(case.leaves, None)
    gradients = {}
    step = 1e-5
    for name, at in case.leaves.items():
        gradients[name] = np.zeros(at.shape)
        for i in np.ndindex(at.shape):
            ends = []
            for sign in (1, -1):
                moved = {k: np.array(v, np.float64) for k, v in case.leaves.items()}
                moved[name][i] += sign * step
                ends.append(run(moved, constants)[0])
            gradients[name][i] = (ends[0] - ends[1]) / (2 * step)
    return Answer(values, gradients)


# mutagrad's side


class Stopped(Exception):
    """A program that cannot go on after a refused write was stopped there."""


def state(t: Any) -> tuple[Any, ...]:
    """Everything of a tensor or array that a refused write must leave alone."""
    if isinstance(t, mg.Tensor):
        return t.numpy().tobytes(), t.version, t.requires_grad, t.is_leaf, t.shape, t.dtype
    return t.tobytes(), t.shape, t.dtype


class OnMutagrad:
    """`xp` of a run by mutagrad; `refused` holds the errors of refused writes by their number."""

    def __init__(self, resumes: bool = True) -> None:
        self.refused: dict[int, Exception] = {}
        self._resumes, self._count = resumes, 0
        self.memories: dict[str, np.ndarray] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(mg, name)

    def memory(self, name: str) -> np.ndarray:
        return self.memories[name]

    @contextlib.contextmanager
    def write(self, *watched: Any, recorded: bool = True) -> Iterator[None]:
        number, self._count = self._count, self._count + 1
        before = [state(t) for t in watched]
        try:
            yield
        except (mg.MutagradError, ValueError) as error:
            if not isinstance(error, mg.MutagradError) and "read-only" not in str(error):
                raise
            changed = [t for t, old in zip(watched, before, strict=True) if state(t) != old]
            if changed:
                raise AssertionError(f"a refused write changed {changed}") from error
            self.refused[number] = error
            if not self._resumes:
                raise Stopped from error

    def constant(self, value: Any) -> Any:
        """A value that is computed from tracked ones and still is none."""
        assert not value.requires_grad
        return value

    def in_threads(self, *functions: Callable[[], Any]) -> None:
        """Run functions, each in a thread of its own; raise the first error that one met."""
        errors: list[Exception] = []

        def guarded(function: Callable[[], Any]) -> None:
            try:
                function()
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def backward(self, result: Any, gradient: Any = None, **options: Any) -> None:
        result.backward(weights(result.shape) if gradient is None else gradient, **options)


def _loss(found: Sequence[Any]) -> Any:
    loss = 0.0
    for t in found:
        loss = loss + mg.sum(t * weights(t.shape))
    return loss


def run_on_tape(case: Scenario, xp: OnMutagrad) -> Answer:
    """Run a scenario with leaves that require grad, and backward."""
    leaves = {}
    for name, value in case.leaves.items():
        xp.memories[name] = value.copy()
        make = mg.asarray if case.shared else mg.tensor
        leaves[name] = make(xp.memories[name], requires_grad=True)
    found = outputs(case.program(xp, **leaves))
    if found:
        _loss(found).backward()
    gradients = {k: np.zeros(v.shape) if v.grad is None else v.grad.numpy() for k, v in leaves.items()}
    return Answer([t.numpy() for t in found], gradients)


def run_transformed(case: Scenario, xp: OnMutagrad) -> Answer:
    """Run a scenario as a function under `vjp`, whose arguments are private and no leaves."""

    def function(*args: Any) -> tuple[Any, ...]:
        return tuple(outputs(case.program(xp, **dict(zip(case.leaves, args, strict=True)))))

    found, pull = mg.vjp(function, *case.leaves.values())
    gradients = pull(tuple(weights(np.shape(v)) for v in found))
    return Answer(list(found), dict(zip(case.leaves, gradients, strict=True)))


def judge(case: Scenario, sound: str, run: Callable[[Scenario, OnMutagrad], Answer]) -> None:
    """Assert that a run was sound: refused where it may be, right everywhere else.

    A write that NumPy itself refuses, to an array it finds read-only, may always be refused.
    """
    xp = OnMutagrad(case.resumes)
    try:
        got = run(case, xp)
    except Stopped:
        got = None
    ours = [e for e in xp.refused.values() if isinstance(e, mg.MutagradError)]
    if sound == REFUSED:
        assert xp.refused, "must be refused, and was carried out"
    elif ours:
        if sound == EXACT or not all(isinstance(e, mg.InplaceError) for e in ours):
            raise AssertionError("refused, and must be carried out") from ours[0]
    if got is not None and not (xp.refused and case.reference is not None):
        compare(got, answer(case.id, frozenset(xp.refused)), case.tolerance)


def compare(got: Answer, want: Answer, tolerance: float) -> None:
    """Assert that values and gradients agree."""
    for value, right in zip(got.values, want.values, strict=bool(got.values)):
        np.testing.assert_allclose(value, right, rtol=tolerance, atol=tolerance, err_msg="value")
    for name, right in want.gradients.items():
        np.testing.assert_allclose(
            got.gradients[name], right, rtol=tolerance, atol=tolerance, err_msg=f"gradient by {name}"
        )
