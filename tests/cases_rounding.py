"""Arguments for the table's tests of the rounding sheet: by name, positional arguments and keywords."""

import numpy as np

random = np.random.default_rng(0)
M23, V3, T234 = random.normal(size=(2, 3)), random.normal(size=3), random.normal(size=(2, 3, 4))

CASES = {
    "round": [((M23,), {}), ((M23 * 100, 1), {}), ((T234,), {"decimals": -1})],
    "isclose": [((M23, M23 + 1e-9), {}), ((M23, M23 * 1.01), {"rtol": 0.02}), ((M23, V3), {"atol": 0.5, "rtol": 0.0})],
    "nan_to_num": [((M23,), {}), ((M23, 7.0), {"posinf": 1.0})],
}  # fmt: skip
