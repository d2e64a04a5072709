"""The protocol ``slate``: executions of given plans against a reference execution.

After SLATE (arXiv:2604.12126, section 3 and 6.1), whose data are not published; the format of cases
is therefore ours. A plan lists substeps, each with a call or with none; arguments are literals or
refer to a field of an earlier output (``OUTPUT_FROM_STEP_1.2.parcel_id``). The agent is given the
plan and, substep by substep, chooses a tool or none and fills the arguments in. So this grades how
a plan is carried out, not planning.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, cast

import orjson
from pydantic import ValidationError

from ..errors import InputError, OptionError, RowError
from ..jsonl import read_lines
from ..records import Certainty, Finding
from ..records.base import Record, row_error
from ..records.trajectories import Trajectory, TrajectoryStep
from .base import Evaluation, EvaluatorSettings, Figure, RunTable, TrajectoryProtocol

NEEDS = "a JSONL file of cases with plan, tools and outputs"
TAGS = ("matched", "equivalent", "default", "error")
"""How a simulator found the output of a call: recorded for it, for one that means the same, the
tool's default, or not at all."""
_REFERENCE = re.compile(r"OUTPUT_FROM_STEP_(\d+(?:\.\d+)+)\.(\w+(?:\.\w+)*)")
_MISSING: Any = object()


# Cases --------------------------------------------------------------------------------------------


class SlateTool(Record):
    """A tool: JSON-Schema-like objects of its arguments and of the fields of its result."""

    name: str
    description: str = ""
    arguments: dict[str, Any] = {}
    results: dict[str, Any] = {}

    @property
    def fields(self) -> Collection[str]:
        """Names of the declared result fields; empty where none are."""
        return cast("dict[str, Any]", self.results.get("properties", self.results)).keys()


class PlanStep(Record):
    """A step (``1``) or a substep (``1.1``) of a plan; a substep calls a tool or none.

    Attributes:
        tool: Name of the tool; None for a substep that needs none, and for a step.
        arguments: Literals, or references to fields of earlier outputs.
    """

    step: str
    text: str = ""
    tool: str | None = None
    arguments: dict[str, Any] = {}


class SlateCase(Record):
    """A case.

    Attributes:
        outputs: The recorded output of each substep that calls a tool, by its number.
    """

    id: str
    query: str
    category: str | None = None
    plan: tuple[PlanStep, ...]
    tools: tuple[SlateTool, ...]
    outputs: dict[str, Any]

    @cached_property
    def substeps(self) -> tuple[PlanStep, ...]:
        """The substeps in order."""
        return tuple(step for step in self.plan if "." in step.step)

    @cached_property
    def sinks(self) -> tuple[str, ...]:
        """Substeps whose output no later call consumes: together the result of the plan."""
        calling = [step for step in self.substeps if step.tool is not None]
        used = {number for step in calling for number, _ in references(step.arguments)}
        return tuple(step.step for step in calling if step.step not in used)


def references(arguments: object) -> Iterator[tuple[str, str]]:
    """Yields the substep and the field of every reference within arguments."""
    if isinstance(arguments, str):
        yield from _REFERENCE.findall(arguments)
    elif isinstance(arguments, dict | list):
        held = cast("dict[str, Any] | list[Any]", arguments)
        for value in [*held.values()] if isinstance(held, dict) else held:
            yield from references(value)


def validate(case: SlateCase) -> Iterator[Finding]:
    """Yields what is wrong with the data flow of a case.

    References must point backwards, to a substep that calls a tool, and name a field of its result;
    the first call can use literals alone. The same tool in consecutive substeps is suspected. The
    rules ``unknown-tool``, ``unknown-step``, ``forward-reference`` and ``no-output`` leave figures
    without meaning.
    """
    tools = {tool.name: tool for tool in case.tools}
    numbers = [step.step for step in case.substeps]
    made: dict[str, SlateTool | None] = {}
    before: str | None = None
    for number, times in Counter(numbers).items():
        if times > 1:
            yield _found("repeated-step", number, f"Step {number} is there {times} times.")
    for step in case.substeps:
        if step.tool is not None and step.tool not in tools:
            yield _found("unknown-tool", step.step, f"No tool is called {step.tool!r}.")
        if step.tool is not None and step.step not in case.outputs:
            yield _found("no-output", step.step, "The output of the reference is not recorded.")
        for number, field in references(step.arguments):
            if number in numbers and number not in made:
                message = f"Step {number} does not come before."
                yield _found("forward-reference", step.step, message)
            else:
                yield from _unusable(case, step.step, number, field, made.get(number))
        if step.tool is not None and step.tool == before:
            message = f"{step.tool} is called in two steps that follow each other."
            yield _found("same-tool-again", step.step, message, certainty="suspected")
        before = step.tool
        made[step.step] = None if step.tool is None else tools.get(step.tool)


def _found(rule: str, number: str, message: str, *, certainty: Certainty = "proven") -> Finding:
    where = f"plan.{number}"
    return Finding(code=None, certainty=certainty, where=where, message=message, rule=rule)


def _unusable(
    case: SlateCase, where: str, number: str, field: str, tool: SlateTool | None
) -> Iterator[Finding]:
    """What is wrong with a reference to a field of an earlier substep's output."""
    if tool is None or number not in case.outputs:
        message = f"There is no step {number} that calls a tool."
        yield _found("unknown-step", where, message)
    elif tool.fields and field.partition(".")[0] not in tool.fields:
        yield _found("undeclared-field", where, f"{tool.name} declares no result {field!r}.")
    elif _field(case.outputs[number], field) is _MISSING:
        yield _found("field-not-recorded", where, f"Output {number} has no {field!r}.")


_FATAL = ("unknown-tool", "unknown-step", "forward-reference", "no-output", "repeated-step")


def read_cases(path: Path) -> tuple[dict[str, SlateCase], str]:
    """Reads cases by id, and a hash of the file.

    Raises:
        InputError: If the file can't be read, or a case is none: a field is missing, an id is there
            twice, no substep calls a tool, or its data flow leaves figures without meaning.
    """
    cases: dict[str, SlateCase] = {}
    digest = sha256()
    for line in read_lines(path, digest=digest):
        try:
            if isinstance(line.values, RowError):
                raise line.values
            case = SlateCase.model_validate(line.values)
            _check(case, cases)
        except (RowError, ValidationError) as error:
            complaint = row_error(error) if isinstance(error, ValidationError) else error
            raise InputError(f"{path}:{line.number}: {complaint}") from None
        cases[case.id] = case
    if not cases:
        raise InputError(f"{path}: expected cases, got none")
    return cases, digest.hexdigest()


def _check(case: SlateCase, others: Collection[str]) -> None:
    """Raises RowError for a case of which no figure would mean anything."""
    if case.id in others:
        raise RowError("id", "an id that occurs once", case.id)
    if not case.sinks:
        raise RowError("plan", "a substep with a tool", f"{len(case.substeps)} substeps without")
    fatal = next((finding for finding in validate(case) if finding.rule in _FATAL), None)
    if fatal is not None:
        raise RowError(fatal.where, "a data flow that can be followed", fatal.message)


# Values -------------------------------------------------------------------------------------------


def _field(output: object, path: str) -> Any:
    """A field of an output, by its dotted path; ``_MISSING`` where it has none."""
    value: Any = output
    for name in path.split("."):
        if isinstance(value, list) and name.isdecimal():
            held = cast("list[Any]", value)
            value = held[int(name)] if int(name) < len(held) else _MISSING
        elif isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(name, _MISSING)
        else:
            return _MISSING
    return value


def resolved(arguments: Any, outputs: Mapping[str, Any]) -> Any:
    """Arguments with every reference replaced by what the outputs hold; ``_MISSING`` for nothing.

    A text that is one reference becomes the value itself, within a longer text its words.
    """
    if isinstance(arguments, dict):
        held = cast("dict[str, Any]", arguments)
        return {name: resolved(value, outputs) for name, value in held.items()}
    if isinstance(arguments, list):
        return [resolved(value, outputs) for value in cast("list[Any]", arguments)]
    if not isinstance(arguments, str):
        return arguments
    if whole := _REFERENCE.fullmatch(arguments):
        return _field(outputs.get(whole[1]), whole[2])
    return _REFERENCE.sub(lambda m: str(_field(outputs.get(m[1]), m[2])), arguments)


def same(first: Any, second: Any) -> Literal["exact", "canonical", ""]:
    """Whether two values are the same: as JSON, or once written in one way.

    Canonical: numbers also as text (35, 35.00, "35"), ISO dates and times, yes and no in words,
    letter case and blanks. Free text that means the same is not seen here.
    """
    if first is _MISSING or second is _MISSING:
        return ""
    if _exact(first, second):
        return "exact"
    if isinstance(first, dict) and isinstance(second, dict):
        one, other = cast("dict[str, Any]", first), cast("dict[str, Any]", second)
        alike = one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    elif isinstance(first, list) and isinstance(second, list):
        ours, theirs = cast("list[Any]", first), cast("list[Any]", second)
        alike = len(ours) == len(theirs) and all(map(same, ours, theirs))
    else:
        alike = _canonical(first) == _canonical(second)
    return "canonical" if alike else ""


def _exact(first: Any, second: Any) -> bool:
    """Equality of JSON values, in which true is not 1."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        one, other = cast("dict[str, Any]", first), cast("dict[str, Any]", second)
        return one.keys() == other.keys() and all(_exact(one[k], other[k]) for k in one)
    if isinstance(first, list) and isinstance(second, list):
        ours, theirs = cast("list[Any]", first), cast("list[Any]", second)
        return len(ours) == len(theirs) and all(map(_exact, ours, theirs))
    return first == second


_WORDS: Mapping[str, bool] = {"true": True, "yes": True, "false": False, "no": False}


def _canonical(value: Any) -> Any:
    """A scalar in one way of writing it; the kind keeps true from 1."""
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int | float):
        return "number", float(value)
    if not isinstance(value, str):
        return "other", value
    text = " ".join(value.split()).casefold()
    readings: tuple[tuple[str, Callable[[str], Any]], ...] = (
        ("bool", _WORDS.__getitem__),
        ("number", float),
        ("date", lambda text: datetime.fromisoformat(text.upper())),
    )
    for kind, read in readings:
        with suppress(LookupError, ValueError):
            return kind, read(text)
    return "text", text


def _output_of(step: TrajectoryStep) -> Any:
    """What a step's call returned, parsed where it is JSON as text; ``_MISSING`` for nothing."""
    if not step.observations:
        return _MISSING
    content = step.observations[-1].content
    if isinstance(content, str):
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError:
            return content
    return content


# Evaluation ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlateEvaluator:
    """Holds executions against the reference execution of their case."""

    by_id: Mapping[str, SlateCase]
    digest: str

    @property
    def cases(self) -> Collection[str]:
        """Ids of the cases."""
        return self.by_id.keys()

    def evaluate(self, trajectory: Trajectory) -> Evaluation:
        """Evaluates an execution.

        A step of the agent says in ``extra["substep"]`` which substep it is; where none does, the
        i-th is the i-th substep. Of several for one substep the last one counts, and a substep that
        was never reached agrees with nothing. References are resolved by what the *agent's own*
        calls returned, so that an error is followed to where it leads. ``extra["output"]`` may say
        how a simulator found an output (``TAGS``).

        Raises:
            RowError: If there is no such case, or the steps can't be told apart.
        """
        case = self.by_id.get(trajectory.case_id)
        if case is None:
            raise RowError("case_id", "the id of a case", trajectory.case_id)
        done = _by_substep(trajectory, case)
        counts: Counter[str] = Counter()
        outputs: dict[str, Any] = {}
        faults: list[tuple[str, int | None]] = []
        for number in (step.step for step in case.substeps):
            at = done.get(number)
            step = None if at is None else trajectory.steps[at]
            fault = _compare(case, number, step, outputs, counts)
            if fault:
                faults.append((fault, at))
            if step is not None and step.calls:
                outputs[number] = _output_of(step)
                tag = step.extra.get("output")
                counts[f"outputs {tag}"] += tag in TAGS
                counts["outputs tagged"] += tag in TAGS
        final = [_exact(outputs.get(n, _MISSING), case.outputs[n]) for n in case.sinks]
        last = case.sinks[-1]  # in the order of the plan
        failure = "" if all(final) else faults[0][0] if faults else "wrong output"
        measures = {name: float(counts[name]) for name in _counted(counts)}
        measures["correct (last call)"] = float(
            _exact(outputs.get(last, _MISSING), case.outputs[last])
        )
        return Evaluation(
            is_correct=all(final),
            measures=measures | {f"used {k}": float(v) for k, v in trajectory.usage.items()},
            classes={"failure": failure} if failure else {},
            first_error=next((at for _, at in faults if at is not None), None),
            reasoning=f"{sum(final)} of {len(final)} final outputs are those of the reference",
            findings=tuple(validate(case)),
            groups={"category": case.category} if case.category else {},
        )


def _counted(counts: Counter[str]) -> list[str]:
    names = (
        "substeps",
        "actions agree",
        "tool substeps",
        "tools match",
        "arguments match",
        "arguments match exactly",
        "unresolved references",
    )
    tags = [f"outputs {tag}" for tag in (*TAGS, "tagged")] if counts["outputs tagged"] else []
    return [*names, *tags]


def _by_substep(run: Trajectory, case: SlateCase) -> dict[str, int]:
    """The index of the step that carried out each substep."""
    agent = [i for i, step in enumerate(run.steps) if step.source == "agent"]
    named = {i: run.steps[i].extra["substep"] for i in agent if "substep" in run.steps[i].extra}
    numbers = [step.step for step in case.substeps]
    if named:
        if strange := [str(name) for name in named.values() if name not in numbers]:
            raise RowError("steps.extra.substep", f"a substep of case {case.id}", strange[0])
        return {str(name): i for i, name in named.items()}
    if len(agent) != len(numbers):
        expected = f"extra.substep in each step, or {len(numbers)} steps, one a substep"
        raise RowError("steps", expected, f"{len(agent)} steps of the agent")
    return dict(zip(numbers, agent, strict=True))


def _compare(
    case: SlateCase,
    number: str,
    step: TrajectoryStep | None,
    outputs: Mapping[str, Any],
    counts: Counter[str],
) -> str:
    """Counts what agrees in a substep; says what the first thing is that does not."""
    reference = next(substep for substep in case.substeps if substep.step == number)
    call = step.calls[-1] if step is not None and step.calls else None
    agrees = step is not None and (call is not None) == (reference.tool is not None)
    counts["substeps"] += 1
    counts["actions agree"] += agrees
    if reference.tool is None:
        return "" if agrees else "wrong action"
    counts["tool substeps"] += 1
    if call is None:
        return "wrong action"
    counts["unresolved references"] += sum(
        _field(outputs.get(of), field) is _MISSING for of, field in references(call.arguments)
    )
    if call.name != reference.tool:
        return "wrong tool"
    counts["tools match"] += 1
    wanted, given = (resolved(of.arguments, outputs) for of in (reference, call))
    how = same(wanted, given)
    counts["arguments match"] += how != ""
    counts["arguments match exactly"] += how == "exact"
    return "" if how else "wrong arguments"


def _evaluator(settings: EvaluatorSettings) -> SlateEvaluator:
    if settings.cases is None:
        raise OptionError(f"--cases: expected {NEEDS}, got nothing")
    return SlateEvaluator(*read_cases(settings.cases))


# The protocol -------------------------------------------------------------------------------------

RATE = (0.0, 1.0)
FIGURES = (
    Figure(
        name="action identification",
        of="actions agree",
        per="substeps",
        meaning="substeps where tool or none is as in the reference",
    ),
    Figure(
        name="tool match",
        of="tools match",
        per="tool substeps",
        meaning="substeps with a tool where it is the reference's",
    ),
    Figure(
        name="argument match",
        of="arguments match",
        per="tools match",
        meaning="of those, arguments that are the same once written in one way",
    ),
    Figure(name="exact arguments", of="arguments match exactly", per="tools match"),
    Figure(name="last call right", of="correct (last call)", meaning="final result, read so"),
    *(
        Figure(name=f"failed by {name}", of=f"failure={name}", meaning="of failed executions")
        for name in ("wrong action", "wrong tool", "wrong arguments", "wrong output")
    ),
    *(Figure(name=f"outputs {tag}", of=f"outputs {tag}", per="outputs tagged") for tag in TAGS),
)
COSTS = (
    Figure(name="seconds", of="used seconds"),
    Figure(name="input tokens", of="used prompt_tokens"),
    Figure(name="output tokens", of="used completion_tokens"),
    Figure(name="model calls", of="used calls"),
)
SLATE = TrajectoryProtocol(
    name="slate",
    success="execution success",
    figures=(*(replace(f, bounds=RATE) for f in FIGURES), *COSTS),
    evaluator=_evaluator,
    needs_cases=NEEDS,
    paper="arXiv:2604.12126",
    tables=(
        RunTable(
            key="slate",
            title="Execution of given plans",
            number="Tables 3 and 4",
            figures=(
                *("execution success", "tool match", "action identification"),
                *("argument match", "exact arguments", "last call right"),
            ),
        ),
        RunTable(
            key="slate-costs",
            title="What an execution takes",
            number="Table 5",
            figures=("execution success", *(figure.name for figure in COSTS)),
        ),
        RunTable(
            key="slate-failures",
            title="Where executions first go wrong, and how their outputs were found",
            figures=tuple(f.name for f in FIGURES if f.name.startswith(("failed", "outputs"))),
        ),
    ),
)
