"""``apbjudge init``: what it writes runs as it is, and nothing that is there is changed."""

from __future__ import annotations

import shlex
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from .conftest import Command

ROOT = Path(__file__).parents[2]
OWN_ROWS = {
    "own.csv": 'question,completion,ms\nRefund order 7.,"[{""tool"": ""refund""}]",3\n',
    "own.json": '[{"prompt": "Refund order 7.", "answer": "I refund it.", "model": "m"}]',
}
READ = {
    "own.csv": ["query=question", "model_response=completion"],
    "own.json": ["tested_model=model", "query=prompt", "model_response=answer"],
}


@pytest.mark.parametrize("name", ["", *OWN_ROWS, "support.jsonl"])
def test_what_init_writes_runs_as_it_is(
    name: str, apbjudge: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    if name in OWN_ROWS:
        (folder / name).write_text(OWN_ROWS[name], encoding="utf-8")
    elif name:
        shutil.copy(ROOT / "examples" / "trajectories" / name, folder)
    done = apbjudge("init", "a b", *(["--from", f"a b/{name}"] if name else []))
    assert done.code == 0, done.err
    cd, grade = done.out.splitlines()[-1].removeprefix("next: ").split(" && ")
    monkeypatch.chdir(shlex.split(cd)[1])
    assert apbjudge(*shlex.split(grade)[1:]).code == 0
    settings = tomllib.loads((folder / "apbjudge.toml").read_text(encoding="utf-8"))
    assert sorted(settings["grade"].get("map", [])) == sorted(READ.get(name, []))
    job = yaml.safe_load((folder / ".github/workflows/plans.yml").read_text(encoding="utf-8"))
    inputs = job["jobs"]["grade"]["steps"][1]["with"]
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert inputs.keys() <= action["inputs"].keys()
    gates = [f"--fail-under={gate}" for gate in inputs.get("fail-under", "").split()]
    assert apbjudge("grade", inputs["predictions"], *gates, "--out", "again").code == 0


def test_init_changes_no_file_and_says_what_a_project_file_lacks(apbjudge: Command) -> None:
    Path("own.csv").write_text(OWN_ROWS["own.csv"], encoding="utf-8")
    Path("apbjudge.toml").write_text("[grade]\n", encoding="utf-8")
    done = apbjudge("init", "--from", "own.csv")
    assert done.code == 0
    assert "left as it is: apbjudge.toml; [grade] needs map = [" in done.out
    assert Path("apbjudge.toml").read_text(encoding="utf-8") == "[grade]\n"
    assert apbjudge("init", "sub", "--from", "own.csv").code == 2
    Path("plans.jsonl").mkdir()
    assert apbjudge("init").code == 2
    assert not Path("sub").exists()
