"""An item: one case with one tested model's response, validated."""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal, get_args

import orjson

from .base import Record
from .construction import Construction
from .predictions import Call, Form, Prediction, Step
from .responses import call_name, read_chain, read_steps
from .tools import Tool, Toolset, pretty

UnsolvableType = Literal[
    "contradictory_constraints", "information_missing", "tool_removal", "visual_missing"
]
UNSOLVABLE_TYPES: tuple[UnsolvableType, ...] = get_args(UnsolvableType)


PUBLISHED_ENDS = frozenset({"Finish", "finish"})
"""Tools that end the task in the published data."""


class FileRef(Record):
    """A file of the case: ``type`` (image, video, text, …) and ``path`` relative to the data."""

    type: str
    path: str


class Reference(Record):
    """The expert's solution: one valid way, never the only one. Parsed on first use.

    Attributes:
        form: The form of ``value``: a chain of calls or a list of steps.
        value: The chain or the steps as the row has them.
    """

    form: Form
    plan: str = ""
    value: tuple[dict[str, Any], ...] = ()

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The chain (one step per call) or the next k steps."""
        if self.form == "plan":
            return read_chain(list(self.value))[0]
        return read_steps(list(self.value), strict=False)[0]

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call in order."""
        return tuple(call for step in self.steps for call in step.calls)

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the tools called."""
        if self.form == "plan":
            return frozenset(map(call_name, self.value))
        return frozenset(call.name for call in self.calls)

    @property
    def text(self) -> str:
        """Plan and steps as a judge is shown them; raises RowError when nested too deeply."""
        shown = pretty(self.value) if self.value else ""
        return "\n\n".join(part for part in (self.plan, shown) if part)


class Condition(Record):
    """Changes of a robustness case; empty for a base case.

    Attributes:
        horizon: k of a step-wise case (1 to 3), None for a holistic one.
        extraneous: Names of the injected distractor tools.
        broken_tool: Name of the tool that fails.
    """

    horizon: int | None = None
    extraneous: tuple[str, ...] = ()
    broken_tool: str | None = None
    replacement: Tool | None = None
    unsolvable_type: UnsolvableType | None = None

    @cached_property
    def distractors(self) -> frozenset[str]:
        """The names in ``extraneous`` as a set."""
        return frozenset(self.extraneous)


class Item(Record):
    """A case with one tested model's response.

    Attributes:
        item_id: Id of the row; unique together with ``tested_model``.
        case_id: Cluster of rows that share a case; equals ``item_id`` unless given.
        split: The published split, or None.
        form: The requested form: a whole plan or the next steps.
        tools: None if the row states no tools; then no name can be proven wrong.
        ends: Names of the tools whose call ends the task or hands it to a person, as the case
            states them; None if it does not. ``endings`` covers further cases.
        trajectory: Earlier messages, as given (step-wise).
        reference: None when the case has no expert solution.
        response: The raw reply.
        format_demanded: True if the tested model's prompt is known to have demanded the benchmark's
            output format.
        prediction: The parsed reply.
        groups: dataset, category, modality, stage, steps, horizon, level, unsolvable_type;
            contradiction_kind, if the case states it; finish_reason, if the row states why the
            reply ended; span_id, if it states the step's span in a trace; and stage_from,
            ``prefix`` if the stage is not stated and follows from the earlier messages.
        construction: Construction of the case; None if the row does not state it.
        line: 1-based line of the predictions file.
    """

    item_id: str
    case_id: str
    tested_model: str
    split: str | None
    form: Form
    query: str
    system_prompt: str
    files: tuple[FileRef, ...]
    tools: Toolset | None
    ends: frozenset[str] | None = None
    trajectory: tuple[dict[str, Any], ...]
    reference: Reference | None
    condition: Condition
    response: str
    format_demanded: bool = False
    prediction: Prediction
    groups: dict[str, str | int | None]
    construction: Construction | None = None
    line: int

    @property
    def endings(self) -> frozenset[str] | None:
        """Names of the tools that end the task; None if unknown.

        Rows of a published split that do not state them are taken to be the published data.
        """
        return PUBLISHED_ENDS if self.ends is None and self.split is not None else self.ends

    @property
    def readings(self) -> tuple[Item, ...]:
        """The item with each reading of its response; itself first."""
        others = self.prediction.others
        return (self, *(self.model_copy(update={"prediction": other}) for other in others))

    @property
    def is_asked(self) -> bool:
        """True if something was asked; the next step of a task may follow from a policy alone."""
        words = self.query.strip() or (self.form == "steps" and self.system_prompt.strip())
        return bool(words or self.trajectory)

    @property
    def has_task(self) -> bool:
        """True if there is anything to ask a tested model, even if only files or a policy."""
        words = self.query.strip() or self.system_prompt.strip()
        return bool(words or self.trajectory or self.files)

    @property
    def is_silent(self) -> bool:
        """True if the reply is empty or blank."""
        return not self.response.strip()

    @cached_property
    def content_id(self) -> str | None:
        """Hash of what the tested model was asked, distractors left out.

        Rows that differ only in distractors, number of steps, response or id share it: query and
        system prompt (apart from spaces), files, earlier messages and names of tools are equal.
        None without a query and earlier messages, and if the latter are not JSON.
        """
        query = " ".join(self.query.split())
        if not query and not self.trajectory:
            return None
        names = self.tools.names.difference(self.condition.extraneous) if self.tools else ()
        files = [(file.type, file.path) for file in self.files]
        content = [query, " ".join(self.system_prompt.split()), files, sorted(names)]
        try:
            text = orjson.dumps([*content, self.trajectory], option=orjson.OPT_SORT_KEYS)
        except TypeError:  # nested too deeply, or not read from JSON
            return None
        return blake2b(text, digest_size=8).hexdigest()
