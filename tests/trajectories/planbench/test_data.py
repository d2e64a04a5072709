"""The data folder: what is read, and which contradictions are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apbjudge.errors import InputError
from apbjudge.trajectories.planbench.data import load_data

from .world import FILES, PATHS, write_data


def _with(name: str, at: int, **changed: Any) -> list[Any]:
    entries = [dict(entry) for entry in FILES[f"{name}.json"]]
    entries[at].update(changed)
    return entries


def test_read(tmp_path: Path) -> None:
    odd = _with("queries", 1, input_datatypes=["loan", "colour"])  # which is no datatype
    data = load_data(write_data(tmp_path, queries=odd))
    assert [*data.queries] == ["q1", "q2", "q3"]
    assert [path.tools for path in data.paths["t1"]] == [frozenset(path) for path in PATHS["t1"]]
    assert data.paths["t2"][1].datatypes == {"loan", "copy", "shelf"}
    assert data.noisy["copy_of_loan_cached"].baseline_tool_name == "copy_of_loan"
    assert data.blockers["copy_of_loan_near"].output_datatype == "copy_note"


def test_the_digest_follows_the_files(tmp_path: Path) -> None:
    first = load_data(write_data(tmp_path / "a")).digest
    assert load_data(write_data(tmp_path / "b", database=None)).digest == first  # not used
    changed = write_data(tmp_path / "c", queries=_with("queries", 0, correct_answer="4"))
    assert load_data(changed).digest != first


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("blocker_tools", None, "blocker_tools.json: can't be read"),
        ("tasks", [{"name": "t1"}], "tasks.json: field 0.task_id: "),
        ("queries", _with("queries", 1, task_id="t9"), "field q2.task_id: expected a task of t"),
        ("queries", _with("queries", 2, target_datatype="isbn"), "q3.target_datatype: "),
        ("noisy_tools", _with("noisy_tools", 0, baseline_tool_name="x"), "baseline_tool_name: "),
        ("queries", _with("queries", 1, query_id="q1"), "field 1.query_id: expected an id of its"),
        ("paths_set_catalog", {"t1": [], "t2": []}, "queries.json: field q1.task_id: expected a "),
        (
            "paths_set_catalog",
            {**FILES["paths_set_catalog.json"], "t3": [{"tool_set": ["teleport"]}]},
            "paths_set_catalog.json: field t3.0.tool_set: expected a tool of baseline_tools.json",
        ),
        ("baseline_tools", _with("baseline_tools", 0, input_datatypes=["x"]), "of_card (interfa"),
        ("blocker_tools", _with("blocker_tools", 0, noise_type="rude"), "one of explicit "),
    ],
)
def test_contradictions(tmp_path: Path, name: str, content: Any, message: str) -> None:
    write_data(tmp_path, **{name: content})
    with pytest.raises(InputError) as error:
        load_data(tmp_path)
    assert str(error.value).startswith(f"{tmp_path}/")
    assert message in str(error.value)
