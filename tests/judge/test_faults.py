"""Faults of an endpoint: what is asked again, what is given up, and that other rows go on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.judging import RIGHT, plan_row
from tests.support.server import (
    Answer,
    Behaviour,
    Seen,
    Status,
    by_content,
)

OK = Answer(RIGHT)


def test_words_of_a_case_that_an_error_repeats_decide_nothing_for_other_rows(
    serve: Any, bench: Any, transport: str
) -> None:
    faults = {
        "(key)": [Status(500, "can't tokenize 'rotate the api_key and the credential'")],
        "(tour)": [Status(400, "can't tokenize 'book a guided tour of the grammar school'")],
    }
    server = serve(by_content(faults, OK))
    rows = [plan_row(name) for name in ("tour", "key", "a", "b")]
    judged = bench(server).judge(rows, transport=transport)
    assert [judged[name]["is_correct"] for name in ("tour", "key", "a", "b")] == [
        None,
        None,
        True,
        True,
    ]
    assert all("response_format" in seen.body for seen in server.requests[-2:])


FORMAT = Status(400, "response_format of type json_schema is not supported by this model")
TOOLS = Status(400, "tool_choice is not supported by this model")


def form(seen: Seen) -> str:
    """How a request asked for the reply's form."""
    if "tools" in seen.body:
        return "tool"
    return seen.body.get("response_format", {"type": "text"})["type"]


@pytest.mark.parametrize("taken", ["json_schema", "tool", "json_object", "text"])
def test_an_endpoint_is_asked_in_the_strictest_form_it_takes_from_then_on(
    serve: Any, bench: Any, transport: str, taken: str
) -> None:
    forms = ["json_schema", "tool", "json_object", "text"]
    tried = forms[: forms.index(taken) + 1]

    def behave(seen: Seen) -> Behaviour:
        if form(seen) == taken:
            return OK
        return TOOLS if form(seen) == "tool" else FORMAT

    server = serve(behave)
    judged = bench(server).judge([plan_row(name) for name in "abc"], transport=transport)
    assert [row["is_correct"] for row in judged.rows] == [True, True, True]
    assert [form(seen) for seen in server.requests] == [*tried, taken, taken]
    assert [row["usage"]["calls"] for row in judged.rows] == [len(tried), 1, 1]


def test_an_endpoint_that_always_complains_about_the_format_is_given_up(
    serve: Any, bench: Any, transport: str
) -> None:
    server = serve([FORMAT])
    rows = [plan_row(name) for name in "ab"]
    judged = bench(server).judge(rows, retries=3, transport=transport)
    assert [row["reason"] for row in judged.rows] == ["unparsable", "unparsable"]
    # No form ever worked, so all of them are tried again with the next row.
    forms = ["json_schema", "tool", "json_object", "text"]
    assert [form(seen) for seen in server.requests] == forms * 2
    assert judged.waits == []
