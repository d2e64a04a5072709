"""The queries of a data folder as the tasks of a world, under some settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import orjson

from ....errors import OptionError
from .blocking import read_block_plan
from .config import EpisodeConfig
from .dialogue import PlanBenchDialogue
from .episode import PlanBenchRules
from .world import load_world


class PlanBenchTasks:
    """See ``environments.base.World``."""

    name = "planbench-xl"

    def __init__(self, rules: PlanBenchRules) -> None:
        self._rules = rules

    @property
    def setting(self) -> str:
        """What is blocked, and whether exploration is enforced."""
        return self._rules.setting

    @property
    def digest(self) -> str:
        """Hash of data, settings, block plan and prompts."""
        rules = self._rules
        settings = rules.config.model_dump(mode="json", exclude={"block_plan"})
        blocked = {} if rules.plan is None else rules.plan.to_json()
        content = [rules.world.digest, settings, blocked, rules.prompts.digest]
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()

    @property
    def tasks(self) -> Sequence[str]:
        """Ids of the queries."""
        return list(self._rules.world.data.queries)

    def dialogue(self, task: str) -> PlanBenchDialogue:
        """A new episode."""
        return PlanBenchDialogue(self._rules, task)


def holds_data(path: Path) -> bool:
    """Whether a folder holds the benchmark's data."""
    return (path / "queries.json").is_file() and (path / "baseline_tools.json").is_file()


def open_data(path: Path, options: Mapping[str, str]) -> PlanBenchTasks:
    """The world of a data folder; raises OptionError for a bad setting, InputError for bad data."""
    try:
        config = EpisodeConfig(**options)  # type: ignore[arg-type] - pydantic reads texts
    except OptionError as error:
        raise OptionError(f"--with {str(error).removeprefix('--')}") from None
    world = load_world(path)
    plan = None if config.block_plan is None else read_block_plan(config.block_plan, world.data)
    return PlanBenchTasks(PlanBenchRules(world, config, plan))
