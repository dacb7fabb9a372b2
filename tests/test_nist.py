"""NIST's regressions: data and models are the certified ones, every fit reaches the minimum, the README is true."""

from __future__ import annotations

import re

import numpy as np
import pytest
from generate_nist import BETWEEN, table
from generate_reference import README

from mutagrad import __main__ as program
from mutagrad.__main__ import digits, evaluate, fits, main, row, standard_deviations
from mutagrad.nist import MODELS, PROBLEMS

FLOOR = 9.0
by_name = {problem.name: problem for problem in PROBLEMS}
each_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)

# Its residuals are 1e-13 of its data: their sum of squares is mostly rounding, and so is what follows from it.
LANCZOS1_DIGITS = 1.0


@pytest.fixture(scope="module")
def found():
    return {problem.name: fits(problem) for problem in PROBLEMS}


def test_problems_are_whole():
    assert [problem.name for problem in PROBLEMS] == list(MODELS)
    assert len(PROBLEMS) == 27
    for problem in PROBLEMS:
        assert problem.x.shape[-1:] == problem.y.shape
        assert {len(problem.certified)} == {len(b) for b in (*problem.starts, problem.certified_sd)}
        assert len(problem.starts) == 2
    assert [sum(p.difficulty == grade for p in PROBLEMS) for grade in ("lower", "average", "higher")] == [8, 11, 8]


@each_problem
def test_data_give_certified_sum_of_squares_at_certified_parameters(problem):
    point = evaluate(problem, problem.certified)
    if problem.name == "Lanczos1":
        # Its parameters, rounded to eleven digits, miss the minimum by far more than its residuals.
        assert np.abs(point.residuals).max() < 1e-10
    else:
        assert digits(point.rss, problem.rss) >= 9


@each_problem
def test_fits_reach_the_certified_minimum_from_both_starts(problem, found):
    for result in found[problem.name]:
        assert digits(result.point.parameters, problem.certified).min() >= FLOOR
        others = [digits(result.point.rss, problem.rss)]
        others.append(digits(standard_deviations(result.point), problem.certified_sd).min())
        assert min(others) >= (LANCZOS1_DIGITS if problem.name == "Lanczos1" else FLOOR)


@each_problem
def test_fits_end_where_the_gradient_vanishes(problem, found):
    for result in found[problem.name]:
        # Where residuals are tiny, rounding of the predictions hides whether the gradient falls further.
        rounding = np.finfo(float).eps * np.linalg.norm(problem.y) / np.sqrt(result.point.rss)
        assert result.point.gradient <= max(program.GRADIENT_LIMIT, rounding)


def test_readme_shows_every_problem(found):
    shown = BETWEEN.search(README.read_text(encoding="utf-8"))[0]
    expected = table([row(problem, found[problem.name]) for problem in PROBLEMS])
    number = re.compile(r"\d+\.\d|\b\d+\b(?= \|)")
    assert number.sub("", shown) == number.sub("", expected), "run: python tests/generate_nist.py"


@each_problem
def test_readme_shows_the_digits_that_are_found(problem, found):
    shown = BETWEEN.search(README.read_text(encoding="utf-8"))[0]
    cells = re.search(rf"^\| ({problem.name} \|.*) \|$", shown, re.MULTILINE)[1].split(" | ")
    expected = row(problem, found[problem.name])
    assert cells[:3] == expected[:3]
    for k in (3, 4, 6, 7):
        # On other machines rounding differs, and so do the last digits.
        assert abs(float(cells[k]) - float(expected[k])) <= 1.0
    for k in (5, 8):
        assert int(expected[k]) / 2 <= int(cells[k]) <= 2 * int(expected[k])


def test_program_prints_the_table(monkeypatch, capsys):
    few = (by_name["Misra1a"], by_name["ENSO"])
    monkeypatch.setattr(program, "PROBLEMS", few)
    assert main(["nist"]) == 0
    text = capsys.readouterr().out
    printed = [line.split() for line in text.splitlines()]
    for problem in few:
        assert row(problem, fits(problem)) in printed
    assert "4 of 4 fits match" in text


def test_program_fails_where_a_minimum_is_not_reached(monkeypatch, capsys):
    problem = by_name["BoxBOD"]
    monkeypatch.setattr(program, "PROBLEMS", (problem,))
    monkeypatch.setattr(program, "FIRST_DAMPING", 1e-3)
    assert main(["nist"]) == 1
    text = capsys.readouterr().out
    assert "BoxBOD" in text
    assert "1 of 2 fits match" in text
