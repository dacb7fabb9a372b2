"""Switches: is recording on, which in-place policy holds, which transform is running.

They are context variables, so each thread and each async task has its own.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, TypeVar

from .errors import DTypeError

F = TypeVar("F", bound=Callable[..., Any])

recording: ContextVar[bool] = ContextVar("recording", default=True)
policy: ContextVar[str | None] = ContextVar("policy", default=None)
# The running number at which the innermost transform (mg.grad and its kin) began; None outside of all.
transform: ContextVar[int | None] = ContextVar("transform", default=None)

# One counter numbers nodes and memory: whatever has a higher number was made later.
tick = itertools.count(1).__next__

POLICIES = ("refuse", "preserve")


def policy_in_force() -> str:
    """The explicit policy if there is one, else the default of where we are."""
    return policy.get() or ("refuse" if transform.get() is None else "preserve")


class _Tokens(threading.local):
    """What to go back to, for each thread that is inside the block."""

    def __init__(self) -> None:
        self.stack: list[Token[Any]] = []


class Switch:
    """Sets one context variable inside a `with` block or a decorated function; blocks may nest."""

    def __init__(self, variable: ContextVar[Any], value: Any) -> None:
        self._variable, self._value = variable, value
        self._tokens = _Tokens()

    def __enter__(self) -> None:
        self._tokens.stack.append(self._variable.set(self._value))

    def __exit__(self, *exc: object) -> None:
        self._variable.reset(self._tokens.stack.pop())

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with Switch(self._variable, self._value):
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]


def no_grad() -> Switch:
    """Stop recording inside the block: values are computed, history is not.

    Under `no_grad()` a leaf that requires grad may be written in place: that is the parameter update.
    The contract still guards values that a live graph keeps. Also a decorator.

    Examples
    --------
    >>> import mutagrad as mg
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> with mg.no_grad():
    ...     x -= 0.5
    >>> x
    tensor([0.5, 1.5], dtype=float64, requires_grad=True)
    """
    return Switch(recording, False)


def enable_grad() -> Switch:
    """Record again inside a `no_grad()` block. Also a decorator.

    Examples
    --------
    >>> import mutagrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> with mg.no_grad(), mg.enable_grad():
    ...     y = x * x
    >>> y.requires_grad
    True
    """
    return Switch(recording, True)


def inplace_policy(name: str) -> Switch:
    """Choose what happens when an in-place write would overwrite a value that a gradient needs.

    Parameters
    ----------
    name : {"refuse", "preserve"}
        "refuse" raises `InplaceError` before anything is written (the default of the tape);
        "preserve" first moves the value to a private copy (the default inside `mg.grad` and its kin).

    Raises
    ------
    DTypeError
        If `name` is neither.

    Examples
    --------
    >>> import mutagrad as mg
    >>> x = mg.tensor([0.5, 1.0], requires_grad=True)
    >>> y = mg.exp(x)
    >>> with mg.inplace_policy("preserve"):
    ...     y += 1.0
    >>> y.sum().backward()
    >>> x.grad
    tensor([1.64872127, 2.71828183], dtype=float64)
    """
    if name not in POLICIES:
        raise DTypeError(f'inplace_policy() takes "refuse" or "preserve", not {name!r}.')
    return Switch(policy, name)
