"""Arguments for the table's tests of the movement sheet: by name, positional arguments and keywords."""

import numpy as np

random = np.random.default_rng(0)
M23, M34, M33 = random.normal(size=(2, 3)), random.normal(size=(3, 4)), random.normal(size=(3, 3))
V3, T234 = random.normal(size=3), random.normal(size=(2, 3, 4))

CASES = {
    "reshape": [((M23, (3, 2)), {}), ((M34.T, (-1,)), {})],
    "ravel": [((M23,), {}), ((M34.T,), {})],
    "transpose": [((M23,), {}), ((T234,), {"axes": (1, 2, 0)})],
    "squeeze": [((M23[None, :, None],), {}), ((M23[None, :, None],), {"axis": 0})],
    "expand_dims": [((M23, 1), {}), ((M23, (0, 3)), {})],
    "flip": [((M23,), {}), ((T234,), {"axis": 1})],
    "broadcast_to": [((V3, (2, 3)), {}), ((M23[:, None], (2, 4, 3)), {})],
    "diagonal": [((M33,), {}), ((T234,), {"offset": 1, "axis1": 1, "axis2": 2})],
    "concatenate": [(([M23, M23 * 2, M34[:2, :3]],), {}), (([M23, M34],), {"axis": None}),
                    (([T234, T234[:, :1]],), {"axis": 1})],
    "stack": [(([M23, M23 * 2],), {}), (([V3, V3 + 1],), {"axis": -1})],
}  # fmt: skip
