"""The Slurm example, with shell scripts in place of ``sbatch``, ``scontrol`` and the weather."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.judging import plan_row, write_rows

EXAMPLE = Path(__file__).parents[1] / "examples" / "slurm"
SBATCH = """#!/bin/bash
# Runs the tasks one after the other, at once; those that were requeued again.
set -u
for word; do
  case $word in
    --array=*) range=${word#--array=1-}; last=${range%%%*} ;;
    --dependency=afterok:*) [ ! -e "$STATE/failed-${word##*:}" ] || exit 0 ;;
    --*) ;;
    *) break ;;
  esac
  shift
done
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
APBJUDGE = """#!/bin/bash
# Part 2 is preempted once before it begins, part 3 fails as often as it is told to.
case "$SLURM_ARRAY_TASK_ID.$SLURM_RESTART_COUNT" in
  2.0) trap 'exit 75' TERM; kill -TERM "$PPID"; while :; do :; done ;;
  3.*) [ "$SLURM_RESTART_COUNT" -ge "$FAILURES" ] || exit 1 ;;
esac
exec "$PYTHON" -m apbjudge "$@"
"""


@pytest.fixture
def cluster(tmp_path: Path) -> dict[str, str]:
    """The environment of a cluster that is this machine."""
    for name, text in {"sbatch": SBATCH, "scontrol": SCONTROL, "apbjudge": APBJUDGE}.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "state").mkdir()
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHON": sys.executable, "STATE": str(tmp_path / "state")}


def submitted(folder: Path, cluster: dict[str, str], failures: int) -> list[str]:
    """Submits rows in four parts; returns job, task, restarts and exit code of all that ran."""
    command = [EXAMPLE / "submit.sh", "4", "out", "rows.jsonl", "--protocol", "holistic"]
    environment = {**cluster, "FAILURES": str(failures)}
    subprocess.run(
        command, cwd=folder, env=environment, check=True, timeout=120, capture_output=True
    )
    log = folder / "state" / "log"
    lines = log.read_text().splitlines()
    log.unlink()
    return lines


@pytest.mark.slow
def test_parts_are_requeued_until_they_are_done_and_then_merged(
    tmp_path: Path, cluster: dict[str, str]
) -> None:
    rows = [plan_row(f"r{n}") for n in range(40)]
    write_rows(tmp_path / "rows.jsonl", rows)
    given_up = submitted(tmp_path, cluster, failures=9)
    parts = ["1 1 0 0", "1 2 0 75", "1 2 1 0", *(f"1 3 {n} 1" for n in range(4)), "1 4 0 0"]
    assert given_up == parts  # and no merge
    again = submitted(tmp_path, cluster, failures=1)
    assert again == ["2 1 0 0", "2 2 0 75", "2 2 1 0", "2 3 0 1", "2 3 1 0", "2 4 0 0", "3 1 0 0"]
    whole = tmp_path / "out" / "whole"
    judged = (whole / "judgements.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["line"] for line in judged) == list(range(1, 41))
    manifest = json.loads((whole / "manifest.json").read_text())
    shards = [part["shard"].split("@")[0] for part in manifest["parts"]]
    assert shards == ["1/4", "2/4", "3/4", "4/4"]
