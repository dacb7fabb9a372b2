"""Arguments for the table's tests of the indexing sheet: by name, positional arguments and keywords."""

import numpy as np

random = np.random.default_rng(0)
M23, M34, M33 = random.normal(size=(2, 3)), random.normal(size=(3, 4)), random.normal(size=(3, 3))
V3, T234 = random.normal(size=3), random.normal(size=(2, 3, 4))

CASES = {
    "take_along_axis": [((M34, np.array([[0, 0, 3], [1, 2, 2], [3, 3, 3]])), {"axis": 1}),
                        ((V3, np.array([0, 0, 2])), {"axis": None})],
    "sort": [((M34,), {}), ((M34,), {"axis": 0}), ((M23,), {"axis": None})],
    "argsort": [((M34,), {}), ((M34,), {"axis": 0})],
}  # fmt: skip
