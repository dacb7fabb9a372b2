"""Further programs: memory shared with NumPy and between tensors, and writes that are not recorded."""

import numpy as np
from scenarios import EITHER, M23, M33, W3, W4, X3, X4, scenario

# Memory shared with NumPy and between tensors


@scenario("X340", x=X4)
def two_wraps_of_one_array(xp, x):
    memory = np.ones(4)
    first, second = xp.asarray(memory), xp.asarray(memory)
    with xp.write(first, second):
        first += x
    with xp.write(first, second):
        second[1:3] *= x[:2]
    return first * second


@scenario("X341", x=X4)
def wraps_of_a_slice_and_of_the_whole(xp, x):
    memory = np.ones(6)
    part, whole = xp.asarray(memory[1:5]), xp.asarray(memory)
    with xp.write(part, whole):
        part *= x
    with xp.write(part, whole):
        whole[0:2] = x[0:2]
    return part * part, whole * whole


@scenario("X342", EITHER, x=X4)
def kept_wrap_written_through_another(xp, x):
    memory = W4.copy()
    y = x * xp.asarray(memory)
    other = xp.asarray(memory[::-1])
    with xp.write(other, y):
        other[0] = 5.0
    return y


@scenario("X343", a=M23)
def wrap_in_fortran_order(xp, a):
    memory = np.asfortranarray(np.ones((2, 3)))
    t = xp.asarray(memory)
    with xp.write(t):
        t *= a
    with xp.write(t):
        t.reshape(-1)[::2] += 1.0
    with xp.write(t):
        t.T[1] = a[:, 0]
    return t * t


@scenario("X344", x=X4)
def wrap_of_a_reversed_array(xp, x):
    memory = np.ones(8)[::-2]
    t = xp.asarray(memory)
    v = t[1:3]
    with xp.write(t):
        t *= x
    with xp.write(t):
        v.exp_()
    return t * t, v


@scenario("X345", EITHER, x=X4)
def chain_of_detached_aliases(xp, x):
    t = x + 0.0
    y = t * t
    alias = t.detach()[1:].detach()
    with xp.write(t, y, recorded=False):
        alias[0] = 7.0
    return y, t


@scenario("X346", x=X4)
def array_written_while_nothing_keeps_it(xp, x):
    memory = np.ones(4)
    t = xp.asarray(memory)
    with xp.write(memory):
        memory[:] = 2.0
    return t * x


@scenario("X347", x=X4)
def array_written_after_its_release(xp, x):
    memory = np.ones(4)
    xp.backward(x * xp.asarray(memory))
    with xp.write(memory):
        memory[:] = 2.0


@scenario("X348", EITHER, x=X4)
def array_whose_wrap_was_dropped_is_still_kept(xp, x):
    memory = W4.copy()
    y = xp.exp(xp.asarray(memory) * x)
    with xp.write(memory, y):
        memory += 1.0
    return y


@scenario("X349", EITHER, x=X4)
def slice_of_a_raw_array_as_an_operand(xp, x):
    memory = np.concatenate([W4, W4])
    y = x * memory[::-2]
    with xp.write(memory, y):
        memory[:] = 0.0
    return y


@scenario("X350", x=X4)
def tensor_and_clone_do_not_share(xp, x):
    memory = np.ones(4)
    a, b = xp.tensor(memory), x + 0.0
    c = b.clone()
    y = a * c
    with xp.write(memory, y):
        memory[:] = 9.0
    with xp.write(b, y):
        b *= 3.0
    return y, b


@scenario("X352", EITHER, x=X4)
def kept_wrap_written_through_a_wrap_of_an_older_view(xp, x):
    memory = W4.copy()
    view = memory[::-1]
    y = x * xp.asarray(memory)
    other = xp.asarray(view)
    with xp.write(other, y):
        other[0] = 5.0
    return y


@scenario("X353", x=X4)
def wrap_made_while_the_array_was_kept_is_writable_later(xp, x):
    memory = np.ones(4)
    y = x * xp.asarray(memory)
    other = xp.asarray(memory)
    del y
    with xp.write(other):
        other *= x
    return other


@scenario("X354", EITHER, a=M33)
def diagonal_of_a_kept_wrap_written(xp, a):
    memory = M33.copy()
    t = xp.asarray(memory)
    y = t * a
    d = xp.diagonal(t)
    with xp.write(t, y):
        d *= 2.0
    return y, t * a


@scenario("X355", EITHER, x=X4)
def wrap_kept_through_a_detached_alias_only(xp, x):
    memory = np.ones(4)
    alias = xp.asarray(memory).detach()
    y = x * alias
    other = xp.asarray(memory)
    with xp.write(other, y):
        other += 1.0
    return y


@scenario("X356", EITHER, x=X4)
def wrap_of_a_numpy_view_of_a_tensor_kept(xp, x):
    t = xp.ones(4)
    y = x * xp.asarray(t.numpy())
    with xp.write(t, y):
        t += 1.0
    return y, t * x


@scenario("X357", x=X3)
def mask_narrowed_in_place_under_two_names(xp, x):
    mask = xp.tensor([True, True, False])
    alias = mask
    with xp.write(mask):
        mask &= xp.tensor([True, False, False])
    return xp.where(alias, x, x * x)


@scenario("X358", x=X3)
def flags_set_in_place_under_two_names(xp, x):
    flags = xp.tensor([1, 2, 4])
    alias = flags
    with xp.write(flags):
        flags |= 1
    with xp.write(flags):
        flags ^= 2
    return x * alias


@scenario("X359", x=X3)
def constants_computed_into_a_tracked_value(xp, x):
    t = x * x
    with xp.write(t):
        np.add(W3, 1.0, out=t, where=X3 > 0.5)
    return t * t


@scenario("X351", x=X4)
def numpy_view_sees_later_writes(xp, x):
    t = x + 0.0
    seen = t.numpy()
    with xp.write(t):
        t *= 2.0
    assert np.array_equal(seen, t.numpy())
    return t


# Writes that are not recorded


@scenario("X360", EITHER, x=X3, w=W3)
def kept_value_written_under_no_grad(xp, x, w):
    t = x + 0.0
    y = t * w
    with xp.no_grad(), xp.write(t, y):
        t += 1.0
    return y, t * w


@scenario("X361", x=X4)
def view_written_under_no_grad_between_recorded_writes(xp, x):
    t = x + 0.0
    v = t[1:3]
    with xp.write(t):
        t *= 2.0
    with xp.no_grad(), xp.write(t):
        v.zero_()
    with xp.write(t):
        v += x[:2]
    return t * t, v


@scenario("X362", x=X4)
def masked_write_under_no_grad(xp, x):
    t = x + 0.0
    with xp.no_grad(), xp.write(t):
        t[t > 0.5] = 0.25
    return t * t


@scenario("X363", x=X3)
def sine_in_place_under_no_grad(xp, x):
    t = x * 2.0
    with xp.no_grad(), xp.write(t):
        t.sin_()
    return t * t


@scenario("X364", x=X3, w=W3)
def buffer_stays_untracked_under_no_grad(xp, x, w):
    a = xp.zeros(3)
    with xp.no_grad():
        with xp.write(a):
            a[0] = w[0]
        with xp.write(a):
            a[1:].copy_(w[1:])
        with xp.write(a):
            xp.add_at(a, [0, 0], w[:2])
    return x * xp.constant(a)


@scenario("X365", x=X4)
def detached_alias_written_by_every_writer(xp, x):
    t = x + 0.0
    alias = t.detach()
    with xp.write(t, recorded=False):
        alias.sin_()
    with xp.write(t, recorded=False):
        alias[[0, 0]] = [5.0, 6.0]
    with xp.write(t, recorded=False):
        xp.add_at(alias, [1, 1], 0.5)
    with xp.write(t, recorded=False):
        np.exp(alias[2:], out=alias[2:])
    return t * t


@scenario("X366", x=X4, w=W4)
def tracked_value_written_through_a_detached_alias(xp, x, w):
    t = x + 0.0
    alias = t.detach()
    with xp.write(t, recorded=False):
        alias += w
    return t * t


@scenario("X367", x=X4)
def write_recorded_inside_no_grad(xp, x):
    t = x + 0.0
    with xp.no_grad():
        with xp.write(t):
            t += 1.0
        with xp.enable_grad(), xp.write(t):
            t *= 2.0
    return t * t


@scenario("X368", x=X4)
def view_taken_under_no_grad_of_a_buffer_that_becomes_tracked(xp, x):
    a = xp.zeros(4)
    with xp.no_grad():
        v = a[1:3]
    with xp.write(a):
        a += x
    with xp.write(a):
        v *= 3.0
    return a * a, v
