"""Makes a report from runs: tables, figures, changes, and the page that shows items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration.calibrate import calibrate_judged
from ..calibration.changes import Changes, find_changes
from ..calibration.judged_run import joined, judged_run, once
from ..calibration.matching import Labels, load_labels
from ..calibration.results import ReliabilityReport
from ..document.display import Shown
from ..document.model import Document, resampled
from ..errors import OptionError, visible
from ..judge import JudgeSpec
from ..judge.published import read_runs
from ..judge.source import data_roots
from ..judge.trajectory_metrics import CODE
from ..options import takes
from ..records.columns import all_codes
from ..records.consensus import answers_of
from ..records.judgement_table import TRAJECTORY, JudgementTable, Problems
from ..records.refinements import Refinements
from ..records.run_folder import read_run
from ..statistics.config import IntervalConfig
from ..version import VERSION
from .changes import changes_document
from .config import CHANGES, MODELS, SETTINGS, ReportConfig
from .frames import JudgeRuns, by_judge, judgement_frame
from .judged_items import ReportItems, logs_of, sources_of
from .names import (
    Names,
    read_names,
    renamed,
    renamed_critic,
    renamed_table,
    steps_grouped,
    with_names,
)
from .origins import oracles_among, origin_of
from .page.entries import JudgeFacts, ReportInput, ReportSize
from .paper.building import JudgeResults, TableSources, headline_tables, paper_tables
from .paper.definitions import TABLE_KEYS
from .paper.formatting import tables_csv, tables_document
from .paper.leaderboard import leaderboard_rows
from .paper.table import PaperTable
from .paper.trajectories import TRAJECTORY_TABLE_KEYS
from .plots import Figure, paper_figures
from .run_settings import (
    JUDGES,
    TESTED,
    is_of_tested_models,
    settings_document,
    settings_rows,
    tested_model_rows,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_NO_LABELS = "There are no human labels: nothing here says how far the judge can be trusted."
_DEFAULTS = {name: field.default for name, field in JudgeSpec.model_fields.items()}
_UNSAID = frozenset({"model", "judges", "api_base", "api_base_file"})
"""Settings that the page leaves out: the name states two of them, and addresses are private."""


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """A report; its parts are computed when they are first accessed.

    Attributes:
        config: The settings.
        judges: The judges with their runs.
        labels: The human labels; None without.
        problems: Grows by a line for each row that can't be used.
        names: Display names by tested model.
        asked: Folders of runs that asked tested models.
    """

    config: ReportConfig
    judges: tuple[JudgeRuns, ...]
    labels: Labels | None
    problems: Problems = field(default_factory=Problems)
    names: Names = field(default_factory=dict[str, str])
    asked: tuple[Path, ...] = ()

    @cached_property
    def reliability(self) -> ReliabilityReport | None:
        """Judges against humans; None without labels.

        Raises:
            InputError: If no label belongs to any run.
        """
        if self.labels is None:
            return None
        by_name = {
            judge.name: [once(judged_run(run), []) for run in judge.runs if run.table.is_item.any()]
            for judge in self.judges
        }
        own = {name: getattr(self.config, name) for name in IntervalConfig.model_fields}
        if self.config.design is not None:
            own |= {"design": self.config.design, "by": ("tested_model",)}
        judged = [joined(parts, name) for name, parts in by_name.items() if parts]
        return calibrate_judged(judged, self.labels, self.problems, own) if judged else None

    @cached_property
    def tables(self) -> tuple[PaperTable, ...]:
        """The requested tables; by default, all tables for which there are data.

        Raises:
            InputError: If a file can't be read, or labels belong to no run.
            OptionError: If there are no data for a requested table, or a refined run is not by a
                judge of the report.
        """
        results = self._results
        names = [name for name in self.config.tables if name not in (CHANGES, SETTINGS, MODELS)]
        if not names and self.config.tables:
            return ()
        return tuple(map(_with_resampling, paper_tables(results, names)))

    @cached_property
    def _results(self) -> TableSources:
        judges: list[JudgeResults] = []
        for judge in self.judges:
            items, n_rows = judge.table.items(), len(judge.table)
            results = JudgeResults(
                judge=judge.name,
                note=self._notes[judge.name],
                columns=self._columns(items),
                models=with_names({m for run in judge.runs for m in run.models}, self.names),
                origin=self._origins[judge.name],
            )
            judges.append(results)
            if n_never := n_rows - len(items):
                self.problems.append(
                    f"{visible(judge.name)}: {n_never} of {n_rows} rows never became items, "
                    "because their input could not be used: no table counts them"
                )
        refined = tuple(self._refined())
        reliability = renamed(self.reliability, self.names)
        return TableSources(judges=tuple(judges), refined=refined, reliability=reliability)

    @cached_property
    def leaderboard(self) -> list[dict[str, Any]]:
        """Tested models by their rate of success, with tiers; see ``leaderboard_rows``."""
        return leaderboard_rows(self._results)

    def _columns(self, table: JudgementTable) -> JudgementTable:
        """The judgements with display names, and with the settings of intervals."""
        table = replace(renamed_table(table, self.names), intervals=self.config.settings)
        return steps_grouped(table, self.config.group_steps) if self.config.group_steps else table

    def _refined(self) -> Iterator[JudgeResults]:
        for method, path in self.config.refined:
            run = read_run(path, self.config.input_paths)
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
            origin = origin_of(run, self.problems).at(table.key)
            yield JudgeResults(
                method=method,
                judge=base.name,
                columns=self._columns(table),
                origin=origin.with_critics(lambda model: renamed_critic(model, self.names)),
            )

    @cached_property
    def _origins(self) -> dict[str, Refinements | None]:
        """By judge, origins of responses, if any critic may have seen the reference; else None."""
        return {
            judge.name: oracles_among(judge.runs, judge.table.items().key) for judge in self.judges
        }

    @cached_property
    def _notes(self) -> dict[str, str | None]:
        """By judge, notes that apply to every metric."""
        notes: dict[str, str | None] = {}
        for judge in self.judges:
            origin = self._origins[judge.name]
            n_rows = 0 if origin is None else int((origin.is_oracle == 1).sum())
            oracles = f"oracle: the critic of {n_rows} responses saw the reference"
            notes[judge.name] = " ".join(filter(None, [judge.note, oracles if n_rows else ""]))
        return {name: note or None for name, note in notes.items()}

    @cached_property
    def changes(self) -> Changes | None:
        """Changes from the first run to the second; None unless requested by name.

        Raises:
            OptionError: If there are no two runs to compare.
        """
        if CHANGES not in self.config.tables:
            return None
        if (pair := self._pair) is None:
            raise OptionError("--table changes: expected two runs to compare, got one")
        names, tables = pair
        table = JudgementTable.joined([judge.table for judge in self.judges])
        answers = answers_of(table.item[table.has_id], table.key[table.has_id])
        changes = find_changes(names, tables, self.labels, answers)
        if not changes.n_pairs:
            raise OptionError(
                "--table changes: expected two runs on the same items, got none that are in both "
                f"{names[0]} and {names[1]}"
            )
        return renamed(changes, self.names)

    @property
    def settings(self) -> list[dict[str, str]] | None:
        """The judge's settings of each run, by title; None unless requested by name."""
        wanted = SETTINGS in self.config.tables
        return [*settings_rows(self.judges, self.names)] if wanted else None

    @property
    def tested_models(self) -> list[dict[str, str]] | None:
        """The settings of each tested model in the runs that asked it, by title.

        None if there is no such run, or only other tables are requested by name.
        """
        wanted = self.asked and (not self.config.tables or MODELS in self.config.tables)
        return tested_model_rows(self.asked, self.names) if wanted else None

    @property
    def unknown_names(self) -> list[str]:
        """Tested models with a display name but without a judgement in any run."""
        tables = [judge.table for judge in self.judges]
        known = {model for table in tables for model in table.labels["tested_model"]}
        return sorted({*self.names} - known)

    @property
    def _pair(self) -> tuple[list[str], tuple[JudgementTable, JudgementTable]] | None:
        """The first two judges, or the two runs of one judge; None if there are no two."""
        if len(self.judges) > 1:
            first, second = self.judges[:2]
            return [first.name, second.name], (first.table, second.table)
        if not self.judges or len(self.judges[0].runs) != 2:
            return None
        before, after = self.judges[0].tables
        return [f"{run.judge} [{run.place}]" for run in self.judges[0].runs], (before, after)

    @property
    def _shown_changes(self) -> Changes | None:
        """Changes for the page's overview: requested ones, or those between two tested models."""
        if CHANGES in self.config.tables:
            return self.changes
        if (pair := self._pair) is None or len(self.judges) > 1:
            return None
        changes = find_changes(*pair, None, None)
        if not (changes.is_of_two_models and changes.n_pairs):
            return None
        return renamed(changes, self.names)

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Figures of the tables and, with labels, of the judges' certainty."""
        is_measured = any(np.isfinite(judge.table.entropy).any() for judge in self.judges)
        has_both = self.labels is not None and is_measured
        return paper_figures(
            self.tables, judgement_frame(self.judges, self.labels) if has_both else None
        )

    def write_page(self, path: Path) -> ReportSize:
        """Writes the page that shows tables, figures and every item, see ``ReportItems``.

        Raises:
            OptionError: If the data folder is not a folder, or no run was judged.
            InputError: If a file can't be read or written.
        """
        from .page.html import write_report

        if not self.judges:
            raise OptionError("--format html: expected folders of judged runs, got none")
        tables, config = self.tables, self.config
        data_roots(config.data_root)  # refuses paths that are not folders
        items = ReportItems(
            self.judges,
            sources_of(self.judges, config, self.problems),
            self.labels,
            self.problems,
            logs=logs_of(self.judges, config, self.problems),
        )
        labels = [judge.table.items().labels["tested_model"] for judge in self.judges]
        models = sorted({self.names.get(m, m) for of in labels for m in of if m is not None})
        forms = [form for judge in self.judges for form in judge.table.items().labels["form"]]
        what = "Trajectories" if {*forms} == {TRAJECTORY} else "Plans"
        is_measured = all(judge.name == CODE for judge in self.judges)
        notes = [items.note, _NO_LABELS if self.labels is None and not is_measured else ""]
        report = ReportInput(
            title=f"{what} of {models[0] if len(models) == 1 else f'{len(models)} tested models'}",
            judges=tuple(map(self._facts, self.judges)),
            headlines=headline_tables(self._results),
            tables=tables,
            changed=self._shown_changes,
            figures=self.figures,
            entries=(
                replace(entry, tested_model=self.names.get(entry.tested_model, entry.tested_model))
                for entry in items
            ),
            settings=tuple(settings_rows(self.judges, self.names)),
            code_names={
                ref: names
                for judge in self.judges
                for run in judge.runs
                for ref, names in run.code_names.items()
            },
            notes=tuple(filter(None, notes)),
            pictures=items.picture if config.pictures else None,
            version=VERSION,
        )
        return replace(write_report(report, path), note=items.note)

    def _facts(self, judge: JudgeRuns) -> JudgeFacts:
        """Metrics of a judge for the page."""
        totals = judge.table.totals
        settings = judge.runs[0].settings.items()
        labelled = self.reliability.judges if self.reliability else ()
        own = next((of for of in labelled if of.judge == judge.name), None)
        rates = [of for of in (own.corrected if own else ()) if not of.field and of.figure == "CR"]
        return JudgeFacts(
            name=judge.name,
            note=self._notes[judge.name],
            rows=totals.rows,
            scored=totals.rows - sum(totals.unscored.values()),
            unscored=totals.unscored,
            cost_usd=totals.cost_usd,
            calls=totals.calls,
            rubrics=tuple(sorted(filter(None, judge.table.items().labels["rubric"]))),
            settings=tuple(
                (name, str(value))
                for name, value in settings
                if name not in _UNSAID and value != _DEFAULTS.get(name)
            ),
            source=", ".join(run.place for run in judge.runs),
            agreement=own.whole.measures.get("agreement") if own else None,
            corrected=rates[-1].result.rectified if rates else None,
            by_rule=bool(judge.table.by_rule.all()),
        )

    def to_frame(self) -> DataFrame:
        """All tables as one pandas frame, one row per metric, as in their CSV."""
        import pandas

        return pandas.read_csv(StringIO(tables_csv(self.tables)))

    def to_json(self) -> dict[str, Any]:
        """Judges and changes as nested JSON values."""
        totals = [judge.table.totals for judge in self.judges]
        return {
            "apbjudge": VERSION,
            "judges": [
                {
                    "judge": judge.name,
                    "note": self._notes[judge.name],
                    "runs": [str(run.path) for run in judge.runs],
                    "rows": of.rows,
                    "scored": of.rows - sum(of.unscored.values()),
                    "unscored": of.unscored,
                }
                for judge, of in zip(self.judges, totals, strict=True)
            ],
            "judge_settings": self.settings,
            "tested_models": self.tested_models,
            "changes": None if self.changes is None else self.changes.to_json(),
        }

    def _printed(self) -> Document:
        return report_document(self)


@takes(config=ReportConfig)
def report(config: ReportConfig) -> Report:
    """Opens a report on runs.

    Args:
        config: The settings; options take precedence.

    Raises:
        InputError: If a run or the labels can't be read.
        OptionError: If no run is given, or a setting is unusable.
    """
    if not config.runs:
        raise OptionError("report: expected folders of runs, got none")
    known = (*TABLE_KEYS, *TRAJECTORY_TABLE_KEYS, CHANGES, SETTINGS, MODELS)
    if unknown := [name for name in config.tables if name not in known]:
        raise OptionError(f"--table: expected some of {', '.join(known)}, got {unknown[0]!r}")
    problems: Problems = []
    names = {} if config.names is None else read_names(config.names)
    asked = tuple(path for path in config.runs if is_of_tested_models(path))
    if MODELS in config.tables and not asked:
        raise OptionError(f"--table {MODELS}: expected a folder of predict or the like, got none")
    judged = [path for path in config.runs if path not in asked]
    judges = by_judge([run for path in judged for run in read_runs(path, config.input_paths)])
    labels = None
    if config.labels:
        first, *more = config.labels
        codes = all_codes(judge.table for judge in judges)
        labels = load_labels(first, config.adjudicator, problems, more=more, codes=codes)
    else:
        for name in ("adjudicator", "design"):
            if getattr(config, name) is not None:
                raise OptionError(f"--{name}: expected --labels with it, got none")
    for judge in judges:
        problems.extend(judge.problems)
    return Report(config, judges, labels, problems, names, asked)


def report_document(report: Report) -> Document:
    """The tables of a report, and settings and changes if requested."""
    parts = [*tables_document(report.tables, "*")]
    parts += settings_document(report.settings, JUDGES) if report.settings else ()
    parts += settings_document(report.tested_models, TESTED) if report.tested_models else ()
    parts += changes_document(report.changes) if report.changes else ()
    return Document(tuple(parts))


def _with_resampling(table: PaperTable) -> PaperTable:
    """The table with a note on resampling, if its intervals were resampled."""
    estimates = (cell.estimate for cell in table.metrics)
    return replace(table, notes=(*table.notes, *resampled(estimates)))
