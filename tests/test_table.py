"""Every check over every entry of the table."""

import math

import cases_contraction
import cases_indexing
import cases_movement
import cases_reduction
import cases_rounding
import numpy as np
import pytest

import mutagrad as mg
from mutagrad import run
from mutagrad.ops import OPS, Composite, Elementwise, Reduction, Structural
from mutagrad.testing import gradcheck, gradgradcheck

random = np.random.default_rng(0)
ENTRIES = {entry.name: entry for entry in OPS.values()}
ELEMENTWISE = [e for e in ENTRIES.values() if isinstance(e, Elementwise)]
SMOOTH = [e for e in ELEMENTWISE if e.differentiable]
INPLACE = [e for e in ELEMENTWISE if e.inplace]
REDUCTIONS = [e for e in ENTRIES.values() if isinstance(e, Reduction)]

# What NumPy has no function for.
REFERENCE = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "softplus": lambda x: np.logaddexp(x, np.zeros((), x.dtype)),
    "erf": lambda x: np.vectorize(math.erf, otypes=[x.dtype])(x),
}
CASES = {
    **cases_reduction.CASES,
    **cases_movement.CASES,
    **cases_indexing.CASES,
    **cases_contraction.CASES,
    **cases_rounding.CASES,
}
M34 = np.arange(12.0).reshape(3, 4)


def reference(entry):
    return REFERENCE.get(entry.name) or entry.numpy


def samples(entry, shape, dtype=np.float64):
    """Points inside the entry's domain, away from kinks, another set for each operand."""
    out = []
    for name, intervals in zip(entry.operands, entry.sample, strict=True):
        if name in entry.masks:
            out.append(random.random(shape) > 0.5)
            continue
        ends = np.clip(np.array(intervals), -2.5, 2.5)[random.integers(len(intervals), size=shape)]
        x = random.uniform(ends[..., 0], ends[..., 1])
        x += np.where(np.abs(x) < 0.05, 0.1, 0.0)
        out.append(x.astype(dtype))
    return out


def ids(entry):
    return entry.name


def cases():
    return [
        pytest.param(ENTRIES[name], args, kwargs, id=f"{name}{k}")
        for name, each in CASES.items()
        for k, (args, kwargs) in enumerate(each)
    ]


def test_every_entry_is_tested():
    rest = [n for n, e in ENTRIES.items() if isinstance(e, Structural | Composite)]
    assert set(rest) == set(CASES)


def check_modes(call, floats, second=False):
    """Forward and reverse mode are each other's transpose, each alone and, where asked for, on top of the other."""
    directions = [random.normal(size=a.shape) for a in floats]
    value, tangent = mg.jvp(call, floats, directions)
    values, tangents = ([x] if isinstance(x, np.ndarray | float) else list(x) for x in (value, tangent))
    weights = [random.normal(size=np.shape(v)) for v in values]

    def paired(inside):
        found = inside if isinstance(inside, tuple | list) else [inside]
        return sum((mg.sum(v * w) for v, w in zip(found, weights, strict=True)), start=0.0)

    numbers = list(range(len(floats)))
    gradients = mg.grad(lambda *a: paired(call(*a)), numbers)(*floats)
    forward = sum(np.sum(t * w) for t, w in zip(tangents, weights, strict=True))
    backward = sum(np.sum(g * d) for g, d in zip(gradients, directions, strict=True))
    np.testing.assert_allclose(forward, backward, rtol=1e-10, atol=1e-12)
    if not second:
        return
    scalar = lambda *a: mg.sin(paired(call(*a)))
    over = mg.jvp(mg.grad(scalar, numbers), floats, directions)[1]
    under = mg.grad(lambda *a: mg.jvp(scalar, a, directions)[1], numbers)(*floats)
    for a, b in zip(over, under, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


# Elementwise


# Second derivatives take kernels of their own: the slow run has them in every order for every op.
ORDERS = [pytest.param(False, id="first"), pytest.param(True, id="second", marks=pytest.mark.slow)]


@pytest.mark.parametrize("entry", SMOOTH, ids=ids)
@pytest.mark.parametrize("second", ORDERS)
def test_forward_mode_is_the_transpose_of_reverse_mode(entry, second):
    args = samples(entry, (4,))
    numbers = [k for k, a in enumerate(args) if a.dtype.kind == "f"]

    def call(*floats):
        inside = list(args)
        for k, a in zip(numbers, floats, strict=True):
            inside[k] = a
        return entry(*inside)

    check_modes(call, [args[k] for k in numbers], second or entry.name in ("sin", "multiply", "where"))


@pytest.mark.parametrize("entry", ELEMENTWISE, ids=ids)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_value_is_numpys(entry, dtype):
    function = getattr(mg, entry.name)
    args = samples(entry, (50,), dtype)
    want = reference(entry)(*args)
    got = function(*args).numpy()
    assert got.dtype == want.dtype
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(got, want, rtol=4 * eps, atol=eps)


@pytest.mark.parametrize("entry", ELEMENTWISE, ids=ids)
def test_scalars_and_special_points_are_numpys(entry):
    function = getattr(mg, entry.name)
    points = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-310, 1e300, -1e300, math.inf, -math.inf, math.nan]
    with np.errstate(all="ignore"):
        for x in points:
            args = [x, *[0.75] * (len(entry.operands) - 1)]
            want = np.asarray(reference(entry)(*map(np.float64, args)))
            scalar = function(mg.tensor(args[0]), *args[1:])
            flat = function(mg.tensor([x, x, x]), *args[1:])
            assert scalar.shape == ()
            for got in (scalar.item(), *flat.tolist()):
                np.testing.assert_allclose(got, want, rtol=1e-15, atol=1e-323, err_msg=f"{entry.name}({args})")
                if want.dtype.kind == "f" and not np.isnan(want):
                    assert np.signbit(got) == np.signbit(want), f"{entry.name}({args}): sign of zero"
    for x, value in entry.special.items():
        np.testing.assert_allclose(function(x).item(), value, rtol=1e-15)


@pytest.mark.parametrize("entry", SMOOTH, ids=ids)
def test_first_and_second_derivatives(entry):
    args = samples(entry, (4,))
    gradcheck(entry, args)
    gradgradcheck(entry, args)


@pytest.mark.parametrize("entry", SMOOTH, ids=ids)
def test_scalar_derivatives_are_those_of_arrays(entry):
    args = samples(entry, (1,))
    numbers = [k for k, a in enumerate(args) if a.dtype.kind == "f"]
    scalar = mg.grad(entry, numbers)(*[a[0].item() for a in args])
    array = mg.grad(lambda *a: mg.sum(entry(*a)), numbers)(*args)
    np.testing.assert_allclose(scalar, np.ravel(array), rtol=1e-15)
    assert all(type(s) is float for s in scalar)


@pytest.mark.parametrize("entry", SMOOTH, ids=ids)
def test_float32_gradients(entry):
    args = samples(entry, (5,), np.float32)
    numbers = [k for k, a in enumerate(args) if a.dtype.kind == "f"]
    loss = lambda *a: mg.sum(entry(*a))
    single = mg.grad(loss, numbers)(*args)
    double = mg.grad(loss, numbers)(*[a if a.dtype.kind == "b" else a.astype(np.float64) for a in args])
    for s, d in zip(single, double, strict=True):
        assert s.dtype == np.float32
        np.testing.assert_allclose(s, d, rtol=2e-4, atol=1e-5)


# How arrays lie is the business of `run`, whatever the op: a few ops of each form show it, the slow run has all.
LAYOUTS = ["sin", "tanh", "multiply", "power", "hypot", "where", "clip"]
LAID = [pytest.param(e, marks=[] if e.name in LAYOUTS else pytest.mark.slow, id=e.name) for e in SMOOTH]


@pytest.mark.parametrize("few", [0, run.FEW], ids=["nested", "copied"])
@pytest.mark.parametrize("entry", LAID)
def test_layouts_and_broadcasting(entry, few, monkeypatch):
    """Strided, reversed, Fortran, read-only, stretched, empty and 0-d operands, value and gradient.

    As loops of their own, which large arrays have, and as copies, which small ones are made.
    """
    monkeypatch.setattr(run, "FEW", few)
    n = len(entry.operands)
    base = samples(entry, (4, 6))
    layouts = [
        [a[::2, ::-3] for a in base],
        [a.T for a in base],
        [np.broadcast_to(a[:1, :3], (2, 3)) for a in base],
        [a[:, :0] for a in base],
    ]
    if n > 1:
        layouts.append([base[0][:, :1], *[a[0] for a in base[1:]]])
        layouts.append([base[0], *[np.array(a[0, 0]) for a in base[1:]]])
    for args in layouts:
        numbers = [k for k, a in enumerate(args) if a.dtype.kind == "f"]
        for a in args:
            a.flags.writeable = False
        got = getattr(mg, entry.name)(*args).numpy()
        want = reference(entry)(*args)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-16)
        full = [np.array(np.broadcast_to(a, want.shape)) for a in args]
        weights = np.arange(1.0, want.size + 1).reshape(want.shape)
        loss = lambda *a: mg.sum(entry(*a) * weights)
        grads = mg.grad(loss, numbers)(*args)
        wide = mg.grad(loss, numbers)(*full)
        for k, g, w in zip(numbers, grads, wide, strict=True):
            assert g.shape == args[k].shape
            assert g.flags.writeable
            if g.shape != w.shape:
                axes = tuple(range(w.ndim - g.ndim)) + tuple(
                    i + w.ndim - g.ndim for i, m in enumerate(g.shape) if m == 1 and w.shape[i + w.ndim - g.ndim] != 1
                )
                w = w.sum(axes).reshape(g.shape)
            np.testing.assert_allclose(g, w, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("entry", INPLACE, ids=ids)
@pytest.mark.parametrize("policy", ["refuse", "preserve"])
def test_inplace_form_is_the_out_of_place_form(entry, policy):
    """Also of what has no derivative: overwriting cuts the gradient, as a constant result does."""
    args = samples(entry, (5,))
    ours = [mg.tensor(a, requires_grad=True) for a in args]
    theirs = [mg.tensor(a, requires_grad=True) for a in args]
    t = theirs[0] * 1.0
    with mg.inplace_policy(policy):
        assert getattr(t, f"{entry.name}_")(*theirs[1:]) is t
    y = entry(ours[0] * 1.0, *ours[1:])
    assert t.numpy().tobytes() == y.numpy().tobytes()
    assert t.version == 1
    (y * y + ours[0]).sum().backward()
    (t * t + theirs[0]).sum().backward()
    assert gradients(ours) == gradients(theirs)
    # out= into an untracked buffer makes it tracked
    buffer = mg.zeros(5)
    third = [mg.tensor(a, requires_grad=True) for a in args]
    getattr(mg, entry.name)(*third, out=buffer)
    assert buffer.requires_grad == entry.differentiable
    (buffer * buffer + third[0]).sum().backward()
    assert gradients(ours) == gradients(third)


def gradients(leaves):
    return [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves]


def test_every_result_that_fits_can_be_written_in_place():
    names = {e.name for e in ENTRIES.values() if hasattr(mg.Tensor, f"{e.name}_")}
    assert {e.name for e in SMOOTH} - names == {"where"}
    assert {e.name for e in ENTRIES.values() if e.inplace} == names
    assert {"floor", "round", "sign", "floor_divide", "nan_to_num"} <= names
    assert not {"less", "isnan", "logical_not", "signbit", "isclose"} & names


@pytest.mark.parametrize(
    "entry", [e for e in ENTRIES.values() if e.inplace and not isinstance(e, Elementwise)], ids=ids
)
@pytest.mark.parametrize("policy", ["refuse", "preserve"])
def test_inplace_form_of_what_is_computed_beside(entry, policy):
    for args, kwargs in CASES[entry.name]:
        ours, theirs = mg.tensor(args[0], requires_grad=True), mg.tensor(args[0], requires_grad=True)
        t = theirs * 1.0
        with mg.inplace_policy(policy):
            assert getattr(t, f"{entry.name}_")(*args[1:], **kwargs) is t
        y = entry(ours * 1.0, *args[1:], **kwargs)
        assert t.numpy().tobytes() == y.numpy().tobytes()
        assert t.version == 1
        (y * y + ours).sum().backward()
        (t * t + theirs).sum().backward()
        assert gradients([ours]) == gradients([theirs])
        with mg.testing.unchanged(ours), pytest.raises(mg.InplaceError, match="leaf that requires grad"):
            getattr(ours, f"{entry.name}_")(*args[1:], **kwargs)
        t = theirs * 1.0
        keeper = t * t
        with mg.testing.unchanged(t), pytest.raises(mg.InplaceError, match="still needed"):
            getattr(t, f"{entry.name}_")(*args[1:], **kwargs)
        assert keeper.requires_grad


@pytest.mark.parametrize("entry", INPLACE, ids=ids)
def test_refused_writes_change_nothing(entry):
    args = samples(entry, (5,))
    x, *others = [mg.tensor(a, requires_grad=True) for a in args]
    with mg.testing.unchanged(x, *others), pytest.raises(mg.InplaceError, match="leaf that requires grad"):
        getattr(x, f"{entry.name}_")(*others)
    with mg.testing.unchanged(x), pytest.raises(mg.InplaceError):
        getattr(mg, entry.name)(*[a * 1.0 for a in (x, *others)], out=x)
    t = x * 1.0
    keeper = t * t
    with mg.testing.unchanged(t, x), pytest.raises(mg.InplaceError, match="still needed"):
        getattr(t, f"{entry.name}_")(*others)
    keeper.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * args[0])
    wrong = mg.zeros(4)
    with mg.testing.unchanged(wrong), pytest.raises(ValueError, match="shape"):
        getattr(mg, entry.name)(x, *others, out=wrong)
    whole = mg.zeros(5, dtype=np.int64)
    with mg.testing.unchanged(whole), pytest.raises(TypeError, match="int64"):
        getattr(mg, entry.name)(x, *others, out=whole)


@pytest.mark.parametrize("entry", SMOOTH, ids=ids)
def test_poison(entry):
    """What is not kept may be overwritten behind the library's back: gradients must not change."""
    args = samples(entry, (5,))
    numbers = [k for k, a in enumerate(args) if a.dtype.kind == "f"]

    def swept(poison):
        tensors = [mg.tensor(a, requires_grad=k in numbers) for k, a in enumerate(args)]
        out = entry(*tensors)
        loss = out.sum()
        if poison:
            keep = entry.plan(tuple(k in numbers for k in range(len(args)))).keep
            for name, t in zip([*entry.operands, "out"], [*tensors, out], strict=True):
                if name not in keep and t.dtype.kind == "f":
                    t._array[...] = np.nan
        loss.backward()
        return gradients([tensors[k] for k in numbers])

    assert swept(False) == swept(True)


def edges():
    for entry in SMOOTH:
        for k, intervals in enumerate(entry.domain):
            ends = {e for interval in intervals for e in interval if math.isfinite(e)}
            yield from (pytest.param(entry, k, e, id=f"{entry.name}-{entry.operands[k]}-{e}") for e in sorted(ends))


@pytest.mark.parametrize(("entry", "k", "edge"), list(edges()))
def test_domains_end_where_a_value_or_a_derivative_is_not_finite(entry, k, edge):
    args = [edge if i == k else 0.5 for i in range(len(entry.operands))]
    value, *rest = mg.value_and_grad(entry, range(len(args)))(*args)
    assert not np.isfinite([value, *rest[0]]).all()


@pytest.mark.parametrize("entry", ELEMENTWISE, ids=ids)
def test_samples_lie_inside_the_domain(entry):
    for domain, sample in zip(entry.domain, entry.sample, strict=True):
        for low, high in sample:
            assert low < high
            assert any(a <= low and high <= b for a, b in domain)


ALIASES = [(e, a) for e in ENTRIES.values() for a in e.aliases if callable(getattr(np, a, None))]


@pytest.mark.parametrize(("entry", "alias"), ALIASES, ids=[a for _, a in ALIASES])
def test_numpys_aliases_are_the_op(entry, alias):
    args, kwargs = CASES.get(entry.name, [((M34,), {})])[0]
    if isinstance(entry, Elementwise):
        args = samples(entry, (3,))
    if entry.sequence:
        args = ([mg.tensor(a) for a in args[0]], *args[1:])
    got = getattr(np, alias)(*[mg.tensor(a) if isinstance(a, np.ndarray) else a for a in args], **kwargs)
    assert isinstance(got, mg.Tensor)
    np.testing.assert_allclose(got.numpy(), getattr(np, alias)(*args, **kwargs), rtol=1e-15)
    assert getattr(mg, alias) is getattr(mg, entry.name)


# Reductions


@pytest.mark.parametrize("entry", REDUCTIONS, ids=ids)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_reductions(entry, dtype):
    function, numpy = getattr(mg, entry.name), entry.numpy
    x = random.normal(size=(3, 4, 5)).astype(dtype)
    for layout in (x, x.T, x[::2, :, ::-1], np.asfortranarray(x)):
        for axis in (None, 0, 1, -1, (0, 2), (1, 2), (0, 1), (), (0, 1, 2)):
            for keepdims in (False, True):
                got = function(layout, axis=axis, keepdims=keepdims).numpy()
                want = numpy(layout, axis=axis, keepdims=keepdims)
                assert got.shape == np.shape(want)
                assert got.dtype == dtype
                np.testing.assert_allclose(got, want, rtol=20 * np.finfo(dtype).eps, atol=10 * np.finfo(dtype).eps)
    if dtype == np.float64:
        for axis, keepdims in ((None, False), (1, False), ((0, 2), True), (-1, True)):
            gradcheck(lambda a: function(a, axis=axis, keepdims=keepdims), [x[:2, :3, :2]])
            gradgradcheck(lambda a: function(a, axis=axis, keepdims=keepdims) ** 2, [x[:2, :3, :2]])
            check_modes(lambda a: function(a, axis=axis, keepdims=keepdims), [x[:2, :3, :2]], second=axis is None)
        np.testing.assert_array_equal(mg.grad(function)(2.5), 1.0)
    integers = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(function(integers, axis=0).numpy(), numpy(integers, axis=0))


@pytest.mark.parametrize("entry", REDUCTIONS, ids=ids)
def test_reductions_of_nan_inf_and_nothing(entry):
    function, numpy = getattr(mg, entry.name), entry.numpy
    with np.errstate(all="ignore"):
        for x in ([1.0, np.nan, 2.0], [np.inf, 1.0], [-np.inf, np.inf], [np.nan], [-np.inf, -np.inf]):
            np.testing.assert_array_equal(function(np.array(x)).numpy(), numpy(np.array(x)))
            np.testing.assert_array_equal(function(np.array([x, x]), axis=0).numpy(), numpy(np.array([x, x]), axis=0))
            np.testing.assert_array_equal(function(np.array([x, x]), axis=1).numpy(), numpy(np.array([x, x]), axis=1))
    if entry.empty:
        assert function(np.zeros((3, 0)), axis=0).shape == (0,)
        if entry.name != "mean":
            np.testing.assert_array_equal(function(np.zeros((3, 0)), axis=1).numpy(), np.zeros(3))
    else:
        with pytest.raises(mg.ShapeError, match="empty"):
            function(np.zeros((3, 0)), axis=1)
        assert function(np.zeros((3, 0)), axis=0).shape == (0,)


@pytest.mark.parametrize("name", ["max", "min"])
def test_ties_share_and_input_may_be_overwritten(name):
    x = mg.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]] if name == "max" else [[3.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    x.requires_grad_()
    t = x * 1.0
    y = getattr(mg, name)(t, axis=1)
    t.zero_()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0, 0.5, 0.5], [1 / 3] * 3])


# Structural and composite entries


@pytest.mark.parametrize(("entry", "args", "kwargs"), cases())
def test_structural_values_and_derivatives(entry, args, kwargs):
    function = getattr(mg, entry.name)
    want = entry.numpy(*args, **kwargs)
    got = function(*args, **kwargs)
    assert isinstance(got, list | tuple) == isinstance(want, list | tuple)
    for mine, numpys in zip(parts(got), parts(want), strict=True):
        np.testing.assert_allclose(mine.numpy(), numpys, rtol=1e-13, atol=1e-13)
        assert mine.dtype == np.asarray(numpys).dtype
    if not entry.differentiable:
        leaves = [mg.tensor(a, requires_grad=True) if isinstance(a, np.ndarray) else a for a in args]
        assert not any(found.requires_grad for found in parts(function(*leaves, **kwargs)))
        return
    floats, call = arguments(entry, args, kwargs)
    if not floats:
        return
    gradcheck(call, floats)
    gradgradcheck(lambda *a: call(*a) ** 2, floats)
    check_modes(call, floats, second=entry.name in ("sort", "matmul", "std", "concatenate"))
    single = [f.astype(np.float32) for f in floats]
    for g in mg.grad(lambda *a: mg.sum(call(*a)), range(len(single)))(*single):
        assert g.dtype == np.float32


def parts(result):
    """What an op gave, as a list: some give several arrays."""
    return list(result) if isinstance(result, list | tuple) else [result]


def joined(result):
    return mg.concatenate(result, axis=None) if isinstance(result, list | tuple) else result


def arguments(entry, args, kwargs):
    """The floating arguments of a case, and the op as a function of them alone, all its results in one.

    What is nan stays nan whatever they are.
    """
    if entry.sequence:
        k = list(entry.signature.parameters).index(entry.operands[0])
        return list(args[k]), lambda *a: joined(entry(*args[:k], list(a), *args[k + 1 :], **kwargs))
    numbers = [k for k, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype.kind == "f"]

    holes = {k: np.isnan(args[k]) for k in numbers}

    def call(*floats):
        inside = list(args)
        for k, a in zip(numbers, floats, strict=True):
            inside[k] = mg.where(holes[k], np.nan, a) if holes[k].any() else a
        return joined(entry(*inside, **kwargs))

    return [np.where(holes[k], 0.5, args[k]) if holes[k].any() else args[k] for k in numbers], call


@pytest.mark.parametrize(("entry", "args", "kwargs"), cases())
def test_structural_poison(entry, args, kwargs):
    if not isinstance(entry, Structural) or not entry.differentiable:
        pytest.skip("keeps nothing of its own")
    floats, call = arguments(entry, args, kwargs)
    if not floats:
        pytest.skip("nothing to differentiate by")

    def gradients(poison):
        tensors = [mg.tensor(a, requires_grad=True) for a in floats]
        out = call(*tensors)
        loss = (out * 1.0).sum()
        if poison and out._place is None:
            reads = {r for read in entry.reads.values() for r in read}
            names = [entry.operands[0]] * len(tensors) if entry.variadic else entry.operands
            for name, t in zip(names, tensors, strict=False):
                if t._array is not None and (name not in reads or (len(tensors) == 1 and entry.variadic)):
                    t._array[...] = np.nan
            if "out" not in reads and out._array is not None:
                out._array[...] = np.nan
        loss.backward()
        return [t.grad.numpy() for t in tensors]

    for clean, poisoned in zip(gradients(False), gradients(True), strict=True):
        np.testing.assert_array_equal(clean, poisoned)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_docstring_examples(name):
    import doctest

    function = getattr(mg, name)
    found = doctest.DocTestParser().get_doctest(function.__doc__, {}, name, None, 0)
    assert found.examples
    assert doctest.DocTestRunner().run(found).failed == 0
    for section in ("Parameters", "Returns", "Raises", "Keeps for its gradient"):
        assert section in function.__doc__
