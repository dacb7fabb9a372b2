"""The README's table of NIST's regressions, found by fitting them all.

`python tests/generate_nist.py` writes it between the README's two markers.
"""

from __future__ import annotations

import re

from generate_reference import README

from mutagrad.__main__ import COLUMNS, fits, row
from mutagrad.nist import PROBLEMS

BETWEEN = re.compile(r"(?<=<!-- nist -->\n).*(?=<!-- end of nist -->\n)", re.DOTALL)


def table(rows: list[list[str]]) -> str:
    """The rows in Markdown, below a header that names the starts."""
    header = [*COLUMNS[:3], *(f"{name}, start {start}" for start in (1, 2) for name in COLUMNS[3:6])]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [header, ["---"] * len(header), *rows])


if __name__ == "__main__":
    written = table([row(problem, fits(problem)) for problem in PROBLEMS])
    README.write_text(BETWEEN.sub(written, README.read_text(encoding="utf-8")), encoding="utf-8")
