"""The table: every op, found by name or by NumPy callable."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import contraction, elementwise, indexing, joining, movement, norms, reduction, rounding, statistics
from .entry import Composite, Elementwise, Entry, Plan, Reduction, Structural, recorders

__all__ = [
    "BY_NUMPY", "OPS", "Composite", "Elementwise", "Entry", "Plan", "Reduction", "Structural", "recorders",
]  # fmt: skip

_SHEETS = (elementwise, rounding, reduction, norms, statistics, movement, joining, indexing, contraction)
_ALL: dict[str, Entry] = {name: entry for sheet in _SHEETS for name, entry in sheet.TABLE.items()}

# Public ops by every public name.
OPS: dict[str, Any] = {}
# By what NumPy calls them.
BY_NUMPY: dict[Any, Entry] = {}
for _entry in _ALL.values():
    if not _entry.private:
        OPS |= dict.fromkeys((_entry.name, *_entry.aliases), _entry)
        # Under its own names, and where it is called otherwise what the entry says.
        _callables = [getattr(np, _name, None) for _name in (_entry.name, *_entry.aliases)]
        BY_NUMPY |= dict.fromkeys([c for c in (*_callables, _entry.numpy, *_entry.also) if callable(c)], _entry)
