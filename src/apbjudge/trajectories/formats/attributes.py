"""Attributes of spans in every convention: OpenTelemetry's, OpenInference's, those of libraries.

One table has the names of facts for all containers of spans. A name with dots is a path: flattened
attributes, such as ``llm.input_messages.0.message.role``, and nested ones are read alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from ...records.loose_json import as_list, as_object, json_values, objects_of, python_value
from ...records.messages import Chat, Role, chat_in, is_message
from .fields import numbers_in, scores_in
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
"""Kinds of spans by the words for them; any other word is for a container of spans."""

_KIND = "gen_ai.operation.name openinference.span.kind ai.operationId traceloop.span.kind".split()
_INPUT = (
    "gen_ai.input.messages llm.input_messages gen_ai.prompt ai.prompt.messages "
    "gcp.vertex.agent.llm_request lk.chat_ctx"
).split()
_OUTPUT = (
    "gen_ai.output.messages llm.output_messages gen_ai.completion ai.response "
    "gcp.vertex.agent.llm_response lk.response"
).split()
_WHOLE = "pydantic_ai.all_messages all_messages_events".split()
_TOOL = "gen_ai.tool.name tool.name ai.toolCall.name lk.function_tool.name".split()
_AGENT = "gen_ai.agent.name agent_name agent.name traceloop.entity.name".split()
_CALL_ID = "gen_ai.tool.call.id tool.id tool_call.id ai.toolCall.id lk.function_tool.id".split()
_ARGUMENTS = (
    "gen_ai.tool.call.arguments tool_arguments ai.toolCall.args gcp.vertex.agent.tool_call_args "
    "lk.function_tool.arguments input.value tool.parameters traceloop.entity.input.inputs "
    "traceloop.entity.input.kwargs traceloop.entity.input"
).split()
_RESULT = (
    "gen_ai.tool.call.result tool_response ai.toolCall.result gcp.vertex.agent.tool_response "
    "lk.function_tool.output output.value traceloop.entity.output.output traceloop.entity.output"
).split()
_TOOLS = (
    "gen_ai.tool.definitions llm.tools ai.prompt.tools llm.request.functions "
    "model_request_parameters.function_tools llm.invocation_parameters.tools"
).split()
_MODEL = (
    "gen_ai.response.model ai.response.model llm.model_name gen_ai.request.model ai.model.id"
).split()
_USAGE = ("gen_ai.usage", "llm.token_count", "ai.usage")
_WORDS = {"reasoning": "reasoning", "text": "text", "object": "text"}
_CALLS = ("toolCalls", "function_calls")
_MESSAGES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_CHOICE = "gen_ai.choice"
_PREFIXES = ("execute_tool ", "running tool: ")


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The object of keys that are paths, such as ``llm.tools.0.tool``."""
    root: dict[str, Any] = {}
    for name, value in flat.items():
        node, (*path, last) = root, name.split(".")
        for part in path:
            inner = as_object(node.get(part))
            node[part] = node = {} if inner is None else inner
        before = as_object(node.get(last))
        node[last] = value if before is None else {**(as_object(value) or {}), **before}
    return root


def _listed(node: Any) -> Any:
    of = as_object(node)
    if of and all(map(str.isdecimal, of)):
        return [_listed(of[key]) for key in sorted(of, key=int)]
    return node if of is None else {key: _listed(value) for key, value in of.items()}


class Attributes:
    """The attributes of a span or of its container, flattened or nested."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self._root = nested(attributes)

    def of(self, *paths: str) -> Any:
        """Returns the value at the first path that has one; JSON texts on the way are parsed."""
        for path in paths:
            node: Any = self._root
            for part in path.split("."):
                node = (as_object(_opened(node)) or {}).get(part)
            if node not in (None, "", [], {}):
                return _opened(_listed(node))
        return None

    def text(self, *paths: str) -> str:
        """The first text or integer that one of the paths leads to; empty without."""
        values = (self.of(path) for path in paths)
        return next((str(of) for of in values if isinstance(of, str | int)), "")


def _opened(value: Any) -> Any:
    return opened(value) if isinstance(value, str) and value[:1] in ("[", "{") else value


def span_of_attributes(
    attributes: Mapping[str, Any],
    span: Span,
    *,
    kind: str = "",
    name: str = "",
    events: Iterable[tuple[str, Mapping[str, Any]]] = (),
) -> Span:
    """Adds the facts in a span's attributes, in any convention, to the span.

    Args:
        attributes: Flattened or nested; values may be JSON texts.
        span: The container's facts: ids, time, and its failure.
        kind: The container's word for its kind; empty without.
        name: Name of the span, such as ``execute_tool NAME``.
        events: Name and attributes of each of its events.

    Returns:
        The same span.
    """
    events = list(events)
    stated: dict[str, Any] = {}
    for title, about in events:
        stated |= {} if title in _MESSAGES or title == _CHOICE else about
    of = Attributes({**stated, **attributes})
    events += [(str(each.get("event.name")), each) for each in objects_of(of.of("events"))]
    span.kind = _kind_of(of, kind, name)
    if span.kind == "model" or (span.kind == "agent" and of.of(*_WHOLE) is not None):
        _add_messages(span, of, events)
    elif span.kind == "tool":
        bare = next((name.removeprefix(of) for of in _PREFIXES if name.startswith(of)), name)
        span.name = of.text(*_TOOL, "traceloop.entity.name") or bare
        span.call_id = of.text(*_CALL_ID)
        span.arguments, span.result = python_value(of.of(*_ARGUMENTS)), of.of(*_RESULT)
    else:
        chats = _chat(of.of("input.value"), "user"), _chat(_output_value(of), "assistant")
        span.input, span.output = (chat and chat.messages for chat in chats)
        span.system = _system(of, *chats)
    if span.kind != "tool":
        span.name = of.text(*_AGENT) or name
    failed, words = (
        of.of("lk.function_tool.is_error"),
        of.text("exception.message", "error.message"),
    )
    kind_of_error = of.text("exception.type", "error.type")
    if isinstance(failed, bool) or (span.is_error is None and (words or kind_of_error)):
        span.is_error = failed is not False
    if span.is_error:
        known = words in span.error
        span.error = (span.error if known else f"{span.error}\n{words}").strip() or kind_of_error
    span.model = of.text(*_MODEL) or span.model
    usage = (as_object(of.of(path)) for path in _USAGE)
    span.usage = numbers_in(next(filter(None, usage), None) or {})
    for each in (of, *(Attributes(about) for _, about in events)):
        span.scores |= scores_in(dict(_scores(each)))
    return span


def _scores(of: Attributes) -> Iterator[tuple[str, bool | float | str]]:
    for holder in ("gen_ai.evaluation", "annotation"):
        name = of.text(f"{holder}.name")
        paths = ("score.value", "score", "score.label", "label")
        values = (of.of(f"{holder}.{path}") for path in paths)
        value = next((each for each in values if isinstance(each, bool | int | float | str)), None)
        if name and value is not None:
            yield name, value


def _kind_of(of: Attributes, kind: str, name: str) -> SpanKind:
    """Returns a span's kind: by a word for it, the beginning of its name, or its attributes."""
    first, _, second = name.partition(":")[0].partition(" ")
    words = *map(of.text, _KIND), kind, f"{first}_{second.partition(' ')[0]}", first
    for word in map(str.lower, words):
        if word in _KINDS or word.endswith((".dogenerate", ".dostream")):
            return _KINDS.get(word, "model")
    if of.of(*_TOOL) is not None:
        return "tool"
    return "other" if of.of(*_INPUT, *_OUTPUT) is None else "model"


def _add_messages(span: Span, of: Attributes, events: list[tuple[str, Any]]) -> None:
    """Adds the input and output of a model, or all messages of an agent's trajectory."""
    span.is_whole = span.kind == "agent"
    asked, answered = of.of(*(_WHOLE if span.is_whole else _INPUT)), _answer(of.of(*_OUTPUT))
    logged = [_of_event(_MESSAGES[title], about) for title, about in events if title in _MESSAGES]
    chosen = [_of_event("assistant", about) for title, about in events if title == _CHOICE]
    if asked is None and not logged:
        asked = of.of("input.value")
    if isinstance(asked, str) and asked[:1] in "[{":
        begun = list(filter(is_message, json_values(asked[1:])))
        span.is_cut, asked = bool(begun), begun or asked
        span.remarks["cut content"] = len(begun) and 1
    sent, answer = _chat(asked, "user"), None if span.is_whole else _chat(answered, "assistant")
    if answer is None and not chosen and not span.is_whole:
        answer = _chat(_output_value(of), "assistant", is_any=True)
    span.input = (sent and sent.messages) or logged or None
    span.output = (answer and answer.messages) or chosen or None
    answers = span.output or []
    n_others = sum(chat.n_others for chat in (sent, answer) if chat)
    if len(answers) > 1 and all("finish_reason" in each for each in answers):
        span.output, n_others = answers[:1], n_others + len(answers) - 1
    span.remarks["other candidates"] = n_others
    span.system = _system(of, sent, answer)
    span.model = next((of.model for of in (answer, sent) if of and of.model), "")
    tools = [*_listed_at(of, *_TOOLS), *_listed_at(of, "model_request_parameters.output_tools")]
    offered = next((of.tools for of in (sent, answer) if of and of.tools is not None), None)
    span.tools = tuple(map(_definition, tools)) or offered


def _listed_at(of: Attributes, *paths: str) -> list[Any]:
    return as_list(of.of(*paths)) or []


def _output_value(of: Attributes) -> Any:
    return of.of("output.value", "final_result")


def _system(of: Attributes, *chats: Chat | None) -> str:
    """The instructions outside of the messages."""
    system = of.of("gen_ai.system_instructions")
    parts = [as_object(part) or {"text": part} for part in as_list(system) or [system]]
    texts = [part.get("content") or part.get("text") for part in parts]
    stated = "\n\n".join(str(text) for text in texts if text)
    return stated or next((chat.system for chat in chats if chat and chat.system), "")


def _answer(value: Any) -> Any:
    """The messages of a model's answer, also if texts and calls are separate."""
    answer = as_object(value) or {}
    inner = as_object(answer.get("content")) or {}
    texts = [
        {"type": kind, "text": answer[key]}
        for key, kind in _WORDS.items()
        if isinstance(answer.get(key), str)
    ]
    calls = objects_of(next((opened(answer[key]) for key in _CALLS if key in answer), None))
    if "parts" in inner or not (texts or calls):
        return inner or value  # the former in Gemini
    return {"role": "assistant", "content": texts + [{"type": "tool-call", **of} for of in calls]}


def _chat(value: Any, role: Role, *, is_any: bool = False) -> Chat | None:
    """The chat in a value, its messages without the wrappings of OpenInference.

    With ``is_any``, a value that is not a chat is the text of a message.
    """
    if (chat := chat_in(value, role)) is None and is_any and value is not None:
        chat = chat_in([{"role": role, "content": orjson.dumps(value).decode()}], role)
    listed = as_list(chat and chat.messages) or ()
    messages = [_message(of) for of in map(as_object, listed) if of is not None]
    return chat and replace(chat, messages=messages)


def _message(of: dict[str, Any]) -> dict[str, Any]:
    """A message without the wrappings of OpenInference, its lists parsed."""
    message = dict(as_object(_inner(of, "message")) or of)
    if calls := as_list(opened(message.get("tool_calls"))):
        message["tool_calls"] = [_inner(call, "tool_call") for call in calls]
    parts = as_list(message.pop("contents", None)) or as_list(opened(message.get("content"))) or []
    parts = [as_object(_inner(part, "message_content")) or {} for part in parts]
    parts = [{"type": "text", **part} if "text" in part else part for part in parts]
    if parts and message.get("role") != "tool" and all("type" in part for part in parts):
        message["content"] = parts
    return message


def _inner(value: Any, name: str) -> Any:
    return nested(as_object(value) or {}).get(name, value)


def _of_event(role: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """The message of an event."""
    body = as_object(opened(about.get("gen_ai.event.content"))) or about
    message = as_object(opened(body.get("message"))) or body
    return _message({"role": role} | {k: v for k, v in message.items() if "." not in k})


def _definition(value: Any) -> Any:
    """The definition of a tool without the wrappings of OpenInference."""
    bare = opened(_inner(_inner(value, "tool"), "json_schema"))
    return {k: _opened(v) for k, v in of.items()} if (of := as_object(bare)) else bare
