"""From a source to cases, from cases to findings: the whole way, with hostile sources."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import InputError, OptionError
from apbjudge.construction.build import CASES, MANIFEST, REJECTS
from apbjudge.construction.cases import BUILT_SPLITS
from apbjudge.construction.composition import DataSetCounts, split_of
from apbjudge.llm.base import Completion, Request, ScriptedClient
from apbjudge.prediction.prompts import PromptMaker
from apbjudge.records import Row, Usage

from .worlds import TOWN

EXAMPLES = TOWN.parents[1]


def built(tmp_path: Path, source: Path = TOWN, **settings: Any) -> apbjudge.Build:
    settings = {"split": "all", "out": tmp_path / "out", "data_root": EXAMPLES} | settings
    return apbjudge.build(source, **settings)


def rows(build: apbjudge.Build, name: str = CASES) -> list[dict[str, Any]]:
    text = (build.out / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_every_split_is_built_and_the_account_adds_up(tmp_path: Path) -> None:
    build = built(tmp_path, licence="CC0-1.0")
    made = rows(build)
    funnel = build.manifest["funnel"]
    assert (funnel["entries"], funnel["seeds"], funnel["kept"]) == (9, 8, len(made))
    assert funnel["rejected"] == {"the run did not succeed": 1}
    assert funnel["licences"] == {"CC0-1.0": len(made)}
    splits = Counter(split_of(Row(row, 1).to_case()) for row in made)
    assert set(splits) == set(BUILT_SPLITS)
    by_split = Counter[str]()
    for of in funnel["transforms"]:
        assert of["built"] >= of["kept"]
        by_split[of["split"]] += of["kept"]
    assert by_split == splits
    rejected = Counter(row["reason"] for row in rows(build, REJECTS))
    counted = Counter(funnel["rejected"])
    for of in funnel["transforms"]:
        counted.update(of["rejected"])
    assert rejected == counted
    assert json.loads((build.out / MANIFEST).read_bytes()) == build.manifest


def test_built_cases_hold_what_check_asks_of_them(tmp_path: Path) -> None:
    build = built(tmp_path)
    report = apbjudge.check(build.out / CASES, data_root=EXAMPLES)
    assert report.count("proven") == 0
    assert set(report.counts) <= {"reference-quoted"}
    assert report.cases == build.funnel.kept
    twins = {row["id"] for row in rows(build)}
    for row in rows(build):
        assert row["construction"].get("twin", row["id"]) in twins


@pytest.mark.slow
def test_equal_seeds_give_equal_bytes_and_another_seed_others(tmp_path: Path) -> None:
    one, same = (built(tmp_path, out=tmp_path / name) for name in ("a", "b"))
    other = built(tmp_path, out=tmp_path / "c", seed_of_draw=5)
    for name in (CASES, REJECTS, MANIFEST):
        assert (one.out / name).read_bytes() == (same.out / name).read_bytes()
    assert (one.out / CASES).read_bytes() != (other.out / CASES).read_bytes()


@pytest.mark.slow
def test_the_order_of_the_source_moves_no_case(tmp_path: Path) -> None:
    lines = TOWN.read_text(encoding="utf-8").splitlines()
    turned = tmp_path / "town.jsonl"
    turned.write_text("\n".join(reversed(lines)), encoding="utf-8")
    one, other = built(tmp_path, out=tmp_path / "a"), built(tmp_path, turned, out=tmp_path / "b")

    def known(build: apbjudge.Build) -> set[str]:
        kept = [
            {**row, "construction": {**row["construction"], "source": ""}} for row in rows(build)
        ]
        return {json.dumps(row) for row in kept}

    assert known(one) == known(other)


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
    assert build.funnel.unreadable + sum(build.funnel.rejected.values()) == 5
    places = {row["source"] for row in rows(build, REJECTS)}
    assert {f"{source}:2", f"{source}:4"} <= places
    assert any(":2:" in problem for problem in build.problems)


def test_nothing_to_build_from_says_what_was_in_the_way(tmp_path: Path) -> None:
    source = tmp_path / "none.jsonl"
    source.write_text(TOWN.read_text(encoding="utf-8").splitlines()[8], encoding="utf-8")
    with pytest.raises(InputError, match=r"got none: the run did not succeed \(1\)"):
        built(tmp_path, source)
    assert not (tmp_path / "out" / CASES).exists()


def test_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    built(tmp_path, split="holistic_planning")
    with pytest.raises(OptionError, match="holds a build; --overwrite replaces it"):
        built(tmp_path, split="holistic_planning")
    built(tmp_path, split="holistic_planning", overwrite=True)
    (out / "thesis.tex").touch()
    with pytest.raises(OptionError, match=r"got 'thesis\.tex'"):
        built(tmp_path, split="holistic_planning", overwrite=True)


def test_unusable_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="expected some of holistic_planning"):
        built(tmp_path, split="sideways")
    with pytest.raises(OptionError, match="whole numbers from 1 to 50"):
        built(tmp_path, levels=(0, 2))


# Composition --------------------------------------------------------------------------------------


def test_lengths_fall_into_the_paper_s_ranges() -> None:
    counts = DataSetCounts(cases=6)
    counts.lengths.update([1, 10, 11, 20, 21])
    assert [counts.in_range(name) for name in ("1-10", "11-20", ">20")] == [2, 2, 1]
    assert counts.mean_length == pytest.approx(63 / 5)
    assert DataSetCounts().mean_length is None


# From built cases to a report --------------------------------------------------------------------


@pytest.mark.slow
def test_built_cases_are_predicted_graded_and_reported_as_they_are(tmp_path: Path) -> None:
    """One tested model gives the references; one wants a tool that nobody has."""
    build = built(tmp_path)
    cases = rows(build)
    maker = PromptMaker.of("neutral@1", (EXAMPLES,), apbjudge.PlannerSpec(model="expert"))
    references = {
        json.dumps(maker.make(Row(case, 1).to_case()).messages()): reference(case) for case in cases
    }

    def reply(request: Request) -> Completion:
        text = references[json.dumps(request.messages)]
        if request.model == "careless":
            text = re.sub(r'("name": ?)"[^"]+"', r'\1"do_everything"', text)
        return Completion(text=text, finish_reason="stop", usage=Usage(calls=1), cost_usd=0.0)

    predictions = apbjudge.predict(
        build.out / CASES,
        model=[apbjudge.PlannerSpec(model=name, vision="yes") for name in ("expert", "careless")],
        data_root=EXAMPLES,
        client=ScriptedClient(reply),
        out=tmp_path / "predictions",
    )
    assert not predictions.failed
    run = apbjudge.grade(predictions, cases=build.out / CASES, data_root=EXAMPLES)
    found = {
        model: {j.item_id for j in run.judgements if j.tested_model == model and j.findings}
        for model in ("expert", "careless")
    }
    calling = {case["id"] for case in cases if '"name"' in reference(case)}
    assert not found["expert"]
    assert found["careless"] == calling
    report = apbjudge.report(run)
    shown = {table.key for table in report.tables}
    assert shown >= {"overall", "extraneous", "efficiency", "stage", "horizon"}
    report.write_page(tmp_path / "page.html")
    assert "careless" in (tmp_path / "page.html").read_text(encoding="utf-8")


def reference(case: dict[str, Any]) -> str:
    """What a perfect planner replies."""
    if "prediction_horizon" in case:
        return case["ground_truth_steps_json"]
    if case.get("unsolvable_type"):
        return json.dumps({"status": "REJECT", "reason": case["plan"]})
    return json.dumps({"plan": case["plan"], "tool_chain": json.loads(case["tool_chain_json"])})


# Twins --------------------------------------------------------------------------------------------


def test_a_twin_can_be_solved_by_replaying_its_reference_and_the_case_cannot(
    tmp_path: Path,
) -> None:
    """A value must be in the query or in a result so far, and a call gets what the log has."""
    made = {row["id"]: row for row in rows(built(tmp_path))}
    lines = TOWN.read_text(encoding="utf-8").splitlines()
    logs = {f"town.jsonl:{number}": json.loads(line) for number, line in enumerate(lines, start=1)}
    replayed = Counter[str]()
    for row in made.values():
        kind = row.get("unsolvable_type")
        if kind in (None, "contradictory_constraints"):  # its calls can be made, but not rightly
            continue
        twin, log = made[row["construction"]["twin"]], logs[row["construction"]["source"]]
        assert replay(twin, log) == "done", twin["id"]
        assert replay(row | {"tool_chain_json": twin["tool_chain_json"]}, log) != "done", row["id"]
        replayed[kind] += 1
    assert replayed["tool_removal"] >= 3
    assert replayed["information_missing"] >= 3
    assert replayed["visual_missing"] >= 1


def replay(case: dict[str, Any], log: dict[str, Any]) -> str:
    """Carries out the reference's calls with the arguments of the log; where it stops, why."""
    known = case["query"] + json.dumps(case["files"])
    offered = {tool["name"] for tool in json.loads(case["tools_json"])}
    results = {
        message["tool_call_id"]: message["content"]
        for message in log["messages"]
        if message["role"] == "tool"
    }
    calls = iter(
        (call["function"]["name"], json.loads(call["function"]["arguments"]), results[call["id"]])
        for message in log["messages"]
        for call in message.get("tool_calls") or ()
    )
    for step in json.loads(case["tool_chain_json"]):
        if step["name"] not in offered:
            return f"{step['name']} is not offered"
        name, arguments, result = next(call for call in calls if call[0] == step["name"])
        for value in arguments.values():
            is_prose = isinstance(value, str) and len(value.split()) > 3  # the agent's own words
            if not is_prose and str(value).casefold() not in known.casefold():
                return f"nothing says {value!r} for {name}"
        known += "\n" + result
    return "done"
