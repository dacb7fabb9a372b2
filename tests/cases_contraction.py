"""Arguments for the table's tests of the contraction sheet: by name, positional arguments and keywords."""

import numpy as np

random = np.random.default_rng(0)


def some(*shape):
    return random.normal(size=shape)


M23, M34, M33, V3, T234 = some(2, 3), some(3, 4), some(3, 3), some(3), some(2, 3, 4)
# Pairs whose last axes fit: with numbers, vectors and stacks among them, and axes of length 1 and 0.
LAST = [(V3, V3), (M23, V3), (V3, M23), (M23, M33), (T234, some(4)), (T234, M34), (M34, some(5, 2, 4)),
        (some(2, 1), some(3, 1)), (some(2, 0), some(3, 0)), (some(1), some(1))]  # fmt: skip
SCALED = [(2.5, M23), (T234, np.array(2.0)), (np.array(3.0), np.array(-2.0))]
LAST_BUT_ONE = [(V3, V3), (M23, V3), (V3, M34), (M23, M34), (T234, some(4)), (T234, some(4, 2)), (V3, some(2, 3, 4)),
                (M23, some(2, 3, 4)), (T234, some(2, 4, 3)), (some(2, 1), some(1, 3)), (some(2, 0), some(0, 3)),
                (some(0, 3), some(2, 3, 4))]  # fmt: skip
ANY = [(V3, some(2)), (M23, V3), (V3, M23), (M23, some(2, 1)), (T234, some(2)), (some(1), some(1, 1)),
       (some(2, 0), V3)]  # fmt: skip
SLIDING = [(some(n), some(m), mode) for n, m in [(6, 3), (6, 4), (3, 6), (4, 6), (5, 5), (4, 4), (1, 4), (4, 1), (1, 1)]
           for mode in ("full", "same", "valid")]  # fmt: skip
SPACE = [((V3, V3), {}), ((some(4, 3), V3), {}), ((V3, some(4, 3)), {}), ((some(4, 1, 3), some(5, 3)), {}),
         ((some(3, 4), some(3, 4)), {"axis": 0}), ((some(3, 4), some(4, 3)), {"axisa": 0}),
         ((some(4, 3), some(3, 4)), {"axisb": 0, "axisc": 0}), ((some(3, 2, 4), some(4, 3)), {"axisa": 0, "axisc": 1}),
         ((some(2, 3, 4), some(2, 3, 4)), {"axis": -2}), ((some(4, 3), V3), {"axisc": 0}),
         ((some(3, 1), some(2, 3, 4)), {"axis": -2}),
         ((some(0, 3), V3), {})]  # fmt: skip


def pairs(*groups):
    return [(pair, {}) for group in groups for pair in group]


CASES = {
    "matmul": [((M23, M34), {}), ((V3, M34), {}), ((M23, V3), {}), ((V3, V3), {}), ((T234, M34.T[None]), {}),
               ((T234[:, None], some(5, 4, 2)), {}), ((V3, T234), {}), ((T234, M34[0]), {}), ((T234, some(4, 2)), {}),
               ((M23, some(2, 3, 4)), {}), ((some(2, 1), some(1, 3)), {}), ((some(2, 0), some(0, 3)), {}),
               ((some(0, 2, 3), M34), {}), ((some(1, 2, 3), some(4, 3, 2)), {}), ((some(2, 5, 2, 3), V3), {})],
    "dot": pairs(LAST_BUT_ONE, SCALED),
    "inner": pairs(LAST, SCALED),
    "outer": pairs(ANY, SCALED),
    "kron": pairs(ANY, SCALED, [(T234, some(2, 1, 2)), (some(2, 1, 2, 1), M23)]),
    "vdot": pairs([(V3, V3), (M23, M23), (M23, some(3, 2)), (M23, some(6)), (some(0), some(0)), SCALED[-1]]),
    "vecdot": [*pairs([(V3, V3), (M23, V3), (V3, M23), (T234, some(3, 4)), (some(2, 1, 4), some(3, 4)),
                       (some(2, 0), some(0)), (some(2, 1), some(3, 1, 1))]),
               ((M23, some(2, 1)), {"axis": 0}), ((T234, some(1, 3, 1)), {"axis": 1}),
               ((T234, some(3, 4)), {"axis": -2}), ((some(4, 1), some(2, 4, 3)), {"axis": -2})],
    "tensordot": [((M23, M34), {"axes": 1}), ((M23, V3), {"axes": 0}), ((T234, some(3, 4, 2)), {}), ((M23, M23), {}),
                  ((M23, some(3, 4, 2)), {"axes": ([1, 0], [0, 2])}),
                  ((T234, some(4, 5, 2)), {"axes": ([0, 2], [2, 0])}),
                  ((T234, some(4, 5, 2)), {"axes": ([-1, -3], [-3, -1])}), ((T234, some(5, 3)), {"axes": (1, 1)}),
                  ((T234, some(5, 3)), {"axes": ((1,), (-1,))}),
                  ((T234, some(4, 2, 3)), {"axes": ([2, 0, 1], [0, 1, 2])}),
                  ((M33, M33), {"axes": ([0, 1], [1, 0])}), ((np.array(2.0), M23), {"axes": 0}),
                  ((some(2, 0), some(0, 3)), {"axes": 1}), ((some(2, 1), some(1, 2)), {"axes": ([0, 1], [1, 0])}),
                  ((some(2, 3, 2), some(2, 2, 5)), {"axes": ([2, 0], [0, 1])})],
    "cross": SPACE,
    "convolve": [*pairs(SLIDING), *pairs([(np.array(2.0), V3), (V3, np.array(2.0)), (np.array(2.0), np.array(3.0))])],
    "correlate": pairs(SLIDING),
    "einsum": [(("ij,jk->ik", M23, M34), {}), (("ii->i", M33), {}), (("ii", M33), {}), (("ij->", M23), {}),
               (("ij,ij,j", M23, M23, V3), {}), (("...j,j->...", T234, M34[0]), {}),
               (("ij,j->i", M23, np.array([2.0])), {}), (("ij,ij->ij", M23, some(1, 3)), {}),
               (("ii,i->i", some(1, 1), V3), {}), (("ij,jk,kl->il", M23, M34, some(1, 2)), {"optimize": True}),
               (("b...i,b...j->...ij", T234, T234), {}), (("iji->j", some(3, 2, 3)), {}),
               (("iii->i", some(2, 2, 2)), {}), (("i...->...", T234), {}),
               (("...,...", M23, V3), {}), ((" ji , j k ", M23, some(2, 4)), {}),
               (("i,i->", some(0), some(0)), {}), (("ij,kl->ijkl", M23, some(1, 2)), {}), (("ij,j->ij", M23, V3), {}),
               (("i,->i", V3, np.array(2.0)), {}), (("ii,ij", M33, M34), {}), (("ij->ji", M23), {"optimize": True})],
}  # fmt: skip
