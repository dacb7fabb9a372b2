"""Every seeded fault of `mutations.py` is noticed by the tests named there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mutations import FAULTS

import mutagrad

SOURCE = Path(mutagrad.__file__).parent
ROOT = Path(__file__).parent.parent
EACH = pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.what)


def test_there_are_enough_faults():
    assert len(FAULTS) >= 20
    assert len({f.what for f in FAULTS}) == len(FAULTS)


@EACH
def test_fault_still_applies(fault):
    text = (SOURCE / fault.file).read_text()
    assert text.count(fault.old) == 1
    compile(text.replace(fault.old, fault.new), fault.file, "exec")


def run(package, arguments):
    """Run tests on a copy of the package."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile=first-failure", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)


def copied(folder):
    return Path(shutil.copytree(SOURCE, folder / "mutagrad", ignore=shutil.ignore_patterns("__pycache__")))


@pytest.mark.slow
@EACH
def test_fault_is_noticed(fault, tmp_path):
    package = copied(tmp_path)
    file = package / fault.file
    file.write_text(file.read_text().replace(fault.old, fault.new))
    result = run(package, fault.tests.split())
    assert result.returncode == 1, result.stdout[-2000:] + result.stderr[-2000:]
    print(next(line for line in result.stdout.splitlines() if line.startswith("FAILED")))


@pytest.mark.slow
def test_without_a_fault_the_same_tests_pass(tmp_path):
    files = sorted({part for f in FAULTS for part in f.tests.split() if part.endswith(".py")})
    result = run(copied(tmp_path), [*files, "--deselect", "tests/test_readme.py"])
    assert result.returncode == 0, result.stdout[-2000:]
