"""Rows of the tables that set judges against human labels.

Nothing is marked as best in them. The judges share their labelled items, so that their figures are
correlated, and a reliability report holds the figures alone: a test on unrelated samples would be
wrong, and one by whether intervals overlap needs them at a wider level than they have. The tables
name ``apbjudge compare --labels``, which compares judges item by item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...calibration.results import Reliability, ReliabilityReport
from ...statistics.analyses import Favour, Group
from ...statistics.estimates import Estimate
from .definitions import Definition
from .drafts import Draft
from .table import Counts


def trust_rows(definition: Definition, report: ReliabilityReport) -> list[Draft]:
    """Rows by judge or, for self-evaluation, by judge and tested model.

    Args:
        definition: ``judges``, ``diversity`` or ``self-evaluation``.
        report: Judges against labels.
    """
    if definition.key == "self-evaluation":
        return [row for judge in report.judges for row in _of_models(judge)]
    one = _agreement if definition.key == "judges" else _diversity
    return [row for judge in report.judges for row in one(definition, judge)]


def trust_notes(definition: Definition, report: ReliabilityReport) -> list[str]:
    """What must be said of each judge's figures, and which tested model is the judge itself."""
    notes = [f"{judge.judge}: {note}" for judge in report.judges for note in judge.notes]
    if definition.key == "self-evaluation":
        owns = {judge.judge: judge.self_evaluation for judge in report.judges}
        notes += [f"{own.own} is the judge {name}" for name, own in owns.items() if own and own.own]
    return notes


def _agreement(definition: Definition, judge: Reliability) -> Iterator[Draft]:
    whole = judge.whole
    scored = round((whole.scored.value or 0.0) * whole.scored.n_items)
    keys = definition.sections[0].columns
    yield Draft(
        judge="",
        heads=(judge.judge,),
        counts={"": Counts(rows=whole.n_items, scored=scored)},
        estimates={("", key): whole.measures[key] for key in keys if key in whole.measures},
    )


def _diversity(definition: Definition, judge: Reliability) -> Iterator[Draft]:
    if judge.diversity is None:
        return
    found = judge.diversity
    groups = dict(zip(definition.sections, (found.different, found.standard), strict=True))
    yield Draft(
        judge="",
        heads=(judge.judge,),
        counts={section.title: _all(of.agreement) for section, of in groups.items()},
        estimates={
            (section.title, key): figure
            for section, of in groups.items()
            for key, figure in _of_group(of).items()
        },
    )


def _of_group(of: Group) -> Mapping[str, Estimate]:
    return {"agreement": of.agreement, "grade MAE": of.error}


def _all(estimate: Estimate) -> Counts:
    """Unscored rows are none of the rows that such a figure is about."""
    return Counts(rows=estimate.n_items, scored=estimate.n_items)


def _of_models(judge: Reliability) -> Iterator[Draft]:
    found = judge.self_evaluation.models if judge.self_evaluation else ()
    for favour in sorted(found, key=lambda f: (f.tested_model.casefold(), f.tested_model)):
        yield Draft(
            judge=judge.judge,
            heads=(favour.tested_model,),
            counts={
                "CR": _all(favour.rate.estimate),
                "Grade": _all(favour.grade.estimate),
            },
            estimates=_bias(favour),
        )


def _bias(of: Favour) -> dict[tuple[str, str], Estimate]:
    return {
        ("CR", "human CR"): of.human_rate,
        ("CR", "judge CR"): of.judge_rate,
        ("CR", "CR bias"): of.rate.estimate,
        ("Grade", "human grade"): of.human_grade,
        ("Grade", "judge grade"): of.judge_grade,
        ("Grade", "grade bias"): of.grade.estimate,
    }
