"""Settings of judges and of tested models from the manifests of runs.

Those of tested models are what Table 19 of the benchmark's paper lists.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import orjson

from ..config import STATIC
from ..document.model import Document, Table
from ..document.numbers import DASH
from ..judge import JudgeSpec
from ..records.run_folder import JUDGEMENTS, RunFolder, mapping, read_manifest
from ..records.tables import printed_cell
from .frames import JudgeRuns

JUDGES, TESTED = "Judge settings of each run", "Tested models"
NOT_RECORDED = "not recorded"
PROVIDER = "provider default"


def settings_rows(
    judges: Iterable[JudgeRuns], names: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """A row a run, by title of column; a dash if the manifest does not state a setting."""
    for judge in judges:
        for run in judge.runs:
            yield {title: text or DASH for title, text in _row(judge.name, run, names).items()}


def settings_document(rows: Iterable[Mapping[str, str]], title: str) -> Document:
    """The settings as a table with one column for each row, so that few runs fit a page."""
    shown = list(rows)
    own = "Run" if title == JUDGES else "Model"
    heads = ["Setting", *(f"{own} {number}" for number in range(1, len(shown) + 1))]
    lines = [[name, *(row[name] for row in shown)] for name in shown[0]]
    folding = "l" + "f" * len(shown)
    return Document((Table.of(heads, lines, align=folding),), title=title)


def settings_csv(rows: Iterable[Mapping[str, str]]) -> str:
    """The settings as CSV, a line a row."""
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
    """The hash of the prompt templates; for a judge without prompts, the version of its code."""
    templates, code = identity.get("templates"), identity.get("judge_version")
    if isinstance(templates, str):
        return templates[:12]
    return "" if code is None else f"code version {code}"


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _joined(texts: Iterable[str | None]) -> str:
    return ", ".join(sorted({text for text in texts if text}))


# Tested models -----------------------------------------------------------------------------------


def is_of_tested_models(path: Path) -> bool:
    """True if a path is the folder of a run that asked tested models, or a file in it."""
    folder = path if path.is_dir() else path.parent
    is_judged = (folder / JUDGEMENTS).is_file()
    return not is_judged and isinstance(read_manifest(folder).get("models"), dict)


def tested_model_rows(paths: Iterable[Path], names: Mapping[str, str]) -> list[dict[str, str]]:
    """A row for each tested model of each run, by title of column; no value is blank.

    Args:
        paths: Folders of runs that asked tested models, or a file in each.
        names: Display names by tested model.
    """
    rows: list[dict[str, str]] = []
    for path in paths:
        folder = path if path.is_dir() else path.parent
        manifest = read_manifest(folder)
        for model, of in mapping(manifest.get("models")).items():
            row = {"Tested model": names.get(model, model), "Run": folder.name}
            row |= _tested(model, mapping(of), manifest)
            rows.append({title: text or NOT_RECORDED for title, text in row.items()})
    return rows


def _tested(model: str, of: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, str]:
    served = mapping(mapping(mapping(manifest.get("counts")).get(model)).get("served_models"))
    settings = mapping(of.get("settings"))
    return {
        "Model": _text(settings.get("model")),
        "Served model": ", ".join(sorted(served)),
        **sampling_words(settings),
        "Samples": _text(manifest.get("samples")),
        "Dropped settings": _listed(of.get("dropped"), "none"),
        "Prompts": _text(mapping(manifest.get("prompts")).get("name")),
        "Source": _text(settings.get("api_base_file"))
        or _listed(settings.get("api_base"), "the provider's own address"),
    }


def _listed(value: object, nothing: str) -> str:
    """The texts of a list, or ``nothing`` for an empty one; empty for other values."""
    if not isinstance(value, list):
        return ""
    return ", ".join(map(str, cast("list[object]", value))) or nothing


def sampling_words(settings: Mapping[str, Any]) -> dict[str, str]:
    """The settings that are sent with each request, in words; empty if not stated.

    Args:
        settings: Fields of a ``ModelSpec``.
    """
    params = mapping(settings.get("params"))
    template = mapping(mapping(params.get("extra_body")).get("chat_template_kwargs"))
    thinking = mapping(params.get("thinking"))
    stated = {
        "budget": thinking.get("budget_tokens"),
        "type": None if "budget_tokens" in thinking else thinking.get("type"),
        "level": params.get("reasoning_effort", params.get("thinking_level")),
        "enabled": template.get("enable_thinking"),
    }
    words = ", ".join(f"{name} {value}" for name, value in stated.items() if value is not None)
    others = orjson.dumps({n: v for n, v in params.items() if n not in _OF_THINKING}).decode()
    has_params = "params" in settings
    return {
        "Temperature": _or("temperature", settings, PROVIDER),
        "Thinking": words or PROVIDER * has_params,
        "Seed": _or("seed", settings, "none sent"),
        "Reply limit": _text(settings.get("max_reply_tokens")),
        "Other parameters": ("none" if others == "{}" else others) * has_params,
    }


_OF_THINKING = ("thinking", "reasoning_effort", "thinking_level")


def _or(name: str, settings: Mapping[str, Any], default: str) -> str:
    """A setting as text; the default if it is stated as None, empty if it is not stated."""
    value = settings.get(name)
    return (default if name in settings else "") if value is None else str(value).removesuffix(".0")
