"""Arguments for the table's tests of the reduction sheets: by name, positional arguments and keywords."""

import numpy as np

random = np.random.default_rng(0)
M23, M34, M33 = random.normal(size=(2, 3)), random.normal(size=(3, 4)), random.normal(size=(3, 3))
V3, V5, T234 = random.normal(size=3), random.normal(size=5), random.normal(size=(2, 3, 4))
MASK = np.array([[True, False, True], [False, True, True]])
N23, N34 = M23.copy(), M34.copy()
N23[0, 1] = N34[2, 0] = N34[2, 3] = np.nan
ZEROS = np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0]])

SPREAD = [
    ((M23,), {}), ((M23,), {"axis": 1, "ddof": 1}), ((T234,), {"axis": (0, 2), "keepdims": True}),
    ((M23,), {"axis": 1, "where": MASK}), ((M23,), {"where": MASK, "ddof": 1, "keepdims": True}),
    ((M23,), {"axis": -1, "correction": 1}), ((M23,), {"axis": 0, "mean": M23.mean(0, keepdims=True)}),
    ((M23, 0), {"dtype": np.float64}), ((np.array([[1, 2], [5, 9]]),), {"axis": 0}), ((2.5,), {}),
]  # fmt: skip
QUANTILES = [
    ((M34, 0.3), {}), ((M34, 0.3), {"axis": 0}), ((M34, [0.2, 0.7]), {"axis": 1}), ((V5, 0.5), {}), ((V5, 0), {}),
    ((T234, [[0.1, 0.5], [0.85, 1.0]]), {"axis": (0, 2), "keepdims": True}), ((V5, np.float64(0.3)), {}),
    ((M34, 0.35), {"axis": (), "keepdims": True}), ((np.array([4, 1, 9]), 0.3), {}),
    ((np.array([4, 1, 9]), [0.3, 0.8]), {"method": "lower"}), ((2.5, 0.3), {}),
    *(((M34, [0.05, 0.3, 0.5, 0.95]), {"axis": 1, "method": method}) for method in (
        "lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
        "interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased", "normal_unbiased",
    )),
]  # fmt: skip
TOTALS = [
    ((N23,), {}), ((N23,), {"axis": 0}), ((N34,), {"axis": 1, "keepdims": True}), ((N23,), {"axis": 1, "where": MASK}),
    ((N23,), {"initial": 1.5}), ((np.array([[1, 2], [5, 9]]),), {"axis": 0}), ((N23, (0, 1), np.float64), {}),
]  # fmt: skip
EXTREMES = [
    ((N23,), {}), ((N23,), {"axis": 0}), ((N34,), {"axis": 1, "keepdims": True}), ((N23,), {"initial": 0.25}),
    ((N23,), {"axis": 1, "where": MASK, "initial": 0.25}), ((np.array([[1, 2], [5, 9]]),), {"axis": 0}),
]  # fmt: skip
RUNNING = [((N23,), {}), ((N23,), {"axis": 0}), ((N34,), {"axis": -1, "dtype": np.float64}), ((2.5,), {})]
CHOICES = [((M23,), {}), ((M23,), {"axis": 1, "keepdims": True}), ((M23,), {"axis": 0}), ((2.5,), {})]
TRUTHS = [
    ((M23,), {}), ((ZEROS,), {"axis": 1}), ((ZEROS,), {"axis": (0, 1), "keepdims": True}), ((N23,), {"axis": 0}),
    ((ZEROS,), {"axis": 1, "where": MASK}), ((np.zeros((0, 2)),), {"axis": 0}),
]  # fmt: skip

CASES = {
    "var": SPREAD,
    "std": SPREAD[:-1],
    "nanvar": [*SPREAD[:6], *SPREAD[7:], ((N34,), {"axis": 1}), ((N23,), {"axis": 1, "where": MASK, "keepdims": True})],
    "nanstd": [((N34,), {"axis": 1}), ((N23,), {}), ((N23,), {"axis": 1, "ddof": 1}), *SPREAD[:6]],
    "ptp": [((M23,), {}), ((M23,), {"axis": 0}), ((T234,), {"axis": (0, 2), "keepdims": True})],
    "average": [((M23,), {}), ((M23,), {"axis": 0, "keepdims": True}), ((M23, 1, V3 + 3), {}),
                ((M23, None, M23 + 3), {}), ((T234, (2, 0), M34[:2].T[:, ::-1] + 4), {}),
                ((M23, 1, [1, 2, 3]), {}), (([1, 2, 4],), {"weights": [3, 2, 1]})],
    "median": [((M23,), {}), ((M23,), {"axis": 1}), ((T234,), {"axis": (0, 2), "keepdims": True}),
               ((M23,), {"axis": ()}),
               ((V5,), {}), ((np.array([[4, 1], [9, 2]]),), {"axis": 0}), ((2.5,), {})],
    "nanmedian": [((N34,), {}), ((N34,), {"axis": 1}), ((N34,), {"axis": 0, "keepdims": True}),
                  ((T234,), {"axis": (0, 2)}),
                  ((np.array([[4, 1], [9, 2]]),), {"axis": 0})],
    "quantile": QUANTILES,
    "percentile": [((a, np.multiply(q, 100).tolist()), k) for (a, q), k in QUANTILES],
    "nanquantile": [*QUANTILES[:5], ((N34, 0.3), {}), ((N34, [0.2, 0.6]), {"axis": 0}),
                    ((N34, 0.4), {"axis": 1, "method": "hazen", "keepdims": True}),
                    ((N34, 0.3), {"axis": 1, "method": "lower"})],
    "nanpercentile": [((N34, 30), {}), ((N34, [20, 60]), {"axis": 0, "keepdims": True})],
    "nansum": TOTALS,
    "nanprod": TOTALS,
    "nanmean": [*TOTALS[:4], *TOTALS[5:]],
    "nanmax": EXTREMES,
    "nanmin": EXTREMES,
    "nancumsum": RUNNING,
    "nancumprod": RUNNING,
    "argmax": CHOICES,
    "argmin": CHOICES,
    "nanargmax": [((N23,), {}), ((N34,), {"axis": 1, "keepdims": True})],
    "nanargmin": [((N23,), {}), ((N34,), {"axis": 1, "keepdims": True})],
    "any": TRUTHS,
    "all": TRUTHS,
    "count_nonzero": [((ZEROS,), {}), ((ZEROS,), {"axis": 0, "keepdims": True}), ((N23,), {"axis": (0, 1)})],
    "cumsum": [((M23,), {}), ((M23,), {"axis": 0}), ((T234,), {"axis": -1}), ((M23,), {"axis": 1, "dtype": np.float64}),
               ((2.5,), {"axis": 0})],
    "cumprod": [((M23,), {}), ((M23,), {"axis": 0}), ((np.array([2.0, 0.0, 3.0, 0.0]),), {}),
                ((np.array(2.5),), {"axis": 0})],
    "prod": [((M23,), {}), ((M23,), {"axis": 0}), ((T234,), {"axis": (0, 2), "keepdims": True}),
             ((ZEROS,), {"axis": 1}), ((ZEROS,), {"axis": 1, "where": MASK}), ((M23,), {"initial": 2.5}),
             ((M23, 0, np.float64), {}), ((np.array([[1, 2], [5, 9]]),), {"axis": 0, "initial": 2}),
             ((M23,), {"axis": ()})],
    "diff": [((M23,), {}), ((M34,), {"n": 2, "axis": 0}), ((M23, 1, -1, M23[:, :1], M23[:, 1:]), {}),
             ((M23,), {"axis": 0, "prepend": 0.5}), ((M23, 0), {}), ((np.array([4, 1, 9]),), {}),
             ((np.array([True, False, False]),), {}), ((V3, 4), {})],
    "trapezoid": [((V5,), {}), ((M34,), {"axis": 0, "dx": 0.5}), ((M34, np.arange(4.0)), {}),
                  ((M34, M34 + 1), {"axis": 0}),
                  ((M34, V3), {"axis": 0}), (([1, 2, 4],), {})],
    "norm": [((M23,), {}), ((V5,), {}), ((T234,), {}), ((T234,), {"axis": (0, 2), "keepdims": True}),
             ((M23,), {"axis": 1}),
             *(((V5, ord), {}) for ord in (1, 2, 3, 2.5, 0.5, -1, -2.5, np.inf, -np.inf, 0)),
             ((T234, 3), {"axis": 1, "keepdims": True}), ((T234, np.inf), {"axis": -1}), ((M23, "fro"), {}),
             *(((M34, ord), {}) for ord in (1, -1, np.inf, -np.inf)),
             *(((T234, ord, (2, 0)), {}) for ord in (1, -1, np.inf, -np.inf)),
             ((T234, 1), {"axis": (-1, 1), "keepdims": True}), ((np.array([3, 4]),), {}), ((np.array([3, -4]), 1), {})],
    "logsumexp": [((M23,), {}), ((M23,), {"axis": 0}), ((T234,), {"axis": (0, 2), "keepdims": True}),
                  ((M23,), {"axis": ()})],
    "softmax": [((M23,), {}), ((M23,), {"axis": 0}), ((T234,), {"axis": (0, 2)})],
    "log_softmax": [((M23,), {}), ((M23,), {"axis": 0}), ((T234,), {"axis": (0, 2)})],
}  # fmt: skip
