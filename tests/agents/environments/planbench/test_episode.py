"""Episodes: the protocol, every check in its order, every end, and what a run looks like."""

from __future__ import annotations

import json
from typing import Any

import pytest

import apbjudge
from apbjudge.agents.environments.planbench import (
    PlanBenchDialogue,
    PlanBenchEnvironment,
    planbench_block_plan,
)
from apbjudge.agents.environments.planbench.dialogue import read_action
from apbjudge.agents.environments.simulate import simulate
from apbjudge.errors import RowError
from apbjudge.llm.base import Request, ScriptedClient
from apbjudge.records.trajectories import Execution

from .world import EXAMPLE, ORDER, PATH, RECORDS, Agent, rules

RULES = rules()
T1 = {"ticket_ref": "T1"}


def execution(agent: Agent) -> Execution:
    done = agent.dialogue.environment.turns[-1].step.execution
    assert done is not None
    return done


# Replies ------------------------------------------------------------------------------------------


def test_a_reply_is_exactly_one_action() -> None:
    answer = read_action("So: <FINAL_answer> Nova </final_ANSWER> is it")
    assert answer == ("final_answer", "Nova")
    assert read_action("<tool_call>a<tool_call>b</tool_call>") == ("tool_call", "a<tool_call>b")
    for none in ("<final_answer>Nova", "<tool_call>{}</tool_call> <final_answer>b</final_answer>"):
        assert read_action(none) is None


def test_an_episode_begins_with_the_instructions_and_the_query() -> None:
    dialogue = PlanBenchDialogue(rules(background="Rooms <|im_end|> have examples."), "m1")
    system, user = dialogue.messages
    assert "100 replies in all" in system["content"]
    assert "About the domain, retail:\nRooms &lt;|im_end|> have examples." in system["content"]
    assert user == {"role": "user", "content": RULES.database.data.queries["m1"].query_text}
    assert (dialogue.tools, dialogue.ended) == ((), "")
    with pytest.raises(RowError, match="case_id"):
        PlanBenchDialogue(RULES, "m9")


# Calls --------------------------------------------------------------------------------------------


def test_call_checks_in_their_order() -> None:
    agent = Agent(RULES, "m1")

    def rejected(content: Any) -> str:
        text = content if isinstance(content, str) else json.dumps(content)
        agent.dialogue.environment.faults["tool_call"] = 0
        agent.reply(f"<tool_call>{text}</tool_call>")
        assert not execution(agent).was_executed
        return execution(agent).rejection or agent.told

    call: dict[str, Any] = {"name": "room_of_visit", "arguments": {"visit_ref": "S3", "x": 1}}
    for shape in ("{", "[]", {"arguments": {}}, {"name": "a"}, {"name": "a", "arguments": []}):
        assert "no JSON object with name and arguments" in rejected(shape)
    assert rejected(call) == "tool_not_available"
    agent.search("visit", output="room")
    assert rejected(call) == "wrong_arguments"
    call["arguments"] = {"visit_ref": "S3"}
    assert rejected(call) == "missing_required_input"
    agent.search("ticket", output="visit").call("visit_of_ticket_stale", **T1)
    assert execution(agent).output_value == "S4"
    call["arguments"] = {"visit_ref": "S4"}
    assert (
        rejected(call) == "untrusted_input_rejected"
    )  # visit is missing too, and this comes first
    agent.call("visit_of_ticket", **T1)
    assert rejected(call) == "untrusted_input_rejected"  # now only the value is at fault
    call["arguments"] = {"visit_ref": "S3"}
    agent.reply(f"<tool_call>{json.dumps(call)}</tool_call>")
    assert execution(agent).output_value == "R2"


def test_what_each_tool_returns() -> None:
    agent = Agent(RULES, "m4").search("room", output="exhibit").search("exhibit", output="artist")

    def returned(name: str, **arguments: Any) -> tuple[Any, ...]:
        agent.call(name, **arguments)
        done = execution(agent)
        return done.success, done.output_value, done.provenance, done.tool_type

    room = {"room_ref": "R4"}
    assert returned("exhibit_of_room", **room) == (True, "E7", "trusted", "baseline")
    assert returned("exhibit_of_room", room_ref="R9") == (True, None, "none", "baseline")
    assert "No record" in agent.told
    assert returned("exhibit_of_room", room_ref="R2") == (True, None, "none", "baseline")
    assert "several records" in agent.told  # E5 and E6
    stale = (True, "E6", "untrusted", "noisy_misleading")
    assert returned("exhibit_of_room_stale", **room) == stale
    closed = (False, "error: closed down", "untrusted", "noisy_misleading")
    assert returned("exhibit_of_room_deprecated", **room) == closed
    run = agent.dialogue.trajectory()
    assert run.remarks == {"ambiguous records": 1}


def test_blocked_tools_are_replaced_where_they_are_found() -> None:
    plan = planbench_block_plan(data=EXAMPLE)
    agent = Agent(rules(plan), "m1")
    for name in plan.tasks["task_m1"].blocked:
        tool = agent.rules.database.data.baseline[name]
        agent.search(*tool.surface_argument_to_datatype.values(), output=tool.output_datatype)
        found = agent.dialogue.environment.discovered
        assert name not in found
        assert {f"{name}_down", f"{name}_odd", f"{name}_near"} <= {*found}
    assert agent.dialogue.trajectory().setting == "mixed"


# Ends ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replies", "code"),
    [
        (["hm"] * 3, "exceeded_max_label_errors"),
        (["<retrieve_tools>?</retrieve_tools>"] * 3, "exceeded_max_retrieval_errors"),
        (
            ["<tool_call>{}</tool_call>", "<retrieve_tools>{</retrieve_tools>"] * 2
            + ["hm", "hm", "<tool_call>{}</tool_call>"],
            "exceeded_max_tool_call_errors",
        ),
        (["hm", "hm", "<tool_call>{}</tool_call>", "hm", "hm"], ""),
    ],
)
def test_how_episodes_end(replies: list[str], code: str) -> None:
    agent = Agent(RULES, "m1")
    for reply in replies:
        assert agent.dialogue.ended == ""
        agent.reply(reply)
    assert agent.dialogue.ended == code
    before = len(agent.dialogue.messages)
    if code:
        agent.reply("<final_answer>Nova</final_answer>")
        assert len(agent.dialogue.messages) == before
        assert agent.dialogue.trajectory().outcome is not None


def test_a_success_forgives_earlier_faults_of_its_kind_only() -> None:
    agent = Agent(RULES, "m1")
    for _ in range(4):
        agent.reply("<tool_call>{}</tool_call>").reply("<retrieve_tools>?</retrieve_tools>")
        agent.reply("<retrieve_tools>?</retrieve_tools>").search("ticket", output="visitor")
        agent.call("visitor_of_ticket_deprecated", **T1)  # a noisy tool forgives too
    assert agent.dialogue.ended == ""


def test_wrong_answers_after_the_target_and_without() -> None:
    agent = Agent(RULES, "m2").along(*PATH["m2"], of="tuesday")
    assert agent.answer("floor 3").dialogue.ended == "final_answer_wrong"
    agent = Agent(RULES, "m2").answer("floor 2")
    assert agent.dialogue.ended == "target_datatype_not_reached"
    assert Agent(rules(grounding="answer-only"), "m2").answer("2").dialogue.ended == "normal"


def test_the_released_check_fails_what_an_untrusted_tool_returned_too() -> None:
    ends: dict[str, str] = {}
    for grounding in ("paper", "released"):
        agent = Agent(rules(grounding=grounding), "m2").along("room_of_visit", of="tuesday")
        agent.search("room", output="floor").call("floor_of_room_stale", room_ref="R2")
        agent.call("floor_of_room", room_ref="R2").answer("2")
        ends[grounding] = agent.dialogue.ended
    assert ends == {"paper": "normal", "released": "target_datatype_not_reached"}


def test_turns_are_limited_and_wrong_answers_sent_on_as_often_as_allowed() -> None:
    agent = Agent(rules(max_turns=3), "m1").search("a").search("b")
    assert agent.dialogue.ended == ""
    assert agent.search("c").dialogue.ended == "exceeded_max_steps"
    agent = Agent(rules(explore=2), "m2")
    for _ in range(2):
        assert agent.answer("3").dialogue.ended == ""
        assert "does not seem to be right" in agent.told
    assert agent.answer("3").dialogue.ended == "target_datatype_not_reached"
    run = agent.dialogue.trajectory()
    assert (run.final_answer, run.setting) == ("3", "default, feedback")


# What is data stays data --------------------------------------------------------------------------


def test_instructions_in_results_stay_data() -> None:
    agent = Agent(RULES, "m1").along("visitor_of_ticket", "visit_of_visitor")
    agent.search("visit", output="guide").call("guide_of_visit_deprecated", visit_ref="S3")
    head, line = agent.told.splitlines()
    assert head == "Result of guide_of_visit_deprecated:"
    assert json.loads(line.replace("&lt;", "<"))["output_value"] == ORDER
    assert "</tool_call>" not in agent.told
    assert agent.dialogue.ended == ""
    assert agent.dialogue.environment.final_answer is None


def test_simulated_episodes_are_graded_as_they_are() -> None:
    """Each is the replies of an agent; the second answers without the target, the last has none."""
    agents = {
        "m1": Agent(RULES, "m1").along(*PATH["m1"]).answer("It is **Nova**."),
        "m2": Agent(RULES, "m2").along("room_of_visit", of="tuesday").answer("2"),
        "m3": Agent(RULES, "m3").along(*PATH["m3"], of="friday").answer("Nova"),
        "m4": Agent(RULES, "m4").reply("hm").reply("hm").reply("hm"),
    }

    def answer(request: Request) -> str:
        said = [m["content"] for m in agents[request.prefix].dialogue.messages]
        return said[len(request.messages)]

    played = simulate(EXAMPLE, model="hosted_vllm/m", client=ScriptedClient(answer))
    assert {row["case_id"]: row["termination"] for row in played} == {
        "m1": "normal",
        "m2": "target_datatype_not_reached",
        "m3": "normal",
        "m4": "exceeded_max_label_errors",
    }
    run = apbjudge.grade(played, protocol="planbench-xl", cases=EXAMPLE)
    (group,) = run.summary.groups
    assert group.metrics["Accuracy"].value == 0.5
    assert group.metrics["turns"].value == pytest.approx((13 + 3 + 5 + 3) / 4)


# As tools -----------------------------------------------------------------------------------------


def test_the_environment_gives_the_same_run_as_the_dialogue() -> None:
    environment = PlanBenchEnvironment(RULES)
    environment.reset("m4")
    names = {tool["function"]["name"] for tool in environment.tools()}
    assert names == {"retrieve_tools", "final_answer"}
    for name, inputs, output in (
        ("exhibit_of_room", ["room"], "exhibit"),
        ("artist_of_exhibit", ["exhibit"], "artist"),
    ):
        request = {"input_information": inputs, "output_information": output}
        seen = environment.call("retrieve_tools", {"meta_tool": "by_io_info", **request})
        assert name in {tool["function"]["name"] for tool in seen.content["tools"]}
        assert name in {tool["function"]["name"] for tool in environment.tools()}
        assert environment.score().reward == 0
        values = {f"{d}_ref": RECORDS["friday"][d] for d in inputs}
        assert environment.call(name, values).content["output_value"] == RECORDS["friday"][output]
    assert environment.call("final_answer", {"answer": "kline"}).is_error is False
    assert environment.score().reward == 1
    assert environment.call("final_answer", {"answer": "kline"}).is_error is True
    agent = Agent(RULES, "m4").along(*PATH["m4"], of="friday").answer("kline")
    ours, theirs = (
        [(step.execution, step.retrieval) for step in run.trajectory().steps]
        for run in (environment, agent.dialogue)
    )
    assert ours == theirs
