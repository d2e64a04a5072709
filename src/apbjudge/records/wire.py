"""The only entry for data: a line's JSON object becomes an Item.

Reads the published prediction format, where fields named ``*_json`` hold JSON as a string, and the
same with plain nested JSON. Source of the format: Agent Planning Benchmark, arXiv:2606.04874, and
the files its authors publish.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import ValidationError

from ..errors import RowError
from .base import row_error
from .construction import Construction
from .items import UNSOLVABLE_TYPES, Condition, FileRef, Item, Reference
from .loose_json import as_list, as_object, truth_of
from .messages import read_messages
from .predictions import Form, Prediction
from .responses import message_calls, read_response
from .tools import (
    Toolset,
    build_toolset,
    pretty,
    read_json,
    read_names,
    read_tool,
    toolset_from_text,
)

SPLITS: Mapping[str, tuple[Form, str]] = {
    "holistic_planning": ("plan", "holistic"),
    "holistic_tool_extraneous": ("plan", "tool-extraneous"),
    "holistic_unsolvable": ("plan", "unsolvable"),
    "step_wise_planning": ("steps", "step-wise"),
    "step_wise_tool_extraneous": ("steps", "tool-extraneous"),
    "step_wise_tool_broken": ("steps", "tool-broken"),
}
"""Published split to the form of its predictions and the protocol that grades it."""

STRUCTURED = (
    "tools tool_names files trajectory_prefix tool_chain ground_truth_steps construction "
    "extraneous_tool_names replacement_tool reference_remaining_steps"
).split()
FIELDS = frozenset(
    "id item_id case_id tested_model model_response split planning_regime query system_prompt plan "
    "prediction_horizon broken_tool_name unsolvable_type format_demanded finish_reason source "
    "ends ends_json task_category modality stage stage_from task_family source_subset "
    "sources span_id".split()
) | {f"{name}{ending}" for name in STRUCTURED for ending in ("", "_json")}
"""The fields of a row that are read, and those of the published format that add nothing."""

REFERENCE = "reference"
"""Name in place of the tested model's when a case's own reference is examined."""

_HORIZONS: Mapping[str, int] = {"1": 1, "2": 2, "3": 3, "1.0": 1, "2.0": 2, "3.0": 3}
"""The k of a step-wise case in cells of tables."""
_REGIMES: Mapping[str, Form] = {"holistic": "plan", "step-wise": "steps", "stepwise": "steps"}
_STEP_RANGES = ((5, "1-5"), (10, "6-10"), (15, "11-15"), (20, "16-20"))


class Row:
    """A line as it came, read field by field; every complaint names the field.

    Args:
        values: The line's JSON object.
        line: 1-based line number.
        parsed: True if the values were read from JSON, and so have JSON types only.
    """

    def __init__(self, values: Mapping[str, Any], line: int, *, parsed: bool = False) -> None:
        self.values = values
        self.line = line
        self._parsed = parsed

    def to_item(self) -> Item:
        """Validates the row.

        Returns:
            The item, its response already read.

        Raises:
            RowError: If a field is missing, has the wrong type or a value out of range.
        """
        case = self._case(self.identifier("id", "item_id"))
        response = self.response()
        for name in ("finish_reason", "span_id"):
            if stated := self.text(name):
                case["groups"][name] = stated
        return Item(
            **case,
            tested_model=self.identifier("tested_model"),
            response=response,
            prediction=read_response(response, case["form"], case["condition"].horizon),
        )

    def to_case(self) -> Item:
        """Validates the row as a case without a response.

        Returns:
            The item as from ``to_item``, but with an empty tested model, response and prediction,
            whatever the row has there. The id may be in ``case_id`` alone.

        Raises:
            RowError: If a field of the case is missing, has the wrong type or a value out of range.
        """
        case = self._case(self.identifier("id", "item_id", "case_id"))
        return Item(**case, tested_model="", response="", prediction=Prediction(kind="text"))

    def to_reference(self) -> Item:
        """Validates the row as a case whose own reference is examined.

        Returns:
            The item as from ``to_case``, with ``REFERENCE`` as tested model and the reference as
            response, and no reference besides. Without a reference the response is empty.

        Raises:
            RowError: If a field of the case is missing, has the wrong type or a value out of range.
        """
        case = self._case(self.identifier("id", "item_id", "case_id"))
        reference: Reference | None = case.pop("reference")
        if reference is None:
            prediction = Prediction(kind="text")
        else:
            prediction = Prediction(kind=case["form"], plan=reference.plan, steps=reference.steps)
        response = "" if reference is None else reference.text
        return Item(
            **case,
            reference=None,
            tested_model=REFERENCE,
            response=response,
            prediction=prediction,
        )

    def _case(self, item_id: str) -> dict[str, Any]:
        """The fields of an item that do not depend on the response."""
        split = self.text("split") or None
        form = self.form(split)
        condition = self.condition(form)
        reference = self.reference(form)
        files = self.files()
        construction = self.construction()
        trajectory = self.trajectory()
        has_case_id = not _is_empty(self.values.get("case_id"))
        return {
            "item_id": item_id,
            "case_id": self.identifier("case_id") if has_case_id else item_id,
            "split": split,
            "form": form,
            "query": self.text("query"),
            "system_prompt": self.text("system_prompt"),
            "files": files,
            "tools": self.tools(),
            "ends": self.ends(),
            "trajectory": trajectory,
            "reference": reference,
            "condition": condition,
            "format_demanded": self.flag("format_demanded"),
            "groups": {
                **self.groups(condition, reference, files),
                **self.stage(condition, reference, trajectory),
                **_contradiction(construction),
            },
            "construction": construction,
            "line": self.line,
        }

    def structured(self, name: str) -> Any:
        """The value of ``name`` or, parsed, of ``name_json``; None if both are missing."""
        if self.values.get(name) is not None:
            return self.values[name]
        text = self.values.get(f"{name}_json")
        if text is None or text == "":
            return None
        if not isinstance(text, str):
            raise RowError(f"{name}_json", "a string that holds JSON", text)
        return read_json(text, f"{name}_json")

    def text(self, name: str) -> str:
        """A string field; missing and null give an empty string."""
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise RowError(name, "a string", value)
        return _storable(value, name)

    def flag(self, name: str) -> bool:
        """A Boolean field, perhaps from a cell of a table; missing, null and empty are false."""
        value = self.values.get(name)
        if value in (None, ""):
            return False
        if (truth := truth_of(value)) is None:
            raise RowError(name, "true or false", value)
        return truth

    def identifier(self, *names: str) -> str:
        """The first of ``names`` that is there: a non-empty string or an integer."""
        value = next((self.values[n] for n in names if self.values.get(n) is not None), None)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or not value.strip():
            raise RowError(names[0], "a non-empty string", value)
        return _storable(value, names[0])

    def form(self, split: str | None) -> Form:
        """The form asked for: by split, else by regime, else by the fields present."""
        if split is not None:
            if split not in SPLITS:
                raise RowError("split", f"one of {', '.join(SPLITS)}", split)
            return SPLITS[split][0]
        regime = self.text("planning_regime")
        if regime:
            if regime.lower() not in _REGIMES:
                raise RowError("planning_regime", "Holistic or Step-wise", regime)
            return _REGIMES[regime.lower()]
        if any(self.values.get(name) for name in ("prediction_horizon", "broken_tool_name")):
            return "steps"
        return "plan" if _is_empty(self.structured("ground_truth_steps")) else "steps"

    def response(self) -> str:
        """The raw reply; a reply given as JSON structure is written out as text."""
        value = self.values.get("model_response")
        if isinstance(value, str):
            return _storable(value, "model_response")
        if isinstance(value, dict | list):
            return pretty(cast("object", value))
        raise RowError("model_response", "the raw reply as a string", value)

    def tools(self) -> Toolset | None:
        """The toolset; None when the row has neither definitions nor names."""
        text, names_text = self.values.get("tools_json"), self.values.get("tool_names_json")
        plain = self.values.get("tools"), self.values.get("tool_names")
        if isinstance(text, str) and text.startswith(("[", "{")) and plain == (None, None):
            names = names_text if isinstance(names_text, str) else None
            return toolset_from_text(text, names, "tools_json")
        value, names = self.structured("tools"), self.structured("tool_names")
        if value is None and names is None:
            return None
        if self._parsed and isinstance(value, list | dict):
            named = None if names is None else pretty(cast("object", names))
            return toolset_from_text(pretty(cast("object", value)), named, "tools")
        return build_toolset(value if value is not None else [], names, "tools")

    def ends(self) -> frozenset[str] | None:
        """Names of the tools that end the task, perhaps none; None if the row does not say."""
        value = self.structured("ends")
        return None if value is None else frozenset(read_names(value, "ends"))

    def trajectory(self) -> tuple[dict[str, Any], ...]:
        """Earlier messages; an empty tuple when there are none."""
        value = self.structured("trajectory_prefix")
        if value is None:
            return ()
        return tuple(self.objects(value, "trajectory_prefix"))

    def objects(self, value: object, field: str) -> list[dict[str, Any]]:
        """A list of JSON objects, checked."""
        listed = as_list(value)
        if listed is None:
            raise RowError(field, "a list of objects", value)
        for i, entry in enumerate(listed):
            if not isinstance(entry, dict):
                raise RowError(f"{field}[{i}]", "an object", entry)
        return listed

    def files(self) -> tuple[FileRef, ...]:
        """The case's files, each ``{"type", "path"}`` (a bare string is a path)."""
        value: object = self.structured("files")
        if _is_empty(value):
            return ()
        if (listed := as_list(value)) is None:
            raise RowError("files", "a list of {type, path}", value)
        return tuple(_file(file, f"files[{i}]") for i, file in enumerate(listed))

    def condition(self, form: Form) -> Condition:
        """The changes of the case; raises RowError on a value out of its range."""
        horizon = self.values.get("prediction_horizon")
        if form == "plan":
            horizon = None
        elif horizon is None:
            horizon = 1
        elif isinstance(horizon, str):
            horizon = _HORIZONS.get(horizon, horizon)
        if horizon is not None and (isinstance(horizon, bool) or horizon not in (1, 2, 3)):
            raise RowError("prediction_horizon", "1, 2 or 3", horizon)
        unsolvable = self.text("unsolvable_type") or None
        if unsolvable is not None and unsolvable not in UNSOLVABLE_TYPES:
            raise RowError("unsolvable_type", f"one of {', '.join(UNSOLVABLE_TYPES)}", unsolvable)
        replacement = self.structured("replacement_tool")
        if isinstance(replacement, str) and replacement:
            replacement = {"name": replacement}
        return Condition(
            horizon=horizon,
            extraneous=read_names(
                self.structured("extraneous_tool_names"), "extraneous_tool_names"
            ),
            broken_tool=self.text("broken_tool_name") or None,
            replacement=None
            if _is_empty(replacement)
            else read_tool(replacement, "replacement_tool"),
            unsolvable_type=unsolvable,
        )

    def reference(self, form: Form) -> Reference | None:
        """The expert solution; None when the row has none."""
        plan = self.text("plan")
        name = "tool_chain" if form == "plan" else "ground_truth_steps"
        value = self.structured(name)
        if _is_empty(value):
            return Reference(form=form, plan=plan) if plan else None
        listed: Any = [value] if isinstance(value, dict) else value
        return Reference(form=form, plan=plan, value=tuple(self.objects(listed, name)))

    def construction(self) -> Construction | None:
        """The construction of the case; None if the row does not state it."""
        value = self.structured("construction")
        if _is_empty(value):
            return None
        try:
            return Construction.model_validate(value)
        except ValidationError as error:
            fault = row_error(error)
            raise RowError(f"construction.{fault.field}", fault.expected, fault.got) from None

    def groups(
        self, condition: Condition, reference: Reference | None, files: tuple[FileRef, ...]
    ) -> dict[str, str | int | None]:
        """The fields by which results are broken down; None if the row does not state one."""
        return {
            "dataset": self.text("source") or None,
            "category": self.text("task_category") or None,
            "modality": self.text("modality") or _modality(files),
            "stage": None,
            "steps": None if condition.horizon else _step_range(reference),
            "horizon": condition.horizon,
            "level": len(condition.extraneous),
            "unsolvable_type": condition.unsolvable_type,
        }

    def stage(
        self,
        condition: Condition,
        reference: Reference | None,
        trajectory: tuple[dict[str, Any], ...],
    ) -> dict[str, str]:
        """The stage of the trajectory, and ``stage_from`` if it follows from the prefix.

        The published rows state none. It is the quarter, half or three quarters that is nearest to
        the share of the calls that were answered before; of two equally near, the later. Nothing
        follows if a tool failed, if earlier messages answer no call, or if the steps after the
        reference are not stated.
        """
        if stated := self.text("stage"):
            origin = self.text("stage_from")
            return {"stage": stated, **({"stage_from": origin} if origin else {})}
        rest = as_list(self.structured("reference_remaining_steps"))
        if condition.horizon is None or condition.broken_tool or reference is None or rest is None:
            return {}
        made = read_messages([*trajectory], is_lenient=True).messages
        n_made = sum(len(message.results) for message in made)
        if trajectory and not n_made:
            return {}
        asked = [(call.name, call.arguments) for call in reference.calls]
        left = [(c.name, c.arguments) for of in rest for c in message_calls(as_object(of) or {})]
        if left[: len(asked)] != asked:  # the stated rest may begin with the reference or after it
            left = [*asked, *left]
        if not left:
            return {}
        share = n_made / (n_made + len(left))
        stage = "early" if share < 0.375 else "middle" if share < 0.625 else "late"
        return {"stage": stage, "stage_from": "prefix"}


def _contradiction(construction: Construction | None) -> dict[str, str]:
    """The kind of contradictory constraints, if the case states it."""
    kind = construction and construction.contradiction_kind
    return {"contradiction_kind": kind} if kind else {}


def _is_empty(value: object) -> bool:
    """True if a field is empty: null, empty text, an empty list or object; 0 is not empty."""
    return value is None or value in ("", [], {})


def _storable(value: str, field: str) -> str:
    """Refuses text that UTF-8 can't hold (lone surrogates written as JSON escapes)."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RowError(field, "valid Unicode text", "a lone surrogate") from None
    return value


def _file(value: object, field: str) -> FileRef:
    if isinstance(value, str):
        return FileRef(type="file", path=value)
    spec = as_object(value) or {}
    path = spec.get("path")
    if not isinstance(path, str):
        raise RowError(f"{field}.path", "a string", path)
    return FileRef(type=str(spec.get("type") or "file"), path=path)


def _modality(files: Iterable[FileRef]) -> str:
    types = {file.type.lower() for file in files}
    return next((kind for kind in ("video", "image") if kind in types), "text")


def _step_range(reference: Reference | None) -> str | None:
    if reference is None or not reference.value:
        return None
    n = len(reference.value)
    return next((name for limit, name in _STEP_RANGES if n <= limit), ">20")
