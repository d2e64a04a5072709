"""What is shipped: cases, payloads' place in the docs, and the static judge's card."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from apbjudge import AuditOrder, audit, card_markdown
from apbjudge.api.audits.material import shipped
from apbjudge.audits import HARMLESS, KINDS, SHOWN, payloads

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


def test_the_static_judge_has_the_card_that_the_docs_show() -> None:
    card = audit("static", AuditOrder()).card
    shown = (DOCS / "static-card.md").read_text(encoding="utf-8")
    assert card_markdown(card) == shown, "apbjudge audit static, and look at what changed"


@pytest.mark.parametrize("kind", [*KINDS, *HARMLESS, *SHOWN], ids=lambda kind: kind.name)
def test_the_docs_name_what_is_changed(kind: object) -> None:
    text = (DOCS / "audits.md").read_text(encoding="utf-8")
    assert f"`{getattr(kind, 'name')}`" in text  # noqa: B009 - of three types


def test_the_docs_count_the_payloads() -> None:
    found = payloads()
    text = (DOCS / "audits.md").read_text(encoding="utf-8")
    languages = {payload.language for payload in found}
    assert f"{len(found)} in {_word(len(languages))} languages" in text


def _word(n: int) -> str:
    return "zero one two three four five six seven eight nine ten eleven twelve".split()[n]
