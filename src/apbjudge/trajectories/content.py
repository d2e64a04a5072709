"""Content of a raw record of a log: its texts and values, its calls and results.

None of this shares code with the readers, so that their mistakes are not repeated here.
``conservation.toml`` lists the parts that are not content.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Literal

from ..records.loose_json import as_list, as_object
from .content_rules import Rules, json_in

_AGENTS = frozenset("assistant model agent ai gpt gemini".split())
_TOOLS = frozenset("tool function toolResult tool_result observation".split())
_SPEAKERS = _AGENTS | _TOOLS | frozenset("user human system developer environment".split())
_TYPES = frozenset("user assistant system human ai tool gemini".split())
_CALL_LISTS = frozenset(
    "tool_calls invalid_tool_calls toolCalls toolInvocations function_calls".split()
)
_CALL_KEYS = frozenset(
    "function_call functionCall toolUse toolCall tool_call toolInvocation executableCode "
    "executable_code".split()
)
_RESULT_KEYS = frozenset(
    "functionResponse function_response toolResult toolResponse codeExecutionResult "
    "code_execution_result".split()
)
_CALL_TYPES = ("tool_use", "_call", "-call", "program", "command_execution", "file_change")
_RESULT_TYPES = (
    *("tool_result", "tool-result", "call_output", "call_response", "-return", "program_output"),
)
_INNER = ("tool_call", "function", "custom")
_IDS = tuple("call_id tool_call_id toolCallId toolUseId tool_use_id source_call_id id".split())
_NAMES = tuple("name toolName tool_name function_name function type".split())
_ARGUMENTS = tuple("arguments args input action rawInput parameters code".split())
_OUTPUTS = tuple("output outputs result results errorText aggregated_output".split())
_ANSWERS = frozenset((*_OUTPUTS, "content", "response", "error"))
_STATED = (*_ARGUMENTS, *_OUTPUTS, "content", "response")
_VALUES = frozenset(
    "arguments args parameters input_schema inputSchema json_schema parametersJsonSchema".split()
)
"""Keys below which all keys and numbers are content."""
_CARRIERS = frozenset(
    "input output inputs outputs messages value events content prompt completion request response "
    "metadata system_instructions definitions tools functions toolCalls tool_calls spanInputs "
    "spanOutputs function_calls all_messages all_messages_events llm_request llm_response chat_ctx "
    "body payload data result".split()
)
"""Keys whose JSON texts are part of the log; in any other JSON text every key is content."""
_BEGUN = frozenset(("[{", '{"'))
"""First two characters of JSON texts."""
_TEXTS = frozenset("text input_text output_text".split())
_PART_KEYS = frozenset("text json image document video audio searchResult".split())
_FORMS = frozenset("text json error-text error-json content".split())
"""Types of results in Vercel's SDK."""
_HISTORIES = frozenset(
    "trace_id traceId span_id spanId span_data context context.trace_id run_type payload item "
    "projectHash".split()
)
"""Keys of listed objects that may repeat each other's history."""
_NAMED = frozenset(
    "spanId span_id context attributes timeUnixNano context.span_id traceId sessionId run_type "
    "handoffs".split()
)
"""Keys of spans and of their events, whose names are not content."""
_FLAT = re.compile(r"\.\d+\.")
MARK = "\0"
"""Prefix of the key and the value of a leaf that is not text, since ``1`` alone is ambiguous."""
_SCALARS = frozenset((int, float, bool))
Counts = Counter[tuple[str, str, str]]
_kind_of: Callable[[Any], object] = type  # JSON values have exactly these types, no subclasses
_Mode = Literal["", "call", "result"]


def clean(text: str) -> str:
    """A text in the form for comparisons: stripped, with lines ended by LF."""
    return (text.replace("\r\n", "\n") if "\r" in text else text).strip()


def values_in(value: Any, known: Container[str] = ()) -> list[str]:
    """The leaves of a JSON value that is content as a whole, as texts.

    JSON texts are parsed, unless they are ``known`` unparsed.
    """
    leaves: list[str] = []
    stack: list[Any] = [value]
    while stack:
        node = stack.pop()
        kind = _kind_of(node)
        if kind is str:
            text = clean(node)
            if text and text not in known and (opened := json_in(text)) is not text:
                stack.append(opened)
            elif text:
                leaves.append(text)
        elif kind is dict:
            for key, inner in node.items():
                if type(inner) in _SCALARS:
                    leaves.append(f"{MARK}{key}{MARK}{inner}")
                else:
                    stack.append(inner)
        elif kind is list or kind is tuple:
            stack.extend(node)
        elif node is not None:
            leaves.append(f"{MARK}{MARK}{node}")
    return leaves


def size_of(texts: Iterable[str]) -> int:
    """Characters of leaves; unparsed JSON texts count by their content."""
    stack: list[Any] = [json_in(of) if of[0] != MARK else of.rpartition(MARK)[2] for of in texts]
    size = 0
    while stack:
        node = stack.pop()
        kind = _kind_of(node)
        if kind is dict:
            stack.extend(node.values())
        elif kind is list:
            stack.extend(node)
        elif node is not None:
            size += len(node) if kind is str else len(str(node))
    return size


class Walk:
    """Content of a raw record.

    Attributes:
        leaves: Texts with the keys that lead to them.
        remarked: Texts under a remark, by its name.
        turns: For each message of the agent: True if it makes calls, and the range of its leaves.
    """

    def __init__(self, of: Rules, known: Container[str] = ()) -> None:
        self._rules, self._known = of, known
        self.leaves: list[tuple[str, str]] = []
        self.remarked: dict[str, set[str]] = {}
        self.turns: list[tuple[bool, int, int]] = []

    def walk(self, value: Any, path: str = "", key: str = "") -> Counts | None:
        """Adds a value below a key; returns its calls and results."""
        kind = _kind_of(value)
        if kind is dict:
            return self._object(_bare(value) or value, path)
        if kind is list:
            return self._list(value, path, key)
        if kind is not str or not (text := clean(value)) or not self._rules.is_content(text, key):
            return None
        n, opened = len(self.leaves), text if text in self._known else json_in(text)
        if opened is not text and key not in _CARRIERS and type(opened) is not str:
            return self._values(opened, path)
        if opened is not text:
            try:
                return self.walk(opened, path, key)
            except RecursionError:
                del self.leaves[n:]
        if opened is text and key in _CARRIERS and text[:2] in _BEGUN and text[-1] not in "]}":
            self._under("cut content", text)
        else:
            self.leaves.append((text, path))
        return None

    def _values(self, value: Any, path: str) -> None:
        self.leaves += [(text, path) for text in values_in(value, self._known)]

    def _under(self, remark: str, value: Any) -> None:
        self.remarked.setdefault(remark, set()).update(values_in(value))

    def _list(self, values: list[Any], path: str, key: str) -> Counts | None:
        objects = [each for of in values[:2] if (each := as_object(of))]
        if objects and objects[0].keys() == {"key", "value"} and as_object(objects[0]["value"]):
            pairs = [each for of in values if (each := as_object(of))]  # attributes of OTLP
            about = {str(of.get("key")): _plain(of.get("value")) for of in pairs}
            odd = [of for of in pairs if of.keys() != {"key", "value"}]
            return _joined((self._object(about, path), self.walk(odd, path, key)), repeats=True)
        is_result = path.endswith("observation.results")
        mode: _Mode = "call" if key in _CALL_LISTS else "result" if is_result else ""
        parts = [
            self.walk(of, path, key) if each is None else self._object(each, path, mode)
            for of, each in zip(values, map(_bare, values), strict=True)
        ]
        repeats = key == "train_messages" or any(not _HISTORIES.isdisjoint(of) for of in objects)
        return _joined(parts, repeats=repeats)

    def _object(self, of: dict[str, Any], path: str, mode: _Mode = "") -> Counts | None:
        rules, start = self._rules, len(self.leaves)
        of = rules.reshaped(of) if rules.reshaped else of
        kind = str(of.get("type") or of.get("part_kind") or of.get("kind") or of.get("role") or "")
        role = _role_of(of)
        flags = (remark for flag, remark in rules.flags.items() if of.get(flag) is True)
        if remark := next(flags, rules.types.get(kind)):
            return self._under(remark, of)
        mode = mode or _mode_of(of, kind, role)
        for name in _INNER if mode == "call" else ():
            if inner := as_object(of.get(name)):
                of = {**of, name: None, **inner, "id": of.get("id") or inner.get("id")}
        if "name" in of and not _NAMED.isdisjoint(of):
            of = {**of, "name": None}
        flat = {key: value for key, value in of.items() if "." in key and _FLAT.search(key)}
        parts = [
            self._member(value, f"{path}.{key}" if path else key, key, mode)
            for key, value in of.items()
            if value is not None and key not in flat
        ]
        if flat:
            parts.append(self.walk(_nested(flat), path))
        counts = _joined(parts, repeats=True)
        if mode == "call":
            counts = _counted("call", of)
            if any(of.get(name) is not None for name in _OUTPUTS):
                counts.update(_counted("result", of))
        elif mode and not any(known[0] == "result" for known in counts or ()):
            counts = _counted("result", of)
        if role in _AGENTS:
            makes_calls = any(known[0] == "call" for known in counts or ())
            self.turns.append((makes_calls, start, len(self.leaves)))
        return counts

    def _member(self, value: Any, path: str, key: str, mode: _Mode) -> Counts | None:
        rules, is_object = self._rules, type(value) is dict
        holders: list[str] = []
        if "." in key and key not in rules.shapes:
            *holders, key = key.split(".")
        root = path[: path.find(".")]
        rooted = rules.shapes.get(f"{root}.{key}") if root in rules.roots else None
        if rooted == "tree" or key in rules.trees or not rules.trees.isdisjoint(holders):
            return None
        if key in rules.keys and (is_object or type(value) is list):
            return self._under(rules.keys[key], value)
        if key in _VALUES or (mode == "call" and key in _ARGUMENTS):
            return self._values(value, path)
        if mode and key in _ANSWERS:
            return self._answer(value, path)
        if is_object and (key in _CALL_KEYS or key in _RESULT_KEYS):
            return self._object(value, path, "call" if key in _CALL_KEYS else "result")
        return self.walk(value, path, key)

    def _answer(self, value: Any, path: str) -> Counts | None:
        """The content of a result: the tool's value, or parts of a message."""
        if isinstance(value, bool):  # true if the call failed
            return None
        if (of := as_object(value)) and of.keys() == {"type", "value"} and of["type"] in _FORMS:
            value = of["value"]
        parts = [as_object(of) or {} for of in as_list(value) or ()]
        if not parts or not all(map(self._is_part, parts)):
            return self._values(value, path)
        rests: list[dict[str, Any]] = []
        for part in parts:
            names = {"text", "json", *(("content",) if part.get("type") in _TEXTS else ())}
            for name in part:
                if name in names:
                    self._values(part[name], f"{path}.{name}")
            rests.append({k: v for k, v in part.items() if k not in names})
        return self._list(rests, path, "")

    def _is_part(self, of: Mapping[str, Any]) -> bool:
        kind: object = of.get("type")
        if not isinstance(kind, str):
            return len(of) == 1 and of.keys() <= _PART_KEYS
        return kind in _TEXTS or kind in self._rules.types or kind.endswith(_RESULT_TYPES)


def _role_of(of: Mapping[str, Any]) -> str:
    """The role of a message; empty if it is not one."""
    for name, known in (
        ("role", _SPEAKERS),
        ("source", _SPEAKERS),
        ("from", _SPEAKERS),
        ("type", _TYPES),
    ):
        if type(role := of.get(name)) is str and role in known:
            return role
    return "model" if of.get("kind") == "response" and "parts" in of else ""


def _mode_of(of: Mapping[str, Any], kind: str, role: str) -> _Mode:
    """Returns ``call`` or ``result`` for such an object; otherwise an empty text."""
    if (
        (role in _TOOLS and not _defines(of.get("content")))
        or kind.endswith(_RESULT_TYPES)
        or (kind == "retry-prompt" and "tool_name" in of)
    ):
        return "result"
    is_tool = "toolCallId" in of and kind.startswith(("tool-", "dynamic-"))
    return "call" if is_tool or kind.endswith(_CALL_TYPES) else ""


def _bare(value: Any) -> dict[str, Any] | None:
    """An object, or the state that LangGraph logs with the node that receives it."""
    of = as_object(value)
    return as_object(of.get("args")) or of if of is not None and "lg_name" in of else of


def _defines(content: Any) -> bool:
    """True if the content of a message defines a tool; some tracers list tools as messages."""
    function = as_object((as_object(content) or {}).get("function"))
    return function is not None and "parameters" in function


def _counted(what: str, of: Mapping[str, Any]) -> Counts:
    """A call or a result, identified by its id or else by its content."""
    if call_id := next((str(of[name]) for name in _IDS if of.get(name) not in (None, "")), ""):
        return Counter([(what, call_id, "")])
    name = next((str(of[name]) for name in _NAMES if of.get(name)), "")
    stated = next((of[name] for name in _STATED if of.get(name) is not None), "")
    value = json_in(stated) if type(stated) is str else stated
    return Counter([(what, name, repr(value) if value else "")])


def _joined(parts: Iterable[Counts | None], *, repeats: bool) -> Counts | None:
    """The counts of all parts; if these repeat each other, the counts of the part with the most."""
    total: Counts | None = None
    for part in parts:
        if total is None:
            total = part
        elif part and repeats:
            total |= part
        elif part:
            total.update(part)
    return total


def _plain(value: Any) -> Any:
    """A value of OTLP as a JSON value."""
    holder = as_object(value) or {}
    kind, inner = next(iter(holder.items()), ("", None))
    if kind in ("arrayValue", "kvlistValue"):
        listed = as_list((as_object(inner) or {}).get("values")) or []
        if kind == "arrayValue":
            return [_plain(of) for of in listed]
        pairs = [pair for of in listed if (pair := as_object(of))]
        return {str(pair.get("key")): _plain(pair.get("value")) for pair in pairs}
    if kind == "intValue" and isinstance(inner, str) and inner.lstrip("-").isdecimal():
        return int(inner)
    return inner if len(holder) == 1 and kind.endswith("Value") else value


def _nested(flat: Mapping[str, Any]) -> Any:
    """The object of flattened keys, such as ``messages.0.role``."""
    root: dict[str, Any] = {}
    for name, value in flat.items():
        node, (*parts, last) = root, name.split(".")
        for part in parts:
            inner = node.get(part, {})
            node[part] = node = as_object(inner) or {"": inner} if inner else {}
        node[last] = value
    return _listed(root)


def _listed(node: Any) -> Any:
    if not (of := as_object(node)):
        return node
    if all(map(str.isdecimal, of)):
        return [_listed(of[key]) for key in sorted(of, key=int)]
    return {key: _listed(value) for key, value in of.items()}
