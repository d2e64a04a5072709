"""From runs to a report: tables, figures, changes, and the page that shows items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..calibration.calibrate import calibrate_judged
from ..calibration.changes import Changes, find_changes
from ..calibration.judged_run import JudgedRun, joined, judged_run, once
from ..calibration.matching import Labels, load_labels
from ..calibration.results import ReliabilityReport
from ..errors import OptionError, visible
from ..judge import JudgeSpec
from ..judge.session import data_roots
from ..records.consensus import Answers, answers_of
from ..records.judgement_table import JudgementTable, Problems, Totals
from ..records.run_folder import read_run
from ..version import VERSION
from .config import CHANGES, ReportConfig
from .frames import judgement_frame
from .judged_items import ReportItems, sources_of
from .page.entries import JudgeFacts, ReportInput, ReportSize
from .paper.building import JudgeResults, Results, paper_tables
from .paper.table import TABLE_KEYS, Table
from .plots import Figure, paper_figures
from .run_files import JudgeRuns, by_judge

Paths = str | Path | Sequence[str | Path]

MAX_ITEMS = 200_000
"""Items that one page may show: a browser holds no more at once."""

_NO_LABELS = "Nobody's labels were given: nothing here says how far the judge can be trusted."


@dataclass(frozen=True)
class Report:
    """A report, made when it is looked at.

    Attributes:
        config: The settings.
        judges: The judges with their runs.
        labels: What humans said; None without.
        problems: Grows by a line for each row that can't be used.
    """

    config: ReportConfig
    judges: tuple[JudgeRuns, ...]
    labels: Labels | None
    problems: Problems = field(default_factory=Problems)

    @cached_property
    def results(self) -> Results:
        """The judgements by judge, and how far each judge can be trusted.

        Raises:
            InputError: If a file can't be read, or labels belong to no run.
            OptionError: If a refined run is by no judge of the report.
        """
        return Results(
            judges=tuple(map(self._results_of, self.judges)),
            refined=tuple(self._refined()),
            reliability=self.reliability,
        )

    def _results_of(self, judge: JudgeRuns) -> JudgeResults:
        table, totals = judge.table.items(), judge.table.totals
        if n_never := totals.rows - len(table):
            self.problems.append(
                f"{visible(judge.name)}: {n_never} of {totals.rows} rows never became items, "
                "because their input could not be used: no table counts them"
            )
        return JudgeResults(judge=judge.name, note=judge.note, columns=table)

    def _refined(self) -> Iterator[JudgeResults]:
        for method, path in self.config.refined:
            run = read_run(path)
            own = (j for j in self.judges if run.identity in [of.identity for of in j.runs])
            base = next(own, None)
            if base is None:
                names = ", ".join(visible(judge.name) for judge in self.judges)
                raise OptionError(
                    f"--refined: expected a run by {names}, with the same settings, got "
                    f"{visible(str(path))} by {visible(run.judge)}"
                )
            self.problems.extend(run.problems)
            table = run.table.first_rows(self.problems, by_protocol=True).items()
            yield JudgeResults(method=method, judge=base.name, columns=table)

    @cached_property
    def reliability(self) -> ReliabilityReport | None:
        """Judges against humans; None without labels.

        Raises:
            InputError: If no label belongs to any run.
        """
        if self.labels is None or not self._judged:
            return None
        return calibrate_judged(self._judged, self.labels, self.problems)

    @cached_property
    def _judged(self) -> list[JudgedRun]:
        """The judges with any item at all, as labels are set against them."""
        by_name = {
            judge.name: [once(judged_run(run), []) for run in judge.runs if run.table.is_item.any()]
            for judge in self.judges
        }
        return [joined(parts, name) for name, parts in by_name.items() if parts]

    @cached_property
    def answers(self) -> Answers:
        """By item, how many tested models answered it."""
        table = JudgementTable.joined([judge.table for judge in self.judges])
        return answers_of(table.item[table.has_id], table.key[table.has_id])

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables asked for; all that there is something for when none was.

        Raises:
            OptionError: If one is unknown, or there is nothing for it.
            InputError: See ``results``.
        """
        names = [name for name in self.config.tables if name != CHANGES]
        if self.config.tables and not names:
            return ()
        return paper_tables(self.results, names)

    @cached_property
    def changes(self) -> Changes | None:
        """What changed from the first run to the second; None unless asked for by name.

        Raises:
            OptionError: If there are no two runs to compare.
        """
        if CHANGES not in self.config.tables:
            return None
        compared = self._compared
        if compared is None:
            raise OptionError("--table changes: expected two runs to compare, got one")
        names, tables = compared
        answers = None if self.labels is None else self.answers
        changes = find_changes(names, tables, self.labels, answers)
        if not changes.n_pairs:
            raise OptionError(
                "--table changes: expected two runs on the same items, got none that are in both "
                f"{names[0]} and {names[1]}"
            )
        return changes

    @property
    def _compared(self) -> tuple[list[str], tuple[JudgementTable, JudgementTable]] | None:
        """The first two judges, or the two runs of one; None where there are no two."""
        if len(self.judges) > 1:
            first, second = self.judges[:2]
            return [first.name, second.name], (first.table, second.table)
        if not self.judges or len(self.judges[0].runs) != 2:
            return None
        one, other = self.judges[0].tables
        names = [f"{run.judge} [{run.place}]" for run in self.judges[0].runs]
        return names, (one, other)

    @property
    def _changed(self) -> Changes | None:
        """What the page's overview lists: changes asked for, and those of two tested models."""
        if CHANGES in self.config.tables:
            return self.changes
        compared = self._compared
        if compared is None or len(self.judges) > 1:
            return None
        changes = find_changes(*compared, None, None)
        return changes if changes.is_of_two_models and changes.n_pairs else None

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Figures of the tables, and of what judges were in doubt about."""
        doubt = judgement_frame(self.judges, self.labels, []) if self._has_doubt else None
        return paper_figures(self.tables, doubt)

    @property
    def _has_doubt(self) -> bool:
        return self.labels is not None and any(
            (run.table.entropy == run.table.entropy).any()
            for run in self._judged  # not NaN
        )

    def write_page(self, path: Path) -> ReportSize:
        """Writes the page that shows tables, figures and every item.

        Args:
            path: The file.

        Raises:
            OptionError: If there are more than ``MAX_ITEMS`` items.
            InputError: If a file can't be read or written.
        """
        from .page.html import write_report

        n_rows = max(judge.table.totals.rows for judge in self.judges)
        if n_rows > MAX_ITEMS:
            raise OptionError(
                f"--format html: expected at most {MAX_ITEMS} items a judge, got {n_rows}; grade "
                "or report parts of them"
            )
        config = self.config
        data_roots(config.data_root)  # refuses what is no folder
        sources = sources_of(
            self.judges,
            config.predictions,
            config.cases,
            self.problems,
            data_root=config.data_root,
        )
        items = ReportItems(self.judges, sources, self.labels, self.problems)
        report = ReportInput(
            title=_title(self.results),
            judges=tuple(map(_facts, self.judges)),
            tables=self.tables,
            changed=self._changed,
            figures=self.figures,
            entries=items,
            notes=(_NO_LABELS,) if self.labels is None else (),
            pictures=items.picture if self.config.pictures else None,
            version=VERSION,
        )
        return write_report(report, path)

    def to_json(self) -> dict[str, Any]:
        """Judges and changes as nested JSON values."""
        return {
            "apbjudge": VERSION,
            "judges": [
                {
                    "judge": judge.name,
                    "note": judge.note,
                    "runs": [str(run.path) for run in judge.runs],
                    "rows": judge.table.totals.rows,
                    "scored": _scored(judge.table.totals),
                    "unscored": judge.table.totals.unscored,
                }
                for judge in self.judges
            ],
            "changes": None if self.changes is None else self.changes.to_json(),
        }


def open_report(config: ReportConfig) -> Report:
    """Finds the runs and reads the labels.

    Raises:
        InputError: If a run or the labels can't be read.
        OptionError: If no run is given, or a table is unknown.
    """
    if not config.runs:
        raise OptionError("report: expected folders of runs, got none")
    for name in config.tables:
        if name not in (*TABLE_KEYS, CHANGES):
            known = ", ".join((*TABLE_KEYS, CHANGES))
            raise OptionError(f"--table: expected some of {known}, got {name!r}")
    problems: Problems = []
    judges = by_judge([read_run(path) for path in config.runs])
    labels = None
    if config.labels:
        first, *more = config.labels
        labels = load_labels(first, config.adjudicator, problems, more=more)
    elif config.adjudicator is not None:
        raise OptionError("--adjudicator: expected --labels with it, got none")
    for judge in judges:
        problems.extend(judge.problems)
    return Report(config, judges, labels, problems)


def report(runs: Paths, **settings: Any) -> Report:
    """Opens a report on runs.

    Args:
        runs: Folders of runs, or files of judgements.
        **settings: The other fields of ``ReportConfig``.

    Raises:
        InputError: If a run or the labels can't be read.
        OptionError: If a setting is unusable.
    """
    return open_report(ReportConfig(runs=runs, **settings))  # type: ignore[arg-type]


def _scored(totals: Totals) -> int:
    return totals.rows - sum(totals.unscored.values())


def _title(results: Results) -> str:
    models = {
        model
        for result in results.judges
        for model in result.columns.labels["tested_model"]
        if model is not None
    }
    if len(models) == 1:
        return f"Plans of {next(iter(models))}"
    return f"Plans of {len(models)} tested models"


_DEFAULTS = {name: field.default for name, field in JudgeSpec.model_fields.items()}


def _settings(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The settings that are not the usual ones; addresses are nobody's business."""
    for name, value in settings.items():
        if name not in {"model", "judges", "api_base"} and value != _DEFAULTS.get(name):
            yield name, str(value)


def _facts(judge: JudgeRuns) -> JudgeFacts:
    totals = judge.table.totals
    return JudgeFacts(
        name=judge.name,
        note=judge.note,
        rows=totals.rows,
        scored=_scored(totals),
        unscored=totals.unscored,
        cost_usd=totals.cost_usd,
        calls=totals.calls,
        rubrics=tuple(sorted(filter(None, judge.table.items().labels["rubric"]))),
        settings=tuple(_settings(judge.runs[0].settings)),
        source=", ".join(run.place for run in judge.runs),
    )
