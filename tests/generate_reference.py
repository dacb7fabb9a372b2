"""The op table of the README, derived from the table of ops.

`python tests/generate_reference.py` writes it between the README's two markers.
"""

from __future__ import annotations

from pathlib import Path

import mutagrad as mg
from mutagrad.functions import domain_names, formula, kept_names
from mutagrad.ops import OPS, Elementwise, Entry, Reduction
from mutagrad.ops.entry import NO_DERIVATIVE

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- ops -->\n", "<!-- end of ops -->\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _row(entry: Entry) -> list[str]:
    names = [f"`{_cell(entry.call)}`", *(f"`{alias}`" for alias in entry.aliases)]
    doc = _cell(entry.doc.rstrip("."))
    if not hasattr(mg.Tensor, entry.name):
        doc += "; no method"
    if entry.conventions == NO_DERIVATIVE:
        return [", ".join(names), doc, "not differentiable", "", "", ""]
    said = _cell(formula(entry))
    if isinstance(entry, Elementwise | Reduction):
        said = f"`{said}`"
    return [", ".join(names), doc, said, kept_names(entry), domain_names(entry), _cell(entry.conventions)]


def reference() -> str:
    """The table in Markdown, an op a row, in the order of the rule sheets."""
    entries = {id(entry): entry for entry in OPS.values()}.values()
    rows = [["op", "gives", "cotangents", "keeps", "domain", "at corners"], ["---"] * 6, *map(_row, entries)]
    return "".join(f"| {' | '.join(row)} |\n".replace("  ", " ") for row in rows)


def split(text: str) -> tuple[str, str, str]:
    """The README before the table, the table, and what follows."""
    before, begin, rest = text.partition(BEGIN)
    table, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"README.md lacks the lines {BEGIN.strip()} and {END.strip()}")
    return before + begin, table, end + after


if __name__ == "__main__":
    before, _, after = split(README.read_text(encoding="utf-8"))
    README.write_text(before + reference() + after, encoding="utf-8")
