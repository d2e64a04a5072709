"""The content of a call's result, by its shape, and the mark that the call failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..loose_json import as_list, as_object
from .shapes import CODE, CONTENTS, kind_of

_ANSWERS = tuple(
    "toolResult functionResponse function_response toolResponse codeExecutionResult "
    "code_execution_result".split()
)
_FUNCTION_ANSWERS = ("functionResponse", "function_response")
_CODE_ANSWERS = ("codeExecutionResult", "code_execution_result")
_WRAPPED = frozenset(("result", "output", "error"))
"""Keys under which Gemini's SDKs put a function's result if it is not an object."""
_ANY_VALUE = frozenset(("tool_call_response", "server_tool_call_response", "tool-result"))
"""Kinds of results whose content is the value that the tool returned."""
_FORMS_OF_OUTPUT = frozenset("text json error-text error-json content execution-denied".split())
"""Forms of results in Vercel's SDK."""


def answer_in(part: dict[str, Any]) -> tuple[dict[str, Any], Any, bool]:
    """Reads a part of a message that is a result.

    Returns:
        The object that has its id, its name and its mark of failure; its content; and True if the
        content is the tool's value, not parts of a message.
    """
    body = next((inner for key in _ANSWERS if (inner := as_object(part.get(key)))), part)
    content: Any = next((of for key in CONTENTS if (of := body.get(key)) is not None), None)
    is_value = body is not part or "part_kind" in part or str(part.get("type")) in _ANY_VALUE
    if not part.keys().isdisjoint(_CODE_ANSWERS):
        return {**body, "name": CODE}, content, is_value
    if not part.keys().isdisjoint(_FUNCTION_ANSWERS):
        answer = as_object(content) or {}
        mark = {"error": True} if answer.get("error") is not None else {}
        if len(answer) == 1 and isinstance(text := next(iter(answer.values())), str):
            content = text if answer.keys() & _WRAPPED else content
        return {**body, **mark, "parts": None}, content, is_value
    if "toolResult" in part:
        return (body, *_of_bedrock(content))
    output = as_object(part.get("output")) or {}
    form = str(output.get("type"))
    if part.get("type") == "tool-result" and form in _FORMS_OF_OUTPUT:
        content = output.get("value")
        content = output.get("reason") if content is None else content
        is_bad = form.startswith("error") or form == "execution-denied"
        return {**part, "is_error": is_bad}, content, form != "content"
    return body, content, is_value


def n_files_beside(part: Mapping[str, Any]) -> int:
    """Number of files beside the result of a function of Gemini."""
    answers = (as_object(part.get(key)) or {} for key in _FUNCTION_ANSWERS)
    return sum(bool(of) for answer in answers for of in as_list(answer.get("parts")) or ())


def texts_in(content: object) -> tuple[object, int]:
    """The texts of a list of parts as one, with the number of files among them.

    Other JSON values are left as they are.
    """
    parts = [as_object(part) or {} for part in as_list(content) or ()]
    kinds = [kind_of(part) if "type" in part else "unread" for part in parts]
    pairs = zip(parts, kinds, strict=True)
    texts = [part.get("text", part.get("content")) for part, kind in pairs if kind == "text"]
    is_parts = all(kind in ("text", "attachment") for kind in kinds)
    if not parts or not is_parts or not all(isinstance(text, str) for text in texts):
        return content, 0
    return "\n".join(map(str, texts)), len(parts) - len(texts)


def _of_bedrock(content: object) -> tuple[object, bool]:
    """The value in a list of blocks without types, and true; several texts are joined.

    If there are files among them, the blocks with their types instead, and false.
    """
    blocks = [as_object(part) or {} for part in as_list(content) or []]
    if any("json" not in block and not isinstance(block.get("text"), str) for block in blocks):
        return [{"type": next(iter(block), ""), **block} for block in blocks], False
    values = [block["json"] if "json" in block else block["text"] for block in blocks]
    if all(isinstance(value, str) for value in values):
        return "\n".join(values), True
    return values[0] if len(values) == 1 else values, True


def failed(result: Mapping[str, Any]) -> bool | None:
    """True if a result is marked as failed; None if not stated.

    In formats that mark only failures, all other results are successes: Anthropic's ``is_error`` is
    false by default, and pydantic-ai answers a failed call with a ``retry-prompt``.

    Raises:
        ValueError: If its mark ``is_error`` is neither true nor false.
    """
    for name in ("is_error", "isError"):
        if (mark := result.get(name)) is not None:
            if type(mark) is not bool:
                raise ValueError(name)
            return mark
    if (error := result.get("error")) is not None:
        return error if isinstance(error, bool) else True
    stated = (result.get(name) for name in ("status", "state", "outcome"))
    words = (value.lower().rpartition("outcome_")[2] for value in stated if isinstance(value, str))
    is_without = result.get("part_kind") == "tool-return" or "tool_use_id" in result
    return next((_FAILED[word] for word in words if word in _FAILED), False if is_without else None)


_FAILED: Mapping[str, bool] = {
    **dict.fromkeys("success ok output-available".split(), False),
    **dict.fromkeys(
        "error failed deadline_exceeded output-error output-denied retried denied".split(), True
    ),
}
"""Words that mark a result; words that only state its existence, such as ``completed``, do not."""


def name_of_file(attachment: Mapping[str, Any]) -> str:
    """The name, address or kind of a file; never its content."""
    kinds = (attachment.get(key) for key in ("type", "kind", "part_kind"))
    kind = str(next(filter(None, kinds), next(iter(attachment), "file")))
    for of in (attachment, *filter(None, map(as_object, attachment.values()))):
        for key in ("filename", "name", "title", "url", "uri", "fileUri", "file_id"):
            if isinstance(value := of.get(key), str) and value and not value.startswith("data:"):
                return value
    return kind
