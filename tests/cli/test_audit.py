"""The audit command: cards and files, exit codes, going on, comparing, and hostile input."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from apbjudge.audits.card import read_card
from tests.support.auditing import SHORT, prepared, whimsical
from tests.support.commands import start
from tests.support.judging import plan_row, read_rows, write_rows
from tests.support.server import PATIENCE_S, Answer, Behave, ChatServer, Hang, Seen

from .conftest import Command

SMALL = ("--rows", SHORT, "--bases", "1", "--seed-of-draw", "1", "--no-cache")
N = prepared().design.n_judgements
FILES = {
    *("card.json", "card.md", "card.html", "manifest.json", "variants.jsonl", "schedule.jsonl"),
    *("rows", "runs"),
}
MODEL = "hosted_vllm/scripted"
# Rows whose predictions quote the reference: the probe of leaks fails for every judge.
LEAKY = "leaks"


@pytest.fixture
def serve() -> Iterator[Callable[..., ChatServer]]:
    with ExitStack() as stack:

        def begin(behave: Behave = whimsical) -> ChatServer:
            return stack.enter_context(ChatServer(behave))

        yield begin


def judge(server: ChatServer) -> tuple[str, ...]:
    return MODEL, "--api-base", server.address, "--retries", "0"


def card(folder: str | Path) -> dict[str, Any]:
    return json.loads((Path(folder) / "card.json").read_text(encoding="utf-8"))


def test_parts_are_merged_and_the_next_command_is_named(apbjudge: Command) -> None:
    small = ("--rows", SHORT, "--bases", 2)
    n = [
        int(apbjudge("audit", "static", *small, *part, "--dry-run").out.split()[1])
        for part in ((), ("--shard", "1/2"), ("--shard", "2/2"))
    ]
    assert n[0] == n[1] + n[2]
    split = ("shards", "split", SHORT, "--command", "audit", "--parts", 2, "--out", "p")
    lines = apbjudge(*split, "--", "static", "--bases", 2).out.splitlines()
    *parts, merge, last = [shlex.split(line)[1:] for line in lines]
    assert [apbjudge(*words).code for words in parts] == [0, 0]
    some = apbjudge("shards", "merge", "p/part-1", "--partial", "--out", "some")
    assert some.out.startswith("more parts are to be merged\n")
    merged = apbjudge("shards", "merge", "p/part-2", "some", "--out", "all")
    assert merged.out.startswith("next: the same audit with --out all, without --shard, makes the")
    assert apbjudge(*merge).code == apbjudge(*last).code == 0
    assert card("p/whole")["cost"]["judgements"] == n[0]


def test_a_card_is_printed_and_written(apbjudge: Command) -> None:
    done = apbjudge("audit", "static", *SMALL, "--out", "a")
    assert (done.code, done.err) == (0, "")
    assert {path.name for path in Path("a").iterdir()} == FILES
    *lines, files, following = done.out.splitlines()
    assert files == "a/: card.json card.md card.html variants.jsonl schedule.jsonl rows runs"
    assert following.startswith("next: apbjudge audit static --rows ")
    for probe in card("a")["probes"]:
        assert probe["title"][:24] in done.out  # longer ones fold
        assert probe["title"] in Path("a/card.md").read_text(encoding="utf-8")
        assert probe["title"] in Path("a/card.html").read_text(encoding="utf-8")
    assert max(map(len, lines)) <= 100


# exit codes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fail_on", "code"), [("faults", 0), (f"faults, {LEAKY}", 3), ("odd", 2)])
def test_failed_probes_count_where_they_are_named(
    fail_on: str, code: int, apbjudge: Command
) -> None:
    done = apbjudge("audit", "static", *SMALL, "--out", "a", "--fail-on", fail_on)
    assert done.code == code
    assert Path("a").exists() == (code != 2)  # an unknown name is an error before any call
    if code == 3:
        assert "apbjudge: static fails leaks" in done.err
    if code == 2:
        assert done.err.startswith("apbjudge: --fail-on: expected some of faults, refusals, ")
        assert done.err.endswith("any, none, got odd\n")


def test_a_budget_ends_with_code_1_and_goes_on(serve: Any, apbjudge: Command) -> None:
    server = serve()
    line = ("audit", *judge(server), *SMALL, "--out", "a")
    done = apbjudge(*line, "--max-calls", "10")
    assert done.code == 1
    assert len(server.requests) == 10
    assert (
        f"apbjudge: {(N - 10) / N:.2%} of the judgements are unscored; 0.00% are allowed"
        in done.err
    )
    assert f"budget {N - 10}" in " ".join(done.out.split())
    assert apbjudge(*line).code == 0
    assert len(server.requests) == N
    assert card("a")["cost"]["unscored"] == 0


def test_what_makes_no_sense_ends_with_code_2_and_one_line(apbjudge: Command) -> None:
    for line, text in {
        "static --rows nothing.jsonl": "nothing.jsonl: can't be read",
        "m/m@http://127.0.0.1:1 --quick --bases 9": "expected at most 8 with --quick",
    }.items():
        done = apbjudge("audit", *line.split())
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert text in done.err
    assert not Path("audits").exists()


def test_another_audit_in_the_same_folder_is_refused(apbjudge: Command) -> None:
    assert apbjudge("audit", "static", *SMALL, "--out", "a").code == 0
    before = Path("a/rows/main.jsonl").read_bytes()
    done = apbjudge("audit", "static", *SMALL, "--out", "a", "--seed-of-draw", "2")
    complaint = "a holds another audit; choose another folder, or --overwrite to replace that audit"
    assert (done.code, done.out) == (2, "")
    assert done.err == f"apbjudge: --out: {complaint}\n"
    assert Path("a/rows/main.jsonl").read_bytes() == before
    done = apbjudge("audit", "static", *SMALL, "--out", "a", "--seed-of-draw", "2", "--overwrite")
    assert (done.code, done.err) == (0, "")
    assert Path("a/rows/main.jsonl").read_bytes() != before


@pytest.mark.parametrize("name", ["card.json", "rows/mine.jsonl"])
@pytest.mark.parametrize("more", [(), ("--overwrite",)])
def test_files_that_no_audit_wrote_are_never_replaced(
    apbjudge: Command, name: str, more: tuple[str, ...]
) -> None:
    path = Path("a", name)
    path.parent.mkdir(parents=True)
    path.write_text("mine", encoding="utf-8")
    done = apbjudge("audit", "static", *SMALL, "--out", "a", *more)
    assert done.code == 2
    assert f"--out: a has {name}, which no audit of apbjudge wrote" in done.err
    assert path.read_text(encoding="utf-8") == "mine"


# going on -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_audit_goes_on(serve: Any, apbjudge: Command) -> None:
    finished, flying = 9, 3

    def stall(seen: Seen) -> Any:
        return whimsical(seen) if seen.number <= finished else Hang()

    server = serve(stall)
    line = ("audit", *judge(server), *SMALL, "--max-concurrency", flying)
    with start(*line, "--out", "a") as process:
        server.wait_for(finished + flying)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGKILL
    saved = sum(len(read_rows(run)) for run in Path("a/runs").iterdir())
    assert saved == finished
    server.behave = whimsical
    server.forget()
    done = apbjudge(*line, "--out", "a")
    assert (done.code, done.err) == (0, "")
    assert len(server.requests) == N - saved
    whole = apbjudge(*line, "--out", "b")
    assert whole.out.replace("b/: ", "a/: ") == done.out
    assert read_card(Path("a")) == read_card(Path("b"))


# several judges -----------------------------------------------------------------------------------


def test_two_judges_are_compared_and_so_are_their_folders(serve: Any, apbjudge: Command) -> None:
    server = serve()
    model = f"{MODEL}@{server.address}"
    done = apbjudge("audit", "static", model, "--compare", *SMALL, "--out", "a")
    assert done.code == 0
    assert len(server.requests) == N
    assert {p.suffix for p in Path("a").glob("comparison.*")} == {".json", ".md", ".html"}
    server.forget()
    folders = ("a/1-static", "a/2-hosted-vllm-scripted")
    assert [card(folder)["judge"] for folder in folders] == ["static", MODEL]
    again = apbjudge("audit", *folders, "--compare")
    assert again.code == 0
    assert done.out.endswith(again.out)
    assert again.out
    assert server.requests == []


# labels, hostile text -----------------------------------------------------------------------------


EVIL = "\x1b[2J<script>alert(1)</script>\u202e\x07"


def test_no_text_of_input_commands_the_terminal_or_the_page(serve: Any, apbjudge: Command) -> None:
    fields = dict.fromkeys(("tested_model", "source", "task_category", "case_id"), EVIL)
    row = plan_row(f"a{EVIL}", **fields, query=EVIL)
    rows = write_rows(Path("rows\x1b[2J.jsonl"), [row, row, plan_row(f"b{EVIL}")])
    label = {"item_id": f"a{EVIL}", "tested_model": EVIL, "rater": EVIL, "is_correct": True}
    labels = write_rows(Path("labels.jsonl"), [label, {**label, "is_correct": EVIL}])
    model = f"hosted_vllm/{EVIL.replace('/', '')}"

    def behave(seen: Seen) -> Answer:
        return Answer(EVIL) if seen.body["temperature"] else whimsical(seen)

    server = serve(behave)
    line = ("audit", model, "--api-base", server.address, "--retries", "0", "--no-cache")
    more = ("--labels", labels, "--self", EVIL, "--bases", "1", "--out", "a")
    done = apbjudge(*line, "--rows", rows, *more)
    assert done.code == 1
    dry = apbjudge(*line, "--rows", rows, "--dry-run")
    assert dry.code == 0
    for text in (done.out, done.err, dry.out, dry.err):
        assert [line for line in text.split("\n") if not line.isprintable()] == []
    for name in ("card.html", "card.md"):
        text = Path("a", name).read_text(encoding="utf-8")
        assert "<script>alert" not in text
        assert "\x1b" not in text
