"""The main job: NIST's regressions, the in-place demonstration, the compile report, and what is printed."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.__main__ import (
    SHOWN,
    digits,
    evaluate,
    fit,
    gain_ratio,
    main,
    residuals_and_jacobian,
    verdict,
)

by_name = {problem.name: problem for problem in SHOWN}


@pytest.fixture(scope="module")
def printed():
    """The job's text as a user sees it, from a process of its own."""
    return subprocess.run([sys.executable, "-W", "error", "-m", "mutagrad"], capture_output=True, text=True)


def words(text):
    return " ".join(text.split())


def test_problems_are_the_six_of_the_job():
    assert list(by_name) == ["Misra1a", "Hahn1", "MGH09", "Thurber", "Eckerle4", "Rat43"]


@pytest.mark.parametrize("name", ["Misra1a", "Hahn1"])
def test_jacobian_is_that_of_one_sweep_for_each_residual(name):
    problem = by_name[name]
    few = dataclasses.replace(problem, x=problem.x[::8], y=problem.y[::8])
    parameters = np.array(problem.starts[1])
    residuals, jacobian = residuals_and_jacobian(few, parameters)
    np.testing.assert_array_equal(residuals, problem.model(parameters, few.x) - few.y)
    reference = mg.jacobian(lambda b: problem.model(b, few.x))(parameters)
    np.testing.assert_allclose(jacobian, reference, rtol=1e-12)


def test_digits_are_counted_and_capped():
    found = digits(np.array([2.0, 2.0002, -2.0, 2.0 + 1e-15]), [2.0, 2.0, 2.0, 2.0])
    np.testing.assert_allclose(found, [11.0, 4.0, 0.0, 11.0], atol=1e-6)


def test_step_limit_is_told():
    problem = by_name["MGH09"]
    result = fit(problem, problem.starts[0], step_limit=5)
    assert (result.ending, result.steps) == ("limit", 5)
    assert "NOT REACHED" in verdict(problem, result)
    assert "steps were used up" in verdict(problem, result)


def test_stall_is_told():
    # So far from the peak every prediction underflows, and the Jacobian with it.
    problem = by_name["Eckerle4"]
    result = fit(problem, (1.0, 1.0, 1e4))
    assert result.ending == "stalled"
    assert result.point.parameters.tolist() == [1.0, 1.0, 1e4]
    assert "NOT REACHED" in verdict(problem, result)
    assert "no step improves" in verdict(problem, result)


def test_another_stationary_point_is_told():
    problem = by_name["Misra1a"]
    elsewhere = dataclasses.replace(problem, certified=(300.0, 1e-3), rss=problem.rss / 2)
    told = verdict(elsewhere, fit(problem, problem.starts[1]))
    assert "NOT REACHED, 0.3 digits" in told
    assert "another stationary point" in told
    assert "2 times the certified one" in told


def test_overflowing_steps_are_not_taken():
    problem = by_name["Misra1a"]
    here = evaluate(problem, np.array(problem.starts[1]))
    overflowed = evaluate(problem, np.array([250.0, -10.0]))
    assert overflowed.gradient == np.inf
    assert gain_ratio(here, overflowed, predicted=1.0) == 0
    assert gain_ratio(here, overflowed, predicted=0.0) == 0


def test_overflowing_norms_have_no_gradient():
    # The derivatives are finite, the sum of their squares is not.
    problem = by_name["Misra1a"]
    assert evaluate(problem, np.array([250.0, -0.52])).gradient == np.inf


def test_main_prints_its_sections(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    heads = [
        "1. NIST reference regressions",
        "2. In-place writes",
        "3. What was compiled, and the time",
    ]
    assert re.findall(r"^\d\. .*$", text, re.MULTILINE) == heads
    assert max(map(len, text.splitlines())) <= 110
    for problem in SHOWN:
        assert re.search(rf"^{problem.name}, {len(problem.y)} points: y = ", text, re.MULTILINE)
        for number, value in enumerate(problem.certified, 1):
            assert re.search(rf"^  b{number} +{re.escape(f'{value:.10e}')} ", text, re.MULTILINE)
    for number in (1, 2):
        assert f"From start {number}: 6 of 6 fits match" in text


def test_main_prints_the_refusal_and_the_accepted_write(printed):
    text = words(printed.stdout)
    x = mg.tensor([0.1, 0.7, 2.0], requires_grad=True)
    with pytest.raises(mg.InplaceError) as caught:
        x.sin_()
    reason = words(str(caught.value).splitlines()[0]).partition(": ")[2]
    assert "InplaceError: sin_ cannot overwrite" in text
    assert reason in text
    assert "x afterwards: unchanged, bit for bit, version 0" in text
    assert "accepted: written in the same memory, version 1" in text
    assert float(re.search(r"largest difference (\S+)", text)[1]) < 1e-15


def test_compile_report_adds_up(printed):
    assert printed.returncode == 0
    assert printed.stderr == ""
    total, compiled, cached = map(
        int,
        re.search(r"(\d+) kernels in this process: (\d+) compiled, (\d+) taken", printed.stdout).groups(),
    )
    assert total == compiled + cached > 0
    parts = printed.stdout.partition("part of the job")[2].splitlines()[1:]
    kernels = [int(row[1]) for line in parts if (row := re.match(r"  \S.*?\S  +(\d+) +[\d.]+ +[\d.]+$", line))]
    assert len(kernels) == len(SHOWN) + 1
    assert sum(kernels) == total
    slowest = printed.stdout.partition("slowest kernels")[2].split("\n\n")[0].splitlines()[1:]
    seconds = [float(line.split()[2]) for line in slowest]
    assert seconds == sorted(seconds, reverse=True)
    assert len(seconds) == 5
    assert all(line.split()[3] in ("compiled", "cache") for line in slowest)


def test_unknown_arguments_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert "invalid choice: 'nonsense'" in capsys.readouterr().err
