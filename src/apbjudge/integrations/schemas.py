"""JSON Schemas of input and output files, made from the types that read and write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from ..errors import OptionError
from ..judge.summary import SummaryGroup
from ..records.judgement_table import Totals
from ..records.judgements import COLUMNS, Judgement
from ..records.labels import HumanLabel
from ..records.text_pairs import LABELLED_PAIR, PAIR_TEXTS
from ..records.trajectories import FORMAT, Trajectory
from ..records.wire import FIELDS, SPLITS, STRUCTURED
from ..rubrics.rubric import Rubric
from ..runs.shards import PieceIndex
from ..statistics.estimates import Estimate
from ..statistics.metric import MetricKind

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

_TEXT: Schema = {"type": ["string", "null"]}
_ID: Schema = {"type": ["string", "integer", "null"]}
_JSON: Schema = {"type": ["object", "array", "string", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_OBJECT: Schema = {"type": "object"}
_OF_ROWS: Mapping[str, Schema] = {
    **dict.fromkeys(("id", "item_id", "case_id", "tested_model"), _ID),
    **dict.fromkeys((*STRUCTURED, "ends", "model_response", "plan"), _JSON),
    "split": {"enum": [*SPLITS, "", None]},
    "prediction_horizon": {"type": ["integer", "null"], "minimum": 1, "maximum": 3},
    "format_demanded": {"type": ["boolean", "null"]},
    "sources": {"type": ["array", "null"], "items": _COUNT},
    "stage": {},
}
"""Fields of a row that are no texts."""


def _any_of(*names: str) -> Schema:
    """A row that has one of some fields."""
    return {"anyOf": [{"required": [name]} for name in names]}


def _rows(*required: str, ids: Iterable[str]) -> Schema:
    properties = {name: _OF_ROWS.get(name, _TEXT) for name in sorted(FIELDS)}
    return {
        "type": "object",
        "properties": properties,
        "required": [*required],
        **_any_of(*ids),
    }


def _judgements() -> Schema:
    """Both kinds; optional columns may be null, and columns of later versions are ignored."""
    schema = TypeAdapter[Any](Judgement).json_schema()
    required = [column.name for column in COLUMNS.values() if column.is_required]
    for kind in ("Verdict", "Unscored"):
        of = schema["$defs"][kind]
        of |= {"required": required, "additionalProperties": True}
        for name, about in of["properties"].items():
            if name not in required:
                of["properties"][name] = {"anyOf": [about, {"type": "null"}]}
    return schema


def _labels() -> Schema:
    return {**HumanLabel.model_json_schema(), "additionalProperties": True}


def _pairs() -> Schema:
    """Texts with a label of both, which says ``same`` where others say what is correct."""
    label = _labels()["properties"]
    text: Schema = {"type": "string"}
    properties: dict[str, Schema] = {
        **dict.fromkeys(PAIR_TEXTS, text),
        "of": {"enum": ["output", "argument"]},
        "same": label["is_correct"],
        "rater": label["rater"],
    }
    return {"type": "object", "properties": properties, "required": [*LABELLED_PAIR]}


def _trajectories() -> Schema:
    schema = TypeAdapter(Trajectory).json_schema()
    schema["properties"] = {"format": {"const": FORMAT}, **schema["properties"]}
    schema["required"] = ["format", *schema["required"]]
    return schema


def _properties(of: Any, *but: str) -> dict[str, Schema]:
    """The fields of a dataclass, as its own schema has them."""
    schema = TypeAdapter(of).json_schema(mode="serialization")
    return {name: about for name, about in schema["properties"].items() if name not in but}


def _closed(properties: Mapping[str, Schema]) -> Schema:
    """An object with these properties, all of them."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [*properties],
        "additionalProperties": False,
    }


def _summary() -> Schema:
    kind = _properties(MetricKind)
    metric = {"metric": {"type": "string"}, **_properties(Estimate)}
    metric |= {name: kind[name] for name in ("unit", "better")}
    names = [field.name for field in fields(SummaryGroup) if field.name != "metrics"]
    texts = {"protocol", "form", "tested_model", "setting"}
    group: dict[str, Schema] = {
        name: {"type": "string"} if name in texts else _COUNT for name in names
    }
    group["by"] = {"type": "object", "additionalProperties": _TEXT}
    group["metrics"] = {"type": "object", "additionalProperties": {"$ref": "#/$defs/metric"}}
    top = {
        "judge": {"type": "string"},
        "note": _TEXT,
        "warnings": {"type": "array", "items": {"type": "string"}},
        "groups": {"type": "array", "items": _closed(group)},
        "gates": {"type": "array", "items": _OBJECT},
        "confidence_level": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "totals": _closed({**_properties(Totals), "scored": _COUNT}),
        "missing_predictions": {"type": ["object", "null"]},
    }
    return {**_closed(top), "$defs": {"metric": _closed(metric)}}


def _manifest() -> Schema:
    """The fields that all manifests have; each kind of run has more."""
    texts, objects = ("apbjudge", "python", "started"), ("libraries", "inputs", "identity")
    text: Schema = {"type": "string"}
    properties: Schema = {
        **dict.fromkeys(texts, text),
        **dict.fromkeys(objects, _OBJECT),
        "input": text,
        "state": text,
        "rows": _COUNT,
        "finished": _TEXT,
        "seal": _TEXT,
    }
    return {"type": "object", "properties": properties, "required": [*texts, "identity", "state"]}


class _File(NamedTuple):
    """A file that has a schema: its title, and what makes the schema of a line, or of all of it."""

    title: str
    make: Callable[[], Schema]


_FILES: Mapping[str, _File] = {
    "rows": _File(
        "a line of predictions, as grade takes them without --map",
        lambda: _rows("tested_model", "model_response", ids=("id", "item_id")),
    ),
    "cases": _File(
        "a line of cases.jsonl, as --cases, predict and check take them",
        lambda: _rows(ids=("id", "item_id", "case_id")),
    ),
    "labels": _File("a line of human labels", _labels),
    "pairs": _File("a line of pairs of texts, labelled", _pairs),
    "judgements": _File("a line of judgements.jsonl", _judgements),
    "trajectories": _File("a line of trajectories.jsonl, our own format", _trajectories),
    "summary": _File("summary.json of a run of grade", _summary),
    "manifest": _File("manifest.json of a run", _manifest),
    "shards": _File("index.json of shards split", PieceIndex.model_json_schema),
    "rubric": _File("a rubric, as JSON or TOML", Rubric.model_json_schema),
}
SCHEMAS: Mapping[str, str] = {name: file.title for name, file in _FILES.items()}
"""The files that have a schema, with their titles."""


def schema(name: str) -> Schema:
    """The JSON Schema (draft 2020-12) of a file that is read or written.

    Of a file of lines it is that of one line.

    Args:
        name: One of ``rows``, ``cases``, ``labels``, ``pairs``, ``judgements``,
            ``trajectories``, ``summary``, ``manifest``, ``shards``, ``rubric``.

    Raises:
        OptionError: If there is no such name.
    """
    if name not in _FILES:
        raise OptionError(f"NAME: expected one of {', '.join(_FILES)}, got {name!r}")
    file = _FILES[name]
    made = {**file.make(), "title": f"apbjudge {name}: {file.title}"}
    return {"$schema": DIALECT, **made}
