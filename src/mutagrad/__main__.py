"""The main job: certified regressions, an in-place write accepted and one refused, what was compiled.

`python -m mutagrad` prints it as plain text and returns 0 if all fits from the second starts reached the
digits that are asked of them. `python -m mutagrad nist` fits all of NIST's regressions and prints the digits
reached from both starts; it returns 0 if every fit reached those asked. `python -m mutagrad warmup` compiles
the kernels of common ops ahead.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import mutagrad as mg
from mutagrad import warmup
from mutagrad.compile import report
from mutagrad.nist import PROBLEMS, Problem

# Those of the main job, easy and hard ones.
SHOWN = tuple(p for p in PROBLEMS if p.name in ("Misra1a", "Hahn1", "MGH09", "Thurber", "Eckerle4", "Rat43"))

WIDTH = 100
# The certified values have eleven digits; agreement beyond them cannot be seen.
CERTIFIED_DIGITS = 11.0
ASKED_DIGITS = 8.0

# Of the table of all regressions; the last three are repeated for the second start.
COLUMNS = ("problem", "difficulty", "parameters", *2 * ("b", "rss", "steps"))

# The relative gradient at which a fit stops. To first order it bounds how far each parameter still is from
# the minimum, in its standard deviations divided by the root of the degrees of freedom.
GRADIENT_LIMIT = 1e-11
STEP_LIMIT = 10_000
# The first steps are short: a bold one can leap to a plateau that has no way back.
FIRST_DAMPING = 1e3
# What is left of a scale after a step, if the column's own norm is less.
FADING = 0.7
# Steps damped more than this are too short to change a parameter.
DAMPING_LIMIT = 1e20
# A predicted reduction below this share of the sum of squares drowns in the rounding of the sum itself.
VISIBLE_REDUCTION = 1e-13


@dataclass(frozen=True)
class Point:
    """A regression at some parameters; its relative gradient is infinite where the model overflows."""

    parameters: np.ndarray
    residuals: np.ndarray
    jacobian: np.ndarray
    gradient: float

    @property
    def rss(self) -> float:
        """The residual sum of squares."""
        return float(self.residuals @ self.residuals)


@dataclass(frozen=True)
class Fit:
    """Where a fit ended, after how many steps tried, and why: "gradient", "stalled" or "limit"."""

    point: Point
    steps: int
    ending: str


def residuals_and_jacobian(problem: Problem, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The residuals of a regression and their derivatives, one column for each parameter.

    Every residual gets its own copy of the parameters. As each depends on no copy but its own, the gradient
    of the sum of the predictions holds the whole Jacobian, and one reverse sweep finds it.
    """

    def total(copies: mg.Tensor) -> tuple[mg.Tensor, mg.Tensor]:
        predicted = problem.model(copies, problem.x)
        return mg.sum(predicted), predicted

    copies = np.repeat(parameters[:, None], len(problem.y), axis=1)
    (_, predicted), gradient = mg.value_and_grad(total, has_aux=True)(copies)
    return predicted.numpy() - problem.y, gradient.T


def evaluate(problem: Problem, parameters: np.ndarray) -> Point:
    """Residuals, Jacobian and relative gradient at some parameters.

    The relative gradient is the cosine of the angle between the residuals and the plane spanned by the
    Jacobian's columns: the gradient, freed of how the parameters are scaled or mixed.
    """
    residuals, jacobian = residuals_and_jacobian(problem, parameters)
    gradient = np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        norms, length = np.linalg.norm(jacobian, axis=0), np.linalg.norm(residuals)
    if np.isfinite(norms).all() and np.isfinite(length):
        basis, _ = np.linalg.qr(jacobian / nonzero(norms))
        gradient = float(np.linalg.norm(basis.T @ residuals) / length)
    return Point(parameters, residuals, jacobian, gradient)


def nonzero(norms: np.ndarray) -> np.ndarray:
    """Norms to divide by: a column of zeros stays one."""
    return np.where(norms > 0, norms, 1.0)


def fit(problem: Problem, start: ArrayLike, step_limit: int = STEP_LIMIT) -> Fit:
    """Minimise a regression's sum of squares by the Levenberg-Marquardt method.

    Parameters are scaled by the norms of the Jacobian's columns (J. J. Moré, "The Levenberg-Marquardt
    algorithm: implementation and theory", 1978), and the damping follows the gain of the last step
    (H. B. Nielsen, "Damping parameter in Marquardt's method", 1999).

    Parameters
    ----------
    problem : Problem
        The regression.
    start : array_like
        Where to start.
    step_limit : int
        How many steps to try at most.

    Returns
    -------
    Fit
        It ended by "gradient" if the relative gradient fell to its limit, by "stalled" if no step however
        short improves on the last one, by "limit" if the steps were used up.
    """
    here = evaluate(problem, np.array(start, float))
    norms = np.linalg.norm(here.jacobian, axis=0)
    damping, growth = FIRST_DAMPING, 2.0
    for steps in range(step_limit + 1):
        if here.gradient <= GRADIENT_LIMIT:
            return Fit(here, steps, "gradient")
        if damping > DAMPING_LIMIT:
            return Fit(here, steps, "stalled")
        if steps == step_limit:
            break
        scales = nonzero(norms)
        scaled = here.jacobian / scales
        change = damped_step(scaled, here.residuals, damping)
        trial = evaluate(problem, here.parameters + change / scales)
        predicted = damping * (change @ change) - change @ (scaled.T @ here.residuals)
        gain = gain_ratio(here, trial, predicted)
        if gain > 0:
            # The better the linear model foretold the step, the less the next is damped.
            damping *= max(1 / 3, 1 - (2 * min(gain, 1.0) - 1) ** 3)
            growth = 2.0
            here = trial
            # Where a column fades, far from the data, its parameter must not run away, so its scale fades slower;
            # but if scales never shrank, a parameter that once had a huge column could hardly move again.
            norms = np.maximum(FADING * norms, np.linalg.norm(here.jacobian, axis=0))
        else:
            damping *= growth
            growth *= 2.0
    return Fit(here, step_limit, "limit")


def fits(problem: Problem) -> list[Fit]:
    """The fits of a regression from its two starts."""
    return [fit(problem, start) for start in problem.starts]


def damped_step(jacobian: np.ndarray, residuals: np.ndarray, damping: float) -> np.ndarray:
    """The step of least squares with its length penalised.

    Solved as one stacked system: the normal equations would square the condition of the Jacobian.
    """
    count = jacobian.shape[1]
    stacked = np.vstack([jacobian, np.sqrt(damping) * np.eye(count)])
    return np.linalg.lstsq(stacked, np.concatenate([-residuals, np.zeros(count)]), rcond=None)[0]


def gain_ratio(here: Point, trial: Point, predicted: float) -> float:
    """The reduction of the sum of squares by a step over the predicted one; positive if it is to be taken."""
    if not np.isfinite(trial.gradient):
        return 0.0
    if predicted < VISIBLE_REDUCTION * here.rss:
        return float(trial.gradient < here.gradient)
    # Factored, the difference of the two sums does not cancel.
    return float((here.residuals - trial.residuals) @ (here.residuals + trial.residuals) / predicted)


def standard_deviations(point: Point) -> np.ndarray:
    """Those of the parameters at a minimum, by the usual linear theory."""
    points, count = point.jacobian.shape
    scales = nonzero(np.linalg.norm(point.jacobian, axis=0))
    inverse = np.linalg.pinv(np.linalg.qr(point.jacobian / scales, mode="r"))
    return np.sqrt(point.rss / (points - count) * np.sum(inverse**2, axis=1)) / scales


def digits(found: ArrayLike, certified: ArrayLike) -> np.ndarray:
    """How many digits of the found values match the certified ones."""
    exact = np.asarray(certified)
    with np.errstate(divide="ignore"):
        matching = -np.log10(np.abs(found - exact) / np.abs(exact))
    return np.clip(matching, 0.0, CERTIFIED_DIGITS)


def verdict(problem: Problem, result: Fit) -> str:
    """What became of a fit, in a few words."""
    worst = digits(result.point.parameters, problem.certified).min()
    if worst >= ASKED_DIGITS:
        return f"certified minimum reached, {worst:.1f} digits or more"
    why = {
        "gradient": "the gradient vanishes here too, another stationary point",
        "stalled": "no step improves on it, however short; the model hardly depends on its parameters here",
        "limit": "the steps were used up before the gradient vanished",
    }
    return (
        f"CERTIFIED MINIMUM NOT REACHED, {worst:.1f} digits: {why[result.ending]}; "
        f"the sum of squares is {result.point.rss / problem.rss:.4g} times the certified one"
    )


class Part(NamedTuple):
    """A part of the job: wall time, and which lines of the compile report it added."""

    name: str
    seconds: float
    first: int
    last: int


@contextmanager
def timed(name: str, parts: list[Part]) -> Iterator[None]:
    """Add a part to the list when the block ends."""
    first, began = len(report), time.perf_counter()
    yield
    parts.append(Part(name, time.perf_counter() - began, first, len(report)))


def say(text: str = "", indent: str = "") -> None:
    """Print a paragraph, its later lines further in than the first."""
    further = indent + "  "
    print(textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=further, break_on_hyphens=False))


def heading(text: str) -> None:
    """Print a section's heading."""
    print(f"\n{text}\n{'-' * len(text)}")


def show_fits(problem: Problem, results: Sequence[Fit]) -> None:
    """Print the certified parameters beside those found from both starts."""
    print(f"\n{problem.name}, {len(problem.y)} points: {problem.model.__doc__ or ''}")
    print(f"  {'':4}{'certified':>18}{'from start 2':>20}{'digits':>8}{'from start 1':>20}{'digits':>8}")
    columns = [(*result.point.parameters, result.point.rss) for result in results]
    certified = (*problem.certified, problem.rss)
    names = [f"b{k + 1}" for k in range(len(problem.certified))] + ["rss"]
    for name, exact, first, second in zip(names, certified, *columns, strict=True):
        line = f"  {name:4}{exact:18.10e}"
        for found in (second, first):
            line += f"{found:20.10e}{digits(found, exact):8.1f}"
        print(line)
    for number in (2, 1):
        result = results[number - 1]
        reached = f"{result.steps} steps, relative gradient {result.point.gradient:.0e}"
        say(f"start {number}: {reached}: {verdict(problem, result)}", "  ")
    agreement = digits(standard_deviations(results[1].point), problem.certified_sd).min()
    print(f"  standard deviations, from the last Jacobian of start 2: {agreement:.1f} digits or more")


def show_regressions(parts: list[Part]) -> bool:
    """Fit and print all regressions; say whether every fit from a second start has the digits asked."""
    heading("1. NIST reference regressions")
    say(
        "Levenberg-Marquardt on Jacobians by mutagrad, stopped by the gradient. Digits are those that match "
        f"the certified value, {CERTIFIED_DIGITS:.0f} at most; rss is the residual sum of squares."
    )
    reached = {1: 0, 2: 0}
    for problem in SHOWN:
        with timed(f"{problem.name}, both starts", parts):
            results = fits(problem)
        show_fits(problem, results)
        for number, result in enumerate(results, 1):
            reached[number] += digits(result.point.parameters, problem.certified).min() >= ASKED_DIGITS
    print()
    for number in (2, 1):
        say(
            f"From start {number}: {reached[number]} of {len(SHOWN)} fits match the certified values to "
            f"{ASKED_DIGITS:.0f} digits or more in every parameter."
        )
    return reached[2] == len(SHOWN)


def row(problem: Problem, results: Sequence[Fit]) -> list[str]:
    """What the table of all regressions says of one, in the order of its columns."""
    cells = [problem.name, problem.difficulty, f"{len(problem.certified)}"]
    for result in results:
        parameters = digits(result.point.parameters, problem.certified).min()
        cells += [f"{parameters:.1f}", f"{digits(result.point.rss, problem.rss):.1f}", f"{result.steps}"]
    return cells


def show_table() -> bool:
    """Fit all regressions and print how many digits match; say whether every fit has the digits asked."""
    say(
        "NIST's nonlinear regressions: the digits that match the certified values, of the worst parameter and "
        f"of the residual sum of squares, {CERTIFIED_DIGITS:.0f} at most, and the steps tried."
    )
    line = "  {:10}{:12}{:>10}" + 6 * "{:>7}"
    print(f"\n  {'':32}{'from start 1':>21}{'from start 2':>21}")
    print(line.format(*COLUMNS))
    reached = 0
    for problem in PROBLEMS:
        results = fits(problem)
        print(line.format(*row(problem, results)))
        reached += sum(digits(r.point.parameters, problem.certified).min() >= ASKED_DIGITS for r in results)
    print()
    say(
        f"{reached} of {2 * len(PROBLEMS)} fits match the certified values to {ASKED_DIGITS:.0f} digits or more in "
        "every parameter. The residuals of Lanczos1 are 1e-13 of its data: their sum of squares is mostly rounding."
    )
    return reached == 2 * len(PROBLEMS)


def show_inplace() -> None:
    """Print one in-place op that is accepted, with its gradient, and one that is refused."""
    heading("2. In-place writes")
    # Methods that the table of ops installs are unknown to type checkers.
    x: Any = mg.tensor([0.1, 0.7, 2.0], requires_grad=True)
    print("  x = mg.tensor([0.1, 0.7, 2.0], requires_grad=True)\n  t = x * 2.0")
    t = x * 2.0
    memory = t.numpy()
    t.sin_()
    same = np.shares_memory(memory, t.numpy())
    t.sum().backward()
    error = float(np.abs(x.grad.numpy() - 2 * np.cos(2 * x.numpy())).max())
    print("\n  t.sin_(); t.sum().backward()")
    print(f"  accepted: written {'in the same' if same else 'in other'} memory, version {t.version}")
    print(f"    x.grad        {x.grad.numpy()}")
    print(f"    2 * cos(2*x)  {2 * np.cos(2 * x.numpy())}   largest difference {error:.0e}")
    print("\n  x.sin_()")
    before, version = x.numpy().tobytes(), x.version
    try:
        x.sin_()
    except mg.InplaceError as refusal:
        print("  refused:")
        for line in f"InplaceError: {refusal}".splitlines():
            say(line.strip(), "    " if line == line.lstrip() else "      ")
    else:
        print("  NOT REFUSED")
    unchanged = x.numpy().tobytes() == before and x.version == version
    print(f"  x afterwards: {'unchanged, bit for bit' if unchanged else 'CHANGED'}, version {x.version}")


def show_compiled(parts: Sequence[Part], earlier: float) -> None:
    """Print what was compiled in this process, and how long each part of the job took."""
    heading("3. What was compiled, and the time")
    cached = sum(entry.cached for entry in report)
    print(
        f"{len(report)} kernels in this process: {len(report) - cached} compiled, {cached} taken from the disk "
        f"cache; {sum(entry.seconds for entry in report):.2f} s in all."
    )
    print(f"\n  {'slowest kernels':40}{'dtype':12}{'seconds':>9}")
    for entry in sorted(report, key=lambda entry: -entry.seconds)[:5]:
        print(f"  {entry.name:40}{entry.dtype:12}{entry.seconds:9.3f}   {'cache' if entry.cached else 'compiled'}")
    print(f"\n  {'part of the job':40}{'kernels':12}{'seconds':>9}{'of which for kernels':>24}")
    for part in parts:
        entries = report[part.first : part.last]
        kernels = sum(entry.seconds for entry in entries)
        print(f"  {part.name:40}{len(entries):<12}{part.seconds:9.3f}{kernels:24.3f}")
    print(f"  {'total':40}{'':12}{sum(part.seconds for part in parts):9.3f}")
    print(f"  {'before: Python and imports':40}{'':12}{earlier:9.3f}   of processor time")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the main job and print it; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m mutagrad", description="Show what mutagrad does.")
    says = "nist: fit all of NIST's regressions, and no more; warmup: compile the kernels of common ops ahead"
    parser.add_argument("part", nargs="?", choices=["nist", "warmup"], help=says)
    parser.add_argument("ops", nargs="*", help="after warmup: names of ops, to compile only theirs")
    given = parser.parse_args(arguments)
    if given.part == "warmup":
        return warmup.warm(given.ops)
    if given.ops:
        parser.error(f"only warmup takes names of ops: {' '.join(given.ops)}")
    if given.part == "nist":
        return 0 if show_table() else 1
    # The package is imported before this file can look at a clock.
    earlier = time.process_time()
    parts: list[Part] = []
    print(f"mutagrad {mg.__version__}")
    complete = show_regressions(parts)
    with timed("in-place writes", parts):
        show_inplace()
    show_compiled(parts, earlier)
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
