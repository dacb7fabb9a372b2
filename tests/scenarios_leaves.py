"""Further programs: leaves reached by every road, and writes beside or across kept windows."""

import numpy as np
from scenarios import EITHER, LEAF, M23, M33, N33, REFUSED, W2, W3, W4, X3, X4, X5, X6, scenario

# Leaves


def leaf_written(identity, title, write, sound=LEAF, **leaves):
    """Enter a program that writes into its first leaf, x, by some road."""

    def program(xp, x, **others):
        with xp.write(x):
            write(xp, x, *others.values())
        return x * x

    program.__name__ = title.replace(" ", "_")
    scenario(identity, sound, x=leaves.pop("x", X4), **leaves)(program)


def _under_enable_grad(xp, x):
    with xp.no_grad(), xp.enable_grad():
        x += 1.0


def _through_a_view_taken_under_no_grad(xp, x):
    with xp.no_grad():
        v = x[1:3]
    v *= 2.0


def _swap(xp, x):
    x[0], x[1] = x[1] + 0.0, x[0] + 0.0


def _augmented(xp, x, w):
    x[1:3] *= w


leaf_written("X001", "leaf added to by add_", lambda xp, x: x.add_(1.0))
leaf_written("X002", "float32 leaf multiplied", lambda xp, x: x.multiply_(2.0), x=X4.astype(np.float32))
leaf_written("X003", "scalar leaf zeroed", lambda xp, x: x.zero_(), x=2.0)
leaf_written("X004", "leaf filled", lambda xp, x: x.fill_(2.0))
leaf_written("X005", "tracked value copied into a leaf", lambda xp, x, w: x.copy_(w), w=W4)
leaf_written("X006", "slice of a leaf assigned", lambda xp, x, w: x.__setitem__(slice(1, 3), w), w=W2)
leaf_written("X007", "slice of a leaf multiplied", _augmented, w=W2)
leaf_written("X008", "leaf assigned under a mask", lambda xp, x: x.__setitem__(X4 > 0.5, 0.0))
leaf_written("X009", "leaf assigned at indices", lambda xp, x, w: x.__setitem__([2, 0], w), w=W2)
leaf_written("X010", "leaf added to at indices", lambda xp, x, w: xp.add_at(x, [0, 0], w), w=W2)
leaf_written("X011", "out into a slice of a leaf", lambda xp, x, w: np.exp(w, out=x[::2]), w=W2)
leaf_written("X012", "out into a reversed leaf", lambda xp, x: np.multiply(x, 2.0, out=x[::-1]))
leaf_written("X013", "masked out into a leaf", lambda xp, x: np.add(x, 1.0, out=x, where=X4 > 0.5))
leaf_written("X014", "copyto into a leaf", lambda xp, x, w: np.copyto(x, w), w=W4)
leaf_written("X015", "masked copyto into a leaf", lambda xp, x, w: np.copyto(x, w, where=X4 > 0.5), w=W4)
leaf_written("X016", "one element of a leaf multiplied", lambda xp, x: x[2, ...].multiply_(3.0))
leaf_written("X017", "leaf reshaped and multiplied", lambda xp, x: x.reshape(2, 2).multiply_(3.0))
leaf_written("X018", "transpose of a leaf zeroed", lambda xp, x: x.T.zero_(), x=M23)
leaf_written("X019", "diagonal of a leaf zeroed", lambda xp, x: xp.diagonal(x).zero_(), x=M33)
leaf_written("X020", "column of a leaf filled", lambda xp, x: x[:, 1].fill_(2.0), x=M33)
leaf_written("X021", "leaf filled under a mask", lambda xp, x: x.masked_fill_(X4 > 0.5, 2.0))
leaf_written("X022", "leaf written under enable_grad", _under_enable_grad)
leaf_written("X023", "view taken under no_grad of a leaf", _through_a_view_taken_under_no_grad)
leaf_written("X024", "elements of a leaf swapped", _swap)
leaf_written("X025", "matmul out into a leaf", lambda xp, x, b: np.matmul(x, b, out=x), x=M33, b=N33)
leaf_written("X026", "np.add.at on a leaf", lambda xp, x: np.add.at(x, [1, 1], 1.0))
leaf_written("X027", "leaf clipped by np.clip", lambda xp, x: np.clip(x, 0.5, 1.0, out=x))
leaf_written("X028", "sum of rows into a leaf", lambda xp, x, a: np.sum(a, axis=0, out=x), x=X3, a=M23)


@scenario("X030", LEAF, x=X4, shared=True)
def other_wrap_of_the_memory_of_a_leaf_written(xp, x):
    other = xp.asarray(xp.memory("x"))
    with xp.write(x, other):
        other += 1.0
    return x * x


@scenario("X031", LEAF, x=X4, shared=True)
def wrap_of_a_reversed_slice_of_a_leaf_written(xp, x):
    other = xp.asarray(xp.memory("x")[2::-1])
    with xp.write(x, other):
        other[0] = 5.0
    return x * x


@scenario("X032", x=X4, w=W2)
def write_beside_a_kept_slice_of_shared_memory(xp, x, w):
    memory = np.zeros(6)
    whole = xp.asarray(memory)
    part = xp.asarray(memory[0:2])
    y = part * w
    with xp.write(whole, y):
        whole[2:] = x
    return y, whole * whole


@scenario("X033", x=X4)
def empty_write_into_a_leaf(xp, x):
    with xp.write(x):
        x[2:2] = 7.0
    with xp.write(x):
        x[[]] = 7.0
    with xp.write(x):
        x[4:] += 1.0
    return x * x


@scenario("X034", x=X4)
def leaf_updated_in_nested_no_grad(xp, x):
    with xp.no_grad():
        with xp.enable_grad():
            y = x + 1.0
        with xp.write(x):
            x[1:3] *= 2.0
    return x * x, y


@scenario("X035", EITHER, x=X4, w=W2)
def kept_leaf_updated_through_a_view(xp, x, w):
    y = x[1:3] * w
    with xp.no_grad(), xp.write(x, y):
        x.reshape(2, 2)[0, 1] = 9.0
    return y, x


@scenario("X036", x=X4)
def leaf_updated_under_a_mask_and_by_sine(xp, x):
    with xp.no_grad():
        with xp.write(x):
            x[x > 0.5] = 0.25
        with xp.write(x):
            x.sin_()
        with xp.write(x):
            np.exp(x, out=x)
    return x * x


@scenario("X037", LEAF, x=X4)
def tensor_with_an_older_view_made_a_leaf(xp, x):
    t = xp.ones(4)
    v = t[0:2]
    t.requires_grad_()
    with xp.write(t):
        v += 1.0
    return t * x


@scenario("X038", x=X4)
def leaf_updated_by_a_detached_gradient(xp, x):
    for _ in range(3):
        y = x * x * x
        xp.backward(y)
        with xp.no_grad(), xp.write(x):
            x -= 0.1 * y
    return x * x


@scenario("X039", x=X4, reference=lambda x: (x * x, 3.0 * (x * x)))
def old_gradient_is_not_written_by_the_next_backward(xp, x):
    xp.backward(x * x)
    first = x.grad
    before = first.numpy().copy()
    xp.backward(3.0 * (x * x))
    assert np.array_equal(first.numpy(), before)


@scenario("X040", REFUSED, x=X4)
def integer_tensor_takes_no_tracked_values(xp, x):
    t = xp.tensor([1, 2, 3, 4])
    with xp.write(t):
        t[1:3] = x[1:3]
    return x * x


# Windows that are kept, and writes beside or across them


def beside(identity, title, sound, use, write, **leaves):
    """Enter `t = x + 0; y = use(t, w); write(t)`: does the write touch what y keeps?"""

    def program(xp, x, w):
        t = x + 0.0
        y = use(xp, t, w)
        with xp.write(t, y):
            write(xp, t)
        return y, t

    program.__name__ = title.replace(" ", "_")
    scenario(identity, sound, **({"x": X6, "w": W3} | leaves))(program)


def _set(key, value=9.0):
    return lambda xp, t: t.__setitem__(key, value)


matrix = {"x": M33, "w": N33}
beside("X050", "even places kept and odd ones written", "exact", lambda xp, t, w: t[::2] * w, _set(slice(1, None, 2)))
beside("X051", "even places kept and every third written", EITHER, lambda xp, t, w: t[::2] * w, _set(slice(0, None, 3)))
beside("X052", "reversed window kept and its end written", EITHER, lambda xp, t, w: t[3:0:-1] * w, _set(1))
beside("X053", "write one place beside a reversed window", "exact", lambda xp, t, w: t[3:0:-1] * w, _set(0))
beside(
    "X054", "block kept and the row below written", "exact", lambda xp, t, w: t[:2, :2] * w[:2, :2], _set(2), **matrix
)
beside(
    "X055", "block kept and the column beside written", "exact",
    lambda xp, t, w: t[:2, :2] * w[:2, :2], _set((slice(None), 2)), **matrix,
)  # fmt: skip
beside("X056", "transpose kept and one element written", EITHER, lambda xp, t, w: t.T * w, _set((0, 2)), **matrix)
beside(
    "X057",
    "diagonal kept and a corner written",
    "exact",
    lambda xp, t, w: xp.diagonal(t) * w[0],
    _set((0, 2)),
    **matrix,
)
beside(
    "X058",
    "diagonal kept and the centre written",
    EITHER,
    lambda xp, t, w: xp.diagonal(t) * w[0],
    _set((1, 1)),
    **matrix,
)
beside(
    "X059",
    "broadcast row kept and written",
    EITHER,
    lambda xp, t, w: xp.broadcast_to(t[0], (3, 3)) * w,
    _set((0, 1)),
    **matrix,
)
beside("X060", "kept start and indices past it", "exact", lambda xp, t, w: t[0:3] * w, _set([3, 5]))
beside("X061", "kept start and an index into it", EITHER, lambda xp, t, w: t[0:3] * w, _set([4, 2]))
beside("X062", "kept start and a negative index into it", EITHER, lambda xp, t, w: t[0:3] * w, _set([-6]))
beside("X063", "kept start and a mask past it", "exact", lambda xp, t, w: t[0:3] * w, _set(np.arange(6) > 2))
beside("X064", "kept start and a mask into it", EITHER, lambda xp, t, w: t[0:3] * w, _set(np.arange(6) > 1))
beside(
    "X065",
    "kept start and additions past it",
    "exact",
    lambda xp, t, w: t[0:3] * w,
    lambda xp, t: xp.add_at(t, [4, 4], 1.0),
)
beside(
    "X066",
    "kept start and additions into it",
    EITHER,
    lambda xp, t, w: t[0:3] * w,
    lambda xp, t: xp.add_at(t, [4, 0], 1.0),
)
beside("X067", "kept row and another row by index", "exact", lambda xp, t, w: t[0] * w[0], _set([2, 1]), **matrix)
beside("X068", "kept column and a row by index", EITHER, lambda xp, t, w: t[:, 1] * w[0], _set([2]), **matrix)
beside(
    "X069",
    "kept column and another column by index",
    "exact",
    lambda xp, t, w: t[:, 1] * w[0],
    _set((slice(None), [2, 0])),
    **matrix,
)
beside(
    "X070",
    "kept window and a detached alias beside it",
    "exact",
    lambda xp, t, w: t[0:3] * w,
    lambda xp, t: t[3:].fill_(2.0),
)
beside("X071", "product of two windows kept", EITHER, lambda xp, t, w: t[0:3] * t[2:5], _set(slice(2, 3)))
beside("X072", "two windows kept and the gap written", "exact", lambda xp, t, w: t[0:2] * t[4:6], _set(slice(2, 4)))
beside("X073", "element kept by a product and written", EITHER, lambda xp, t, w: t[1] * w, _set(1))
beside("X074", "elements kept by an index are copies", "exact", lambda xp, t, w: t[[0, 1, 2]] * w, _set(slice(None)))
beside(
    "X075",
    "ravel of a kept matrix written",
    EITHER,
    lambda xp, t, w: t * w,
    lambda xp, t: xp.ravel(t)[4:5].fill_(1.0),
    **matrix,
)
beside(
    "X076",
    "ravel of a transpose kept is a copy",
    "exact",
    lambda xp, t, w: xp.ravel(t.T)[:3] * w[0],
    _set(slice(None)),
    **matrix,
)
beside("X077", "negative power kept and the base zeroed", EITHER, lambda xp, t, w: t[0:3] ** -2, _set(slice(0, 1), 0.0))
beside("X078", "kept value assigned to itself", "exact", lambda xp, t, w: t * t, lambda xp, t: t.copy_(t))
beside(
    "X079",
    "kept window assigned to itself",
    "exact",
    lambda xp, t, w: t[0:3] * w,
    lambda xp, t: t.__setitem__(slice(0, 3), t[0:3]),
)


@scenario("X080", x=X3, w=W3)
def dropped_result_keeps_nothing(xp, x, w):
    t = x + 0.0
    y = t * w
    z = xp.sin(t)
    del y, z
    with xp.write(t):
        t += 1.0
    return t


@scenario("X081", x=X6, w=W3)
def dropped_result_frees_only_its_window(xp, x, w):
    t = x + 0.0
    y = t[0:3] * w
    z = t[2:5] * w
    del z
    with xp.write(t, y):
        t[3:] *= 2.0
    return y, t


@scenario("X082", EITHER, x=X3, w=W3)
def result_kept_only_by_a_later_result(xp, x, w):
    t = x + 0.0
    y = t * w
    z = y.sum()
    del y
    with xp.write(t, z):
        t += 1.0
    return z, t


@scenario("X083", x=X3, w=W3)
def result_computed_under_no_grad_keeps_nothing(xp, x, w):
    t = x + 0.0
    with xp.no_grad():
        y = t * w
    with xp.write(t):
        t += 1.0
    return t, t * xp.constant(y)


@scenario("X084", EITHER, x=X3, w=W3)
def one_window_kept_by_three_results(xp, x, w):
    t = x + 0.0
    a, b, c = t * w, xp.sin(t), t**2
    with xp.write(t, a, b, c):
        t[1] = 4.0
    with xp.write(t, a, b, c):
        t *= 2.0
    return a, b, c, t


@scenario("X085", EITHER, x=X3, w=W3)
def kept_again_after_a_write(xp, x, w):
    t = x + 0.0
    y = t * w
    with xp.write(t, y):
        t += 1.0
    z = t * w
    with xp.write(t, y, z):
        t += 1.0
    return y, z, t * w


@scenario("X086", EITHER, x=X5, w=W3)
def view_of_a_result_written(xp, x, w):
    y = xp.exp(x)
    v = y[1:4]
    with xp.write(y):
        v *= w
    return y, v


@scenario("X087", EITHER, x=X3, w=W3)
def bounds_of_a_clip_written(xp, x, w):
    low, high = w * 0.25, w * 0.2 + 0.6
    y = xp.clip(x, low, high)
    with xp.write(low, y):
        low += 5.0
    with xp.write(high, y):
        high.zero_()
    return y


@scenario("X088", EITHER, x=X3, w=W3)
def condition_of_a_where_written(xp, x, w):
    condition = xp.tensor([True, False, True])
    y = xp.where(condition, x, w)
    with xp.write(condition, y):
        condition[:] = False
    return y


@scenario("X089", EITHER, x=X3, w=W3)
def raw_condition_and_raw_operand_written(xp, x, w):
    condition, other = np.array([True, False, True]), np.array(W3)
    y = xp.where(condition, x * other, w)
    with xp.write(y):
        condition[:] = False
        other[:] = 9.0
    return y


@scenario("X090", EITHER, a=M33)
def result_of_argsort_used_and_written(xp, a):
    order = xp.argsort(a, axis=1)
    y = xp.take_along_axis(a, order, axis=1)
    with xp.write(order, y):
        order[:] = 0
    return y


@scenario("X091", x=X3, w=W3)
def float32_copy_made_for_a_mixed_product(xp, x, w):
    t = (x + 0.0).astype(np.float32)
    y = t.astype(np.float64) * w
    with xp.write(t, y):
        t.zero_()
    return y


SCALED = {"x": X3.astype(np.float32), "w": W3}


@scenario("X092", EITHER, tolerance=1e-5, **SCALED)
def operand_cast_for_a_mixed_product_written(xp, x, w):
    t = x + 0
    y = t * w
    with xp.write(t, y):
        t *= 3.0
    return y, t


@scenario("X093", EITHER, a=M23, b=M33)
def factor_of_an_einsum_of_views_written(xp, a, b):
    t = b + 0.0
    y = xp.einsum("ij,kj->ik", a, t[0:2])
    with xp.write(t, y):
        t[1] = 0.5
    return y, t


@scenario("X094", EITHER, x=X3, w=W3)
def kept_through_expand_dims_and_squeeze(xp, x, w):
    t = x + 0.0
    column = xp.expand_dims(t, 1)
    y = column * xp.expand_dims(w, 0)
    with xp.write(t, y):
        xp.squeeze(column, axis=1)[2] = 0.0
    return y, t
