"""The function of each command, imported when it is first used.

``functions.pyi`` states their signatures, made from the fields of the configurations: run
``python -m tests.support.signatures`` when an option changes.
"""

from collections.abc import Mapping
from typing import Any, cast

import lazy_loader

_BY_MODULE: Mapping[str, str] = {
    "audits.session": "audit",
    "calibration.calibrate": "calibrate",
    "calibration.compare": "compare",
    "calibration.label_plan": "plan_labels",
    "construction.build": "build",
    "construction.check": "check",
    "environments.branching.analysis": "entropy",
    "environments.branching.run": "branch",
    "environments.execution.execute": "execute",
    "environments.execution.validate": "validate",
    "environments.planbench.blocking": "planbench_block_plan",
    "environments.planbench.paths": "planbench_paths",
    "environments.simulate": "simulate",
    "judge.ensembles": "cascade",
    "judge.grade": "agrade grade",
    "judge.project": "init",
    "judge.merge": "shards_merge shards_split",
    "labelling.label": "label",
    "llm.resources": "cache_clear cache_stats",
    "prediction.batching": "batch_export",
    "prediction.doctor": "doctor",
    "prediction.predict": "predict",
    "prediction.prompt": "prompt",
    "prediction.refine": "refine",
    "reports.report": "report",
    "rubrics": "load_rubric rubric_names",
    "runs.batching": "batch_import",
    "trajectories.convert": "convert",
}
FUNCTIONS = sorted(name for names in _BY_MODULE.values() for name in names.split())
"""The function of each command, named like it with ``_`` for spaces and dashes."""

_attach: Any = cast("Any", lazy_loader).attach  # it carries no types
__getattr__, __dir__, __all__ = _attach(
    __package__, submod_attrs={of: names.split() for of, names in _BY_MODULE.items()}
)
