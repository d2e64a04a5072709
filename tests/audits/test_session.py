"""A whole audit against a real local server: what is asked, how often, and how it goes on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from apbjudge import OptionError, shards_merge, shards_split
from apbjudge.audits.card import Card, read_card
from apbjudge.audits.config import AuditConfig
from apbjudge.audits.design import QUICK_CALLS
from apbjudge.audits.responses import MAIN, AuditResponses
from apbjudge.audits.session import SEED_STEP, Audit, audit, card_of
from apbjudge.runs.loop import Events, Progress
from tests.support.auditing import EXAMPLES, SHORT, order, planned, prepared, spec, whimsical
from tests.support.judging import plan_row, read_rows, verdict, write_rows
from tests.support.server import Answer, Behave, ChatServer, Seen

Serve = Callable[..., ChatServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers; without a word on how, one that answers from the text."""
    with ExitStack() as stack:

        def start(behave: Behave = whimsical) -> ChatServer:
            return stack.enter_context(ChatServer(behave))

        yield start


def asked(found: Audit) -> Counter[tuple[str, str]]:
    return Counter((said.run, said.variant.name) for said in found.responses.all)


# what is asked ------------------------------------------------------------------------------------


def arm_of(seen: Seen) -> tuple[Any, Any, bool]:
    return seen.body.get("temperature"), seen.body.get("seed"), 'name="reference' in seen.text


def test_every_variant_is_judged_exactly_once_an_arm(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    design, judge = prepared().design, spec(server, seed=7)
    result = audit(judge, prepared(), out=tmp_path / "a", cache=False)
    assert asked(result) == planned(prepared())
    assert set(asked(result).values()) == {1}
    assert len(server.requests) == design.n_judgements == result.card.cost.calls
    assert (result.n_unscored, result.folder) == (0, tmp_path / "a")
    counts = Counter(map(arm_of, server.requests))
    sizes = {one.name: len(one.variants) for one in design.runs}
    assert counts == {
        (1.0, 7 + SEED_STEP, True): sizes["warm-1"],
        (1.0, 7 + 2 * SEED_STEP, True): sizes["warm-2"],
        (0.0, 7, False): sizes["blind"],
        (0.0, 7, True): sizes[MAIN] + sizes["again-1"] + sizes["again-2"],
    }
    kept = read_card(tmp_path / "a")
    assert json.dumps(kept.to_json()) == json.dumps(result.card.to_json())
    assert (kept.probes, kept.fingerprint) == (result.card.probes, design.fingerprint)
    lines = (tmp_path / "a" / "variants.jsonl").read_text(encoding="utf-8").splitlines()
    listed = Counter((row["run"], row["name"]) for row in map(json.loads, lines))
    assert listed == planned(prepared())
    in_memory = audit(judge, prepared(), cache=False)
    assert (in_memory.folder, in_memory.card) == (None, kept)
    server.forget()
    assert audit(judge, prepared(), out=tmp_path / "a", cache=False).card == kept
    assert server.requests == []


def estimates(card: Card) -> dict[str, list[object]]:
    """Of all probes but the one that is about what has no verdict."""
    return {p.name: [m.estimate for m in p.measures] for p in card.probes if p.name != "refusals"}


def test_a_second_audit_takes_from_the_cache_all_but_what_is_asked_again(serve: Serve) -> None:
    server = serve()
    result = prepared()
    first = audit(spec(server), result, cache=True)
    server.forget()
    second = audit(spec(server), result, cache=True)
    afresh = [one for one in result.design.runs if one.name.startswith(("again", "warm"))]
    assert len(server.requests) == sum(len(one.variants) for one in afresh)
    assert estimates(second.card) == estimates(first.card)


@pytest.mark.parametrize("probe", ["Length", "Leaks"])
def test_a_probe_that_fails_does_not_lose_the_card(
    probe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(f"apbjudge.audits.probes.{probe}.of", fails)
    probes = {one.name: one for one in audit("static", order()).card.probes}
    failed = probes.pop(probe.lower())
    assert (failed.outcome, failed.measures) == ("could not tell", ())
    assert failed.because.startswith("the probe itself failed, please report it: ZeroDivisionError")
    assert any(one.measures for one in probes.values())


@pytest.mark.slow
def test_parts_of_the_cases_are_put_together_for_one_card(serve: Serve, tmp_path: Path) -> None:
    """A part is an audit of its cases; of all together nothing is known of drift alone."""
    server, settings = serve(), {"bases": 4, "cache": False, "seed_of_draw": 1}
    judge = spec(server)
    whole = audit(judge, **settings, out=tmp_path / "whole")
    n_calls = len(server.requests)
    server.forget()
    parts: list[Path] = []
    n_plans = 0
    for i in (1, 2, 3):  # one has no plan
        part = audit(judge, **settings, out=tmp_path / f"{i}", shard=f"{i}/3")
        assert part.card.notes[0] == f"part {i}/3 of the cases only"
        n_plans += sum(part.card.protocols.values())
        assert {said.variant.case_id for said in part.responses.all} <= {
            said.variant.case_id for said in whole.responses.all
        }
        parts.append(tmp_path / f"{i}")
    assert (len(server.requests), n_plans) == (n_calls, 4)
    server.forget()
    shards_merge(parts[:2], tmp_path / "some", partial=True)
    with pytest.raises(OptionError, match="shards are missing: 3/3"):
        shards_merge(parts[:2], tmp_path / "killed")
    for _ in range(2):  # as if the first one had been killed before its end
        shards_merge([parts[2], tmp_path / "some"], tmp_path / "merged")
        (tmp_path / "manifest.json").unlink(missing_ok=True)
        (tmp_path / "merged" / "manifest.json").rename(tmp_path / "manifest.json")
    (tmp_path / "manifest.json").rename(tmp_path / "merged" / "manifest.json")
    with pytest.raises(OptionError, match="merged holds an audit or a run already"):
        shards_merge(parts, tmp_path / "merged")
    for _ in range(2):
        merged = audit(judge, **settings, out=tmp_path / "merged")
        assert merged.card.notes == (*whole.card.notes, merged.card.notes[-1])
        assert "nothing is known of drift" in merged.card.notes[-1]
        probes = [{p.name: p for p in each.card.probes} for each in (merged, whole)]
        drift = probes[0].pop("drift"), probes[1].pop("drift")
        assert drift[0].outcome == "could not tell"
        assert probes[0] == probes[1]
    assert server.requests == []
    shards_split(SHORT, out=tmp_path, parts=2)
    with pytest.raises(OptionError, match="--shard: expected I/N, since cases are drawn"):
        audit("static", rows=SHORT, shard=f"{tmp_path}/index.json#1")


# quick --------------------------------------------------------------------------------------------


def test_a_quick_audit_makes_a_hundred_calls_but_for_what_is_asked_for_again(serve: Serve) -> None:
    server = serve()
    result = audit(spec(server, samples=3), order(quick=True, bases=None), cache=False)
    assert result.n_unscored == 0
    assert 30 < len(server.requests) <= QUICK_CALLS
    assert len(server.requests) == 3 * len(result.responses.all)
    server = serve(lambda seen: Answer("not JSON"))
    judge = spec(server, max_reasks=1)
    result = audit(judge, order(quick=True, bases=None), cache=False)
    assert len(server.requests) > QUICK_CALLS
    assert {said.reason for said in result.responses.all} == {"unparsable"}
    assert asked(result) == planned(prepared(quick=True, bases=None))
    assert result.unscored_fraction == 1.0
    n = len(result.responses.all)
    assert any(f"unparsable {n}" in note for note in result.card.notes)
    assert result.card.cost.unscored == n
    open_ones = [probe for probe in result.card.probes if probe.name != "leaks"]
    assert {probe.outcome for probe in open_ones} == {"could not tell"}


def test_rows_without_references_and_labels_are_audited_for_what_needs_neither(
    serve: Serve, tmp_path: Path
) -> None:
    unknown = {"plan": None, "tool_chain": None}
    path = write_rows(tmp_path / "rows.jsonl", [plan_row(f"case-{n}", **unknown) for n in range(2)])
    card = audit(spec(serve()), AuditConfig(rows=path), cache=False).card
    asked = {"consistency", "scale", "leaks", "presentation", "length"}
    assert {probe.name for probe in card.probes if probe.measures} == asked
    assert card.origins == {"prediction": 2}
    expected = "2 of 2 plans are predictions without a reference or a label"
    assert any(note.startswith(expected) for note in card.notes)


# going on -----------------------------------------------------------------------------------------


def stopping_after(calls: int) -> Events:
    def progress(state: Progress) -> None:
        if state.calls >= calls:
            raise KeyboardInterrupt

    return Events(progress=progress, bad_row=lambda message: None)


def test_a_stopped_audit_goes_on_with_what_is_missing(serve: Serve, tmp_path: Path) -> None:
    server, result = serve(), prepared()
    judge = spec(server, max_concurrency=1)
    with pytest.raises(KeyboardInterrupt):
        audit(judge, result, out=tmp_path, cache=False, events=stopping_after(9))
    done = sum(len(read_rows(run)) for run in (tmp_path / "runs").iterdir())
    assert 9 <= done < result.design.n_judgements
    assert not (tmp_path / "card.json").exists()
    server.forget()
    second = audit(judge, result, out=tmp_path, cache=False)
    assert len(server.requests) == result.design.n_judgements - done
    assert second.card == audit(judge, result, cache=False).card


# the order ---------------------------------------------------------------------------------------


def test_calls_are_made_in_the_order_of_the_schedule(serve: Serve, tmp_path: Path) -> None:
    server, result = serve(), prepared(bases=2)
    judge = spec(server, max_concurrency=1, lead=False)
    audit(judge, result, out=tmp_path, cache=False)
    lines = (tmp_path / "schedule.jsonl").read_text(encoding="utf-8").splitlines()
    listed = [(row["run"], row["name"]) for row in map(json.loads, lines)]
    assert listed == [(turn.run, turn.variant.name) for turn in result.design.schedule]
    warm = [bool(seen.body["temperature"]) for seen in server.requests]
    assert warm == [turn.run.startswith("warm") for turn in result.design.schedule]
    for one in result.design.runs:
        names = [row["item_id"] for row in read_rows(tmp_path / "runs" / one.name)]
        assert names == [t.variant.name for t in result.design.schedule if t.run == one.name]


# what is the judge's own --------------------------------------------------------------------------


def test_the_own_verdict_stands_in_the_figures_and_not_what_was_enforced(serve: Serve) -> None:
    def pass_everything(seen: Seen) -> Answer:
        reply = verdict(category=2)
        wanted = seen.body["response_format"]["json_schema"]["schema"]["properties"]
        return Answer(json.dumps({key: reply[key] for key in wanted}))

    with_evidence = audit(spec(serve(pass_everything)), prepared(), cache=False)
    without = audit(spec(serve(pass_everything), evidence=False), prepared(), cache=False)
    assert any(said.enforced is False for said in with_evidence.responses.all)
    assert all(said.is_correct for said in with_evidence.responses.all)
    for card in (with_evidence.card, without.card):
        faults = next(probe for probe in card.probes if probe.name == "faults")
        shares = {m.estimate.value for m in faults.measures if m.name.startswith("caught")}
        assert shares == {0.0}
    assert with_evidence.card.verdicts == "own"


# judges that fail ---------------------------------------------------------------------------------


def test_an_unscored_variant_counts_in_no_figure(serve: Serve) -> None:
    def behave(seen: Seen) -> Answer:
        return Answer("?") if len(seen.text) % 3 == 0 else whimsical(seen)

    result = audit(spec(serve(behave), max_reasks=0), prepared(), cache=False)
    scored = [said for said in result.responses.all if said.is_scored]
    assert 0 < result.n_unscored < len(result.responses.all)
    assert result.n_unscored + len(scored) == prepared().design.n_judgements
    without = card_of(spec(serve()), prepared(), AuditResponses(tuple(scored)))
    assert estimates(result.card) == estimates(without)


# pictures -----------------------------------------------------------------------------------------


def test_pictures_are_looked_for_beside_the_rows(serve: Serve, tmp_path: Path) -> None:
    row = plan_row("p", files=[{"type": "image", "path": "bay.png"}])
    rows = write_rows(tmp_path / "rows.jsonl", [row])
    lacking = audit(spec(serve(), vision="yes"), order(rows=rows), cache=False)
    assert {said.reason for said in lacking.responses.all} == {"bad_input"}
    assert any("bad_input" in note for note in lacking.card.notes)
    (tmp_path / "bay.png").write_bytes((EXAMPLES / "images" / "retail_bay7.png").read_bytes())
    server = serve()
    result = audit(spec(server, vision="yes"), order(rows=rows), cache=False)
    assert result.n_unscored == 0
    assert all("data:image/png" in json.dumps(seen.body) for seen in server.requests)
    assert not any("pictures" in note for note in result.card.notes)
    unseen = audit(spec(server), order(rows=rows), cache=False)
    expected = f"the judge is not shown: picture {len(unseen.responses.all)} ("
    assert any(expected in note for note in unseen.card.notes)
