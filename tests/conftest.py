"""Shared settings: one kernel cache for the run, and Hypothesis without deadlines (compiling takes its time)."""

from hypothesis import Phase, settings

settings.register_profile("mutagrad", deadline=None, derandomize=True, print_blob=True)
# For the seeded faults: that a test fails is enough.
settings.register_profile("first-failure", settings.get_profile("mutagrad"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("mutagrad")
