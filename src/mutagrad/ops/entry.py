"""The kinds of table entries, and what is derived from one: what its derivative keeps, and its plan.

An entry says how to compute and what each partial derivative is. It computes nothing itself: calling it
with expressions builds an expression, calling it with anything else goes to the recorder of its kind,
which the rooms below register here.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import expr
from ..expr import Expr

# Kind of entry -> the function that runs and records it; filled by the graph builder.
recorders: dict[type[Entry], Callable[..., Any]] = {}

# The dtype rule of derivatives: operands of one floating dtype, masks aside.
_DERIVED = "derived"

NO_DERIVATIVE = "not differentiable: piecewise constant or integer-valued, its result is never tracked"


def parse(call: str) -> tuple[str, inspect.Signature]:
    """Split "sum(x, axis=None)" into its name and its signature."""
    head = ast.parse(f"def {call}: pass").body[0]
    assert isinstance(head, ast.FunctionDef)
    arguments = ast.unparse(head.args)
    return head.name, inspect.signature(eval(f"lambda {arguments}: None", {"inf": math.inf}))


class Entry:
    """One op of the table.

    Parameters
    ----------
    call : str
        Name and signature as a user writes them, "sum(a, axis=None, dtype=None, out=None, keepdims=False)". A
        parameter `dtype` casts the operands first; `out` names a tensor to write the result into.
    doc : str
        One sentence.
    operands : sequence of str
        Which arguments may be tensors, by default the first; the rest are static parameters. A leading "*" marks
        an argument that is a sequence of tensors.
    ufunc, numpy : callable
        What NumPy calls this op: a ufunc, or a function. The reference of the tests.
    also : sequence of callable
        What else NumPy calls it: `np.add.reduce` of the sum.
    aliases : sequence of str
        Further public names.
    keywords : dict of str -> str
        Further names of arguments, as NumPy has for those of `clip`.
    conventions : str
        What holds at corners, for the reference row.
    example : (str, str)
        An expression and what it shows, for the docstring; where absent one is made from the operands.
    inplace : bool
        The result can take the first operand's place, so there is a method `name_`. An elementwise op knows.
    """

    def __init__(
        self,
        call: str,
        doc: str,
        *,
        operands: Sequence[str] = (),
        ufunc: Any = None,
        numpy: Any = None,
        also: Sequence[Any] = (),
        aliases: Sequence[str] = (),
        keywords: dict[str, str] | None = None,
        conventions: str = "",
        example: tuple[str, str] = ("", ""),
        method: bool = True,
        private: bool = False,
        inplace: bool = False,
    ) -> None:
        self.call, self.doc = call, doc
        self.name, self.public = parse(call)
        # `out` is the public function's: it writes the result there through the one gate; the op never sees it.
        self.signature = self.public.replace(parameters=[p for n, p in self.public.parameters.items() if n != "out"])
        operands = operands or (next(iter(self.signature.parameters)),)
        self.variadic = operands[0].startswith("*")
        self.operands = tuple(o.lstrip("*") for o in operands)
        # A variadic op's operands come as one sequence, or as separate arguments.
        first = self.signature.parameters[self.operands[0]]
        self.sequence = self.variadic and first.kind is not inspect.Parameter.VAR_POSITIONAL
        self.params = tuple(p for p in self.signature.parameters if p not in self.operands)
        self.ufunc, self.numpy, self.also = ufunc, numpy or ufunc, tuple(also)
        self.aliases, self.keywords = tuple(aliases), keywords or {}
        self.conventions = conventions
        self.example, self.method, self.private, self.inplace = example, method, private, inplace

    differentiable = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return recorders[type(self)](self, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.call}>"

    def __reduce__(self) -> str:
        return self.name


class Plan:
    """What the derivative of one entry needs when a given set of operands is active.

    Attributes
    ----------
    keep : tuple of str
        The names that the simplified derivative reads: operands in their order, "out", auxiliary values.
    outputs : tuple of (Expr or None)
        The cotangent of each operand over `keep` and "g"; None for an operand that is not active.
    positions : tuple of int
        For each kept name, the operand it is; -1 for "out", -2 for an auxiliary value.
    kernels : dict
        Room for the compiled forms, filled by the rooms below.
    """

    __slots__ = ("_derived", "entry", "keep", "kernels", "mask", "outputs", "positions")

    def __init__(self, entry: Entry, outputs: Sequence[Expr | None]) -> None:
        self.entry = entry
        self.outputs = tuple(outputs)
        read = [n for n in expr.free_names(e for e in outputs if e is not None) if n != "g"]
        ordered = [n for n in (*entry.operands, "out") if n in read]
        self.keep = (*ordered, *(n for n in read if n not in ordered))
        where = {o: i for i, o in enumerate(entry.operands)} | {"out": -1}
        self.positions = tuple(where.get(n, -2) for n in self.keep)
        # One bit an operand, then one for the result.
        self.mask = sum(1 << (len(entry.operands) if p == -1 else p) for p in self.positions if p > -2)
        self.kernels: dict[Any, Any] = {}
        self._derived: dict[int, Elementwise] = {}

    def derived(self, i: int) -> Elementwise:
        """The cotangent of operand `i` as an entry of its own, so that it differentiates again."""
        found = self._derived.get(i)
        if found is None:
            output = self.outputs[i]
            assert output is not None
            names = ("g", *self.keep)
            # Its operands are renamed: "g" and "out" will be its own cotangent and result.
            own = [n + "_" for n in names]
            body = expr.substitute(output, {n: expr.name(o) for n, o in zip(names, own, strict=True)})
            found = self._derived[i] = Elementwise(
                f"{self.entry.name}_pull_{self.entry.operands[i]}({', '.join(own)})",
                f"The cotangent of `{self.entry.operands[i]}` in {self.entry.name}.",
                expression=lambda *_: body,
                like=_DERIVED,
                private=True,
            )
        return found


class Elementwise(Entry):
    """An op on scalars, applied element by element with broadcasting.

    Parameters
    ----------
    forward : str or callable
        The scalar computation: text with placeholders ("({0} + {1})") or a function of `fastmath`.
    expression : callable
        Instead of `forward`: the op written with other ops.
    partials : callable
        A function of (some of) the operands and `out` that returns the partial derivatives, one for each
        operand; None for an operand without one. Absent where `expression` says it all.
    pull : callable
        Instead of `partials`, for ops linear in their cotangent: a function of `g`, operands and `out`.
    masks : sequence of str
        The operands that are conditions.
    like : ufunc
        Whose dtype rule the op follows, where it is no ufunc itself.
    domain : (low, high), or for each operand one or several such pairs
        The open intervals where the op is real and differentiable; the whole line where nothing is said.
    sample : like `domain`
        Where tests take their points: the domain without its edges, unless overflow, conditioning or kinks ask
        for less.
    special : dict
        Values at special points.
    python : callable
        Python's own operator where it gives, on floats, what the kernel gives; it saves the call.
    squared : callable
        The square of the op written with other ops, where that is smooth at a point where the op is not.
    cost : int
        0 for a move or a sign, 1 for arithmetic, 10 for transcendental functions: the dear are kept, the
        cheap are computed again.
    """

    def __init__(
        self,
        call: str,
        doc: str,
        *,
        forward: Any = None,
        expression: Callable[..., Any] | None = None,
        partials: Callable[..., Any] | None = None,
        pull: Callable[..., Any] | None = None,
        like: Any = None,
        syntax: str = "",
        masks: Sequence[str] = (),
        differentiable: bool = True,
        domain: Any = (-math.inf, math.inf),
        sample: Any = None,
        special: dict[float, float] | None = None,
        cost: int = 1,
        python: Callable[..., float] | None = None,
        squared: Callable[..., Any] | None = None,
        **common: Any,
    ) -> None:
        operands = tuple(parse(call)[1].parameters)
        super().__init__(call, doc, operands=operands, **common)
        self.forward, self.expression = forward, expression
        self._partials, self._pull = partials, pull
        self.like = like if like is not None else self.ufunc
        assert not {"g", "out"} & set(operands), "g and out are the cotangent and the result"
        self.differentiable, self.masks = differentiable, tuple(masks)
        kinds = inspect.Parameter
        given = [*self.signature.parameters.values(), kinds("out", kinds.POSITIONAL_OR_KEYWORD, default=None)]
        self.public = inspect.Signature([*given, kinds("where", kinds.KEYWORD_ONLY, default=True)])
        self.domain = _intervals(domain, len(operands))
        edge = 0.1
        inner = tuple(tuple((low + edge, high - edge) for low, high in each) for each in self.domain)
        self.sample = inner if sample is None else _intervals(sample, len(operands))
        # A condition's place is not taken by a result, nor a number's by a truth value.
        self.inplace = operands[0] not in self.masks and any(t.endswith("->d") for t in getattr(self.like, "types", ()))
        self.special = special or {}
        self.cost, self.python = cost, python
        # None stands for "no default": an argument passed as None takes the default where there is one.
        defaults = [p.default for p in self.signature.parameters.values()]
        self.defaults = tuple(None if d is inspect.Parameter.empty else d for d in defaults)
        self.optional = any(d is not None for d in self.defaults)
        self._names = [expr.name(o) for o in self.operands]
        self.squared = squared
        self._plans: dict[tuple[bool, ...], Plan] = {}
        self._squared: dict[tuple[bool, ...], Plan] = {}
        self.kernels: dict[Any, Any] = {}
        self.fast: dict[Any, Any] = {}
        if syntax:
            expr.SYNTAX[syntax] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(a, Expr) for a in args):
            return expr.apply(self, args)
        return recorders[Elementwise](self, *args, **kwargs)

    @property
    def body(self) -> Expr:
        """The scalar computation as an expression over the operands."""
        if self.expression is not None:
            return expr.lift(self.expression(*self._names))
        return expr.apply(self, self._names)

    def pull(self, g: Expr, args: Sequence[Expr], out: Expr) -> list[Expr | None]:
        """The cotangent of each argument."""
        if not self.differentiable:
            return [None] * len(args)
        by_name = dict(zip(self.operands, args, strict=True)) | {"g": g, "out": out}
        if self._pull is not None:
            given = _call_by_name(self._pull, by_name)
            return [None if c is None else expr.lift(c) for c in given]
        if self._partials is not None:
            partials = _call_by_name(self._partials, by_name)
            each = partials if isinstance(partials, tuple) else (partials,)
            return [None if p is None else expr.zmul(g, p) for p in each]
        inner = expr.pull(self.body, g, self.operands)
        return [None if c is None else expr.substitute(c, by_name) for c in inner]

    def plan(self, active: tuple[bool, ...]) -> Plan:
        """The derivative for the operands marked in `active`."""
        found = self._plans.get(active)
        if found is None:
            pulled = self.pull(expr.name("g"), self._names, expr.name("out"))
            # An active operand may still have a derivative of zero everywhere: then it gets no cotangent.
            outputs = [c if a else None for c, a in zip(pulled, active, strict=True)]
            found = self._plans[active] = Plan(self, outputs)
        return found

    def squared_plan(self, active: tuple[bool, ...]) -> Plan:
        """The derivative of the op's square."""
        assert self.squared is not None
        found = self._squared.get(active)
        if found is None:
            body = expr.lift(self.squared(*self._names))
            pulled = expr.pull(body, expr.name("g"), self.operands)
            outputs = [c if a else None for c, a in zip(pulled, active, strict=True)]
            found = self._squared[active] = Plan(self, outputs)
        return found


def _call_by_name(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    return function(*(values[p] for p in inspect.signature(function).parameters))


def _intervals(given: Any, count: int) -> tuple[tuple[tuple[float, float], ...], ...]:
    """The intervals of each operand, from one interval for all of them, or one or several for each."""
    each = given if isinstance(given[0], tuple) else (given,) * count
    return tuple(e if isinstance(e[0], tuple) else (e,) for e in each)


class Reduction(Entry):
    """Combines the elements along axes into one.

    Parameters
    ----------
    combine : callable
        `combine(acc, x)` gives the next accumulator, and that of two accumulators, written with ops.
    element : callable
        What is combined of each element; by default itself.
    init : float
        The first accumulator, and what stands for an element that `where` masks out.
    finish : callable
        `finish(acc, n)` gives the result; `n` is the number of elements combined.
    partial : callable
        The partial by one element, of the operand, `out`, `n` and auxiliary values by name.
    merge : Elementwise
        Merges `initial` with the result.
    masked : callable
        `masked(operand, axis, keepdims, where)`, written with ops, where masking elements out changes more
        than the elements.
    aux : callable
        `aux(x, out, axes)` on arrays, `out` with reduced axes kept: a dict of auxiliary values that the
        derivative keeps instead of its inputs.
    squared : callable
        The partial of the op's square, where that is smooth at a point where the op is not.
    """

    def __init__(
        self,
        call: str,
        doc: str,
        *,
        combine: Callable[..., Any],
        init: float,
        partial: Callable[..., Any],
        finish: Callable[..., Any] | None = None,
        merge: Elementwise | None = None,
        masked: Callable[..., Any] | None = None,
        aux: Callable[..., dict[str, Any]] | None = None,
        element: Callable[..., Any] | None = None,
        empty: bool = True,
        like: Any = None,
        squared: Callable[..., Any] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(call, doc, **common)
        self.squared = squared
        self.init, self.empty, self.aux, self.like = init, empty, aux, like
        self.merge, self.masked = merge, masked
        acc, x, n = expr.name("acc"), expr.name("x"), expr.name("n")
        self.combine = expr.lift(combine(acc, x))
        self.element = x if element is None else expr.lift(element(x))
        self.finish = acc if finish is None else expr.lift(finish(acc, n))
        # Elementwise over the reduced array, with g and out broadcast along the reduced axes.
        self.plan = self._plan_of(partial)
        self._squared = None if squared is None else self._plan_of(squared)
        self.kernels: dict[Any, Any] = {}

    def _plan_of(self, partial: Callable[..., Any]) -> Plan:
        names = {p: expr.name(p) for p in inspect.signature(partial).parameters}
        return Plan(self, [expr.zmul(expr.name("g"), _call_by_name(partial, names))])

    def squared_plan(self, active: tuple[bool, ...]) -> Plan:
        """The derivative of the op's square."""
        assert self._squared is not None
        return self._squared


class Structural(Entry):
    """An op that gives its adjoint, written with ops, instead of partials.

    Parameters
    ----------
    compute : callable
        The value from NumPy arrays; with auxiliary values it returns (value, dict).
    kernel : callable
        Instead of `compute`: a function of `fastmath` that fills its first argument, a 2-D array, from
        others of that shape, working along the last axis.
    adjoints : dict of str -> callable, or callable for a variadic op
        For each differentiable operand, a function whose parameter names say what it reads: `g`,
        operands, `out`, auxiliary values (these are kept), `x_shape` and the like, static parameters.
        A variadic op has one function with a parameter `i`, and reads `shapes` or the operands' sequence.
    formula : str
        The cotangents as a person writes them, for the reference row, where they are more than g moved back.
    view : bool
        NumPy returns a view where it can; then the tensor is a view and its derivative is the window's.
    """

    def __init__(
        self,
        call: str,
        doc: str,
        *,
        compute: Callable[..., Any] | None = None,
        kernel: Callable[..., None] | None = None,
        adjoints: Any = None,
        view: bool = False,
        formula: str = "",
        **common: Any,
    ) -> None:
        super().__init__(call, doc, **common)
        self.compute, self.kernel = compute or self.numpy, kernel
        self.adjoints = adjoints if adjoints is not None else {}
        self.view, self.formula = view, formula
        self.differentiable = view or bool(self.adjoints)
        rules = self.adjoints if isinstance(self.adjoints, dict) else dict.fromkeys(("*",), self.adjoints)
        self.reads = {o: tuple(inspect.signature(f).parameters) for o, f in rules.items()}


class Movement(Structural):
    """Rearranges elements: reshape, transpose, concatenate."""


class Indexing(Structural):
    """Picks, scatters or orders elements."""


class Contraction(Structural):
    """Sums products: matmul, einsum."""


class Composite(Entry):
    """An op that is a Python function over other ops and needs no rule of its own.

    Parameters
    ----------
    function : callable
        Takes what `call` says but `out`, defaults filled in.
    differentiable : bool
        Whether its result may be tracked.
    """

    def __init__(
        self, call: str, doc: str, *, function: Callable[..., Any], differentiable: bool = True, **common: Any
    ) -> None:
        super().__init__(call, doc, **common)
        self.function, self.differentiable = function, differentiable
