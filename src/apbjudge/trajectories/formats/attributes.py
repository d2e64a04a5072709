"""Attributes of spans in every convention: OpenTelemetry's, OpenInference's, those of libraries.

What a fact is called is one table, whatever container the span stands in. A name with dots is a
path: flattened attributes, such as ``llm.input_messages.0.message.role``, and nested ones are read
alike.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from ...records.loose_json import as_list, as_object, json_values
from ...records.messages import Chat, Role, chat_in, is_message
from .fields import numbers_in
from .spans import Span, SpanKind, opened

_KINDS: Mapping[str, SpanKind] = {
    **dict.fromkeys(
        "chat chat_model chat_completion generate_content text_completion completion llm "
        "generation call_llm llm_node response".split(),
        "model",
    ),
    **dict.fromkeys("execute_tool tool function_tool ai.toolcall running_tool".split(), "tool"),
    **dict.fromkeys(
        "invoke_agent create_agent agent agent_run agent_turn evaluator guardrail ai.generatetext "
        "ai.streamtext ai.generateobject ai.streamobject".split(),
        "agent",
    ),
}
"""Kinds of spans by the words for them; any other holds only spans."""

_KIND = (
    "gen_ai.operation.name openinference.span.kind ai.operationId traceloop.span.kind "
    "llm.request.type"
).split()
_INPUT = (
    "gen_ai.input.messages llm.input_messages gen_ai.prompt ai.prompt.messages ai.prompt "
    "gcp.vertex.agent.llm_request lk.chat_ctx"
).split()
_OUTPUT = (
    "gen_ai.output.messages llm.output_messages gen_ai.completion ai.response "
    "gcp.vertex.agent.llm_response lk.response"
).split()
_WHOLE = "pydantic_ai.all_messages all_messages_events".split()
_ASKED, _SAID = ("input.value", "traceloop.entity.input"), ("output.value", "final_result")
_TOOL = "gen_ai.tool.name tool.name ai.toolCall.name lk.function_tool.name".split()
_AGENT = "gen_ai.agent.name agent_name agent.name traceloop.entity.name".split()
_CALL_ID = ("gen_ai.tool.call.id tool.id tool_call.id ai.toolCall.id lk.function_tool.id").split()
_ARGUMENTS = (
    "gen_ai.tool.call.arguments tool_arguments ai.toolCall.args gcp.vertex.agent.tool_call_args "
    "lk.function_tool.arguments input.value tool.parameters traceloop.entity.input"
).split()
_RESULT = (
    "gen_ai.tool.call.result tool_response ai.toolCall.result gcp.vertex.agent.tool_response "
    "lk.function_tool.output output.value traceloop.entity.output"
).split()
_TOOLS = (
    "gen_ai.tool.definitions llm.tools ai.prompt.tools llm.request.functions "
    "model_request_parameters.function_tools"
).split()
_MODEL = (
    "gen_ai.response.model ai.response.model llm.model_name gen_ai.request.model ai.model.id"
).split()
_USAGE = ("gen_ai.usage", "llm.token_count", "ai.usage")
_ERROR = ("exception.message", "error.message", "error.type")
_PARTS = (("reasoning", "reasoning"), ("text", "text"), ("text", "object"))
_CHOICE = "gen_ai.choice"
_ROLES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_SCORES = ("gen_ai.evaluation", "annotation")


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The object of keys that are paths, such as ``llm.tools.0.tool``; lists where all are numbers.

    What stands at a path that goes on too is kept under an empty key.
    """
    root: dict[str, Any] = {}
    for name, value in flat.items():
        node, (*path, last) = root, name.split(".")
        for part in path:
            inner = node.get(part)
            node[part] = node = as_object(inner) or ({} if inner is None else {"": inner})
        before = as_object(node.get(last))
        if before is None:
            node[last] = value
        else:
            before |= as_object(value) or {"": value}
    return root


def _listed(node: Any) -> Any:
    of = as_object(node)
    if of and all(map(str.isdecimal, of)):
        return [_listed(of[key]) for key in sorted(of, key=int)]
    return node if of is None else {key: _listed(value) for key, value in of.items()}


_CUT = re.compile(r"\[\s*\{(?!.*\]\s*\Z)", re.DOTALL)
"""How a list of objects begins that ends before it is whole."""


class Attributes:
    """The attributes of a span, nested or not.

    Attributes:
        n_cut: JSON texts that end before they are whole.
    """

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self._root = nested(attributes)
        self.n_cut = 0

    def of(self, *paths: str) -> Any:
        """What stands under the first of the paths that holds something, JSON texts opened."""
        for path in paths:
            node: Any = self._root
            for part in path.split("."):
                node = (as_object(node) or {}).get(part)
            if node not in (None, "", [], {}):
                return self._opened(_listed(node))
        return None

    def text(self, *paths: str) -> str:
        """A text or number under the first of the paths that holds one; empty without."""
        values = (as_object(of) or {"": of} for path in paths if (of := self.of(path)) is not None)
        return next((str(of[""]) for of in values if isinstance(of.get(""), str | int)), "")

    def _opened(self, value: Any) -> Any:
        if not isinstance(value, str) or value[:1] not in ("[", "{"):
            return value
        found = opened(value)
        if found is value and _CUT.match(value):
            self.n_cut += 1
            found = list(json_values(value[1:]))
        return literal(value) if found is value else found


def literal(text: Any) -> Any:
    """The value of a text that is a dictionary or list of Python; else the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return text


def span_of_attributes(
    attributes: Mapping[str, Any],
    *,
    span_id: str,
    parent_id: str = "",
    kind: str = "",
    name: str = "",
    start: int | None = None,
    events: Iterable[tuple[str, Mapping[str, Any]]] = (),
    is_error: bool | None = None,
    error: str = "",
    entry: int = 0,
) -> Span:
    """A span by its attributes, in whatever convention they are.

    Args:
        attributes: Flattened or nested; values may be JSON texts.
        span_id: As in ``Span``, and so are the parameters that are not named here.
        kind: The word that the container has for its kind; empty without.
        name: Of the span, such as ``execute_tool NAME``.
        events: Name and attributes of each of its events.
    """
    events = list(events)
    stated = dict(attributes)
    for title, about in events:
        if title not in _ROLES and title != _CHOICE:
            stated = {**about, **stated}
    of = Attributes(stated)
    span = Span(span_id=span_id, parent_id=parent_id, start=start, entry=entry)
    listed = [each for each in map(as_object, as_list(of.of("events")) or ()) if each]
    events += [(str(each.get("event.name")), each) for each in listed]
    span.kind = _kind_of(of, kind, name)
    if span.kind == "model" or (span.kind == "agent" and of.of(*_WHOLE) is not None):
        _add_messages(span, of, events)
    elif span.kind == "tool":
        span.name = of.text(*_TOOL) or of.text("traceloop.entity.name") or name.rpartition(" ")[2]
        span.call_id = of.text(*_CALL_ID)
        span.arguments, span.result = of.of(*_ARGUMENTS), of.of(*_RESULT)
    else:
        asked, said = _chat(of.of(*_ASKED), "user"), _chat(of.of(*_SAID), "assistant")
        span.input, span.output = asked and asked.messages, said and said.messages
        span.system = _system(of) or (asked.system if asked else "")
        span.name = of.text(*_AGENT) or name
    failed = of.of("lk.function_tool.is_error")
    span.is_error = failed if isinstance(failed, bool) else is_error
    span.error = error or (of.text(*_ERROR) if span.is_error else "")
    span.model = of.text(*_MODEL) or span.model
    usage = (as_object(of.of(path)) for path in _USAGE)
    span.usage = numbers_in(next(filter(None, usage), None) or {})
    for title, about in (("", stated), *events):
        if title in ("", "gen_ai.evaluation.result", "annotation"):
            span.scores |= dict(_scores(Attributes(about)))
    if of.n_cut:
        span.remarks = {"cut content": of.n_cut}
    return span


def _scores(of: Attributes) -> Iterator[tuple[str, bool | float | str]]:
    for holder in _SCORES:
        name = of.text(f"{holder}.name")
        paths = f"{holder}.score.value", f"{holder}.score", f"{holder}.score.label"
        values = [of.of(path) for path in (*paths, f"{holder}.label")]
        value = next((each for each in values if isinstance(each, bool | int | float | str)), None)
        if name and value is not None:
            yield name, value


def _kind_of(of: Attributes, kind: str, name: str) -> SpanKind:
    """What a span is: by the word for it, by its name, or by what it has."""
    words = [of.text(path) for path in _KIND] + [kind, *_heads(name)]
    for word in (word.lower().replace(" ", "_") for word in words):
        if word.endswith((".dogenerate", ".dostream")):
            return "model"
        if word in _KINDS:
            return _KINDS[word]
    if of.of(*_TOOL) is not None:
        return "tool"
    return "model" if of.of(*_INPUT) is not None or of.of(*_OUTPUT) is not None else "other"


def _heads(name: str) -> tuple[str, ...]:
    """The beginnings of a span's name that may say what it is."""
    words = name.partition(":")[0].split()
    return " ".join(words[:2]), " ".join(words[:1])


def _add_messages(span: Span, of: Attributes, events: Sequence[tuple[str, Any]]) -> None:
    """Adds what a model is sent and says, or all messages of an agent's run."""
    span.is_whole = span.kind == "agent"
    asked = of.of(*(_WHOLE if span.is_whole else _INPUT))
    span.is_cut = of.n_cut > 0
    said = None if span.is_whole else _answer(of)
    told = [_of_event(_ROLES[title], about) for title, about in events if title in _ROLES]
    chosen = [_of_event("assistant", about) for title, about in events if title == _CHOICE]
    sent, answer = _chat(asked, "user"), _chat(said, "assistant")
    if sent is None and not told:
        sent = _chat(of.of("input.value"), "user")
    if answer is None and not chosen and not span.is_whole:
        said = of.of("output.value")
        answer = _chat(said, "assistant")
        if answer is None and said is not None:
            chosen = [{"role": "assistant", "content": orjson.dumps(said).decode()}]
    span.input = (sent and sent.messages) or told or None
    span.output = (answer and answer.messages) or chosen or None
    chats = list(filter(None, (sent, answer)))
    answers = list(filter(None, map(as_object, span.output or ())))
    n_others = sum(chat.n_others for chat in chats)
    if len(answers) > 1 and all("finish_reason" in each for each in answers):
        span.output, n_others = answers[:1], n_others + len(answers) - 1
    if n_others:
        span.remarks["other candidates"] = n_others
    span.system = _system(of) or next((of.system for of in chats if of.system), "")
    span.model = span.model or next((of.model for of in chats if of.model), "")
    tools = [*_listed_in(of, *_TOOLS), *_listed_in(of, "model_request_parameters.output_tools")]
    offered = next((of.tools for of in chats if of.tools is not None), None)
    span.tools = tuple(map(_definition, tools)) or offered


def _listed_in(of: Attributes, *paths: str) -> list[Any]:
    return as_list(of.of(*paths)) or []


def _system(of: Attributes) -> str:
    """The instructions that stand apart from the messages."""
    system = of.of("gen_ai.system_instructions")
    parts = [as_object(part) or {"text": part} for part in as_list(system) or [system] if part]
    texts = [str(part.get("content") or part.get("text") or "") for part in parts]
    return "\n\n".join(filter(None, texts))


def _answer(of: Attributes) -> Any:
    """What a model says: messages, or a text and calls apart from each other."""
    said = of.of(*_OUTPUT)
    answer = as_object(said) or {}
    if "parts" in (inner := as_object(answer.get("content")) or {}):  # of Gemini
        return inner
    calls = next((answer[key] for key in ("toolCalls", "function_calls") if key in answer), None)
    texts = [(kind, answer.get(key)) for kind, key in _PARTS if isinstance(answer.get(key), str)]
    if is_message(answer) or not (texts or calls):
        return said
    content: list[Any] = [{"type": kind, "text": text} for kind, text in texts]
    content += [{"type": "tool-call", **each} for each in as_list(opened(calls)) or ()]
    return {"role": "assistant", "content": content}


def _chat(value: Any, role: Role) -> Chat | None:
    """The chat in a value, its messages without the wrappings of OpenInference."""
    chat = chat_in((as_object(value) or {}).get("") or value, role)
    listed = as_list(chat and chat.messages) or ()
    found = [_message(of) for of in map(as_object, listed) if of is not None]
    return chat and replace(chat, messages=found or None)


def _message(of: dict[str, Any]) -> dict[str, Any]:
    """A message without the wrappings of OpenInference, its lists opened."""
    message = dict(as_object(of.get("message")) or of)
    calls = as_list(opened(message.get("tool_calls"))) or []
    parts = as_list(message.pop("contents", None)) or as_list(opened(message.get("content"))) or []
    if calls:
        message["tool_calls"] = [_inner(call, "tool_call") for call in calls]
    inner = [as_object(_inner(part, "message_content")) or {} for part in parts]
    inner = [
        part if "type" in part or "text" not in part else {"type": "text", **part} for part in inner
    ]
    if inner and message.get("role") != "tool" and all("type" in part for part in inner):
        message["content"] = inner
    return message


def _inner(value: Any, *names: str) -> Any:
    of = as_object(value) or {}
    return next((of[name] for name in names if name in of), value)


def _of_event(role: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """The message that an event is."""
    body = as_object(opened(about.get("gen_ai.event.content"))) or about
    message = as_object(opened(body.get("message"))) or body
    return _message({"role": role} | {k: v for k, v in message.items() if "." not in k})


def _definition(value: Any) -> Any:
    """The definition of a tool without the wrappings of OpenInference."""
    bare = opened(_inner(_inner(value, "tool"), "json_schema"))
    of = as_object(bare)
    return bare if of is None else {name: opened(of[name]) for name in of}
