"""The envelope of messages: the request that holds them, and the response to it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import orjson

from ...errors import RowError
from ..loose_json import as_list, as_object
from .model import Role
from .shapes import is_call, is_message

LISTS = tuple("messages contents input items traj conversation conversations trajectory".split())
"""Names of a list of messages; the first nonempty one is read."""
SYSTEMS = tuple("system system_prompt instructions systemInstruction system_instruction".split())
"""Names of instructions outside the messages."""
MODELS = tuple("tested_model model modelId modelVersion".split())
_TOOLS = ("tools", "functions")
_DECLARATIONS = ("functionDeclarations", "function_declarations")
_HOLDERS = ("request", "response", "toolConfig")


@dataclass(frozen=True, slots=True)
class Chat:
    """Messages with their system prompt, tools and model.

    Attributes:
        field: Name of the list of messages.
        messages: Raw messages, the response's last; the raw value if it is not a list.
        system: Instructions outside the messages; empty without.
        tools: Definitions of the tools; None if not stated.
        model: The model as stated; empty without.
        n_others: Number of answers after the first, which are left out.
        read: Names of the fields that were read.
    """

    field: str
    messages: Any
    system: str
    tools: tuple[Any, ...] | None
    model: str
    n_others: int
    read: frozenset[str]


def chat_of(entry: Mapping[str, Any]) -> Chat:
    """Finds the messages in a request, in its response, or in an entry of a log that has both.

    Raises:
        RowError: If the instructions, the model or the tools are of an unknown form.
    """
    if (state := _state(entry)) is not None:
        return replace(chat_of(state), read=_OF_STATES)
    request = as_object(entry.get("request")) or entry
    field, value = _first(request, LISTS)
    if field in ("input", "contents") and isinstance(value, str):
        value = [{"role": "user", "content": value}]
    key, answers = answers_of(entry)
    before = [] if value is None else as_list(value)
    if before is not None and answers and is_message(answers[0]):
        chosen = answers[:1] if key in CANDIDATES else answers
        value = before if before[-1:] == answers[:1] else [*before, *chosen]
    else:
        key = field
    read = {field, key, *(name for name in _HOLDERS if as_object(entry.get(name)))}
    system = tools = model = ("", None)
    for of in {id(of): of for of in (entry, request)}.values():
        system = _first(of, SYSTEMS) if system[1] is None else system
        tools = _first(of, _TOOLS) if tools[1] is None else tools
        model = _first(of, MODELS) if model[1] is None else model
    config = as_object(request.get("toolConfig")) or {}
    if tools[1] is None and "tools" in config:
        tools = "toolConfig", config["tools"]
    read |= {system[0], tools[0], model[0]}
    if not isinstance(model[1], str | None):
        raise RowError(model[0], "text", model[1])
    return Chat(
        field,
        value,
        _words(*system),
        _definitions(*tools),
        model[1] or "",
        max(0, len(answers) - 1) if key in CANDIDATES else 0,
        frozenset(read),
    )


_OF_STATES = frozenset(
    "original_input originalInput session_items generated_items generatedItems model_responses "
    "modelResponses last_model_response lastModelResponse last_processed_response "
    "lastProcessedResponse".split()
)
"""Fields of a paused run of OpenAI's Agents SDK with its items, which they repeat."""


def _state(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """A paused run of OpenAI's Agents SDK as a request with its response; None if it is not one."""
    _, asked = _first(entry, ("original_input", "originalInput"))
    if asked is None or "$schemaVersion" not in entry:
        return None
    names = ("session_items", "generated_items", "generatedItems")
    listed = next((of for name in names if (of := as_list(entry.get(name)))), None) or []
    items = [of for of in map(as_object, listed) if of and of.get("type") != "tool_approval_item"]
    return {"input": asked, "output": [_first(of, ("raw_item", "rawItem"))[1] for of in items]}


CANDIDATES = {"choices": "message", "candidates": "content", "generations": "message"}
"""Fields that list several answers to one request, with the field of the message in each."""


def answers_of(spec: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The messages or items in a server's response, and the field that has them.

    All candidates are returned; only one of them was the answer.
    """
    outer = as_object(spec.get("response"))
    response = as_object((outer or {}).get("body")) or outer or spec
    for field, inner in CANDIDATES.items():
        listed = as_list(response.get(field)) or []
        flat = [of for each in listed for of in (as_list(each) or [each])]
        if flat:
            return field, [_candidate(each, inner) for each in flat]
    output = response.get("output")
    if (listed := as_list(output)) is not None:
        return "output", listed
    if (message := (as_object(output) or {}).get("message")) is not None:
        return "output", [message]
    if outer is not None and "content" in response:
        return "content", [{"role": "assistant", **response}]
    return "", []


def _candidate(value: Any, inner: str) -> Any:
    """The message in one of several answers, which may be plain text."""
    spec = as_object(value) or {}
    if (message := as_object(spec.get(inner))) is not None or not isinstance(spec.get("text"), str):
        return message or value
    return {"role": "assistant", "content": spec["text"]}


_WORDS = {"user": ("prompt", "args"), "assistant": ("content", "message", "output", "text")}
"""Names of input and output in an object without a list of messages."""


def chat_in(value: Any, role: Role) -> Chat | None:
    """The chat in a field of a trace, such as the input of a span, in any form.

    The field may be a request, a response, a message, a list of messages, of calls only or of
    texts, also as JSON text, or a list of such lists, the first of which is read.

    Args:
        value: The field.
        role: The speaker if it is a text or a list of calls only.

    Returns:
        The chat; None if it is none of these, or empty.

    Raises:
        RowError: As ``chat_of`` does.
    """
    if isinstance(value, str):
        if value[:1] in ("{", "[", '"') or value == "null":
            with suppress(orjson.JSONDecodeError):
                return chat_in(orjson.loads(value), role)
        return _bare(_text_message(role, value))
    if (listed := as_list(value)) is not None:
        return _in_list(listed, role)
    if (spec := as_object(value)) is None or is_message(spec):
        return _bare([] if spec is None else [spec])
    chat = chat_of({**(as_object(spec.get("config")) or {}), **spec})
    stated = (spec[name] for name in _WORDS.get(role, ()) if spec.get(name) not in (None, "", []))
    within = chat_in(next(stated, None) if chat.messages is None else chat.messages, role)
    return within and replace(
        chat,
        messages=within.messages,
        system=chat.system or within.system,
        tools=within.tools if chat.tools is None else chat.tools,
        model=chat.model or within.model,
        n_others=chat.n_others + within.n_others,
    )


def _in_list(listed: list[Any], role: Role) -> Chat | None:
    specs = [as_object(of) or {} for of in listed]
    if listed and as_list(listed[0]) is not None:
        inner = chat_in(listed[0], role)
        return inner and replace(inner, n_others=inner.n_others + len(listed) - 1)
    if any(map(is_message, specs)):
        return _bare(listed)
    if listed and all(map(is_call, specs)):
        return _bare([{"role": role, "tool_calls": listed}])
    if any(as_object(spec.get("message")) for spec in specs):
        n_others = len(specs) - 1 if "index" in specs[0] else 0
        messages = [spec.get("message", spec) for spec in specs[: len(specs) - n_others]]
        return _bare(messages, n_others)
    return _bare([of for text in listed for of in _text_message(role, text)])


def _text_message(role: Role, text: object) -> list[Any]:
    return [{"role": role, "content": text}] if isinstance(text, str) and text else []


def _bare(messages: list[Any], n_others: int = 0) -> Chat | None:
    return Chat("", messages, "", None, "", n_others, frozenset()) if messages else None


def _first(holder: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, Any]:
    for name in names:
        if (value := holder.get(name)) is not None:
            return name, value
    return names[0], None


def _words(field: str, value: object) -> str:
    """Instructions as text, as a list of blocks, or as Gemini's parts."""
    if value is None or isinstance(value, str):
        return value or ""
    spec = as_object(value) or {}
    blocks = as_list(spec.get("parts")) or as_list(value) or [value]
    texts = [of if isinstance(of, str) else (as_object(of) or {}).get("text") for of in blocks]
    if not all(isinstance(text, str) for text in texts):
        raise RowError(field, "text or a list of texts", value)
    return "\n".join(map(str, texts))


def _definitions(field: str, value: object) -> tuple[Any, ...] | None:
    """Definitions of the tools; tables have them as JSON text, Gemini one level deeper."""
    if value is None:
        return None
    tools: object = value
    if isinstance(value, str):
        try:
            tools = orjson.loads(value)
        except orjson.JSONDecodeError:
            tools = None
    if (listed := as_list(tools)) is None:
        raise RowError(field, "a list of tools", value)
    definitions: list[Any] = []
    for tool in listed:
        spec = as_object(tool) or {}
        definitions += next((of for key in _DECLARATIONS if (of := as_list(spec.get(key)))), [tool])
    return tuple(definitions)
