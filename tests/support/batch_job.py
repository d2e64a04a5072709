"""A run through batches of a server, which can be killed at any step."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from apbjudge.judge import ItemSource, JudgeSpec
from apbjudge.judge.session import Run, RunConfig
from apbjudge.llm.limits import Limits
from apbjudge.llm.resources import Resources
from apbjudge.runs.batching import run_batched
from apbjudge.runs.loop import Events
from tests.support.batch_server import BatchServer
from tests.support.clock import VirtualClock
from tests.support.judging import plan_row, read_rows, write_rows

NAMES = [f"row-{n}" for n in range(4)]


@dataclass
class Job:
    """A run against a server, in one folder; waits and notes are taken down only."""

    server: BatchServer
    folder: Path
    cache: Path | None = None
    waits: list[float] = field(default_factory=list[float])
    notes: list[str] = field(default_factory=list[str])

    def config(
        self, rows: Any = NAMES, *, limits: Any = None, client: Any = None, **changes: Any
    ) -> RunConfig:
        self.folder.mkdir(parents=True, exist_ok=True)
        if isinstance(rows, list):
            rows = write_rows(self.folder / "rows.jsonl", map(plan_row, rows))
        usual = {"model": "openai/scripted", "api_base": self.server.address, "retries": 0}
        resources = Resources(
            cache=self.cache,
            clock=VirtualClock(self.waits),
            warn=self.notes.append,
            limits=limits or Limits(),
            client=client,
        )
        quiet = Events(lambda progress: None, self.notes.append, self.notes.append)
        return RunConfig(
            folder=self.out,
            source=ItemSource(rows),
            spec=JudgeSpec(**{**usual, **changes}),
            resources=resources,
            events=quiet,
        )

    def run(self, rows: Any = NAMES, **changes: Any) -> Run:
        return run_batched(config := self.config(rows, **changes), config.spec, "--judge")

    @property
    def out(self) -> Path:
        return self.folder / "run"

    def row(self, name: str) -> dict[str, Any]:
        (row,) = [row for row in read_rows(self.out) if row["item_id"] == name]
        return row

    @property
    def reasons(self) -> dict[str, str | None]:
        rows = read_rows(self.out)
        assert len(rows) == len({row["item_id"] for row in rows})
        return {row["item_id"]: row["reason"] for row in rows}

    @property
    def journal(self) -> dict[str, Any]:
        return json.loads((self.out / "batch" / "batches.json").read_bytes())


class Killed(BaseException):
    """A kill: nothing catches it."""


def die(owner: Any, name: str, *, at: int, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills the run at the n-th call of a method, before or after it has done its work."""
    whole = getattr(owner, name)
    met = [0]

    def until_death(self: Any, *args: Any, **kwargs: Any) -> Any:
        met[0] += 1
        if met[0] == at and not after:
            raise Killed
        result = whole(self, *args, **kwargs)
        if met[0] == at:
            if asyncio.iscoroutine(result):
                return _then_die(result)
            raise Killed
        return result

    monkeypatch.setattr(owner, name, until_death)


async def _then_die(work: Any) -> None:
    await work
    raise Killed
