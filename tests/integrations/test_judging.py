"""Rows of other tools' examples, results in their words, and rewards; no tool is needed."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import apbjudge
from apbjudge.errors import JudgeError, OptionError
from apbjudge.integrations.judging import results_of, row_of
from apbjudge.integrations.promptfoo import get_assert
from apbjudge.integrations.reward import compute_score, compute_scores, reward, reward_by
from tests.support.judging import TOOL

CALL = {"name": "find_train", "parameter_description": {"city": "Porto"}}
RIGHT = json.dumps({"plan": "look up trains", "tool_chain": [CALL]})
WRONG = json.dumps({"plan": "look up trains", "tool_chain": [{**CALL, "name": "find_plane"}]})
QUERY = "Which trains go to Porto?"
FIELDS = {"tools": [TOOL], "tool_chain": [CALL], "planning_regime": "Holistic"}
MESSAGES = [{"role": "system", "content": "You plan."}, {"role": "user", "content": QUERY}]


@pytest.mark.parametrize("name", ["deepeval", "mlflow"])
def test_a_tool_that_is_not_there_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"apbjudge.integrations.{name}", raising=False)
    with pytest.raises(ModuleNotFoundError, match="which is not installed") as caught:
        import_module(f"apbjudge.integrations.{name}")
    assert str(caught.value).endswith(f'pip install "apbjudge[{name}]"')
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (RIGHT, RIGHT),
        ([{"role": "assistant", "content": RIGHT}], RIGHT),
        (json.loads(RIGHT), RIGHT),
        (None, ""),
    ],
)
def test_a_reply_is_its_text_and_an_object_is_json(output: object, text: str) -> None:
    row = row_of(output, FIELDS, query=QUERY)
    assert row["model_response"] == text or json.loads(row["model_response"]) == json.loads(text)
    assert row["query"] == QUERY


def test_messages_state_query_and_system_prompt_and_fields_count_more() -> None:
    for query in (MESSAGES, json.dumps(MESSAGES)):
        row = row_of(RIGHT, {"id": "a", "index": np.int64(3), "plan": None}, query=query)
        assert (row["system_prompt"], row["query"]) == ("You plan.", QUERY)
    assert (row["id"], row["index"]) == ("a", 3)
    assert "plan" not in row
    assert row_of(RIGHT, {"query": "other"}, query=MESSAGES)["query"] == "other"
    calls = [{"role": "assistant", "content": "", "tool_calls": [CALL]}]
    assert json.loads(row_of(calls, {})["model_response"]) == calls


def test_results_come_in_the_order_of_the_rows_of_one_id_too() -> None:
    rows = [row_of(reply, {**FIELDS, "id": "a"}) for reply in (WRONG, RIGHT, WRONG)]
    results = results_of(rows)
    assert [result.score for result in results] == [0.0, 1.0, 0.0]
    assert [result.metadata["codes"] for result in results] == ["E6", "", "E6"]
    assert "find_plane" in results[0].reason
    assert results_of([]) == []


def test_a_grade_is_the_score_and_an_override_is_stated() -> None:
    def judge(item: apbjudge.Item) -> dict[str, Any]:
        return {"is_correct": True, "grade": 1.0, "errors": {}, "reasoning": "fine"}

    right, wrong = results_of([row_of(reply, FIELDS) for reply in (RIGHT, WRONG)], judge=judge)
    assert (right.score, right.is_correct, right.reason) == (1.0, True, "fine")
    assert wrong.is_correct is False
    assert wrong.codes["E6"]
    assert len(wrong.reason) > len("fine; ")


def test_a_row_that_cannot_be_judged_has_no_score() -> None:
    [result] = results_of([row_of(RIGHT, {"tools": 3})])
    assert result.score is result.is_correct is None
    assert result.reason.startswith("not judged, bad_input: ")
    assert result.metadata["unscored"] == "bad_input"


def test_promptfoo_gets_a_grading_result() -> None:
    context = {"prompt": QUERY, "vars": {"tools": json.dumps([TOOL])}, "config": {}}
    wrong = get_assert(WRONG, context)
    assert (wrong["pass"], wrong["score"]) == (False, 0.0)
    assert wrong["namedScores"]["no E6"] == 0.0
    assert wrong["namedScores"]["no E5"] == wrong["namedScores"]["judged"] == 1.0
    assert {"pass": False, "score": 0.0, "reason": "E6"} in wrong["componentResults"]
    unscored = get_assert(RIGHT, {**context, "vars": {"tools": 3}})
    assert (unscored["pass"], unscored["namedScores"]) == (False, {"judged": 0.0})
    assert unscored["reason"].startswith("not judged")
    json.dumps([wrong, unscored])
    for options in ({"rubrik": "x"}, {"max_cost": 1}):
        with pytest.raises(OptionError, match=next(iter(options))):
            get_assert(RIGHT, {**context, "config": options})


COLUMNS = {name: [value] * 3 for name, value in FIELDS.items()}
NOT_COLUMNS = {"completion_ids": [[1]] * 3, "trainer_state": object(), "log_metric": print}


def test_a_reward_by_proofs_takes_texts_and_messages() -> None:
    args = ([MESSAGES] * 3, [RIGHT, [{"role": "assistant", "content": WRONG}], RIGHT])
    columns = {**COLUMNS, "tools": [[TOOL], [TOOL], 3]}
    assert reward(*args, **columns, **NOT_COLUMNS) == [1.0, 0.0, None]


def test_a_reward_by_a_judge_asks_about_nothing_that_is_proven() -> None:
    asked: list[str] = []

    def judge(item: apbjudge.Item) -> dict[str, Any]:
        asked.append(item.response)
        return {"is_correct": False, "grade": 0.6, "errors": {"E1": True}}

    own = reward_by(judge, protocol="holistic")
    assert own([QUERY] * 3, [RIGHT, WRONG, RIGHT], **COLUMNS, **NOT_COLUMNS) == [0.0, 0.0, 0.0]
    assert asked == [RIGHT, RIGHT]


def test_verl_gets_a_score_and_codes_and_a_stated_score_without_a_verdict() -> None:
    info = {"query": QUERY, "tools": np.array([TOOL], dtype=object), "index": np.int64(0)}
    reference = json.dumps([CALL])
    assert compute_score("bench", WRONG, reference, info) == {"score": 0.0, "codes": "E6"}
    sources, references = ["bench"] * 2, [reference] * 2
    scores = compute_scores(sources, [RIGHT, WRONG], references, [info] * 2)
    assert [score["score"] for score in scores] == [1.0, 0.0]
    with pytest.raises(JudgeError, match="unscored="):
        compute_score("bench", RIGHT, reference, {"tools": 3})
    assert compute_score("bench", RIGHT, reference, {"tools": 3}, unscored=0.5)["score"] == 0.5
