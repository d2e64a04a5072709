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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, cast

import orjson

from ..errors import InputError, RowError, visible
from ..records.trajectories import FORMAT, REMARKS, Trajectory

UNREAD = "unread content"
"""Name of the remark on what is not carried over."""

SILENT_BELOW = 200
"""Characters from which on shares count."""

MENTIONED, ACCEPTED, OF_A_RUN = 0.02, 0.10, 0.50
"""Shares of unread characters of a log: up to the first they are mentioned, above it warned of,
above the second refused; above the third a single run is."""

_WHOLE_BYTES, _SAMPLED = 100 * 2**20, 10
_SEARCHED = 4 * 10**9
_LITERAL = 2**16
_SHOWN = 4


class LossError(RowError):
    """Of a run, too much is not carried over."""


# Rules --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """An entry of ``conservation.toml``.

    Attributes:
        reason: Why what it names is no content, or what becomes of it.
        sample: A record, as JSON, all of which is under this rule.
        remark: Name of the remark that it is counted under; empty for what is no content.
        shape: ``word``, ``line`` or ``tree``: what the value of a key has to be.
        keys: Keys whose values it holds for.
        types: Types of the parts that it holds for.
        flags: Keys which, where true, say that it holds for the object that they are in.
        prefixes: Beginnings of texts.
        formats: Formats of logs that it is restricted to; empty for all.
    """

    reason: str
    sample: str
    remark: str = ""
    shape: str = "tree"
    keys: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    formats: frozenset[str] = frozenset()


@cache
def rules() -> tuple[Rule, ...]:
    """The rules, in the order of the file."""
    text = resources.files(__package__ or "").joinpath("conservation.toml").read_text("utf-8")
    entries = [entry for kind in tomllib.loads(text).values() for entry in kind]
    plain = ("reason", "sample", "remark", "shape")
    return tuple(
        Rule(**{k: v if k in plain else frozenset(v.split()) for k, v in entry.items()})
        for entry in entries
    )


def explained() -> Iterator[str]:
    """Yields the rules as lines of text."""
    for rule in rules():
        yield f"{rule.remark or 'not content'}: {rule.reason}"
        if rule.formats:
            yield f"  only in: {' '.join(sorted(rule.formats))}"
        for name in ("keys", "types", "flags", "prefixes"):
            if words := getattr(rule, name):
                yield f"  {name}: {' '.join(sorted(words))}"


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules for a format, by what they are looked up with."""

    shapes: dict[str, str]
    prefixes: tuple[str, ...]
    remarks: dict[tuple[str, str], str]
    flags: tuple[tuple[str, str], ...]


@cache
def _rules_for(format_: str) -> _Rules:
    of = [rule for rule in rules() if not rule.formats or format_ in rule.formats]
    plain = [rule for rule in of if not rule.remark]
    return _Rules(
        {key: rule.shape for rule in plain for key in rule.keys},
        tuple(prefix for rule in plain for prefix in rule.prefixes),
        {(name, key): r.remark for r in of if r.remark for name in ("keys", "types")
         for key in getattr(r, name)},
        tuple((flag, rule.remark) for rule in of for flag in rule.flags),
    )  # fmt: skip


# The record as it came ----------------------------------------------------------------------------

_AGENTS = frozenset("assistant model agent ai gpt AIMessage".split())
_TOOLS = frozenset("tool function toolResult tool_result".split())
_SPEAKERS = _AGENTS | _TOOLS | frozenset("user human system developer environment".split())
_TYPES = frozenset("user assistant system human ai tool".split())
_CALL_LISTS = frozenset("tool_calls invalid_tool_calls toolCalls toolInvocations".split())
_CALL_KEYS = frozenset(
    "function_call functionCall toolUse toolCall tool_call executableCode executable_code".split()
)
_RESULT_KEYS = frozenset(
    "functionResponse function_response toolResult toolResponse codeExecutionResult "
    "code_execution_result".split()
)
_CALL_TYPES = ("tool_use", "_call", "-call")
_RESULT_TYPES = ("tool_result", "tool-result", "call_output", "call_response", "-return")
_IDS = tuple("call_id tool_call_id toolCallId toolUseId tool_use_id source_call_id id".split())
_NAMES = tuple("name toolName tool_name function_name function type".split())
_ARGUMENTS = tuple("arguments args input action rawInput parameters code".split())
_OUTPUTS = tuple("output outputs result results errorText".split())
_ANSWERS = frozenset((*_OUTPUTS, "content", "response", "error"))
_VALUES = frozenset(
    "arguments args parameters input_schema inputSchema json_schema parametersJsonSchema".split()
)
"""Keys below which every key is content, and numbers are."""
_HISTORIES = frozenset("trace_id traceId span_id spanId span_data context run_type".split())
"""Keys of objects which, listed, may each repeat the same history."""
_PART_KEYS = frozenset("text json image document video audio searchResult".split())
_VALUE_TYPES = frozenset(
    "stringValue intValue boolValue doubleValue arrayValue kvlistValue bytesValue".split()
)
_FLAT = re.compile(r"\.\d+\.")
_MARK = "\0"
"""Stands before the key and the value of a leaf that is no text: ``1`` alone says too little."""
_SCALARS = frozenset((int, float, bool))
_Counts = Counter[tuple[str, str, str]]


def _opened(text: str) -> Any:
    """What a text holds that is a JSON object, array or text; otherwise the text."""
    if len(text) > 1 and text[0] in '{["' and text[-1] in '}]"':
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
    return text


def _clean(text: str) -> str:
    return (text.replace("\r\n", "\n") if "\r" in text else text).strip()


def values_in(value: Any) -> list[str]:
    """The leaves of a JSON value of which all is content, as texts; JSON texts are opened."""
    found: list[str] = []
    stack: list[Any] = [value]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is str:
            text = _clean(node)
            if text and (opened := _opened(text)) is not text:
                stack.append(opened)
            elif text:
                found.append(text)
        elif kind is dict:
            for key, inner in node.items():
                if type(inner) in _SCALARS:
                    found.append(f"{_MARK}{key}{_MARK}{inner}")
                else:
                    stack.append(inner)
        elif kind is list or kind is tuple:
            stack.extend(node)
        elif node is not None:
            found.append(f"{_MARK}{_MARK}{node}")
    return found


def _size(texts: Iterable[str]) -> int:
    return sum(len(of) if of[0] != _MARK else len(of) - of.rindex(_MARK) - 1 for of in texts)


class _Walk:
    """What is in a record as it came.

    Attributes:
        leaves: Texts with the keys that lead to them.
        remarked: Those of them that are under a remark, by its name.
        messages: Of each message of a known role: whether it is the agent's, whether it makes
            calls, and its leaves, from where to where.
    """

    def __init__(self, of: _Rules) -> None:
        self._rules = of
        self.leaves: list[tuple[str, str]] = []
        self.remarked: dict[str, set[str]] = {}
        self.messages: list[tuple[bool, bool, int, int]] = []

    def walk(self, value: Any, path: str = "", key: str = "") -> _Counts | None:
        """Takes in a value below a key; returns its calls and results."""
        kind = type(value)
        if kind is str:
            return self._text(value, path, key)
        if kind is dict:
            return self._object(value, path)
        if kind is list:
            return self._list(value, path, key)
        return None

    def _text(self, value: str, path: str, key: str) -> _Counts | None:
        if not (text := _clean(value)):
            return None
        shape = self._rules.shapes.get(key)
        if shape is not None and (
            shape == "tree"
            or (shape == "line" and len(text) <= 64 and "\n" not in text)
            or (shape == "word" and len(text.split(None, 1)) == 1)
        ):
            return None
        n, opened = len(self.leaves), _opened(text)
        if opened is not text:
            try:
                return self.walk(opened, path, key)
            except RecursionError:
                del self.leaves[n:]
        self.leaves.append((text, path))
        return None

    def _values(self, value: Any, path: str) -> None:
        self.leaves += [(text, path) for text in values_in(value)]

    def _under(self, remark: str, value: Any) -> None:
        self.remarked.setdefault(remark, set()).update(values_in(value))

    def _list(self, values: list[Any], path: str, key: str) -> _Counts | None:
        first = values[0] if values else None
        if type(first) is dict:
            if first.keys() == {"key", "value"}:  # attributes of OTLP
                return self._object({str(of.get("key")): _plain(of.get("value")) for of in
                                     values if type(of) is dict}, path)  # fmt: skip
            if key in _CALL_LISTS:
                return _sum(self._call(of, path) for of in values)
        parts = [self.walk(of, path, key) for of in values]
        repeats = any(type(of) is dict and not _HISTORIES.isdisjoint(of) for of in values[:2])
        return _most(parts) if repeats else _sum(parts)

    def _object(self, of: dict[str, Any], path: str) -> _Counts | None:
        rules, start = self._rules, len(self.leaves)
        for flag, remark in rules.flags:
            if of.get(flag) is True:
                return self._under(remark, of)
        kind = of.get("type") or of.get("part_kind")
        if type(kind) is str:
            if remark := rules.remarks.get(("types", kind)):
                return self._under(remark, of)
            if kind.endswith(_CALL_TYPES) or "toolCallId" in of and kind.startswith(
                ("tool-", "dynamic-")
            ) and not kind.endswith(_RESULT_TYPES):  # fmt: skip
                return self._call(of, path)
            if kind.endswith(_RESULT_TYPES) or (kind == "retry-prompt" and "tool_name" in of):
                return self._result(of, path)
        role = _role_of(of)
        parts: list[_Counts | None] = []
        flat: dict[str, Any] = {}
        for key, value in of.items():
            if value is None or value == "":
                continue
            at = f"{path}.{key}" if path else key
            last = key
            if "." in key:
                if _FLAT.search(key):
                    flat[key] = value
                    continue
                last = key if key in rules.shapes else key[key.rindex(".") + 1 :]
            is_open = type(value) is dict or type(value) is list
            if rules.shapes.get(last) == "tree":
                continue
            if is_open and (remark := rules.remarks.get(("keys", last))):
                self._under(remark, value)
            elif last in _VALUES:
                self._values(value, at)
            elif last == "content" and role in _TOOLS:
                parts.append(self._answer(value, at))
            elif last in _CALL_KEYS and type(value) is dict:
                parts.append(self._call(value, at))
            elif last in _RESULT_KEYS and type(value) is dict:
                parts.append(self._result(value, at))
            elif last == "observation" and type(value) is dict:
                listed = value.get("results")
                results = listed if type(listed) is list else []
                parts += [_sum(self._result(of, f"{at}.results") for of in results)]
                rest = {name: inner for name, inner in value.items() if name != "results"}
                parts.append(self.walk(rest, at))
            else:
                parts.append(self.walk(value, at, last))
        if flat:
            parts.append(self.walk(_nested(flat), path))
        counts = _most(parts)
        if role:
            makes_calls = any(known[0] == "call" for known in counts or ())
            self.messages.append((role in _AGENTS, makes_calls, start, len(self.leaves)))
            if role in _TOOLS and not any(known[0] == "result" for known in counts or ()):
                counts = _most([counts, _counted("result", of)])
        return counts

    def _call(self, of: Any, path: str) -> _Counts | None:
        if type(of) is not dict:
            return self.walk(of, path)
        holder: dict[str, Any] = {**of}
        for name in ("function", "custom", "tool_call"):
            if type(inner := of.get(name)) is dict:
                del holder[name]
                holder |= {key: value for key, value in inner.items() if key not in of}
                if type(deeper := holder.get("function")) is dict:
                    holder = {**holder, "function": None, **deeper}
        counts = _counted("call", holder)
        for key, value in holder.items():
            at = f"{path}.{key}"
            if key in _ARGUMENTS:
                self._values(value, at)
            elif key in _ANSWERS:
                self._answer(value, at)
            elif value is not None:
                self.walk(value, at, key)
        if any(holder.get(name) is not None for name in _OUTPUTS):
            counts += _counted("result", holder)
        return counts

    def _result(self, of: Any, path: str) -> _Counts | None:
        if type(of) is not dict:
            return self.walk(of, path)
        for key, value in of.items():
            at = f"{path}.{key}"
            if remark := self._rules.remarks.get(("keys", key)):
                self._under(remark, value)
            elif key in _ANSWERS:
                self._answer(value, at)
            elif value is not None:
                self.walk(value, at, key)
        return _counted("result", of)

    def _answer(self, value: Any, path: str) -> _Counts | None:
        """The content of a result: a value of the tool's, or parts of a message."""
        if type(value) is not list or not value or not all(map(self._is_part, value)):
            self._values(value, path)
            return None
        counts: list[_Counts | None] = []
        for part in value:
            texts = [name for name in ("text", "json") if name in part]
            for name in texts:
                self._values(part[name], f"{path}.{name}")
            counts.append(self.walk({k: v for k, v in part.items() if k not in texts}, path))
        return _sum(counts)

    def _is_part(self, of: Any) -> bool:
        if type(of) is not dict:
            return False
        kind = of.get("type")
        if type(kind) is not str:
            return len(of) == 1 and of.keys() <= _PART_KEYS
        return (
            kind in ("text", "input_text", "output_text")
            or kind.endswith(_RESULT_TYPES)
            or ("types", kind) in self._rules.remarks
        )


def _role_of(of: Mapping[str, Any]) -> str:
    """The role of a message; empty for what is none."""
    for name in ("role", "source", "from"):
        if type(role := of.get(name)) is str and role in _SPEAKERS:
            return role
    if type(role := of.get("type")) is str and role in _TYPES:
        return role
    return "model" if of.get("kind") == "response" and "parts" in of else ""


def _counted(what: str, of: Mapping[str, Any]) -> _Counts:
    """A call or a result, known by its id or else by what it says."""
    call_id = next((str(of[name]) for name in _IDS if of.get(name) not in (None, "")), "")
    if call_id:
        return Counter([(what, call_id, "")])
    name = next((str(of[n]) for n in _NAMES if of.get(n)), "")
    said = next((of[n] for n in (*_ARGUMENTS, *_OUTPUTS, "content") if of.get(n) is not None), "")
    return Counter([(what, name, said if type(said) is str else repr(said))])


def _sum(parts: Iterable[_Counts | None]) -> _Counts | None:
    total: _Counts | None = None
    for part in parts:
        if total is None:
            total = part
        elif part:
            total.update(part)
    return total


def _most(parts: Iterable[_Counts | None]) -> _Counts | None:
    """Of what stands in several places, as often as in that which has it most often."""
    total: _Counts | None = None
    for part in parts:
        if total is None:
            total = part
        elif part:
            total |= part
    return total


def _plain(value: Any) -> Any:
    """A value of OTLP as a JSON value."""
    if type(value) is not dict or not value.keys() <= _VALUE_TYPES:
        return value
    inner = next(iter(value.values()), None)
    listed = inner.get("values", []) if type(inner) is dict else None
    if "arrayValue" in value and type(listed) is list:
        return [_plain(of) for of in listed]
    return listed if "kvlistValue" in value else inner


def _nested(flat: Mapping[str, Any]) -> Any:
    """The object of flattened keys, such as ``messages.0.role``."""
    root: dict[str, Any] = {}
    for name, value in flat.items():
        node, (*parts, last) = root, name.split(".")
        for part in parts:
            inner = node.setdefault(part, {})
            if type(inner) is not dict:
                inner = node[part] = {"": inner}
            node = inner
        node[last] = value
    return _listed(root)


def _listed(node: Any) -> Any:
    if type(node) is not dict:
        return node
    items = {key: _listed(value) for key, value in node.items()}
    if all(map(str.isdecimal, items)):
        return [items[key] for key in sorted(items, key=int)]
    return items


# Both --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What became of the content of one record.

    Attributes:
        content: Characters of its leaves; 0 where they were not compared.
        unread: Characters that are neither carried over nor under a remark, by their keys.
        n_unread: Leaves of these.
        n_silent: Messages with content of which nothing was carried over.
        silent: Keys that lead to the first of these that is the agent's; empty without.
        calls: Calls of the record and of the run, those under a remark left out.
        results: Likewise results.
    """

    content: int = 0
    unread: Mapping[str, int] = field(default_factory=dict[str, int])
    n_unread: int = 0
    n_silent: int = 0
    silent: str = ""
    calls: tuple[int, int]
    results: tuple[int, int]


def balance_of(raw: Any, run: Trajectory, *, with_leaves: bool = True) -> Balance:
    """Compares a record with the run that was made of it.

    What a reader left out on purpose it may keep in ``extra``, under the name of the remark that
    counts it, such as ``abandoned branches``.

    Args:
        raw: The record as it came, as a JSON value.
        run: The run.
        with_leaves: Whether texts are compared, or calls and results only.
    """
    of = _rules_for(run.place.format)
    walk = _Walk(of)
    counts = walk.walk(raw) or Counter()
    aside = _Walk(of)
    named = [k for k in run.extra if k in REMARKS and k != UNREAD and run.remarks.get(k)]
    counts = counts - (aside.walk([run.extra[name] for name in named]) or Counter())
    n_calls, n_results = (
        sum(n for key, n in counts.items() if key[0] == what) for what in ("call", "result")
    )
    calls = n_calls, sum(len(step.calls) for step in run.steps)
    results = n_results, sum(len(step.observations) for step in run.steps)
    if not with_leaves:
        return Balance(calls=calls, results=results)

    is_ours = type(raw) is dict and raw.get("format") == FORMAT
    remarked = {text for text, _ in aside.leaves}
    for remark, texts in walk.remarked.items():
        if run.remarks.get(remark):
            remarked |= texts
        else:
            walk.leaves += [(text, remark) for text in texts]
    wanted = {text for text, _ in walk.leaves if not text.startswith(of.prefixes)} - remarked
    carried = set(values_in(list(_parts(run, with_extra=is_ours))))
    missing = wanted - carried
    missing -= _found(missing, carried)
    unread: Counter[str] = Counter()
    n_silent, silent = 0, ""
    if missing:
        done: set[str] = set()
        if any(".extra.apbjudge." in f".{path}" for _, path in walk.leaves):  # as we write ATIF
            missing -= set(values_in(list(_parts(run, with_extra=True))))
        for text, path in walk.leaves:
            if text in missing and text not in done:
                done.add(text)
                unread[path] += _size([text])
        for is_agent, makes_calls, start, end in walk.messages:
            texts = {text for text, _ in walk.leaves[start:end]} & wanted
            if texts and texts <= missing:
                n_silent += 1
                if is_agent and (makes_calls or any(" " in text for text in texts)):
                    silent = silent or walk.leaves[start][1]
    return Balance(
        content=_size(wanted),
        unread=unread,
        n_unread=len(missing),
        n_silent=n_silent,
        silent=silent,
        calls=calls,
        results=results,
    )


_NO_LEAVES = frozenset("usage remarks trial outcome is_error line".split())
"""Fields of a run in which nothing that a record says in words is carried over."""


def _parts(node: Any, *, with_extra: bool) -> Iterator[Any]:
    """The values of a run's fields; those of ``extra`` are what was not read."""
    for of in fields(node):
        value = getattr(node, of.name)
        if of.name in _NO_LEAVES or not value or (of.name == "extra" and not with_extra):
            continue
        if is_dataclass(value):
            yield from _parts(value, with_extra=with_extra)
        elif type(value) is tuple and value and is_dataclass(cast("Any", value[0])):
            for inner in cast("tuple[Any, ...]", value):
                yield from _parts(inner, with_extra=with_extra)
        else:
            yield value


def _found(texts: set[str], known: set[str]) -> set[str]:
    """Those of the texts that stand in a text of the run, or are literals of what it holds."""
    found, left = set[str](), _SEARCHED
    whole = "\n".join(of for of in known if of[0] != _MARK) if texts else ""
    for text in sorted(texts, key=len, reverse=True):
        if (left := left - len(whole)) < 0:
            break
        if text[0] == _MARK:
            key, value = text[1:].split(_MARK)
            is_found = key in whole and _stands_in(value, whole)
        else:
            is_found = _stands_in(text, whole) or known.issuperset(_literal(text) or [""])
        if is_found:
            found.add(text)
    return found


def _stands_in(text: str, whole: str) -> bool:
    """Whether it stands there, and is not a part of a word."""
    at = whole.find(text)
    while at >= 0:
        end = at + len(text)
        before, after = whole[at - 1 : at] if at else "", whole[end : end + 1]
        if not (before.isalnum() and text[0].isalnum() or after.isalnum() and text[-1].isalnum()):
            return True
        at = whole.find(text, at + 1)
    return False


def _literal(text: str) -> list[str]:
    """The leaves of a Python dictionary or list that is written as text; none for other texts."""
    if not (text[0] in "{[(" and text[-1] in "}])" and len(text) < _LITERAL):
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return values_in(ast.literal_eval(text))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return []


# A log --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Conservation:
    """Checks the runs of a log as they are read, and keeps account of what is not carried over.

    Attributes:
        accepts: Share of unread characters that is accepted, as the user says; None for the usual.
        usual: Share that is accepted otherwise.
        n_runs: Runs taken in; what follows leaves out those that were refused.
        n_compared: Those of them whose texts were compared: of logs above 100 MiB, beyond this
            only every tenth.
        content: Characters of their content.
        unread: Characters of it that are not carried over, by keys.
        calls: Calls of the log and of its runs.
        results: Likewise results.
    """

    accepts: float | None = None
    usual: float = ACCEPTED
    n_runs: int = 0
    n_compared: int = 0
    content: int = 0
    unread: Counter[str] = field(default_factory=Counter[str])
    calls: tuple[int, int] = (0, 0)
    results: tuple[int, int] = (0, 0)

    @property
    def n_unread(self) -> int:
        """Characters that are not carried over."""
        return self.unread.total()

    @property
    def share(self) -> float:
        """Share of these; 0 below ``SILENT_BELOW`` characters."""
        return self.n_unread / self.content if self.n_unread >= SILENT_BELOW else 0.0

    def checked(self, raw: Any, run: Trajectory, offset: int = 0) -> Trajectory:
        """The run with what is remarked of it, after its record was compared with it.

        Args:
            raw: The record as it came.
            run: The run that was made of it.
            offset: Bytes of the log read so far.

        Raises:
            LossError: If more of it is lost than is accepted of a run.
        """
        self.n_runs += 1
        with_leaves = offset <= _WHOLE_BYTES or self.n_runs % _SAMPLED == 0
        try:
            found = balance_of(raw, run, with_leaves=with_leaves)
        except RecursionError:
            raise RowError("entry", "JSON that is not nested deeply", "hundreds of levels") from None
        self._check_run(found)
        self.n_compared += with_leaves
        self.content += found.content
        self.unread.update(found.unread)
        self.calls = self.calls[0] + found.calls[0], self.calls[1] + found.calls[1]
        self.results = self.results[0] + found.results[0], self.results[1] + found.results[1]
        counts = {
            UNREAD: found.n_unread,
            "unread calls": found.calls[0] - found.calls[1],
            "unread results": found.results[0] - found.results[1],
        }
        if type(raw) is dict and raw.get("format") == FORMAT:  # what was unread once stays unread
            counts = {name: max(n, run.remarks.get(name, 0)) for name, n in counts.items()}
        remarks = {name: n for name, n in run.remarks.items() if name not in counts}
        remarks |= {name: n for name, n in counts.items() if n > 0}
        return run if remarks == run.remarks else replace(run, remarks=remarks)

    def _check_run(self, found: Balance) -> None:
        n_unread = sum(found.unread.values())
        share = n_unread / found.content if n_unread >= SILENT_BELOW else 0.0
        calls, calls_read = found.calls
        if share > max(OF_A_RUN, self.accepts or 0):
            why = f"{share:.1%} unread"
        elif self.accepts is not None:
            return
        elif found.silent:
            why = f"a message of the agent of which nothing is read, {found.silent}"
        elif calls and not calls_read:
            why = f"none of {calls} calls"
        else:
            return
        where = _largest(found.unread) or "no text of its own"
        error = LossError("entry", "content that is carried over", why)
        error.args = (f"field entry: expected content that is carried over, got {why}: {where}"
                      f"{_ADVICE}",)  # fmt: skip
        raise error

    def check(self, name: str) -> None:
        """Refuses a log of which more is lost than is accepted.

        Args:
            name: The log, for the message.

        Raises:
            InputError: If it is.
        """
        limit = self.usual if self.accepts is None else self.accepts
        if self.share > limit:
            raise InputError(
                f"{name}: expected at most {limit:.0%} of its content unread, got "
                f"{next(self._sentences())}{_ADVICE}"
            )

    def lines(self) -> Iterator[str]:
        """What is not carried over, in a line or none; a warning above ``MENTIONED``."""
        text = "; ".join(self._sentences())
        if text:
            lost = self.calls[0] > self.calls[1] or self.results[0] > self.results[1]
            yield f"{'warning: ' if lost or self.share > MENTIONED else ''}{text}"

    def _sentences(self) -> Iterator[str]:
        if n := self.n_unread:
            of = f" ({n / self.content:.1%})" if n >= SILENT_BELOW else ""
            runs = f", of every tenth run beyond 100 MiB ({self.n_compared} of {self.n_runs})"
            sampled = runs if self.n_compared < self.n_runs else ""
            yield (
                f"{UNREAD}: {n:,} of {self.content:,} characters{of}{sampled}: "
                f"{_largest(self.unread)}"
            )
        for name, (there, read) in (("calls", self.calls), ("results", self.results)):
            if there > read:
                yield f"unread {name}: {there - read} of {there}"

    def to_json(self) -> dict[str, Any]:
        """The account as JSON values; empty where all is carried over."""
        if not (lines := list(self.lines())):
            return {}
        return {
            "text": lines[0],
            "characters": self.content,
            "unread": self.n_unread,
            "keys": dict(self.unread.most_common(50)),
            "calls": list(self.calls),
            "results": list(self.results),
            "compared": [self.n_compared, self.n_runs],
            "accepted": self.accepts,
        }


_ADVICE = "; --accept-loss 25% accepts up to that share (apbjudge convert --explain)"


def _largest(unread: Mapping[str, int]) -> str:
    """The keys with the most unread characters."""
    top = Counter(unread).most_common(_SHOWN)
    more = f" and {len(unread) - len(top)} more" if len(unread) > len(top) else ""
    return ", ".join(f"{visible(path) or 'text'} {n:,}" for path, n in top) + more
