"""mutagrad: JIT-compiled scalar-and-array autograd on Numba, for people who mutate arrays."""

from types import ModuleType
from typing import Any

from . import testing
from .creation import (
    CONSTANTS,
    arange,
    array,
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from .errors import (
    CacheWarning,
    DTypeError,
    GradientCutWarning,
    GradientError,
    InplaceError,
    MutagradError,
    RangeError,
    ShapeError,
)
from .functions import FUNCTIONS
from .index import add_at
from .modes import enable_grad, inplace_policy, no_grad
from .placement import copyto, fill_diagonal, place, put, put_along_axis, putmask
from .pool import memory_stats
from .tensors import Tensor
from .transforms import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from .workers import get_num_threads, set_num_threads

__version__ = "0.1.0"

# The ops of the table, each by all of its public names.
globals().update(FUNCTIONS)
globals().update(CONSTANTS)

__all__ = ["testing"]
__all__ += sorted(
    name
    for name, value in globals().items()
    if not (
        name.startswith("_") or isinstance(value, ModuleType) or name in {"Any", "CONSTANTS", "FUNCTIONS", "ModuleType"}
    )
)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:  # so that type checkers accept the names from the table
    raise AttributeError(f"module 'mutagrad' has no attribute {name!r}")
