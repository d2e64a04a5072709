"""The cases of a file as the tasks of a benchmark: each is a plan to carry out."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from ....jsonl import read_lines
from ....trajectories.comparison import TextPair
from ....trajectories.slate import SlateCases, load_cases
from ....trajectories.slate.protocol import SLATE
from ..branching.dialogue import PlanDialogue
from ..branching.prompts import PROMPTS
from ..config import benchmark_settings
from .config import SlateConfig
from .recorded import RecordedOutputs, uncompared
from .simulator import SlateEnvironment


class SlateTasks:
    """See ``plans.PlanBenchmark``.

    Args:
        cases: The cases.
        config: The settings.
        compares_texts: True if free texts in arguments are compared by the answers in ``judged``.
    """

    name, setting = "slate", ""

    def __init__(
        self, cases: SlateCases, config: SlateConfig, *, compares_texts: bool = False
    ) -> None:
        self._cases, self._is_library = cases, config.scope == "library"
        same_text = uncompared if compares_texts else None
        self._recorded = RecordedOutputs(
            cases.by_id.values(), same_text=same_text, scope=config.scope
        )
        content = f"{cases.digest} {config.scope} {PROMPTS} slate@{SLATE.version}"
        self.digest = sha256(content.encode()).hexdigest()
        self.tasks: Sequence[str] = list(cases.by_id)

    @property
    def judged(self) -> MutableMapping[TextPair, bool]:
        """See ``plans.PlanBenchmark``."""
        return self._recorded.judged

    def environment(self) -> SlateEnvironment:
        """A new environment; all share the recorded outputs."""
        return SlateEnvironment(self._recorded)

    def dialogue(self, task: str) -> PlanDialogue:
        """A new episode."""
        return PlanDialogue(self.environment(), task)

    def content(self, task: str) -> tuple[Any, str]:
        """The case, and the hash of all cases if other cases may answer; else empty."""
        case = self._cases.by_id[task].model_dump(mode="json")
        return case, self._cases.digest if self._is_library else ""


def holds_cases(path: Path) -> bool:
    """True if a file holds cases: its first row has a plan and recorded outputs."""
    first = next(read_lines(path, any_format=True), None) if path.is_file() else None
    row = first.values if first is not None else None
    return isinstance(row, dict) and {"plan", "outputs"} <= row.keys()


def open_cases(path: Path, options: Mapping[str, str]) -> SlateTasks:
    """The tasks of a file; raises OptionError for a bad setting, InputError for bad cases."""
    return SlateTasks(load_cases(path), benchmark_settings(SlateConfig, options))
