"""Every exception a user can meet, and the one function that words them."""

from __future__ import annotations

from collections.abc import Iterable


class MutagradError(Exception):
    """Base of every error raised by mutagrad on purpose."""


class InplaceError(MutagradError, ValueError, RuntimeError):
    """An in-place write was refused; nothing was changed."""


class ShapeError(MutagradError, ValueError):
    """Shapes, axes or sizes do not fit."""


class DTypeError(MutagradError, TypeError):
    """A dtype or a type of argument is not supported here."""


class RangeError(MutagradError, IndexError):
    """An index is out of range or of the wrong kind."""


class GradientError(MutagradError, RuntimeError):
    """A gradient was asked for that does not exist."""


class GradientCutWarning(UserWarning):
    """A tracked tensor was turned into plain numbers, which cuts its gradient."""


class CacheWarning(UserWarning):
    """The folder named for compiled kernels cannot be used or trusted; kernels are compiled without it."""


def word(what: str, why: Iterable[str] = (), ways: str = "") -> str:
    """Word an error: one sentence, then the lines that explain it, then the ways out."""
    lines = [what, *("    " + line for line in why)]
    if ways:
        lines.append("  " + ways)
    return "\n".join(lines)


def describe(value: object) -> str:
    """Say what an argument is: "float64, shape (3,)" for arrays, else its type's name."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return type(value).__name__
    return f"{dtype}, shape {tuple(shape)}"
