"""Further programs: targets that are their own operands, indices, `out=`, views of every kind, shapes, dtypes."""

import numpy as np
from scenarios import EITHER, M23, M33, N33, REFUSED, W2, W3, W4, X3, X4, X5, X6, scenario

T234 = 0.3 + np.arange(24).reshape(2, 3, 4) % 7 / 5


def written(identity, title, write, sound="exact", **leaves):
    """Enter `t = x + 0; write(xp, t, ...)`, returning t squared."""

    def program(xp, x, **others):
        t = x + 0.0
        with xp.write(t):
            write(xp, t, *others.values())
        return t * t

    program.__name__ = title.replace(" ", "_")
    scenario(identity, sound, **leaves)(program)


def assign(key, value):
    """A write `t[key] = value(t, ...)`."""
    return lambda xp, t, *others: t.__setitem__(key, value(t, *others))


def augment(op, key, value):
    """A write `t[key] op= value(t, ...)`."""

    def write(xp, t, *others):
        operand = value(t, *others)
        if op == "+":
            t[key] += operand
        elif op == "-":
            t[key] -= operand
        elif op == "*":
            t[key] *= operand
        elif op == "/":
            t[key] /= operand
        else:
            t[key] **= operand

    return write


EVERY, DOTS, TAIL, BACKWARDS = slice(None), Ellipsis, slice(1, 3), slice(None, None, -1)
ENDS = np.array([True, False, True])
W22 = np.array([[1.5, -2.0], [0.5, 0.8]])
ZEROS = {"x": X3, "w": np.maximum(W3, 0)}

# The target is its own operand
for identity, title, write, leaves in [
    ("X100", "own element added", augment("+", DOTS, lambda t: t[0]), {"x": X4}),
    ("X101", "multiplied by own element", augment("*", DOTS, lambda t: t[1]), {"x": X4}),
    ("X102", "divided by own last element", augment("/", DOTS, lambda t: t[-1]), {"x": X4}),
    ("X103", "shifted product", augment("*", slice(1, None), lambda t: t[:-1]), {"x": X4}),
    ("X104", "shifted quotient the other way", augment("/", slice(None, -1), lambda t: t[1:]), {"x": X4}),
    ("X105", "reversed target", augment("*", BACKWARDS, lambda t: t), {"x": X4}),
    ("X106", "column divided by a row", augment("/", (EVERY, 0), lambda t: t[0]), {"x": M33}),
    ("X107", "row multiplied by the diagonal", augment("*", 1, lambda t: t.T[1]), {"x": M33}),
    ("X108", "interleaved columns", augment("*", (EVERY, slice(0, 2)), lambda t: t[:, 1:3]), {"x": M33}),
    ("X109", "power of itself", augment("^", DOTS, lambda t: t), {"x": X4}),
    ("X110", "divided by itself", augment("/", DOTS, lambda t: t), {"x": X4}),
    ("X111", "subtracted from itself", augment("-", DOTS, lambda t: t), {"x": X4}),
    ("X112", "power of a shifted window", augment("^", slice(1, None), lambda t: t[:-1]), {"x": X4}),
    ("X113", "assigned its own multiple", assign(DOTS, lambda t: t.T * 2.0), {"x": M33}),
    ("X114", "assigned its own reverse", assign(EVERY, lambda t: t[::-1]), {"x": X4}),
    ("X115", "block assigned an overlapping block", assign((TAIL, TAIL), lambda t: t[:2, :2]), {"x": M33}),
    ("X116", "row assigned a column", assign(0, lambda t: t[:, 0]), {"x": M33}),
    ("X117", "matrix assigned its first row", assign(EVERY, lambda t: t[0]), {"x": M33}),
    ("X118", "vector assigned its own element", assign(EVERY, lambda t: t[2]), {"x": X4}),
    ("X119", "row added to every row of its transpose", lambda xp, t: t.T.add_(t[0]), {"x": M33}),
    ("X120", "flattened shift", lambda xp, t: t.reshape(9)[1:].multiply_(t.reshape(9)[:-1]), {"x": M33}),
    ("X121", "diagonal added to the first row", lambda xp, t: t[0].add_(xp.diagonal(t)), {"x": M33}),
    ("X122", "diagonal multiplied by the first row", lambda xp, t: xp.diagonal(t).multiply_(t[0]), {"x": M33}),
    ("X123", "copied from an overlapping view", lambda xp, t: t[1:].copy_(t[:-1]), {"x": X5}),
    ("X124", "copied from an overlapping view downwards", lambda xp, t: t[:-1].copy_(t[1:]), {"x": X5}),
    ("X125", "transpose copied into itself", lambda xp, t: t.T.copy_(t), {"x": M33}),
    ("X126", "filled with its own element", lambda xp, t: t.fill_(t[2]), {"x": X4}),
    ("X127", "masked fill with its own element", lambda xp, t: t.masked_fill_(X4 > 0.5, t[0]), {"x": X4}),
    ("X128", "in place matmul", lambda xp, t, b: t.__imatmul__(b), {"x": M33, "b": N33}),
    ("X129", "in place matmul with itself", lambda xp, t: t.__imatmul__(t), {"x": M33}),
    ("X130", "maximum with its reverse", lambda xp, t: t.maximum_(t[::-1] * 1.1), {"x": X4}),
    ("X131", "clipped between own elements", lambda xp, t: t.clip_(t[1], t[2] + 0.1), {"x": X4}),
    ("X132", "arctan2 with a shifted window", lambda xp, t: t[1:].arctan2_(t[:-1]), {"x": X4}),
]:  # fmt: skip
    written(identity, title, write, **leaves)

# out=
for identity, title, write, leaves in [
    ("X140", "out is the divisor", lambda xp, t, w: np.divide(w, t, out=t), {"x": X3, "w": W3}),
    ("X141", "out is the exponent", lambda xp, t, w: np.power(w * w, t, out=t), {"x": X3, "w": W3}),
    ("X142", "out is both factors", lambda xp, t: np.multiply(t, t, out=t), {"x": X3}),
    ("X143", "out is one factor reversed", lambda xp, t: np.multiply(t, t[::-1], out=t), {"x": X4}),
    ("X144", "out is the transpose", lambda xp, t: np.exp(t, out=t.T), {"x": M33}),
    ("X145", "out has a step", lambda xp, t, w: np.sin(w, out=t[::-2]), {"x": X4, "w": W2}),
    ("X146", "out wider than the operands", lambda xp, t, s: np.add(s, 1.0, out=t), {"x": X4, "s": 2.0}),
    ("X147", "out wider than a row", lambda xp, t, w: np.multiply(w, w, out=t), {"x": M23, "w": W3}),
    ("X148", "out under a mask", lambda xp, t, w: np.divide(t, w, out=t, where=W3 > 0), {"x": X3, "w": W3}),
    ("X149", "out under a mask with zero divisors", lambda xp, t, w: np.divide(1.0, w, out=t, where=W3 > 0), ZEROS),
    ("X150", "out under a broadcast mask", lambda xp, t: np.exp(t, out=t, where=ENDS), {"x": M23}),
    ("X151", "shifted out under a mask", lambda xp, t: np.multiply(t[1:], t[:-1], out=t[1:], where=ENDS), {"x": X4}),
    ("X152", "maximum with out", lambda xp, t, w: np.maximum(t, w, out=t), {"x": X3, "w": W3}),
    ("X153", "clip with out", lambda xp, t, w: np.clip(t, 0.5, w * w, out=t), {"x": X3, "w": W3}),
    ("X154", "sum into a row of the summed", lambda xp, t: np.sum(t, axis=0, out=t[1]), {"x": M33}),
    ("X155", "mean into a column of the averaged", lambda xp, t: np.mean(t, axis=1, out=t[:, 0]), {"x": M33}),
    ("X156", "cumulative sum into itself", lambda xp, t: np.cumsum(t, out=t), {"x": X4}),
    ("X157", "cumulative product into itself", lambda xp, t: np.cumprod(t, out=t), {"x": X4}),
    ("X158", "largest into a row", lambda xp, t: np.max(t, axis=0, out=t[2]), {"x": M33}),
    ("X159", "product into a row", lambda xp, t: np.prod(t, axis=0, out=t[2]), {"x": M33}),
    ("X160", "own product assigned", assign(DOTS, lambda t: t * t.T), {"x": M33}),
    ("X162", "matmul into its own block", lambda xp, t: np.matmul(t[:2, :2], t[1:, 1:], out=t[:2, 1:]), {"x": M33}),
    ("X163", "einsum into a row", lambda xp, t: np.einsum("ij,i->j", t, t[0], out=t[0]), {"x": M33}),
    ("X164", "reduce with out", lambda xp, t: np.add.reduce(t, axis=1, out=t[0]), {"x": M33}),
    ("X165", "ufunc method of the library with out", lambda xp, t, w: xp.multiply(t, w, out=t[:]), {"x": X3, "w": W3}),
    ("X166", "square root into a reshape", lambda xp, t: xp.sqrt(t, out=t.reshape(3, 3)), {"x": M33}),
    ("X167", "masked copyto from an overlap", lambda xp, t: np.copyto(t[1:], t[:-1], where=X3 > 0.5), {"x": X4}),
]:  # fmt: skip
    written(identity, title, write, EITHER, **leaves)


# NumPy joins piece by piece, and would read what it has written already.
@scenario("X161", EITHER, x=X5, reference=lambda x: np.concatenate([x[2:], x[:2]]) ** 2)
def concatenated_into_itself(xp, x):
    t = x + 0.0
    with xp.write(t):
        np.concatenate([t[2:], t[:2]], out=t)
    return t * t


@scenario("X168", EITHER, x=M33, reference=lambda x: np.stack([x[2], x[0], x[1]]) ** 2)
def stacked_into_itself(xp, x):
    t = x + 0.0
    with xp.write(t):
        np.stack([t[2], t[0], t[1]], out=t)
    return t * t


# Index arrays and masks
for identity, title, write, leaves in [
    ("X170", "elements swapped by index", assign([0, 1], lambda t: t[[1, 0]]), {"x": X4}),
    ("X171", "elements rotated by index", assign([0, 1, 2], lambda t: t[[1, 2, 0]]), {"x": X4}),
    ("X172", "index assigned an overlapping view", assign([0, 1], lambda t: t[1:3]), {"x": X4}),
    ("X173", "index assigned an overlapping view upwards", assign([1, 2], lambda t: t[0:2]), {"x": X4}),
    ("X174", "mask assigned by its complement", assign(X4 > 0.75, lambda t: t[X4 < 0.75]), {"x": X4}),
    ("X175", "masked factor", augment("*", X4 > 0.5, lambda t, w: w), {"x": X4, "w": W3}),
    ("X176", "repeated index added once", augment("+", [0, 0, 2], lambda t, w: w), {"x": X4, "w": W3}),
    ("X177", "repeated index multiplied once", augment("*", [1, 1], lambda t, w: w), {"x": X4, "w": W2}),
    ("X178", "same element by two names of its index", assign([-1, 3], lambda t, w: w), {"x": X4, "w": W2}),
    ("X179", "scalar to repeated indices", assign([0, 2, 0], lambda t, s: s), {"x": X4, "s": 2.0}),
    ("X180", "one value to repeated indices", assign([0, 2, 0], lambda t, s: s), {"x": X4, "s": [2.0]}),
    ("X181", "pairs of indices", assign(([0, 1, 2], [1, 2, 0]), lambda t, w: w), {"x": M33, "w": W3}),
    ("X182", "repeated pairs of indices", assign(([0, 1, 0], [1, 2, 1]), lambda t, w: w), {"x": M33, "w": W3}),
    ("X183", "indices and a slice", assign(([2, 0], slice(1, None)), lambda t, w: w), {"x": M33, "w": W2}),
    ("X184", "repeated rows by a broadcast value", assign([0, 0, 1], lambda t, w: w), {"x": M33, "w": W3}),
    ("X185", "repeated columns", assign((EVERY, [1, 1]), lambda t, w: w), {"x": M33, "w": M23.T}),
    ("X186", "indices around a slice", assign(([0, 1], EVERY, [1, 1]), lambda t, w: w), {"x": T234, "w": M23}),
    ("X187", "indices after dots", assign((DOTS, [2, 2, 0]), lambda t, w: w), {"x": M33, "w": M33}),
    ("X188", "two-dimensional index", assign(np.array([[0, 1], [1, 3]]), lambda t, w: w), {"x": X4, "w": W22}),
    ("X189", "two-dimensional mask", assign(M33 > 1.4, lambda t, s: s), {"x": M33, "s": 2.0}),
    ("X190", "mask of rows", assign(ENDS, lambda t, w: w), {"x": M33, "w": M23}),
    ("X191", "mask of rows and a column", assign((ENDS, 1), lambda t, w: w), {"x": M33, "w": W2}),
    ("X192", "index with a new axis", assign((None, [0, 2]), lambda t, w: w), {"x": X4, "w": W2}),
    ("X193", "numpy integers", assign((np.int64(1), slice(np.int32(0), 2)), lambda t, w: w), {"x": M33, "w": W2}),
    ("X194", "nothing by an empty index", assign([], lambda t, s: s), {"x": X4, "s": 2.0}),
    ("X195", "nothing by a mask without hits", assign(np.zeros(4, bool), lambda t, s: s), {"x": X4, "s": 2.0}),
    ("X196", "mask that is a scalar", assign(np.True_, lambda t, w: w), {"x": X4, "w": W4}),
    ("X197", "added at repeated indices", lambda xp, t, w: xp.add_at(t, [1, 1, 3], w), {"x": X4, "w": W3}),
    ("X198", "scalar added at repeated indices", lambda xp, t, s: xp.add_at(t, [1, 1, 3], s), {"x": X4, "s": 2.0}),
    ("X199", "row added at repeated rows", lambda xp, t, w: xp.add_at(t, [1, 1], w), {"x": M33, "w": W3}),
    ("X200", "added at pairs", lambda xp, t, w: xp.add_at(t, ([0, 0], [1, 1]), w), {"x": M33, "w": W2}),
    ("X201", "added at a slice", lambda xp, t, w: xp.add_at(t, slice(1, 3), w), {"x": X4, "w": W2}),
    ("X202", "added at a mask", lambda xp, t, w: xp.add_at(t, X4 > 0.5, w), {"x": X4, "w": W3}),
    ("X203", "own window added at indices", lambda xp, t: xp.add_at(t, [0, 0], t[1:3]), {"x": X4}),
    ("X204", "own elements added at indices", lambda xp, t: xp.add_at(t, [0, 0, 1], t[[0, 1, 2]]), {"x": X4}),
    ("X205", "product of own elements by index", augment("*", [0, 2], lambda t: t[[2, 0]]), {"x": X4}),
    ("X206", "mask computed from the target", lambda xp, t: t.__setitem__(t > 0.5, 0.25), {"x": X4}),
    ("X207", "factor under its own mask", lambda xp, t: assign(t > 0.5, lambda t: t[t > 0.5] * 3.0)(xp, t), {"x": X4}),
    ("X208", "index into a strided view", lambda xp, t, w: t[::2].__setitem__([1, 1], w), {"x": X6, "w": W2}),
    ("X209", "mask into a transpose", lambda xp, t, w: t.T.__setitem__(M33 > 1.6, w), {"x": M33, "w": W3}),
    ("X210", "index into a reversed view", lambda xp, t, w: t[::-1].__setitem__([0, 2], w), {"x": X4, "w": W2}),
    ("X211", "added at indices of a view", lambda xp, t, w: xp.add_at(t[1:], [0, 0], w), {"x": X4, "w": W2}),
    ("X212", "masked fill with a tracked scalar", lambda xp, t, s: t.masked_fill_(X4 > 0.5, s), {"x": X4, "s": 2.0}),
    ("X213", "masked fill with a broadcast mask", lambda xp, t, s: t.masked_fill_(ENDS, s), {"x": M33, "s": 2.0}),
]:  # fmt: skip
    written(identity, title, write, **leaves)

# Views of every kind, written by a tracked factor or overwritten
for identity, title, view, leaves in [
    ("X220", "new axes", lambda xp, t: t[None, :, None], {"x": X3, "w": [[[1.5], [-2.0], [0.5]]]}),
    ("X221", "dots and an element", lambda xp, t: t[..., 1], {"x": M33, "w": W3}),
    ("X222", "negative step", lambda xp, t: t[4:0:-2], {"x": X5, "w": W2}),
    ("X223", "expanded axis", lambda xp, t: xp.expand_dims(t, 0)[0, 1:], {"x": X4, "w": W3}),
    ("X224", "flip of one axis", lambda xp, t: xp.flip(t, axis=1)[0], {"x": M23, "w": W3}),
    ("X225", "flip of all axes", lambda xp, t: xp.flip(t)[1, :2], {"x": M23, "w": W2}),
    ("X226", "permuted axes", lambda xp, t: xp.transpose(t, (2, 0, 1))[1:3, 1, ::2], {"x": T234, "w": W22}),
    ("X227", "ravel of a contiguous slice", lambda xp, t: xp.ravel(t[1:])[2:5], {"x": M33, "w": W3}),
    ("X228", "diagonal of a reversed block", lambda xp, t: xp.diagonal(t[::-1, 1:][:2]), {"x": M33, "w": W2}),
    ("X229", "reshape of a transpose of one column", lambda xp, t: t[:, 1:2].T.reshape(3), {"x": M33, "w": W3}),
    ("X230", "squeeze of a slice", lambda xp, t: xp.squeeze(t[1:2, :2]), {"x": M33, "w": W2}),
    ("X231", "one element", lambda xp, t: t[1, 2, ...], {"x": M33, "w": 1.5}),
    ("X232", "one element with a new axis", lambda xp, t: t[1, 2, ...][None], {"x": M33, "w": [1.5]}),
    ("X233", "view of a view of a view", lambda xp, t: t[1:][::-1][::2], {"x": X5, "w": W2}),
    ("X234", "empty window", lambda xp, t: t[3:2], {"x": X4, "w": np.zeros(0)}),
    ("X235", "reshape that splits an axis", lambda xp, t: t.reshape(3, 2)[::-1, 1], {"x": X6, "w": W3}),
    ("X236", "iteration over rows", lambda xp, t: list(t)[-1][1:], {"x": M33, "w": W2}),
    ("X237", "matrix transpose of a stack", lambda xp, t: t.mT[0, 2], {"x": T234, "w": W3}),
]:  # fmt: skip

    def multiplied(xp, x, w, view=view):
        t = x + 0.0
        v = view(xp, t)
        with xp.write(t):
            v *= w
        return t * t, v * 2.0

    def overwritten(xp, x, w, view=view):
        t = x + 0.0
        v, again = view(xp, t), view(xp, t)
        with xp.write(t):
            v.copy_(w * w)
        with xp.write(t):
            again.sin_()
        return t, v * again

    for suffix, program in (("", multiplied), ("b", overwritten)):
        program.__name__ = f"{title}_{program.__name__}".replace(" ", "_")
        scenario(identity + suffix, EITHER, **leaves)(program)

# Shapes and dtypes
for identity, title, write, leaves in [
    ("X240", "value of another length under a mask", assign(X4 > 0.5, lambda t, w: w), {"x": X4, "w": W2}),
    ("X241", "value of another shape at indices", assign([0, 1], lambda t, w: w), {"x": X4, "w": W3}),
    ("X242", "index out of range", assign(4, lambda t, s: s), {"x": X4, "s": 2.0}),
    ("X243", "too many indices", assign((0, 0), lambda t, s: s), {"x": X4, "s": 2.0}),
    ("X244", "complex value", lambda xp, t: t.__setitem__(0, 1j), {"x": X4}),
    ("X245", "complex operand", lambda xp, t: t.add_(np.ones(4, complex)), {"x": X4}),
    ("X246", "text", lambda xp, t: t.__setitem__(0, "a"), {"x": X4}),
    ("X247", "ragged value", lambda xp, t: t.__setitem__(slice(0, 2), [[1.0], [2.0, 3.0]]), {"x": X4}),
    ("X248", "fill with an array", lambda xp, t: t.fill_(np.ones(4)), {"x": X4}),
    ("X249", "mask of integers", lambda xp, t: t.masked_fill_(np.array([1, 0, 1, 0]), 0.0), {"x": X4}),
    ("X250", "broadcast view filled", lambda xp, t: xp.broadcast_to(t, (2, 4)).fill_(0.0), {"x": X4}),
    ("X251", "broadcast view of one element", lambda xp, t: xp.broadcast_to(t[0], (3,))[1:2].add_(1.0), {"x": X4}),
    ("X252", "out of another dtype kind", lambda xp, t: np.add(t, 1.0, out=xp.zeros(4, dtype=int)), {"x": X4}),
    ("X253", "out and mask do not fit", lambda xp, t: np.add(t, 1.0, out=t, where=np.ones(3, bool)), {"x": X4}),
    ("X254", "matmul result does not fit", lambda xp, t, b: t.__imatmul__(b), {"x": M33, "b": M23.T}),
    ("X255", "added at an index out of range", lambda xp, t, s: xp.add_at(t, [0, -5], s), {"x": X4, "s": 2.0}),
    ("X256", "numpy view of a tensor", lambda xp, t: t.numpy().__setitem__(0, 1.0), {"x": X4}),
    ("X257", "copy of a larger array", lambda xp, t, a: t.copy_(a), {"x": X3, "a": M23}),
    ("X258", "nan as index", lambda xp, t: t.__setitem__(np.nan, 1.0), {"x": X4}),
    ("X259", "floats as indices", lambda xp, t: t.__setitem__([0.0, 1.0], 1.0), {"x": X4}),
    ("X260", "slice with a step of zero", lambda xp, t: t.__setitem__(slice(0, 2, 0), 1.0), {"x": X4}),
]:  # fmt: skip
    written(identity, title, write, REFUSED, **leaves)

for identity, title, write, leaves in [
    ("X270", "whole number", assign(1, lambda t: 3), {"x": X4}),
    ("X271", "truth value", assign(1, lambda t: True), {"x": X4}),
    ("X272", "whole numbers", lambda xp, t: t.multiply_(np.arange(4)), {"x": X4}),
    ("X273", "leading axes of length one", assign(slice(0, 3), lambda t, w: w), {"x": X4, "w": [[W3]]}),
    ("X274", "float32 value", lambda xp, t, w: t.copy_(w), {"x": X3, "w": W3.astype(np.float32)}),
    ("X275", "numpy scalar", augment("*", slice(1, 3), lambda t: np.float64(3.0)), {"x": X4}),
    ("X276", "nested list", lambda xp, t: t.add_([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), {"x": M23}),
    ("X277", "row broadcast into a matrix", augment("*", DOTS, lambda t, w: w), {"x": M23, "w": W3}),
    ("X278", "column broadcast into a matrix", augment("/", DOTS, lambda t, w: w), {"x": M23, "w": W2[:, None]}),
    ("X279", "scalar broadcast into a block", assign((slice(0, 2), TAIL), lambda t, s: s * s), {"x": M33, "s": 2.0}),
    ("X280", "row broadcast into a strided block", assign((EVERY, BACKWARDS), lambda t, w: w), {"x": M33, "w": W3}),
    ("X281", "list with tracked elements", lambda xp, t, s: t[0:2].copy_(xp.stack([s, s * s])), {"x": X4, "s": 2.0}),
    ("X282", "boolean operand", lambda xp, t: t.multiply_(np.array([True, False, True, True])), {"x": X4}),
    ("X283", "own mask as a factor", lambda xp, t: t.multiply_(t > 0.5), {"x": X4}),
]:  # fmt: skip
    written(identity, title, write, **leaves)


@scenario("X290", x=X3.astype(np.float32), w=W3, tolerance=1e-5)
def float32_target_of_many_kinds(xp, x, w):
    t = x + 0
    with xp.write(t):
        t *= 2.0
    with xp.write(t):
        t[1:] = w[1:]
    with xp.write(t):
        t /= w
    with xp.write(t):
        np.sin(t, out=t)
    return t


@scenario("X291", x=X3, w=W3.astype(np.float32), tolerance=1e-5)
def float64_target_of_float32_operands(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        t *= w
    with xp.write(t):
        t[[0, 0]] = w[1:]
    with xp.write(t):
        xp.add_at(t, [1, 1], w[:2])
    with xp.write(t):
        np.power(t, 2 * xp.ones(3, dtype=np.float32), out=t)
    return t


@scenario("X292", x=X3, w=W3.astype(np.float32), tolerance=1e-5)
def float64_result_into_a_float32_buffer(xp, x, w):
    buffer = xp.zeros(3, dtype=np.float32)
    with xp.write(buffer):
        np.multiply(x, w, out=buffer)
    with xp.write(buffer):
        buffer[1] = x[0]
    return buffer * w
