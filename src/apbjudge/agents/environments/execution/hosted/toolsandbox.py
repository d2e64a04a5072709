"""Scenarios of ToolSandbox (arXiv:2408.04682), scored by their milestones and minefields.

A tool is called as a Python function; the package itself would run a call as source text. The
calls, what the tools trace and what the agent says are recorded where the package looks for them.
What the user says after the first request is not, and is not among the turns counted: no milestone
asks for it. The package's limit of messages (30) is kept as one of half as many steps of the agent,
as each is answered; to score more would also take it minutes.

The package keeps its state in polars, whose threads a forked process does not have. The process
that loads this module therefore never works with a scenario: ``tasks`` does so in a child, and
``begin`` is for a child only. As a scenario is built when it begins, dates such as "tomorrow" are
those of the episode.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import traceback
from importlib import metadata
from typing import Any

PLAIN = "no_distraction_tools"
VARIANTS = (
    "three_distraction_tools",
    "ten_distraction_tools",
    "all_tools_available",
    "tool_description_scrambled",
    "arg_type_scrambled",
    "arg_description_scrambled",
    "tool_name_scrambled",
)
"""The package's changes to the tools of every scenario, in its own words."""

OPTIONS = {
    "variants": "which form of each scenario: plain (default), only the tools it needs; all; or "
    f"one of {', '.join(VARIANTS)}",
    "network": "true: also the scenarios that search the web, for which the environment needs a "
    "RAPID_API_KEY; false (default)",
}

_STOP = (
    "You have no tools. Where these instructions tell you to use one to stop the conversation, "
    "reply with ###STOP### and nothing else."
)

_SETTERS = {
    "cellular": "set_cellular_service_status",
    "wifi": "set_wifi_status",
    "location_service": "set_location_service_status",
    "low_battery_mode": "set_low_battery_mode_status",
}

_WRITERS = {
    ("CONTACT", "addition_similarity"): "add_contact",
    ("CONTACT", "removal_similarity"): "remove_contact",
    ("CONTACT", "update_similarity"): "modify_contact",
    ("MESSAGING", "addition_similarity"): "send_message_with_phone_number",
}


def benchmark(options: dict[str, str]) -> ToolSandboxBenchmark:
    """Loads the package.

    Args:
        options: Values by names of ``OPTIONS``.

    Returns:
        The scenarios that the options ask for.

    Raises:
        ImportError: If the package or one of its dependencies is missing.
        ValueError: If an option is not as expected.
    """
    variants = _one_of("variants", options.get("variants", "plain"), ("plain", "all", *VARIANTS))
    network = _one_of("network", options.get("network", "false"), ("true", "false"))
    return ToolSandboxBenchmark(
        PLAIN if variants == "plain" else variants, has_network=network == "true"
    )


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{name}: expected one of {', '.join(allowed)}, got {value!r}")
    return value


def _module(name: str) -> Any:
    return importlib.import_module(f"tool_sandbox.{name}")


class ToolSandboxBenchmark:
    """Scenarios by name.

    Attributes:
        version: Of the package, where it is installed and not only found on the path.
    """

    def __init__(self, variant: str, *, has_network: bool) -> None:
        # Here, so that no child has to.
        self._scenarios = _module("scenarios")
        try:
            self.version = f"tool_sandbox {metadata.version('tool_sandbox')}"
        except metadata.PackageNotFoundError:
            self.version = "tool_sandbox"
        self._variant = variant
        self._has_network = has_network

    def tasks(self) -> list[dict[str, Any]]:
        """The scenarios; of those that can't run without a network, none unless asked for.

        The reference of a scenario is the calls that its milestones spell out, in one list, as
        they don't say which turn a call belongs to. There is none if the milestones leave
        something open, or ask for the current time or a web search, as the calls would then hold
        for a day only.
        """
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=lambda: sender.send(self._tasks()))
        child.start()
        sender.close()
        try:
            return receiver.recv()
        except EOFError:
            raise RuntimeError("tool_sandbox: its scenarios could not be read") from None
        finally:
            child.join()

    def _tasks(self) -> list[dict[str, Any]]:
        scenarios = self._build("named_scenarios")
        variants = {name: str(each.categories[-1]).lower() for name, each in scenarios.items()}
        # A search tool among the distractors does not require a network.
        families = {
            name: any(map(_searches_web, _agent_tools(scenarios[name].starting_context).values()))
            for name, variant in variants.items()
            if variant == PLAIN
        }
        return [
            _task(name, scenarios[name])
            for name, variant in variants.items()
            if self._variant in {"all", variant}
            and (self._has_network or not families[_family(name, families)])
        ]

    def begin(self, task_id: str) -> ToolSandboxEnvironment:
        """Builds a scenario, in the state that it begins in."""
        return ToolSandboxEnvironment(self._scenario(task_id))

    def _scenario(self, name: str) -> Any:
        for kind in (
            "single_tool_call",
            "multiple_tool_call",
            "multiple_user_turn",
            "insufficient_information",
        ):  # the plain ones, in a fraction of the time that all their variants take
            scenarios = self._build(f"named_{kind}_scenarios")
            if name in scenarios:
                return scenarios[name]
        return self._build("named_scenarios")[name]

    def _build(self, name: str) -> dict[str, Any]:
        backend = _module("common.tool_discovery").ToolBackend.DEFAULT
        return getattr(self._scenarios, name)(preferred_tool_backend=backend)


def _family(name: str, families: dict[str, bool]) -> str:
    return max((family for family in families if name.startswith(family)), key=len)


def _agent_tools(context: Any) -> dict[str, Any]:
    tools = context.get_available_tools(scrambling_allowed=True)
    return {name: tool for name, tool in tools.items() if "AGENT" in tool.visible_to}


def _searches_web(tool: Any) -> bool:
    return tool.__module__.endswith(".rapid_api_search_tools")


def _messages(context: Any, *, is_example: bool) -> list[dict[str, Any]]:
    """Messages before the episode, or the examples of conversations that the user is given."""
    sandbox = _module("common.execution_context").DatabaseNamespace.SANDBOX
    rows = context.get_database(sandbox, get_all_history_snapshots=True).to_dicts()
    return [row for row in rows if (row["visible_to"] == ["USER"]) is is_example]


def _task(name: str, scenario: Any) -> dict[str, Any]:
    context = scenario.starting_context
    _module("common.execution_context").set_current_context(context)  # its form of the tools
    messages = _messages(context, is_example=False)

    def texts(sender: str, recipient: str) -> list[str]:
        ways = [(row["sender"], row["recipient"], row["content"]) for row in messages]
        return [text for *way, text in ways if way == [sender, recipient]]

    reference = _reference(scenario)
    return {
        "id": name,
        "query": "\n\n".join(texts("USER", "AGENT")),
        "system_prompt": "\n\n".join(texts("SYSTEM", "AGENT")),
        "tools": _module("common.tool_conversion").convert_to_openai_tools(_agent_tools(context)),
        "user": "model",
        "user_prompt": "\n\n".join([*texts("SYSTEM", "USER"), _examples(context), _STOP]),
        "user_tools": [],
        "reference": [] if reference is None else [reference],
        "to_communicate": _texts(scenario),
    }


def _examples(context: Any) -> str:
    """The examples as transcripts; the package replays them as turns of the conversation."""
    instruction = _module("scenarios.user_simulator_few_shot_examples").USER_INSTRUCTION
    lines = ["Examples of such conversations:"]
    for row in _messages(context, is_example=True):
        if row["sender"] == "SYSTEM":
            lines.append(f"Task of User A: {row['content'].replace(instruction, '')}")
        elif row["recipient"] == "EXECUTION_ENVIRONMENT":
            lines.append("User A: ###STOP###")
        else:
            lines.append(f"User {'A' if row['sender'] == 'USER' else 'B'}: {row['content']}")
    return "\n".join(lines)


def _texts(scenario: Any) -> list[str]:
    """The texts that the milestones want the agent to say."""
    return [
        row["content"]
        for milestone in scenario.evaluation.milestone_matcher.milestones
        for each in milestone.snapshot_constraints
        for row in _rows(each)
        if row.get("recipient") == "USER" and row.get("content")
    ]


def _reference(scenario: Any) -> list[dict[str, Any]] | None:
    """The calls that the milestones spell out, if they run and reach all but the agent's texts."""
    context = scenario.starting_context
    tools = _agent_tools(context)
    episode = ToolSandboxEnvironment(scenario)
    calls: list[dict[str, Any]] = []
    required: list[int] = []
    for number, milestone in enumerate(scenario.evaluation.milestone_matcher.milestones):
        # What has no target only says that nothing else may have changed.
        targets = [each for each in milestone.snapshot_constraints if _rows(each)]
        if all(_rows(each)[0].get("recipient") == "USER" for each in targets):
            continue
        required.append(number)
        for target in targets:
            gold = _gold_calls(target, context)
            if not gold:
                return None
            for name, arguments in gold:
                shown = context.get_agent_facing_tool_name(name)
                if shown not in tools or name == "get_current_timestamp":
                    return None
                if _searches_web(tools[shown]) or episode.call(shown, arguments, "agent")[1]:
                    return None
                calls.append({"name": shown, "arguments": arguments, "by": "agent"})
    reached = episode.score()["details"]["milestones"]
    return calls if all(reached[number] == 1 for number in required) else None


def _rows(constraint: Any) -> list[dict[str, Any]]:
    frame = constraint.target_dataframe
    return [] if frame is None else frame.to_dicts()


def _gold_calls(constraint: Any, context: Any) -> list[tuple[str, dict[str, Any]]]:
    """The calls that bring a target about; none where their arguments are not all literal."""
    rows = _rows(constraint)
    database = str(constraint.database_namespace)
    measure = getattr(constraint.snapshot_constraint, "__name__", "")
    if database == "SANDBOX":
        if measure != "snapshot_similarity" or "tool_trace" not in rows[0]:
            return []
        trace: dict[str, Any] | list[dict[str, Any]] = json.loads(rows[0]["tool_trace"])
        gold = trace[0] if isinstance(trace, list) else trace  # of alternatives, the first
        return [(gold["tool_name"], _present(gold["arguments"]))]
    if database == "SETTING":
        return [(_SETTERS[name], {"on": value}) for row in rows for name, value in row.items()]
    writer = _WRITERS.get((database, measure), "")
    if writer == "modify_contact":
        contacts = context.get_database(constraint.database_namespace).to_dicts()
        before = {contact["person_id"]: contact for contact in contacts}
        rows = [
            {
                name: value
                for name, value in row.items()
                if name == "person_id" or value != before[row["person_id"]][name]
            }
            for row in rows
        ]
    elif writer == "send_message_with_phone_number":
        rows = [
            {"phone_number": row["recipient_phone_number"], "content": row["content"]}
            for row in rows
        ]
    return [(writer, _present(row)) for row in rows] if writer else []


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


class ToolSandboxEnvironment:
    """A scenario being worked on; the package knows one at a time in a process."""

    def __init__(self, scenario: Any) -> None:
        self._evaluation = scenario.evaluation
        self._max_messages = scenario.max_messages
        self._context = scenario.starting_context
        self._steps = 0
        contexts = _module("common.execution_context")
        contexts.set_current_context(self._context)
        self._sandbox = contexts.DatabaseNamespace.SANDBOX

    def _is_over(self) -> bool:
        return 2 * self._steps >= self._max_messages

    def _record(self, sender: str, recipient: str, content: str, **columns: Any) -> None:
        row = {"sender": sender, "recipient": recipient, "content": content, **columns}
        row["visible_to"] = [sender, recipient]
        self._context.add_to_database(self._sandbox, [row])

    def call(self, name: str, arguments: dict[str, Any], by: str) -> tuple[str, bool]:
        """Calls a tool.

        Args:
            name: The name that the agent knows it by.
            arguments: Its arguments.
            by: ``agent``, as the user has no tools.

        Returns:
            What the package would have answered: the result as Python writes it, or the
            exception's class and text; whether it is an exception. After the last step that the
            scenario allows, an error, and nothing is called.
        """
        if self._is_over():
            return f"Error: the limit of {self._max_messages} messages is reached", True
        tool = _agent_tools(self._context)[name]
        self._steps += 1
        ids = {"openai_tool_call_id": f"call_{self._steps}", "openai_function_name": name}
        # Minefields look for the tool's own name in this text, which is never run.
        text = f"{tool.__name__}(**{json.dumps(arguments)})"
        self._record("AGENT", "EXECUTION_ENVIRONMENT", text, **ids)
        try:
            answer, failure = repr(tool(**arguments)), None
        except Exception as error:  # noqa: BLE001
            lines = "".join(traceback.format_exception_only(type(error), error)).splitlines()
            answer = failure = lines[-1]
        # The package lets the tool trace into the call and then moves the trace to the answer.
        message = self._context.get_database(self._sandbox)
        trace = message["tool_trace"].to_list()[0]
        self._context.update_database(self._sandbox, message.with_columns(tool_trace=None))
        outcome = {"tool_trace": trace, "tool_call_exception": failure}
        self._record("EXECUTION_ENVIRONMENT", "AGENT", answer, **ids, **outcome)
        return answer, failure is not None

    def say(self, text: str) -> dict[str, Any]:
        """Records what the agent says to the user, who speaks next, unless it was the last step."""
        if not self._is_over():
            self._steps += 1
            self._record("AGENT", "USER", text)
        return {"next": "end" if self._is_over() else "user", "text": "", "tools": None}

    def score(self) -> dict[str, Any]:
        """The similarity to the scenario's milestones as the package measures it.

        Returns:
            ``reward``, the mean similarity, 0 where a minefield is touched; ``details`` with the
            similarity to each of the ``milestones`` and ``minefields``, and ``turns``.
        """
        result = self._evaluation.evaluate(
            execution_context=self._context, max_turn_count=self._max_messages
        )
        details = {
            "milestones": _similarities(result.milestone_mapping),
            "minefields": _similarities(result.minefield_mapping),
            "turns": int(result.turn_count),
        }
        return {"reward": float(result.similarity), "details": details}


def _similarities(mapping: dict[int, tuple[int, float]]) -> list[float]:
    return [float(similarity) for _, (_, similarity) in sorted(mapping.items())]
