"""The environment: an agent's actions, the values that it holds, and the end of its episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import orjson

from ....errors import RowError
from ....records.trajectories import (
    Execution,
    LogPlace,
    Outcome,
    Retrieval,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from ....trajectories.planbench.data import PlanbenchTool, Query, as_compared
from ....trajectories.planbench.measures import UNTRUSTED_INPUT, is_contaminated, verdicts
from ..base import Score
from .blocking import BlockPlan
from .config import EpisodeConfig
from .database import FAILING, PlanBenchDatabase
from .prompts import prompts_of
from .search import ToolSearch, read_request

Fault = Literal["label", "retrieval", "tool_call"]
FOLLOWED = "normal"
"""Termination of an episode that ended by a right answer."""


RETRIEVE, ANSWER = "retrieve_tools", "final_answer"


def _function(name: str, description: str, properties: Mapping[str, Any], *required: str) -> Any:
    schema = {"type": "object", "properties": {**properties}, "required": [*required]}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


_PHRASES = {
    "type": "array",
    "items": {"type": "string"},
    "minItems": 1,
    "maxItems": 2,
    "description": "For by_inputs and by_io_info: what the tool takes, one or two short phrases.",
}
_META_TOOLS = {"type": "string", "enum": ["by_output_info", "by_inputs", "by_io_info"]}
_ALWAYS = (
    _function(
        RETRIEVE,
        "Searches for tools by what they return, what they take, or both.",
        {
            "meta_tool": _META_TOOLS,
            "input_information": _PHRASES,
            "output_information": {
                "type": "string",
                "description": "For by_output_info and by_io_info: what it returns, a phrase.",
            },
        },
        "meta_tool",
    ),
    _function(
        ANSWER, "States the answer and ends the task.", {"answer": {"type": "string"}}, "answer"
    ),
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply and the environment's reaction.

    Attributes:
        step: The step of the trajectory, without the text for the agent.
        notice: Text for the agent in addition to a result; empty for none.
        about: Name of the notice.
    """

    step: TrajectoryStep
    notice: str = ""
    about: str = ""


class PlanBenchRules:
    """A database with the settings and texts that determine its episodes.

    Attributes:
        database: The tools and records.
        config: The settings.
        plan: Block plan; None for none.
        search: Searches in that database.
        prompts: Texts for agents.
    """

    def __init__(
        self,
        database: PlanBenchDatabase,
        config: EpisodeConfig | None = None,
        plan: BlockPlan | None = None,
    ) -> None:
        self.database, self.plan = database, plan
        self.config = config or EpisodeConfig()
        self.search = ToolSearch(database, self.config)
        self.prompts = prompts_of(self.config, database)

    @property
    def setting(self) -> str:
        """The condition in a few words."""
        usual = "default" if self.config.tasks == "queries" else self.config.tasks
        setting = self.plan.setting if self.plan else usual
        return f"{setting}, feedback" if self.config.explore else setting


class PlanBenchEnvironment:
    """An episode as an ``Environment``; every action is one turn.

    Search and answer are tools; each tool that a search returns can be called from then on.

    Attributes:
        rules: Rules of all episodes.
        query: Query of the task.
        turns: Turns so far.
        discovered: Tools that can be called, in the order in which searches returned them.
        ended: Reason for the end, in the benchmark's words; empty while the episode continues.
        final_answer: The answer that ended it; None without one.
        held: Datatypes of the query's inputs and of outputs of executable tools.
        trusted: Values of the query and of executable tools, each with its datatype.
        untrusted: Values of noisy tools and blockers, likewise.
        faults: Number of faults of each kind in a row.
    """

    query: Query
    turns: list[Turn]
    discovered: dict[str, None]
    ended: str
    final_answer: str | None
    held: set[str]
    trusted: set[tuple[str, str]]
    untrusted: set[tuple[str, str]]
    faults: dict[Fault, int]

    def __init__(self, rules: PlanBenchRules) -> None:
        self.rules = rules

    def reset(self, task: str) -> None:
        """Begins the episode of a query; raises RowError if there is none."""
        rules, query = self.rules, self.rules.database.data.queries.get(task)
        if query is None:
            raise RowError("case_id", "a query of the benchmark's data", task)
        self.query, self.turns, self.discovered = query, [], {}
        self.ended, self.final_answer, self._wrong_answers = "", None, 0
        plan = rules.plan.tasks.get(query.task_id) if rules.plan else None
        self._blocked: Mapping[str, Sequence[str]] = plan.blocked if plan else {}
        self.held = {*query.input_datatypes}
        known = query.input_values.items()
        self.trusted = {(datatype, as_compared(value)) for datatype, value in known}
        self.untrusted = set()
        self.faults = {"label": 0, "retrieval": 0, "tool_call": 0}

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """The search, the answer, and the tools that searches returned so far."""
        tools = (self.rules.database.definitions[name] for name in self.discovered)
        return (*_ALWAYS, *tools)

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Carries out a call, as one turn; after the end, returns an error."""
        if self.ended:
            return ToolResult(f"the task has ended: {self.ended}", name=name, is_error=True)
        request = {"name": name, "arguments": {**arguments}}
        reply = orjson.dumps(request, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        if name == RETRIEVE:
            self.search(arguments, reply)
        elif name == ANSWER:
            self.conclude(str(arguments.get("answer", "")), reply)
        else:
            self.use_tool(request, reply)
        return self._observation(name)

    def score(self) -> Score:
        """1 after a right answer, else 0; with the reason for the end."""
        details = {"ended": self.ended, "turns": len(self.turns)}
        return Score(float(self.ended == FOLLOWED), details)

    def _observation(self, name: str) -> ToolResult:
        """The result of the last turn; for a search, the definitions of its tools."""
        turn = self.turns[-1]
        retrieval, execution = turn.step.retrieval, turn.step.execution
        if retrieval is not None and retrieval.tools is not None:
            tools = [self.rules.database.definitions[tool.name] for tool in retrieval.tools]
            return ToolResult({"tools": tools, "note": turn.notice}, name=name, is_error=False)
        if execution is not None and execution.was_executed:
            content = {"output_value": execution.output_value, "note": turn.notice}
            return ToolResult(content, name=name, is_error=not execution.success)
        is_error = turn.step.kind != "answer" or bool(turn.notice)
        return ToolResult(turn.notice or self.ended, name=name, is_error=is_error)

    # Actions --------------------------------------------------------------------------------------

    def misread(self, reply: str) -> None:
        """Counts a fault for a reply that is not exactly one action."""
        self._fault("label", TrajectoryStep("agent", "invalid", reply), "no_tag")

    def search(self, content: Mapping[str, Any] | None, reply: str) -> None:
        """Carries out a search; ``content`` is None if it could not be read."""
        self.faults["label"] = 0
        named = (content or {}).get("meta_tool")
        meta_tool = named.strip() if isinstance(named, str) else ""
        asked = Retrieval(
            by_inputs=meta_tool in {"by_inputs", "by_io_info"},
            by_output=meta_tool in {"by_output_info", "by_io_info"},
        )
        step = TrajectoryStep("agent", "retrieve", reply, retrieval=asked)
        if content is None or not meta_tool:
            self._fault("retrieval", step, "search_no_json")
            return
        request = read_request(content)
        if request is None:
            step = replace(step, extra={"request": dict(content)})
            self._fault("retrieval", step, "search_form")
            return
        self.faults["retrieval"] = 0
        result = self.rules.search.search(request, self.query, self._blocked)
        self.discovered.update(dict.fromkeys(tool.name for tool in result.tools))
        tools = tuple(self.rules.database.retrieved[tool.name] for tool in result.tools)
        retrieval = replace(asked, inputs=result.inputs, outputs=result.outputs, tools=tools)
        step = replace(step, retrieval=retrieval, extra={"request": request.to_json()})
        self._add(step, "" if tools else "no_match")

    def use_tool(self, content: Mapping[str, Any] | None, reply: str) -> None:
        """Calls a discovered tool if the call passes all checks; ``content`` as in ``search``."""
        self.faults["label"] = 0
        content = content or {}
        named = next(
            (n for key in ("name", "tool_name") if isinstance(n := content.get(key), str)), None
        )
        arguments = content.get("arguments")
        is_named = named is not None or isinstance(content.get("tool_id"), str)
        if not is_named or not isinstance(arguments, dict):
            call = ToolCall("", parse_error="no JSON object with a name and arguments")
            self._reject(call, reply, "", "call_no_json")
            return
        call = ToolCall(named or "", cast("dict[str, Any]", arguments))
        tool = self.rules.database.tools[call.name] if call.name in self.discovered else None
        if tool is None:
            self._reject(call, reply, "tool_not_available", "call_unknown")
            return
        datatypes = tool.surface_argument_to_datatype
        if call.arguments.keys() != datatypes.keys():
            self._reject(call, reply, "wrong_arguments", "call_arguments")
            return
        values = {datatypes[argument]: value for argument, value in call.arguments.items()}
        inputs = {(datatype, as_compared(value)) for datatype, value in values.items()}
        if inputs & self.untrusted - self.trusted:
            self._reject(call, reply, UNTRUSTED_INPUT, "call_inputs")
        elif not tool.input_datatypes <= self.held:
            self._reject(call, reply, "missing_required_input", "call_inputs")
        else:
            self._execute(tool, call, values, reply)

    def conclude(self, text: str, reply: str) -> None:
        """Ends the episode with an answer, unless it is wrong and exploration is enforced."""
        self.faults["label"] = 0
        step = TrajectoryStep("agent", "answer", reply)
        run = replace(self._run(), final_answer=text)
        grounding, target = self.rules.config.grounding, self.query.target_datatype
        if verdicts(run, self.query)[grounding]:
            code = FOLLOWED
        elif target in self.held and not (
            grounding == "released" and is_contaminated(run, self.query)
        ):
            code = "final_answer_wrong"
        else:
            code = "target_datatype_not_reached"
        is_last = len(self.turns) + 1 >= self.rules.config.max_turns
        if code != FOLLOWED and self._wrong_answers < self.rules.config.explore and not is_last:
            self._wrong_answers += 1
            self._add(step, "wrong_answer")
        else:
            self.turns.append(Turn(step))
            self.final_answer, self.ended = text, code

    # Consequences ---------------------------------------------------------------------------------

    def _execute(
        self, tool: PlanbenchTool, call: ToolCall, values: Mapping[str, Any], reply: str
    ) -> None:
        self.faults["tool_call"] = 0
        kind, notice = self.rules.database.retrieved[tool.name].tool_type, ""
        done = Execution(
            was_executed=True, success=True, output_datatype=tool.output_datatype, tool_type=kind
        )
        if tool.name in self.rules.database.data.baseline:
            outputs = self.rules.database.look_up(tool, values)
            if len(outputs) == 1:
                done = replace(done, output_value=outputs[0], provenance="trusted")
                self.held.add(tool.output_datatype)
                self.trusted.add((tool.output_datatype, as_compared(outputs[0])))
            else:
                notice = "ambiguous" if outputs else "no_record"
        else:
            # a tool without a value returns its description, as in the authors' environment
            value = tool.return_value
            value = tool.description or tool.name if value is None else value
            is_success = tool.noise_type not in FAILING
            done = replace(done, success=is_success, output_value=value, provenance="untrusted")
            self.untrusted.add((tool.output_datatype, as_compared(value)))
        step = TrajectoryStep("agent", "call", reply, calls=(call,), execution=done)
        self._add(step, notice)

    def _reject(self, call: ToolCall, reply: str, rejection: str, notice: str) -> None:
        done = Execution(rejection=rejection)
        step = TrajectoryStep("agent", "call", reply, calls=(call,), execution=done)
        self._fault("tool_call", step, notice)

    def _fault(self, kind: Fault, step: TrajectoryStep, notice: str) -> None:
        self.faults[kind] += 1
        attempt = self.faults[kind]
        if attempt >= self.rules.config.max_faults:
            self.ended = f"exceeded_max_{kind}_errors"
        self._add(step, notice, attempt)

    def _add(self, step: TrajectoryStep, notice: str = "", attempt: int = 0) -> None:
        text = self.rules.prompts.notice(notice, step, attempt) if notice else ""
        self.turns.append(Turn(step, text, notice))
        if not self.ended and len(self.turns) >= self.rules.config.max_turns:
            self.ended = "exceeded_max_steps"

    # The run --------------------------------------------------------------------------------------

    def trajectory(self) -> Trajectory:
        """The run so far; results of searches name the tools, and ``tools`` defines them."""
        run = self._run()
        ambiguous = sum(turn.about == "ambiguous" for turn in self.turns)
        return replace(
            run,
            steps=tuple(map(_with_answer, self.turns)),
            tools=tuple(self.rules.database.definitions[name] for name in self.discovered),
            remarks={"ambiguous records": ambiguous} if ambiguous else {},
        )

    def _run(self) -> Trajectory:
        return Trajectory(
            trajectory_id=self.query.query_id,
            case_id=self.query.query_id,
            tested_model="",
            setting=self.rules.setting,
            query=self.query.query_text,
            system_prompt=self.rules.prompts.system,
            steps=tuple(turn.step for turn in self.turns),
            final_answer=self.final_answer,
            termination=self.ended,
            outcome=Outcome(success=self.ended == FOLLOWED) if self.ended else None,
            place=LogPlace("planbench-xl"),
        )


def _with_answer(turn: Turn) -> TrajectoryStep:
    """The turn's step with the environment's answer as observation."""
    step = turn.step
    retrieval, execution = step.retrieval, step.execution
    name = step.calls[0].name if step.calls else ""
    if retrieval is not None and retrieval.tools is not None:
        content: Any = {"tools": [tool.name for tool in retrieval.tools]}
        content |= {"note": turn.notice} if turn.notice else {}
        notes = (ToolResult(content),)
    elif execution is not None and execution.was_executed:
        notes = (ToolResult(execution.output_value, name=name, is_error=not execution.success),)
    else:
        is_error = True if execution is not None else None
        notes = (ToolResult(turn.notice, name=name, is_error=is_error),) if turn.notice else ()
    return replace(step, observations=notes)
