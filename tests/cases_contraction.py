"""Arguments for the table's tests of the contraction sheet: by name, positional arguments and keywords."""

import numpy as np

random = np.random.default_rng(0)
M23, M34, M33 = random.normal(size=(2, 3)), random.normal(size=(3, 4)), random.normal(size=(3, 3))
V3, T234 = random.normal(size=3), random.normal(size=(2, 3, 4))

CASES = {
    "matmul": [((M23, M34), {}), ((V3, M34), {}), ((M23, V3), {}), ((V3, V3), {}), ((T234, M34.T[None]), {}),
               ((T234[:, None], random.normal(size=(5, 4, 2))), {}), ((V3, T234), {}), ((T234, M34[0]), {})],
    "einsum": [(("ij,jk->ik", M23, M34), {}), (("ii->i", M33), {}), (("ii", M33), {}), (("ij->", M23), {}),
               (("ij,ij,j", M23, M23, V3), {}), (("...j,j->...", T234, M34[0]), {}),
               (("ij,j->i", M23, np.array([2.0])), {}),
               (("b...i,b...j->...ij", T234, T234), {}), (("iji->j", random.normal(size=(3, 2, 3))), {})],
}  # fmt: skip
