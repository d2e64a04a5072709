"""Hostile rows, files and folders: one clear line, no traceback, nothing on the terminal moves."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import pytest

from apbjudge import __main__

from .conftest import EXAMPLES, Command, Outcome, example, process

GOOD = {
    "id": "good",
    "tested_model": "m",
    "query": "q",
    "tools": [{"name": "find"}],
    "model_response": '{"plan": "p"}',
}


def write(*lines: bytes) -> Path:
    path = Path("rows.jsonl")
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def line_of(row: dict[str, Any]) -> bytes:
    return json.dumps(row).encode()


def test_prompt_prints_no_text_that_commands_the_terminal(apbjudge: Command) -> None:
    text = "\x1b[2J\x9b31m\u202e\r\x00"
    row = {**GOOD, **dict.fromkeys(("tested_model", "query", "system_prompt"), text)}
    row["files"] = [{"type": text, "path": f"a{text}.txt"}]
    shown = apbjudge("prompt", write(line_of(row)), "--id", "good")
    assert shown.code == 0
    assert shown.out.replace("\n", "").replace("\t", "").isprintable()


@pytest.mark.parametrize("name", [".lock", "judgements.jsonl", "manifest.json", "summary.json"])
def test_a_folder_where_a_file_should_be_is_a_usage_error(name: str, apbjudge: Command) -> None:
    apbjudge("grade", write(line_of(GOOD)), "--out", "run")
    Path("run", name).unlink()
    Path("run", name).mkdir()
    done = apbjudge("grade", "rows.jsonl", "--out", "run")
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert line.startswith("apbjudge: ")
    assert "run" in line


@pytest.mark.parametrize("out", ["file/below"])
def test_a_folder_that_can_not_be_made_is_a_usage_error(out: str, apbjudge: Command) -> None:
    Path("file").touch()
    done = apbjudge("grade", write(line_of(GOOD)), "--out", out)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1


def test_a_file_name_that_is_no_utf8_is_graded_or_refused_in_one_line(apbjudge: Command) -> None:
    name = os.fsdecode(b"rows\xff.jsonl")
    write(line_of(GOOD)).rename(name)
    done = apbjudge("grade", name)
    assert done.code in (0, 2)
    assert len(done.err.splitlines()) == (0 if done.code == 0 else 1)


@pytest.mark.parametrize("name", ["  ::set-output::x", "##[error]x"])
def test_a_name_is_no_command_for_the_runner_of_a_workflow(name: str, apbjudge: Command) -> None:
    done = apbjudge("grade", write(line_of({**GOOD, "tested_model": name})), "--out", "run")
    for line in (done.out + done.err + apbjudge("report", "run").out).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


@pytest.mark.parametrize("encoding", ["latin-1"])
@pytest.mark.slow
def test_what_the_terminal_cannot_show_is_replaced(encoding: str, tmp_path: Path) -> None:
    def command(*args: object) -> Outcome:
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        return process(*args, cwd=tmp_path, env=environment, encoding=encoding)

    done = command("grade", example("holistic"), "--out", "run")
    assert done.code == 0
    assert "alder-large      9/9  ? 100.0" in done.out
    assert command("report", "run").code == 0
    assert command("calibrate", "run", EXAMPLES / "labels" / "holistic.jsonl").code == 0


@pytest.mark.slow
def test_a_path_that_is_no_utf_8_is_written_as_json(tmp_path: Path) -> None:
    folder = os.fsdecode(b"run\xff")
    assert process("grade", example("holistic"), "--out", folder, cwd=tmp_path).code == 0
    for arguments in ([], [EXAMPLES / "labels" / "holistic.jsonl"]):
        command = "calibrate" if arguments else "report"
        done = process(command, folder, *arguments, "--format", "json", cwd=tmp_path)
        assert done.code == 0
        assert "run\\udcff" in done.out.replace("\\\\", "\\")
        json.loads(done.out)


def test_an_interrupt_where_python_cannot_raise_it_is_delivered_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Callback:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "unraisablehook", __main__._interrupt_again)
    callback, never = Callback(), threading.Event()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        del callback
        never.wait(60)
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_modules_are_imported_ends_quietly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted(MetaPathFinder):
        def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
            if fullname == "apbjudge.cli.main":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.delitem(sys.modules, "apbjudge.cli.main")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit, match="130"):
        __main__.main()


# A folder that came from a stranger ---------------------------------------------------------------

SECRET = "only-the-owner-reads-this"
OUTSIDE = ("outside/rows.jsonl", "outside/pictures", "outside/prompts.toml", "outside/rubric.toml")
_opened: list[str] | None = None


def _note_opened(event: str, args: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open" and isinstance(args[0], str | bytes):
        _opened.append(os.fsdecode(os.path.realpath(args[0])))


sys.addaudithook(_note_opened)


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """Files that this process opens while the test runs."""
    global _opened  # noqa: PLW0603 - a hook can't be removed
    _opened = []
    yield _opened
    _opened = None


def _stated(name: str, place: str) -> dict[str, Any]:
    """A manifest that names outside files in every field that names one, or in one of them."""
    rows, whole = f"{place}/rows.jsonl", str(Path(place, "rows.jsonl").resolve())
    log = {"log": {"format": "messages", "outcomes": rows}} if name == "log" else {}
    return {
        "input": rows,
        "cases": rows if name == "cases" else None,
        "data_root": f"{place}/pictures",
        "inputs": {n: {"path": whole} for n in ("predictions", "rows", "cases")},
        "prompts": {"name": f"{place}/prompts.toml" if name == "prompts" else "neutral@1"},
        "models": {"m": {"settings": {"model": "openai/m", "api_base": ["http://127.0.0.1:9/v1"]}}},
        "settings": {"model": "m"},
        "state": "done",
        **log,
    }


@pytest.fixture(
    params=["rows", *(pytest.param(n, marks=pytest.mark.slow) for n in ("cases", "log", "prompts"))]
)
def stranger(request: pytest.FixtureRequest, apbjudge: Command) -> Path:
    """``run`` from a stranger, of a judge and of a tested model, beside the reader's own files."""
    row = {**GOOD, "query": SECRET, "team": SECRET, "is_oracle": True}
    Path("outside/pictures").mkdir(parents=True)
    for name in OUTSIDE:
        if not Path(name).is_dir():
            Path(name).write_text(f"# {SECRET}\n" if name.endswith("toml") else json.dumps(row))
    place = request.getfixturevalue("place")
    apbjudge("grade", write(line_of(GOOD)), "--out", "run")
    Path("rows.jsonl").unlink()
    if place == "run/link":
        Path("run/link").symlink_to("../outside")
    elif place == "absolute":
        place = str(Path("outside").resolve())
    judged = Path("run/judgements.jsonl")
    rubric = {"rubric": f"{place}/rubric.toml"}
    judged.write_bytes(line_of(json.loads(judged.read_bytes()) | rubric) + b"\n")
    Path("run/predictions.jsonl").write_bytes(line_of(GOOD) + b"\n")
    manifest = json.loads(Path("run/manifest.json").read_bytes()) | _stated(request.param, place)
    Path("run/manifest.json").write_text(json.dumps(manifest))
    return Path("run")


PLACES = [
    "run/../outside",
    *(
        pytest.param(place, marks=pytest.mark.slow)
        for place in ("outside", "absolute", "run/link", "run/{../outside,../outside}")
    ),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", ["predict", pytest.param(None, marks=pytest.mark.slow)])
def test_what_a_strangers_manifest_names_outside_its_folder_is_never_opened(
    place: str, command: str | None, stranger: Path, opened: list[str], apbjudge: Command
) -> None:
    manifest = json.loads((stranger / "manifest.json").read_bytes())
    manifest["identity"]["command"] = command
    (stranger / "manifest.json").write_text(json.dumps(manifest))
    labels = Path("labels.csv")
    labels.write_text("item_id,tested_model,is_correct\ngood,m,1\n")
    outputs = [
        apbjudge("report", stranger, "--format", "html", "--pictures"),
        apbjudge("report", stranger, "--refined", f"x={stranger}"),
        apbjudge("calibrate", stranger, labels, "--cluster", "team"),
        apbjudge("compare", stranger, stranger, "--cluster", "team"),
        apbjudge("grade", stranger, "--out", "again"),
        apbjudge("refine", stranger, "--out", "refined", "--mode", "static"),
        apbjudge("refine", stranger, "--out", "refined", "--mode", "static", "--model", "openai/m"),
    ]
    refused = [each for each in outputs if "not opened: it lies outside the folder" in each.err]
    assert refused[0] == outputs[0]
    assert [each.code for each in (outputs[0], *outputs[-2:])] == [1, 2, 2]
    outside = str(Path("outside").resolve())
    assert [path for path in opened if path.startswith(outside)] == []


@pytest.mark.parametrize(
    ("seal", "options", "place", "is_opened"),
    [
        (None, (), "rows.jsonl", True),  # as the user's own run left it
        ("", (), "rows.jsonl", False),
        ("\u00e4", (), "rows.jsonl", False),
        ("", ("--predictions", "rows.jsonl"), "rows.jsonl", True),
        ("", (), "run/rows.jsonl", True),
    ],
)
@pytest.mark.slow
def test_rows_are_shown_of_own_runs_and_where_the_command_names_them(
    *,
    seal: object,
    options: tuple[str, ...],
    place: str,
    is_opened: bool,
    opened: list[str],
    apbjudge: Command,
) -> None:
    apbjudge("grade", write(line_of(GOOD)), "--out", "run")
    manifest = json.loads(Path("run/manifest.json").read_bytes()) | {"input": place}
    if seal is not None:
        Path("run/manifest.json").write_text(json.dumps(manifest | {"seal": seal}))
        Path("rows.jsonl").rename(place)
    opened.clear()
    done = apbjudge("report", "run", "--format", "html", *options)
    assert (str(Path(place).resolve()) in opened) == is_opened
    assert done.code == (0 if is_opened else 1)
    assert ("rows.jsonl: not opened: it lies outside" in done.err) == (not is_opened)
