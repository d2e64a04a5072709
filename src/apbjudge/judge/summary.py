"""The summary of a run: per protocol and tested model, with denominators and intervals."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..config import STATIC
from ..document.display import Shown
from ..document.model import Document
from ..errors import OptionError
from ..records.columns import Vector
from ..records.judgement_reader import table_of
from ..records.judgement_table import (
    BY_FIELDS,
    BY_OF_TRAJECTORIES,
    TRAJECTORY,
    JudgementTable,
    Totals,
)
from ..records.judgements import UNSEEN
from ..records.run_folder import MissingPredictions
from ..records.tables import text_cell
from ..statistics.estimates import CONFIDENCE_LEVEL
from ..statistics.gates import At, GateResult, check, parse_condition
from ..statistics.metric import Metrics, by_name, record, to_frame
from ..statistics.sample import BY_FORMULA, IntervalSettings
from .metrics import (
    NO_FAULT,
    broken_metrics,
    common_metrics,
    efficiency_metrics,
    extraneous_metrics,
    named_by_judge,
    named_by_rule,
    reply_metrics,
    unsolvable_metrics,
    with_bounds,
)
from .trajectory_metrics import trajectories_by, trajectory_metrics, trajectory_warnings

if TYPE_CHECKING:
    from pandas import DataFrame

EXTRANEOUS = "tool-extraneous"


@dataclass(frozen=True, slots=True)
class SummaryGroup:
    """The metrics of one tested model under one protocol, or of a part of its rows.

    Attributes:
        protocol: The protocol.
        form: ``holistic`` or ``step-wise``.
        tested_model: The tested model.
        by: Field and value of the breakdown, empty for the whole.
        n: Rows.
        scored: Those with a verdict.
        inconsistent: Verdicts whose last reply contradicted itself.
        overridden: Verdicts that a rule or a proven finding changed.
        metrics: By name.
        setting: Condition of the environment of whole trajectories; empty without.
    """

    protocol: str
    form: str
    tested_model: str
    by: dict[str, str | None]
    n: int
    scored: int
    inconsistent: int
    overridden: int
    metrics: Metrics
    setting: str = ""

    def to_json(self) -> dict[str, Any]:
        """As nested JSON values; metrics by name, as in the CSV file."""
        metrics = {name: record(metric) for name, metric in self.metrics.items()}
        return asdict(replace(self, metrics={})) | {"metrics": metrics}


@dataclass(frozen=True, slots=True, repr=False)
class Summary(Shown):
    """All groups of a run.

    Attributes:
        judge: Who judged.
        note: A remark that belongs to every metric, or None.
        totals: Counts over all rows, bad ones included.
        groups: Whole groups first, then breakdowns.
        warnings: Reasons why metrics are uncertain, a sentence each.
        gates: Conditions that the metrics were checked against, with their outcomes.
        missing: Cases without a prediction; None if the cases are unknown.
        codes: Names of error codes by code, of a rubric of the user's own; None for shipped ones.
    """

    judge: str
    note: str | None
    totals: Totals
    groups: tuple[SummaryGroup, ...]
    warnings: tuple[str, ...] = ()
    gates: tuple[GateResult, ...] = ()
    missing: MissingPredictions | None = None
    codes: Mapping[str, str] | None = None

    def gate(self, *conditions: str, at: At = "point") -> tuple[GateResult, ...]:
        """Checks conditions such as ``CR >= 0.8`` on every group; see ``docs/gates.md``.

        Raises:
            OptionError: If a condition can't be read, or no group has its measure.
        """
        if self.judge == STATIC and any(
            parse_condition(text).measure.casefold() == "cr" for text in conditions
        ):
            raise OptionError(
                "--fail-under: CR: the static judge proves faults only and gives no CR: expected "
                f"'{NO_FAULT}>=0.8', an upper bound of it, or a judge that is a model"
            )
        return check(conditions, [*map(self._checkable, self.groups)], at=at)

    def _checkable(self, group: SummaryGroup) -> tuple[dict[str, str | None], Metrics]:
        place = {"protocol": group.protocol, "form": group.form, "tested_model": group.tested_model}
        place |= {"setting": group.setting} if group.setting else {}
        metrics = group.metrics
        if self.judge == STATIC and not group.scored:  # nothing is known to be judged by rule
            metrics = by_name(map(named_by_rule, metrics.values()))
        return {**place, **group.by}, metrics

    @property
    def scored(self) -> int:
        """Rows with a verdict."""
        return self.totals.rows - sum(self.totals.unscored.values())

    def to_json(self) -> dict[str, Any]:
        """As nested JSON values; missing is None, never NaN."""
        return {
            "judge": self.judge,
            "note": self.note,
            "warnings": list(self.warnings),
            "confidence_level": CONFIDENCE_LEVEL,
            "totals": asdict(self.totals) | {"scored": self.scored},
            "groups": [group.to_json() for group in self.groups],
            "gates": [gate.to_json() for gate in self.gates],
            "missing_predictions": None if self.missing is None else self.missing.model_dump(),
        }

    def to_frame(self) -> DataFrame:
        """As a pandas frame, a row per metric; see ``statistics.metric.to_frame``."""
        return to_frame(
            (
                {
                    "judge": self.judge,
                    "protocol": group.protocol,
                    "form": group.form,
                    "tested_model": group.tested_model,
                    "setting": group.setting or None,
                    "by": next(iter(group.by), None),
                    "by_value": next(iter(group.by.values()), None),
                    "rows": group.n,
                    "scored": group.scored,
                },
                metric,
            )
            for group in self.groups
            for metric in group.metrics.values()
        )

    def to_csv(self) -> str:
        """As CSV, one line per metric."""
        out = io.StringIO()
        writer = csv.DictWriter(out, _CSV_COLUMNS)
        writer.writeheader()
        for group in self.groups:
            by, value = next(iter(group.by.items()), ("", ""))
            head = {
                "judge": self.judge,
                "protocol": group.protocol,
                "form": group.form,
                "tested_model": group.tested_model,
                "setting": group.setting,
                "by": by,
                "by_value": "" if value is None else value,
                "rows": group.n,
                "scored": group.scored,
                "judge_note": self.note or "",
            }
            of_group = {name: text_cell(value) for name, value in head.items()}
            for metric in group.metrics.values():
                row: dict[Any, Any] = {**of_group}
                row |= {name: text_cell(value) for name, value in record(metric).items()}
                writer.writerow(row)
        return out.getvalue()

    def _printed(self) -> Document:
        from .summary_text import summary_document

        return summary_document(self)


_CSV_COLUMNS = (
    "judge protocol form tested_model setting by by_value rows scored metric value low high level "
    "method n_items n_clusters n_resamples seed note bound unit better judge_note"
).split()


def check_by(names: Iterable[str]) -> None:
    """Raises OptionError if there is no such field to break results down by."""
    for name in names:
        if name not in (known := (*BY_FIELDS, *BY_OF_TRAJECTORIES)):
            raise OptionError(f"--by: expected some of {','.join(known)}, got {name!r}")


def summarize(
    rows: Iterable[Mapping[str, Any]],
    *,
    judge: str,
    note: str | None = None,
    by: Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
    intervals: IntervalSettings = BY_FORMULA,
) -> Summary:
    """Summarizes judgement rows.

    Args:
        rows: Rows of ``judgements.jsonl``.
        judge: Name of the judge.
        note: A remark that belongs to every metric.
        by: Fields of BY_FIELDS and BY_OF_TRAJECTORIES to break results down by.
        weights: The weights of error codes, if the rubric states any.
        intervals: Settings of the intervals.

    Raises:
        OptionError: If a field is unknown.
        InputError: If a row is not a judgement.
    """
    check_by(by)
    table = table_of(rows, has_names=False)
    table = replace(table, weights=weights or {}, intervals=intervals).in_order()
    totals, table = table.totals, table.items()
    return Summary(
        judge=judge,
        note=note,
        totals=totals,
        groups=tuple(group for field in (None, *by) for group in _groups(table, field)),
        warnings=tuple(dict.fromkeys(_warnings(table, totals.unseen))),
    )


CONVERSION_SHARE = 0.9
CONVERSION_ROWS = 10
"""From so many rows, and such a share of them in another form, a conversion is suspected."""


def _warnings(table: JudgementTable, unseen: Mapping[str, int]) -> Iterator[str]:
    yield from _conversions(table)
    yield from unseen_lines(unseen)
    yield from _of_trials(table)


def _conversions(c: JudgementTable) -> Iterator[str]:
    """Names tested models with nearly all replies under a protocol in another form.

    A model strays now and then; a program that turned its replies into rows strays each time.
    """
    for (protocol, model), profiles in c.profiles_by(("protocol", "tested_model")).items():
        rows = c.rows_of(profiles)
        rows = rows[~c.missing[rows]]
        n_off = int(c.off_form[rows].sum())
        if len(rows) >= CONVERSION_ROWS and n_off >= CONVERSION_SHARE * len(rows):
            of = f"{c.labels['protocol'][protocol]} replies of {c.labels['tested_model'][model]}"
            yield (
                f"{n_off} of {len(rows)} {of} could not be read in the benchmark's form: a "
                "conversion of the replies is the likelier cause than the model (see docs/input.md)"
            )


def unseen_lines(unseen: Mapping[str, int]) -> Iterator[str]:
    """Lines on files that judges are not shown, from the number of rows by each of ``UNSEEN``."""
    if n := unseen.get(UNSEEN[0]):
        yield f"rows with more pictures than --max-images: {n} (some are shown, evenly spaced)"
    if kinds := ", ".join(f"{name} {unseen[name]}" for name in UNSEEN[1:] if unseen.get(name)):
        sight = "--vision yes shows pictures to a model that can see; " * ("picture" in kinds)
        yield (
            f"rows with files that the judge is not shown: {kinds} ({sight}--require-files names "
            "and refuses them)"
        )


def _of_trials(c: JudgementTable) -> Iterator[str]:
    """Warnings that metrics of whole trajectories are uncertain."""
    names = ("tested_model", "setting")
    for (form, *key), profiles in c.profiles_by(("form", *names)).items():
        if form == c.form_of_trajectories:
            shown = (c.labels[name][code] for name, code in zip(names, key, strict=True))
            yield from trajectory_warnings(c, c.rows_of(profiles), " ".join(filter(None, shown)))


def _groups(c: JudgementTable, field: str | None) -> Iterator[SummaryGroup]:
    is_of_rows = field in BY_OF_TRAJECTORIES
    by_profile = [field] if field and not is_of_rows else []
    fields = ("protocol", "form", "tested_model", "setting", *by_profile)
    is_hidden = is_base(c)
    groups = {
        tuple(c.labels[name][code] for name, code in zip(fields, key, strict=True)): profiles
        for key, profiles in c.profiles_by(fields).items()
    }
    for labels in sorted(groups, key=lambda labels: _order(*labels)):
        rows = c.rows_of([at for at in groups[labels] if not is_hidden[at]])
        if not len(rows):
            continue
        protocol, form, model, setting = (label or "" for label in labels[:4])
        parts = {labels[4] if by_profile else None: rows}
        if is_of_rows:
            parts = trajectories_by(c, rows, field or "")
        for value, part in parts.items():
            yield SummaryGroup(
                protocol=protocol,
                form=form,
                tested_model=model,
                setting=setting,
                by={field: value} if field else {},
                n=len(part),
                scored=int(c.scored[part].sum()),
                inconsistent=int(c.facts["inconsistent"][part].sum()),
                overridden=int(c.overridden[part].sum()),
                metrics=_metrics(c, part, protocol, form),
            )


def is_base(c: JudgementTable) -> Vector:
    """Profiles that are the base condition of others and no group of their own.

    Rows of tool-extraneous without distractors, where the same tested model has rows with some.
    """
    labels = c.labels["protocol"]
    code = labels.index(EXTRANEOUS) if EXTRANEOUS in labels else -1
    own = c.codes["protocol"] == code
    who = c.codes["tested_model"] * len(c.labels["form"]) + c.codes["form"]
    return own & (c.levels == 0) & np.isin(who, who[own & (c.levels > 0)])


_PROTOCOL_ORDER = "holistic step-wise tool-extraneous tool-broken unsolvable efficiency".split()
VALUE_ORDER = tuple("1-5 6-10 11-15 16-20 >20 early middle late text image video".split())
"""Values of breakdown fields in their natural order."""


def _order(
    protocol: str | None,
    form: str | None,
    model: str | None,
    setting: str | None,
    value: str | None = None,
) -> tuple[Any, ...]:
    rank = _PROTOCOL_ORDER.index(protocol) if protocol in _PROTOCOL_ORDER else 99
    place = VALUE_ORDER.index(value) if value in VALUE_ORDER else 99
    whom = (protocol or "", form or "", model or "", setting or "")
    return rank, *whom, value is None, place, value or ""


def _metrics(c: JudgementTable, rows: Vector, protocol: str, form: str) -> Metrics:
    if form == TRAJECTORY:
        return trajectory_metrics(c, rows, protocol)
    metrics = common_metrics(c, rows, form) | _own_metrics(c, protocol, rows)
    metrics |= reply_metrics(c, rows)
    return named_by_judge(c, rows, with_bounds(c, rows, metrics))


def _own_metrics(c: JudgementTable, protocol: str, rows: Vector) -> Metrics:
    """The metrics that only this protocol has."""
    if protocol == "tool-broken":
        return broken_metrics(c, rows)
    if protocol == "unsolvable":
        return unsolvable_metrics(c, rows)
    if protocol == "efficiency":
        same = c.codes["protocol"] == c.labels["protocol"].index(protocol)
        return efficiency_metrics(c, rows, c.where(same))
    if protocol == EXTRANEOUS and (c.level(rows) > 0).any():
        return extraneous_metrics(c, rows, base_of(c, rows))
    return {}


def base_of(c: JudgementTable, rows: Vector) -> Vector:
    """Rows without distractors of the same tested model and form."""
    first = c.profile[rows[0]]
    same = c.levels == 0
    for name in ("tested_model", "form"):
        same &= c.codes[name] == c.codes[name][first]
    labels = c.labels["protocol"]
    protocols = [i for i, label in enumerate(labels) if label in _BASE_PROTOCOLS]
    return c.where(same & np.isin(c.codes["protocol"], protocols))


_BASE_PROTOCOLS = ("holistic", "step-wise", EXTRANEOUS)
