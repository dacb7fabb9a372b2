"""Arguments for the table's tests of the reduction sheet: by name, positional arguments and keywords."""

import numpy as np

random = np.random.default_rng(0)
M23, M34, M33 = random.normal(size=(2, 3)), random.normal(size=(3, 4)), random.normal(size=(3, 3))
V3, T234 = random.normal(size=3), random.normal(size=(2, 3, 4))

CASES = {
    "var": [((M23,), {}), ((M23,), {"axis": 1, "ddof": 1}), ((T234,), {"axis": (0, 2), "keepdims": True})],
    "logsumexp": [((M23,), {}), ((M23,), {"axis": 0}), ((T234,), {"axis": (0, 2), "keepdims": True})],
    "softmax": [((M23,), {}), ((M23,), {"axis": 0}), ((T234,), {"axis": (0, 2)})],
    "argmax": [((M23,), {}), ((M23,), {"axis": 1, "keepdims": True})],
    "argmin": [((M23,), {}), ((M23,), {"axis": 0})],
    "cumsum": [((M23,), {}), ((M23,), {"axis": 0}), ((T234,), {"axis": -1})],
    "cumprod": [((M23,), {}), ((M23,), {"axis": 0}), ((np.array([2.0, 0.0, 3.0, 0.0]),), {})],
    "prod": [((M23,), {}), ((M23,), {"axis": 0}), ((T234,), {"axis": (0, 2), "keepdims": True}),
             ((np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0]]),), {"axis": 1})],
}  # fmt: skip
