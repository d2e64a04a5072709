"""A check-up of a judge's endpoints, as it is told and as later runs remember it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from apbjudge import JudgeSpec, grade
from apbjudge.cli.settings import toml_value
from apbjudge.judge.doctor import Checkup, check_up, checkup_text
from apbjudge.llm.endpoint_cache import FILE
from tests.llm.test_endpoint_checks import (
    IGNORES,
    KEY,
    MODEL,
    NOWHERE,
    Able,
    AbleServer,
    listed,
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
    "within the reply (<think>)": Answer("<think>Hm.</think>Hello!"),
}


@pytest.mark.parametrize("how", THINKS)
def test_a_thinking_model_is_named_with_the_settings_that_help(how: str) -> None:
    with AbleServer(lambda seen: THINKS[how]) as server:
        checkup = check_up(spec(server.address))
    (line,) = [line for line in shown(checkup, server).splitlines() if "thinking" in line]
    assert line.startswith(f"  thinking  {how}: --params '")
    assert "vllm serve --reasoning-parser " in line
    params = toml_value(line.split("'")[1])
    assert params == {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}


def test_text_of_an_endpoint_moves_no_cursor() -> None:
    with AbleServer(Able(), models=listed({"id": "\x1b[2Jn"})) as server:
        text = checkup_text(check_up(spec(server.address)))
    assert "\x1b" not in text
    assert "not in the endpoint's list: \\x1b[2Jn\n" in text


def test_the_longest_prompt_is_held_against_the_shortest_context_of_any_replica(
    tmp_path: Path,
) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row("one"), plan_row("two", query="x" * 9000)])
    short = listed({"id": "m", "max_model_len": 2100})
    with AbleServer(Able(), models=SERVED) as one, AbleServer(IGNORES, models=short) as two:
        alone = check_up(spec(one.address), rows=rows, cache=False)
        both = check_up(spec(one.address, two.address), rows=rows, cache=False)
        broken = check_up(spec(one.address, NOWHERE))
    assert (alone.works, both.works, broken.works) == (True, False, False)
    assert alone.plan is not None
    longest = alone.plan.longest_prompt_tokens
    assert longest > 9000 / 4
    fits, fits_not = (checkup_text(each).splitlines()[-1] for each in (alone, both))
    of = f"tokens; longest prompt about {longest:,}, reply up to 2,048: "
    assert fits == f"  context   32,768 {of}fits"
    assert fits_not == f"  context   2,100 {of}DOES NOT FIT"


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
