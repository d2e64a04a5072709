"""Interfaces of an environment and a benchmark, and of a tested model's dialogue with one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import unwrap
from typing import Any, Protocol, TypeVar, cast

import orjson

from ...errors import InputError, PluginError, RowError
from ...jsonl import lost_number
from ...llm.base import Completion
from ...records.trajectories import ToolResult, Trajectory

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Score:
    """An environment's score of the state that calls have brought it to.

    Attributes:
        reward: 0 to 1; 1 is success.
        details: Its parts, as JSON values.

    Raises:
        RowError: If the reward is not a number from 0 to 1.
    """

    reward: float
    details: Mapping[str, Any] = field(default_factory=lambda: cast("Mapping[str, Any]", {}))

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.reward), int | float) or not 0 <= self.reward <= 1:
            raise RowError("reward", "a number from 0 to 1", self.reward)


def task_ids(name: str, ids: Iterable[object]) -> list[str]:
    """The ids of all tasks of a benchmark.

    Raises:
        InputError: If there is none, or one is not text or repeats the id of an earlier task.
    """
    known: dict[str, None] = {}
    for number, each in enumerate(ids, start=1):
        expected = "" if isinstance(each, str) and each else "a non-empty string"
        if error := expected or ("an id of its own" if each in known else ""):
            raise InputError(f"{name}: task {number}: {RowError('id', error, each)}")
        known[str(each)] = None
    if not known:
        raise InputError(f"{name}: there are no tasks")
    return list(known)


def returned(kind: type[T], method: Callable[..., Any], *arguments: Any) -> T:
    """The result of a method of an environment.

    Raises:
        PluginError: If it is of another kind, or holds what JSON can't; the method is the place.
    """
    value = method(*arguments)
    held = {name: getattr(value, name) for name in ("content", "details") if hasattr(value, name)}
    try:
        fault = None if isinstance(value, kind) else RowError("result", kind.__name__, value)
        if not (fault := fault or lost_number(held)):
            orjson.dumps(held, default=str if "details" in held else None)
            return value
    except TypeError as error:
        fault = f"field content: expected JSON values: {error}"
    code = getattr(unwrap(method), "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    raise PluginError(f"{getattr(method, '__qualname__', method)}: {fault}{place}")


class Environment(Protocol):
    """Answers the calls of one episode at a time.

    Equal calls after ``reset`` of one task give equal observations: nothing is drawn that the seed
    and the task do not fix. What its code raises is a fault of its own: it ends the episode
    without a result. An episode has a thread of its own, so others take place at the same time.
    """

    def reset(self, task: str) -> None:
        """Begins a task by its id; raises RowError if there is none."""
        ...

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Definitions of the tools that can be called now."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Carries out a call; an agent's mistake is an observation, never an exception."""
        ...

    def score(self) -> Score:
        """Scores the state as it is."""
        ...


class Dialogue(Protocol):
    """An episode as a tested model sees it: messages out, a reply in, until it ends.

    It is made for one task, and pure: equal replies lead to equal messages. So an episode is
    resumed by giving it the replies that it had.
    """

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """All messages so far, as a chat model takes them."""
        ...

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Definitions offered natively with the next request; empty if calls are text."""
        ...

    @property
    def ended(self) -> str:
        """Reason for the episode's end, in the benchmark's own word; empty while it continues."""
        ...

    def answer(self, reply: Completion) -> None:
        """Takes the model's reply: carries out its calls and adds messages."""
        ...

    def trajectory(self) -> Trajectory:
        """The run so far: ids, steps, outcome. Usage, trial and model are the runner's."""
        ...


class Benchmark(Protocol):
    """A set of tasks, and the episodes on them.

    One whose prompts come from files of a user's has ``prompt_files`` too: the SHA-256 of each by
    its name, for the manifest.

    Attributes:
        name: As in the source of its trajectories, such as ``planbench-xl``.
        setting: Condition under which it runs, such as ``block``; empty for the usual one.
        digest: Hash of everything that may change an episode besides the replies.
        tasks: Ids of its tasks, in order.
    """

    @property
    def name(self) -> str:
        """Its kind."""
        ...

    @property
    def setting(self) -> str:
        """Its condition."""
        ...

    @property
    def digest(self) -> str:
        """Hash of its data and settings."""
        ...

    @property
    def tasks(self) -> Sequence[str]:
        """Ids of its tasks."""
        ...

    def dialogue(self, task: str) -> Dialogue:
        """A new episode of a task."""
        ...
