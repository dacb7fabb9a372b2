"""Views, joins and cuts: what shares memory with what, what NumPy's own functions give, what is refused."""

import cases_movement
import numpy as np
import pytest

import mutagrad as mg
from mutagrad.ops import OPS
from mutagrad.testing import gradcheck

CASES = cases_movement.CASES
M23, M34, V3, T234 = (getattr(cases_movement, n) for n in ("M23", "M34", "V3", "T234"))

VIEWS = """reshape ravel transpose squeeze expand_dims flip diagonal matrix_transpose swapaxes moveaxis rollaxis flipud
    fliplr rot90 split array_split hsplit vsplit dsplit unstack atleast_1d atleast_2d atleast_3d diag""".split()
COPIES = """roll diagflat triu tril concatenate stack meshgrid vstack hstack dstack column_stack append repeat tile pad
    delete insert""".split()


def parts(result):
    return list(result) if isinstance(result, list | tuple) else [result]


def seen_by(numpy, part, shape):
    """Which elements of the base the part of that number sees."""
    marks = np.zeros(shape, bool)
    seen = numpy(marks)[part]
    seen.flags.writeable = True  # NumPy's diagonals are read-only views
    seen[...] = True
    return marks


def cases(names):
    return [pytest.param(name, *case, id=f"{name}{k}") for name in names for k, case in enumerate(CASES[name])]


def view_cases():
    """Of each view op the base, the function of it, and NumPy's."""
    for param in cases(VIEWS):
        name, (base, *args), kwargs = param.values
        if (name, base.ndim) in (("unstack", 1), ("diag", 1)):
            continue  # no views in NumPy either
        args = () if name.startswith("atleast") else args
        function, numpy = (
            lambda a, op=op, args=args, kwargs=kwargs: parts(op(a, *args, **kwargs))
            for op in (getattr(mg, name), OPS[name].numpy)
        )
        yield pytest.param(np.ascontiguousarray(base).reshape(base.shape), function, numpy, id=param.id)


@pytest.mark.parametrize(("start", "function", "numpy"), list(view_cases()))
def test_writes_through_views_reach_the_base_and_every_other_view(start, function, numpy):
    base = mg.tensor(start)
    before = base[...]
    views = function(base)
    assert all(np.shares_memory(v.numpy(), base.numpy()) for v in views if v.size)
    want = start.copy()
    for k, view in enumerate(views):
        view += 1.0 + k
        want += (1.0 + k) * seen_by(numpy, k, start.shape)
    np.testing.assert_array_equal(base.numpy(), want)
    np.testing.assert_array_equal(before.numpy(), want)
    for view, numpys in zip(views, numpy(want), strict=True):
        np.testing.assert_array_equal(view.numpy(), numpys)

    # Gradients too: views taken before and after the writes, the base written between.
    def program(x):
        t = x * 1.0
        views = function(t)
        kept = views[0] * 1.0
        for k, view in enumerate(views):
            view *= 2.0 + k
        t += x * x
        views[-1] -= kept.sum()
        return t**2 + sum((v * v).sum() for v in views) + sum((v**3).sum() for v in function(t))

    gradcheck(program, [start / 2], rtol=1e-5)


@pytest.mark.parametrize(("start", "function", "numpy"), list(view_cases()))
def test_writes_through_views_are_judged(start, function, numpy):
    leaf = mg.tensor(start, requires_grad=True)
    for view in function(leaf):
        if view.size:
            with mg.testing.unchanged(leaf), pytest.raises(mg.InplaceError, match="leaf that requires grad"):
                view *= 2.0
    t = leaf * 1.0
    first = function(t)[0]
    square = t * t
    if start.ndim:  # of a number the value is kept, which no write reaches
        with mg.testing.unchanged(t), pytest.raises(mg.InplaceError, match="still needed"):
            first *= 2.0
    square.sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), 2 * start)


def test_ravel_and_reshape_copy_where_numpy_does():
    t = mg.tensor(M34).T
    assert not np.shares_memory(mg.ravel(t).numpy(), t.numpy())
    assert not np.shares_memory(t.reshape(-1).numpy(), t.numpy())


@pytest.mark.parametrize(("name", "args", "kwargs"), cases(VIEWS + COPIES + ["broadcast_arrays", "broadcast_to"]))
def test_raw_arrays_are_never_shared_with_the_result(name, args, kwargs):
    given = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    if OPS[name].sequence:
        given = [[np.array(a) for a in args[0]]]
    arrays = given[0] if OPS[name].sequence else [a for a in given if isinstance(a, np.ndarray)]
    for part in parts(getattr(mg, name)(*given, **kwargs)):
        assert isinstance(part, mg.Tensor)
        assert not any(np.shares_memory(part.numpy(), a) for a in arrays)


@pytest.mark.parametrize(("name", "args", "kwargs"), cases(COPIES))
def test_copies_do_not_reach_their_operands(name, args, kwargs):
    tensors = [mg.tensor(a) for a in (args[0] if OPS[name].sequence else args[:1])]
    entry = OPS[name]
    made = parts(entry(tensors, *args[1:], **kwargs) if entry.sequence else entry(*tensors, *args[1:], **kwargs))
    for k, part in enumerate(made):
        assert not any(np.shares_memory(part.numpy(), t.numpy()) for t in tensors)
        assert not any(np.shares_memory(part.numpy(), other.numpy()) for other in made[:k])
        part += 1.0


@pytest.mark.parametrize("name", [n for n in CASES if n != "broadcast_to"])
def test_numpys_own_function_gives_the_same(name):
    """Through `__array_function__`, by NumPy's argument names, integers and bools too."""
    entry = OPS[name]
    for args, kwargs in CASES[name]:
        for dtype in (np.float64, np.float32, np.int16, np.bool_):
            convert = lambda a: a.astype(dtype) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a
            plain = [list(map(convert, args[0]))] if entry.sequence else [convert(a) for a in args]
            wrap = lambda a: mg.tensor(a) if isinstance(a, np.ndarray) and a.dtype == dtype else a
            tensors = [list(map(wrap, plain[0]))] if entry.sequence else [wrap(a) for a in plain]
            if entry.variadic is False:
                tensors[1:] = plain[1:]
            if plain[0] is args[0] and isinstance(plain[0], np.ndarray):  # the case says the dtype itself
                tensors[0] = mg.tensor(plain[0])
            want = entry.numpy(*plain, **kwargs)
            for function in (entry.numpy, getattr(mg, name)):
                got = function(*tensors, **kwargs)
                assert type(got) is (mg.Tensor if isinstance(want, np.ndarray | np.generic) else type(want)), name
                for mine, numpys in zip(parts(got), parts(want), strict=True):
                    assert (mine.dtype, mine.shape) == (numpys.dtype, numpys.shape)
                    np.testing.assert_array_equal(mine.numpy(), numpys)


def test_methods_are_ndarrays():
    t = mg.tensor(T234, requires_grad=True)
    a = T234
    for got, want in [
        (t.swapaxes(0, 2), a.swapaxes(0, 2)),
        (t.repeat(2, axis=1), a.repeat(2, axis=1)),
        (t.repeat([1, 2], 0), a.repeat([1, 2], 0)),
        (t.trace(1, 0, 2), a.trace(1, 0, 2)),
        (t.transpose(1, 0, 2), a.transpose(1, 0, 2)),
        (t.transpose((2, 0, 1)), a.transpose((2, 0, 1))),
        (t.transpose(), a.transpose()),
        (t.reshape(4, -1), a.reshape(4, -1)),
        (t.ravel(), a.ravel()),
        (t.diagonal(1, 1, 2), a.diagonal(1, 1, 2)),
        (t[:1].squeeze(0), a[:1].squeeze(0)),
        (t.mT, a.mT),
    ]:
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-15)
        assert got.requires_grad


def test_joined_dtypes_and_out():
    halves = [mg.ones(2, dtype=np.float32), mg.tensor([1.0, 2.0], requires_grad=True)]
    for name in ("vstack", "hstack"):
        single = getattr(mg, name)(halves, dtype=np.float32)
        assert single.dtype == np.float32
        assert single.requires_grad
    assert mg.append(halves[0], 2).dtype == np.append(np.ones(2, np.float32), 2).dtype
    assert mg.trace(np.eye(2, dtype=np.int32), dtype=np.float32).dtype == np.float32
    target = mg.zeros(())
    x = mg.tensor(np.eye(3), requires_grad=True)
    assert mg.trace(x, out=target) is target
    target.backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.eye(3))
    np.trace(x, out=(other := mg.zeros(())))
    assert other.item() == 3.0


def test_static_arguments_may_change_after_the_call():
    x = mg.tensor(V3, requires_grad=True)
    repeats, shift, width, gone = [1, 2, 0], np.array([1, 1]), [[1, 1]], [0]
    made = [mg.repeat(x, repeats), mg.roll(x, shift), mg.pad(x, width), mg.delete(x, gone)]
    repeats[:], shift[:], width[0][:], gone[:] = [0, 0, 3], 0, [0, 2], [2]
    weights = [np.arange(1.0, m.size + 1) for m in made]
    sum((m * w).sum() for m, w in zip(made, weights, strict=True)).backward()
    rolled = np.roll(weights[1], -2)
    np.testing.assert_array_equal(x.grad.numpy(), np.array([1, 5, 0]) + rolled + weights[2][1:-1] + [0, 1, 2])


def test_integer_tensors_serve_as_static_arguments():
    i = mg.tensor([1, 2])
    x = mg.tensor(M34)
    for name, args in [
        ("split", (i,)), ("array_split", (mg.tensor(2),)), ("repeat", (mg.tensor([1, 2, 0]), 0)),
        ("roll", (i, (0, 1))), ("tile", (i,)), ("pad", (i,)), ("delete", (i, 0)), ("insert", (i, 5.0, 1)),
    ]:  # fmt: skip
        plain = [a.numpy() if isinstance(a, mg.Tensor) else a for a in args]
        for mine, numpys in zip(parts(getattr(mg, name)(x, *args)), parts(getattr(np, name)(M34, *plain)), strict=True):
            np.testing.assert_array_equal(mine.numpy(), numpys)


@pytest.mark.parametrize(
    ("name", "args", "error", "said"),
    [
        ("split", (M34, 2), mg.ShapeError, "3 elements do not divide into 2 equal sections; array_split"),
        ("split", (M34, 0), mg.ShapeError, "sections must be positive, got 0"),
        ("array_split", (M34, -1), mg.ShapeError, "sections must be positive"),
        ("split", (M34, 2, 2), mg.RangeError, "axis 2 is out of bounds"),
        ("split", (M34, [0.5]), mg.MutagradError, "float"),
        ("hsplit", (np.array(1.0), 1), mg.ShapeError, "at least 1 dimension, got 0"),
        ("vsplit", (V3, 1), mg.ShapeError, "at least 2 dimensions, got 1"),
        ("dsplit", (M34, 1), mg.ShapeError, "at least 3 dimensions, got 2"),
        ("unstack", (np.array(1.0),), mg.RangeError, "axis 0 is out of bounds"),
        ("swapaxes", (M34, 0, 2), mg.RangeError, "axis 2 is out of bounds|axis2"),
        ("moveaxis", (M34, (0, 1), 0), mg.ShapeError, "same number of elements"),
        ("rot90", (V3,), mg.ShapeError, "[Aa]xes"),
        ("fliplr", (V3,), mg.ShapeError, "2-d"),
        ("matrix_transpose", (V3,), mg.ShapeError, "at least 2-dimensional"),
        ("roll", (M34, 1, 2), mg.RangeError, "axis 2 is out of bounds"),
        ("roll", (M34, (1, 2), (0, 1, 1)), mg.ShapeError, "broadcast"),
        ("tile", (M34, -1), mg.ShapeError, "negative"),
        ("tile", (M34, 0.5), mg.DTypeError, "float"),
        ("repeat", (M34, -1), mg.ShapeError, "negative"),
        ("repeat", (M34, [1, 2], 1), mg.ShapeError, "broadcast"),
        ("pad", (M34, -1), mg.ShapeError, "negative"),
        ("pad", (M34, 1, "mean"), mg.ShapeError, "mode 'mean' is not supported; constant, edge"),
        ("pad", (M34, 1, lambda *_: None), mg.ShapeError, "is not supported"),
        ("pad", (M34, (1, 2, 3)), mg.ShapeError, "broadcast"),
        ("diag", (T234,), mg.ShapeError, "one or two dimensions, got 3"),
        ("trace", (V3,), mg.ShapeError, "two dimensions"),
        ("vstack", ([V3, M34],), mg.ShapeError, "must match exactly"),
        ("vstack", (5,), mg.DTypeError, "not iterable"),
        ("hstack", ([],), mg.ShapeError, "at least one array"),
        ("dstack", ([M23, M34],), mg.ShapeError, "must match exactly"),
        ("column_stack", ([V3, M23],), mg.ShapeError, "must match exactly"),
        ("append", (M34, V3, 0), mg.ShapeError, "dimensions"),
        ("append", (M34,), mg.DTypeError, "missing"),
        ("broadcast_arrays", (V3, M34), mg.ShapeError, "mismatch"),
        ("meshgrid", (V3, V3), mg.ShapeError, "indexing must be 'xy' or 'ij', got 'ji'"),
        ("delete", (V3, 3), mg.RangeError, "out of bounds"),
        ("insert", (V3, 7, 1.0), mg.RangeError, "out of bounds"),
        ("atleast_2d", ([mg.tensor(1.0)],), mg.DTypeError, "list of tensors"),
    ],
)  # fmt: skip
def test_errors_name_the_op(name, args, error, said):
    kwargs = {"indexing": "ji"} if name == "meshgrid" else {}
    with pytest.raises(error, match=said) as caught:
        getattr(mg, name)(*args, **kwargs)
    if name != "atleast_2d":
        assert str(caught.value).startswith(f"{name}"), caught.value


def test_padding_takes_what_numpy_takes():
    x = mg.tensor(M23)
    for width in (1, (1, 2), ((1, 2), (0, 3)), [[1], [2]], np.array([1, 0])):
        np.testing.assert_array_equal(np.pad(x, width).numpy(), np.pad(M23, width))
        gradcheck(lambda a: mg.pad(a, width) ** 2, [M23])
    got = np.pad(x, 1, constant_values=7).numpy()
    np.testing.assert_array_equal(got, np.pad(M23, 1, constant_values=7))
    for mode in ("reflect", "symmetric"):
        with pytest.raises(mg.ShapeError, match="reflect_type='odd' is not supported"):
            mg.pad(x, 1, mode, reflect_type="odd")
    with pytest.raises(mg.MutagradError, match=r"pad: .*unsupported keyword arguments"):
        np.pad(x, 1, mode="edge", constant_values=1)
    tracked = mg.tensor(1.0, requires_grad=True)
    with pytest.warns(mg.GradientCutWarning):
        mg.pad(x, 1, constant_values=tracked)


def test_stretched_arrays_are_read_only():
    row = mg.tensor(V3)
    one, other = mg.broadcast_arrays(row, mg.tensor(M23))
    with pytest.raises(mg.InplaceError, match=r"share memory|read-only"):
        one += 1.0
    other += 1.0
    (whole,) = mg.broadcast_arrays(row)
    whole += 1.0
    np.testing.assert_array_equal(row.numpy(), V3 + 1.0)
    np.testing.assert_array_equal(one.numpy(), np.broadcast_to(V3 + 1.0, (2, 3)))


def test_numbers_have_views_too():
    x = mg.tensor(2.0, requires_grad=True)
    t = x * 1.0
    view = mg.atleast_2d(t)
    view *= 3.0
    assert t.item() == 6.0
    (t * t).backward()
    assert x.grad.item() == 36.0
