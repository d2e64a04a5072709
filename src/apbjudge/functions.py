"""The function of each command, imported when it is first used.

``functions.pyi`` states their signatures, made from the fields of the configurations: run
``python -m tests.support.signatures`` when an option changes.
"""

from collections.abc import Mapping
from typing import Any

import lazy_loader

FUNCTIONS: Mapping[str, str] = {
    "agrade": "judge.grade",
    "audit": "audits.session",
    "batch_export": "prediction.batching",
    "batch_import": "runs.batching",
    "branch": "environments.branching.run",
    "build": "construction.build",
    "cache_clear": "llm.resources",
    "cache_stats": "llm.resources",
    "calibrate": "calibration.calibrate",
    "cascade": "judge.ensembles",
    "check": "construction.check",
    "compare": "calibration.compare",
    "convert": "trajectories.convert",
    "doctor": "prediction.doctor",
    "entropy": "environments.branching.analysis",
    "execute": "environments.execution.execute",
    "grade": "judge.grade",
    "label": "labelling.label",
    "load_rubric": "rubrics",
    "plan_labels": "calibration.label_plan",
    "planbench_block_plan": "environments.planbench.blocking",
    "planbench_paths": "environments.planbench.paths",
    "predict": "prediction.predict",
    "prompt": "prediction.prompt",
    "refine": "prediction.refine",
    "report": "reports.report",
    "rubric_names": "rubrics",
    "shards_merge": "judge.merge",
    "shards_split": "judge.merge",
    "simulate": "environments.simulate",
    "validate": "environments.execution.validate",
}
"""The module below ``apbjudge`` of each function; a command's, with ``_`` for spaces and dashes."""

_attach: Any = lazy_loader.attach  # it carries no types
__getattr__, __dir__, __all__ = _attach(
    __package__,
    submod_attrs={of: [n for n in FUNCTIONS if FUNCTIONS[n] == of] for of in FUNCTIONS.values()},
)
