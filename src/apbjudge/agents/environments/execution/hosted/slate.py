"""Cases of SLATE (arXiv:2604.12126) without their plan: recorded outputs answer an agent's calls.

The agent has the query and the tools. A call is answered by the case's own records, as the
simulator of given plans does, whichever substep they are of; where the plan makes one call several
times, the records answer in its order. A task is solved when every final output of the plan was
returned to the agent.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from apbjudge.agents.environments.slate import RecordedOutputs
from apbjudge.agents.environments.slate.recorded import interfaces
from apbjudge.trajectories.slate import SlateCase, load_cases
from apbjudge.trajectories.slate.cases import resolved
from apbjudge.trajectories.slate.evaluator import wrong_outputs
from apbjudge.version import VERSION

OPTIONS = {"cases": "file of the cases, by its whole path"}


def benchmark(options: dict[str, str]) -> SlateBenchmark:
    """Reads the cases; raises ValueError if no whole path names their file."""
    path = Path(options.get("cases", ""))
    if not path.is_absolute():
        raise ValueError(f"cases: expected the whole path of a file of cases, got {str(path)!r}")
    return SlateBenchmark(RecordedOutputs(load_cases(path).by_id.values()))


class SlateBenchmark:
    """The cases.

    Attributes:
        version: Of this package.
    """

    version = f"apbjudge {VERSION}"

    def __init__(self, recorded: RecordedOutputs) -> None:
        self._recorded = recorded

    def tasks(self) -> list[dict[str, Any]]:
        """The cases; the calls of the plan are the reference, with their values put in."""
        return [
            {"id": name, "query": case.query, "tools": _tools(case), "reference": [_calls(case)]}
            for name, case in self._recorded.cases.items()
        ]

    def begin(self, task_id: str) -> SlateEpisode:
        """A case without calls so far."""
        return SlateEpisode(self._recorded, self._recorded.cases[task_id])


def _tools(case: SlateCase) -> list[dict[str, Any]]:
    return [
        {name: tool[name] for name in ("name", "description", "parameters")}
        for tool in interfaces(case.tools)
    ]


def _calls(case: SlateCase) -> list[dict[str, Any]]:
    return [
        {"name": call.tool, "arguments": resolved(call.arguments, case.outputs), "by": "agent"}
        for call in case.calls
    ]


class SlateEpisode:
    """A case being worked on."""

    def __init__(self, recorded: RecordedOutputs, case: SlateCase) -> None:
        self._recorded, self._case = recorded, case
        self._outputs: dict[str, Any] = {}

    def call(self, name: str, arguments: dict[str, Any], by: str) -> tuple[str, bool]:
        """The recorded output as text; whether it is an error."""
        del by  # the user has no tools
        used = list(self._outputs)
        answer = self._recorded.look_up(self._case, "", name, arguments, {}, used=used)
        if answer.source:
            self._outputs[answer.source.rpartition(":")[2]] = answer.output
        text = answer.output if isinstance(answer.output, str) else json.dumps(answer.output)
        return text, answer.tag == "error"

    def say(self, text: str) -> dict[str, Any]:
        """Ends the episode, whatever is said."""
        del text
        return {"next": "end", "text": "", "tools": None}

    def state(self) -> dict[str, Any]:
        """The outputs that were returned, by the substep that they were recorded for."""
        return self._outputs

    def score(self) -> dict[str, Any]:
        """The reward, which is 1 or 0, and the final outputs that are lacking."""
        wrong = wrong_outputs(self._case, self._outputs)
        return {"reward": float(not wrong), "details": {"wrong outputs": wrong}}
