"""The pieces of chat messages, by their shape: the kind of each, and the place of its facts.

No provider has to be named: the shapes differ in their keys, so that mixed messages, such as those
of gateways, are read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import orjson

from ..loose_json import as_list, as_object, blocks, decodable, json_values
from .model import Role

Kind = Literal[
    "text", "reasoning", "call", "result", "both", "attachment", "step", "nothing", "cut", "unread"
]
"""Kind of a part of a message. ``both``: a call with its result; ``step``: the mark of a new step;
``cut``: content that the log withholds; ``unread``: of no known kind."""

ROLES: Mapping[str, Role] = {
    **dict.fromkeys("assistant model ai agent gpt bot chatbot function_call".split(), "assistant"),
    **dict.fromkeys("user human customer".split(), "user"),
    **dict.fromkeys("system developer".split(), "system"),
    **dict.fromkeys(
        "tool function observation environment ipython tool_response tool_result tool_results "
        "function_response".split(),
        "tool",
    ),
}
"""The speaker, by the words for it in lower case."""

_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(
        "text input_text output_text summary_text reasoning_text refusal message user-prompt "
        "system-prompt instruction retry-feedback guardContent citationsContent search_result "
        "searchResult".split(),
        "text",
    ),
    **dict.fromkeys("thinking reasoning reasoningContent".split(), "reasoning"),
    **dict.fromkeys(
        "tool_use toolUse toolCall tool_call tool-call server_tool_call builtin-tool-call "
        "function function_call functionCall custom_tool_call executableCode "
        "executable_code".split(),
        "call",
    ),
    **dict.fromkeys(
        "tool_result toolResult toolResponse tool_call_response server_tool_call_response "
        "server_tool_result tool-result tool-return builtin-tool-return retry-prompt "
        "functionResponse function_response codeExecutionResult code_execution_result".split(),
        "result",
    ),
    **dict.fromkeys(("dynamic-tool", "tool-invocation"), "both"),
    **dict.fromkeys(
        "image image_url input_image output_image image-url audio input_audio output_audio "
        "audio-url video video_url video-url file input_file fileData file_data inlineData "
        "inline_data reasoning-file document document-url container_upload blob uri binary media "
        "source-url source-document".split(),
        "attachment",
    ),
    "step-start": "step",
    **dict.fromkeys("cachePoint cache-point cache_point fallback".split(), "nothing"),
    **dict.fromkeys("redacted_thinking compaction item_reference".split(), "cut"),
}
"""Kinds by type, or for parts without a type by the key with their content."""

CALL_IDS = ("call_id", "tool_call_id", "toolCallId", "toolUseId", "id")
RESULT_IDS = tuple("tool_call_id call_id tool_use_id toolCallId toolUseId source_call_id".split())
"""Ids that name a call in its result; an ``id`` may be the message's own."""

NAMES = ("name", "tool_name", "toolName", "tool", "api_name", "api", "function_name", "toolType")
"""Names under which a call names its tool."""
ARGUMENTS = tuple(
    "arguments parameter_description parameters args input kwargs param rawInput "
    "server_tool_call".split()
)
"""Names of a call's arguments; the first present one counts."""
CONTENTS = tuple("content output response result errorText server_tool_call_response".split())
"""Names of a result's content."""
TEXTS = ("text", "content", "refusal", "thinking", "reasoning", "summary", "reasoningText")
"""Names of a part's text."""

_HOLDERS = tuple(
    "function custom toolUse functionCall function_call toolCall executableCode "
    "executable_code".split()
)
CODE = "code_execution"
"""Name of the tool that runs the model's code, if its provider gives none."""


def kind_of(part: Mapping[str, Any]) -> Kind:
    """The kind of a part of a message, or of an item in place of one."""
    name = part.get("type") or part.get("part_kind") or part.get("kind")
    if type(name) is not str:
        is_thought = part.get("thought") is True  # Gemini's
        return "reasoning" if is_thought else _kind_by_key(part)
    if (kind := _KINDS.get(name)) is not None and not _is_ui(name, part):
        is_users = name == "retry-prompt" and not part.get("tool_name")
        return "text" if is_users else kind
    if name.endswith("tool_use"):
        return "call"
    if name.endswith(("tool_result", "_call_output")):
        return "result"
    return "both" if _is_ui(name, part) else "unread"


def _kind_by_key(part: Mapping[str, Any]) -> Kind:
    for key in part:
        if (kind := _KINDS.get(key)) is not None:
            return kind
    return "unread"


def _is_ui(name: object, part: Mapping[str, Any]) -> bool:
    """True if a part is a call of Vercel's UI, whose type has the name of the tool."""
    is_tool = isinstance(name, str) and name.startswith("tool-")
    return is_tool and "toolCallId" in part and "toolName" not in part


def name_in_type(part: Mapping[str, Any]) -> str:
    """The name of a tool in the type of a part; empty without."""
    name = part.get("type")
    return str(name).removeprefix("tool-") if _is_ui(name, part) else ""


def call_body(spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """The object in a call that has its name and arguments; None if it is the call itself."""
    for key in _HOLDERS:
        if key in spec and (inner := as_object(spec[key])):
            return inner
    return None


def parts_of(message: Mapping[str, Any]) -> list[Any] | None:
    """The parts of a message's content; None if it is not a list."""
    content: Any = message.get("content")
    parts = as_list(message.get("parts"))
    if parts is None:
        parts = as_list((as_object(content) or {}).get("parts"))
    return as_list(content) if parts is None else parts


def is_item(kind: object) -> bool:
    """True for the type of an item of the Responses API other than a message."""
    return isinstance(kind, str) and (
        kind in ("reasoning", "program", "program_output")
        or (kind.endswith(("_call", "_call_output")) and kind != "tool_call")
    )


# Whole messages ----------------------------------------------------------------------------------


def role_of(message: Mapping[str, Any]) -> Role | None:
    """The speaker of a message, in any dialect; None if not stated.

    The type of an item of the Responses API implies it.
    """
    role = message.get("role")
    if isinstance(role, str) and role:
        return ROLES.get(role) or ROLES.get(role.lower())
    if message.get("lc") and (path := as_list(message.get("id"))):
        return _role_of_class(path[-1])
    if "value" in message and isinstance(speaker := message.get("from"), str):
        return ROLES.get(speaker.lower())
    if "kind" in message and isinstance(message.get("parts"), list):
        return _PYDANTIC.get(str(message["kind"]))
    if "content" in message or as_object(message.get("data")) is not None:
        return _role_of_class(message.get("type"))
    return None


_PYDANTIC: Mapping[str, Role] = {"request": "user", "response": "assistant"}


def _role_of_class(name: object) -> Role | None:
    """The role for a class of LangChain, such as ``ai`` or ``AIMessageChunk``."""
    word = str(name).lower().removesuffix("chunk").removesuffix("message")
    return ROLES[word] if word in _CLASSES else None


_CLASSES = frozenset("human user ai assistant system developer tool function".split())


def is_message(value: object) -> bool:
    """True if a JSON value is a message or an item of a conversation, by its role or type."""
    message = as_object(value) or {}
    return is_item(message.get("type")) or role_of(message) is not None


def plain_messages(message: dict[str, Any]) -> list[dict[str, Any]] | None:
    """A message in a special wrapping, as messages with a role, parts and calls.

    These are LangChain's in three forms, pydantic-ai's, whose requests hold messages of several
    speakers, and ShareGPT's, whose calls and results are between tags; None for a message without a
    known role.
    """
    if (role := role_of(message)) is None:
        return None
    if "value" in message and "from" in message:
        return [_of_sharegpt(role, message)]
    if "kind" in message and "role" not in message and as_list(message.get("parts")) is not None:
        return _of_pydantic(role, message)
    wrapped = as_object(message.get("kwargs" if "lc" in message else "data"))
    inner = message if wrapped is None else wrapped
    more = as_object(inner.get("additional_kwargs")) or {}
    stated = {name: inner[name] for name in inner if name not in ("type", "additional_kwargs")}
    copies = {"copied_calls": more["tool_calls"]} if "tool_calls" in more else {}
    return [{**{k: more[k] for k in more if k != "tool_calls"}, **stated, **copies, "role": role}]


def _of_sharegpt(role: Role, message: Mapping[str, Any]) -> dict[str, Any]:
    text = message["value"]
    plain = {name: message[name] for name in message if name not in ("from", "value")}
    plain |= {"role": role, "content": text}
    if role == "assistant" and message["from"] == "function_call" and not isinstance(text, str):
        plain |= {"content": None, "tool_calls": _objects(text)}
    elif role == "assistant" and isinstance(text, str):
        calls = list(tagged_calls(text, mends=True))
        if not calls and message["from"] == "function_call":
            calls = [spec for value in json_values(text) for spec in _objects(value)]
            text = "" if calls else text
        if calls:
            plain |= {"content": without_tags(text), "tool_calls": calls}
    elif role == "tool" and isinstance(text, str) and (bodies := _TOOL_RESPONSE.findall(text)):
        plain |= {"content": None, "tool_messages": list(map(_tagged_result, bodies))}
    return plain


def _objects(value: object) -> list[dict[str, Any]]:
    values = as_list(value)
    return [of for each in ([value] if values is None else values) if (of := as_object(each))]


_TOOL_RESPONSE = re.compile(r"<tool_response>(.*?)(?:</tool_response>|\Z)", re.DOTALL)
_OF_TAGGED_RESULTS = frozenset("name content tool_call_id".split())


def _tagged_result(body: str) -> dict[str, Any]:
    is_object = body.strip()[:1] == "{" and body.strip()[-1] == "}"
    value = as_object(next(iter(_loose_values(body)), None)) if is_object else None
    if value is not None and "content" in value and value.keys() <= _OF_TAGGED_RESULTS:
        return value
    return {"content": body.strip()}


def _of_pydantic(role: Role, message: Mapping[str, Any]) -> list[dict[str, Any]]:
    about = {name: message[name] for name in message if name not in _OF_PYDANTIC}
    if role == "assistant":
        return [{**about, "role": role, "parts": message["parts"]}]
    plain: list[dict[str, Any]] = []
    if instructions := message.get("instructions"):
        plain.append({"role": "system", "content": instructions, "is_repeated": True})
    for raw in _objects(message["parts"]):
        kind, content = str(raw.get("part_kind")), raw.get("content")
        part = {**raw, "outcome": "retried"} if kind == "retry-prompt" else raw
        if part is not raw and not raw.get("tool_name") and not isinstance(content, str):
            part["content"] = orjson.dumps(content).decode()
        of: Role = "system" if kind in ("system-prompt", "instruction") else "user"
        if kind == "user-prompt" and (listed := as_list(content)):
            plain.append({"role": of, "parts": list(listed)})
        elif plain and plain[-1]["role"] == of and "parts" in plain[-1] and kind_of(part) != "text":
            plain[-1]["parts"].append(part)
        else:
            plain.append({"role": of, "parts": [part]})
    if plain:
        plain[-1] |= about
    return plain


_OF_PYDANTIC = frozenset("kind parts instructions timestamp run_id".split())


def is_call(spec: Mapping[str, Any]) -> bool:
    """True if an object is a call by itself: a name, and arguments or a type for calls."""
    if "part_kind" in spec:
        return kind_of(spec) == "call"
    if spec.get("role") is not None or not _OWN_FORM.isdisjoint(spec) or "tool_calls" in spec:
        return False
    inner = call_body(spec)
    body = spec if inner is None else inner
    named = any(isinstance(name := body.get(key), str) and name.strip() for key in NAMES)
    named = named or bool(name_in_type(spec))
    is_called = inner is not None or ("type" in spec and kind_of(spec) in ("call", "both"))
    return named and (is_called or any(key in body for key in ARGUMENTS))


_OWN_FORM = frozenset({"thought", "action", "predicted_steps", "tool", "tool_name"})
"""Fields of the benchmark's own steps, which are not bare calls."""


# Calls between tags -------------------------------------------------------------------------------

_TOOL_CALL = re.compile(r"<tool_?calls?>(.*?)(?:</tool_?calls?>|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_INVOKE = re.compile(r"<invoke name=[\"']([^\"'>]+)[\"']>(.*?)(?:</invoke>|\Z)", re.DOTALL)
_MISTRAL = re.compile(r"\[TOOL_CALLS\]\s*")


def without_tags(text: str) -> str:
    """A text without the content between the tags of ``tagged_calls``."""
    for pattern in (_TOOL_CALL, _FUNCTION, _INVOKE):
        text = pattern.sub("", text)
    return _MISTRAL.split(text)[0].strip()


def _loose_values(body: str) -> list[object]:
    """The JSON values of a text; without any, those that data sets write as Python."""
    mended = blocks(decodable(body), mends=True)
    return [*json_values(body)] or [of.value for of in mended if not of.fault]


def tagged_calls(text: str, *, mends: bool = False) -> Iterator[dict[str, Any]]:
    """The calls that a text holds between tags, each with its name and arguments.

    The tags are ``<tool_call>`` (Hermes, Qwen), ``<function=NAME>`` (Llama), ``<invoke name=NAME>``
    (Anthropic) and ``[TOOL_CALLS]`` (Mistral). Parameters in their own tags have no types, so they
    are left unread. With ``mends``, calls that are not JSON but can only mean one thing, such as
    Python dictionaries, are read too.
    """
    if "<function=" in text or "<invoke " in text:
        for pattern in (_FUNCTION, _INVOKE):
            for name, body in pattern.findall(text):
                yield {"name": name, **({"arguments": body.strip()} if body.strip() else {})}
        return
    bodies = _TOOL_CALL.findall(text) if "<tool" in text else []
    if mistral := _MISTRAL.search(text):
        bodies.append(text[mistral.end() :])
    for body in bodies:
        for value in _loose_values(body) if mends else json_values(body):
            for spec in _objects(value):
                if is_call(spec):
                    yield dict(call_body(spec) or spec)
