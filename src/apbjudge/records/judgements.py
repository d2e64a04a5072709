"""Judgements: a verdict, or the reason why there is none."""

# of frozen records a field may narrow that of its base, which the checker does not see
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import orjson
from pydantic import Field, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from ..errors import RowError, UnscoredReason
from .base import Record, row_error

ErrorCode = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9_]{0,15}$")]
"""A code of a rubric: a capital letter, then at most 15 letters, digits or underscores."""
ERROR_CODES: tuple[ErrorCode, ...] = ("E1", "E2", "E3", "E4", "E5", "E6")
"""The codes of the Agent Planning Benchmark (arXiv:2606.04874, section 4)."""
Certainty = Literal["proven", "suspected"]
Groups = dict[str, str | int | None]


class Finding(Record):
    """A fact established by rule before any model is asked.

    Attributes:
        code: Error code, or None if the protocol has no error codes (unsolvable, tool-broken) and
            the fact bears on the verdict itself.
        certainty: ``proven`` decides; ``suspected`` is shown and never decides.
        where: Place in the prediction, such as ``tool_chain[2].parameter_description.date``.
        message: One sentence.
        rule: Machine name of the check, such as ``unknown-tool``.
    """

    code: ErrorCode | None
    certainty: Certainty
    where: str
    message: str
    rule: str


class Override(Record):
    """A field of the judge's verdict that a rule changed, and why.

    Attributes:
        field: The field, such as ``errors.E6``.
        was: Its value in the judge's reply.
        now: Its value in the judgement.
        because: The rule and its finding.
    """

    field: str
    was: Any
    now: Any
    because: str


class Usage(Record):
    """Calls and tokens of one judgement, failed and repeated calls included.

    Attributes:
        prompt_tokens: Tokens sent, as the endpoint counted them.
        completion_tokens: Tokens received.
        cached_tokens: Tokens of ``prompt_tokens`` that the endpoint had in its prefix cache.
        calls: Calls made.
        lost: Calls that ended without a usable answer (time-out, broken connection, an answer that
            is not a completion); the endpoint may have charged for them.
        reused: Replies taken from the reply cache, for which no call was made.
        unreported: Calls whose answer stated no usable token counts: their tokens are unknown and
            in none of the sums above.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    calls: int = 0
    lost: int = 0
    reused: int = 0
    unreported: int = 0

    def __add__(self, other: Usage) -> Usage:
        """The usage of both."""
        theirs = other.__dict__
        return Usage(**{name: count + theirs[name] for name, count in self.__dict__.items()})


class Uncertainty(Record):
    """Uncertainty of a judge about its verdict, from repeated replies or token probabilities.

    Attributes:
        method: ``samples`` (several replies), ``logprobs`` (probabilities of the verdict's
            tokens in one reply) or ``panel`` (several judges).
        n: Number of replies or judges; 1 for ``logprobs``.
        shares: Share of *true*, 0 to 1, for ``is_correct`` and each flag that the rubric has.
        grades: Share of each grade, keyed ``"0.8"``; empty if there is none or unknown.
        categories: Share of each category, keyed ``"1"`` to ``"5"``; likewise.
        entropy: Entropy in bits of ``is_correct``, each flag, ``grade``, ``category``; a key is
            missing if its shares are unknown.
    """

    method: Literal["samples", "logprobs", "panel"]
    n: int
    shares: dict[str, float]
    grades: dict[str, float] = {}
    categories: dict[str, float] = {}
    entropy: dict[str, float]


class Diagnosis(Record):
    """Measures of a whole trajectory, taken by rule; see ``trajectories.base.Evaluation``.

    Attributes:
        measures: Numbers by name.
        classes: One of a few values by name.
        word: A letter for each executed call: P progress, N none.
        first_error: Index of the step at which the trajectory first went wrong.
    """

    measures: dict[str, float] = {}
    classes: dict[str, str] = {}
    word: str = ""
    first_error: int | None = None


UNSEEN = ("more pictures", "picture", "video", "text file", "other file")
"""Kinds of a case's files that a judge may have missed; first, pictures beyond a sample."""


def unseen_of(images_shown: object, images_of: object, not_shown: object) -> list[str]:
    """The kinds of ``UNSEEN`` that these fields of a judgement state."""
    kinds = cast("Sequence[object]", not_shown or ())
    is_sampled = bool(images_shown) and images_shown != images_of
    return [name for name in UNSEEN if name in kinds or (is_sampled and name == UNSEEN[0])]


MISSING: UnscoredReason = "missing"
"""Reason if a case has no trajectory, or a tested model no prediction of it."""
NO_OUTCOME: UnscoredReason = "no_outcome"
"""Reason if a trajectory was measured, but nothing states if it succeeded."""


@dataclass(frozen=True, slots=True)
class Column:
    """A field of a judgement: its reading from a file and the places that show it.

    Its name, type and missing value are those of the field.

    Attributes:
        name: Name of the field.
        type: Type of its values in a row; JSON null is missing.
        is_required: True if a row without it is not a judgement. Rows of another program may lack
            the other columns.
        is_new: True if files of an earlier release lack it, so that a run may continue without it.
        is_fact: True if it is a number or a truth value of its own, which the table of judgements,
            the frame and the page show under its name.
        label: Words on the page for a fact of the prediction, the same for every judge; empty for a
            fact of the judging, which has its own place on the page.
    """

    name: str = ""
    type: Any = None
    is_required: bool = False
    is_new: bool = False
    is_fact: bool = False
    label: str = ""


def _fact(label: str = "", *, is_new: bool = False) -> Column:
    return Column(is_fact=True, label=label, is_new=is_new)


_KEY = Column(is_required=True)
Count = Annotated[int, Field(ge=0, lt=2**31)]


class _Judgement(Record):
    """The columns of ``judgements.jsonl``, in their order; both kinds have all of them.

    They are listed here only: a field that is added here is written, checked and read back; one
    with a ``_fact`` is in the table, the frame and the page as well.
    """

    item_id: Annotated[str | None, _KEY]
    case_id: str | None
    tested_model: Annotated[str | None, _KEY]
    protocol: str | None
    rubric: str | None
    judge: Annotated[str, _KEY]
    decided_by: str | None = None
    kind: Annotated[Literal["verdict", "unscored"], _KEY]
    is_correct: Annotated[bool | None, _KEY]
    grade: Annotated[float | None, Field(ge=0, le=1), _KEY] = None
    errors: Annotated[dict[ErrorCode, bool] | None, _KEY] = None
    category: Annotated[int | None, Field(ge=1, le=5), _KEY] = None
    plan_cost: Annotated[float | None, _fact("cost of the plan")] = None
    excess_cost: Annotated[float | None, _fact("above the cheapest way")] = None
    uses_distractor: Annotated[bool | None, _fact("uses a distractor")] = None
    matches_reference: Annotated[bool | None, _fact("same tools as the reference")] = None
    over_refusal: Annotated[bool | None, _fact("rejects a solvable case")] = None
    images_shown: int | None = None
    images_of: int | None = None
    not_shown: tuple[str, ...] = ()
    frame_times: Annotated[dict[str, tuple[float, ...]] | None, Column(is_new=True)] = None
    findings: tuple[Finding, ...] = ()
    overrides: tuple[Override, ...] = ()
    inconsistent: Annotated[bool, _fact()] = False
    uncertainty: Uncertainty | None = None
    reasoning: str = ""
    reply_fields: dict[str, Any] | None = None
    diagnosis: Diagnosis | None = None
    reason: UnscoredReason | None
    detail: str | None
    raw: str | None = None
    lenient_replies: Annotated[Count, _fact()] = 0
    usage: Usage | None = None
    cost_usd: Annotated[float | None, _fact()] = None
    latency_s: Annotated[float | None, _fact()] = None
    fingerprint: str
    line: int
    content_id: str | None = None
    response_id: str | None = None
    groups: Groups = {}


class Verdict(_Judgement):
    """A judge's verdict on one item, after the rules were applied.

    Attributes:
        item_id: The item; None if its row can't be read.
        case_id: Its case, the cluster of intervals.
        tested_model: The tested model of the response.
        protocol: The protocol.
        rubric: The rubric with its version.
        judge: The judge.
        decided_by: In a cascade, the judge whose verdict counts; None elsewhere.
        kind: ``verdict`` or ``unscored``.
        is_correct: True if the prediction passes.
        grade: One of the rubric's six levels, or None if the protocol has none.
        errors: Flag per code, or None if the protocol has none.
        category: 1–5 for tool-broken (None: not decided by rule), None elsewhere.
        plan_cost: Sum of the costs of the plan's calls; None when not computable.
        excess_cost: ``plan_cost`` minus the cost of the reference's cheapest way; below 0 if the
            plan is cheaper or leaves something out. None if either is unknown.
        uses_distractor: True if a listed distractor is called; None without distractors.
        matches_reference: True if the reference's tools are called in its order; None if unknown.
        over_refusal: True if a plan of a solvable case is the reject form; None for other cases and
            without a prediction.
        images_shown: Pictures of the case that the judge was shown; None if no model was asked.
        images_of: Pictures of the case; likewise.
        not_shown: Kinds of files of the case that the judge was not shown, see ``UNSEEN``.
        frame_times: Times in seconds of the frames shown of each video, by its path; None if no
            video was cut.
        findings: Facts by rule, proven or suspected.
        overrides: Changes by a proven finding or the consistency rule.
        inconsistent: True if the judge's last reply contradicted itself.
        uncertainty: Uncertainty of the judge; None if it was asked once and without probabilities.
        reasoning: The judge's reasons.
        reply_fields: Values of the fields that the rubric adds to the reply; None without any.
        diagnosis: Measures of a whole trajectory, by rule; None for plans and steps.
        reason: Reason why an unscored row has no verdict.
        detail: The same in a sentence.
        raw: The judge's raw reply (all replies, oldest first, if it was asked again).
        lenient_replies: Number of replies that were not in the requested form, but can only mean
            one thing.
        usage: Calls and tokens, repetitions included.
        cost_usd: Price of all calls; None when unknown, 0.0 only when truly free.
        latency_s: Seconds from the first request to the last reply.
        fingerprint: Hash of everything that could change the verdict.
        line: 1-based line of the row.
        content_id: Hash of what the tested model was asked, without distractors.
        response_id: Hash of the reply.
        groups: Values to break results down by, such as the source.
    """

    kind: Literal["verdict"] = "verdict"
    is_correct: bool
    reason: None = None
    detail: None = None


class Unscored(_Judgement):
    """No verdict, and why. Never a grade, never dropped.

    Attributes:
        diagnosis: Measures of a whole trajectory, by rule; None without.
    """

    kind: Literal["unscored"] = "unscored"
    is_correct: None = None
    grade: None = None
    errors: None = None
    category: None = None
    reason: UnscoredReason
    detail: str


Judgement = Annotated[Verdict | Unscored, Field(discriminator="kind")]
_ADAPTER: TypeAdapter[Verdict | Unscored] = TypeAdapter(Judgement)


def _columns() -> Iterator[Column]:
    for name, field in _Judgement.model_fields.items():
        stated = [each for each in field.metadata if isinstance(each, Column)]
        limits = [each for each in field.metadata if not isinstance(each, Column)]
        type_ = Annotated[field.annotation, *limits] if limits else field.annotation
        yield replace(next(iter(stated), Column()), name=name, type=type_)


COLUMNS: Mapping[str, Column] = {column.name: column for column in _columns()}
"""Fields of a judgement, by name and in the order of the file."""
FACTS: tuple[Column, ...] = tuple(column for column in COLUMNS.values() if column.is_fact)


def _is_json(type_: Any) -> bool:
    """True if every value of a type is JSON as it is."""
    origin, parts = get_origin(type_), get_args(type_)
    if origin is Annotated:
        return _is_json(parts[0])
    if origin in (dict, Union, UnionType):
        return all(map(_is_json, parts))
    return origin is Literal or type_ in (str, int, float, bool, NoneType)


_NESTED = tuple(name for name, column in COLUMNS.items() if not _is_json(column.type))


def judgement_row(judgement: Verdict | Unscored) -> dict[str, Any]:
    """The judgement as a JSON row; both kinds have the same columns, null if of the other kind."""
    row = {**judgement.__dict__}
    for name in _NESTED:
        if (value := row[name]) is not None:
            row[name] = to_jsonable_python(value, fallback=str)
    return row


def read_judgement(row: Mapping[str, Any]) -> Verdict | Unscored:
    """Reads a row of ``judgements.jsonl`` back; columns of later versions are ignored.

    Raises:
        pydantic.ValidationError: If the row is not a judgement.
    """
    return _ADAPTER.validate_python(_stated(row))


def _stated(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row without those that take their default."""
    return {k: v for k, v in row.items() if k in COLUMNS and (v is not None or k in _OF_ITEMS)}


def check_written_row(values: Mapping[str, Any] | RowError) -> dict[str, Any]:
    """A row of ``judgements.jsonl``, if it is complete: as ``judgement_row`` makes it.

    Stricter than ``read_judgement``, which fills what a row of another program lacks with defaults:
    a run that continues must notice that a line was damaged.

    Args:
        values: The JSON object of the line, or its error.

    Returns:
        The row, with null in new columns that it does not have.

    Raises:
        RowError: If a column is missing or holds what ``judgement_row`` never writes.
    """
    if isinstance(values, RowError):
        raise values
    row = {**dict.fromkeys(COLUMNS), **values}
    for name, column in COLUMNS.items():
        if name not in values and not column.is_new:
            raise RowError(name, NO_JUDGEMENT, "no such field")
    try:
        judgement = _ADAPTER.validate_json(orjson.dumps(_stated(row)), strict=True)
    except ValidationError as error:
        raise row_error(error) from None
    is_bad_row = judgement.reason == "bad_input"
    if is_bad_row and row["protocol"] is not None:
        raise RowError("protocol", "null for a row that could not be used", row["protocol"])
    for name in () if is_bad_row else _OF_ITEMS:
        if row[name] is None:
            raise RowError(name, "text", None)
    if (usage := row["usage"]) is not None and usage.keys() != Usage.model_fields.keys():
        raise RowError("usage", f"counts of {', '.join(Usage.model_fields)}", usage)
    return row


NO_JUDGEMENT = "a judgement, as apbjudge grade writes it"
_OF_ITEMS = ("item_id", "case_id", "tested_model", "protocol", "rubric")
