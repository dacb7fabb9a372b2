"""The table: every op, found by name or by NumPy callable."""

from __future__ import annotations

from typing import Any

from . import contraction, elementwise, indexing, movement, norms, reduction, statistics
from .entry import Composite, Elementwise, Entry, Plan, Reduction, Structural, recorders

__all__ = [
    "BY_NUMPY", "OPS", "Composite", "Elementwise", "Entry", "Plan", "Reduction", "Structural", "recorders",
]  # fmt: skip

_ALL: dict[str, Entry] = {
    **elementwise.TABLE, **reduction.TABLE, **norms.TABLE, **statistics.TABLE, **movement.TABLE, **indexing.TABLE,
    **contraction.TABLE,
}  # fmt: skip

# Public ops by every public name.
OPS: dict[str, Any] = {}
# By what NumPy calls them.
BY_NUMPY: dict[Any, Entry] = {}
for _entry in _ALL.values():
    if not _entry.private:
        OPS |= dict.fromkeys((_entry.name, *_entry.aliases), _entry)
        BY_NUMPY |= {called: _entry for called in (_entry.numpy, *_entry.also) if called is not None}
