"""Rows to judge, replies of a judge, and a run through the whole stack that never sleeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apbjudge.judge import ItemSource, JudgeSpec
from apbjudge.judge.llm_judge import make_judge
from apbjudge.judge.session import run_identity
from apbjudge.judge.worker import JUDGEMENT_RECORDS
from apbjudge.llm.limits import Limits
from apbjudge.llm.resources import Resources
from apbjudge.records.run_folder import JUDGEMENTS
from apbjudge.runs.folder import RecordLog
from apbjudge.runs.loop import Events, LoopRun, Progress, run_loop
from tests.support.clock import VirtualClock
from tests.support.server import PATIENCE_S

MODEL = "hosted_vllm/scripted"
CODES = ("E1", "E2", "E3", "E4", "E5", "E6")
TOOL = {
    "name": "find_train",
    "description": "Finds trains.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


def plan_row(name: str, **changes: Any) -> dict[str, Any]:
    """A holistic row that nothing can be proven against; its query holds ``name``."""
    call = {"name": "find_train", "parameter_description": {"city": "Porto"}, "reason": "times"}
    plan = {"plan": f"look up trains, {name}", "tool_chain": [call]}
    return {
        "id": name,
        "tested_model": "planner",
        "planning_regime": "Holistic",
        "query": f"Which trains go to Porto? ({name})",
        "tools": [TOOL],
        "plan": "Look up the trains.",
        "tool_chain": [call],
        "model_response": json.dumps(plan),
        **changes,
    }


def step_row(name: str, arguments: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A step-wise row with one call of the only tool."""
    step = _step(arguments)
    return {
        "id": name,
        "tested_model": "planner",
        "planning_regime": "Step-wise",
        "prediction_horizon": 1,
        "query": f"Which trains go to Porto? ({name})",
        "tools": [TOOL],
        "trajectory_prefix": [{"role": "user", "content": "Which trains go to Porto?"}],
        "ground_truth_steps": [_step({"city": "Porto"})],
        "model_response": json.dumps(step),
        **changes,
    }


def _step(arguments: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": "find_train", "arguments": dict(arguments)}
    return {
        "role": "assistant",
        "thought": "look up trains",
        "tool_calls": [{"type": "function", "function": function}],
    }


def verdict(*flags: str, grade: float | None = None, **changes: Any) -> dict[str, Any]:
    """A consistent holistic reply, unless ``changes`` make it another."""
    return {
        "reasoning": "as scripted",
        **{code: code in flags for code in CODES},
        "grade": grade if grade is not None else 0.4 if flags else 1.0,
        "is_correct": not flags,
        **changes,
    }


RIGHT = json.dumps(verdict())


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Writes a predictions file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """The judgements of a run's folder."""
    text = (folder / JUDGEMENTS).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@dataclass
class Judged:
    """What a run did."""

    rows: list[dict[str, Any]]
    waits: list[float]
    progress: Progress

    def __getitem__(self, name: str) -> dict[str, Any]:
        """The one judgement of an item."""
        (row,) = [row for row in self.rows if row["item_id"] == name]
        return row


@dataclass
class Bench:
    """Judges rows with a model behind an address, in one folder; waits are taken down only."""

    api_base: str
    folder: Path
    waits: list[float] = field(default_factory=list[float])
    limits: Limits = field(default_factory=Limits)
    cache: Path | None = None
    notes: list[str] = field(default_factory=list[str])

    def spec(self, **settings: Any) -> JudgeSpec:
        """The judge's settings, sparing where a test says nothing."""
        usual = {"api_base": self.api_base, "retries": 0, "timeout_s": PATIENCE_S}
        return JudgeSpec(model=MODEL, **{**usual, "max_concurrency": 1, **settings})

    def judge(self, rows: Iterable[Mapping[str, Any]], **settings: Any) -> Judged:
        """Judges rows; raises what the run raises.

        ``apbjudge.grade`` does the same but leaves no way to replace the wait between retries.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = write_rows(self.folder / "predictions.jsonl", rows)
        spec = self.spec(**settings)
        before = len(self.waits)
        progress = asyncio.run(self._run(path, spec))
        return Judged(read_rows(self.folder / "run"), self.waits[before:], progress)

    async def _run(self, path: Path, spec: JudgeSpec) -> Progress:
        source = ItemSource(path)
        identity = run_identity(spec, source)
        log = RecordLog(self.folder / "run", JUDGEMENT_RECORDS, identity)
        log.write_manifest({"identity": identity})
        clock = VirtualClock(self.waits)
        resources = Resources(
            limits=self.limits, cache=self.cache, clock=clock, warn=self.notes.append
        )
        judge = make_judge(spec, source.roots, resources)
        quiet = Events(progress=lambda progress: None, bad_row=lambda message: None)
        try:
            runs, n = [LoopRun(source, judge, log)], spec.max_concurrency
            return await run_loop(runs, [judge], concurrency=lambda: n, events=quiet)
        finally:
            log.close()
