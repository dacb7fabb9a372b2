"""Random programs of ops, views, writes, modes and backward calls, as a Hypothesis state machine; needs `hypothesis`.

It is `mg.testing.programs`. Each step is one statement, run on tensors and by a plain NumPy interpreter: after
each, every variable's value must be the interpreter's, and at the end every gradient that of central differences of
the whole program. A write that is refused must have changed nothing. A failing program is printed as Python.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from . import statements, writing
from .errors import InplaceError
from .interpreter import Interpreter, Statement, differentiate
from .modes import Switch, policy
from .operands import dtype_of, raw, shape_of
from .testing import unchanged
from .transforms import grad

__all__ = ["Programs"]

HEADER = """\
import numpy as np
import mutagrad as mg


def weigh(array):
    return (array * np.cos(1.0 + np.arange(array.size)).reshape(array.shape)).sum()

"""
SHAPES = [(3,), (2, 3), (3, 3), (), (1, 3), (2, 1)]
# What a gradient may differ by from differences, relative to an element and to the largest of its leaf; what a
# value may differ by from NumPy's after one statement.
TOLERANCE = {np.dtype(np.float64): (1e-4, 1e-6, 1e-11), np.dtype(np.float32): (1e-2, 2e-3, 2e-5)}


@st.composite
def _modes(draw: Any, statement: Statement) -> Statement:
    """The statement inside no block, or inside `no_grad()` or a policy's."""
    block = draw(st.sampled_from([None] * 6 + ["no_grad", "no_grad", "refuse", "preserve"]))
    if block == "no_grad":
        return dataclasses.replace(statement, recorded=False)
    return dataclasses.replace(statement, policy=block)


class Programs(RuleBasedStateMachine):
    """A random program; each rule adds a statement of one kind.

    Attributes
    ----------
    policy : {None, "refuse", "preserve"}
        The in-place policy around the whole program; set it in a subclass.

    Examples
    --------
    >>> from hypothesis import settings
    >>> from hypothesis.stateful import run_state_machine_as_test
    >>> import mutagrad as mg
    >>> class Preserving(mg.testing.programs.Programs):
    ...     policy = "preserve"
    >>> run_state_machine_as_test(
    ...     Preserving, settings=settings(max_examples=1, stateful_step_count=5, derandomize=True, deadline=None)
    ... )
    """

    policy: ClassVar[str | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.done: list[Statement] = []
        self.leaves: dict[str, np.ndarray] = {}
        self.others: dict[str, np.ndarray] = {}
        self.namespace: dict[str, Any] = {}
        self.reference = Interpreter({})
        self.checks: list[str] = []
        self.failed = False
        self.tolerance = (0.0, 0.0, 0.0)

    @initialize(data=st.data())
    def start(self, data: Any) -> None:
        """Draw the leaves."""
        dtypes = data.draw(st.sampled_from(["dd", "dd", "dd", "ff", "df"]))
        for k, letter in enumerate(dtypes):
            shape = data.draw(st.sampled_from(SHAPES))
            seed = data.draw(st.integers(0, 1000))
            values = np.random.default_rng(seed).uniform(-1.5, 1.5, shape).round(2)
            self.leaves[f"x{k}"] = np.asarray(values, letter)
        self.tolerance = max(TOLERANCE[a.dtype] for a in self.leaves.values())
        self.others["c"] = np.zeros((3, 3), dtypes[0])
        self.reference = Interpreter(self.leaves, self.others)
        exec(HEADER, self.namespace)
        for line in self.opening():
            exec(line, self.namespace)

    def opening(self) -> list[str]:
        """The lines that make the variables at the start."""
        made = [
            f"{n} = mg.tensor({np.round(a.astype(float), 2).tolist()}, dtype={a.dtype.name!r}, requires_grad=True)"
            for n, a in self.leaves.items()
        ]
        return made + [f"{n} = mg.zeros({a.shape}, dtype={a.dtype.name!r})" for n, a in self.others.items()]

    # Rules

    @rule(data=st.data())
    def elementwise(self, data: Any) -> None:
        self.step(data.draw(statements.elementwise(self.reference).flatmap(_modes)))

    @rule(data=st.data())
    def single(self, data: Any) -> None:
        self.step(data.draw(statements.single(self.reference).flatmap(_modes)))

    @rule(data=st.data())
    def pair(self, data: Any) -> None:
        self.step(data.draw(statements.pair(self.reference).flatmap(_modes)))

    @rule(data=st.data())
    def join(self, data: Any) -> None:
        self.step(data.draw(statements.join(self.reference).flatmap(_modes)))

    @rule(data=st.data())
    def view(self, data: Any) -> None:
        self.step(data.draw(statements.view(self.reference).flatmap(_modes)))

    @rule(data=st.data())
    def gather(self, data: Any) -> None:
        self.step(data.draw(statements.gather(self.reference).flatmap(_modes)))

    @rule(data=st.data())
    def inplace(self, data: Any) -> None:
        self.step(data.draw(writing.inplace(self.reference).flatmap(_modes)))

    @rule(data=st.data())
    def augmented(self, data: Any) -> None:
        self.step(data.draw(writing.augmented(self.reference).flatmap(_modes)))

    @rule(data=st.data())
    def out(self, data: Any) -> None:
        self.step(data.draw((writing.out(self.reference) | writing.product(self.reference)).flatmap(_modes)))

    @rule(data=st.data())
    def overwrite(self, data: Any) -> None:
        each = writing.assign(self.reference) | writing.add_at(self.reference) | writing.overwrite(self.reference)
        self.step(data.draw(each.flatmap(_modes)))

    @rule(data=st.data())
    def detach(self, data: Any) -> None:
        self.step(data.draw(statements.detach(self.reference)))

    @precondition(lambda self: self.reference.count and any(n.startswith("v") for n in self.reference.variables))
    @rule(data=st.data())
    def drop(self, data: Any) -> None:
        self.step(data.draw(writing.drop(self.reference)))

    @rule(data=st.data())
    def backward(self, data: Any) -> None:
        self.step(data.draw(writing.backward(self.reference)))

    # Checks

    def step(self, statement: Statement) -> None:
        """Run one statement on both sides and compare every variable."""
        try:
            if self.execute(statement):
                self.reference.run(statement)
                self.done.append(statement)
            self.compare()
        except Exception as error:
            self._fail(error)
            raise

    def execute(self, statement: Statement) -> bool:
        """Run a statement on tensors; False if it was refused, and rightly so."""
        line = statement.line()
        self.lines.append(line)
        must_refuse = statement.kind == "write" and self.reference.refuses(statement)
        refusal = self._refusal(line)
        if not refusal:
            assert not must_refuse, f"{line}: a write to a leaf or to read-only memory was accepted"
            return True
        self.lines[-1] = statement.line(refused=True)
        with unchanged(*(self.namespace[n] for n in self.reference.variables)):
            assert self._refusal(line), f"{line}: refused, and accepted when tried again"
        if not must_refuse:
            in_force = statement.policy or self.policy or "refuse"
            assert in_force == "refuse", f"{line}: under preserve nothing is refused for a kept value: {refusal}"
            assert "still needed" in refusal, f"{line}: refused without need: {refusal}"
        return False

    def _refusal(self, line: str) -> str:
        """Run a line of the program; the text of its InplaceError, if there was one."""
        with Switch(policy, self.policy):
            try:
                exec(line, self.namespace)
            except InplaceError as refused:
                return str(refused)
        return ""

    def compare(self) -> None:
        """Every variable has NumPy's value, dtype and shape; the interpreter goes on from ours, bit for bit."""
        variables = self.reference.variables.items()
        for name, (array, *_) in variables:
            ours = self.namespace[name]
            found = (shape_of(ours), dtype_of(ours))
            assert found == (array.shape, array.dtype), f"{name}: {found}, NumPy has {array.shape}, {array.dtype}"
            near = self.tolerance[2]
            self._agree(f"{name}.numpy()", raw(ours), array, near, near)
        for name, (array, *_) in variables:
            if array.flags.writeable:
                array[...] = raw(self.namespace[name])

    def _agree(self, text: str, got: Any, want: np.ndarray, rtol: float, atol: float) -> None:
        """Assert that numbers agree; the assertion joins the program if they do not."""
        if not np.allclose(got, want, rtol=rtol, atol=atol):
            self.checks = [_assertion(text, want, rtol, atol)]
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=text)

    def teardown(self) -> None:
        """Differentiate, and compare with central differences."""
        if not self.failed and self.leaves:
            try:
                self.differentiate()
            except Exception as error:
                self._fail(error)
                raise

    def differentiate(self) -> None:
        """Compare every gradient with central differences of the program, and with `mg.grad` of it."""
        names = [n for n in self.reference.variables if not self.reference.spent(n)]
        loss = " + ".join(f"weigh({n})" for n in names)
        self.lines.append(f"({loss}).backward()")
        exec(self.lines[-1], self.namespace)
        found = differentiate(self.done, self.leaves, self.others, names)
        checks: list[str] = []
        for name, (want, smooth) in found.items():
            scale = float(max(1.0, np.max(np.abs(want), where=smooth, initial=0.0)))
            rtol, atol = self.tolerance[0], float(f"{self.tolerance[1] * scale:.1g}")
            text, got = f"{name}.grad.numpy()", self.namespace[name].grad.numpy()
            event("smooth" if smooth.all() else "some element stands at a kink")
            if not smooth.all():
                text, got, want = f"{text}[np.array({smooth.tolist()})]", got[smooth], want[smooth]
            self._agree(text, got, want, rtol, atol)
            checks.append(_assertion(text, want, rtol, atol))
        self.checks = checks
        if all(s.kind != "backward" for s in self.done):
            self._transformed(loss)

    def _transformed(self, loss: str) -> None:
        """The same program as a function: its `mg.grad` is what `backward` found."""
        made = self.opening()[len(self.leaves) :]
        body = [line for line in self.lines[:-1] if not line.startswith("with suppress")]
        text = "\n    ".join([f"def program({', '.join(self.leaves)}):", *made, *body, f"return {loss}"])
        with Switch(policy, self.policy):
            exec(text, self.namespace)
            gradients = grad(self.namespace["program"], range(len(self.leaves)))(*self.leaves.values())
        for name, gradient in zip(self.leaves, gradients, strict=True):
            got = self.namespace[name].grad.numpy()
            near = self.tolerance[2]
            scale = max(1.0, float(np.max(np.abs(got), initial=0.0)))
            np.testing.assert_allclose(gradient, got, rtol=near, atol=near * scale, err_msg=f"mg.grad by {name}")

    def source(self) -> str:
        """The program as Python that runs by itself, up to where it failed, with what must hold then."""
        body = self.lines
        if self.policy is not None:
            body = [f'with mg.inplace_policy("{self.policy}"):', *(f"    {line}" for line in body or ["pass"])]
        suppress = "from contextlib import suppress\n" if any("suppress(" in line for line in self.lines) else ""
        return suppress + HEADER + "\n".join([*self.opening(), *body, *self.checks]) + "\n"

    def _fail(self, error: Exception) -> None:
        if not self.failed:
            self.failed = True
            error.add_note(f"The program:\n\n{self.source()}")


def _assertion(text: str, want: np.ndarray, rtol: float, atol: float) -> str:
    return f"np.testing.assert_allclose({text}, {want.tolist()}, rtol={rtol}, atol={atol})"
