"""A check-up of a judge's endpoints, as it is told and as later runs remember it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from apbjudge import JudgeSpec, ScriptedClient, grade
from apbjudge.cli.settings import toml_value
from apbjudge.judge.doctor import Checkup, check_up, checkup_text
from apbjudge.llm.endpoint_cache import FILE
from tests.llm.test_endpoint_checks import (
    IGNORES,
    KEY,
    MODEL,
    Able,
    AbleServer,
    listed,
    nowhere,
)
from tests.support.judging import RIGHT, plan_row, write_rows
from tests.support.server import Answer

SERVED = listed({"id": "m", "max_model_len": 32768})


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)


def spec(*addresses: str, **settings: Any) -> JudgeSpec:
    return JudgeSpec(model=MODEL, api_base=addresses, **settings)


def shown(checkup: Checkup, *servers: AbleServer) -> str:
    """The text, with what differs from run to run replaced."""
    text = re.sub(r"in \d+\.\d\d s", "in 0.42 s", checkup_text(checkup))
    for server, name in zip(servers, "ABC", strict=False):
        text = text.replace(server.address, name)
    return text


def test_an_endpoint_that_can_do_everything(transport: str) -> None:
    with AbleServer(Able(), models=SERVED) as server:
        checkup = check_up(spec(server.address, transport=transport))
    assert checkup.works
    assert shown(checkup, server) == (
        f"hosted_vllm/m at A ({transport} transport)\n"
        "  key       none needed, none sent\n"
        "  model     answers in 0.42 s\n"
        "  replies   json_schema enforced, tool enforced, json_object enforced: "
        "json_schema will be used\n"
        "  logprobs  20 alternatives per token\n"
        "  pictures  sees them\n"
        "  context   32,768 tokens\n"
    )
    assert len(server.requests) == 7


THINKS = {
    "apart from the reply": Answer("Hello!", message={"reasoning_content": "Hm."}),
    "no reply beside it": Answer(None, "length", {"reasoning": "Hm."}),
    "perhaps, no reply within 64 tokens": Answer("", "length"),
}
WITHIN = {"within the reply (<think>)": Answer("<think>Hm.</think>Hello!")}  # litellm takes it out


@pytest.mark.parametrize("how", [*THINKS, *WITHIN])
def test_a_thinking_model_is_named_with_the_settings_that_help(transport: str, how: str) -> None:
    with AbleServer(lambda seen: {**THINKS, **WITHIN}[how]) as server:
        checkup = check_up(spec(server.address, transport=transport))
    (line,) = [line for line in shown(checkup, server).splitlines() if "thinking" in line]
    how = "apart from the reply" if transport == "litellm" and how in WITHIN else how
    assert line.startswith(f"  thinking  {how}: --params '")
    assert "vllm serve --reasoning-parser " in line
    assert "--max-reply-tokens" in line
    params = toml_value(line.split("'")[1])
    assert params == {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}
    with AbleServer(Able()) as server:
        settings = {"transport": transport, "params": params}
        assert "thinking  " not in shown(check_up(spec(server.address, **settings)), server)
    assert all(
        seen.body["chat_template_kwargs"] == {"enable_thinking": False} for seen in server.requests
    )


def test_every_replica_has_to_work() -> None:
    with AbleServer(Able()) as one, AbleServer(IGNORES) as two:
        both = check_up(spec(one.address, two.address))
        broken = check_up(spec(one.address, nowhere()))
    assert both.works
    assert not broken.works
    heads = [line for line in shown(both, one, two).splitlines() if not line.startswith(" ")]
    assert heads == [
        "hosted_vllm/m at A (direct transport)",
        "hosted_vllm/m at B (direct transport)",
    ]


def test_text_of_an_endpoint_moves_no_cursor() -> None:
    with AbleServer(Able(), models=listed({"id": "\x1b[2Jn"})) as server:
        text = checkup_text(check_up(spec(server.address)))
    assert "\x1b" not in text
    assert "not in the endpoint's list: \\x1b[2Jn\n" in text


# --- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tokens", "fits"), [(32768, True), (2100, False)])
def test_the_longest_prompt_is_held_against_the_context(
    tmp_path: Path, tokens: int, *, fits: bool
) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row("one"), plan_row("two", query="x" * 9000)])
    with AbleServer(Able(), models=listed({"id": "m", "max_model_len": tokens})) as server:
        checkup = check_up(spec(server.address), rows=rows, cache=False)
    assert checkup.plan is not None
    longest = checkup.plan.longest_prompt_tokens
    assert longest > 9000 / 4
    assert checkup.works is checkup.fits is fits
    assert checkup_text(checkup).endswith(
        f"  context   {tokens:,} tokens; longest prompt about {longest:,}, reply up to 2,048: "
        f"{'fits' if fits else 'DOES NOT FIT'}\n"
    )


def test_the_shortest_context_counts(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row("one")])
    short = listed({"id": "m", "max_model_len": 100})
    with AbleServer(Able(), models=SERVED) as one, AbleServer(Able(), models=short) as two:
        checkup = check_up(spec(one.address, two.address), rows=rows, cache=False)
    assert checkup.plan is not None
    assert checkup.plan.rates.context_tokens == 100
    assert not checkup.works


# --- memory --------------------------------------------------------------------------------------


def test_what_is_learnt_is_used_by_the_next_run(tmp_path: Path) -> None:
    def behave(seen: Any) -> Any:
        return Answer(RIGHT) if "trains" in seen.text else able(seen)

    able = Able(json_schema="ignored", tool="ignored")
    with AbleServer(behave, models=SERVED) as server:
        judge = spec(server.address)
        check_up(judge, cache=tmp_path)
        known = orjson.loads((tmp_path / FILE).read_bytes())[f"{MODEL} {server.address}"]
        server.forget()
        grade([plan_row("one")], judge=judge, cache=tmp_path)
    assert known == {"format": "json_object", "context_tokens": 32768}
    assert [seen.body["response_format"]["type"] for seen in server.requests] == ["json_object"]


def test_of_an_unclear_endpoint_no_format_is_remembered(tmp_path: Path) -> None:
    unclear = Able(json_schema="silent", tool="ignored", json_object="ignored")
    with AbleServer(unclear) as server:
        check_up(spec(server.address), cache=tmp_path)
    assert not (tmp_path / FILE).exists()


# --- other judges --------------------------------------------------------------------------------


def test_a_client_of_the_callers_own_stands_in_for_the_network() -> None:
    with AbleServer(Able(), models=SERVED) as server:
        client = ScriptedClient(lambda asked: "Hello!")
        checkup = check_up(spec(server.address), client=client)
    assert (server.requests, server.fetched) == ([], [])
    assert len(client.requests) == 7
    assert checkup.works
    assert shown(checkup, server).startswith(
        "hosted_vllm/m at A (given transport)\n  key       not looked for\n"
    )
