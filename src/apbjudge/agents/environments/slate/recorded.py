"""Recorded outputs of tools, and the choice of one to answer a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ....errors import InputError
from ....protocols.checks.values import strings
from ....trajectories.comparison import TextPair, UncomparedTexts
from ....trajectories.slate import SlateCase, SlateTool, validate
from ....trajectories.slate.cases import MAKES_UNUSABLE, references, resolved, target
from ....trajectories.slate.equality import is_equal_in_meaning, is_equivalent, is_same
from ....trajectories.slate.evaluator import OutputTag
from .config import Scope

Layer = Literal["exact", "canonical", "judge", "default", ""]
"""Source of an output: a record with the same JSON, with equivalent arguments, or with free texts
that a judge considers equal in meaning; or the tool's default; empty for an error."""


class Lookup(NamedTuple):
    """The output for a call.

    Attributes:
        tag: Category by which the protocol ``slate`` counts it.
        layer: Kind of the match.
        output: Result of the call; the complaint if ``tag`` is ``error``.
        source: Case and substep of the record, as ``case:1.1``; empty without a record.
    """

    tag: OutputTag
    layer: Layer
    output: Any
    source: str = ""


class _RecordedOutput(NamedTuple):
    case_id: str
    step: str
    arguments: Any
    output: Any


class RecordedOutputs:
    """The outputs that cases record for the calls of their plans.

    Args:
        cases: Cases with unique ids.
        same_text: True if two texts mean the same; called once for each pair. It must depend on
            the pair alone, else replays differ. None to omit this layer.
        scope: Cases whose calls may answer.

    Attributes:
        judged: Answer of ``same_text`` about each pair, for audits.

    Raises:
        InputError: If a case has a fault that ``MAKES_UNUSABLE`` names, or an id occurs twice.
    """

    def __init__(
        self,
        cases: Iterable[SlateCase],
        *,
        same_text: Callable[[TextPair], bool] | None = None,
        scope: Scope = "case",
    ) -> None:
        self.cases: dict[str, SlateCase] = {}
        self.judged: dict[TextPair, bool] = {}
        self._same_text = same_text
        self._scope: Scope = scope
        self._by_tool: dict[str, list[tuple[SlateTool, _RecordedOutput]]] = {}
        for case in cases:
            faults = [f for f in validate(case) if f.rule in MAKES_UNUSABLE]
            if faults:
                place = f"case {case.case_id}: {faults[0].where}"
                raise InputError(f"{place}: {faults[0].message}")
            if self.cases.setdefault(case.case_id, case) is not case:
                raise InputError(f"case {case.case_id}: comes twice")
            for call in case.calls:
                tool = tool_named(case, call.tool or "")
                arguments = resolved(call.arguments, case.outputs)
                record = _RecordedOutput(
                    case.case_id, call.step, arguments, case.outputs[call.step]
                )
                self._by_tool.setdefault(tool.name, []).append((tool, record))

    def look_up(
        self,
        case: SlateCase,
        substep: str,
        name: str,
        arguments: Any,
        outputs: Mapping[str, Any],
        *,
        used: Sequence[str] = (),
    ) -> Lookup:
        """Returns the output for a call of an agent.

        Unused records of the case come first (the substep's own before the others), then used
        ones, then those of other cases; in each group, exact matches before canonical ones. Then
        follow records that are equal to the judge alone, and last the tool's default.

        Args:
            case: The case that is being run.
            substep: The substep that the call is for.
            name: The tool called.
            arguments: As the agent wrote them, possibly with references.
            outputs: Results of the agent's own earlier calls, by substep.
            used: Substeps whose records answered earlier calls of the episode, in order; of these
                records, the latest comes first.
        """
        if complaint := _complaint(case, name, arguments, outputs):
            return Lookup("error", "", complaint)
        tool, values = tool_named(case, name), resolved(arguments, outputs)
        if (recorded := self._recorded(case, substep, tool, values, used)) is not None:
            return recorded
        if tool.default is not None:
            return Lookup("default", "default", tool.default)
        return Lookup("error", "", f"{name} has no answer to these arguments")

    def _recorded(
        self, case: SlateCase, substep: str, tool: SlateTool, arguments: Any, used: Sequence[str]
    ) -> Lookup | None:
        own, others = self._records(case, substep, tool)
        again = [record for step in reversed(used) for record in own if record.step == step]
        own = [record for record in own if record.step not in used]
        for records in (own, again, others):
            for record in records:
                if is_same(record.arguments, arguments):
                    return _lookup("matched", "exact", record)
            for record in records:
                if is_equivalent(record.arguments, arguments, tool.arguments_schema):
                    return _lookup("equivalent", "canonical", record)
        for record in (*own, *again, *others):
            if self._is_judged_same(tool, record.arguments, arguments):
                return _lookup("equivalent", "judge", record)
        return None

    def _records(
        self, case: SlateCase, substep: str, tool: SlateTool
    ) -> tuple[list[_RecordedOutput], list[_RecordedOutput]]:
        """The recorded calls of the case, the substep's first; and those of other cases."""
        tool_records = self._by_tool.get(tool.name, [])
        own = [record for _, record in tool_records if record.case_id == case.case_id]
        own.sort(key=lambda record: record.step != substep)
        if self._scope == "case":
            return own, []
        interface = (tool.arguments_schema, tool.results)
        return own, [
            record
            for other, record in tool_records
            if record.case_id != case.case_id
            and (other.arguments_schema, other.results) == interface
        ]

    def _is_judged_same(self, tool: SlateTool, recorded: Any, arguments: Any) -> bool:
        """True if arguments differ only in free texts that mean the same to the judge."""
        ask = self._same_text
        if ask is None:
            return False

        def same_text(one: str, other: str) -> bool:
            pair = TextPair(tool.name, one, other)
            if pair not in self.judged:
                self.judged[pair] = ask(pair)
            return self.judged[pair]

        return is_equal_in_meaning(recorded, arguments, tool.arguments_schema, same_text)


def _complaint(case: SlateCase, name: str, arguments: Any, outputs: Mapping[str, Any]) -> str:
    """Reason why no record can answer a call; empty if one may."""
    if name not in case.tools_by_name and all(name != call.tool for call in case.calls):
        return f"there is no tool {name}"
    if not isinstance(arguments, dict):
        return "arguments have to be a JSON object"
    for leaf in strings(arguments, ""):
        for reference in references(leaf.text):
            if not target(reference, outputs):
                return f"no earlier output has {'.'.join((reference.step, *reference.path))}"
    return ""


def uncompared(pair: TextPair) -> bool:
    """``same_text`` of ``RecordedOutputs`` without answers: raises ``UncomparedTexts``."""
    raise UncomparedTexts(pair)


def tool_named(case: SlateCase, name: str) -> SlateTool:
    """The tool of a case by its name; if the case does not define it, one without an interface."""
    return case.tools_by_name.get(name) or SlateTool(name=name)


def _lookup(tag: OutputTag, layer: Layer, record: _RecordedOutput) -> Lookup:
    return Lookup(tag, layer, record.output, f"{record.case_id}:{record.step}")


def interfaces(tools: Iterable[SlateTool]) -> Iterator[dict[str, Any]]:
    """Definitions of tools for an agent: without the default outputs."""
    for tool in tools:
        yield {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.arguments_schema),
            "results": tool.results,
        }
