"""Prompts for agents: our own, from a versioned file, or those of a user's files."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Protocol, cast

import orjson
from pydantic import Field, ValidationError

from ....errors import InputError
from ....jsonl import read_small
from ....protocols.fence import neutralize
from ....protocols.prompts import compiled
from ....records.base import Record, row_error
from ....records.trajectories import TrajectoryStep
from .config import EpisodeConfig
from .database import PlanBenchDatabase

PROMPTS = "prompts@1"


class AgentPrompts(Protocol):
    """The texts that agents get, for a database and settings.

    Attributes:
        system: The instructions.
        digest: Hash of all texts.
        files: SHA-256 of each of the user's files.
    """

    system: str
    digest: str
    files: Mapping[str, str]

    def notice(self, name: str, step: TrajectoryStep, attempt: int) -> str:
        """The text about a fault, a missing result, or a wrong answer.

        Args:
            name: Name of the notice, as in the versioned file.
            step: The step that it belongs to.
            attempt: Number of faults of its kind in a row.
        """
        ...

    def listed(self, step: TrajectoryStep, notice: str) -> str:
        """The message that answers a search; the notice is empty if the search returned tools."""
        ...

    def returned(self, step: TrajectoryStep, request: Mapping[str, Any], notice: str) -> str:
        """The message that answers a call that was carried out.

        ``request`` is the call as the agent wrote it. The notice is empty if there is a result.
        """
        ...

    def noted(self, notice: str) -> str:
        """A message that consists of a notice alone."""
        ...


def prompts_of(config: EpisodeConfig, database: PlanBenchDatabase) -> AgentPrompts:
    """The prompts that the settings name; raises InputError if the user's files are unusable."""
    if config.prompts is None or config.runtime_texts is None:
        return OwnPrompts(config, database)
    return FilePrompts(config.prompts, config.runtime_texts, config, database)


class OwnPrompts:
    """The shipped texts; see ``AgentPrompts``."""

    files: Mapping[str, str] = {}

    def __init__(self, config: EpisodeConfig, database: PlanBenchDatabase) -> None:
        raw = resources.files(__package__ or "").joinpath(f"{PROMPTS}.toml").read_bytes()
        self.digest = sha256(raw).hexdigest()
        content: dict[str, Any] = tomllib.loads(raw.decode())
        self._config, self._database = config, database
        self._notices = {name: compiled(text) for name, text in content["notices"].items()}
        self._text = lru_cache(maxsize=256)(self._rendered)
        values = config.model_dump(include={"max_turns", "max_faults", "domain"})
        background = neutralize(config.background)
        self.system = compiled(content["system"]).render(**values, background=background).strip()

    def notice(self, name: str, step: TrajectoryStep, attempt: int) -> str:
        """See ``AgentPrompts``; texts are cached."""
        return self._text(name, attempt)

    def _rendered(self, name: str, attempt: int) -> str:
        return self._notices[name].render(attempt=attempt, max_faults=self._config.max_faults)

    def listed(self, step: TrajectoryStep, notice: str) -> str:
        """The tools, one line of JSON each, or the notice."""
        names = _names_listed(step)
        lines = [self._database.lines[name] for name in names] or [notice]
        return "\n".join([f"Tools found: {len(names)}", *lines])

    def returned(self, step: TrajectoryStep, request: Mapping[str, Any], notice: str) -> str:
        """The tool's result as one escaped line of JSON, which can't imitate our text."""
        result = orjson.dumps(_result_of(step), default=str).decode()
        head = f"Result of {step.calls[0].name}:"
        return neutralize("\n".join([head, result, *([notice] if notice else [])]))

    def noted(self, notice: str) -> str:
        """The notice itself."""
        return notice


def _names_listed(step: TrajectoryStep) -> list[str]:
    tools = step.retrieval.tools if step.retrieval else None
    return [tool.name for tool in tools or ()]


def _result_of(step: TrajectoryStep) -> dict[str, Any]:
    done = step.execution
    assert done is not None  # noqa: S101 - a call that was carried out has it
    return {"success": done.success, "output_value": done.output_value}


# A user's files -----------------------------------------------------------------------------------

_SLOT = re.compile(r"\{([a-z][a-z_]*)\}")
_SYSTEM, _CONTEXT = "system_runtime_prompt", "domain_context"
_NOTICES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "no_tag": ("error_label_format", ("current_attempt", "max_label_errors")),
    "search_no_json": ("error_retrieve_json_format", ("current_attempt", "max_retrieval_errors")),
    "search_form": ("error_retrieve_semantic", ("retrieve_request_instructions",)),
    "call_no_json": ("error_call_json_format", ("current_attempt", "max_call_errors")),
    "call_unknown": ("error_call_tool_not_available", ()),
    "call_arguments": ("error_call_wrong_inputs", ("tool_name", "provided_arguments")),
    "call_inputs": ("error_call_missing_inputs", ()),
}
"""By notice, the file in the authors' folder with its text, and the slots of that file."""


class Instructions(Record):
    """Texts for slots of prompt files."""

    retrieve_request_instructions: str
    tool_call_format_instructions: str
    tool_call_identifier_rules: str


class Message(Record):
    """A message with a JSON value in it.

    Attributes:
        text: Its text; ``{content}`` is replaced with the value.
        content: The value; a string in it that is a slot is replaced with a value.
    """

    text: str
    content: dict[str, Any]


class ListMessage(Message):
    """The answer to a search; ``tool`` is the form of each item of ``{tools}``."""

    tool: dict[str, Any]


class EmptyMessage(Message):
    """The answer to a call without a result; ``error`` is the text of ``{error}``."""

    error: str


class RuntimeTexts(Record):
    """The texts that the authors' runtime has in its code, from a TOML file.

    Attributes:
        prefix: Before every message after the query.
        wrong_answer: About a wrong answer, where exploration is enforced.
        instructions: For slots of prompt files.
        no_match: About a search without tools, by its form: ``by_output_info``, or ``by_inputs``
            and ``by_io_info`` followed by ``_1`` or ``_2``, the number of inputs; null without.
        search: Answers a search.
        result: Answers a call.
        no_result: Answers a call without a result.
    """

    prefix: str
    wrong_answer: str
    instructions: Instructions
    no_match: dict[str, str] = Field(default_factory=dict)
    search: ListMessage
    result: Message
    no_result: EmptyMessage


_FORMS = ("by_output_info", "by_inputs_1", "by_inputs_2", "by_io_info_1", "by_io_info_2")


class FilePrompts:
    """The texts of a user's files, in which only slots are replaced.

    See ``AgentPrompts``. Results of tools are not fenced, as in the authors' runtime.

    Args:
        folder: Files with the names that they have in the authors' folder of prompts.
        texts: The file for ``RuntimeTexts``.

    Raises:
        InputError: If a file is missing or unreadable, or has a slot that its text can't have, or
            lacks one; it names the file and the slot.
    """

    def __init__(
        self, folder: Path, texts: Path, config: EpisodeConfig, database: PlanBenchDatabase
    ) -> None:
        self._database, self._config = database, config
        self._hashes: dict[str, str] = {}
        self._texts = self._runtime_texts(texts)
        instructions = self._texts.instructions.model_dump()
        limits = ("max_label_errors", "max_retrieval_errors", "max_call_errors")
        self._shared = {**instructions, **dict.fromkeys(limits, str(config.max_faults))}
        self._notices = {
            name: self._prompt(folder / f"{file}.txt", slots)
            for name, (file, slots) in _NOTICES.items()
        }
        context = self._prompt(folder / f"{_CONTEXT}_{config.domain}.txt", ())
        of_system = {_CONTEXT: context, "max_steps": str(config.max_turns), **instructions}
        system = self._prompt(folder / f"{_SYSTEM}.txt", tuple(of_system))
        self.system = _replaced(system, of_system)
        self.files: Mapping[str, str] = self._hashes
        self.digest = sha256(orjson.dumps([*self._hashes.values()])).hexdigest()

    def notice(self, name: str, step: TrajectoryStep, attempt: int) -> str:
        """See ``AgentPrompts``; ambiguous records get the text for a missing result."""
        call = step.calls[0] if step.calls else None
        arguments = dict(call.arguments or {}) if call else {}
        if name == "wrong_answer":
            return self._texts.wrong_answer
        if name == "no_match":
            return self._texts.no_match.get(_form_of(step), "")
        if name in {"no_record", "ambiguous"}:
            inputs = (f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in arguments.items())
            return _replaced(self._texts.no_result.error, {"inputs": ", ".join(inputs)})
        values = {**self._shared, "current_attempt": str(attempt)}
        values |= {"tool_name": call.name if call else "", "provided_arguments": f"{[*arguments]}"}
        return _replaced(self._notices[name], values)

    def listed(self, step: TrajectoryStep, notice: str) -> str:
        """See ``AgentPrompts``."""
        form = self._texts.search
        tools = [
            _filled(form.tool, self._database.definitions[name]["function"])
            for name in _names_listed(step)
        ]
        request = {"domain": self._config.domain, **step.extra["request"]}
        values = {"request": request, "note": notice or None, "tool_count": len(tools)}
        return self._message(form, {**values, "tools": tools})

    def returned(self, step: TrajectoryStep, request: Mapping[str, Any], notice: str) -> str:
        """See ``AgentPrompts``."""
        rest = {name: value for name, value in request.items() if name != "tool_name"}
        values = {"request": {**rest, "name": step.calls[0].name}, **_result_of(step)}
        if notice:
            return self._message(self._texts.no_result, {**values, "error": notice})
        return self._message(self._texts.result, values)

    def noted(self, notice: str) -> str:
        """See ``AgentPrompts``."""
        return f"{self._texts.prefix}{notice}" if notice else ""

    def _message(self, form: Message, values: Mapping[str, Any]) -> str:
        content = json.dumps(_filled(form.content, values), ensure_ascii=False, indent=2)
        texts = {"content": content, "error": str(values.get("error", ""))}
        return self.noted(_replaced(form.text, texts))

    # Reading --------------------------------------------------------------------------------------

    def _read(self, path: Path) -> str:
        data = read_small(path)
        self._hashes[path.name] = sha256(data).hexdigest()
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: expected UTF-8: {error}") from None

    def _prompt(self, path: Path, slots: tuple[str, ...]) -> str:
        text = self._read(path)
        _check_slots(str(path), _SLOT.findall(text), slots)
        return text

    def _runtime_texts(self, path: Path) -> RuntimeTexts:
        try:
            texts = RuntimeTexts.model_validate(tomllib.loads(self._read(path)))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError(f"{path}: expected TOML: {error}") from None
        except ValidationError as error:
            raise InputError(f"{path}: {row_error(error)}") from None
        search, result, nothing = texts.search, texts.result, texts.no_result
        if unknown := sorted(texts.no_match.keys() - _FORMS):
            known = ", ".join(_FORMS)
            raise InputError(f"{path}: no_match: expected {known}, got {unknown[0]!r}")
        in_text: Mapping[str, tuple[str, tuple[str, ...]]] = {
            "search.text": (search.text, ("content",)),
            "result.text": (result.text, ("content",)),
            "no_result.text": (nothing.text, ("error", "content")),
            "no_result.error": (nothing.error, ("inputs",)),
        }
        in_content: Mapping[str, tuple[Any, tuple[str, ...]]] = {
            "search.tool": (search.tool, ("name", "description", "parameters")),
            "search.content": (search.content, ("request", "note", "tool_count", "tools")),
            "result.content": (result.content, ("request", "success", "output_value")),
            "no_result.content": (nothing.content, ("request", "error", "output_value")),
        }
        for place, (text, slots) in in_text.items():
            _check_slots(f"{path}: {place}", _SLOT.findall(text), slots)
        for place, (form, slots) in in_content.items():
            _check_slots(f"{path}: {place}", [*_slots_in(form)], slots)
        return texts


def _form_of(step: TrajectoryStep) -> str:
    asked = step.retrieval
    assert asked is not None  # noqa: S101 - a search that was carried out has it
    if not asked.by_inputs:
        return "by_output_info"
    return f"{'by_io_info' if asked.by_output else 'by_inputs'}_{len(asked.inputs)}"


def _check_slots(where: str, got: list[str], slots: tuple[str, ...]) -> None:
    known = ", ".join(f"{{{slot}}}" for slot in slots) or "no slots"
    for slot in got:
        if slot not in slots:
            raise InputError(f"{where}: expected {known}, got the slot {{{slot}}}")
    for slot in slots:
        if slot not in got:
            raise InputError(f"{where}: expected {known}, and there is no {{{slot}}}")


def _replaced(text: str, values: Mapping[str, str]) -> str:
    """The text with its slots replaced; slots inside the values are not replaced."""
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), text)


def _filled(form: Any, values: Mapping[str, Any]) -> Any:
    """The JSON value with each string that is a slot replaced by the slot's value."""
    match form:
        case dict():
            items = cast("dict[str, Any]", form).items()
            return {name: _filled(value, values) for name, value in items}
        case list():
            return [_filled(value, values) for value in cast("list[Any]", form)]
        case str() if slot := _SLOT.fullmatch(form):
            return values[slot[1]]
        case _:
            return form


def _slots_in(form: Any) -> Iterator[str]:
    """The slots of a JSON value."""
    match form:
        case dict():
            yield from _slots_in([*cast("dict[str, Any]", form).values()])
        case list():
            for value in cast("list[Any]", form):
                yield from _slots_in(value)
        case str() if slot := _SLOT.fullmatch(form):
            yield slot[1]
        case _:
            pass
