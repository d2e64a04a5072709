"""The real server: what it tells whom, and what is on disk once it has answered."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.errors import OptionError
from apbjudge.judge.llm_judge import prompts_for
from apbjudge.labelling.config import LabelConfig
from apbjudge.labelling.label import open_service
from apbjudge.labelling.server import MAX_BODY
from apbjudge.records import read_labels, resolve
from tests.labelling.serving import PATIENCE_S, Answer, Client, Program, served
from tests.support.judging import plan_row, write_rows

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("holistic", "step_wise", "tool_extraneous", "tool_broken", "unsolvable", "efficiency")
PNG = b"\x89PNG\r\n\x1a\n of a kind"


def examples() -> list[dict[str, Any]]:
    lines = (EXAMPLES / f"{name}.jsonl" for name in NAMES)
    return [json.loads(line) for path in lines for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every example, by tested models whose names stand nowhere else, with a judged run."""
    folder = tmp_path_factory.mktemp("mixed")
    rows = examples()
    for row in rows:
        row["tested_model"] = f"SECRET-{row['tested_model']}"
        row["case_id"] = f"SECRET-{row['id']}"
        row["id"] = f"SECRET-{row['id']}"
    path = write_rows(folder / "SECRET-predictions.jsonl", rows)
    apbjudge.grade(path, out=folder / "run")
    judged = folder / "run" / "judgements.jsonl"
    lines = [json.loads(line) for line in judged.read_text("utf-8").splitlines()]
    for line in lines:
        line["judge"] = line["reasoning"] = "SECRET-judge"
        for finding in line["findings"]:
            finding["message"] = "SECRET-finding"
    judged.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def client(mixed: Path, tmp_path: Path) -> Iterator[Client]:
    order = LabelConfig(
        predictions=mixed, out=tmp_path / "labels.jsonl", order="file", run=mixed.parent / "run"
    )
    with served(order) as (client, _):
        yield client


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Client]:
    rows = [plan_row(name) for name in ("a", "b", "c")]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    with served(LabelConfig(predictions=path, out=tmp_path / "out.jsonl")) as (client, _):
        yield client


# Blindness ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sent(mixed: Path) -> list[Answer]:
    """Every answer that a rater gets without labelling anything; the items come last."""
    out = mixed.with_name("labels.jsonl")
    order = LabelConfig(predictions=mixed, out=out, order="file", run=mixed.parent / "run")
    with served(order) as (client, _):
        total = client.call("start").json["total"]
        first = [client.call("start"), client.call("progress"), client.send("GET", "/")]
        return first + [client.call("item", item=number) for number in range(1, total + 1)]


def test_nothing_sent_tells_of_judge_findings_names_or_tested_models(sent: list[Answer]) -> None:
    items = sent[3:]
    assert len(items) == len(examples())
    for answer in sent:
        assert answer.status == 200
        everything = answer.body + str(answer.headers).encode()
        for word in (b"SECRET", b'"unknown"', b'"problems"', b'"groups":{"'):
            assert word not in everything
    assert all(item.json["prediction"]["findings"] == [] for item in items)


def test_the_judge_is_shown_after_the_own_verdict_and_that_is_noted_down(client: Client) -> None:
    hidden = client.item(1)["label"]
    assert hidden["judge"] == "hidden"
    refused = client.call("judge", item=1, revision=0)
    assert refused.status == 400
    assert b"SECRET" not in refused.body
    assert client.click(1, "flag", "E2").json["judge"] == "hidden"
    label = client.click(1, "grade", 0.4).json
    assert label["judge"] == "ready"
    shown = client.call("judge", item=1, revision=label["revision"]).json
    assert shown["verdict"]["judge"] == "SECRET-judge"
    other = Client(client.port, client.token, "bo")
    assert other.call("judge", item=1, revision=0).status == 400
    client.click(1, "correct", to=True)
    _, before, seen, changed = last_lines(client, 4)
    assert "saw_judge" not in before
    assert seen == before | {"saw_judge": True}
    assert (changed["is_correct"], changed["saw_judge"]) == (True, True)


def test_a_run_that_changes_meanwhile_shows_no_other_items_verdict(
    mixed: Path, tmp_path: Path
) -> None:
    run, out = tmp_path / "run.jsonl", tmp_path / "labels.jsonl"
    lines = (mixed.parent / "run" / "judgements.jsonl").read_bytes().splitlines(keepends=True)
    run.write_bytes(b"".join(lines))
    with served(LabelConfig(predictions=mixed, out=out, order="file", run=run)) as (client, _):
        revision = client.click(1, "correct", to=True).json["revision"]
        for data in (b"".join(reversed(lines)), b"", None):
            run.unlink() if data is None else run.write_bytes(data)
            answer = client.call("judge", item=1, revision=revision)
            assert answer.status == 500
            assert b"SECRET" not in answer.body
    assert len(client.problems) == 3


def last_lines(client: Client, n: int) -> list[Any]:
    lines = client.out.read_text("utf-8").splitlines()
    return [None, *map(json.loads, lines)][-n:]


def test_raters_do_not_see_each_others_labels(plain: Client) -> None:
    other = Client(plain.port, plain.token, "bo")
    before = other.item(1)
    plain.click(1, "correct", to=True)
    assert other.item(1) == before
    progress = [client.call("progress").json["progress"] for client in (plain, other)]
    assert progress == ["200", "000"]


# Attacks -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One server for all attacks: they change nothing, and only the third item is ever clicked."""
    folder = tmp_path_factory.mktemp("attacked")
    path = write_rows(folder / "rows.jsonl", [plan_row(name) for name in ("a", "b", "c")])
    order = LabelConfig(predictions=path, out=folder / "out.jsonl", order="file")
    with served(order) as (client, _):
        yield client


CALLS = ("start", "progress", "item", "click", "undo", "skip", "judge")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer tökn"}, 401),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": None}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_calls_that_are_not_the_pages_own_are_refused(
    attacked: Client, headers: dict[str, str | None], status: int
) -> None:
    body = json.dumps({"rater": "ann", "item": 1, "revision": 0}).encode()
    for name in CALLS:
        answer = attacked.send("POST", f"/api/{name}", body, headers)
        assert answer.status == status
        assert b"Porto" not in answer.body
    for method in ("GET", "OPTIONS", "PUT"):
        assert attacked.send(method, "/api/item", body, headers).status in (status, 404, 405)


@pytest.mark.parametrize("path", ["/", "/web/item.js"])
def test_the_page_is_served_to_its_own_address_alone(attacked: Client, path: str) -> None:
    bare = {"Authorization": None, "Origin": None}
    for more, status in (
        ({}, 200),
        ({"Host": f"localhost:{attacked.port}"}, 200),
        ({"Host": f"evil:{attacked.port}"}, 403),
        ({"Origin": "http://evil"}, 403),
    ):
        assert attacked.send("GET", path, headers=bare | more).status == status


def test_every_answer_has_the_headers_that_keep_others_out(plain: Client) -> None:
    answers = [
        plain.send("GET", "/"),
        plain.send("GET", "/web/label.css"),
        plain.send("GET", "/nowhere"),
        plain.send("PUT", "/"),
        plain.call("item", item=1),
        plain.call("item", item=99),
        plain.send("POST", "/api/start", headers={"Host": "evil"}),
    ]
    assert [answer.status for answer in answers] == [200, 200, 404, 405, 200, 400, 403]
    for answer in answers:
        policy = answer.headers["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert not [name for name in answer.headers if name.startswith("Access-Control")]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"\xff", 400),
        (b"[" * 5000, 400),
        (b'{"rater": "ann", "item": true, "revision": 0, "click": {}}', 400),
        (b'{"rater": "ann", "item": 4, "revision": 0, "click": {}}', 400),
        (b'{"rater": "ann", "item": 1, "revision": 0, "click": {"set": "x"}}', 400),
        (b'{"rater": "", "item": 1, "revision": 0, "click": {"set": "correct"}}', 400),
        (b'{"rater": "ann", "item": 1, "click": {"set": "correct", "to": true}}', 409),
        (b'{"note": "' + b"x" * MAX_BODY + b'"}', 413),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(
    attacked: Client, body: bytes, status: int
) -> None:
    before = attacked.out.read_bytes()
    answer = attacked.send("POST", "/api/click", body)
    assert answer.status == status
    assert answer.json["error"]
    assert attacked.out.read_bytes() == before
    label = attacked.item(3)["label"]
    assert attacked.click(3, "correct", not label["is_correct"]).status == 200
    assert {label.item_id for label in read_labels(attacked.out)} == {"c"}


def test_only_files_of_the_page_are_served(plain: Client) -> None:
    for path in (
        "/web/../labelling/page.html",
        "/web/..%2f..%2flabelling%2fguard.py",
        "/web/%2e%2e/__init__.py",
        "/web/card.css",
        "/rows.jsonl",
    ):
        assert plain.send("GET", path).status == 404


def test_pictures_come_from_the_data_folder_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "outside.png").write_bytes(PNG)
    (data / "inside.png").write_bytes(PNG)
    (data / "link.png").symlink_to(tmp_path / "outside.png")
    names = ["inside.png", "../outside.png", str(tmp_path / "outside.png"), "link.png", "gone.png"]
    (data / "inside.txt").write_text("a note")
    names += ["film.mp4", "inside.txt"]
    files = [{"type": "image", "path": name} for name in names]
    path = write_rows(data / "rows.jsonl", [plan_row("a", files=files)])
    with served(LabelConfig(predictions=path, out=tmp_path / "out.jsonl")) as (client, _):
        first, *others, text = client.item(1)["case"]["files"]
    assert first["url"].startswith("data:image/png;base64,")
    assert [sorted(file) for file in others] == [["path", "problem", "type"]] * 5
    assert text["text"] == "a note"


def test_raters_see_the_pictures_that_a_judge_sees_and_how_many_more_there_are(
    tmp_path: Path,
) -> None:
    names = [f"{i}.png" for i in range(20)]
    for name in names:
        (tmp_path / name).write_bytes(PNG)
    files = [{"type": "image", "path": name} for name in names]
    path = write_rows(tmp_path / "rows.jsonl", [plan_row("a", files=files)])
    with served(LabelConfig(predictions=path, out=tmp_path / "out.jsonl")) as (client, _):
        case = client.item(1)["case"]
    ((_, prompt),) = prompts_for(path, item_id="a")
    shown = [file["path"] for file in case["files"] if "url" in file]
    assert shown == [image.path for image in prompt.files.images]
    assert (len(shown), case["left_out"]) == (16, 4)


# Changes -----------------------------------------------------------------------------------------


def test_a_change_from_an_old_label_is_refused_with_the_label_as_it_is(plain: Client) -> None:
    first = plain.click(1, "correct", to=True, revision=0).json
    late = plain.click(1, "correct", to=False, revision=0)
    assert late.status == 409
    assert late.json["label"] == first
    assert plain.click(1, "correct", to=False, revision=first["revision"]).status == 200
    assert plain.call("undo", item=1, revision=first["revision"]).status == 409
    assert [label.is_correct for label in read_labels(plain.out)] == [True, False]


def test_what_is_skipped_has_no_label_and_is_not_done(plain: Client) -> None:
    revision = plain.click(1, "correct", to=True).json["revision"]
    refused = plain.call("skip", item=1, revision=revision)
    assert (refused.status, refused.json["error"][:20]) == (400, "field item: expected")
    label = plain.call("skip", item=2, revision=0).json
    assert (label["skipped"], plain.call("progress").json) == (True, {"progress": "230"})
    assert len(resolve(read_labels(plain.out)).items) == 1
    undone = plain.call("undo", item=2, revision=label["revision"]).json
    assert (undone["skipped"], plain.call("progress").json["progress"]) == (False, "200")


# Processes ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_killed_in_a_burst_of_clicks_every_click_it_answered_is_on_disk(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [plan_row(f"r{n}") for n in range(5)])
    out = tmp_path / "labels.jsonl"
    program = Program(path, "--out", out, "--order", "file")
    client = program.client()
    answered: dict[str, int] = {}
    enough = threading.Event()

    def burst(rater: str) -> None:
        own = Client(client.port, client.token, rater)
        revision = 0
        while True:
            try:
                label = own.click(1, "note", f"note {revision}", revision).json
            except (OSError, ValueError, HTTPException):
                return  # killed, perhaps in the middle of an answer
            revision = label["revision"]
            answered[rater] = revision
            if revision >= 20:
                enough.set()

    threads = [threading.Thread(target=burst, args=(name,)) for name in ("ann", "bo", "cy")]
    for thread in threads:
        thread.start()
    assert enough.wait(PATIENCE_S)
    with pytest.raises(OptionError, match="--out: another process is labelling into"):
        open_service(LabelConfig(predictions=path, out=out), problem=pytest.fail)
    program.stop(signal.SIGKILL)
    for thread in threads:
        thread.join()
    again = Program(path, "--out", out, "--order", "file")
    client = again.client()
    lines = out.read_bytes().split(b"\n")
    assert lines.pop() == b""
    notes = [json.loads(line) for line in lines]
    for rater, revision in answered.items():
        saved = [line["note"] for line in notes if line["rater"] == rater]
        assert saved[:revision] == [f"note {n}" for n in range(revision)]
        assert len(saved) <= revision + 1
    client.click(2, "correct", to=True)
    code, said, err = again.stop()
    assert (code, err) == (0, "")
    assert said.splitlines()[-3:] == [
        "ann: 1 of 5 labelled",
        f"labels: {out}",
        f"next: apbjudge calibrate RUN {out}",
    ]
