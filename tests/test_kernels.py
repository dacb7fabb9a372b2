"""What the compiler makes of the kernels: single precision stays single, nothing is allocated in a loop."""

import numba
import pytest

from mutagrad import codegen, compile, expr
from mutagrad.ops import OPS, Elementwise, Reduction

ENTRIES = list(dict.fromkeys(OPS.values()))
FLOATING = [
    e for e in ENTRIES if isinstance(e, Elementwise) and "==" not in str(e.forward) and not str(e.like).count("logical")
]
REDUCTIONS = [e for e in ENTRIES if isinstance(e, Reduction)]
CHUNK = 12


def bodies(entry):
    """The forward expression of an elementwise entry and the cotangents of its operands."""
    found = [entry.body]
    if entry.differentiable:
        found += [e for e in entry.plan((True,) * len(entry.operands)).outputs if e is not None]
    return found


def llvm(source, function, args):
    """The optimised code of one kernel, compiled anew: what comes from disk cannot be looked at."""
    namespace = {}
    text = source.replace("import careful, kernel", "import careful").replace("@kernel(", "@uncached(")
    namespace["uncached"] = lambda release: numba.njit(nogil=release, error_model="numpy", fastmath={"contract"})
    exec(text, namespace)
    dispatcher = namespace[function]
    dispatcher.compile(tuple(args))
    return dispatcher.inspect_llvm(tuple(args))


def check(text, names):
    text = text.partition("cpython")[0]  # what unpacks Python's arguments
    for number, line in enumerate(text.splitlines()):
        for forbidden in ("double", "NRT_Allocate", "NRT_MemInfo_alloc"):
            assert forbidden not in line, f"{forbidden} in the code of one of {names}, line {number}: {line.strip()}"


@pytest.mark.parametrize(
    "chunk", [FLOATING[k : k + CHUNK] for k in range(0, len(FLOATING), CHUNK)], ids=lambda c: c[0].name
)
def test_single_precision_stays_single_and_nothing_is_allocated(chunk):
    outputs = [codegen.expand(e) for entry in chunk for e in bodies(entry)]
    outputs = [e for e in outputs if e.op is not None]
    names = expr.free_names(outputs)
    kernel = codegen.Kernel("many", names, outputs)
    function, source = kernel.source("f", "a" * len(outputs), "a" * len(names), 1, True)
    array = compile.array("f", 1, True)
    check(llvm(source, function, [array] * (len(names) + len(outputs))), [e.name for e in chunk])


@pytest.mark.parametrize("entry", REDUCTIONS, ids=lambda e: e.name)
def test_reductions_allocate_nothing(entry):
    total = codegen.Total(entry.element, entry)
    kernel = codegen.Kernel(entry.name, ["x"], [], [total])
    ending = [compile.scalar("f")] * total.finished
    function, source = kernel.source("f", "", "a", 2, True)
    args = [*[compile.array("f", 2, False)] * 2, *ending]
    check(llvm(source, function, args), [entry.name])
    function, source = kernel.columns("f")
    args = [*[compile.array("f", 3, False)] * 2, *ending]
    check(llvm(source, function, args), [entry.name])


def test_a_widening_would_be_seen():
    kernel = codegen.Kernel("wide", ["x"], [expr.name("x") * 3.0 + expr.name("x")])
    function, source = kernel.source("f", "a", "a", 1, True)
    array = compile.array("f", 1, True)
    check(llvm(source, function, [array, array]), ["x * 3 + x"])
    with pytest.raises(AssertionError, match="double"):
        check(llvm(source.replace("np.float32(3.0)", "3.0"), function, [array, array]), ["x * 3 + x"])
