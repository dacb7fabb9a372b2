"""Arguments for the table's tests of the indexing sheet: by name, positional arguments and keywords."""

import numpy as np

random = np.random.default_rng(0)
M23, M34, M33 = random.normal(size=(2, 3)), random.normal(size=(3, 4)), random.normal(size=(3, 3))
V3, T234 = random.normal(size=3), random.normal(size=(2, 3, 4))

ROW = np.array([0.3, -1.0, 0.5, 2.0, -0.2])
KNOTS, HEIGHTS = np.array([-1.0, 0.1, 0.9, 2.5]), np.array([1.0, -0.5, 3.0, 0.2])
SPREAD = np.array([[-2.0, -0.7, 0.3], [1.1, 2.2, 4.0]])

CASES = {
    "take": [((M34, [2, 0, 2]), {"axis": 0}), ((M34, np.array([[1, -1], [1, 3]])), {"axis": -1}), ((M34, 5), {}),
             ((M34, [[-13, 12], [3, 3]]), {"mode": "wrap"}), ((M34, [-7, 9, 2]), {"axis": 1, "mode": "clip"})],
    "take_along_axis": [((M34, np.array([[0, 0, 3], [1, 2, 2], [3, 3, 3]])), {"axis": 1}),
                        ((V3, np.array([0, 0, 2])), {"axis": None}),
                        ((T234, np.array([[[1], [0]]])[:, :, [0, 0, 0, 0]]), {"axis": 1})],
    "compress": [(([True, False, True], M34), {"axis": 0}), (([0, 1], M34), {"axis": 1}),
                 (([False, True, True], M23), {})],
    "extract": [((M23 > 0, M23), {}), (([1, 0, 0, 1, 1, 0], M23), {})],
    "choose": [((np.array([2, 0, 1]), [V3, M23, M33[:1]]), {}),
               ((np.array([[4], [-1]]), [V3, V3 + 1]), {"mode": "wrap"}),
               ((np.array([4, -1, 1]), [V3, V3 + 1]), {"mode": "clip"})],
    "select": [(([M23 > 0.5, M23 > -0.5], [M23, V3]), {}), (([M23 > 0.5, M23 > -0.5], [V3, M23]), {"default": 2.0})],
    "sort": [((M34,), {}), ((M34,), {"axis": 0}), ((M23,), {"axis": None})],
    "argsort": [((M34,), {}), ((M34,), {"axis": 0})],
    "partition": [((M34, (0, 1, 2, 3)), {}), ((M34, (0, 1, 2)), {"axis": 0}), ((V3, (0, 1, 2)), {"axis": None})],
    "argpartition": [((M34,), {"kth": (0, 1, 2, 3)}), ((M34,), {"kth": (0, 1, 2), "axis": 0})],
    "unique": [((M23,), {}), ((M34,), {"axis": 0}), ((T234,), {"axis": -1})],
    "argwhere": [((np.where(M23 > 0, M23, 0.0),), {}), ((np.zeros(3),), {})],
    "flatnonzero": [((np.where(M23 > 0, M23, 0.0),), {})],
    "nonzero": [((np.where(M23 > 0, M23, 0.0),), {}), ((V3,), {})],
    "searchsorted": [((KNOTS, SPREAD), {}), ((KNOTS, KNOTS), {"side": "right"}),
                     ((KNOTS[::-1].copy(), SPREAD), {"sorter": [3, 2, 1, 0]})],
    "digitize": [((SPREAD, KNOTS), {}), ((KNOTS, KNOTS), {"right": True})],
    "isin": [((M23, M23[:, 1]), {}), ((M23, M23[:, 1]), {"invert": True})],
    "bincount": [((np.array([3, 0, 3, 1, 3]), ROW), {}), ((np.array([1, 0, 1, 1, 1]), ROW), {"minlength": 4})],
    "interp": [((SPREAD, KNOTS, HEIGHTS), {}), ((SPREAD, KNOTS, HEIGHTS, -7.0, 8.0), {}),
               ((SPREAD, KNOTS, HEIGHTS), {"period": 3.7}), ((SPREAD, KNOTS[[2, 0, 3, 1]], HEIGHTS), {"period": -3.7}),
               ((SPREAD, np.array([0.5]), np.array([2.0])), {}), ((np.array(0.4), KNOTS, HEIGHTS), {})],
}  # fmt: skip
