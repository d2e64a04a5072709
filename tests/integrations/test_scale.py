"""Runs in parts on engines; Slurm is shell scripts in place of ``sbatch`` and ``scontrol``."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import pandas
import pytest

import apbjudge
from apbjudge.config import PartCommand
from apbjudge.errors import InputError, OptionError, PausedError
from apbjudge.integrations import local, slurm
from apbjudge.integrations.parts import DONE, Part
from apbjudge.judge.split import COMMANDS
from tests.runs.test_shards import nine_cases
from tests.support.auditing import EXAMPLES, SHORT
from tests.support.commands import in_process
from tests.support.judging import MODEL, RIGHT, plan_row, write_rows
from tests.support.predicting import untimed
from tests.support.server import PATIENCE_S, Answer, ChatServer, Seen, Status

SBATCH = """#!/bin/bash
# Runs the tasks one after the other, at once; those that were requeued again.
set -u
for word; do
  case $word in
    --wrap=*) wrap=${word#--wrap=} ;;
    --array=*) range=${word#--array=1-}; last=${range%%%*} ;;
    --dependency=afterok:*) [ ! -e "$STATE/failed-${word##*:}" ] || exit 0 ;;
    --*) ;;
    *) break ;;
  esac
  shift
done
if [ -n "${wrap:-}" ]; then set -- bash -c "$wrap"; else set -- bash "$@"; fi
id=$(($(cat "$STATE/jobs" 2> /dev/null || echo 0) + 1))
echo "$id" > "$STATE/jobs"
for ((i = 1; i <= ${last:-1}; i++)); do
  restarts=0
  while :; do
    SLURM_ARRAY_JOB_ID=$id SLURM_ARRAY_TASK_ID=$i SLURM_RESTART_COUNT=$restarts "$@" >&2
    code=$?
    echo "$id $i $restarts $code" >> "$STATE/log"
    [ -e "$STATE/requeue-${id}_$i" ] || break
    rm "$STATE/requeue-${id}_$i"
    restarts=$((restarts + 1))
  done
  [ "$code" = 0 ] || touch "$STATE/failed-$id"
done
echo "$id;cluster"
"""
SCONTROL = """#!/bin/bash
[ "$1" = requeue ] && touch "$STATE/requeue-$2"
"""
PYTHON = """#!/bin/bash
# Part 2 is preempted once before it begins, part 3 fails as often as it is told to.
case "${SLURM_ARRAY_TASK_ID:-}.${SLURM_RESTART_COUNT:-}" in
  2.0) trap 'exit 75' TERM; kill -TERM "$PPID"; while :; do :; done ;;
  3.*) [ "$SLURM_RESTART_COUNT" -ge "$FAILURES" ] || exit 1 ;;
esac
exec "$REAL" "$@"
"""
"""Stands in the place of the interpreter."""


def _plan(folder: Path, n: int = 40, **more: Any) -> Path:
    """A plan of four parts of invented rows."""
    rows = write_rows(folder / "rows.jsonl", [plan_row(f"r{i}") for i in range(n)])
    tables = {name: more.pop(name) for name in [*more] if isinstance(more[name], dict)}
    values = {"rows": str(rows), "out": str(folder / "out"), "parts": 4} | more
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    plan = folder / "run.toml"
    plan.write_text("\n".join(lines) + "\n")
    return plan


def _lines(folder: Path) -> list[int]:
    """The lines of the input that a run has judged."""
    judged = (folder / "judgements.jsonl").read_text().splitlines()
    return sorted(json.loads(line)["line"] for line in judged)


@pytest.fixture
def cluster(tmp_path: Path) -> dict[str, str]:
    """The environment of a cluster that is this machine."""
    for name, text in {"sbatch": SBATCH, "scontrol": SCONTROL, "python": PYTHON}.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "state").mkdir()
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "REAL": sys.executable, "STATE": str(tmp_path / "state")}


def submitted(plan: Path, state: Path) -> list[str]:
    """Submits a plan; returns job, task, restarts and exit code of all that ran."""
    lines: list[str] = []
    assert apbjudge.scale(plan, engine="slurm", at_once=3, tell=lines.append) is None
    assert [line.partition(" as job")[0] for line in lines[-1:]] == ["submitted 4 parts"]
    log = state / "log"
    done = log.read_text().splitlines()
    log.unlink()
    return done


@pytest.mark.slow
def test_jobs_are_requeued_until_they_are_done_and_then_merged(
    tmp_path: Path, cluster: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**cluster, "FAILURES": "9"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    plan, state = _plan(tmp_path), tmp_path / "state"
    parts = ["1 1 0 0", "1 2 0 75", "1 2 1 0", *(f"1 3 {n} 1" for n in range(4)), "1 4 0 0"]
    assert submitted(plan, state) == parts  # and no merge
    monkeypatch.setenv("FAILURES", "1")
    again = submitted(plan, state)
    assert again == ["2 1 0 0", "2 2 0 75", "2 2 1 0", "2 3 0 1", "2 3 1 0", "2 4 0 0", "3 1 0 0"]
    assert _lines(tmp_path / "out" / "whole") == list(range(1, 41))
    monkeypatch.setenv("PATH", "/nowhere")
    (tmp_path / "out" / "whole" / "manifest.json").unlink()
    with pytest.raises(OptionError, match="expected sbatch on the path"):
        apbjudge.scale(plan, engine="slurm")


LATE_KILL = """() {
  builtin kill "$@"
  local code=$?
  if [ "$1" = -TERM ]; then while builtin kill -0 "$2" 2> /dev/null; do :; done; fi
  return $code
}"""
"""A shell's ``kill`` that returns when the process has ended."""


@pytest.mark.parametrize("code", [0, 75])
def test_a_part_that_ends_as_it_is_stopped_has_its_own_code(
    cluster: dict[str, str], code: int
) -> None:
    part = f"trap 'exit {code}' TERM; builtin kill -TERM $PPID; while :; do :; done"
    states = {"APBJUDGE": shlex.join(["bash", "-c", part]), "SLURM_ARRAY_TASK_ID": "1"}
    env = cluster | states | {"SLURM_ARRAY_JOB_ID": "1", "BASH_FUNC_kill%%": LATE_KILL}
    assert subprocess.run(["bash", slurm.SCRIPT], env=env, check=False).returncode == code


def _drafts(folder: Path) -> Path:
    rows = [plan_row(f"r{i}", tested_model=MODEL) for i in range(9)]
    return write_rows(folder / "drafts.jsonl", rows)


TOY = EXAMPLES.parent / "tests" / "agents" / "environments" / "execution" / "toy.py"
LOADS: dict[PartCommand, tuple[Any, dict[str, Any]]] = {
    "grade": (SHORT, {"judge": MODEL}),
    "predict": (nine_cases, {"model": MODEL, "samples": 3}),
    "refine": (_drafts, {"model": MODEL, "mode": "self"}),
    "simulate": (EXAMPLES / "lamp.py", {"model": MODEL, "trials": 3}),
    "execute": (TOY, {"model": MODEL, "mode": ["direct", "plan-first", "gold"], "trials": 2}),
    "branch": (EXAMPLES / "trajectories" / "slate_cases.jsonl", {"model": MODEL}),
    "audit": (SHORT, {"judge": MODEL, "bases": 2}),
    "check": (nine_cases, {"ask": MODEL, "votes": 1}),
}
"""Rows of each command, or what writes them, and its options."""


def _by_text(seen: Seen) -> Answer:
    """A verdict, a plan or a last message: always the same for the same text."""
    toss = sha256(seen.text.encode()).digest()[0]
    if (form := seen.body.get("response_format")) is None:
        return Answer(json.dumps({"plan": f"{toss}", "content": f"{toss}", "tool_calls": []}))
    reply = dict.fromkeys(form["json_schema"]["schema"]["properties"], False)
    own: dict[str, Any] = {"reasoning": "so", "grade": 1.0, "is_correct": True, "category": 2}
    if toss % 3 == 0:
        code = next(name for name in reply if name not in own)
        own |= {"grade": 0.4, "is_correct": False, "category": 5, code: True}
    return Answer(json.dumps({name: own.get(name, value) for name, value in reply.items()}))


def _results(command: str, folder: Path, result: Any) -> dict[str, Any]:
    """What is in the files of a run but its ledger, without usage, and what is made of them."""
    spent = dict.fromkeys(("usage", "cost_usd", "latency_s", "latency_ms"))
    paths = [path for path in folder.rglob("*.jsonl") if path.name != "attempts.jsonl"]
    files: dict[str, Any] = {
        str(path.relative_to(folder)): [row | spent for row in untimed(path)] for path in paths
    }
    if command == "grade":
        files["summary.json"] = (folder / "summary.json").read_bytes()
    if command == "check":
        files["report"] = result.to_json()
        files["findings.jsonl"] = folder.with_name("findings.jsonl").read_bytes()
    if command == "audit":  # parts have no common order of calls
        files["probes"] = [of for of in result.card.probes if of.name != "drift"]
    return files


def _mark_running(folder: Path) -> None:
    """Leaves runs as the command that follows a merge leaves them when it is killed."""
    for path in folder.glob("**/manifest.json"):
        manifest = json.loads(path.read_text())
        if "state" in manifest:
            manifest.pop("parts", None)
            path.write_text(json.dumps(manifest | {"state": "running"}))


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_parts_of_every_command_make_the_whole(
    command: PartCommand,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command that follows the merge asks nothing, and goes on where it was killed."""
    of, (rows, options) = COMMANDS[command], LOADS[command]
    rows = str(rows(tmp_path) if callable(rows) else rows)
    whole = tmp_path / "out" / "whole"
    with ChatServer(_by_text) as server:
        options = options | {"api_base": server.address, "cache": False}
        found = {"findings": str(whole.with_name("findings.jsonl"))} if command == "check" else {}
        plan = _plan(tmp_path, 1, rows=rows, parts=3, command=command, options=options | found)
        run = apbjudge.scale(plan, at_once=1)
        results, n_calls = [_results(command, whole, run)], len(server.requests)
        for is_killed in (False, True):
            if is_killed and of.has_last:
                _mark_running(whole)
            run = apbjudge.scale(plan, at_once=1)
            assert (run is not None) is of.has_last
            results.append(_results(command, whole, run))
        printed = in_process(monkeypatch, capsys)("scale", plan)
        assert printed.code == 0
        begins = {"audit": f"Judge card: {MODEL}\n", "check": "9 cases in 9 rows of "}
        assert printed.out.startswith(begins.get(command, ""))
        assert len(server.requests) == n_calls > 0
        found = {"findings": str(tmp_path / "findings.jsonl")} if command == "check" else {}
        own: Any = {of.rows: rows, of.out: tmp_path / "one", **options, **found}
        results.append(_results(command, tmp_path / "one", getattr(apbjudge, command)(**own)))
        assert len(server.requests) == 2 * n_calls
    assert results[1:] == results[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["execute", "audit", "check"])
def test_parts_with_rows_without_a_result_are_started_again(
    command: PartCommand, tmp_path: Path
) -> None:
    lines: list[str] = []
    rows, options = LOADS[command]
    rows = str(rows(tmp_path) if callable(rows) else rows)

    def answer(seen: Seen) -> Answer | Status:
        return _by_text(seen) if seen.number > 2 else Status(500)

    with ChatServer(answer) as server:
        options = options | {"api_base": server.address, "retries": 0}
        plan = _plan(tmp_path, 1, rows=rows, command=command, options=options)
        run: Any = apbjudge.scale(plan, at_once=1, tell=lines.append)
    assert re.search(r"part-.: [12] rows have no result yet \(start 1 of 4\)", lines[0])
    left = {"execute": "failed", "audit": "n_unscored", "check": "unanswered"}[command]
    assert not getattr(run, left)


def _running(address: str, **settings: Any) -> dict[str, Any]:
    return {"judge": "hosted_vllm/m", "api_base": address, "max_concurrency": 4, **settings}


@pytest.mark.slow
def test_a_killed_process_costs_what_was_in_flight(tmp_path: Path) -> None:
    """The merged run is the one of a single command; finished parts are not started again."""
    right = Answer(RIGHT)

    def answer(seen: Seen) -> Answer:
        if seen.number in (12, 25):
            multiprocessing.active_children()[0].kill()
        return right

    lines: list[str] = []
    with ChatServer(answer) as server:
        plan = _plan(tmp_path, options=_running(server.address))
        run = apbjudge.scale(plan, tell=lines.append)
        assert isinstance(run, apbjudge.Run)
        assert _lines(tmp_path / "out" / "whole") == list(range(1, 41))
        assert 40 <= len(server.requests) <= 40 + 2 * 4  # the other process goes on
        assert sum("its process was killed (start 1 of 4)" in line for line in lines) == len(lines)
        server.forget()
        settings, rows = _running(server.address), tmp_path / "rows.jsonl"
        whole = apbjudge.grade(rows, out=tmp_path / "one", **settings)
        figures = [of.summary.to_json() | {"totals": None} for of in (run, whole)]
        assert figures[0] == figures[1]  # the totals have what the kills cost
        server.forget()
        assert apbjudge.scale(plan, tell=lines.append) is None
        assert "whole holds the whole run already" in lines[-1]
        shutil.rmtree(tmp_path / "out" / "whole")
        assert apbjudge.scale(plan) is not None  # of parts that are all done
        assert server.requests == []


@pytest.mark.slow
def test_a_process_that_is_killed_between_two_parts_is_replaced(tmp_path: Path) -> None:
    rows = str(write_rows(tmp_path / "rows.jsonl", [plan_row("a"), plan_row("b")]))
    parts = [Part("grade", rows, {}, f"{i}/2", tmp_path / f"part-{i}") for i in (1, 2)]
    before, ended = {*threading.enumerate()}, list[tuple[Part, int]]()
    with closing(local.run_parts(parts, at_once=1)) as running:
        for part, end in running:
            ended.append((part, end.code))
            for child in multiprocessing.active_children():
                child.kill()
            for thread in {*threading.enumerate()} - before:
                thread.join(PATIENCE_S)  # its pool has noticed
    assert ended == [(part, DONE) for part in parts]


@pytest.mark.slow
def test_parts_of_a_process_share_its_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APBJUDGE_CACHE_DIR", str(tmp_path / "cache"))
    right = Answer(RIGHT)
    with ChatServer(lambda seen: right) as server:
        options = _running(server.address, cache_kind="segments")
        apbjudge.scale(_plan(tmp_path, options=options), at_once=2)
        assert len([*tmp_path.glob("cache/replies/*")]) == 2
        server.forget()
        apbjudge.scale(_plan(tmp_path, out=str(tmp_path / "again"), options=options))
        assert server.requests == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sign", "code"), [("SIGTERM", 75), ("SIGINT", 130), ("SIGKILL", -signal.SIGKILL)]
)
def test_an_engine_that_is_stopped_pauses_its_parts(tmp_path: Path, sign: str, code: int) -> None:
    """Calls in flight finish, also where it can't wait for them; the same command goes on."""
    paused = threading.Event()

    def answer(seen: Seen) -> Answer:
        assert seen.number <= 20 or paused.wait(PATIENCE_S)
        return Answer(RIGHT)

    def scaled() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "apbjudge", "scale", str(plan)]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)

    with ChatServer(answer) as server:
        plan = _plan(tmp_path, 120, options=_running(server.address))
        first = scaled()
        server.wait_for(20 + 2 * 4)  # all calls that two parts may have in flight
        os.kill(first.pid, getattr(signal, sign))
        assert first.stderr is not None
        noted = (line for line in first.stderr if "pausing: 4 rows in flight" in line)
        assert len([*islice(noted, 2)]) == 2
        paused.set()
        _, err = first.communicate(timeout=PATIENCE_S)  # its processes hold it open
        assert first.returncode == code, err
        states = [json.loads(path.read_text())["state"] for path in tmp_path.glob("out/*/manif*")]
        assert states == ["paused"] * 2
        second = scaled()
        _, err = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 0, err
        assert len(server.requests) == 120
    assert _lines(tmp_path / "out" / "whole") == list(range(1, 121))


@pytest.mark.slow
def test_limits_hold_for_all_parts_together(tmp_path: Path) -> None:
    lines: list[str] = []
    right = Answer(RIGHT)
    with ChatServer(lambda seen: right) as server:
        plan = _plan(tmp_path, options=_running(server.address, max_calls=9))
        run = apbjudge.scale(plan, tell=lines.append)
        assert isinstance(run, apbjudge.Run)
        assert len(server.requests) == run.summary.scored == 8
    assert lines[:2] == [
        "max_calls of a part: 2, 8 in all",
        "parts are started once, because of max_calls",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("address", ["", "file://"])
def test_rows_in_another_format_are_copied_once_for_all_starts(
    address: str, tmp_path: Path
) -> None:
    table = pandas.read_json(SHORT, lines=True).rename(columns={"query": "asked"})
    table.to_csv(rows := tmp_path / "rows.csv", index=False)
    more: dict[str, Any] = {"rows": address + str(rows), "options": {"map": ["query=asked"]}}
    run, out = apbjudge.scale(_plan(tmp_path, parts=3, **more)), tmp_path / "out"
    assert isinstance(run, apbjudge.Run)
    assert run.summary == apbjudge.grade(rows, map="query=asked").summary
    made = (out / "index.rows.jsonl").stat()
    assert not [*out.glob("part-*.jsonl")]
    for name in ("whole", "part-2"):
        shutil.rmtree(out / name)
    again = apbjudge.scale(_plan(tmp_path, parts=3, **more))
    assert isinstance(again, apbjudge.Run)
    assert again.summary == run.summary
    assert (out / "index.rows.jsonl").stat() == made
    shutil.rmtree(out / "whole")
    with pytest.raises(InputError, match=r"rows.jsonl: expected .*rows.csv, the file that"):
        apbjudge.scale(_plan(tmp_path, parts=3, options=more["options"]))
    if not address:
        table[:-1].to_csv(rows, index=False)
        with pytest.raises(InputError, match=r"rows.csv: expected the file that .*index.json"):
            apbjudge.scale(_plan(tmp_path, parts=3, **more))


@pytest.mark.slow
def test_a_plan_that_was_changed_is_refused(tmp_path: Path) -> None:
    """Before what is done is mixed with what could never be merged with it."""
    right = Answer(RIGHT)
    with ChatServer(lambda seen: right) as server:
        options = _running(server.address)
        apbjudge.scale(_plan(tmp_path, options=options))
        server.forget()
        for name in ("whole", "part-2"):
            shutil.rmtree(tmp_path / "out" / name)
        with pytest.raises(OptionError, match=r"part-2 have different settings \(protocol\)"):
            apbjudge.scale(_plan(tmp_path, options=options | {"protocol": "holistic"}))
        assert len(server.requests) <= 5
        for n in (3, 5):
            with pytest.raises(OptionError, match=f"parts: expected 4, .* got {n}"):
                apbjudge.scale(_plan(tmp_path, parts=n, options=options))
        with pytest.raises(InputError, match=r"rows.jsonl: expected the file that .*index.json"):
            apbjudge.scale(_plan(tmp_path, 41, options=options))
        (tmp_path / "out" / "index.json").unlink()
        with pytest.raises(OptionError, match=r"parts: expected 4, of which .*part-1 is one"):
            apbjudge.scale(_plan(tmp_path, parts=50, options=options))


@pytest.mark.slow
def test_parts_that_are_not_done_are_named(tmp_path: Path) -> None:
    def answer(seen: Seen) -> Answer:
        for child in multiprocessing.active_children():
            child.kill()
        return Answer(RIGHT)

    with ChatServer(answer) as server:
        plan = _plan(tmp_path, 4, options=_running(server.address))
        every = "not done after 2 starts: " + ", ".join(rf"\S+/part-{n}" for n in range(1, 5))
        with pytest.raises(PausedError, match=every):
            apbjudge.scale(plan, starts=2)


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"parts": 0}, "parts: expected"),
        ({"command": "report"}, "command: expected"),
        ({"command": "check"}, "options: expected ask, the judge .*, got nothing"),
        (
            {"command": "audit", "options": {"judge": ["a/b", "c/d"]}},
            r"options: expected judge, .*, got \['a/b', 'c/d'\]",
        ),
        (
            {"command": "check", "options": {"ask": "m", "run": "runs/one"}},
            "expected no run, which each part has of its own",
        ),
        (
            {"command": "check", "options": {"ask": "m", "max_calls": 4}},
            "max_calls: expected at least 1 for each of 5 parts, got 4",
        ),
        ({"options": {"shard": "1/2"}}, "expected no shard"),
        ({"options": {"events": 1}}, "expected no events"),
        pytest.param(
            {"options": {"judgee": "m"}},
            r"part-.: grade: .*did you mean judge",
            marks=pytest.mark.slow,
        ),
        ({"options": {"max-cost": "low"}}, "max_cost: expected a number, got 'low'"),
        (
            {"options": {"max_calls": 3}},
            "max_calls: expected at least 1 for each of 4 parts, got 3",
        ),
        pytest.param({"options": {"judge": "nobody/m"}}, "part-.: ", marks=pytest.mark.slow),
        ({"rows": "absent.jsonl"}, "absent.jsonl"),
    ],
)
def test_unusable_plans_are_refused(tmp_path: Path, more: dict[str, Any], complaint: str) -> None:
    with pytest.raises((OptionError, InputError), match=complaint):
        apbjudge.scale(_plan(tmp_path, 8, **more))


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Any]:
    """A cluster on this machine."""
    ray: Any = import_module("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False)
        yield ray
        ray.shutdown()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: not shown")
@pytest.mark.parametrize("command", ["grade", "predict", "execute"])
def test_parts_are_tasks_of_ray(
    command: PartCommand, ray_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of relative paths, in a cluster that began elsewhere, where a worker is killed."""
    at_work = tmp_path / "elsewhere"
    at_work.mkdir()

    def answer(seen: Seen) -> Answer:
        if seen.number == 6:
            for folder in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):  # of others, or it has ended
                    is_worker = (folder / "cmdline").read_bytes().startswith(b"ray::_run")
                    if is_worker and (folder / "cwd").readlink() == at_work:
                        os.kill(int(folder.name), signal.SIGKILL)
                        break
        return _by_text(seen)

    of, (rows, options) = COMMANDS[command], LOADS[command]
    rows = str(rows(tmp_path) if callable(rows) else rows)
    with ChatServer(answer) as server:
        options = options | {"api_base": server.address, "cache": False, "max_concurrency": 4}
        plan = _plan(tmp_path, 1, rows=rows, out="out", command=command, options=options)
        monkeypatch.chdir(at_work)
        run = apbjudge.scale(plan, engine="ray")
        n_calls = len(server.requests)
        server.forget()
        own: Any = {of.rows: rows, of.out: tmp_path / "one", **options}
        one = getattr(apbjudge, command)(**own)
        assert 6 < len(server.requests) <= n_calls <= len(server.requests) + 4
    results = [
        _results(command, *of) for of in ((at_work / "out/whole", run), (tmp_path / "one", one))
    ]
    assert results[0] == results[1]
    assert ray_cluster.is_initialized()  # it is the caller's
