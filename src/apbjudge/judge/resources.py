"""The model judges of a run, from their settings and the session's resources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..llm.resources import Resources, is_shown_images, make_engine
from .llm_judge import LLMJudge
from .spec import JudgeSpec


def make_judge(spec: JudgeSpec, roots: Sequence[Path], resources: Resources) -> LLMJudge:
    """The model judge of a run; see ``make_judges``."""
    return make_judges([(spec, resources)], roots)[0]


def make_judges(
    wanted: Sequence[tuple[JudgeSpec, Resources]], roots: Sequence[Path]
) -> list[LLMJudge]:
    """Model judges that ask the same endpoint: they share its addresses, limits and rates.

    Args:
        wanted: Each judge's settings, which differ in what is asked and not in who is, and its
            resources, which differ in the cache alone; at least one.
        roots: Folders that pictures may lie in.
    """
    first, resources = wanted[0]
    engine = make_engine(first, resources)
    sees = is_shown_images(first, known=resources.client is None)
    engines = {resources.cache: engine}
    for _, other in wanted[1:]:
        if other.cache not in engines:
            engines[other.cache] = engine.sharing(other.open_cache())
    return [LLMJudge(spec, engines[r.cache], roots=roots, sees=sees) for spec, r in wanted]
