"""Results of other evaluation tools in known forms: every metric is a judge.

Logs of trajectories are read by the usual reader of logs, with the scores that they state.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError, RowError
from ..records.files import unpacked
from ..records.foreign import Row, Rows, flat, is_score, read_rows
from ..records.json_stream import layout_of, read_whole
from ..records.loose_json import as_list, as_object
from ..records.own_rows import TABLES, kind_of
from ..trajectories.conservation import Conservation
from ..trajectories.detection import detect
from ..trajectories.formats.fields import HUMAN, number_of
from ..trajectories.formats.inspect_log import INSPECT
from ..trajectories.formats.messages import MESSAGES
from ..trajectories.reading import read_log

_Scores = dict[str, tuple[Any, Any]]
"""Verdict and score by metric; None if a metric does not state it."""
_Entry = tuple[int, Any, Any, _Scores]
"""A record: its number, item, tested model and scores."""


@dataclass(frozen=True, slots=True)
class ToolResults:
    """The judgements of a file.

    Attributes:
        title: The form.
        item: The field that names the item.
        metrics: By metric, a row for each item that it judged, with the number of its record:
            ``item``, ``tested model``, ``metric``, ``verdict`` and ``score``, if stated.
        units: The metrics whose scores are from 0 to 1 in this form.
        problems: A line for each record that can't be read.
    """

    title: str
    item: str
    metrics: Mapping[str, Sequence[tuple[int, Row]]]
    units: Collection[str]
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of results; several names in a text are separated by spaces.

    Attributes:
        title: Name of the form in messages.
        keys: Fields that a record has; ``a|b`` means either.
        metrics: Pattern of the columns that are metrics, or field with a list of metrics.
        item: Fields that may name the item: the first that all records have, else their number.
        model: Fields that may name the tested model.
        lists: Places of the records in a file that is one object.
        name: Fields that name a metric in a list; empty if metrics are columns.
        verdict: Field with the verdict of a metric in a list.
        is_unit: True if scores are from 0 to 1.
    """

    title: str
    keys: str
    metrics: str
    item: str
    model: str = ""
    lists: str = ""
    name: str = ""
    verdict: str = ""
    is_unit: bool = False

    def fits(self, row: Row) -> bool:
        heads = {name.partition(".")[0] for name in row}
        return all(heads & {*any_of.split("|")} for any_of in self.keys.split())

    def scores(self, row: Row) -> _Scores:
        """The metrics of a record; further metrics of the same name get a number."""
        if not self.name:
            suffix = f" ({row['filter']})" if row.get("filter", "none") != "none" else ""
            columns = ((re.fullmatch(self.metrics, name), of) for name, of in row.items())
            return {name[1] + suffix: (None, of) for name, of in columns if name and is_score(of)}
        scores: _Scores = {}
        parts = [flat(of) for of in map(as_object, as_list(_first(row, self.metrics)) or []) if of]
        for part in parts:
            name = stem = str(_first(part, self.name))
            while name in scores:
                name = f"{stem} {len(scores) + 1}"
            score = part.get("score")  # a metric that failed has none, and no verdict
            scores[name] = (None if score is None else part.get(self.verdict), score)
        if "success" in row and (len(parts) > 1 or (not parts and "gradingResult.pass" in row)):
            scores["all metrics"] = (row["success"], row.get("score"))
        return scores


def _first(row: Row, names: str) -> Any:
    """The value of the first of some fields that a row has; None without."""
    return next((row[name] for name in names.split() if name in row), None)


_ANY_BUT = r"(?!(?:{})$)([^.]+)"
_OF_LM_EVAL = "doc_id|filter|target|prompt_hash|doc_hash|target_hash"
_OF_RAGAS = (
    "id|item_id|model|tested_model|user_input|response|reference|retrieved_contexts|rubrics?|"
    "reference_contexts|reference_tool_calls|reference_topics|persona_name|query_\\w+|"
    "synthesizer_name"
)
_IDS = "id item_id case_id"
_FORMS = (
    _Form(
        title="results of DeepEval",
        keys="metricsData|metrics_data",
        metrics="metricsData metrics_data",
        item="name",
        lists="testCases conversationalTestCases test_results",
        name="name",
        verdict="success",
        is_unit=True,
    ),
    _Form(
        title="results of promptfoo",
        keys="gradingResult|failureReason|error vars|testIdx",
        metrics="gradingResult.componentResults",
        item="vars.id vars.item_id testIdx",
        model="provider.id provider",
        lists="results.results results",
        name="assertion.metric assertion.type",
        verdict="pass",
        is_unit=True,
    ),
    _Form(
        title="output items of OpenAI evals",
        keys="datasource_item|datasource_item_id results",
        metrics="results",
        item="datasource_item.id datasource_item_id",
        model="sample.model",
        lists="data",
        name="name",
        verdict="passed",
    ),
    _Form(
        title="a log of OpenAI evals",
        keys="event_id sample_id data",
        metrics=r"data\.(.+)",
        item="sample_id",
    ),
    _Form(
        title="samples of lm-eval",
        keys="doc_id resps|filtered_resps",
        metrics=_ANY_BUT.format(_OF_LM_EVAL),
        item="doc_id",
    ),
    _Form(
        title="results of ragas",
        keys="user_input response|retrieved_contexts|reference",
        metrics=_ANY_BUT.format(_OF_RAGAS),
        item=f"{_IDS} user_input",
        model="tested_model model",
        is_unit=True,
    ),
    _Form(
        title="an evaluation table of MLflow",
        keys="",
        metrics=r"(.+)/(?:score|value)",
        item=f"{_IDS} trace_id request_id inputs",
    ),
)
_OTHERS = 2
"""Number of records without a sample in a log of OpenAI evals: its settings and its report."""


def tool_results(path: Path, item: str | None = None) -> ToolResults | None:
    """The judgements in a file; None if its form is unknown.

    Args:
        path: The file.
        item: The field that names the item; None for the form's usual one.

    Raises:
        InputError: If the file can't be read.
    """
    content: Mapping[str, Any] = {}
    rows: Rows
    kind, plain = kind_of(path), unpacked(path)
    is_object = kind not in TABLES and layout_of(plain) == "object"
    value = read_whole(plain).value if is_object else None
    if isinstance(value, RowError) and kind != "objects":  # "objects": several objects in a file
        raise InputError(f"{path}: {value}")
    if value is None or isinstance(value, RowError):
        rows = read_rows(path)[1]
    else:
        content = as_object(value) or {}
        rows = [(1, flat(content))]
    for form in _FORMS:
        if results := _of_form(form, path, _records(form, content) or rows, item):
            return results
    return None if kind in TABLES else _of_log(path)


def _row(value: Any) -> Row | RowError:
    of = as_object(value)
    return RowError("record", "an object", value) if of is None else flat(of)


def _records(form: _Form, content: Mapping[str, Any]) -> Rows:
    """The records in a file that is one object: one of its lists, or a table of pandas."""
    of = flat(content)
    lists = (as_list(of.get(at)) for at in form.lists.split())
    values: list[Any] = next(filter(None, lists), None) or []
    if columns := as_list(content.get("columns")):
        lines = (as_list(line) or [] for line in as_list(content.get("data")) or [])
        values = [dict(zip(columns, line, strict=False)) for line in lines]
    return [(number, _row(value)) for number, value in enumerate(values, 1)]


def _of_form(form: _Form, path: Path, rows: Rows, item: str | None) -> ToolResults | None:
    """The judgements of records, if they fit the form; else None."""
    usable = [(number, row) for number, row in rows if not isinstance(row, RowError)]
    if not any(form.fits(row) for _, row in usable[: _OTHERS + 1]):
        return None
    own = [(number, row) for number, row in usable if form.fits(row)]
    columns = {name for _, row in own for name in row}
    has_metrics = form.name or any(re.fullmatch(form.metrics, name) for name in columns)
    if not has_metrics or len(own) + _OTHERS < len(usable):
        return None
    problems = [f"{path}:{number}: {of}" for number, of in rows if isinstance(of, RowError)]
    names = [item] if item else form.item.split()
    item = next((name for name in names if all(name in row for _, row in own)), "")
    models = {(_first(row, form.model), row.get("promptIdx")) for _, row in own}
    has_prompts = len(models) > len({model for model, _ in models})
    entries: list[_Entry] = []
    for number, row in own:
        model = _first(row, form.model)
        if has_prompts:
            model = f"{model} prompt {row.get('promptIdx')}"
        entries.append((number, row.get(item, number), model, form.scores(row)))
    metrics = _by_metric(entries, complete=not form.name)
    units = metrics if form.is_unit else ()
    return ToolResults(form.title, item or "the record's number", metrics, units, problems)


def _of_log(path: Path) -> ToolResults | None:
    """The scores that a log states of its runs; None if it states none, or is not a log."""
    try:
        format_ = detect(path)
    except InputError:
        return None
    if format_ == MESSAGES.name:  # such rows are read by their columns
        return None
    entries: list[_Entry] = []
    problems: list[str] = []
    units: set[str] = set()
    for entry in read_log(path, format_, conservation=Conservation(accepts=1)):
        run = entry.content
        if isinstance(run, RowError):
            problems.append(f"{entry.place}: {run}")
            continue
        scores: _Scores = {}
        for name, value in run.scores.items():
            is_letter = format_ == INSPECT.name and value in tuple("CIPN")
            if not name.endswith(HUMAN):
                scores[name] = (None, number_of(value, letters=True) if is_letter else value)
            if is_letter:
                units.add(name)
        item = run.case_id if (run.trial or 0) < 2 else f"{run.case_id}#{run.trial}"
        entries.append((entry.line, item, run.tested_model or None, scores))
    if not any(scores for *_, scores in entries):
        return None
    metrics = _by_metric(entries, complete=False)
    return ToolResults(f"a log of {format_}", "case", metrics, units, problems)


def _by_metric(entries: Sequence[_Entry], *, complete: bool) -> dict[str, list[tuple[int, Row]]]:
    """The rows of each metric; an item that no metric has judged is unscored under all.

    Args:
        entries: The records.
        complete: True if each record should have all metrics: then a missing one is unscored.
    """
    metrics: dict[str, list[tuple[int, Row]]] = {name: [] for *_, of in entries for name in of}
    judged = {(str(item), model) for _, item, model, scores in entries if scores}
    stated = {(str(item), model, name) for _, item, model, of in entries for name in of}
    for number, item, model, scores in entries:
        key = str(item), model
        for name, rows in metrics.items():
            if name not in scores and ((*key, name) in stated or (not complete and key in judged)):
                continue
            stated.add((*key, name))
            verdict, score = scores.get(name, (None, None))
            row = {"item": item, "tested model": model, "metric": name}
            row |= {"verdict": verdict, "score": score}
            rows.append((number, {column: of for column, of in row.items() if of is not None}))
    return metrics
