"""Conservation: what is in a log is carried over to the run, or counted.

A record as it came is compared with the run that a reader made of it. A leaf is a text that is not
blank; inside arguments, results and parameters numbers and truth values are leaves too. Each is
carried over (it is a leaf of the run, or stands in a text of it), under a counted remark, or
unread. Calls and results are counted too. None of this shares code with the readers, so that their
mistakes are not repeated here. What is no content is listed in ``conservation.toml``.
"""

from __future__ import annotations

import ast
import re
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Literal

import orjson

from ..errors import InputError, RowError, visible
from ..records.loose_json import as_list, as_object
from ..records.trajectories import FORMAT, LOSSES, REMARKS, Trajectory

SILENT_BELOW = 200
"""Unread characters from which on shares count."""

MENTIONED, ACCEPTED, OF_A_RUN = 0.02, 0.10, 0.50
"""Shares of unread characters: of a log up to the first they are mentioned, above it warned of,
above the second refused; a run above the third is refused alone."""

_WHOLE_BYTES, _SAMPLED = 100 * 2**20, 10
_SEARCHED = 4 * 10**9  # characters of a run that are searched for those of its record
_LITERAL = 2**16
_SHOWN = 4
_ADVICE = "; --accept-loss 25% accepts up to that share (see apbjudge convert --explain)"


class LossError(RowError):
    """Of a run, too much is not carried over."""

    def __init__(self, why: str, unread: Mapping[str, int]) -> None:
        super().__init__("entry", "content that is carried over", why)
        self.args = (f"{self.args[0]}: {_largest(unread) or 'no texts'}{_ADVICE}",)


# What is no content -------------------------------------------------------------------------------


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


# Shapes of single formats, as those that the walk knows -------------------------------------------

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
        calls = _opened(text.strip()) if type(text) is str else text
        return {**of, "value": None, "tool_calls": as_list(calls) or [calls]}
    if type(speaker) is not str or type(text) is not str:
        return of
    for key, pattern in _TAGGED.items():
        pieces = pattern.split(text)
        inner = [_evaluated(_opened(each.strip())) for each in pieces[1::2]]
        if key == "tool_messages":
            inner = [{"role": "tool", "content": each} for each in inner]
        if inner:
            return {**of, "value": pieces[::2], key: inner}
    return of


def _of_openhands(of: dict[str, Any]) -> dict[str, Any]:
    """An event as a call or a result.

    An action that has the model's reply beside it states the call of that reply anew, with settings
    of the runtime; an observation repeats the reply.
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
    """A call, which is an object of its name and, as JSON text, its arguments."""
    for name, arguments in of.items() if len(of) == 1 else ():
        if type(arguments) is str and type(_opened(arguments)) is dict:
            return {"type": "tool_call", "name": name, "arguments": arguments}
    return of


def _of_swe_agent(of: dict[str, Any]) -> dict[str, Any]:
    """A message whose action is the call, where it has no other."""
    is_call = of.get("role") == "assistant" and of.get("action") and not of.get("tool_calls")
    return {**of, "type": "command_call"} if is_call else of


_RESHAPED: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "bfcl": _of_bfcl,
    "messages": _of_sharegpt,
    "openhands": _of_openhands,
    "openhands-events": _of_openhands,
    "swe-agent": _of_swe_agent,
}


class _Rules:
    """The rules for logs of a format, by what they are looked up with."""

    def __init__(self, format_: str) -> None:
        self.reshaped = _RESHAPED.get(format_)
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
        """Whether a text is content, below a key."""
        shape = self.shapes.get(key)
        if shape == "line":
            return len(text) > 64 or "\n" in text
        return shape is None or (shape == "word" and len(text.split(None, 1)) > 1)


_rules_for = cache(_Rules)


# The record as it came ----------------------------------------------------------------------------

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
_INNER = ("function", "custom", "tool_call")
_IDS = tuple("call_id tool_call_id toolCallId toolUseId tool_use_id source_call_id id".split())
_NAMES = tuple("name toolName tool_name function_name function type".split())
_ARGUMENTS = tuple("arguments args input action rawInput parameters code".split())
_OUTPUTS = tuple("output outputs result results errorText aggregated_output".split())
_ANSWERS = frozenset((*_OUTPUTS, "content", "response", "error"))
_STATED = (*_ARGUMENTS, *_OUTPUTS, "content", "response")
_VALUES = frozenset(
    "arguments args parameters input_schema inputSchema json_schema parametersJsonSchema".split()
)
"""Keys below which every key is content, and numbers are."""
_CARRIERS = frozenset(
    "input output inputs outputs messages value events content prompt completion request response "
    "metadata system_instructions definitions tools functions toolCalls tool_calls spanInputs "
    "spanOutputs function_calls all_messages all_messages_events llm_request llm_response chat_ctx "
    "body payload data result".split()
)
"""Keys whose JSON texts are part of the log; in any other JSON text every key is content."""
_BEGUN = frozenset(("[{", '{"'))
"""How JSON texts begin."""
_TEXTS = frozenset("text input_text output_text".split())
_PART_KEYS = frozenset("text json image document video audio searchResult".split())
_FORMS = frozenset("text json error-text error-json content".split())
"""How a result of Vercel's SDK says what it is."""
_HISTORIES = frozenset(
    "trace_id traceId span_id spanId span_data context context.trace_id run_type payload item "
    "projectHash".split()
)
"""Keys of objects that may repeat each other's history, where they are listed."""
_NAMED = frozenset(
    "spanId span_id context attributes timeUnixNano context.span_id traceId sessionId run_type "
    "handoffs".split()
)
"""Keys of spans and of events in them, whose names are no content."""
_FLAT = re.compile(r"\.\d+\.")
_MARK = "\0"
"""Stands before the key and the value of a leaf that is no text: ``1`` alone says too little."""
_SCALARS = frozenset((int, float, bool))
_Counts = Counter[tuple[str, str, str]]
_kind_of: Callable[[Any], object] = type  # JSON values are of these types alone: no subclasses
_Mode = Literal["", "call", "result"]


def _clean(text: str) -> str:
    return (text.replace("\r\n", "\n") if "\r" in text else text).strip()


def _opened(text: str) -> Any:
    """What a text holds that is a JSON object, array or text; otherwise the text."""
    if len(text) > 1 and text[0] in '{["' and text[-1] in '}]"':
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
    return text


def values_in(value: Any, known: Container[str] = ()) -> list[str]:
    """The leaves of a JSON value of which all is content, as texts.

    JSON texts are opened, unless they are ``known`` as they are.
    """
    leaves: list[str] = []
    stack: list[Any] = [value]
    while stack:
        node = stack.pop()
        kind = _kind_of(node)
        if kind is str:
            text = _clean(node)
            if text and text not in known and (opened := _opened(text)) is not text:
                stack.append(opened)
            elif text:
                leaves.append(text)
        elif kind is dict:
            for key, inner in node.items():
                if type(inner) in _SCALARS:
                    leaves.append(f"{_MARK}{key}{_MARK}{inner}")
                else:
                    stack.append(inner)
        elif kind is list or kind is tuple:
            stack.extend(node)
        elif node is not None:
            leaves.append(f"{_MARK}{_MARK}{node}")
    return leaves


def _size(texts: Iterable[str]) -> int:
    """Characters of leaves; JSON texts that were not opened count by what is in them."""
    stack: list[Any] = [_opened(of) if of[0] != _MARK else of.rpartition(_MARK)[2] for of in texts]
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


class _Walk:
    """What is in a record as it came.

    Attributes:
        leaves: Texts with the keys that lead to them.
        remarked: Texts under a remark, by its name.
        turns: Of each message of the agent: whether it makes calls, and its leaves, from where to
            where.
    """

    def __init__(self, of: _Rules, known: Container[str] = ()) -> None:
        self._rules, self._known = of, known
        self.leaves: list[tuple[str, str]] = []
        self.remarked: dict[str, set[str]] = {}
        self.turns: list[tuple[bool, int, int]] = []

    def walk(self, value: Any, path: str = "", key: str = "") -> _Counts | None:
        """Takes in a value below a key; returns its calls and results."""
        kind = _kind_of(value)
        if kind is dict:
            return self._object(_bare(value) or value, path)
        if kind is list:
            return self._list(value, path, key)
        if kind is not str or not (text := _clean(value)) or not self._rules.is_content(text, key):
            return None
        n, opened = len(self.leaves), text if text in self._known else _opened(text)
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

    def _list(self, values: list[Any], path: str, key: str) -> _Counts | None:
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

    def _object(self, of: dict[str, Any], path: str, mode: _Mode = "") -> _Counts | None:
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

    def _member(self, value: Any, path: str, key: str, mode: _Mode) -> _Counts | None:
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

    def _answer(self, value: Any, path: str) -> _Counts | None:
        """The content of a result: a value of the tool's, or parts of a message."""
        if isinstance(value, bool):  # says whether the call failed
            return None
        if (of := as_object(value)) and of.keys() == {"type", "value"} and of["type"] in _FORMS:
            value = of["value"]
        parts = [as_object(of) or {} for of in as_list(value) or ()]
        if not parts or not all(map(self._is_part, parts)):
            return self._values(value, path)
        rests: list[dict[str, Any]] = []
        for part in parts:
            names = {"text", "json", *(("content",) if part.get("type") in _TEXTS else ())}
            for name in names & part.keys():
                self._values(part[name], f"{path}.{name}")
            rests.append({k: v for k, v in part.items() if k not in names})
        return self._list(rests, path, "")

    def _is_part(self, of: Mapping[str, Any]) -> bool:
        kind: object = of.get("type")
        if not isinstance(kind, str):
            return len(of) == 1 and of.keys() <= _PART_KEYS
        return kind in _TEXTS or kind in self._rules.types or kind.endswith(_RESULT_TYPES)


def _role_of(of: Mapping[str, Any]) -> str:
    """The role of a message; empty for what is none."""
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
    """Whether an object is a call or a result."""
    if (
        (role in _TOOLS and not _defines(of.get("content")))
        or kind.endswith(_RESULT_TYPES)
        or (kind == "retry-prompt" and "tool_name" in of)
    ):
        return "result"
    is_tool = "toolCallId" in of and kind.startswith(("tool-", "dynamic-"))
    return "call" if is_tool or kind.endswith(_CALL_TYPES) else ""


def _bare(value: Any) -> dict[str, Any] | None:
    """An object, or the state that LangGraph notes with the node that gets it."""
    of = as_object(value)
    return as_object(of.get("args")) or of if of is not None and "lg_name" in of else of


def _defines(content: Any) -> bool:
    """Whether the content of a message is the definition of a tool, as some tracers list them."""
    function = as_object((as_object(content) or {}).get("function"))
    return function is not None and "parameters" in function


def _counted(what: str, of: Mapping[str, Any]) -> _Counts:
    """A call or a result, known by its id or else by what it says."""
    if call_id := next((str(of[name]) for name in _IDS if of.get(name) not in (None, "")), ""):
        return Counter([(what, call_id, "")])
    name = next((str(of[name]) for name in _NAMES if of.get(name)), "")
    stated = next((of[name] for name in _STATED if of.get(name) is not None), "")
    value = _opened(stated) if type(stated) is str else stated
    return Counter([(what, name, repr(value) if value else "")])


def _joined(parts: Iterable[_Counts | None], *, repeats: bool) -> _Counts | None:
    """The counts of all parts; where they repeat each other, as in that which has most."""
    total: _Counts | None = None
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


# Both ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What became of the content of one record.

    Attributes:
        counts: ``characters`` and unread ``leaves``, where they were compared; ``calls`` and
            ``results``, and how many of these the run has (``calls read``); those under a remark
            left out.
        unread: Characters that are neither carried over nor under a remark, by their keys.
        silent: Keys that lead to a message of the agent of which nothing is carried over.
    """

    counts: Counter[str]
    unread: Counter[str] = field(default_factory=Counter[str])
    silent: str = ""


def balance_of(raw: Any, run: Trajectory, *, with_leaves: bool = True) -> Balance:
    """Compares a record with the run that was made of it.

    What a reader leaves out on purpose it may keep in ``extra``, under the name of the remark that
    counts it, such as ``abandoned branches``.

    Args:
        raw: The record as it came, as a JSON value.
        run: The run.
        with_leaves: Whether texts are compared, or calls and results only.
    """
    of = _rules_for(run.place.format)
    parts = list(_parts(run, with_extra=_is_ours(raw)))
    known = {_clean(part) for part in parts if isinstance(part, str)}
    walk, aside = _Walk(of, known), _Walk(of)
    there = _Counts(walk.walk(raw))
    named = [k for k in run.extra if k in REMARKS and k not in LOSSES and run.remarks.get(k)]
    there -= _Counts(aside.walk([run.extra[name] for name in named]))
    counts = Counter(
        {
            "calls": sum(n for key, n in there.items() if key[0] == "call"),
            "results": sum(n for key, n in there.items() if key[0] == "result"),
            "calls read": sum(len(step.calls) for step in run.steps),
            "results read": sum(len(step.observations) for step in run.steps),
        }
    )
    if not with_leaves:
        return Balance(counts=counts)
    remarked = {text for text, _ in aside.leaves}
    for remark, texts in walk.remarked.items():
        if not run.remarks.get(remark):
            walk.leaves += [(text, remark) for text in texts]
    if texts := as_object((as_object(raw) or {}).get("attachments")):
        walk.leaves = [(_referred(text, of.prefixes, texts), path) for text, path in walk.leaves]
    wanted = {text for text, _ in walk.leaves if not text.startswith(of.prefixes)} - remarked
    missing = wanted - known
    missing.difference_update(values_in([part for part in parts if not isinstance(part, str)]))
    if missing:
        carried = set(values_in(parts))
        missing -= carried
        missing -= _contained(missing, carried)
    places = {text: path for text, path in reversed(walk.leaves) if text in missing}
    unread: Counter[str] = Counter()
    for text, path in places.items():
        unread[path] += _size([text])
    silent = ""
    for makes_calls, start, end in walk.turns if missing else ():
        texts = {text for text, _ in walk.leaves[start:end]} & wanted
        if texts and texts <= missing and (makes_calls or any(" " in text for text in texts)):
            silent = silent or walk.leaves[start][1]
    counts.update(characters=_size(wanted), leaves=len(missing))
    return Balance(counts=counts, unread=unread, silent=silent)


def _referred(text: str, prefixes: tuple[str, ...], texts: Mapping[str, Any]) -> str:
    """The text that a reference stands for; itself where it is none, or nobody knows."""
    is_reference = text.startswith(prefixes)
    return _clean(str(texts.get(text.partition("//")[2]) or text)) if is_reference else text


def _is_ours(raw: Any) -> bool:
    """Whether it is a row of our own format, or ATIF with one: what is in ``extra`` is read."""
    of = as_object(raw) or {}
    return of.get("format") == FORMAT or "apbjudge" in (as_object(of.get("extra")) or ())


_NO_LEAVES = frozenset("usage remarks trial outcome is_error line".split())
"""Fields of a run in which nothing that a record says in words is carried over."""


_SEVERAL = frozenset("steps calls observations tools".split())


def _parts(node: Any, *, with_extra: bool) -> Iterator[Any]:
    """The values of a run's fields; those of ``extra`` are what was not read."""
    for of in fields(node):
        value = getattr(node, of.name)
        if of.name in _NO_LEAVES or value is None or (of.name == "extra" and not with_extra):
            continue
        for part in value if of.name in _SEVERAL else (value,):
            if is_dataclass(part):
                yield from _parts(part, with_extra=with_extra)
            else:
                yield part


def _contained(texts: set[str], known: set[str]) -> set[str]:
    """Those of the texts that stand in a text of the run, or are literals of what it holds."""
    contained, left = set[str](), _SEARCHED
    whole = "\n".join(of for of in known if of[0] != _MARK) if texts else ""
    plain = {"null", *(of[of.rindex(_MARK) + 1 :].lower() for of in known if of[0] == _MARK)}
    for text in sorted(texts, key=len, reverse=True):
        if (left := left - len(whole)) < 0:
            break
        key, _, sought = text[1:].partition(_MARK) if text[0] == _MARK else ("", "", text)
        is_there = key in whole and _stands_in(sought, whole)
        if is_there or text in plain or _is_literal(text, known):
            contained.add(text)
    return contained


def _stands_in(text: str, whole: str) -> bool:
    """Whether it stands there, and neither end of it is within a word."""
    at = whole.find(text)
    while at >= 0:
        ends = whole[max(0, at - 1) : at + 1], whole[at + len(text) - 1 : at + len(text) + 1]
        if not any(len(of) == 2 and of.isalnum() for of in ends):
            return True
        at = whole.find(text, at + 1)
    return False


def _is_literal(text: str, known: set[str]) -> bool:
    """Whether a text is a dictionary or list of Python with no leaves but these."""
    value = _evaluated(text)
    return value is not text and known.issuperset(values_in(value))


def _evaluated(value: Any) -> Any:
    """What a text says that is a dictionary or list of Python; any other value as it is."""
    text = value if type(value) is str else ""
    if text[:1] in ("{", "[", "(") and text[-1] in "}])" and len(text) < _LITERAL:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                return ast.literal_eval(text)
    return value


# A log --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Conservation:
    """Checks the runs of a log as they are read, and keeps account of what is not carried over.

    Attributes:
        accepts: Share of unread characters that is accepted, as the user says; None for ``usual``.
        usual: Share that is accepted otherwise.
        counts: Sums of those of ``Balance``; also ``runs``, and how many of them were ``compared``:
            of logs above 100 MiB, beyond this only every tenth. Runs that are refused alone are
            left out.
        unread: Unread characters by keys.
        left_out: Names of what of the log was not read, by the reason.
    """

    accepts: float | None = None
    usual: float = ACCEPTED
    counts: Counter[str] = field(default_factory=Counter[str])
    unread: Counter[str] = field(default_factory=Counter[str])
    left_out: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def checked(self, raw: Any, run: Trajectory, offset: int = 0) -> Trajectory:
        """The run with what is remarked of it, after its record was compared with it.

        Args:
            raw: The record as it came.
            run: The run that was made of it.
            offset: Bytes of the log read so far.

        Raises:
            LossError: If more of it is lost than is accepted of a run.
            RowError: If it is nested too deeply to be compared.
        """
        is_compared = offset <= _WHOLE_BYTES or self.counts["runs"] % _SAMPLED == 0
        try:
            balance = balance_of(raw, run, with_leaves=is_compared)
        except RecursionError:
            raise RowError(
                "entry", "JSON that is not nested deeply", "hundreds of levels"
            ) from None
        self._check_run(balance)
        self.counts.update({**balance.counts, "runs": 1, "compared": int(is_compared)})
        self.unread.update(balance.unread)
        lost = [balance.counts["leaves"], *_lost(balance.counts).values()]
        earlier = run.remarks if _is_ours(raw) else {}  # what was unread once stays unread
        lost = [max(n, earlier.get(name, 0)) for name, n in zip(LOSSES, lost, strict=True)]
        remarks = {name: n for name, n in run.remarks.items() if name not in LOSSES}
        remarks |= {name: n for name, n in zip(LOSSES, lost, strict=True) if n}
        return run if remarks == run.remarks else replace(run, remarks=remarks)

    def _check_run(self, balance: Balance) -> None:
        counts, share = balance.counts, _share(balance.unread, balance.counts)
        if share > max(OF_A_RUN, self.accepts or 0):
            raise LossError(f"{share:.1%} of it unread", balance.unread)
        if self.accepts is None and 0 < counts["characters"] == balance.unread.total():
            raise LossError("nothing of it", balance.unread)
        if self.accepts is None and balance.silent:
            raise LossError("a message of the agent of which nothing is read", balance.unread)
        if self.accepts is None and counts["calls"] and not counts["calls read"]:
            raise LossError(f"none of {counts['calls']} calls", balance.unread)

    def check(self, name: str) -> None:
        """Refuses a log, by its name, of which more is lost than is accepted.

        Raises:
            InputError: If it is.
        """
        limit = self.usual if self.accepts is None else self.accepts
        if _share(self.unread, self.counts) > limit:
            expected = f"expected at most {limit:.0%} of its content unread"
            raise InputError(f"{name}: {expected}, got {self._text()}{_ADVICE}")

    @property
    def lines(self) -> list[str]:
        """What is not carried over, in a line or none; a warning above ``MENTIONED``.

        Then what of the log was left out.
        """
        is_much = any(_lost(self.counts).values()) or _share(self.unread, self.counts) > MENTIONED
        lines = [f"{'warning: ' if is_much else ''}{text}"] if (text := self._text()) else []
        for reason, names in self.left_out.items():
            shown = map(visible, (*names[:_SHOWN], *["…"] * (len(names) > _SHOWN)))
            lines.append(f"left out: {reason}: {len(names)} ({', '.join(shown)})")
        return lines

    def _text(self) -> str:
        counts, n, texts = self.counts, self.unread.total(), list[str]()
        if n:
            share = f" ({n / counts['characters']:.1%})" if n >= SILENT_BELOW else ""
            text = f"{LOSSES[0]}: {n:,} of {counts['characters']:,} characters{share}"
            if counts["compared"] < counts["runs"]:
                text += f" in {counts['compared']:,} of {counts['runs']:,} runs"
            texts.append(f"{text}: {_largest(self.unread)}")
        lost = _lost(counts).items()
        texts += [f"unread {name}: {of} of {counts[name]}" for name, of in lost if of]
        return "; ".join(texts)

    @property
    def described(self) -> dict[str, Any]:
        """What a manifest says of it; nothing where all is carried over."""
        described: dict[str, Any] = {"left_out": self.left_out} if self.left_out else {}
        if self._text():
            keys, text = dict(self.unread.most_common(50)), self.lines[0]
            stated = {"text": text, "accepted": self.accepts, "unread": self.unread.total()}
            described["unread_content"] = {**stated, **self.counts, "keys": keys}
        return described


def _share(unread: Counter[str], counts: Counter[str]) -> float:
    n = unread.total()
    return n / counts["characters"] if n >= SILENT_BELOW else 0.0


def _lost(counts: Counter[str]) -> dict[str, int]:
    return {name: max(0, counts[name] - counts[f"{name} read"]) for name in ("calls", "results")}


def _largest(unread: Mapping[str, int]) -> str:
    """The keys with the most unread characters."""
    top = Counter(unread).most_common(_SHOWN)
    more = f" and {len(unread) - len(top)} more" if len(unread) > len(top) else ""
    return ", ".join(f"{visible(path) or 'text'} {n:,}" for path, n in top) + more
