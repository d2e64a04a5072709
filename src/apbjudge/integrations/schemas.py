"""JSON Schemas of input and output files, made from the types that read and write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any, NamedTuple, get_type_hints

from docstring_parser.google import parse
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from ..audits.card import CARD_VERSION
from ..audits.variants import Truth
from ..errors import OptionError
from ..records.judgements import COLUMNS, Judgement, Verdict
from ..records.labels import HumanLabel
from ..records.text_pairs import LABELLED_PAIR, PAIR_TEXTS
from ..records.trajectories import FORMAT, Trajectory
from ..records.wire import FIELDS, SPLITS, STRUCTURED
from ..rubrics.rubric import Rubric
from ..runs.shards import PieceIndex
from ..statistics.estimates import Estimate
from ..statistics.metric import MetricKind
from ..trajectories.planbench.data import (
    Datatype,
    PathEntry,
    PlanbenchTask,
    PlanbenchTool,
    Query,
    Records,
)

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
"""Fields of a row that are not, or not only, texts."""


_ADDED: Mapping[str, str] = {
    "Comparison": "differing",
    "Changes": "counts",
    "VerdictChange": "is_now_wrong",
    "TaskPaths": "shortest not_catalogued only_catalogued is_shorter",
    "BlockPlan": "fingerprint",
}
"""Properties of a class that its JSON has in addition to the fields."""
_OMITTED: Mapping[str, str] = {
    "LabelPlan": "rows",
    "Variant": "row truth",
    "CaseReport": "counts unanswered n_answered",
    "ValidationReport": "judged",
    "Summary": "missing codes",
    "GeneratedBenchmark": "out inputs lengths writing",
}
"""Fields that the JSON of a class lacks."""
_HAS_AGENTS = find_spec("..agents", __package__) is not None


class _Described(GenerateJsonSchema):
    """Schemas with descriptions from the docstrings of classes."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> Schema:
        """The schema of a dataclass."""
        return self._object(super().dataclass_schema(schema), schema["cls"])

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        """The schema of a pydantic model."""
        return self._object(super().model_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> Schema:
        """The schema of a ``TypedDict``."""
        return self._object(super().typed_dict_schema(schema), schema.get("cls", dict))

    def _object(self, made: Schema, of: type) -> Schema:
        about = _attributes(of)
        made["description"] = parse(of.__doc__ or "").description
        for name, field in made.get("properties", {}).items():
            if name in about:
                field.setdefault("description", about[name])
        return made


class _Written(_Described):
    """Schemas of written files: objects have all of their fields, and no others."""

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: FBT001 - as the base has it
        """True except for optional keys of a ``TypedDict``."""
        return field["type"] != "typed-dict-field" or super().field_is_required(field, total)

    def _object(self, made: Schema, of: type) -> Schema:
        if "properties" in made:
            properties, required = made["properties"], made.get("required", [])
            for name in _OMITTED.get(of.__name__, "").split():
                del properties[name]
                required.remove(name)
            for name in _ADDED.get(of.__name__, "").split():
                properties[name] = _property(getattr(of, name))
                required.append(name)
            made["required"] = required
            made.setdefault("additionalProperties", False)
        return super()._object(made, of)


def _attributes(of: type) -> dict[str, str]:
    """Descriptions of the fields of a class, from its docstring and those of its bases."""
    about: dict[str, str] = {}
    for base in getattr(of, "__orig_bases__", of.__bases__):
        about |= _attributes(base) if isinstance(base, type) else {}
    params = parse((of is not dict and of.__doc__) or "").params
    return about | {each.arg_name: " ".join((each.description or "").split()) for each in params}


def _property(of: property | cached_property[Any]) -> Schema:
    """The schema of a property's value."""
    get: Any = of.func if isinstance(of, cached_property) else of.fget
    kind = TypeAdapter[Any](get_type_hints(get)["return"])
    return {**kind.json_schema(mode="serialization"), "description": get.__doc__}


def _type(path: str) -> Any:
    """The type at ``module:name``."""
    return resolve_name(f"apbjudge.{path}")


def _read(of: Any) -> Schema:
    """The schema of a type that is read."""
    return TypeAdapter[Any](of).json_schema(schema_generator=_Described)


def _written(path: str, **more: Schema) -> Schema:
    """The schema of a written type with more fields; their definitions are moved to its top."""
    of = TypeAdapter[Any](_type(path))
    schema = of.json_schema(mode="serialization", schema_generator=_Written)
    for about in more.values():
        schema.setdefault("$defs", {}).update(about.pop("$defs", {}))
    schema["properties"] = {**more, **schema["properties"]}
    schema["required"] = [*more, *schema["required"]]
    return schema


def _nested(path: str, kind: str, **more: Schema) -> Schema:
    """The schema of a field that holds a list, or an object by name, of a written type."""
    of = _written(path, **more)
    name = path.rpartition(":")[2]
    inner = {"items" if kind == "array" else "additionalProperties": {"$ref": f"#/$defs/{name}"}}
    return {"type": kind, **inner, "$defs": {**of.pop("$defs", {}), name: of}}


def _any_of(*names: str) -> Schema:
    """The condition that an object has at least one of some fields."""
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
    """Verdict or unscored; optional columns may be null, and unknown columns are ignored."""
    schema, texts = _read(Judgement), _attributes(Verdict)
    required = [column.name for column in COLUMNS.values() if column.is_required]
    for kind in ("Verdict", "Unscored"):
        of = schema["$defs"][kind]
        of |= {"required": required, "additionalProperties": True}
        for name, about in of["properties"].items():
            if name not in required:
                of["properties"][name] = {"anyOf": [about, {"type": "null"}]}
            of["properties"][name]["description"] = texts[name]
    return schema


def _labels() -> Schema:
    return {
        **_read(HumanLabel),
        "additionalProperties": True,
    }


def _pairs() -> Schema:
    """A pair of texts with a label, which has ``same`` in place of ``is_correct``."""
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
    schema = _read(Trajectory)
    schema["properties"] = {"format": {"const": FORMAT}, **schema["properties"]}
    schema["required"] = ["format", *schema["required"]]
    return schema


def _properties(of: Any, *but: str) -> dict[str, Schema]:
    """The properties of a dataclass's schema, except some."""
    schema = TypeAdapter(of).json_schema(mode="serialization", schema_generator=_Described)
    return {name: about for name, about in schema["properties"].items() if name not in but}


def _closed(properties: Mapping[str, Schema]) -> Schema:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [*properties],
        "additionalProperties": False,
    }


def _summary() -> Schema:
    """A summary, with metrics as flat records."""
    kind = _properties(MetricKind)
    metric = {"metric": kind["name"], **_properties(Estimate)}
    metric |= {name: kind[name] for name in ("unit", "better")}
    schema = _written(
        "judge.summary:Summary",
        confidence_level={"type": "number", "description": "Of all intervals, 0 to 1."},
        missing_predictions={
            "type": ["object", "null"],
            "description": "Cases without a prediction; null where none are known.",
        },
    )
    group, totals = (schema["$defs"][name] for name in ("SummaryGroup", "Totals"))
    group["properties"]["metrics"]["additionalProperties"] = _closed(metric)
    totals["properties"]["scored"] = {**_COUNT, "description": "Rows with a verdict."}
    totals["required"].append("scored")
    return schema


def _labelling() -> Schema:
    """A label as the labelling page writes it; empty fields may be absent."""
    more = {
        "step": {"description": "Number of clicks on the item; absent in a label made elsewhere."},
        "saw_judge": {"description": "True once the rater was shown the judge's verdict."},
        "skipped": {"description": "True where the rater skipped the item without a label."},
    }
    schema = _written("records.labels:HumanLabel", step={**_COUNT, **more.pop("step")})
    schema["properties"] |= {name: {"const": True, **about} for name, about in more.items()}
    return {**schema, "required": ["item_id", "rater"]}


def _variants() -> Schema:
    """A variant of an audit: the known facts about its row, without the row."""
    run: Schema = {"type": "string", "description": "Run of the audit, a folder in runs/."}
    return _written("audits.variants:Variant", run=run, **_properties(Truth, "grade"))


def _check() -> Schema:
    """A report on cases, with findings by check."""
    certainty: Schema = {"enum": ["proven", "suspected"], "description": "How sure findings are."}
    of = _nested("agents.cases.check:FindingCounts", "object", certainty=certainty)
    of["description"] = "Findings by check; checks without any are left out."
    return _written("agents.cases.check:CaseReport", findings=of)


def _validation() -> Schema:
    """Verdicts against executions, with the judges' runs in a list."""
    environments = "agents.environments.execution"
    name: Schema = {"type": "string", "description": "The judge's name."}
    judged = _nested(f"{environments}.judged_plans:JudgedPart", "array", judge=name)
    judged["description"] = "The runs of judges, and what of each was executed."
    schema = _written(f"{environments}.validate:ValidationReport", judged=judged)
    kind: Schema = schema["$defs"]["MetricKind"]
    del kind["properties"]["title"]
    kind["required"].remove("title")
    return schema


def _executed() -> Schema:
    """An episode that ended, which is a label of its plan; readers ignore further fields."""
    schema = _read(_type("agents.environments.execution.executions:EndedEpisode"))
    rater: Schema = {"type": "string", "description": "``execution`` where apbjudge wrote it."}
    return {**schema, "properties": {"rater": rater, **schema["properties"]}}


def _rejects() -> Schema:
    """Rejects: parts of a source that did not become cases."""
    place: Schema = {"type": "string", "description": "Where it was read, as FILE:LINE."}
    schema = _written("agents.cases.cases:Reject", source=place)
    schema["properties"] |= {
        "seed": {"type": "string", "description": "The seed's id; absent where there is none."},
        "split": {"type": "string", "description": "The split of the case that failed."},
    }
    return schema


def _build_manifest() -> Schema:
    funnel = _written("agents.cases.build:Funnel")
    funnel["description"] = "Counts of everything in the source, from entries to cases."
    return _written("integrations.written:BuildManifest", funnel=funnel)


def _block_plan() -> Schema:
    form: Schema = {"const": "apbjudge-block-plan@1", "description": "Version of the file."}
    return _written("agents.environments.planbench.blocking:BlockPlan", format=form)


def _generated() -> Schema:
    """Counts of a generated benchmark; its file also states the generator."""
    counts: Schema = {"type": "object", "additionalProperties": _COUNT}
    counts["description"] = "Executable tools by number of inputs."
    tasks = _nested("integrations.written:TaskCount", "array")
    tasks["description"] = "Tasks by number of inputs and tools of the shortest path."
    path = "agents.environments.planbench.generation.generate:GeneratedBenchmark"
    schema = _written(path, tools_by_inputs=counts, tasks_by_length=tasks)
    schema["properties"] |= _written("integrations.written:Generator")["properties"]
    return schema


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
    """A file that has a schema.

    Attributes:
        title: Its title.
        make: Function that makes the schema of a line, or of the whole file; or the written type,
            as ``module:name``.
    """

    title: str
    make: Callable[[], Schema] | str


_JUDGING: Mapping[str, _File] = {
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
    "shards": _File("index.json of shards split", lambda: _read(PieceIndex)),
    "rubric": _File("a rubric, as JSON or TOML", lambda: _read(Rubric)),
    "calibrate": _File("calibrate --format json", "calibration.results:ReliabilityReport"),
    "compare": _File("compare --format json", "calibration.results:Comparison"),
    "plan-labels": _File("plan-labels --format json", "calibration.results:LabelPlan"),
    "report": _File("report --format json", "integrations.written:ReportJson"),
    "reproduce": _File("reproduce --format json", "integrations.written:ReproducedJson"),
    "label-plan": _File(
        "a line of plan-labels --out, and of .strata.jsonl", "calibration.results:PlanRow"
    ),
    "labelling": _File("a line of labels.jsonl of label", _labelling),
    "queue": _File("a line of queue.jsonl of a cascade", "integrations.written:QueuedItem"),
    "card": _File(
        "card.json of an audit",
        lambda: _written(
            "audits.card:Card", card={"const": CARD_VERSION, "description": "Version of the file."}
        ),
    ),
    "card-comparison": _File(
        "comparison.json of audit --compare", "audits.comparison:CardComparison"
    ),
    "variants": _File("a line of variants.jsonl of an audit", _variants),
    "planbench-queries": _File("queries.json of PlanBench-XL", lambda: _read(list[Query])),
    "planbench-tasks": _File("tasks.json of PlanBench-XL", lambda: _read(list[PlanbenchTask])),
    "planbench-tools": _File(
        "baseline_tools.json, noisy_tools.json, blocker_tools.json of PlanBench-XL",
        lambda: _read(list[PlanbenchTool]),
    ),
    "planbench-catalog": _File(
        "paths_set_catalog.json of PlanBench-XL", lambda: _read(dict[str, list[PathEntry]])
    ),
    "planbench-datatypes": _File("datatypes.json of PlanBench-XL", lambda: _read(list[Datatype])),
    "planbench-database": _File("database.json of PlanBench-XL", lambda: _read(Records)),
    "schedule": _File("a line of schedule.jsonl of an audit", "integrations.written:ScheduledTurn"),
}
_AGENTS: Mapping[str, _File] = {
    "check": _File("check --format json", _check),
    "findings": _File("a line of check --findings", "agents.cases.findings:CaseFinding"),
    "executed": _File("a line of executed.jsonl", _executed),
    "validate": _File("validate --format json", _validation),
    "entropy": _File(
        "entropy --format json", "agents.environments.branching.analysis:EntropyReport"
    ),
    "predictions": _File(
        "a line of predictions.jsonl of predict", "integrations.written:Prediction"
    ),
    "refined": _File("a line of predictions.jsonl of refine", "integrations.written:Refined"),
    "failures": _File("a line of failures.jsonl", "integrations.written:Failure"),
    "steps": _File("a line of steps.jsonl of execute", "integrations.written:PlayedStep"),
    "branched": _File("a line of branched.jsonl", "integrations.written:Branched"),
    "written": _File(
        "a line of written.jsonl of build and planbench", "integrations.written:WrittenText"
    ),
    "tasks": _File("a line of tasks.jsonl of build", "agents.cases.writing.tasks:WritingTask"),
    "rejects": _File("a line of rejects.jsonl of build", _rejects),
    "build-manifest": _File("build_manifest.json of build", _build_manifest),
    "planbench-paths": _File(
        "planbench paths --format json", "agents.environments.planbench.paths:PathReport"
    ),
    "planbench-block-plan": _File("planbench block-plan --format json, and --out", _block_plan),
    "planbench-check": _File(
        "planbench check --format json", "agents.environments.planbench.generation.checks:DataCheck"
    ),
    "planbench-generate": _File("planbench generate --format json, and generated.json", _generated),
    "domain": _File(
        "a domain of planbench generate, as JSON or TOML",
        lambda: _read(_type("agents.environments.planbench.generation.domain:Domain")),
    ),
}
_FILES = {**_JUDGING, **(_AGENTS if _HAS_AGENTS else {})}
SCHEMAS: Mapping[str, str] = {name: file.title for name, file in _FILES.items()}
"""The files that have a schema, with their titles."""


def schema(name: str) -> Schema:
    """The JSON Schema (draft 2020-12) of a file that is read or written.

    For a file of lines, it is the schema of one line.

    Args:
        name: One of ``SCHEMAS``, as ``apbjudge schema`` lists them.

    Raises:
        OptionError: If there is no such name.
    """
    if name not in _FILES:
        raise OptionError(f"NAME: expected one of {', '.join(_FILES)}, got {name!r}")
    title, make = _FILES[name]
    made = _written(make) if isinstance(make, str) else make()
    return {"$schema": DIALECT, **made, "title": f"apbjudge {name}: {title}"}
