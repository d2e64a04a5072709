"""What goes over the wire to a judge."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import judging
from tests.support.judging import RIGHT, plan_row, step_row
from tests.support.server import Answer, Body

SECRET_REFERENCE = "Look up the trains."


def test_rubric_case_and_prediction_come_in_this_order(serve: Any, bench: Any) -> None:
    server = serve([Answer(RIGHT)])
    row = plan_row("lisbon", system_prompt="You plan travel.", model_response='{"plan": "mine"}')
    bench(server).judge([row])
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert [message["role"] for message in request.body["messages"]] == ["system", "user"]
    landmarks = [
        "## Error codes",
        "# The case",
        '<data name="tools">',
        '<data name="system_prompt">\nYou plan travel.\n</data>',
        '<data name="query">\nWhich trains go to Porto? (lisbon)\n</data>',
        '<data name="reference">',
        "# The prediction to be judged",
        '<data name="prediction">\n{"plan": "mine"}\n</data>',
    ]
    places = [request.text.index(mark) for mark in landmarks]
    assert places == sorted(places)
    assert "## Error codes" in request.body["messages"][0]["content"]
    assert "lisbon" not in request.body["messages"][0]["content"]


def test_predictions_of_one_case_share_everything_up_to_the_prediction(
    serve: Any, bench: Any
) -> None:
    server = serve([Answer(RIGHT)])
    rows = [plan_row("porto", tested_model=m, model_response=f"{m}: go") for m in "xy"]
    bench(server).judge(rows)
    first, second = (request.text for request in server.requests)
    shared = first[: first.index("x: go")]
    assert second.startswith(shared)
    assert shared.endswith('<data name="prediction">\n')


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        (
            {"temperature": None, "params": {"reasoning_effort": "high"}, "max_reply_tokens": 900},
            {"seed": 0, "max_tokens": 900, "reasoning_effort": "high"},
        ),
        (
            {"params": {"top_p": 0.5, "chat_template_kwargs": {"enable_thinking": True}}},
            {
                "temperature": 0.0,
                "seed": 0,
                "max_tokens": 2048,
                "top_p": 0.5,
                "chat_template_kwargs": {"enable_thinking": True},
            },
        ),
    ],
)
def test_sampling_settings_are_sent_as_they_are(
    serve: Any, bench: Any, settings: dict[str, Any], sent: dict[str, Any]
) -> None:
    server = serve([Answer(RIGHT)])
    bench(server).judge([plan_row("porto")], **settings)
    (request,) = server.requests
    body = {k: v for k, v in request.body.items() if k not in ("messages", "response_format")}
    assert body == {"model": "scripted", **sent}


def test_a_thinking_budget_reaches_a_provider_that_has_one(
    serve: Any, bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    thinking = {"type": "enabled", "budget_tokens": 1500}
    content = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    content += [{"type": "text", "text": RIGHT}]
    reply = {"id": "m", "type": "message", "role": "assistant", "content": content}
    reply |= {"model": "c", "stop_reason": "end_turn", "stop_sequence": None}
    reply |= {"usage": {"input_tokens": 11, "output_tokens": 3}}
    server = serve([Body(json.dumps(reply).encode())])
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.setattr(judging, "MODEL", "anthropic/claude-sonnet-4-5")
    judged = bench(server).judge(
        [plan_row("porto")],
        api_base=server.address.removesuffix("/v1"),
        temperature=None,
        max_reply_tokens=4096,
        params={"thinking": thinking},
    )
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.body["thinking"] == thinking
    assert "temperature" not in request.body
    assert judged["porto"]["is_correct"] is True
    assert judged["porto"]["cost_usd"] > 0


@pytest.mark.parametrize(("blind", "shown"), [(False, True), (True, False)])
def test_blind_judges_do_not_see_the_reference(
    serve: Any, bench: Any, blind: bool, shown: bool
) -> None:
    server = serve([Answer(RIGHT)])
    bench(server).judge([plan_row("porto", plan=SECRET_REFERENCE)], blind=blind)
    assert (SECRET_REFERENCE in server.requests[0].text) is shown


@pytest.mark.parametrize("evidence", [True, False])
def test_evidence_is_told_and_enforced_or_neither(serve: Any, bench: Any, evidence: bool) -> None:
    server = serve([Answer(RIGHT)])
    row = step_row("porto", {"town": "Porto"})
    judged = bench(server).judge([row], evidence=evidence)["porto"]
    told = 'name="verified_facts"' in server.requests[0].body["messages"][1]["content"]
    assert told is evidence
    assert {finding["rule"] for finding in judged["findings"]} == {
        "missing-parameter",
        "unknown-parameter",
    }
    changed = [(o["field"], o["was"], o["now"]) for o in judged["overrides"]]
    if evidence:
        expected = [("errors.E5", False, True), ("is_correct", True, False), ("grade", 1.0, 0.6)]
        assert changed == expected
        assert [code for code, flagged in judged["errors"].items() if flagged] == ["E5"]
    else:
        assert changed == []
        assert judged["is_correct"] is True


def test_what_a_reply_cost_is_kept(serve: Any, bench: Any) -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 8, "total_tokens": 98}
    usage["prompt_tokens_details"] = {"cached_tokens": 64}
    judged = bench(serve([Answer(RIGHT, usage=usage)])).judge([plan_row("porto")])["porto"]
    tokens = {"prompt_tokens": 90, "completion_tokens": 8, "cached_tokens": 64}
    assert judged["usage"] == {**tokens, "calls": 1, "lost": 0, "reused": 0, "unreported": 0}
    assert judged["cost_usd"] is None
    assert judged["raw"] == RIGHT
    assert judged["latency_s"] >= 0
