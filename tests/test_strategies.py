"""The Hypothesis strategies: they give what they promise, and ops take it in every layout."""

import numpy as np
import pytest
from hypothesis import find, given
from hypothesis import strategies as st

import mutagrad as mg
from mutagrad.ops import OPS, Elementwise
from mutagrad.testing import gradcheck, strategies

TABLE = np.arange(12.0).reshape(3, 4) / 7
DOMAINS = [e for e in {e.name: e for e in OPS.values()}.values() if isinstance(e, Elementwise) and e.differentiable]


@given(strategies.laid_out(TABLE), st.sampled_from(["sin", "square", "relu", "sum", "max", "cumsum"]))
def test_any_layout_gives_the_same(array, name):
    op = getattr(mg, name)
    assert np.array_equal(array, TABLE)
    assert not np.shares_memory(array, TABLE)
    np.testing.assert_allclose(op(array).numpy(), op(TABLE).numpy(), rtol=1e-14)
    np.testing.assert_allclose(mg.grad(lambda x: mg.sum(op(x)))(array), mg.grad(lambda x: mg.sum(op(x)))(TABLE))


LAYOUTS = {
    "fortran": lambda a: a.flags.f_contiguous and not a.flags.c_contiguous,
    "step": lambda a: a.strides[-1] == 2 * a.itemsize,
    "reversed": lambda a: min(a.strides) < 0,
    "read-only": lambda a: not a.flags.writeable and all(a.strides),
    "stretched": lambda a: 0 in a.strides,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_drawn(layout):
    found = find(strategies.arrays((3, 4)), LAYOUTS[layout])
    assert found.shape == (3, 4)


@pytest.mark.parametrize("entry", DOMAINS, ids=lambda e: e.name)
def test_operands_lie_in_the_domain(entry):
    @given(strategies.operands(entry, (2, 3)))
    def check(args):
        for array, name, intervals in zip(args, entry.operands, entry.sample, strict=True):
            low, high = intervals[0][0], intervals[-1][1]
            assert array.shape == (2, 3)
            assert array.dtype == bool if name in entry.masks else ((low <= array) & (array <= high)).all()

    check()


@given(st.data(), strategies.shapes(max_side=3))
def test_indices_read_as_numpys(data, shape):
    table = np.arange(float(np.prod(shape))).reshape(shape)
    key = data.draw(strategies.indices(shape))
    found = mg.tensor(table)[key]
    assert found.shape == table[key].shape
    assert found.tolist() == table[key].tolist()


@given(strategies.broadcastable(3), strategies.dtypes("fiub"))
def test_broadcastable_shapes(shapes, dtype):
    made = mg.zeros(shapes[0], dtype=dtype) + mg.zeros(shapes[1], dtype=dtype) + mg.zeros(shapes[2], dtype=dtype)
    assert made.shape == np.broadcast_shapes(*shapes)
    assert made.dtype == dtype


@given(strategies.arrays((4,), 0.5, 2.0))
def test_arrays_stay_between_their_limits(array):
    assert ((array >= 0.5) & (array <= 2.0)).all()
    assert gradcheck(mg.log, [array])
