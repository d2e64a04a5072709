"""Environments in a plain Python file: a class with tasks and tools, without a package."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from functools import partial, wraps
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ArgsKwargs

from ...errors import OptionError, PluginError, fault_text, guarded
from ...records.base import row_error
from ...records.trajectories import ToolResult
from .base import Benchmark, Score, returned
from .dialogue import ToolDialogue

_NEEDED = ("reset", "score")
SETTINGS: Mapping[str, str] = {
    "failing": "Tools that are offered and fail whenever they are called.",
    "blocked": "Tools that are not offered.",
}


class MethodTools:
    """An ``Environment`` of an object whose methods are the tools.

    Name, docstring and annotations of a public method are the tool's definition; arguments that do
    not fit them are the agent's error. A method returns JSON values, or a ``ToolResult``.

    Args:
        of: Has ``reset(task)`` and ``score()`` besides, which returns a number from 0 to 1, a
            truth value or a ``Score``.
    """

    def __init__(self, target: Any) -> None:
        self._target = target
        public = inspect.getmembers(cast("Any", type(target)), inspect.isfunction)
        names = [name for name, _ in public if not name.startswith("_") and name not in _NEEDED]
        self._forms = {name: _arguments(getattr(target, name)) for name in names}

    def reset(self, task: str) -> None:
        """See ``Environment``."""
        self._target.reset(task)

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """See ``Environment``."""
        texts = {name: inspect.getdoc(getattr(self._target, name)) or "" for name in self._forms}
        forms = {name: form.json_schema() for name, form in self._forms.items()}
        return [{"name": n, "description": texts[n], "parameters": forms[n]} for n in forms]

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """See ``Environment``."""
        if name not in self._forms:
            return ToolResult(f"Error: there is no tool {name}", is_error=True)
        try:
            values = self._forms[name].validate_python(ArgsKwargs((), dict(arguments)))
        except ValidationError as error:
            return ToolResult(f"Error: {row_error(error)}", is_error=True)

        @wraps(method := getattr(self._target, name))
        def result() -> ToolResult:
            value = method(**values)
            return value if isinstance(value, ToolResult) else ToolResult(value, is_error=False)

        return returned(ToolResult, result)

    def score(self) -> Score:
        """See ``Environment``."""

        @wraps(self._target.score)
        def result() -> Any:
            value = self._target.score()
            is_reward = isinstance(value, int | float) and 0 <= value <= 1
            return Score(value) if is_reward else value

        return returned(Score, result)


def _arguments(method: Any) -> TypeAdapter[dict[str, Any]]:
    """The form of a method's arguments."""

    @wraps(method)
    def arguments(**values: Any) -> dict[str, Any]:
        return values

    return TypeAdapter(cast("Any", arguments))


class FileTasks:
    """The tasks of a class in a file; see ``Benchmark``.

    Args:
        kind: The class. ``tasks`` has what the agent is asked, by id, or alone.
        digest: Hash of its file.
        options: Names of tools by ``SETTINGS``, separated by commas.
    """

    def __init__(self, kind: Any, digest: str, options: Mapping[str, str]) -> None:
        self._kind = kind
        self._tools: Any = {name: tools.split(",") for name, tools in options.items()}
        self.name, self.module = str(kind.__name__), str(kind.__module__)
        tasks = kind.tasks
        self._texts: Any = tasks if isinstance(tasks, Mapping) else {text: text for text in tasks}
        self.tasks = list(self._texts)
        self.setting = "; ".join(f"{name}: {tools}" for name, tools in sorted(options.items()))
        self.digest = sha256(f"{digest} {self.setting}".encode()).hexdigest()

    def dialogue(self, task: str) -> ToolDialogue:
        """A new episode, in an object of the class of its own."""
        environment: Any = self._kind()
        if not hasattr(environment, "call"):
            environment = MethodTools(environment)
        opening = [{"role": "user", "content": self._texts[task]}]
        return ToolDialogue(environment, task, opening, benchmark=self.name, **self._tools)


def open_file(path: Path, name: str, options: Mapping[str, str]) -> Benchmark:
    """The benchmark that a class in a file is.

    Args:
        path: The file.
        name: Name of the class; empty if it is the only one with ``tasks``.
        options: See ``FileTasks``.

    Raises:
        OptionError: If there is no such file or class, or it lacks something.
        PluginError: If the file's code fails.
    """
    module, digest = _load(path)
    own = [of for of in vars(module).values() if getattr(of, "__module__", "") == module.__name__]
    classes = {of.__name__: of for of in own if isinstance(of, type) and hasattr(of, "tasks")}
    if len(classes) == 1 and not name:
        (name,) = classes
    if name not in classes:
        several = f"{path}:NAME with NAME one of {', '.join(classes)}"
        expected = several if classes else "a class with tasks"
        raise OptionError(f"BENCHMARK: expected {expected}, got {name or 'none'} in {path}")
    kind: Any = classes[name]
    if missing := [each for each in _NEEDED if not hasattr(kind, each)]:
        raise OptionError(f"BENCHMARK: expected {name} with {missing[0]}(), got none in {path}")
    if unknown := sorted(options.keys() - SETTINGS.keys()):
        raise OptionError(f"--with: expected {', '.join(SETTINGS)}, got {unknown[0]!r}")
    return guarded(f"environment {name}", partial(FileTasks, kind, digest, options))()


def _load(path: Path) -> tuple[ModuleType, str]:
    """The module of a file, and the hash of its text; files in its folder can be imported."""
    name = f"apbjudge_file_{path.stem}".replace(".", "_")
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise OptionError(f"BENCHMARK: expected a Python file, got no file {str(path)!r}")
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look their module up
    sys.path.append(str(path.parent.absolute()))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        text = f"SyntaxError: {error.msg} ({error.filename}:{error.lineno})"
        raise PluginError(f"{path}: {text}") from error
    except Exception as error:
        raise PluginError(f"{path}: {fault_text(error, name)}") from error
    return module, sha256(path.read_bytes()).hexdigest()
