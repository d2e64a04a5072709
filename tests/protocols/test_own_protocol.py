"""A protocol with codes of its own, in a package outside of ``apbjudge``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import JudgeSpec, OptionError, Request, Run, ScriptedClient, Unscored, Verdict
from apbjudge.errors import PluginError
from apbjudge.protocols import Protocol, get_protocol
from apbjudge.records import Finding, Item
from apbjudge.rubrics import Rubric, read_rubric

PACKAGE = Path(__file__).parents[2] / "examples" / "own_protocol"
ROWS = PACKAGE / "plans.jsonl"
RUBRIC = PACKAGE / "approvals" / "approvals.toml"
CODES = ("A1", "A2", "Other")


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package as pip would install it: importable, with its entry point."""
    info = tmp_path / "apbjudge_approvals-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: apbjudge-approvals\nVersion: 0.1\n"
    )
    entry = "[apbjudge.protocols]\napprovals = approvals:APPROVALS\n"
    (info / "entry_points.txt").write_text(entry)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(PACKAGE)
    get_protocol.cache_clear()
    yield
    get_protocol.cache_clear()
    sys.modules.pop("approvals", None)


def judged(reply: Mapping[str, Any], rows: Any = ROWS) -> tuple[Run, list[Request]]:
    client = ScriptedClient(lambda request: json.dumps({"reasoning": "as scripted", **reply}))
    spec = JudgeSpec(model="hosted_vllm/scripted", max_reasks=0)
    return apbjudge.grade(rows, protocol="approvals", judge=spec, client=client), client.requests


def verdicts(run: Run) -> list[Verdict]:
    by_line = sorted(run.judgements, key=lambda judgement: judgement.line)
    assert all(isinstance(judgement, Verdict) for judgement in by_line)
    return [judgement for judgement in by_line if isinstance(judgement, Verdict)]


def test_code_alone_judges_by_the_codes_of_the_rubric() -> None:
    run = apbjudge.grade(ROWS, protocol="approvals")
    flags = [[code for code in CODES if (v.errors or {})[code]] for v in verdicts(run)]
    assert flags == [[], ["A1"], ["A1"], ["Other"]]  # rule_codes make an unknown tool Other
    assert [v.grade for v in verdicts(run)] == [None] * 4


def test_a_model_is_asked_for_the_codes_of_the_rubric_and_facts_are_enforced() -> None:
    reply = {"A1": False, "A2": True, "Other": False, "grade": 0.5, "is_correct": False}
    run, requests = judged(reply)
    assert requests
    for request in requests:
        assert request.reply is not None
        assert list(request.reply.model_fields) == ["reasoning", *CODES, "grade", "is_correct"]
        assert '"A1", "A2", "Other": true or false each' in request.messages[0]["content"]
    assert [v.grade for v in verdicts(run)] == [0.5, 0.0, 0.0, 0.0]
    assert [list(v.errors or {}) for v in verdicts(run)] == [list(CODES)] * 4
    assert any("approval is asked" in str(request.messages) for request in requests)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('code = "A2"', 'code = "A1"', "expected 1 to 12 codes, each once .* got A1, A1, Other"),
        ('["A1", "Other"]', '["E1"]', "bands.1.flags: expected a code of the criteria"),
        ('of = ["A1", "Other"], min', 'of = ["A1"], min', "got no grade for Other"),
    ],
)
def test_a_rubric_whose_codes_do_not_fit_together_is_refused(
    old: str, new: str, complaint: str
) -> None:
    text = RUBRIC.read_text()
    assert old in text
    with pytest.raises(OptionError, match=complaint):
        read_rubric(text.replace(old, new, 1).encode(), "approvals.toml")


def broken_check(item: Item, rubric: Rubric) -> Iterator[Finding]:
    del item, rubric
    yield Finding.model_validate({"certainty": "proven"})


def broken_requirement(item: Item) -> None:
    raise KeyError(item.item_id)


@pytest.mark.parametrize("field", ["checks", "admit"])
def test_a_fault_of_the_protocol_s_own_code_ends_the_run_and_is_named(
    field: str, tmp_path: Path
) -> None:
    code = broken_check if field == "checks" else broken_requirement
    name, line = code.__name__, code.__code__.co_firstlineno + (2 if field == "checks" else 1)
    broken = {field: (code,) if field == "checks" else code}
    protocol = replace(get_protocol("approvals"), **broken)
    place = re.escape(f"{__file__}:{line}")
    with pytest.raises(PluginError, match=rf"^protocol approvals: {name} failed: .*{place}"):
        apbjudge.grade(ROWS, protocol=protocol, out=tmp_path / "run")
    assert all(not path.read_text() for path in tmp_path.glob("run/judgements.jsonl"))


def test_a_fault_of_ours_costs_one_row_and_is_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(self: Protocol, item: Item, *args: Any, **kwargs: Any) -> tuple[Finding, ...]:
        if item.item_id == fails:
            raise ZeroDivisionError
        return ours(self, item, *args, **kwargs)

    fails, ours = json.loads(ROWS.read_text().splitlines()[1])["id"], Protocol.find
    monkeypatch.setattr(Protocol, "find", find)
    run = apbjudge.grade(ROWS, protocol="approvals")
    (lost,) = [j for j in run.judgements if isinstance(j, Unscored)]
    assert (lost.reason, len(run.judgements)) == ("bad_input", 4)
    message = (
        r"apbjudge failed at this row, please report it: ZeroDivisionError.*apbjudge.*\.py:\d+"
    )
    assert re.search(message, lost.detail)
