"""The evaluator of the protocol ``slate``: a given execution of a plan against its case.

A user's own execution is a row of our format for trajectories, with a step for each substep:

    {"trajectory_id": "r1", "case_id": "c1", "tested_model": "m",
     "place": {"format": "trajectories"},
     "steps": [{"source": "agent", "kind": "call", "extra": {"substep": "1.1", "output": "matched"},
                "calls": [{"name": "find_berth", "arguments": {"ship": "Alma"}}],
                "observations": [{"content": {"id": "B4"}}]},
               {"source": "agent", "text": "No tool is needed.", "extra": {"substep": "1.3"}}]}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from ...errors import OptionError, RowError
from ...records import Finding
from ...records.loose_json import as_list, as_object, lenient
from ...records.trajectories import ToolCall, Trajectory, TrajectoryStep
from ..base import Evaluation, EvaluatorSettings
from ..comparison import TextPair
from .cases import PlanStep, SlateCase, SlateTool, load_cases, resolved, validate
from .equality import Schema, is_equal_in_meaning, is_equivalent, is_same

NEEDS = "a JSONL file of SLATE cases"
OutputTag = Literal["matched", "equivalent", "default", "error"]
"""Source of a simulated output: recorded for this very call, recorded for an equivalent call, the
tool's default, or an error."""
OUTPUT_TAGS: tuple[OutputTag, ...] = get_args(OutputTag)
Equality = Literal["exact", "canonical", "judge"]
"""The way in which an output equals the recorded one: as JSON, up to spelling, or with free texts
that a model considers equivalent."""
Fault = Literal["wrong action", "wrong tool", "wrong arguments", "wrong output"]
"""A failed trajectory's first departure from the reference; ``wrong output`` without one."""


class SlateAction(NamedTuple):
    """An action of a trajectory for a substep.

    Attributes:
        place: Position of the step in the trajectory.
        substep: The substep that it is for.
        call: The call; None without one.
        is_readable: True if it states the agent's intention: a call, or none.
        output: The value that the call returned, which may be None; empty if it returned nothing.
        tag: Source of the output; empty if the log does not state it.
    """

    place: int
    substep: str
    call: ToolCall | None
    is_readable: bool
    output: tuple[Any, ...]
    tag: str


class PlanComparison(NamedTuple):
    """Agreement of an action with the reference; each field requires the one before it.

    Attributes:
        action: Both call a tool, or neither.
        tool: They call the same tool.
        arguments: Their arguments are equal up to spelling.
        exact: Their arguments are the same JSON.
    """

    action: bool = False
    tool: bool = False
    arguments: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True)
class SlateEvaluator:
    """Compares trajectories with the reference plans and outputs of their cases.

    Attributes:
        same_text: Returns True if free texts mean the same; outputs then count if they equal the
            recorded ones up to spelling, or by its answer. None to count only the same JSON.
    """

    by_id: Mapping[str, SlateCase]
    digest: str = ""
    same_text: Callable[[TextPair], bool] | None = None

    @property
    def cases(self) -> Collection[str]:
        """Ids of the cases."""
        return self.by_id.keys()

    def evaluate(self, trajectory: Trajectory) -> Evaluation:
        """Evaluates a trajectory; see ``protocol`` for the measures.

        It succeeds if all final outputs (``SlateCase.final``) are the recorded ones, whatever
        happened before. A substep that the trajectory never reached agrees with the reference in
        nothing. References, in the plan and in the agent's arguments, are resolved from the agent's
        own earlier outputs: a wrong output that is passed on is a wrong output, not a wrong
        argument. A reference that leads nowhere equals only itself. Arguments are compared if the
        tool is right, and agree as a whole or not at all. With ``same_text``, ``details`` states
        the way in which each final output equals the recorded one, and the texts compared.

        Raises:
            RowError: If there is no such case, its plan calls no tool, or the trajectory does not
                state the substeps of its steps and the outputs of its calls.
            UncomparedTexts: If ``same_text`` raises it.
        """
        case = self.by_id.get(trajectory.case_id)
        if case is None:
            raise RowError("case_id", "a case of the file of cases", trajectory.case_id)
        if not case.calls:
            raise RowError("case_id", "a case whose plan calls a tool", trajectory.case_id)
        try:
            actions = list(actions_of(trajectory, case))
            return _evaluation(case, actions, self.same_text, _tools_in_memory(trajectory))
        except RecursionError:
            raise RowError("steps", "values nested less deeply", trajectory.case_id) from None


@dataclass(slots=True)
class _Texts:
    """The texts of a trajectory that are compared with recorded ones.

    Attributes:
        ask: Returns True if two mean the same; None for no such comparison.
        compared: Its answers.
    """

    ask: Callable[[TextPair], bool] | None
    compared: dict[TextPair, bool] = field(default_factory=dict[TextPair, bool])

    def agree(
        self, tool: str, of: Literal["argument", "output"], one: Any, other: Any, schema: Schema
    ) -> bool:
        """True if two values differ only in free texts, all of which mean the same."""
        ask = self.ask
        if ask is None:
            return False

        def same_text(recorded: str, asked: str) -> bool:
            pair = TextPair(tool, recorded, asked, of)
            self.compared[pair] = ask(pair)
            return self.compared[pair]

        return is_equal_in_meaning(one, other, schema, same_text)

    def equality(self, tool: SlateTool, recorded: Any, output: Any) -> Equality | None:
        """The way in which an output equals the recorded one; None if it does not."""
        if is_same(recorded, output):
            return "exact"
        schema = tool.results_schema
        if self.ask is not None and is_equivalent(recorded, output, schema):
            return "canonical"
        return "judge" if self.agree(tool.name, "output", recorded, output, schema) else None


def _evaluation(
    case: SlateCase,
    actions: list[SlateAction],
    ask: Callable[[TextPair], bool] | None,
    tools_in_memory: Collection[str] | None,
) -> Evaluation:
    texts = _Texts(ask)
    plan = {step.step: step for step in case.substeps}
    outputs: dict[str, Any] = {}
    comparisons = dict.fromkeys(plan, PlanComparison())
    for action in actions:
        comparisons[action.substep] = _compare(action, plan[action.substep], case, outputs, texts)
        if action.output:
            outputs[action.substep] = action.output[0]
    tools = {call.step: _tool_of(case, call.tool or "") for call in case.calls}

    def equality(step: str, output: Any) -> Equality | None:
        return texts.equality(tools[step], case.outputs[step], output)

    equalities: dict[str, Equality | None]
    equalities = {step: equality(step, outputs[step]) for step in case.final if step in outputs}
    wrong = [step for step in case.final if not equalities.get(step)]
    last = next((action.output for action in reversed(actions) if action.call), ())
    is_last_right = bool(last) and equality(case.calls[-1].step, last[0]) is not None
    found = comparisons.values()
    measures: dict[str, float] = {
        "substeps": len(plan),
        "actions identified": sum(each.action for each in found),
        "calls due": len(case.calls),
        "tools matched": sum(each.tool for each in found),
        "arguments matched": sum(each.arguments for each in found),
        "arguments matched exactly": sum(each.exact for each in found),
        "last output right": float(is_last_right),
    }
    measures.update(_memory_measures(case, comparisons, tools_in_memory, is_correct=not wrong))
    if tags := [action.tag for action in actions if action.tag]:
        measures["tagged outputs"] = len(tags)
        measures |= {f"{tag} outputs": tags.count(tag) for tag in OUTPUT_TAGS}
    faults = ((s, fault) for s in plan if (fault := _fault(comparisons[s], plan[s])))
    departure, fault = next(faults, ("", "wrong output"))
    outcome = "all final outputs are the reference's"
    if wrong:
        outcome = f"the output of {', '.join(wrong)} is not the reference's"
    return Evaluation(
        is_correct=not wrong,
        measures=measures,
        classes={"failure": fault} if wrong else {},
        first_error=next((a.place for a in actions if a.substep == departure), None),
        reasoning=outcome
        + (f"; the trajectory departs from the plan at {departure}" if departure else ""),
        findings=tuple(map(_of_case, validate(case))),
        groups={"category": case.category} if case.category else {},
        details={} if ask is None else _details(equalities, texts.compared),
    )


def _tools_in_memory(trajectory: Trajectory) -> list[str] | None:
    """The plan's tools that the agent's memory of other cases has; None without a memory."""
    memory = as_object(trajectory.extra.get("memory"))
    tools = as_list(memory and memory.get("tools"))
    return None if tools is None else list(map(str, tools))


def _memory_measures(
    case: SlateCase,
    comparisons: Mapping[str, PlanComparison],
    tools: Collection[str] | None,
    *,
    is_correct: bool,
) -> Iterator[tuple[str, float]]:
    """Yields the measures for the reference's tools in a memory, and for those outside of it."""
    if tools is None:
        return
    inside = [call.step for call in case.calls if call.tool in tools]
    outside = [call.step for call in case.calls if call.tool not in tools]
    for place, steps in (("inside", inside), ("outside", outside)):
        yield f"calls due {place} memory", len(steps)
        yield f"tools matched {place} memory", sum(comparisons[step].tool for step in steps)
    yield f"right {'outside' if outside else 'inside'} memory", float(is_correct)


def _details(
    equalities: Mapping[str, Equality | None], compared: Mapping[TextPair, bool]
) -> dict[str, Any]:
    """Facts about outputs and texts, for the judgement."""
    pairs = [{**pair._asdict(), "same": is_same} for pair, is_same in compared.items()]
    return {"outputs": {step: way or "other" for step, way in equalities.items()}, "texts": pairs}


def wrong_outputs(case: SlateCase, outputs: Mapping[str, Any]) -> list[str]:
    """The final calls (``SlateCase.final``) without an output, or with another than recorded.

    Args:
        case: The case.
        outputs: Outputs of the trajectory's calls, by substep.
    """
    return [step for step in case.final if is_wrong_output(case, outputs, step)]


def is_wrong_output(case: SlateCase, outputs: Mapping[str, Any], step: str) -> bool:
    """True if the call of a substep has no output, or another than recorded."""
    return step not in outputs or not is_same(outputs[step], case.outputs[step])


def _compare(
    action: SlateAction,
    expected: PlanStep,
    case: SlateCase,
    outputs: Mapping[str, Any],
    texts: _Texts,
) -> PlanComparison:
    call = action.call
    is_identified = action.is_readable and (call is None) == (expected.tool is None)
    if call is None or not is_identified or call.name != expected.tool:
        return PlanComparison(is_identified)
    schema = _tool_of(case, call.name).arguments_schema
    passed = call.arguments
    if passed is None and not call.parse_error:  # the form of a call without arguments
        passed = dict[str, Any]()
    both = resolved(expected.arguments, outputs), resolved(passed, outputs)
    return PlanComparison(
        action=True,
        tool=True,
        arguments=is_equivalent(*both, schema) or texts.agree(call.name, "argument", *both, schema),
        exact=is_same(*both),
    )


def _tool_of(case: SlateCase, name: str) -> SlateTool:
    """The tool of a case by its name; if the case defines none, one without an interface."""
    return case.tools_by_name.get(name) or SlateTool(name=name)


def _fault(comparison: PlanComparison, expected: PlanStep) -> Fault | None:
    """The first difference between an action and the reference; None if they agree."""
    if not comparison.action:
        return "wrong action"
    if expected.tool is None or comparison.arguments:
        return None
    return "wrong arguments" if comparison.tool else "wrong tool"


def _of_case(finding: Finding) -> Finding:
    """A fault of the case, which decides nothing about a trajectory."""
    where = f"case.{finding.where}"
    return finding.model_copy(update={"certainty": "suspected", "where": where})


# Actions ------------------------------------------------------------------------------------------


def actions_of(trajectory: Trajectory, case: SlateCase) -> Iterator[SlateAction]:
    """The actions of a trajectory in order.

    Steps of the agent state their ``substep`` in ``extra``; then a step without one is only a
    message. If none states it, each step except an ``answer`` is for the substep at its place. A
    trajectory without any such step has no actions.

    Raises:
        RowError: If that does not fit the plan, a step makes several calls, or a call does not have
            one output (an unreadable one, or one tagged ``error``, may have none).
    """
    agent = [(i, step) for i, step in enumerate(trajectory.steps) if step.source == "agent"]
    ids = [step.step for step in case.substeps]
    if any("substep" in step.extra for _, step in agent):
        seen: set[str] = set()
        for i, step in agent:
            mark = step.extra.get("substep")
            if mark is None and not step.calls:
                continue
            if mark not in ids or mark in seen:
                expected = "a substep of the plan that no other step is for"
                raise RowError(f"steps.{i}.extra.substep", expected, mark)
            seen.add(mark)
            yield _action(i, step, mark, case)
        return
    agent = [(i, step) for i, step in agent if step.kind != "answer"]
    if not agent:
        return
    if len(agent) != len(ids):
        expected = f"extra.substep, or one step of the agent for each of {len(ids)} substeps"
        raise RowError("steps", expected, f"{len(agent)} steps of the agent")
    for (i, step), substep in zip(agent, ids, strict=True):
        yield _action(i, step, substep, case)


def _action(index: int, step: TrajectoryStep, substep: str, case: SlateCase) -> SlateAction:
    if len(step.calls) > 1:
        raise RowError(f"steps.{index}.calls", "one call or none", f"{len(step.calls)} calls")
    is_readable = step.kind != "invalid"
    if not step.calls:
        return SlateAction(index, substep, None, is_readable, (), "")
    call, tag = step.calls[0], step.extra.get("output", "")
    if tag and tag not in OUTPUT_TAGS:
        raise RowError(f"steps.{index}.extra.output", f"one of {', '.join(OUTPUT_TAGS)}", tag)
    answers = [each for each in step.observations if each.call_id == call.call_id]
    answers = answers or step.observations
    has_failed = tag == "error" or call.parse_error or not is_readable
    if len(answers) != 1 and not (has_failed and not answers):
        raise RowError(f"steps.{index}.observations", "one output of the call", len(answers))
    if has_failed or answers[0].is_error:
        return SlateAction(index, substep, call, is_readable, (), tag)
    content = answers[0].content
    if isinstance(content, str) and not isinstance(case.outputs.get(substep), str):
        value, is_json = lenient(content)
        content = value if is_json else content
    return SlateAction(index, substep, call, is_readable, (content,), tag)


def evaluator_of(settings: EvaluatorSettings) -> SlateEvaluator:
    """The evaluator for a log; see ``TrajectoryProtocol``.

    Raises:
        OptionError: If the path of the cases is not given.
        InputError: If they are unusable.
    """
    if settings.cases is None:
        raise OptionError(f"--cases: expected {NEEDS}, got nothing")
    return SlateEvaluator(*load_cases(settings.cases), settings.same_text)
