"""What is shipped: cases, payloads' place in the docs, and the static judge's card."""

from __future__ import annotations

import json
import runpy
import sys
from itertools import chain
from pathlib import Path

import pytest

from apbjudge import AuditConfig, audit, card_markdown
from apbjudge.audits.material import N_SHIPPED, shipped
from apbjudge.audits.perturbations.kinds import kinds_of
from apbjudge.audits.probes import PROBES, subgroups
from apbjudge.audits.responses import LONG_LIST
from apbjudge.audits.session import sizes_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_shipped_cases_are_those_of_the_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = ROOT / "examples" / "make_audit_cases.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    for name in ("cases.jsonl", "labels.jsonl"):
        assert (tmp_path / name).read_bytes() == shipped(name).read_bytes(), (
            "run examples/make_audit_cases.py again"
        )


@pytest.mark.slow
def test_the_static_judge_has_the_card_that_the_docs_show() -> None:
    card = audit("static", AuditConfig()).card
    shown = (DOCS / "static-card.md").read_text(encoding="utf-8")
    assert card_markdown(card) == shown, "apbjudge audit static, and look at what changed"


def test_the_docs_name_every_probe_and_what_is_changed() -> None:
    text = (DOCS / "audits.md").read_text(encoding="utf-8")
    kinds = chain(kinds_of("fault"), kinds_of("harmless"), kinds_of("shown"))
    names = [*PROBES, *(kind.name for kind in kinds)]
    assert not [name for name in names if f"`{name}`" not in text]


def test_the_shipped_cases_list_few_and_many_tools() -> None:
    lines = shipped("cases.jsonl").read_text(encoding="utf-8").splitlines()
    sizes = [len(json.loads(line)["tools"]) for line in lines]
    assert len(sizes) == N_SHIPPED == sizes_of(AuditConfig()).bases
    assert sum(size >= LONG_LIST for size in sizes) >= subgroups.LEAST_CASES
    assert {40, 80, 120} <= set(sizes)
    assert min(sizes) < 10
