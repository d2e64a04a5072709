"""The queries of a data folder as the tasks of a benchmark, under some settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import orjson

from ....trajectories.planbench.single_step import SINGLE_STEP, single_step
from ..config import benchmark_settings
from .blocking import read_block_plan
from .config import EpisodeConfig
from .database import load_database
from .dialogue import PlanBenchDialogue
from .environment import PlanBenchRules


class PlanBenchTasks:
    """See ``environments.base.Benchmark``."""

    name = "planbench-xl"

    def __init__(self, rules: PlanBenchRules) -> None:
        self._rules = rules

    @property
    def setting(self) -> str:
        """Name of the condition: the blocked tools, and enforced exploration."""
        return self._rules.setting

    @property
    def digest(self) -> str:
        """Hash of data, settings, block plan and prompts."""
        rules = self._rules
        settings = rules.config.model_dump(
            mode="json", exclude={"block_plan", "prompts", "runtime_texts"}
        )
        blocked = {} if rules.plan is None else rules.plan.to_json()
        content = [rules.database.digest, settings, blocked, rules.prompts.digest]
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()

    @property
    def prompt_files(self) -> Mapping[str, str]:
        """SHA-256 of each file of the user's prompts."""
        return self._rules.prompts.files

    @property
    def tasks(self) -> Sequence[str]:
        """Ids of the queries."""
        return list(self._rules.database.data.queries)

    def dialogue(self, task: str) -> PlanBenchDialogue:
        """A new episode."""
        return PlanBenchDialogue(self._rules, task)


def holds_data(path: Path) -> bool:
    """True if a folder holds the benchmark's data."""
    return (path / "queries.json").is_file() and (path / "baseline_tools.json").is_file()


def open_data(path: Path, options: Mapping[str, str]) -> PlanBenchTasks:
    """The tasks of a data folder; raises OptionError for a bad setting, InputError for bad data."""
    config = benchmark_settings(EpisodeConfig, options)
    database = load_database(path)
    if config.tasks == SINGLE_STEP:
        database = replace(database, data=single_step(database.data, database.records))
    plan = None if config.block_plan is None else read_block_plan(config.block_plan, database.data)
    return PlanBenchTasks(PlanBenchRules(database, config, plan))
