"""What comes out: a verdict, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

import orjson
from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from ..errors import RowError, UnscoredReason
from .base import Record, row_error

ErrorCode = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9_]{0,15}$")]
"""A code of a rubric: a capital letter, then at most 15 letters, digits or underscores."""
ERROR_CODES: tuple[ErrorCode, ...] = ("E1", "E2", "E3", "E4", "E5", "E6")
"""The codes of the Agent Planning Benchmark (arXiv:2606.04874, section 4)."""
Certainty = Literal["proven", "suspected"]
Groups = dict[str, str | int | None]


class Finding(Record):
    """A fact established by code before any model is asked.

    Attributes:
        code: Error code, or None where the protocol has no error codes (unsolvable,
            tool-broken) and the fact bears on the verdict itself.
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
    """A field of the judge's verdict that a rule changed, and why."""

    field: str
    was: Any
    now: Any
    because: str


class Usage(Record):
    """What one judgement took, failed and repeated calls included.

    Attributes:
        prompt_tokens: Tokens sent, as the endpoint counted them.
        completion_tokens: Tokens received.
        cached_tokens: Those of ``prompt_tokens`` that the endpoint had in its prefix cache.
        calls: Calls made.
        lost: Calls of these that ended without a usable answer (time-out, broken connection, an
            answer that is no completion): whether the endpoint charged for them is not known.
        reused: Replies taken from the reply cache, for which no call was made.
        unreported: Calls of these whose answer stated no usable counts of tokens: their tokens are
            not known, and in none of the sums above.
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


class Doubt(Record):
    """How sure a judge was of its verdict, from repeated replies or token probabilities.

    Attributes:
        method: ``samples`` (several replies), ``logprobs`` (probabilities of the verdict's
            tokens in one reply) or ``panel`` (several judges).
        n: Replies, or judges; 1 for ``logprobs``.
        shares: Share of *true*, 0 to 1, for ``is_correct`` and each flag that the rubric has.
        grades: Share of each grade, keyed ``"0.8"``; empty where there is none or not known.
        categories: Share of each category, keyed ``"1"`` to ``"5"``; likewise.
        entropy: Entropy in bits of ``is_correct``, each flag, ``grade``, ``category``; a key is
            missing where the shares are not known.
    """

    method: Literal["samples", "logprobs", "panel"]
    n: int
    shares: dict[str, float]
    grades: dict[str, float] = {}
    categories: dict[str, float] = {}
    entropy: dict[str, float]


class Diagnosis(Record):
    """What code measured of a whole run; see ``trajectories.base.Evaluation``.

    Attributes:
        measures: Numbers by name.
        classes: One of a few values by name.
        word: A letter for each executed call: P progress, N none.
        first_error: Index of the step at which the run first went wrong.
    """

    measures: dict[str, float] = {}
    classes: dict[str, str] = {}
    word: str = ""
    first_error: int | None = None


UNSEEN = ("more pictures", "picture", "video", "text file", "other file")
"""What of a case's files a judge may not be shown: pictures left out of a longer list, or files."""


def unseen_of(images_shown: object, images_of: object, not_shown: object) -> list[str]:
    """Those of ``UNSEEN`` that a judgement's fields of these names state."""
    kinds = cast("Sequence[object]", not_shown or ())
    is_sampled = bool(images_shown) and images_shown != images_of
    return [name for name in UNSEEN if name in kinds or (is_sampled and name == UNSEEN[0])]


MISSING: UnscoredReason = "missing"
"""Reason of the record of a case that has no run, or that a tested model has no prediction of."""
NO_OUTCOME: UnscoredReason = "no_outcome"
"""Reason of the record of a run that was measured, of which nothing says whether it succeeded."""


class _Judgement(Record):
    item_id: str | None
    case_id: str | None
    tested_model: str | None
    protocol: str | None
    rubric: str | None
    judge: str
    decided_by: str | None = None
    plan_cost: float | None = None
    excess_cost: float | None = None
    uses_distractor: bool | None = None
    matches_reference: bool | None = None
    over_refusal: bool | None = None
    images_shown: int | None = None
    images_of: int | None = None
    not_shown: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    raw: str | None = None
    lenient_replies: int = 0
    usage: Usage | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    fingerprint: str
    line: int
    content_id: str | None = None
    response_id: str | None = None
    groups: Groups = {}
    diagnosis: Diagnosis | None = None


class Verdict(_Judgement):
    """A judge's verdict on one item, after the rules were applied.

    Attributes:
        is_correct: Whether the prediction passes.
        grade: One of the rubric's six levels, or None where the protocol has none.
        errors: Flag per code, or None where the protocol has none.
        decided_by: In a cascade, the judge whose verdict stands; None elsewhere.
        category: 1–5 for tool-broken (None: not decided by code), None elsewhere.
        plan_cost: Sum of the costs of the plan's calls; None when not computable.
        excess_cost: ``plan_cost`` less the cost of the cheapest way of the reference; below 0 where
            the plan found a cheaper one or leaves something out. None where either is not known.
        uses_distractor: Whether a listed distractor is called; None without distractors.
        matches_reference: Whether the reference's tools are called in its order; None where that
            is unknown, and in rows of versions without this column.
        over_refusal: Whether a plan of a solvable case is the reject form; None for other cases,
            without a prediction, and in rows of versions without this column.
        images_shown: Pictures of the case that the judge was shown; None where no model was asked.
        images_of: Pictures of the case; likewise.
        not_shown: Kinds of files of the case that the judge was not shown, see ``UNSEEN``.
        overrides: What a proven finding or the consistency rule changed.
        inconsistent: Whether the judge's last reply contradicted itself.
        doubt: How sure the judge was; None when it was asked once and for no probabilities.
        raw: The judge's raw reply (replies, oldest first, when it was asked again).
        lenient_replies: Replies that were not written as asked and can only mean one thing.
        cost_usd: Price of all calls; None when unknown, 0.0 only when truly free.
        latency_s: Seconds from the first request to the last reply.
        fingerprint: Hash of everything that could move the verdict.
        reply_fields: What the judge said in fields that the rubric adds; None without.
        diagnosis: What code measured of a whole run; None for plans and steps.
    """

    kind: Literal["verdict"] = "verdict"
    is_correct: bool
    grade: float | None = Field(default=None, ge=0, le=1)
    errors: dict[ErrorCode, bool] | None = None
    category: int | None = Field(default=None, ge=1, le=5)
    overrides: tuple[Override, ...] = ()
    inconsistent: bool = False
    doubt: Doubt | None = None
    reasoning: str = ""
    reply_fields: dict[str, Any] | None = None


class Unscored(_Judgement):
    """No verdict, and why. Never a grade, never dropped.

    Attributes:
        diagnosis: What code measured of a whole run all the same; None without.
    """

    kind: Literal["unscored"] = "unscored"
    reason: UnscoredReason
    detail: str


Judgement = Annotated[Verdict | Unscored, Field(discriminator="kind")]
_ADAPTER: TypeAdapter[Verdict | Unscored] = TypeAdapter(Judgement)

_COLUMNS = (
    "item_id case_id tested_model protocol rubric judge decided_by kind is_correct grade errors "
    "category plan_cost excess_cost uses_distractor matches_reference over_refusal "
    "images_shown images_of not_shown findings overrides inconsistent doubt reasoning reply_fields "
    "diagnosis reason detail raw lenient_replies usage cost_usd latency_s fingerprint line "
    "content_id response_id groups"
).split()


def judgement_row(judgement: Verdict | Unscored) -> dict[str, Any]:
    """The judgement as a JSON row; both kinds have the same columns, null where not theirs."""
    values = judgement.__dict__
    row = {name: values.get(name) for name in _COLUMNS}
    row["not_shown"] = list(judgement.not_shown)
    row["findings"] = [finding.__dict__ for finding in judgement.findings]
    if isinstance(judgement, Verdict):
        row["overrides"] = [override.__dict__ for override in judgement.overrides]
        row["doubt"] = judgement.doubt.__dict__ if judgement.doubt else None
    else:
        row["overrides"] = []
    row["diagnosis"] = judgement.diagnosis.__dict__ if judgement.diagnosis else None
    row["usage"] = judgement.usage.__dict__ if judgement.usage else None
    return row


def read_judgement(row: dict[str, Any]) -> Verdict | Unscored:
    """Reads a row of ``judgements.jsonl`` back; columns of later versions are ignored.

    Raises:
        pydantic.ValidationError: If the row is no judgement.
    """
    return _ADAPTER.validate_python(_fields(row))


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row's kind, those that take their default left out."""
    names = _NAMES if row.get("kind") != "unscored" else _NAMES_UNSCORED
    return {k: v for k, v in row.items() if k in names and (v is not None or k in _NULLABLE)}


_NULLABLE = {"item_id", "case_id", "tested_model", "protocol", "rubric"}
_NAMES = frozenset(_COLUMNS)
_NAMES_UNSCORED = _NAMES - {"overrides"}

_ADDED_LATER = frozenset(
    "decided_by matches_reference over_refusal doubt content_id response_id diagnosis "
    "lenient_replies images_shown images_of not_shown".split()
)
"""Columns that rows of earlier versions do not have."""


def check_written_row(values: Mapping[str, Any] | RowError) -> dict[str, Any]:
    """A row of ``judgements.jsonl``, if it is whole: as ``judgement_row`` makes it.

    Stricter than ``read_judgement``, which takes a default for what a row of another program
    lacks: a run that continues must notice that a line was damaged.

    Args:
        values: The JSON object of the line, or why it is none.

    Returns:
        The row, with null in columns that its version did not have.

    Raises:
        RowError: If a column is missing or holds what ``judgement_row`` never writes.
    """
    if isinstance(values, RowError):
        raise values
    row = {name: values.get(name) for name in _COLUMNS}
    for name in _COLUMNS:
        if name not in values and name not in _ADDED_LATER:
            raise RowError(name, "a judgement, as apbjudge grade writes it", "no such field")
    try:
        judgement = _ADAPTER.validate_json(orjson.dumps(_fields(row)), strict=True)
    except ValidationError as error:
        raise row_error(error) from None
    is_bad_row = isinstance(judgement, Unscored) and judgement.reason == "bad_input"
    if is_bad_row and row["protocol"] is not None:
        raise RowError("protocol", "null for a row that could not be used", row["protocol"])
    for name in () if is_bad_row else _OF_ITEMS:
        if row[name] is None:
            raise RowError(name, "text", None)
    if (usage := values.get("usage")) is not None and not usage.keys() >= _COUNTS:
        raise RowError("usage", f"counts of {', '.join(sorted(_COUNTS))}", usage)
    if not isinstance(judgement.groups.get("level") or 0, int):
        raise RowError("groups.level", "a whole number or null", judgement.groups["level"])
    return {**values, **row}


_COUNTS = {"prompt_tokens", "completion_tokens", "cached_tokens", "calls"}
_OF_ITEMS = ("item_id", "case_id", "tested_model", "protocol", "rubric")
