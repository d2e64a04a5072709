"""Multi-turn tasks of the Berkeley Function-Calling Leaderboard, from the package ``bfcl-eval``.

They are scored by its rules: after each turn that has gold calls, a call was made, the public state
of every object is that of the gold calls, and the results so far have every gold result of the
turn. As in its multi-turn score, calls in a turn without gold calls do no harm by themselves.

Two things differ. Calls come as JSON and gold calls are read as literals, so no text is ever
evaluated. And a function is not held back where a gold call needs it before it is offered (one task
of ``miss_func``), nor is a type insisted on that a gold call doesn't have (one parameter).
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, cast

CATEGORIES: tuple[str, ...] = ("base", "miss_func", "miss_param", "long_context")

OPTIONS = {
    "category": f"{', '.join(CATEGORIES)} (default: base), several joined with +, or all",
    "turns": "official (default): a request at a time; joined: all requests at once, so that a "
    "plan can be made before the first call (not with miss_func; not part of the benchmark)",
}

_MORE_TOOLS = "More tools are available now. Please go on with them."
_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
_MISSING = object()
_UNTYPED = {("close_ticket", "ticket_id")}
"""Parameters for which some gold call has a value of another type."""


def benchmark(options: dict[str, str]) -> BfclBenchmark:
    """Reads the tasks and imports their classes.

    Args:
        options: Values by names of ``OPTIONS``.

    Returns:
        The tasks of the categories.

    Raises:
        ImportError: If the package is missing.
        ValueError: If an option is not as expected.
    """
    category = options.get("category", "base")
    categories = list(CATEGORIES) if category == "all" else category.split("+")
    if not set(categories) <= set(CATEGORIES) or len(set(categories)) < len(categories):
        expected = f"some of {', '.join(CATEGORIES)}, joined with +, or all"
        raise ValueError(f"category: expected {expected}, got {category!r}")
    turns = options.get("turns", "official")
    if turns not in ("official", "joined"):
        raise ValueError(f"turns: expected official or joined, got {turns!r}")
    if turns == "joined" and "miss_func" in categories:
        raise ValueError("turns: expected official with miss_func, got 'joined'")
    return BfclBenchmark(categories, is_joined=turns == "joined")


@dataclass(frozen=True, slots=True)
class _GoldCall:
    """A gold call, with its values as they were written."""

    name: str
    values: list[Any]
    named: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Task:
    """A task as it is worked on.

    Attributes:
        requests: Text of the user in each turn.
        gold: The gold calls of each turn.
        tools: Those offered from each turn on; the first has an entry.
        classes: Classes whose methods are the tools.
        config: Initial values of each object.
        is_long: True if objects begin with much more than is needed.
        is_joined: True if the requests come at once.
    """

    requests: list[str]
    gold: list[list[_GoldCall]]
    tools: dict[int, list[Any]]
    classes: list[str]
    config: dict[str, Any]
    is_long: bool
    is_joined: bool


class BfclBenchmark:
    """The tasks of categories.

    Attributes:
        version: Of the package.
    """

    def __init__(self, categories: list[str], *, is_joined: bool) -> None:
        spec = importlib.util.find_spec("bfcl_eval")
        if spec is None or not spec.submodule_search_locations:
            raise ImportError("the package bfcl-eval is not installed")
        self.version = f"bfcl-eval {metadata.version('bfcl-eval')}"
        folder = Path(spec.submodule_search_locations[0], "data")
        constants = importlib.import_module("bfcl_eval.constants.executable_backend_config")
        prefix = importlib.import_module("bfcl_eval.constants.category_mapping").VERSION_PREFIX
        self._stateless: list[str] = constants.STATELESS_CLASSES
        self._classes: dict[str, Any] = {}
        self._tasks: dict[str, _Task] = {}
        definitions: dict[str, dict[str, Any]] = {}
        for category in categories:
            name = f"{prefix}_multi_turn_{category}.json"
            answers = {row["id"]: row for row in _rows(folder / "possible_answer" / name)}
            for row in _rows(folder / name):
                for class_ in row["involved_classes"]:
                    if class_ not in definitions:
                        file = constants.MULTI_TURN_FUNC_DOC_FILE_MAPPING[class_]
                        rows = _rows(folder / "multi_turn_func_doc" / file)
                        definitions[class_] = {each["name"]: _definition(each) for each in rows}
                        module = importlib.import_module(constants.CLASS_FILE_PATH_MAPPING[class_])
                        self._classes[class_] = getattr(module, class_)
                gold = [list(map(_gold, turn)) for turn in answers[row["id"]]["ground_truth"]]
                task = _task(row, gold, definitions, is_long=category == "long_context")
                self._tasks[row["id"]] = _joined(task) if is_joined else task

    def tasks(self) -> list[dict[str, Any]]:
        """The tasks; the user says what is written down for each turn."""
        return [
            {
                "id": name,
                "query": task.requests[0],
                "system_prompt": "",
                "tools": task.tools[0],
                "user": "none" if task.is_joined else "scripted",
                "user_prompt": "",
                "user_tools": [],
                "reference": _reference(task),
            }
            for name, task in self._tasks.items()
        ]

    def begin(self, task_id: str) -> BfclEnvironment:
        """Makes the objects of a task, one set for the agent and one for the gold calls."""
        task = self._tasks[task_id]
        return BfclEnvironment(task, self._objects(task), self._objects(task))

    def _objects(self, task: _Task) -> dict[str, Any]:
        objects: dict[str, Any] = {}
        for name in task.classes:
            objects[name] = self._classes[name]()
            if name not in self._stateless:
                config = deepcopy(task.config.get(name, {}))
                load = getattr(objects[name], "_load_scenario")  # noqa: B009
                load(config, long_context=task.is_long)
        return objects


def _rows(path: Path) -> list[Any]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _definition(row: dict[str, Any]) -> dict[str, Any]:
    """The definition of a tool, with its results in the description."""
    parameters = _schema(row["parameters"])
    for name, schema in parameters["properties"].items():
        if (row["name"], name) in _UNTYPED:
            del schema["type"]
    result = json.dumps(_schema(row["response"]))
    function = {
        "name": row["name"],
        "description": f"{row['description'].strip()} Result: {result}",
        "parameters": parameters,
    }
    return {"type": "function", "function": function}


def _schema(spec: dict[str, Any]) -> dict[str, Any]:
    """A type of Python's, as the package writes it, as JSON schema."""
    schema = dict(spec)
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = _TYPES.get(kind, kind)
        if kind == "any":
            del schema["type"]
    if "properties" in schema:
        schema["properties"] = {name: _schema(each) for name, each in schema["properties"].items()}
    if "items" in schema:
        schema["items"] = _schema(schema["items"])
    return schema


def _gold(text: str) -> _GoldCall:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes in texts that Python doesn't know
        call = ast.parse(text.strip(), mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError(f"expected a call of literal values, got {text!r}")  # noqa: TRY004
    return _GoldCall(
        call.func.id,
        [ast.literal_eval(value) for value in call.args],
        {str(key.arg): ast.literal_eval(key.value) for key in call.keywords},
    )


def _task(
    row: dict[str, Any],
    gold: list[list[_GoldCall]],
    definitions: dict[str, dict[str, Any]],
    *,
    is_long: bool,
) -> _Task:
    requests = [
        "\n\n".join(message["content"] for message in messages) or _MORE_TOOLS
        for messages in row["question"]
    ]
    offered = {
        name: tool
        for class_ in row["involved_classes"]
        for name, tool in definitions[class_].items()
    }
    held: dict[int, list[Any]] = {}
    for turn, names in row.get("missed_function", {}).items():
        needed = {call.name for calls in gold[: int(turn)] for call in calls}
        held[int(turn)] = [offered.pop(name) for name in names if name not in needed]
    tools = {0: list(offered.values())}
    for turn in sorted(held):
        tools[turn] = [*tools[max(tools)], *held[turn]]
    config = row["initial_config"]
    return _Task(
        requests, gold, tools, row["involved_classes"], config, is_long=is_long, is_joined=False
    )


def _joined(task: _Task) -> _Task:
    """A task with all of its turns in one."""
    return _Task(
        ["\n\n".join(task.requests)],
        [[call for calls in task.gold for call in calls]],
        task.tools,
        task.classes,
        task.config,
        is_long=task.is_long,
        is_joined=True,
    )


def _reference(task: _Task) -> list[list[dict[str, Any]]]:
    tools = [tool["function"] for tool in task.tools[max(task.tools)]]
    parameters = {tool["name"]: list(tool["parameters"]["properties"]) for tool in tools}
    return [
        [
            {
                "name": call.name,
                "arguments": dict(zip(parameters[call.name], call.values, strict=False))
                | call.named,
                "by": "agent",
            }
            for call in calls
        ]
        for calls in task.gold
    ]


class BfclEnvironment:
    """A task being worked on."""

    def __init__(self, task: _Task, objects: dict[str, Any], gold: dict[str, Any]) -> None:
        self._task = task
        self._objects = objects
        self._gold = gold
        self._methods = _methods(task, objects)
        self._gold_methods = _methods(task, gold)
        self._turn = 0
        self._results: list[str] = []
        self._has_called = False
        self._gold_results: list[list[str]] = []
        self._failure: dict[str, Any] | None = None

    def call(self, name: str, arguments: dict[str, Any], by: str) -> tuple[str, bool]:
        """Carries out a call of the agent.

        Args:
            name: Name of a tool.
            arguments: Its arguments.
            by: ``agent``, as the user has no tools.

        Returns:
            The result as text; whether it is an error.
        """
        self._has_called = True
        text, is_error = _result(lambda: self._methods[name](**deepcopy(arguments)))
        self._results.append(text)
        return text, is_error

    def say(self, text: str) -> dict[str, Any]:
        """Ends the turn, whatever was said, and gives what the user says next."""
        if self._failure is None and self._turn < len(self._task.gold):
            self._failure = self._failure_of_turn()
        self._turn += 1
        self._has_called = False
        if self._turn >= len(self._task.requests):
            return {"next": "end", "text": "", "tools": None}
        request = self._task.requests[self._turn]
        return {"next": "agent", "text": request, "tools": self._task.tools.get(self._turn)}

    def state(self) -> dict[str, Any]:
        """Values that tell one state from another: the public attributes of the objects."""
        state: dict[str, Any] = {}
        for class_, each in self._objects.items():
            attributes: dict[str, Any] = each.__dict__
            public = {name: repr(attributes[name]) for name in attributes if name[0] != "_"}
            state[class_] = public
        return state

    def score(self) -> dict[str, Any]:
        """The reward, 1 or 0: a turn that was cut or never begun is not a success.

        Returns:
            ``reward``; ``details`` with ``turn``, the first that failed, from 1 on, and ``why``.
        """
        failure = self._failure
        if failure is None and self._turn < len(self._task.gold):
            failure = self._failure_of_rest()
        return {"reward": float(failure is None), "details": failure or {"turn": None, "why": ""}}

    def _failure_of_rest(self) -> dict[str, Any] | None:
        """The fault of the turns from here on, as they are; None without one."""
        if self._task.is_joined:
            return self._failure_of_turn()
        if self._has_called:
            return _failure(self._turn, "the turn did not come to its end")
        for turn in range(self._turn, len(self._task.gold)):
            if self._task.gold[turn]:
                return _failure(turn, "no call was made")
        return None

    def _failure_of_turn(self) -> dict[str, Any] | None:
        gold = self._task.gold[self._turn]
        if len(self._gold_results) == self._turn:
            self._gold_results.append([self._gold_result(call) for call in gold])
        if not gold:
            return None
        if not self._has_called:
            return _failure(self._turn, "no call was made")
        for class_, other in self._gold.items():
            attributes: dict[str, Any] = other.__dict__
            for name, value in attributes.items():
                if name.startswith("_"):
                    continue
                if getattr(self._objects[class_], name, _MISSING) != value:
                    return _failure(
                        self._turn, f"{class_}.{name} is not as the gold calls leave it"
                    )
        results = list(self._results)
        for call, result in zip(gold, self._gold_results[self._turn], strict=True):
            if result not in results:
                return _failure(self._turn, f"no call gave what the gold call of {call.name} gives")
            results.remove(result)
        return None

    def _gold_result(self, call: _GoldCall) -> str:
        method = self._gold_methods[call.name]
        return _result(lambda: method(*deepcopy(call.values), **deepcopy(call.named)))[0]


def _failure(turn: int, why: str) -> dict[str, Any]:
    return {"turn": turn + 1, "why": why}


def _methods(task: _Task, objects: dict[str, Any]) -> dict[str, Any]:
    """The public methods by name, limited to those with a definition of a tool."""
    names = {tool["function"]["name"] for tool in task.tools[max(task.tools)]}
    return {
        name: method
        for each in objects.values()
        for name, method in inspect.getmembers(each, predicate=inspect.ismethod)
        if name in names and not name.startswith("_")
    }


def _result(call: Callable[[], Any]) -> tuple[str, bool]:
    """The text of a result as the package writes it, and whether it is an error."""
    try:
        result: Any = call()
    except Exception as error:  # noqa: BLE001
        return f"Error during execution: {error}", True
    if not isinstance(result, dict):
        return str(result), False
    members = cast("dict[str, Any]", result)
    try:
        text = json.dumps(members)
    except Exception:  # noqa: BLE001
        text = str(members)
    return text, "error" in members
