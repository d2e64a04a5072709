"""Runs of tested models in parts: put together they are the run of one command."""

from __future__ import annotations

import json
import random
import shlex
from pathlib import Path
from typing import Any

import pandas
import pytest

import apbjudge
from apbjudge import ScriptedClient
from apbjudge.llm.base import Completion, Request
from apbjudge.records import Usage
from tests.runs.test_shards import nine_cases
from tests.support.predicting import untimed

EXAMPLES = Path(__file__).parents[2] / "examples"


def _answer(request: Request) -> Completion:
    """An answer and a price of its own for each prompt; none about one case."""
    own = random.Random(text := str(request.messages))
    reply = "" if "c3" in text else json.dumps({"plan": own.random()})
    usage = Usage(calls=1, prompt_tokens=len(text))
    return Completion(text=reply, finish_reason="stop", usage=usage, cost_usd=0.5)


@pytest.mark.parametrize("command", ["predict", "predict csv", "simulate", "branch"])
def test_parts_of_tested_models_are_put_together_as_well(command: Any, tmp_path: Path) -> None:
    command, _, other_format = command.partition(" ")
    of_benchmarks = {"simulate": "lamp.py", "branch": "trajectories/slate_cases.jsonl"}
    path: Any = EXAMPLES / of_benchmarks[command] if command in of_benchmarks else None
    path = path or nine_cases(tmp_path, {"id": "bad"}, {"query": 7}, {"query": 7})
    if other_format:
        table = pandas.read_json(path, lines=True).rename(columns={"query": "question"})
        table.to_csv(path := tmp_path / "cases.csv", index=False)
    lines = apbjudge.shards_split(path, ["--model", "m"], out=tmp_path, parts=3, command=command)
    commands = [line for line in lines if line.startswith("apbjudge ")]
    assert len(lines) - len(commands) == bool(other_format)  # a remark on the copy
    words = [shlex.split(line) for line in commands[:-1]]
    shards = [of[of.index("--shard") + 1] for of in words]
    read = tmp_path / "index.rows.jsonl" if other_format else path
    assert {of[-1] for of in words} == {str(read)}
    assert [shard.startswith(str(tmp_path)) for shard in shards] == [command == "predict"] * 3

    def run(folder: str, rows: Any = path, **options: Any) -> Any:
        client = ScriptedClient(_answer)
        of: Any = getattr(apbjudge, command)
        done = of(rows, model="scripted/m", client=client, out=tmp_path / folder, **options)
        return done, len(client.requests)

    whole, n_calls = run("whole")
    parts = [run(f"part-{i}", words[i][-1], shard=shard) for i, shard in enumerate(shards)]
    assert sum(n for _, n in parts) == n_calls > 0
    folders = [part.folder for part, _ in parts]
    merged = apbjudge.shards_merge(folders, tmp_path / "merged")
    apbjudge.shards_merge(folders[::2], tmp_path / "some", partial=True)
    tree = apbjudge.shards_merge([tmp_path / "some", folders[1]], tmp_path / "tree")
    assert tree.folder is not None
    for file in tree.folder.glob("*.jsonl"):
        assert file.read_bytes() == (tmp_path / "merged" / file.name).read_bytes()
    timed = {"latency_ms": 0, "elapsed_ms": 0}
    counts = [
        of.model_copy(update=timed) for done in (merged, whole) for of in done.counts.values()
    ]
    assert counts[: len(whole.counts)] == counts[len(whole.counts) :]
    kinds = {"predict": ["predictions", "failures"], "simulate": ["trajectories", "failures"]}
    for name in kinds.get(command, ["branched", "trajectories", "failures"]):
        rows = [untimed(folder / f"{name}.jsonl") for folder in (merged.folder, whole.folder)]
        assert rows[0] == rows[1]
    assert run("merged")[1] == 0  # it continues as the whole run
