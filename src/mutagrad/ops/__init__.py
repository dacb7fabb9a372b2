"""The table: every op, found by name or by NumPy callable."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import contraction, elementwise, indexing, movement, reduction, rounding
from .entry import Composite, Elementwise, Entry, Plan, Reduction, Structural, recorders

__all__ = [
    "BY_NUMPY", "OPS", "Composite", "Elementwise", "Entry", "Plan", "Reduction", "Structural", "recorders",
]  # fmt: skip

_ALL: dict[str, Entry] = {
    **elementwise.TABLE, **rounding.TABLE, **reduction.TABLE, **movement.TABLE, **indexing.TABLE, **contraction.TABLE
}  # fmt: skip

# Public ops by every public name.
OPS: dict[str, Any] = {}
# By what NumPy calls them.
BY_NUMPY: dict[Any, Entry] = {}
for _entry in _ALL.values():
    if not _entry.private:
        OPS |= dict.fromkeys((_entry.name, *_entry.aliases), _entry)
        if _entry.numpy is not None:
            # Some of NumPy's aliases, np.around among them, are functions of their own.
            BY_NUMPY |= {getattr(np, a): _entry for a in _entry.aliases if callable(getattr(np, a, None))}
            BY_NUMPY[_entry.numpy] = _entry
