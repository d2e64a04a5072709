"""Settings of the whole suite."""

from __future__ import annotations

import gc
import os
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

CACHE = "APBJUDGE_CACHE_DIR"
_CACHES = tempfile.TemporaryDirectory(prefix="apbjudge-tests-")
_NUMBERS = count()
gc.disable()  # while tests are collected next to nothing becomes garbage; see ``calm_collector``
os.environ[CACHE] = str(Path(_CACHES.name, "shared"))
os.environ["XDG_STATE_HOME"] = str(Path(_CACHES.name, "state"))  # never the user's own seal key

# The same examples on every machine and in every run. HYPOTHESIS_PROFILE=thorough tries more of
# them, as CI does in a step of its own; explore tries others each time.
EACH: dict[str, Any] = {"derandomize": True, "deadline": None, "database": None}
EACH["suppress_health_check"] = [HealthCheck.too_slow]  # a busy machine is no fault
settings.register_profile("fixed", max_examples=20, **EACH)
settings.register_profile("thorough", max_examples=200, **EACH)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds replies that another one left, or that the user's own runs did."""
    monkeypatch.setenv(CACHE, str(Path(_CACHES.name, str(next(_NUMBERS)))))


@pytest.fixture(scope="session", autouse=True)
def calm_collector() -> None:
    """What is loaded by now stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
