"""The settings of each run from its manifest, as Table 19 of the benchmark's paper lists them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..config import STATIC
from ..document.model import Document, Table
from ..document.numbers import DASH
from ..judge import JudgeSpec
from ..records.run_folder import RunFolder, mapping
from ..records.tables import printed_cell
from .frames import JudgeRuns


def settings_rows(
    judges: Iterable[JudgeRuns], names: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """A row a run, by title of column; a dash where the manifest does not say."""
    for judge in judges:
        for run in judge.runs:
            yield {title: text or DASH for title, text in _row(judge.name, run, names).items()}


def settings_document(rows: Iterable[Mapping[str, str]]) -> Document:
    """The settings as a table with a column a run, so that few runs fit a page."""
    shown = list(rows)
    heads = ["Setting", *(f"Run {number}" for number in range(1, len(shown) + 1))]
    lines = [[title, *(row[title] for row in shown)] for title in shown[0]]
    folding = "l" + "f" * len(shown)
    return Document((Table.of(heads, lines, align=folding),), title="Settings of each run")


def settings_csv(rows: Iterable[Mapping[str, str]]) -> str:
    """The settings as CSV, a line a run."""
    out, shown = io.StringIO(), list(rows)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([shown[0], *(map(printed_cell, row.values()) for row in shown)])
    return out.getvalue()


def _row(judge: str, run: RunFolder, names: Mapping[str, str]) -> dict[str, str]:
    settings, identity = run.settings, mapping(run.manifest.get("identity"))
    labels = run.table.items().labels
    models = sorted(names.get(model, model) for model in labels["tested_model"] if model)
    is_model = settings.get("model", STATIC) != STATIC and "function" not in settings

    def spec_text(name: str) -> str:
        return _text(settings.get(name, JudgeSpec.model_fields[name].default)) if is_model else ""

    return {
        "Judge": judge,
        "Run": run.place,
        "Model": _text(settings.get("model")),
        "Temperature": spec_text("temperature"),
        "Samples": spec_text("samples"),
        "Max tokens": spec_text("max_reply_tokens"),
        "Rubric": _joined(labels["rubric"]),
        "Protocol": _joined(labels["protocol"]),
        "Prompts": _version(identity),
        **{
            title: _text(run.manifest.get(title.lower()))
            for title in ("apbjudge", "Started", "Finished", "Rows")
        },
        "Tested models": ", ".join(models),
    }


def _version(identity: Mapping[str, Any]) -> str:
    """The hash of the prompt templates; of a judge without prompts, the version of its code."""
    templates, code = identity.get("templates"), identity.get("judge_version")
    if isinstance(templates, str):
        return templates[:12]
    return "" if code is None else f"code version {code}"


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _joined(texts: Iterable[str | None]) -> str:
    return ", ".join(sorted({text for text in texts if text}))
