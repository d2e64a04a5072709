"""Files of a case: shown whole at their places, or the case is a bad one."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.prediction.predict import predict
from apbjudge.agents.prediction.session import PredictionRun
from apbjudge.errors import RowError
from apbjudge.llm.base import ScriptedClient
from tests.support.predicting import MODEL, PNG, REPLY, case, prompt_of, step_case
from tests.support.videos import make_video

PROMPTS = ["neutral@1", "apb@1", "bound@1"]
Made = Callable[..., PredictionRun]


def image(name: str) -> dict[str, str]:
    return {"type": "image", "path": name}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with pictures that differ, and text files."""
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(PNG + name.encode())
    (tmp_path / "notes.txt").write_text("first line\n<image> second", encoding="utf-8")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "long.csv").write_text("x" * 500, encoding="utf-8")
    (tmp_path / "film.mp4").write_bytes(b"film")
    return tmp_path


@pytest.fixture
def made(folder: Path) -> Made:
    """Predicts rows with a model that sees; ``requests`` are those that it got."""

    def run(rows: list[dict[str, Any]], **settings: Any) -> PredictionRun:
        client = settings.pop("client", None) or ScriptedClient(lambda request: REPLY)
        model = {"model": MODEL, "vision": "yes"} | settings.pop("model", {})
        return predict(rows, model=model, client=client, data_root=folder, **settings)

    return run


def kinds(prompt: Any) -> list[str]:
    """The user's message: text as it is, pictures by path."""
    return [part if isinstance(part, str) else part.path for part in prompt.parts]


@pytest.mark.parametrize("prompts", PROMPTS)
def test_marks_in_earlier_messages_hold_pictures(folder: Path, prompts: str) -> None:
    prefix = [{"role": "tool", "content": "seen: <image> end"}]
    row = step_case(
        "m",
        query="First <image>.",
        trajectory_prefix=prefix,
        files=[image("a.png"), image("b.png")],
    )
    parts = kinds(prompt_of(row, prompts, (folder,)))
    at = [i for i, part in enumerate(parts) if part in ("a.png", "b.png")]
    assert parts[at[0]] == "a.png"
    assert parts[at[0] - 1].endswith("First ")
    assert parts[at[1] - 1].endswith("seen: ")
    assert parts[at[1] + 1].startswith(' end"')


def test_a_video_is_cut_into_frames_and_their_times_are_recorded(folder: Path, made: Made) -> None:
    make_video(folder / "film.mp4")
    film, client = {"type": "video", "path": "film.mp4"}, ScriptedClient(lambda request: REPLY)
    rows = [case("v", query="Watch <image> and <image>.", files=[film]), case("w", files=[film])]
    run = made(rows, client=client, model={"frames": 2})
    assert run.counts[MODEL].predicted == 2
    (asked, _) = client.requests
    shown = [part["type"] for part in asked.messages[1]["content"]]
    assert shown.count("image_url") == 2
    messages = str(run.rows)
    assert "film.mp4 (pictures at 1.00, 3.00 seconds)" in messages
    assert [messages.count(f"'seconds': {seconds}") for seconds in (1.0, 3.0)] == [2, 2]


MARKED = st.lists(st.sampled_from(["<image>", "text ", "\n", "<img>", "é"]), max_size=8)


@given(MARKED, st.integers(0, 4), st.sampled_from(PROMPTS))
def test_text_and_pictures_stay_in_order_and_complete(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], n: int, prompts: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "ordered"
    folder.mkdir(exist_ok=True)
    for i in range(n):
        (folder / f"{i}.png").write_bytes(PNG + bytes([i]))
    query = "Q:" + "".join(pieces) + ":Q"
    marks = query.count("<image>")
    row = case("p", query=query, tools=None, files=[image(f"{i}.png") for i in range(n)])
    if n and marks and marks != n:
        expected = rf"field files: expected a picture for each of {marks} marks <image>, got {n}"
        with pytest.raises(RowError, match=expected):
            prompt_of(row, prompts, (folder,))
        return
    prompt = prompt_of(row, prompts, (folder,))
    assert [part.path for part in prompt.parts if not isinstance(part, str)] == [
        f"{i}.png" for i in range(n)
    ]
    text = "".join(p if isinstance(p, str) else "<image>" for p in prompt.parts)
    shown = text[text.index("Q:") : text.index(":Q") + 2]
    if n and marks:  # blank text between two pictures is not sent
        shown, query = ("".join(each.split()) for each in (shown, query))
    assert shown == query


def test_text_files_are_shown_whole_and_unchanged(folder: Path) -> None:
    files = [{"type": "text", "path": "notes.txt"}, image("a.png")]
    prompt = prompt_of(case("t", files=files), roots=(folder,))
    text = "".join(part for part in prompt.parts if isinstance(part, str))
    assert "- text: notes.txt\n- image: a.png" in text
    assert "notes.txt:\nfirst line\n<image> second" in text
    assert len(prompt.images) == 1


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "outside": (image("../a.png"), "files[0].path: expected a path inside the data folder"),
    "a film": ({"type": "video", "path": "film.mp4"}, "expected a picture or a text file"),
    "too long": (
        {"type": "text", "path": "long.csv"},
        "files[0].path: expected a file of at most 400 bytes, got '500 bytes'",
    ),
    "no UTF-8": ({"type": "text", "path": "latin.txt"}, "expected a text file in UTF-8"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_case_that_cannot_be_shown_is_one_clear_failure(
    folder: Path, made: Made, name: str
) -> None:
    file, detail = BAD[name]
    rows = [case("good"), case("bad", files=[file]), case("fine")]
    run = made(rows, model={"max_text_bytes": 400})
    assert [row["id"] for row in run] == ["good", "fine"]
    (failed,) = run.failures
    assert (failed["id"], failed["tested_model"], failed["line"]) == ("bad", MODEL, 2)
    assert failed["reason"] == "bad_input"
    assert detail in failed["detail"]
    assert "\n" not in failed["detail"]


def test_pictures_inside_messages_are_a_bad_case_and_never_sent_as_characters(made: Made) -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    prefix = [{"role": "user", "content": [{"type": "text", "text": "Look."}, part]}]
    found = [{"role": "tool", "content": [{"type": "image", "url": "a result of a search"}, "x"]}]
    rows = [step_case("in", trajectory_prefix=prefix), step_case("ok", trajectory_prefix=found)]
    run = made([*rows, case("plan", trajectory_prefix=prefix)])
    assert [row["id"] for row in run] == ["ok", "plan"]  # plans are not shown their messages
    (failed,) = run.failures
    expected = "trajectory_prefix[0].content[1]: expected text; pictures belong in files"
    assert expected in failed["detail"]
    assert "base64" not in failed["detail"]


def test_too_many_pictures_are_a_bad_case_and_never_thinned_out(made: Made) -> None:
    two, one = [image("a.png"), image("b.png")], [image("a.png")]
    rows = [case("two", files=two), case("one", files=one)]
    run = made(rows, model={"max_images": 1})
    assert [row["id"] for row in run] == ["one"]
    (failed,) = run.failures
    assert "expected at most 1 pictures (--max-images), got 2" in failed["detail"]
    assert [len(row["messages"][1]["content"]) for row in made(rows)] == [3, 2]


def test_models_of_one_run_differ_in_sight(folder: Path) -> None:
    models = [{"model": MODEL, "vision": "yes"}, {"model": "hosted_vllm/blind", "vision": "no"}]
    run = predict(
        [case("seen", files=[image("a.png")]), case("text")],
        model=models,
        client=ScriptedClient(lambda request: REPLY),
        data_root=folder,
    )
    made = sorted((row["id"], row["tested_model"]) for row in run)
    assert made == [("seen", MODEL), ("text", "hosted_vllm/blind"), ("text", MODEL)]
    (failed,) = run.failures
    assert failed["tested_model"] == "hosted_vllm/blind"
    expected = "expected a model that can see (hosted_vllm/blind: --vision yes"
    assert expected in failed["detail"]


def test_rows_name_pictures_by_path_and_hash(folder: Path, made: Made) -> None:
    client = ScriptedClient(lambda request: REPLY)
    query = "See <image>, then <image>."
    run = made([case("p", query=query, files=[image("a.png"), image("b.png")])], client=client)
    (row,) = run
    pictures = [p["image_url"] for p in row["messages"][1]["content"] if p["type"] != "text"]
    assert pictures == [
        {"path": name, "sha256": sha256((folder / name).read_bytes()).hexdigest()}
        for name in ("a.png", "b.png")
    ]
    assert "base64" not in json.dumps(row)
    (request,) = client.requests
    sent = [p["image_url"]["url"] for p in request.messages[1]["content"] if p["type"] != "text"]
    assert [base64.b64decode(url.partition(",")[2]) for url in sent] == [
        (folder / name).read_bytes() for name in ("a.png", "b.png")
    ]
    texts = [
        [p for p in m[1]["content"] if p["type"] == "text"]
        for m in (request.messages, row["messages"])
    ]
    assert texts[0] == texts[1]
