"""Which judgements are of one case, where rows name none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

import apbjudge
from apbjudge.judge.summary_text import summary_text
from apbjudge.records import Item, Row
from apbjudge.records.judgement_table import case_numbers
from tests.support.judging import write_rows

EXAMPLE = Path(__file__).parents[2] / "examples" / "tool_extraneous.jsonl"
ROWS: list[dict[str, Any]] = [orjson.loads(line) for line in EXAMPLE.read_bytes().splitlines()]
UNNAMED = [{k: v for k, v in row.items() if k != "case_id"} for row in ROWS]


def graded(folder: Path, rows: list[dict[str, Any]]) -> apbjudge.Run:
    folder.mkdir()
    return apbjudge.grade(write_rows(folder / "rows.jsonl", rows), out=folder / "run")


NO_PAIR = "no provable fault, base, delta, no provable fault, base@2"


def item(**fields: Any) -> Item:
    return Row(UNNAMED[0] | fields, 1).to_item()


def test_rows_without_case_id_are_paired_with_their_base_by_content(tmp_path: Path) -> None:
    """Every figure and every interval is that of rows which name their case."""
    named, unnamed = graded(tmp_path / "a", ROWS), graded(tmp_path / "b", UNNAMED)
    assert unnamed.summary.to_json()["groups"] == named.summary.to_json()["groups"]


def test_without_a_pair_the_reason_stands_where_the_figure_does(tmp_path: Path) -> None:
    changed = [
        row | ({"query": row["query"] + " Thanks."} if "extraneous" in row["split"] else {})
        for row in UNNAMED
    ]
    text = summary_text(graded(tmp_path / "a", changed).summary)
    (reason,) = (line for line in text.splitlines() if line.startswith(NO_PAIR))
    assert "no row without distractors is of the same case: neither case_id nor query" in reason
    alone = [row for row in UNNAMED if "extraneous" in row["split"]]
    text = summary_text(graded(tmp_path / "b", alone).summary)
    assert "the run has no rows without distractors of this tested model and form" in text
    some = [row for row in UNNAMED if row in alone or row["tested_model"] == "alder-large"]
    text = summary_text(graded(tmp_path / "c", some).summary)
    (reason,) = (line for line in text.splitlines() if line.startswith(NO_PAIR))
    assert "(tool-extraneous (holistic) birch-medium, tool-extraneous (holistic) cress" in reason
    assert "alder-large" not in reason


def test_content_is_what_was_asked() -> None:
    base = item()
    names = json.loads(UNNAMED[0]["tool_names_json"])
    tools = json.loads(UNNAMED[0]["tools_json"])
    more = {
        "tools_json": json.dumps([*tools, {"name": "noise"}]),
        "tool_names_json": json.dumps([*names, "noise"]),
        "extraneous_tool_names_json": '["noise"]',
    }
    same = [
        more | {"id": "other", "tested_model": "m", "model_response": "no", "case_id": "named"},
        {"query": f" {UNNAMED[0]['query']}\n", "tools_json": json.dumps(tools[::-1], indent=1)},
    ]
    assert {item(**fields).content_id for fields in same} == {base.content_id}
    different = [
        {"query": "What else?"},
        {"system_prompt": "Be brief."},
        {"files": [{"type": "image", "path": "a.png"}]},
        {"trajectory_prefix": [{"role": "user", "content": "go"}]},
        more | {"extraneous_tool_names_json": "[]"},
    ]
    result = {item(**fields).content_id for fields in different}
    assert len(result | {base.content_id}) == len(different) + 1
    assert item(query="").content_id is None


def test_content_that_is_no_json_is_nobody_s() -> None:
    deep: Any = {}
    for _ in range(300):
        deep = {"deeper": deep}
    assert item(trajectory_prefix=[deep]).content_id is None


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=20))
def test_rows_share_a_case_where_a_chain_of_keys_leads_from_one_to_the_other(
    keys: list[tuple[int, int]],
) -> None:
    cases, contents = (np.array([key[i] for key in keys], dtype=np.uint64) for i in (0, 1))
    result = case_numbers(cases, contents).tolist()
    linked = np.array([[a == c or b == d for c, d in keys] for a, b in keys], dtype=int)
    linked = linked.reshape(len(keys), len(keys))
    for _ in keys:
        linked = (linked @ linked > 0).astype(int)
    assert [[a == b for b in result] for a in result] == (linked > 0).tolist()
    assert sorted(set(result)) == list(range(len(set(result))))
