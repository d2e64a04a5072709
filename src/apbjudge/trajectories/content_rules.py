"""Rules for the walk through a record: parts that are not content, forms of single formats."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

import orjson

from ..records.loose_json import as_list, as_object, objects_of, python_value


@cache
def rules() -> list[dict[str, str]]:
    """The entries of ``conservation.toml``, those with a ``remark`` last."""
    text = resources.files(__package__ or "").joinpath("conservation.toml").read_text("utf-8")
    data = tomllib.loads(text)
    return [*data["not_content"], *data["remarked"]]


def explained() -> Iterator[str]:
    """Yields the rules as lines of text."""
    for rule in rules():
        yield f"{rule.get('remark', 'not content')}: {rule['reason']}"
        for name in ("formats", "keys", "types", "flags", "prefixes"):
            if name in rule:
                yield f"  {name}: {' '.join(sorted(rule[name].split()))}"


def json_in(text: str) -> Any:
    """Parses a text that is a JSON object, array or text; returns any other text as it is."""
    if len(text) > 1 and text[0] in '{["' and text[-1] in '}]"':
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
    return text


# Forms of single formats, converted to those that the walk knows ----------------------------------

_TAGGED = {
    key: re.compile(rf"<{tag}>(.*?)(?:</{tag}>|\Z)", re.DOTALL)
    for key, tag in (("tool_calls", "tool_call"), ("tool_messages", "tool_response"))
}
_NO_TOOLS = frozenset(
    "message system finish recall change_agent_state agent_state_changed null condensation".split()
)


def _of_sharegpt(of: dict[str, Any]) -> dict[str, Any]:
    """A message, with the calls and results between tags as objects."""
    speaker, text = of.get("from"), of.get("value")
    if speaker == "function_call":
        calls = json_in(text.strip()) if type(text) is str else text
        return {**of, "value": None, "tool_calls": as_list(calls) or [calls]}
    if type(speaker) is not str or type(text) is not str:
        return of
    for key, pattern in _TAGGED.items():
        pieces = pattern.split(text)
        inner = [python_value(json_in(each.strip())) for each in pieces[1::2]]
        if key == "tool_messages":
            inner = [{"role": "tool", "content": each} for each in inner]
        if inner:
            return {**of, "value": pieces[::2], key: inner}
    return of


def _of_openhands(of: dict[str, Any]) -> dict[str, Any]:
    """An event as a call or a result.

    An action next to the model's reply repeats the call of that reply, with settings of the
    runtime; an observation repeats the reply.
    """
    if "extras" in of and type(name := of.get("observation")) is str:
        kind = "event" if name in _NO_TOOLS else "tool_result"
        return {**of, "type": kind, "observation": None, "tool_call_metadata": None}
    if "args" in of and type(name := of.get("action")) is str:
        reply = (as_object(of.get("tool_call_metadata")) or {}).get("model_response")
        if name in _NO_TOOLS:
            return {**of, "action": None, "args": None, "tool_call_metadata": None, "": of["args"]}
        args = None if reply else of["args"]
        return {**of, "type": "tool_call", "action": None, "args": args}
    if "tool_call" in of:
        return {**of, "action": None}
    return {**of, "type": "tool_result"} if "tool_call_id" in of and "tool_name" in of else of


def _of_bfcl(of: dict[str, Any]) -> dict[str, Any]:
    """A call, given as an object of its name and its arguments as JSON text."""
    for name, arguments in of.items() if len(of) == 1 else ():
        if type(arguments) is str and type(json_in(arguments)) is dict:
            return {"type": "tool_call", "name": name, "arguments": arguments}
    return of


def _of_swe_agent(of: dict[str, Any]) -> dict[str, Any]:
    """A message whose action is its call, if it has no other."""
    is_call = of.get("role") == "assistant" and of.get("action") and not of.get("tool_calls")
    return {**of, "type": "command_call"} if is_call else of


def _of_autogen(of: dict[str, Any]) -> dict[str, Any]:
    """An event whose content is calls or results, or a picture, which has only data."""
    kind, listed = of.get("type"), as_list(of.get("content"))
    if of.keys() == {"data"}:
        return {**of, "type": "image"}
    if listed and kind in ("ToolCallRequestEvent", "AssistantMessage"):
        return {**of, "content": None, "tool_calls": listed}
    if listed and kind in ("ToolCallExecutionEvent", "FunctionExecutionResultMessage"):
        results = [{**each, "type": "tool_result"} for each in objects_of(listed)]
        return {**of, "content": results}
    return of


_RESHAPED: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "autogen": _of_autogen,
    "autogen-events": _of_autogen,
    "bfcl": _of_bfcl,
    "messages": _of_sharegpt,
    "openhands": _of_openhands,
    "openhands-events": _of_openhands,
    "swe-agent": _of_swe_agent,
}
_REPEATING = ("autogen", "autogen-events")
"""Formats in which a message may list the calls of previous ones."""


class Rules:
    """The rules for logs of a format, by the keys of look-ups."""

    def __init__(self, format_: str) -> None:
        self.reshaped = _RESHAPED.get(format_)
        self.repeats = format_ in _REPEATING
        of = [
            rule
            for rule in rules()
            if format_ in rule.get("formats", format_).split() or not format_
        ]
        self.shapes = {k: r["shape"] for r in of if "shape" in r for k in r["keys"].split()}
        self.roots = {key.partition(".")[0] for key in self.shapes if "." in key}
        self.trees = frozenset(key for key, shape in self.shapes.items() if shape == "tree")
        self.prefixes = tuple(p for r in of for p in r.get("prefixes", "").split())
        noted = [rule for rule in of if "remark" in rule]
        self.keys, self.types, self.flags = (
            {k: r["remark"] for r in noted for k in r.get(name, "").split()}
            for name in ("keys", "types", "flags")
        )

    def is_content(self, text: str, key: str) -> bool:
        """True if a text below this key is content."""
        shape = self.shapes.get(key)
        if shape == "line":
            return len(text) > 64 or "\n" in text
        return shape is None or (shape == "word" and len(text.split(None, 1)) > 1)


rules_for = cache(Rules)
