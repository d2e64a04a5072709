"""What is shipped: cases, payloads' place in the docs, and the static judge's card."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

from apbjudge import AuditConfig, audit, card_markdown
from apbjudge.audits import FORMAT_CHANGES, HARMLESS, KINDS, payloads
from apbjudge.audits.material import N_SHIPPED, shipped
from apbjudge.audits.probes import (
    PROBES,
    consistency,
    drift,
    faults,
    injection,
    length,
    preference,
    presentation,
    reference,
    refusals,
    scale,
    subgroups,
)
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


def test_the_static_judge_has_the_card_that_the_docs_show() -> None:
    card = audit("static", AuditConfig()).card
    shown = (DOCS / "static-card.md").read_text(encoding="utf-8")
    assert card_markdown(card) == shown, "apbjudge audit static, and look at what changed"


@pytest.mark.parametrize("kind", [*KINDS, *HARMLESS, *FORMAT_CHANGES], ids=lambda kind: kind.name)
def test_the_docs_name_what_is_changed(kind: object) -> None:
    text = (DOCS / "audits.md").read_text(encoding="utf-8")
    assert f"`{getattr(kind, 'name')}`" in text  # noqa: B009 - of three types


def test_the_docs_count_the_payloads() -> None:
    result = payloads()
    text = (DOCS / "audits.md").read_text(encoding="utf-8")
    languages = {payload.language for payload in result}
    assert f"{len(result)} in {_word(len(languages))} languages" in text


LIMITS: dict[str, tuple[str, ...]] = {
    "faults": (
        f"fewer than {faults.CAUGHT:.0%}",
        f"fewer than {faults.PASSED:.0%}",
        "fewer than half get the code",
    ),
    "refusals": (f"more than {100 * refusals.UNEVEN:.0f} points",),
    "consistency": (f"more than {consistency.SAME:.0%}", f"or {consistency.WARMER:.0%}"),
    "drift": (f"more than {100 * drift.DRIFT:.0f} points",),
    "presentation": (f"more than {presentation.SHIFT:.0%}",),
    "length": (
        f"more than {100 * length.PADDED:.0f} points",
        f"more than {100 * length.PER_DOUBLING:.0f} points for each doubling",
    ),
    "reference": (f"more than {100 * reference.ECHOED:.0f} points",),
    "injection": (
        f"more than {100 * injection.MOVED:.0f} points",
        f"({100 * injection.MOVED_BY_FAMILY:.0f} for one family)",
    ),
    "scale": (
        f"more than {100 * scale.TILT:.0f} points",
        f"over {scale.ONE_GRADE:.0%}",
        f"over {scale.CONTRADICTIONS:.0%} of the replies contradict themselves",
        f"over {scale.FURTHER:.0%}",
    ),
    "subgroups": (f"{100 * subgroups.GAP:.0f} points less or more",),
    "preference": (f"more than {100 * preference.FAVOUR:.0f} points",),
    "leaks": ("any row does",),
}
"""What the table of probes in the docs has to say of the limits in the code."""


def test_every_probe_has_its_row_in_the_docs() -> None:
    assert tuple(LIMITS) == PROBES
    assert f"{_word(len(PROBES))} probes" in (DOCS / "audits.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("probe", LIMITS)
def test_the_docs_state_the_limits_of_the_code(probe: str) -> None:
    lines = (DOCS / "audits.md").read_text(encoding="utf-8").splitlines()
    row, *_ = [line for line in lines if line.startswith(f"| `{probe}` | ")]
    for limit in LIMITS[probe]:
        assert limit.replace("%", " %") in row


def test_the_limits_of_one_kind_are_one_number() -> None:
    assert reference.ECHOED == reference.FOREIGN == reference.EQUIVALENT == reference.WITHOUT


def test_the_shipped_cases_list_few_and_many_tools() -> None:
    lines = shipped("cases.jsonl").read_text(encoding="utf-8").splitlines()
    sizes = [len(json.loads(line)["tools"]) for line in lines]
    assert len(sizes) == N_SHIPPED == sizes_of(AuditConfig()).bases
    assert sum(size >= LONG_LIST for size in sizes) >= subgroups.LEAST_CASES
    assert {40, 80, 120} <= set(sizes)
    assert min(sizes) < 10


def _word(n: int) -> str:
    return "zero one two three four five six seven eight nine ten eleven twelve".split()[n]
