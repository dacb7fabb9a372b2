"""NumPy's validation sets of elementary functions, which lie beside its tests, run through the public ops."""

from pathlib import Path

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.mathematics import angles, exponential, logarithm, special, trigonometric

FOLDER = Path(np._core.__file__).parent / "tests" / "data"
SETS = {p.stem.removeprefix("umath-validation-set-"): p for p in sorted(FOLDER.glob("umath-validation-set-*.csv"))}
TABLE = trigonometric.TABLE | angles.TABLE | exponential.TABLE | logarithm.TABLE | special.TABLE
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=lambda d: d.__name__)

pytestmark = pytest.mark.skipif(not SETS, reason="this NumPy was installed without its tests")


def rows(path, dtype):
    """Arguments and results, which are written as bits."""
    width = np.dtype(f"u{dtype().itemsize}")
    found = [line.split(",") for line in path.read_text().splitlines() if line.startswith(f"np.{dtype.__name__},")]
    return (np.array([int(row[k], 16) for row in found], width).view(dtype) for k in (1, 2))


def in_place(op, x):
    t = mg.tensor(x)
    return op(t, out=t).numpy()


def strided(op, x):
    wide = np.zeros((x.size, 3), x.dtype)
    wide[:, 1] = x
    return op(mg.tensor(wide)[:, 1]).numpy()


def one_by_one(op, x):
    # A few: numbers have a path of their own.
    out = np.full_like(x, np.nan)
    for i in range(0, x.size, 40):
        out[i] = op(mg.tensor(x[i])).item()
    return out


FORMS = {"array": lambda op, x: op(x).numpy(), "in place": in_place, "strided": strided, "numbers": one_by_one}


@np.errstate(all="ignore")
def ulps(got, want):
    """The distance in units of the last place of `want`; infinity stands for the power of two beyond the format."""
    info = np.finfo(want.dtype)
    # Halved, so that this power of two is a number.
    half = np.where(np.abs(want) > 1, want.dtype.type(0.5), want.dtype.type(1))
    top = np.ldexp(want.dtype.type(1), info.maxexp - 1)
    a, b = (np.where(np.isinf(x), np.copysign(top, x), x * half) for x in (got, want))
    return np.abs(a - b) / np.spacing(np.minimum(np.abs(b), info.max / 2))


@DTYPES
@pytest.mark.parametrize("name", SETS)
def test_ops_are_within_their_bound(name, dtype):
    op = getattr(mg, name, None)
    if op is None:
        pytest.skip(f"there is no op {name}")
    x, want = rows(SETS[name], dtype)
    if not x.size:
        pytest.skip(f"the set has no {dtype.__name__}")
    bound = (TABLE[name].ulp if name in TABLE else 2.5) + (dtype == np.float32)
    for form, run in FORMS.items():
        part = slice(None, None, 40 if form == "numbers" else None)
        got, exact, at = run(op, x)[part], want[part], x[part]
        assert got.dtype == dtype, form
        special = np.isnan(exact) | np.isnan(got) | (np.isinf(exact) & np.isinf(got)) | (exact == 0)
        np.testing.assert_array_equal(got[special], exact[special], form)
        np.testing.assert_array_equal(np.signbit(got[exact == 0]), np.signbit(exact[exact == 0]), form)
        # The sets' results are rounded themselves, by half an ulp at most.
        error = np.where(special, 0, ulps(got, exact))
        worst = int(np.argmax(error))
        assert error[worst] <= bound + 0.5, f"{form}: {name}({at[worst].hex()}) is {got[worst]}, not {exact[worst]}"


def test_distances():
    most, least = np.finfo(np.float64).max, np.finfo(np.float64).smallest_subnormal
    for a, b, distance in (
        (1.0, 1 + 2**-52, 1),
        (np.inf, most, 1),
        (most, np.inf, 1),
        (-np.inf, most, np.inf),
        (5 * least, 2 * least, 3),
    ):
        assert ulps(np.array([a]), np.array([b])) == distance


def test_the_sets_cover_what_they_should():
    # So that a change of the files' names or form is noticed.
    assert {"sin", "cos", "exp", "log"} <= SETS.keys()
    for name in ("sin", "exp"):
        for dtype in (np.float64, np.float32):
            x, want = rows(SETS[name], dtype)
            assert x.size == want.size > 100
