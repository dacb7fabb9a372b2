"""The scripts of perf/ run alone, in tiny sizes, and give well-formed rows."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import mutagrad as mg

PERF = Path(__file__).resolve().parents[1] / "perf"

# What every row of a script has; all numbers in rows are positive, but for those that may well be zero.
ZEROS = {"bytes", "nan", "specials", "mutagrad_error", "numpy_error"}
REDUCED = {"op", "shape", "axis", "dtype", "mutagrad_us", "numpy_us", "floor_us", "to_numpy", "to_floor", "gradient_us"}
EXPRESSION = {"expression", "dtype"}
KEYS = {
    "overhead": [
        {"system", "operands", "mean_least_us", "mean_median_us", "to_numpy"},
        {"system", "operands", "mean_least_us", "mean_median_us", "to_numpy"},
        {"system", "shape", "forward_least_us", "both_least_us"},
    ],
    "inplace": [
        {"statement", "recorded", "tensor_bytes", "peak_bytes"},
        {"elements", "program", "system", "in_least_us", "out_least_us", "in_peak_bytes", "out_peak_bytes"},
    ],
    "chain": [{"system", "shape", "length", "forward_us", "backward_us", "free_us", "bytes_per_node"}],
    "startup": [
        {"step", "cold_ms", "warm_least_ms", "warm_median_ms"},
        {"kernel", "cold_ms", "warm_least_ms", "warm_median_ms"},
    ],
    "elementwise": [
        EXPRESSION | {"n", "mutagrad_us", "numba_us"},
        EXPRESSION | {"n", "best", "numba_to_mutagrad", "mutagrad_to_best"},
        EXPRESSION | {"mutagrad_first_s", "numba_first_s"},
        {"dtype", "n", "system", "expressions", "to_mutagrad", "to_best"},
        {"function", "dtype", "n", "mutagrad_us", "numpy_us", "floor_us", "to_numpy", "to_floor"},
    ],
    "accuracy": [{"function", "dtype", "points", "ulp", "stated", "within", "at", "nan"}],
    "reductions": [REDUCED, REDUCED, {"numbers", "shape", "axis", "dtype", "mutagrad_error", "numpy_error"}],
    "threads": [
        {"op", "elements", "on_1_us", "on_1_to_floor"},
        # One thread has nothing to be compared with.
        *([{"op", "threads", "best_gain", "small_ratio"}] if hasattr(mg, "set_num_threads") else []),
        {"op", "elements", "threads", "calls_a_second", "callers_2"},
    ],
    "profile": [{"kernel", "computes", "dtype", "calls", "seconds", "bytes", "compile_seconds"}],
}


def run(*args: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """A script of perf/, warnings being errors."""
    command = [sys.executable, "-W", "error", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


def rows(done: subprocess.CompletedProcess[str]) -> list[list[dict]]:
    """The rows of each table of a script's JSON."""
    assert done.returncode == 0, done.stderr
    return [table["rows"] for table in json.loads(done.stdout)["tables"]]


@pytest.mark.parametrize("script", KEYS)
def test_gives_rows(script):
    tables = rows(run(PERF / f"{script}.py", "--quick", "--alone", "--json", "-"))
    assert len(tables) == len(KEYS[script])
    for found, keys in zip(tables, KEYS[script], strict=True):
        assert found
        for row in found:
            assert keys <= row.keys()
            numbers = {k: v for k, v in row.items() if isinstance(v, int | float) and k not in ZEROS}
            assert all(0 < v < float("inf") for v in numbers.values() if not isinstance(v, bool))


def test_profiles_a_script_with_its_arguments(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        # cProfile imports the standard library's `profile`, which perf/ must not hide.
        "import cProfile, sys\n"
        "import mutagrad as mg\n"
        "x = mg.ones(int(sys.argv[1]), requires_grad=True)\n"
        "print(mg.exp(x).numpy().sum(), cProfile.run.__doc__ is not None)\n"
        "sys.exit(3)\n"
    )
    done = run(PERF / "profile.py", "--json", tmp_path / "out.json", script, "1000")
    assert done.returncode == 3
    assert "2718.28" in done.stdout
    (found,) = json.loads((tmp_path / "out.json").read_text())["tables"]
    (row,) = found["rows"]
    assert row["calls"] == 1
    assert row["bytes"] == 16_000
    assert row["computes"].startswith("exp(x)")
    for column in ("kernel", "calls", "us a call", "compile s"):
        assert column in done.stdout


@pytest.mark.slow
def test_every_function_is_within_its_bound():
    """The public ops, in both dtypes, at random, dense and awkward points."""
    (table,) = rows(run(PERF / "accuracy.py", "--alone", "--json", "-", timeout=600))
    assert len(table) > 40
    assert [row for row in table if not row["within"]] == []
