"""Benchmarks whose code runs in a sandbox: their tasks, and the environment of each.

A tool that takes too long or ends its process is an error that the agent sees. Environments
draw nothing that their task does not fix, so the episode continues in a new process in which all
earlier calls were made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from threading import Lock
from typing import Any, Literal, cast

import orjson
from pydantic import BaseModel, ValidationError, model_validator

from ....errors import InputError, PluginError, RowError, shorten
from ....protocols.checks.schema import UncheckedError, violations
from ....records import Item, Row
from ....records.base import row_error
from ....records.loose_json import as_object
from ....records.tools import build_toolset
from ....records.trajectories import ToolResult
from ..base import Score, task_ids
from .host import Child, Host, StoppedError


class ReferenceCall(BaseModel):
    """A call of the expert solution."""

    name: str
    arguments: dict[str, Any]
    by: Literal["agent", "user"]


class HostedTask(BaseModel):
    """A task as its benchmark describes it; see docs/execution.md.

    Attributes:
        tools: Definitions of the agent's tools.
        user: Role of the user: none, the benchmark (``scripted``), or a model.
        user_prompt: The instructions of a model that plays the user.
        user_tools: Definitions of the tools that the user has.
        reference: The calls of the expert solution for each turn.
        to_communicate: Texts of the expert solution to the user.
        ends: Names of the tools that only end the task.
    """

    id: str
    query: str
    system_prompt: str = ""
    tools: Any
    user: Literal["none", "scripted", "model"] = "none"
    user_prompt: str = ""
    user_tools: Any = []
    reference: list[list[ReferenceCall]] = []
    to_communicate: list[Any] = []
    ends: Any = None

    @model_validator(mode="before")
    @classmethod
    def _none_is_missing(cls, task: Any) -> Any:
        return {name: value for name, value in task.items() if value is not None}

    @property
    def message(self) -> str:
        """The text that the expert solution tells the user."""
        return ", ".join(map(str, self.to_communicate))


@dataclass(frozen=True, slots=True)
class NextTurn:
    """The next turn when the agent speaks without a call.

    Attributes:
        next: Next speaker: the ``agent``, the ``user`` that a model plays, or none (``end``).
        text: The user's next message; empty without.
    """

    next: str
    text: str = ""


def _object(value: Any, field: str = "result") -> dict[str, Any]:
    if (known := as_object(value)) is None:
        raise RowError(field, "a dict", value)
    return known


class HostedEnvironment:
    """A benchmark's tasks as an environment; see ``environments.base.Environment``.

    Nothing is started before the first call. Not for several threads at once.

    Args:
        host: Host of the benchmark.
        tasks: Its tasks by id.

    Attributes:
        raised: Place where the last called tool raised; empty if it did not.
    """

    def __init__(self, host: Host, tasks: Mapping[str, HostedTask]) -> None:
        self.raised = ""
        self._host = host
        self._tasks = tasks
        self._task = ""
        self._done: list[tuple[Any, ...]] = []
        self._child: Child | None = None
        self._offer(())

    def _offer(self, tools: Sequence[Mapping[str, Any]]) -> None:
        if not isinstance(tools, list | tuple):
            raise RowError("tools", "a list of tool definitions", tools)
        self._tools = tuple(tools)
        self._toolset = build_toolset(list(self._tools), None, "tools").by_name

    def reset(self, task: str) -> None:
        """Begins a task."""
        self.close()
        self._task, self._done = task, []
        self._offer(self._tasks[task].tools)
        users = list(self._tasks[task].user_tools)
        self._users = build_toolset(users, None, "user_tools").by_name

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Definitions of the agent's tools."""
        return self._tools

    def call(self, name: str, arguments: Mapping[str, Any], by: str = "agent") -> ToolResult:
        """Carries out a call of the agent's or of the user's (``by``).

        What fits no tool or its schema is refused here and does not reach the benchmark's code.
        """
        self.raised = ""
        tool = (self._toolset if by == "agent" else self._users).get(name)
        if tool is None:
            return ToolResult(f"Error: there is no tool {shorten(name)}", is_error=True)
        try:
            breaches = violations(tool.parameters or {}, arguments)
        except UncheckedError as error:
            return ToolResult(f"Error: {error}", is_error=True)
        if breaches:
            faults = "; ".join(f"{e.path.lstrip('.')}: {e.message}".lstrip(": ") for e in breaches)
            return ToolResult(f"Error: the arguments do not fit: {faults}", is_error=True)
        request = ("call", name, dict(arguments), by)
        with suppress(StoppedError):
            match self._ask(*request, keep=False):
                case [str(text), bool(is_error), str(place)]:
                    self._done.append(request)
                    self.raised = place
                    return ToolResult(text, name=name, is_error=is_error)
                case _:
                    self.close()
        text = f"Error: {name} was stopped: it took too long, more than it may have, or crashed"
        return ToolResult(text, name=name, is_error=True)

    def say(self, text: str) -> NextTurn:
        """Tells the user something; what follows may bring new tools."""
        result = self._ask("say", text)
        try:
            turn = self._next_turn(result)
            if (tools := result.get("tools")) is not None:
                self._offer(tools)
        except RowError as error:
            raise PluginError(f"say: {error}") from None
        return turn

    def _next_turn(self, result: Any) -> NextTurn:
        known = _object(result)
        speakers = ("agent", "end", *["user"] * (self._tasks[self._task].user == "model"))
        speaker = known.get("next")
        if not isinstance(speaker, str) or speaker not in speakers:
            raise RowError("next", " or ".join(speakers), speaker)
        if not isinstance(text := known.get("text") or "", str):
            raise RowError("text", "a string", text)
        return NextTurn(speaker, text)

    def score(self) -> Score:
        """Scores the state as it is."""
        result = self._ask("score", keep=False)
        try:
            known = _object(result)
            details = _object(known.get("details") or {}, "details")
            return Score(cast("float", known.get("reward")), details)
        except RowError as error:
            raise PluginError(f"score: {error}") from None

    def state(self) -> Any:
        """Values that distinguish one state from another, as JSON values."""
        return self._ask("state", keep=False)

    def snapshot(self) -> Any:
        """The state: the calls so far."""
        return self._task, tuple(self._done)

    def restore(self, snapshot: Any) -> None:
        """Goes back to a state: everything is done again."""
        task, done = snapshot
        self.reset(task)
        for operation, *arguments in done:
            self.say(*arguments) if operation == "say" else self._ask(operation, *arguments)

    def close(self) -> None:
        """Ends the process of the episode."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _ask(self, *request: Any, keep: bool = True) -> Any:
        """Asks the process of the episode; if there is none, a new one is brought there first.

        Raises:
            StoppedError: If the process ends over this request.
            PluginError: If the benchmark's own code fails.
        """
        if self._child is None or not self._child.is_waiting():
            self.close()  # ended, perhaps by the system, while the agent thought
            self._child = self._host.episode()
            try:
                for earlier in (("begin", self._task), *self._done):
                    self._child.ask(*earlier)
            except PluginError:
                self.close()
                raise
        result = self._child.ask(*request)
        if keep:
            self._done.append(request)
        return result


class HostedBenchmark:
    """The tasks of a benchmark, each a plan case that can be carried out; a context manager.

    Attributes:
        name: Its kind.
        version: Its package and version.
        described: Its description in the manifest of a run.
        digest: Hash of everything that may change an episode besides the replies.
        tasks: The tasks by id, in order.
    """

    def __init__(self, name: str, host: Host, options: Mapping[str, str]) -> None:
        self.name, self.version = name, host.version
        self.described = {
            "options": dict(options),
            "package": self.version,
            "sandbox": host.sandbox,
        }
        self._host = host
        ids = task_ids(name, (task.get("id") for task in host.tasks))
        checked = set[int]()  # identities of lists of tools, which tasks share
        self.tasks: dict[str, HostedTask] = {}
        for number, (each, raw) in enumerate(zip(ids, host.tasks, strict=True), start=1):
            try:
                task = self.tasks[each] = HostedTask.model_validate(raw)
                for field, tools in (("tools", task.tools), ("user_tools", task.user_tools)):
                    if id(tools) not in checked:
                        build_toolset(tools, None, field)
                        checked.add(id(tools))
            except (RowError, ValidationError) as error:
                fault = error if isinstance(error, RowError) else row_error(error)
                raise InputError(f"{name}: task {number} ({each}): {fault}") from None
        self._null_rewards: dict[str, float | None] = {}
        self._lock = Lock()
        hashed = sha256(orjson.dumps([name, host.version, dict(options)]))
        for task in host.tasks:
            hashed.update(orjson.dumps(task, option=orjson.OPT_SORT_KEYS))
        self.digest = hashed.hexdigest()
        self.case = cache(self._case)

    @property
    def identity(self) -> list[str]:
        """Values that must be equal for two runs to be in the same benchmark."""
        return [self.name, self.version, self.digest]

    def row(self, name: str) -> dict[str, Any]:
        """A task as a plan case, in the form that ``grade`` and ``predict`` take."""
        task = self.tasks[name]
        calls = (call for turn in task.reference for call in turn if call.by == "agent")
        return {
            "id": name,
            "case_id": name,
            "split": "holistic_planning",
            "source": self.name,
            "query": task.query,
            "system_prompt": task.system_prompt,
            "tools": task.tools,
            "ends": task.ends,
            "tool_chain": [{"name": call.name, "arguments": call.arguments} for call in calls],
        }

    def _case(self, task: str) -> Item:
        try:
            return Row(self.row(task), list(self.tasks).index(task) + 1).to_case()
        except (RowError, KeyError) as error:
            raise InputError(f"{self.name}: task {task}: {error}") from None

    def environment(self) -> HostedEnvironment:
        """A new environment, for one episode at a time."""
        return HostedEnvironment(self._host, self.tasks)

    def null_reward(self, task: str) -> float | None:
        """The reward of doing nothing in a task; None if the benchmark can't say."""
        with self._lock:
            if task in self._null_rewards:
                return self._null_rewards[task]
        environment = self.environment()
        environment.reset(task)
        try:
            reward = environment.score().reward
        except PluginError:
            reward = None
        finally:
            environment.close()
        with self._lock:
            self._null_rewards[task] = reward
        return reward

    def __enter__(self) -> HostedBenchmark:
        return self

    def __exit__(self, *_: object) -> None:
        self._host.close()
