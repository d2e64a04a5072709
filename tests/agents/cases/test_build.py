"""From a source to cases, from cases to findings: the whole way, with hostile sources."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import InputError, OptionError
from apbjudge.agents.cases.build import CASES, MANIFEST, REJECTS
from apbjudge.agents.cases.cases import BUILT_SPLITS
from apbjudge.agents.cases.composition import DataSetCounts, split_of
from apbjudge.records import Row

from .checking import opened
from .worlds import TOWN

EXAMPLES = TOWN.parents[1]
GOLDEN = Path(__file__).parents[2] / "golden" / "built_town.txt"


def built(tmp_path: Path, source: Path = TOWN, **settings: Any) -> apbjudge.Build:
    settings = {"split": "all", "out": tmp_path / "out", "data_root": EXAMPLES} | settings
    return apbjudge.build(source, **settings)


def rows(build: apbjudge.Build, name: str = CASES) -> list[dict[str, Any]]:
    text = (build.out / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> apbjudge.Build:
    return built(tmp_path_factory.mktemp("town"), licence="CC0-1.0")


def test_the_account_of_a_build_adds_up(town: apbjudge.Build) -> None:
    made, funnel = rows(town), town.manifest["funnel"]
    assert (funnel["written"], funnel["licences"]) == (len(made), {"CC0-1.0": len(made)})
    assert {split_of(Row(row, 1).to_case()) for row in made} == set(BUILT_SPLITS)
    counted = Counter(funnel["rejected"])
    for of in funnel["transforms"]:
        counted.update(of["rejected"])
    assert Counter(row["reason"] for row in rows(town, REJECTS)) == counted
    assert json.loads((town.out / MANIFEST).read_bytes()) == town.manifest


def test_what_is_built_of_a_town_is_that_of_the_golden_file(town: apbjudge.Build) -> None:
    """Rows of one trajectory and one about a picture; each by what differs from the row before."""
    before: dict[str, Any] = {}
    seen: list[Any] = []
    shown = [json.dumps(town.manifest["funnel"], indent=1)]
    shown.append((town.out / REJECTS).read_text(encoding="utf-8"))
    for row in rows(town):
        seed, transform = row["construction"]["seed"], row["construction"]["transform"]
        if seed == "town-08" or transform == "visual_missing":
            parts = opened(row)
            parts["tools"] = [tool["name"] if tool in seen else tool for tool in parts["tools"]]
            seen += [tool for tool in parts["tools"] if tool not in seen]
            changed = {name: part for name, part in parts.items() if before.get(name) != part}
            shown.append(json.dumps(changed, indent=1, ensure_ascii=False))
            before = parts
    text = "\n".join(shown).replace(str(TOWN.parent), "RUNS") + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


KINDS = ("bounds", "missing_dimension", "compliance_lock", "dynamic_state")


def test_a_plan_that_calls_the_tool_that_is_offline_fails_and_results_are_by_kind(
    town: apbjudge.Build,
) -> None:
    made = {row["id"]: row for row in rows(town)}
    contradictory = [
        row for row in made.values() if row.get("unsolvable_type") == "contradictory_constraints"
    ]
    counts = Counter(row["construction"]["contradiction_kind"] for row in contradictory)
    assert counts == {"bounds": 5, **dict.fromkeys(KINDS[1:], 8)}
    answers: list[dict[str, Any]] = []
    for row in contradictory:
        assert row["construction"]["twin"] in made
        offline = row["construction"].get("offline_tool")
        chain = [{"name": offline, "parameter_description": {}, "reason": "r"}]
        replies = {
            "calls": json.dumps({"plan": "As asked.", "tool_chain": chain}),
            "declines": json.dumps({"status": "REJECT", "reason": f"{offline} is down."}),
        }
        for model, reply in replies.items() if offline else ():
            answers.append({**row, "tested_model": model, "model_response": reply})
    run = apbjudge.grade(answers, by=("contradiction_kind",))
    proven = {
        (of.tested_model, tuple(f.rule for f in of.findings if f.certainty == "proven"))
        for of in run.judgements
    }
    assert proven == {("calls", ("offline-tool",)), ("declines", ())}
    by = {group.by.get("contradiction_kind") for group in run.summary.groups}
    assert by == {None, *KINDS[1:]}


def test_another_seed_draws_others(town: apbjudge.Build, tmp_path: Path) -> None:
    other = built(tmp_path, split="holistic_tool_extraneous", seed_of_draw=5)
    names = {row["id"]: row["extraneous_tool_names_json"] for row in rows(other)}
    same = {row["id"]: row.get("extraneous_tool_names_json") for row in rows(town)}
    assert names.keys() <= same.keys()
    assert names.items() - same.items()


def test_built_cases_hold_what_check_asks_of_them(town: apbjudge.Build) -> None:
    report = apbjudge.check(town.out / CASES, data_root=EXAMPLES)
    assert report.count("proven") == 0
    assert set(report.counts) <= {"reference-quoted"}
    assert report.cases == town.funnel.written


def test_bad_entries_are_rejects_with_their_line_and_never_a_stop(tmp_path: Path) -> None:
    source = tmp_path / "odd.jsonl"
    good = TOWN.read_text(encoding="utf-8").splitlines()[2]
    bad = json.loads(good) | {"id": "x", "case_id": "x", "tools": 7}
    escaping = json.loads(good) | {"id": "y", "case_id": "y", "files": ["../../etc/passwd"]}
    lines = [good, "{no json", json.dumps(bad), json.dumps(escaping), "[1, 2]", good]
    source.write_text("\n".join(lines), encoding="utf-8")
    build = built(tmp_path, source, data_root=None, split="holistic_planning")
    assert build.funnel.seeds == 1
    assert len(rows(build)) == 1
    assert build.funnel.rejected.total() == 5
    places = {row["source"] for row in rows(build, REJECTS)}
    assert {f"{source}:2", f"{source}:4"} <= places
    assert any(":2:" in problem for problem in build.problems)


def test_nothing_to_build_from_says_what_was_in_the_way(tmp_path: Path) -> None:
    source = tmp_path / "none.jsonl"
    source.write_text(TOWN.read_text(encoding="utf-8").splitlines()[8], encoding="utf-8")
    with pytest.raises(InputError, match=r"got none: the trajectory did not succeed \(1\)"):
        built(tmp_path, source)
    assert not (tmp_path / "out" / CASES).exists()


def test_a_folder_of_others_and_unusable_settings_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    built(tmp_path, split="holistic_planning")
    with pytest.raises(OptionError, match="holds a build; --overwrite replaces it"):
        built(tmp_path, split="holistic_planning")
    built(tmp_path, split="holistic_planning", overwrite=True)
    (out / "thesis.tex").touch()
    with pytest.raises(OptionError, match=r"got 'thesis\.tex'"):
        built(tmp_path, split="holistic_planning", overwrite=True)
    with pytest.raises(OptionError, match="expected some of holistic_planning"):
        built(tmp_path, split="sideways")
    with pytest.raises(OptionError, match="whole numbers from 1 to 50"):
        built(tmp_path, levels=(0, 2))


# Composition --------------------------------------------------------------------------------------


def test_lengths_fall_into_the_paper_s_ranges() -> None:
    counts = DataSetCounts(cases=6)
    counts.steps.update([1, 10, 11, 20, 21])
    assert [counts.in_range(name) for name in ("1-10", "11-20", ">20")] == [2, 2, 1]
    assert counts.mean_steps == pytest.approx(63 / 5)
    assert DataSetCounts().mean_steps is None


def reference(case: dict[str, Any]) -> str:
    """What a perfect planner replies."""
    if "prediction_horizon" in case:
        return case["ground_truth_steps_json"]
    if case.get("unsolvable_type"):
        return json.dumps({"status": "REJECT", "reason": case["plan"]})
    return json.dumps({"plan": case["plan"], "tool_chain": json.loads(case["tool_chain_json"])})
