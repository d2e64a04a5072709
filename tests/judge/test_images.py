"""Pictures that go to a judge, and pictures that must not."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import Completion, JudgeSpec, Request, ScriptedClient
from tests.support.judging import RIGHT, plan_row, write_rows
from tests.support.server import Answer

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def picture_row(name: str, *paths: str) -> dict[str, Any]:
    return plan_row(name, files=[{"type": "image", "path": path} for path in paths])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with pictures, beside a folder that rows must not reach."""
    data = tmp_path / "data"
    (data / "frames").mkdir(parents=True)
    for name in ("a.png", "frames/b.JPG", "frames/c.webp"):
        (data / name).write_bytes(PNG + name.encode())
    (tmp_path / "secret.png").write_bytes(b"secret")
    return data


def judge(folder: Path, *rows: dict[str, Any], **settings: Any) -> tuple[Any, list[Request]]:
    """Judges rows beside their pictures; returns the judgements by item and the requests."""
    client = ScriptedClient(lambda request: RIGHT)
    path = write_rows(folder / "rows.jsonl", rows)
    spec = JudgeSpec(model="scripted/judge", **{"vision": "yes", **settings})
    run = apbjudge.grade(path, judge=spec, client=client)
    return {judgement.item_id: judgement for judgement in run.judgements}, client.requests


def urls(request: Request) -> list[str]:
    content = request.messages[1]["content"]
    parts = content if isinstance(content, list) else []
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


def test_pictures_reach_the_endpoint_between_case_and_prediction(serve: Any, folder: Path) -> None:
    server = serve([Answer(RIGHT)])
    path = write_rows(folder / "rows.jsonl", [picture_row("x", "a.png", "frames/b.JPG")])
    spec = JudgeSpec(model="hosted_vllm/scripted", api_base=server.address, vision="yes")
    run = apbjudge.grade(path, judge=spec)
    assert [judgement.kind for judgement in run.judgements] == ["verdict"]
    content = server.requests[0].body["messages"][1]["content"]
    assert [part["type"] for part in content] == ["text", "image_url", "image_url", "text"]
    assert "image: frames/b.JPG" in content[0]["text"]
    assert "# The prediction to be judged" in content[3]["text"]
    for part, media, name in (
        (content[1], "image/png", "a.png"),
        (content[2], "image/jpeg", "frames/b.JPG"),
    ):
        head, data = part["image_url"]["url"].split(",")
        assert head == f"data:{media};base64"
        assert base64.b64decode(data) == PNG + name.encode()


@pytest.mark.parametrize(
    "settings", [{"images": False}, {"vision": "no"}, {"images": False, "vision": "no"}]
)
def test_judges_that_get_no_pictures_are_told_so(folder: Path, settings: dict[str, Any]) -> None:
    judged, requests = judge(folder, picture_row("x", "a.png"), **settings)
    assert judged["x"].kind == "verdict"
    text = requests[0].messages[1]["content"]
    assert isinstance(text, str)
    assert "base64" not in text
    assert "are not shown to you" in text


def test_a_model_unknown_to_the_table_is_shown_no_pictures(serve: Any, folder: Path) -> None:
    server = serve([Answer(RIGHT)])
    path = write_rows(folder / "rows.jsonl", [picture_row("x", "a.png")])
    apbjudge.grade(path, judge=JudgeSpec(model="hosted_vllm/unheard", api_base=server.address))
    assert isinstance(server.requests[0].body["messages"][1]["content"], str)


def test_files_that_are_no_pictures_are_only_named(folder: Path) -> None:
    row = plan_row("x", files=[{"type": "text", "path": "../../notes.txt"}])
    _, requests = judge(folder, row)
    assert urls(requests[0]) == []
    assert "text: ../../notes.txt" in requests[0].messages[1]["content"]


@pytest.mark.parametrize(
    "path",
    ["nowhere.png", "../secret.png", "https://example.org/a.png", "data:image/png;base64,A.png"],
)
def test_a_picture_that_can_not_be_used_makes_one_bad_row(folder: Path, path: str) -> None:
    rows = [picture_row("bad", "a.png", path), picture_row("good", "a.png")]
    judged, requests = judge(folder, *rows)
    assert (judged["bad"].kind, judged["bad"].reason) == ("unscored", "bad_input")
    assert f"{folder / 'rows.jsonl'}:1: field files[1].path:" in judged["bad"].detail
    assert judged["good"].kind == "verdict"
    assert len(requests) == 1
    assert base64.b64encode(b"secret").decode() not in json.dumps(requests[0].messages)


def test_the_limits_of_pictures_are_those_of_the_judge(folder: Path) -> None:
    names = [f"frame_{i:03}.png" for i in range(9)]
    for name in names:
        (folder / name).write_bytes(name.encode())
    _, requests = judge(folder, picture_row("x", *names), max_images=5)
    shown = [base64.b64decode(url.split(",")[1]).decode() for url in urls(requests[0])]
    assert shown == names[::2]
    judged, _ = judge(folder, picture_row("x", "a.png"), max_image_bytes=50)
    assert judged["x"].reason == "bad_input"


def test_unusable_pictures_do_not_matter_to_a_judge_without_sight(folder: Path) -> None:
    judged, _ = judge(folder, picture_row("x", "nowhere.png"), images=False)
    assert judged["x"].kind == "verdict"


def test_a_picture_that_was_put_in_place_is_judged_when_the_run_goes_on(
    folder: Path, tmp_path: Path
) -> None:
    path = write_rows(folder / "rows.jsonl", [picture_row("x", "late.png")])
    spec = JudgeSpec(model="scripted/judge", vision="yes")
    client = ScriptedClient(lambda request: Completion(text=RIGHT, finish_reason="stop"))
    first = apbjudge.grade(path, judge=spec, client=client, out=tmp_path / "out")
    assert first.manifest["unscored"] == {"bad_input": 1}
    (folder / "late.png").write_bytes(PNG)
    second = apbjudge.grade(path, judge=spec, client=client, out=tmp_path / "out")
    assert [judgement.kind for judgement in second.judgements] == ["verdict"]
