"""The nonlinear regressions of the NIST Statistical Reference Datasets: data, models, certified values.

Public figures of the National Institute of Standards and Technology, computed there in extended precision
and certified to eleven digits. They stand in `nist.json`; the models stand here. Parameters b1, b2 … of the
formulas are `b[0]`, `b[1]` … of the models.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

import mutagrad as mg


@dataclass(frozen=True, eq=False)
class Problem:
    """A regression: find the parameters b that minimise the sum of squares of `model(b, x) - y`.

    Parameters
    ----------
    name : str
        The name of the dataset.
    difficulty : str
        "lower", "average" or "higher", by NIST's own grading.
    model : callable
        Takes the parameters, a tensor whose first axis counts them, and the points; returns the predicted
        values. Each value depends on its own point only. Its docstring is the formula.
    x, y : numpy.ndarray
        The points, along the last axis, and what was observed at them.
    starts : numpy.ndarray
        Two starting points, the second one nearer to the solution.
    certified, certified_sd : numpy.ndarray
        The parameters at the minimum and their standard deviations.
    rss : float
        The residual sum of squares at the minimum.
    """

    name: str
    difficulty: str
    model: Callable[[Any, np.ndarray], Any]
    x: np.ndarray
    y: np.ndarray
    starts: np.ndarray
    certified: np.ndarray
    certified_sd: np.ndarray
    rss: float


def saturation(b: Any, x: np.ndarray) -> Any:
    """y = b1 (1 - exp(-b2 x))"""
    return b[0] * (1 - mg.exp(-b[1] * x))


def saturation_by_square(b: Any, x: np.ndarray) -> Any:
    """y = b1 (1 - (1 + b2 x / 2)**-2)"""
    return b[0] * (1 - (1 + b[1] * x / 2) ** -2)


def saturation_by_root(b: Any, x: np.ndarray) -> Any:
    """y = b1 (1 - (1 + 2 b2 x)**(-1 / 2))"""
    return b[0] * (1 - (1 + 2 * b[1] * x) ** -0.5)


def saturation_by_quotient(b: Any, x: np.ndarray) -> Any:
    """y = b1 b2 x / (1 + b2 x)"""
    return b[0] * b[1] * x / (1 + b[1] * x)


def decay_over_line(b: Any, x: np.ndarray) -> Any:
    """y = exp(-b1 x) / (b2 + b3 x)"""
    return mg.exp(-b[0] * x) / (b[1] + b[2] * x)


def three_decays(b: Any, x: np.ndarray) -> Any:
    """y = b1 exp(-b2 x) + b3 exp(-b4 x) + b5 exp(-b6 x)"""
    return b[0] * mg.exp(-b[1] * x) + b[2] * mg.exp(-b[3] * x) + b[4] * mg.exp(-b[5] * x)


def two_decays(b: Any, x: np.ndarray) -> Any:
    """y = b1 + b2 exp(-b4 x) + b3 exp(-b5 x)"""
    return b[0] + b[1] * mg.exp(-b[3] * x) + b[2] * mg.exp(-b[4] * x)


def decay_and_two_peaks(b: Any, x: np.ndarray) -> Any:
    """y = b1 exp(-b2 x) + b3 exp(-((x - b4) / b5)**2) + b6 exp(-((x - b7) / b8)**2)"""
    decay = b[0] * mg.exp(-b[1] * x)
    return decay + b[2] * mg.exp(-(((x - b[3]) / b[4]) ** 2)) + b[5] * mg.exp(-(((x - b[6]) / b[7]) ** 2))


def peak(b: Any, x: np.ndarray) -> Any:
    """y = b1 / b2 exp(-((x - b3) / b2)**2 / 2)"""
    return b[0] / b[1] * mg.exp(-0.5 * ((x - b[2]) / b[1]) ** 2)


def power_law(b: Any, x: np.ndarray) -> Any:
    """y = b1 x**b2"""
    return b[0] * x ** b[1]


def shifted_power(b: Any, x: np.ndarray) -> Any:
    """y = b1 (b2 + x)**(-1 / b3)"""
    return b[0] * (b[1] + x) ** (-1 / b[2])


def shifted_exponential(b: Any, x: np.ndarray) -> Any:
    """y = b1 exp(b2 / (x + b3))"""
    return b[0] * mg.exp(b[1] / (x + b[2]))


def rational_quadratic(b: Any, x: np.ndarray) -> Any:
    """y = (b1 + b2 x + b3 x**2) / (1 + b4 x + b5 x**2)"""
    return (b[0] + x * (b[1] + x * b[2])) / (1 + x * (b[3] + x * b[4]))


def rational_cubic(b: Any, x: np.ndarray) -> Any:
    """y = (b1 + b2 x + b3 x**2 + b4 x**3) / (1 + b5 x + b6 x**2 + b7 x**3)"""
    return (b[0] + x * (b[1] + x * (b[2] + x * b[3]))) / (1 + x * (b[4] + x * (b[5] + x * b[6])))


def rational_saturation(b: Any, x: np.ndarray) -> Any:
    """y = b1 (x**2 + x b2) / (x**2 + x b3 + b4)"""
    return b[0] * (x**2 + x * b[1]) / (x**2 + x * b[2] + b[3])


def sigmoid(b: Any, x: np.ndarray) -> Any:
    """y = b1 / (1 + exp(b2 - b3 x))"""
    return b[0] / (1 + mg.exp(b[1] - b[2] * x))


def sigmoid_growth(b: Any, x: np.ndarray) -> Any:
    """y = b1 / (1 + exp(b2 - b3 x))**(1 / b4)"""
    return b[0] / (1 + mg.exp(b[1] - b[2] * x)) ** (1 / b[3])


def arctangent_on_line(b: Any, x: np.ndarray) -> Any:
    """y = b1 - b2 x - arctan(b3 / (x - b4)) / pi"""
    return b[0] - b[1] * x - mg.arctan(b[2] / (x - b[3])) / np.pi


def three_cycles(b: Any, x: np.ndarray) -> Any:
    """y = b1 + b2 cos(2 pi x / 12) + b3 sin(2 pi x / 12) + b5 cos(2 pi x / b4) + b6 sin(2 pi x / b4)
    + b8 cos(2 pi x / b7) + b9 sin(2 pi x / b7)"""
    turns = 2 * np.pi * x
    year = b[1] * np.cos(turns / 12) + b[2] * np.sin(turns / 12)
    second = b[4] * mg.cos(turns / b[3]) + b[5] * mg.sin(turns / b[3])
    return b[0] + year + second + b[7] * mg.cos(turns / b[6]) + b[8] * mg.sin(turns / b[6])


def log_of_ageing(b: Any, x: np.ndarray) -> Any:
    """log(y) = b1 - b2 x1 exp(-b3 x2)"""
    return b[0] - b[1] * x[0] * mg.exp(-b[2] * x[1])


MODELS: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "Misra1a": saturation,
    "Chwirut2": decay_over_line,
    "Chwirut1": decay_over_line,
    "Lanczos3": three_decays,
    "Gauss1": decay_and_two_peaks,
    "Gauss2": decay_and_two_peaks,
    "DanWood": power_law,
    "Misra1b": saturation_by_square,
    "Kirby2": rational_quadratic,
    "Hahn1": rational_cubic,
    "Nelson": log_of_ageing,
    "MGH17": two_decays,
    "Lanczos1": three_decays,
    "Lanczos2": three_decays,
    "Gauss3": decay_and_two_peaks,
    "Misra1c": saturation_by_root,
    "Misra1d": saturation_by_quotient,
    "Roszman1": arctangent_on_line,
    "ENSO": three_cycles,
    "MGH09": rational_saturation,
    "Thurber": rational_cubic,
    "BoxBOD": saturation,
    "Rat42": sigmoid,
    "MGH10": shifted_exponential,
    "Eckerle4": peak,
    "Rat43": sigmoid_growth,
    "Bennett5": shifted_power,
}


def from_figures(name: str, difficulty: str, y: Any, rss: float, **rows: Any) -> Problem:
    """A problem from its figures in the file."""
    observed = np.array(y, float)
    if MODELS[name] is log_of_ageing:
        observed = np.log(observed)
    arrays = {key: np.array(row, float) for key, row in rows.items()}
    return Problem(name=name, difficulty=difficulty, model=MODELS[name], y=observed, rss=rss, **arrays)


FIGURES = json.loads(files("mutagrad").joinpath("nist.json").read_text(encoding="utf-8"))
PROBLEMS = tuple(from_figures(**figures) for figures in FIGURES)
