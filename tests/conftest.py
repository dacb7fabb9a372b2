"""Shared settings: one kernel cache for the run, and Hypothesis without deadlines (compiling takes its time)."""

from hypothesis import settings

settings.register_profile("mutagrad", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("mutagrad")
