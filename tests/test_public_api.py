"""The public names, their documentation, and the whole path through the API."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import apbjudge
from apbjudge.judge.llm_judge import prompts_for

TOOLS = [{"name": "find_train"}, {"name": "find_bus"}]
STEP = {
    "role": "assistant",
    "thought": "look",
    "tool_calls": [{"type": "function", "function": {"name": "find_train", "arguments": {}}}],
}
PLAN = {"plan": "look", "tool_chain": [{"name": "find_train", "parameter_description": {}}]}
COMMON = {"id": "a", "tested_model": "m", "query": "To Porto?", "tools": TOOLS}
STEPWISE = {**COMMON, "prediction_horizon": 1, "model_response": json.dumps(STEP)}
WHOLE = {**COMMON, "model_response": json.dumps(PLAN)}
# One row per protocol against which nothing can be proven.
ROWS: dict[str, dict[str, Any]] = {
    "holistic": WHOLE,
    "step-wise": STEPWISE,
    "tool-extraneous": {**WHOLE, "extraneous_tool_names": ["find_bus"]},
    "tool-broken": {**STEPWISE, "broken_tool_name": "find_bus", "replacement_tool": TOOLS[0]},
    "unsolvable": {
        **COMMON,
        "unsolvable_type": "tool_removal",
        "model_response": '{"status": "REJECT", "reason": "no tool for it"}',
    },
    "efficiency": {**WHOLE, "tools": [{**tool, "cost": 3} for tool in TOOLS]},
}
FLAGS = dict.fromkeys(("E1", "E2", "E3", "E4", "E5", "E6"), False)


def test_every_public_name_resolves_and_is_documented() -> None:
    assert dir(apbjudge) == sorted(apbjudge.__all__)
    for name in apbjudge.__all__:
        value = getattr(apbjudge, name)
        assert value is not None
        if isinstance(value, type) or callable(value):
            assert (bool(value.__doc__), value.__name__) == (True, name)
            assert value.__module__.startswith("apbjudge.")


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="No apbjudge attribute grading"):
        apbjudge.grading  # noqa: B018


@pytest.mark.parametrize("name", ROWS)
def test_a_protocol_grades_rows_given_as_dicts(name: str) -> None:
    for protocol in (name, "auto"):
        run = apbjudge.grade((row for row in [ROWS[name]]), protocol=protocol)
        (judgement,) = run.judgements
        assert isinstance(judgement, apbjudge.Verdict)
        assert (judgement.protocol, judgement.is_correct) == (name, True)
        assert (run.folder, run.unscored_fraction) == (None, 0.0)


def reply_for(request: apbjudge.Request) -> str:
    """A reply that finds everything right, in the form that the request asks for."""
    keys = request.reply.model_json_schema()["properties"]
    values = {**FLAGS, "grade": 1.0, "category": 1, "reasoning": "fine", "is_correct": True}
    return json.dumps({key: values[key] for key in keys})


@pytest.mark.parametrize("name", ROWS)
def test_a_protocol_is_judged_through_a_client_of_ones_own(name: str) -> None:
    client = apbjudge.ScriptedClient(reply_for)
    run = apbjudge.grade([ROWS[name]], protocol=name, judge="lab/model", client=client)
    (judgement,) = run.judgements
    assert isinstance(judgement, apbjudge.Verdict)
    assert (judgement.is_correct, judgement.reasoning) == (True, "fine")
    assert len(client.requests) == 1
    assert run.summary.totals.calls == 1
    (pair,) = prompts_for([ROWS[name]], item_id="a", protocol=name)
    assert pair[1].messages() == client.requests[0].messages


def test_grade_works_inside_a_running_event_loop() -> None:
    async def notebook() -> apbjudge.Run:
        client = apbjudge.ScriptedClient(reply_for)
        return apbjudge.grade([WHOLE], judge="lab/model", client=client)

    assert asyncio.run(notebook()).summary.scored == 1


def test_a_row_that_is_no_mapping_is_an_unscored_judgement() -> None:
    value: Any = 5
    bad, good = apbjudge.grade([value, WHOLE]).judgements
    assert isinstance(bad, apbjudge.Unscored)
    assert bad.reason == "bad_input"
    assert isinstance(good, apbjudge.Verdict)
