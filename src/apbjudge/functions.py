"""The function of each command, imported when it is first used.

``functions.pyi`` states their signatures, made from the fields of the configurations: run
``python -m tests.support.signatures`` when an option changes.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, cast

import lazy_loader

_HAS_AGENTS = find_spec(f"{__package__}.agents") is not None
_BY_MODULE: Mapping[str, str] = {
    # that of agents hands runs of judges and audits to that of audits
    **({"agents.merging": "shards_merge"} if _HAS_AGENTS else {}),
    "agents.cases.build": "build",
    "agents.cases.check": "check",
    "agents.environments.branching.analysis": "entropy",
    "agents.environments.branching.run": "branch",
    "agents.environments.execution.execute": "execute",
    "agents.environments.execution.validate": "validate",
    "agents.environments.planbench.blocking": "planbench_block_plan",
    "agents.environments.planbench.generation.checks": "planbench_check",
    "agents.environments.planbench.generation.generate": "planbench_generate",
    "agents.environments.planbench.paths": "planbench_paths",
    "agents.environments.simulate": "simulate",
    "agents.prediction.batching": "batch_export",
    "agents.prediction.doctor": "doctor",
    "agents.prediction.predict": "predict",
    "agents.prediction.prompt": "prompt",
    "agents.prediction.refine": "refine",
    "audits.session": "audit",
    **({} if _HAS_AGENTS else {"audits.merging": "shards_merge"}),
    "calibration.calibrate": "calibrate",
    "calibration.compare": "compare",
    "calibration.label_plan": "plan_labels",
    "judge.ensembles": "cascade",
    "integrations.scale": "scale",
    "integrations.schemas": "schema",
    "integrations.scores": "export",
    "judge.grade": "agrade grade",
    "judge.split": "shards_split",
    "judge.project": "init",
    "labelling.label": "label",
    "llm.resources": "cache_clear cache_stats",
    "reports.report": "report",
    "reports.reproduce": "reproduce",
    "rubrics": "load_rubric rubric_names",
    "runs.batch_files": "batch_import",
    "trajectories.convert": "convert",
}
FUNCTIONS = sorted(name for names in _BY_MODULE.values() for name in names.split())
"""The function of each command, named like it with ``_`` for spaces and dashes."""

_attach: Any = cast("Any", lazy_loader).attach  # it carries no types
__getattr__, __dir__, __all__ = _attach(
    __package__, submod_attrs={of: names.split() for of, names in _BY_MODULE.items()}
)
