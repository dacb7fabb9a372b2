"""Seeded faults: one small change to the library each, and the tests that must notice.

`test_mutations.py` applies them one at a time to a copy of the package.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    """A fault: where, what text becomes what, what it is, and the pytest arguments that must fail."""

    file: str
    old: str
    new: str
    what: str
    tests: str = "tests/test_programs.py -k random_programs"


FAULTS = [
    # ops
    Fault("ops/elementwise.py", "partials=lambda x: -sin(x)", "partials=lambda x: sin(x)",
          "a sign: the derivative of cos", "tests/test_table.py -k derivatives"),
    Fault("ops/elementwise.py", "partials=lambda x, y: (y, x)", "partials=lambda x, y: (y, y)",
          "the wrong factor: the derivative of a product by its second"),
    Fault("ops/elementwise.py", "_share(_share(x, hypot(x, y)), hypot(x, y)),", "_share(x, hypot(x, y)),",
          "a missing term: the derivative of arctan2", "tests/test_table.py -k derivatives"),
    Fault("ops/elementwise.py", 'forward="({0} * {1} if {0} != 0 else {0})"', 'forward="({0} * {1})"',
          "a guard dropped: zero times what is not finite", "tests/test_tensors.py"),
    Fault("ops/reduction.py", "partial=lambda n: 1 / n", "partial=lambda n: 1",
          "a missing factor: the derivative of a mean", "tests/test_table.py -k mean"),
    Fault("ops/contraction.py", "return matmul(matrix_transpose(x1), g)", "return matmul(x1, g)",
          "a transpose lost: the adjoint of a matrix product", "tests/test_table.py -k matmul"),
    Fault("ops/movement.py", "start = sum(s[axis] for s in shapes[:i])", "start = 0",
          "the wrong piece: the adjoint of concatenate", "tests/test_table.py -k concatenate"),
    Fault("ops/window.py", "return g.sum(axis=repeated, keepdims=True) if repeated else g", "return g",
          "a stretched view's cotangent not summed", "tests/test_movement.py tests/test_table.py -k broadcast_to"),
    # backward
    Fault("backward.py", "return c.sum(axis=axes, keepdims=True)", "return c.max(axis=axes, keepdims=True)",
          "broadcasting not undone by a sum"),
    Fault("backward.py", "            if c.dtype != node.dtype:", "            if False:",
          "a cast lost on the edge", "tests/test_tensors.py"),
    Fault("pulls.py", "        seen[...] = 0\n", "",
          "a gradient not cut where a window was overwritten"),
    Fault("pulls.py", '        array[params["key"]] = 0\n', "",
          "a gradient not cut where an advanced index was overwritten"),
    Fault("pulls.py", "np.where(winners, c, 0)", "c",
          "of a repeated index all writes get the gradient", "tests/test_scenarios.py"),
    Fault("backward.py", "                            n.release()\n", "                            pass\n",
          "a graph not released", "tests/test_tensors.py"),
    Fault("backward.py", "total = _sum(np.asarray(raw(old)), value) if", "total = np.asarray(value) if",
          ".grad overwritten, not accumulated"),
    Fault("pulls.py", "made.number = root.number", "made.kept = ()",
          "a square's root stripped of what it keeps", "tests/test_transforms.py"),
    Fault("forward.py", 'total = share if total is None else OPS["add"](total, share)', "total = share",
          "a tangent that forgets all operands but the last", "tests/test_transforms.py"),
    # judge
    Fault("judge.py", "    clashes = [w for w in touched if w.gives_way not in giving_way]", "    clashes = []",
          "a missed clash: what is kept is never refused", "tests/test_judge.py"),
    Fault("judge.py", 'if not clashes or modes.policy_in_force() == "preserve":', "if not clashes:",
          "the policy ignored: preserve refuses"),
    Fault("judge.py", "if seen is not None and np.may_share_memory(seen, array) and overlap(seen, array):",
          "if seen is array:", "a leaf not recognised through its views"),
    Fault("judge.py", "buffer.born < start", "buffer.born > start",
          "memory from outside of a transform taken for its own", "tests/test_judge.py"),
    Fault("judge.py", "    if not array.flags.writeable:", "    if False:",
          "read-only memory written", "tests/test_judge.py"),
    # write
    Fault("write.py", "w.kept.array = pool.copy(w.kept.array)", "w.kept.array = w.kept.array",
          "a kept value not copied before it is overwritten"),
    Fault("write.py", "version, number = buffer.version + 1, place.number + 1",
          "version, number = buffer.version, place.number + 1", "the version not bumped",
          "tests/test_judge.py"),
    Fault("write.py", "version, number = buffer.version + 1, place.number + 1",
          "version, number = buffer.version + 1, place.number", "a lost view: the place's number not bumped"),
    Fault("write.py", "            place.node, place.number = base, number", "            place.number = number",
          "a write not recorded in the base's history"),
    Fault("write.py", "        nodes = nodes_of([value]) if task.recorded else None",
          '        np.copyto(array, plain, "same_kind")\n        nodes = nodes_of([value]) if task.recorded else None',
          "a refused write that changes bytes"),
    Fault("write.py", "a = _shadow(a, copies) if isinstance(a, TensorState) else pool.copy(found)", "pass",
          "an operand in the target's memory read while it is written"),
    Fault("write.py", "lambda kept: overlap(kept, array)", "lambda kept: same_window(kept, array)",
          "a missed clash: only the very same window counts", "tests/test_judge.py"),
    # index
    Fault("index.py", "    lasting[flat.size - 1 - last] = 1.0", "    lasting[last] = 1.0",
          "the first, not the last write of a repeated index wins the gradient", "tests/test_scenarios.py"),
    Fault("index.py", "overlap(kept, array) and _marked(place, array, key, kept)", "overlap(kept, array)",
          "an advanced index refused beside what is kept", "tests/test_judge.py"),
    # record
    Fault("record.py", "return pool.copy(value) if np.may_share_memory(value, source) else value", "return value",
          "a raw array kept without a copy", "tests/test_judge.py"),
    Fault("record.py", "    view._number = -1\n", "    view._number = place.number\n",
          "a view that never asks for its node"),
    # memory
    Fault("buffers.py", "if w.low < high and low < w.high and", "if w.low < high and low <= w.low and",
          "a missed clash: a kept window that begins before the write", "tests/test_judge.py tests/test_scenarios.py"),
    Fault("buffers.py", "sys.getrefcount(self.kept) > _BASELINE", "sys.getrefcount(self.kept) >= _BASELINE",
          "a window that nobody keeps any more still in the way", "tests/test_judge.py"),
    Fault("buffers.py", "            if self._locks == 1:", "            if self._locks == 2:",
          "the user's array not locked while it is kept", "tests/test_judge.py"),
    Fault("pool.py", "if count(self) <= alone:", "if True:",
          "memory lent again though a finalizer of its cycle sees it", "tests/test_pool.py"),
    Fault("pool.py", "return np.ndarray(shape, dtype, block)",
          "return np.ndarray(shape, dtype, (ctypes.c_char * size).from_address(memory[1]))",
          "memory lent again at once: its array does not hold the block", "tests/test_pool.py -k seen"),
    Fault("pool.py", "or pool._idle > pool.limit:", "or False:",
          "idle memory without bound", "tests/test_pool.py -k bounded"),
    # the rest
    Fault("operands.py", "    return BOOL if isinstance(x, bool) else type(x)", "    return np.asarray(x).dtype",
          "a Python number that is not weak"),
    Fault("modes.py", 'return policy.get() or ("refuse" if transform.get() is None else "preserve")',
          'return policy.get() or "refuse"', "the default of transforms lost", "tests/test_judge.py"),
    Fault("call.py", "        return pool.copy(value)\n", "        return value\n",
          "the caller's array mutated by a transform", "tests/test_judge.py"),
    Fault("fast.py", "plan = plans[2] if nx is None else plans[1] if ny is None else plans[3]",
          "plan = plans[1] if nx is None else plans[2] if ny is None else plans[3]",
          "the fast path takes the plan of the other operand", "tests/test_tensors.py"),
    Fault("fast.py", "kept = (keep(t),) if mask == 2 else (keep(x), keep(t))",
          "kept = (keep(x),) if mask == 2 else (keep(x), keep(t))",
          "the fast path keeps the operand for the result"),
    Fault("protocols.py", 'return write.apply(entry, target, inputs, f"{name}(out=)", where, **kwargs)',
          'return write.apply(entry, target, inputs, f"{name}(out=)")', "where= of a ufunc ignored"),
    Fault("ops/reduction.py", "also=(np.amax, np.maximum.reduce)", "also=(np.amax, np.minimum.reduce)",
          "np.minimum.reduce takes the maximum", "tests/test_corners.py -k ufunc_methods"),
    Fault("creation.py", "made = pool.copy(data) if plain", "made = data if plain",
          "tensor() shares memory with its argument", "tests/test_tensors.py"),
    # kernels
    Fault("codegen.py", "if guarded and e not in shows:", "if False:",
          "a guarded product whose nan a selection hides is not watched", "tests/test_codegen.py"),
    Fault("codegen.py", 'f"for i in range(middle, {stop}):"', 'f"for i in range(middle, middle):"',
          "a part's last elements left out", "tests/test_reductions.py"),
    Fault("codegen.py", "min(part * ROWS + ROWS, length)", "length",
          "a part of columns combines the next ones too", "tests/test_reductions.py"),
    Fault("workers.py", "        if self.quick(*args):\n            self.whole()(*args)\n",
          "        self.quick(*args)\n",
          "what is in doubt stays", "tests/test_codegen.py"),
    Fault("totals.py", "    made[..., parts:] = init\n", "    made[..., parts:] = 0\n",
          "parts filled up with zeros", "tests/test_reductions.py -k parts"),
    Fault("run.py", "a.strides[-1] == a.itemsize or a.shape[-1] == 1", "a.strides[-1] != 0 or a.shape[-1] == 1",
          "strided rows read as contiguous", "tests/test_table.py -k layouts"),
    Fault("fastmath.py", "return found.beyond if letter", "return None if letter",
          "huge arguments reach the vectorised functions", "tests/test_codegen.py"),
    # threads
    Fault("workers.py", "bounds = [self.units * k // count for k in range(count + 1)]",
          "bounds = [(self.units - 1) * k // count for k in range(count + 1)]",
          "the last piece not shared out", "tests/test_workers.py"),
    Fault("workers.py", "            job.wait()\n            raise\n", "            raise\n",
          "an interrupt leaves a shared write half done", "tests/test_workers.py"),
]  # fmt: skip
