"""Cases of SLATE (arXiv:2604.12126, section 3) and their data flow.

The authors published none, so the file format is ours: JSONL, one case per line.

    {"id": "c1", "query": "…", "category": "…",
     "plan": [{"step": "1", "description": "…"},
              {"step": "1.1", "tool": "find_berth", "arguments": {"ship": "Alma"}},
              {"step": "1.2", "tool": "book", "arguments": {"berth": "OUTPUT_FROM_STEP_1.1.id"}},
              {"step": "1.3", "description": "Tell the captain", "tool": null}],
     "tools": [{"name": "find_berth", "description": "…", "arguments": {…}, "results": {…}}, …],
     "outputs": {"1.1": {"id": "B4"}, "1.2": {"booked": true}}}

Steps such as ``1`` group the substeps, such as ``1.1``, which call one tool or none. An argument is
a literal or takes a value from the output of an earlier call. ``arguments`` and ``results`` of a
tool are JSON Schemas of an object, or only its properties; its ``default`` is a simulator's answer
to a call that was not recorded. ``outputs`` holds the output of every call of the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, StringConstraints, ValidationError

from ...errors import InputError, RowError, shorten
from ...jsonl import read_lines
from ...protocols.checks.values import strings
from ...records import Certainty, Finding, Record, row_error
from ...records.loose_json import as_list, as_object, json_text
from ...records.parameters import is_schema, read_parameters
from ...records.trajectories import Id


class PlanStep(Record):
    """A step of a plan.

    Attributes:
        step: ``1`` for a step that groups others, ``1.1`` for a substep.
        tool: Name of the tool that a substep calls; None if it needs none.
        arguments: Arguments of the call; their texts may be references.
    """

    step: Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?$")]
    description: str = ""
    tool: Id | None = None
    arguments: dict[str, Any] = {}

    @property
    def is_substep(self) -> bool:
        """True if the step is an action of its own."""
        return "." in self.step


class SlateTool(Record):
    """A tool with its arguments and results, in JSON Schema or as properties only.

    Attributes:
        default: A simulator's output if no call with such arguments was recorded; None for an
            error.
    """

    name: Id
    description: str = ""
    arguments: dict[str, Any] = {}
    results: dict[str, Any] = {}
    default: Any = None

    @cached_property
    def arguments_schema(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments."""
        return _schema(self.arguments)

    @cached_property
    def results_schema(self) -> Mapping[str, Any]:
        """JSON Schema of the results."""
        return _schema(self.results)

    @cached_property
    def result_names(self) -> frozenset[str]:
        """Fields that results are declared to have."""
        return frozenset(as_object(self.results_schema.get("properties")) or ())


def _schema(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return read_parameters(spec if is_schema(spec) else {"type": "object", "properties": spec})[0]


class SlateCase(Record):
    """A query with the plan that the agent carries out.

    Attributes:
        outputs: Output of each call of the plan, by substep.
    """

    case_id: Id = Field(alias="id")
    query: str
    category: str = ""
    plan: tuple[PlanStep, ...]
    tools: tuple[SlateTool, ...] = ()
    outputs: dict[str, Any] = {}

    @cached_property
    def substeps(self) -> tuple[PlanStep, ...]:
        """The actions of the plan, in order."""
        return tuple(step for step in self.plan if step.is_substep)

    @cached_property
    def calls(self) -> tuple[PlanStep, ...]:
        """The substeps that call a tool."""
        return tuple(step for step in self.substeps if step.tool is not None)

    @cached_property
    def final(self) -> tuple[str, ...]:
        """The calls whose output no call of the plan consumes: sinks of the data flow."""
        consumed = {
            reference.step
            for call in self.calls
            for leaf in strings(call.arguments, "")
            for reference in references(leaf.text)
        }
        return tuple(call.step for call in self.calls if call.step not in consumed)

    @cached_property
    def tools_by_name(self) -> Mapping[str, SlateTool]:
        """The tools by name."""
        return {tool.name: tool for tool in self.tools}


# References ---------------------------------------------------------------------------------------

_REFERENCE = re.compile(r"OUTPUT_FROM_STEP_([0-9]+\.[0-9]+)((?:\.[^\W\d]\w*|\[[0-9]{1,6}\])*)")
_PART = re.compile(r"\w+")


class OutputReference(NamedTuple):
    """A place in the output of a call: ``OUTPUT_FROM_STEP_1.1.rows[0].id``.

    Attributes:
        step: The substep.
        path: Names and positions from the output inwards; empty for all of it.
    """

    step: str
    path: tuple[str, ...]


def references(text: str) -> Iterator[OutputReference]:
    """The references in a text, or the one that it is."""
    return map(_reference, _REFERENCE.finditer(text))


def _reference(match: re.Match[str]) -> OutputReference:
    return OutputReference(match[1], tuple(_PART.findall(match[2])))


def resolved(value: Any, outputs: Mapping[str, Any]) -> Any:
    """A value with its references replaced by their targets.

    Args:
        value: JSON. A text that is only a reference becomes the target itself; a reference within
            other text is replaced by the target's text or JSON.
        outputs: Outputs by substep.

    Returns:
        The value; references that lead nowhere stay as they are.
    """
    if isinstance(value, str):
        if whole := _REFERENCE.fullmatch(value):
            return _target_or_text(whole, outputs)
        return _REFERENCE.sub(lambda of: json_text(_target_or_text(of, outputs), "plan"), value)
    if (listed := as_list(value)) is not None:
        return [resolved(each, outputs) for each in listed]
    if (members := as_object(value)) is not None:
        return {name: resolved(each, outputs) for name, each in members.items()}
    return value


def _target_or_text(match: re.Match[str], outputs: Mapping[str, Any]) -> Any:
    return (*target(_reference(match), outputs), match[0])[0]


def target(reference: OutputReference, outputs: Mapping[str, Any]) -> tuple[Any, ...]:
    """The value that a reference leads to, which may be None; empty if there is none."""
    value: Any = outputs
    for part in (reference.step, *reference.path):
        members, listed = as_object(value), as_list(value)
        if members is not None and part in members:
            value = members[part]
        elif listed is not None and part.isdecimal() and int(part) < len(listed):
            value = listed[int(part)]
        else:
            return ()
    return (value,)


# Checks -------------------------------------------------------------------------------------------

MAKES_UNUSABLE = frozenset({"plan-structure", "missing-output", "dangling-reference"})
"""Rules whose violation makes metrics of the case meaningless."""


def validate(case: SlateCase) -> tuple[Finding, ...]:
    """Returns the findings on the plan of a case and its data flow.

    References have to lead to the recorded output of an earlier call, so the first call has none,
    and should name a field that its tool declares. Two consecutive calls of a tool are only
    suspected: they may be right.
    """
    return (*_structure(case), *_data_flow(case))


def _structure(case: SlateCase) -> Iterator[Finding]:
    if not case.substeps:
        yield _finding("plan-structure", "plan", "no substep such as 1.1")
    seen: set[str] = set()
    for i, step in enumerate(case.plan):
        if step.step in seen:
            yield _finding("plan-structure", f"plan[{i}].step", f"a second step {step.step}")
        seen.add(step.step)
        if step.tool is not None and not step.is_substep:
            message = "only substeps such as 1.1 call tools"
            yield _finding("plan-structure", f"plan[{i}].tool", message)
    calls = {call.step for call in case.calls}
    for step_id in sorted(calls - case.outputs.keys()):
        yield _finding("missing-output", f"outputs.{step_id}", "no output of this call")
    for step_id in sorted(case.outputs.keys() - calls):
        yield _finding("stray-output", f"outputs.{step_id}", "an output of no call")


def _data_flow(case: SlateCase) -> Iterator[Finding]:
    earlier: dict[str, PlanStep] = {}
    tool_before: str | None = None
    for i, step in enumerate(case.plan):
        if not step.is_substep:
            continue
        tool, where = step.tool, f"plan[{i}]"
        if tool is not None and tool not in case.tools_by_name:
            yield _finding("unknown-tool", f"{where}.tool", f"no tool {shorten(tool)}")
        if tool is not None and tool == tool_before:
            message = f"{shorten(tool)} is called by the substep before as well"
            yield _finding("same-tool-again", f"{where}.tool", message, "suspected")
        for leaf in strings(step.arguments, f"{where}.arguments"):
            for reference in references(leaf.text):
                yield from _faults(reference, leaf.path, case, earlier)
        tool_before = tool
        if tool is not None:
            earlier[step.step] = step


def _faults(
    reference: OutputReference, where: str, case: SlateCase, earlier: Mapping[str, PlanStep]
) -> Iterator[Finding]:
    """Yields the findings on a reference, given the calls before it."""
    if reference.step not in earlier:
        message = f"no call before this one is {reference.step}"
        yield _finding("dangling-reference", where, message)
        return
    path = reference.path
    if not target(reference, case.outputs):
        message = f"the recorded output of {reference.step} has no {shorten('.'.join(path))}"
        yield _finding("dangling-reference", where, message)
    tool = case.tools_by_name.get(earlier[reference.step].tool or "")
    if tool is not None and path and path[0] not in tool.result_names:
        message = f"{shorten(tool.name)} declares no result {shorten(path[0])}"
        yield _finding("undeclared-result", where, message)


def _finding(rule: str, where: str, message: str, certainty: Certainty = "proven") -> Finding:
    return Finding(code=None, certainty=certainty, where=where, message=message, rule=rule)


# Files --------------------------------------------------------------------------------------------


class SlateCases(NamedTuple):
    """The cases of a file by id, and the SHA-256 of the file."""

    by_id: Mapping[str, SlateCase]
    digest: str


def load_cases(path: Path) -> SlateCases:
    """Reads a file of cases.

    Raises:
        InputError: If the file is unreadable or holds no case, or a case is invalid, occurs twice,
            or has a fault in ``MAKES_UNUSABLE``; with file and line.
    """
    digest, by_id = sha256(), dict[str, SlateCase]()
    for line in read_lines(path, digest=digest):
        place = f"{path}:{line.number}"
        if isinstance(line.values, RowError):
            raise InputError(f"{place}: {line.values}")
        try:
            case = SlateCase.model_validate(line.values)
            faults = [f for f in validate(case) if f.rule in MAKES_UNUSABLE]
        except ValidationError as error:
            raise InputError(f"{place}: {row_error(error)}") from None
        except RecursionError:
            raise InputError(f"{place}: values are nested too deeply") from None
        if faults:
            raise InputError(f"{place}: {faults[0].where}: {faults[0].message}")
        if by_id.setdefault(case.case_id, case) is not case:
            raise InputError(f"{place}: {RowError('id', 'an id of its own', case.case_id)}")
    if not by_id:
        raise InputError(f"{path}: the file holds no cases")
    return SlateCases(by_id, digest.hexdigest())
