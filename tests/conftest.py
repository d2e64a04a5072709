"""Settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import settings

# The same examples on every machine and in every run; HYPOTHESIS_PROFILE=explore looks further.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
