"""Shared settings: one kernel cache for the run, and Hypothesis without deadlines (compiling takes its time)."""

import gc

import pytest
from hypothesis import Phase, settings

from mutagrad import compile

settings.register_profile("mutagrad", deadline=None, derandomize=True, print_blob=True)
# For the seeded faults: that a test fails is enough.
settings.register_profile("first-failure", settings.get_profile("mutagrad"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("mutagrad")


@pytest.fixture(autouse=True)
def _compiled_objects_are_left_alone():
    """What the compiler keeps of hundreds of kernels is not walked through by every later garbage collection."""
    before = len(compile.report)
    yield
    if len(compile.report) > before:
        gc.freeze()
