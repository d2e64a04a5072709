"""Adjudication: what is shown, what is copied, and what a decision was made from."""

from __future__ import annotations

import json
import os
import signal
import socket
import webbrowser
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from apbjudge.errors import ApbJudgeError, InputError
from apbjudge.labelling.config import LabelConfig
from apbjudge.labelling.label import open_service
from apbjudge.records import read_labels
from tests.labelling.serving import PATIENCE_S, Client, served
from tests.support.commands import in_process
from tests.support.judging import plan_row, write_rows

FLAGS = {"E4": True}


def says(item: str, rater: str | None, **answers: Any) -> dict[str, Any]:
    named = {} if rater is None else {"rater": rater}
    return {"item_id": item, "tested_model": "planner", **named, **answers}


ANN = [
    says("same", "ann", is_correct=False, grade=0.6, errors=FLAGS, faulty_steps=[1]),
    says("codes", "ann", is_correct=False, grade=0.6, errors=FLAGS),
    says("verdict", "ann", is_correct=True, note="It works."),
    says("alone", "ann", is_correct=True),
]
BO = [
    says("same", "bo", is_correct=False, errors={"E4": True, "E5": False}, unsure=True),
    says("codes", "bo", is_correct=False, grade=0.6, errors={"E4": False, "E5": True}),
    says("verdict", "bo", is_correct=False, note="Begins at the end.", unsure=True),
]


@pytest.fixture
def config(tmp_path: Path) -> LabelConfig:
    names = ("same", "codes", "verdict", "alone", "nobody")
    return LabelConfig(
        predictions=write_rows(tmp_path / "rows.jsonl", [plan_row(name) for name in names]),
        out=tmp_path / "final.jsonl",
        order="file",
        adjudicate=(write_rows(tmp_path / "a.jsonl", ANN), write_rows(tmp_path / "b.jsonl", BO)),
    )


def test_only_items_on_which_raters_differ_are_shown_with_their_reasons(
    config: LabelConfig,
) -> None:
    with served(config) as (client, service):
        client.rater = "adjudicated"
        assert [place.key[0] for place in service.queue] == ["codes", "verdict"]
        first, second = client.item(2)["raters"]
        assert (first["rater"], first["note"]) == ("ann", "It works.")
        assert (second["rater"], second["unsure"]) == ("bo", True)
        assert client.item(2)["label"]["judge"] == "none"
        assert client.click(2, "correct", to=False).status == 200
    copied, decided = map(json.loads, config.out.read_text("utf-8").splitlines())
    assert (copied["item_id"], copied["rater"], copied["unsure"]) == ("same", "adjudicated", True)
    assert (copied["grade"], copied["errors"]) == (0.6, {"E4": True, "E5": False})
    assert [source["rater"] for source in copied["decided_from"]] == ["ann", "bo"]
    assert (decided["rater"], decided["is_correct"]) == ("adjudicated", False)
    assert decided["decided_from"] == [
        {"rater": "ann", "is_correct": True, "note": "It works."},
        {"rater": "bo", "is_correct": False, "note": "Begins at the end.", "unsure": True},
    ]


def test_it_is_stated_what_is_copied_and_left_out_and_copied_once(config: LabelConfig) -> None:
    for _ in range(2):
        result: list[str] = []
        service = open_service(config, problem=result.append)
        service.log.close()
        (text,) = result
        assert text.startswith("raters differ on 2 items; those on which they agree, 1, are copied")
        assert text.endswith("; 1 with a label of one rater alone are left out")
    assert [label.item_id for label in read_labels(config.out)] == ["same"]


def test_labels_that_name_no_rater_are_by_their_file(config: LabelConfig, tmp_path: Path) -> None:
    for name, is_correct in (("a", True), ("b", False)):
        write_rows(tmp_path / f"{name}.jsonl", [says("codes", None, is_correct=is_correct)])
    service = open_service(config, problem=lambda text: None)
    service.log.close()
    (labels,) = service.disputed.values()
    assert [label.rater for label in labels] == ["a", "b"]


def test_what_can_not_be_adjudicated_is_refused(config: LabelConfig) -> None:
    for changes, message in (
        ({"adjudicate": config.adjudicate[:1]}, r"a\.jsonl: expected labels by at least two"),
        ({"rater": "bo"}, "expected raters other than the adjudicator bo"),
        ({"run": Path("runs/static")}, "--adjudicate: expected no --run with it"),
        ({"out": config.adjudicate[0]}, "--out: expected a file of labels, got an input"),
    ):
        with pytest.raises(ApbJudgeError, match=message):
            open_service(LabelConfig(**{**dict(config), **changes}), problem=pytest.fail)
    assert not config.out.exists()


def test_two_raters_of_one_name_are_not_taken_for_one(config: LabelConfig, tmp_path: Path) -> None:
    again = [says("verdict", "ann", is_correct=False), says("codes", "ann", is_correct=False)]
    another = write_rows(tmp_path / "c.jsonl", again)
    paths = (*config.adjudicate, another)
    with pytest.raises(InputError, match=r"c\.jsonl: field rater: .* of item 'verdict' in .*a\.j"):
        open_service(config.model_copy(update={"adjudicate": paths}), problem=lambda text: None)
    write_rows(another, ANN[:1])  # the same once more is no contradiction
    open_service(
        config.model_copy(update={"adjudicate": paths}), problem=lambda text: None
    ).log.close()


def test_the_command_names_what_is_undecided_and_goes_on_where_nothing_is(
    config: LabelConfig,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    clicked: list[int] = []

    def label_one(url: str) -> None:
        address, token = url.split("/#token=")
        client = Client(int(address.rpartition(":")[2]), token, "adjudicated")
        try:
            with socket.create_connection(("127.0.0.1", client.port), PATIENCE_S) as connection:
                connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")  # a browser tries TLS
                assert connection.recv(9) == b"HTTP/1.0 "
            clicked.append(client.click(2, "correct", to=True).status)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(
        webbrowser, "open", lambda url: Thread(target=label_one, args=(url,)).start()
    )
    command = ["label", config.predictions, "--out", config.out, "--order", "file", "--open"]
    command += [part for path in config.adjudicate for part in ("--adjudicate", path)]
    cli = in_process(monkeypatch, capsys)
    done = cli(*command)
    assert (done.code, clicked) == (0, [200])
    assert done.out.splitlines()[-2] == "adjudicated: 1 of 2 labelled"
    assert done.out.splitlines()[-1].startswith("1 undecided: ")
    assert not caplog.records  # what is no HTTP leaves no trace
    write_rows(config.predictions, [plan_row("same")])
    done = cli(*command)
    assert (done.code, done.out.splitlines()[-1].split()[:3]) == (
        0,
        "next: apbjudge calibrate".split(),
    )
