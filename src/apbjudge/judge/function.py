"""A judge of the user's own: any function from an item to a verdict."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from ..errors import JudgeError, ReplyError, shorten
from ..records import ErrorCode, Item, Override, Unscored, Verdict
from ..rubrics import Rubric
from ..rubrics.reply import type_of
from ..runs.loop import Job
from .consistency import ParsedVerdict, enforce, resolve
from .source import JudgeTask
from .worker import Judge, Judgement, NamedJudge, record_fields

Answer = Verdict | Mapping[str, Any]
JudgeFunction = Callable[[Item], Answer | Awaitable[Answer]]
"""Judges an item; plain functions run in threads, several at once.

A mapping has ``is_correct`` (true or false) or ``category`` (1 to 5), and may have ``grade`` (on
the rubric's scale), ``errors`` (true or false by code; codes left out are not set), ``reasoning``
and ``reply_fields`` (by name, those that the rubric adds). Of a ``Verdict`` these fields count.
What the function raises leaves the item unscored.
"""

FIELDS = ("is_correct", "grade", "errors", "category", "reasoning", "reply_fields")


@dataclass(frozen=True, slots=True)
class FunctionJudge(Judge):
    """Judges with a function; proven findings and the rule of consistency hold as for a model.

    Attributes:
        function: The judge.
        name: Its name in the results.
        version: Part of the fingerprint. The text of the function is another part where Python
            has it, but not what the function calls: raise the version when that changes.
        evidence: True if proven findings are enforced.
    """

    function: JudgeFunction
    name: str  # pyright: ignore[reportIncompatibleVariableOverride]
    version: str = ""
    evidence: bool = True
    waits = True

    @classmethod
    def of(cls, function: JudgeFunction) -> FunctionJudge:
        """The judge that a function is, with its attributes of the same names."""
        name = getattr(function, "name", None) or getattr(function, "__name__", None)
        version = str(getattr(function, "version", ""))
        evidence = bool(getattr(function, "evidence", True))
        return cls(function, str(name or type(function).__name__), version, evidence)

    @property
    def identity(self) -> dict[str, str]:
        """The values that distinguish it from other functions."""
        of = self.function if inspect.isroutine(self.function) else type(self.function)
        return {"function": self.name, "version": self.version, "source": _source_digest(of)}

    @property
    def named(self) -> NamedJudge:
        """The name and identity of a run of it."""
        identity = {"judge": self.identity, "judge_version": None, "templates": None}
        return NamedJudge(self.name, identity, {"model": self.name, **self.identity})

    def job_of(self, row: JudgeTask) -> Job[Judgement]:
        """The job of judging a task."""
        parts = [row.protocol.name, row.rubric.digest, str(self.evidence)]
        head = " ".join([*self.identity.values(), *parts]).encode()
        fingerprint = sha256(head + row.digest).hexdigest()[:32]
        return Job(record_fields(row, fingerprint), lambda: self.judge(row, fingerprint))

    async def judge(self, task: JudgeTask, fingerprint: str) -> Judgement:
        """Judges one item; any exception of the function becomes an Unscored."""
        account: dict[str, Any] = {
            "judge": self.name,
            "fingerprint": fingerprint,
            **task.common(),
        }
        try:
            answer = await self._answer(task.item)
            values = _fields(answer)
            verdict, overrides = _read(values, task.rubric)
            reported = {
                "reasoning": str(values.get("reasoning") or ""),
                "reply_fields": _reply_fields(values.get("reply_fields"), task.rubric),
            }
        except JudgeError as error:
            return Unscored(reason=error.reason, detail=str(error), **account)
        except Exception as error:  # noqa: BLE001 - a function of the user's may raise anything
            detail = f"{type(error).__name__}: {error}"[:300]
            return Unscored(reason="error", detail=detail, **account)
        if self.evidence:
            verdict, more = enforce(verdict, task.item, task.protocol, task.rubric, task.findings)
            overrides = (*overrides, *more)
        return Verdict(**verdict.fields(), overrides=overrides, **reported, **account)

    async def _answer(self, item: Item) -> Answer:
        if inspect.iscoroutinefunction(self.function):
            return await self.function(item)
        answer = await asyncio.to_thread(self.function, item)
        return await answer if inspect.isawaitable(answer) else answer


@lru_cache(maxsize=64)
def _source_digest(of: object) -> str:
    """Digest of the text of a function or class; cached, since Python reads its whole file."""
    try:
        source = inspect.getsource(cast("Any", of))
    except (OSError, TypeError):
        source = ""
    return sha256(source.encode()).hexdigest()[:16]


def _read(values: Mapping[str, Any], rubric: Rubric) -> tuple[ParsedVerdict, tuple[Override, ...]]:
    """The verdict in an answer, made consistent; raises ReplyError if there is none."""
    is_correct, category = values.get("is_correct"), None
    if rubric.shape == "category":
        category = _category(values.get("category"))
        is_correct = rubric.category_is_correct(category) if is_correct is None else is_correct
    if not isinstance(is_correct, bool):
        raise ReplyError(f"field is_correct: expected true or false, got {shorten(is_correct)}")
    grade, errors = _grade(values.get("grade"), rubric), _errors(values.get("errors"), rubric)
    verdict = ParsedVerdict(is_correct, grade, errors, category)
    if grade is None or errors is not None:
        return resolve(verdict, rubric)
    if is_correct != (grade == 1.0):  # no flags that could decide
        raise ReplyError(f"grade {grade} does not go with is_correct={is_correct}")
    return verdict, ()


def _fields(answer: object) -> dict[str, Any]:
    if isinstance(answer, Verdict):
        return {name: getattr(answer, name) for name in FIELDS}
    if not isinstance(answer, Mapping):
        raise ReplyError(f"expected a Verdict or a mapping, got {shorten(answer)}")
    values = dict(cast("Mapping[str, Any]", answer))
    if unknown := [name for name in values if name not in FIELDS]:
        raise ReplyError(f"field {unknown[0]}: expected some of {', '.join(FIELDS)}")
    return values


def _category(stated: object) -> int:
    if type(stated) is not int or not 1 <= stated <= 5:
        raise ReplyError(f"field category: expected 1 to 5, got {shorten(stated)}")
    return stated


def _errors(stated: object, rubric: Rubric) -> dict[ErrorCode, bool] | None:
    if stated is None:
        return None
    flags = dict(cast("Mapping[str, object]", stated)) if isinstance(stated, Mapping) else {}
    if not isinstance(stated, Mapping) or any(type(flag) is not bool for flag in flags.values()):
        raise ReplyError(f"field errors: expected true or false by code, got {shorten(stated)}")
    if unknown := [code for code in flags if code not in rubric.codes]:
        known = ", ".join(rubric.codes) or "none"
        raise ReplyError(
            f"field errors: expected codes of {rubric.ref} ({known}), got {unknown[0]}"
        )
    return {code: bool(flags.get(code, False)) for code in rubric.codes}


def _reply_fields(stated: object, rubric: Rubric) -> dict[str, Any] | None:
    if stated is None:
        return None
    own = {field.name: field for field in rubric.reply_fields}
    if not isinstance(stated, Mapping):
        raise ReplyError(f"field reply_fields: expected values by name, got {shorten(stated)}")
    values = dict(cast("Mapping[str, object]", stated))
    for name, value in values.items():
        if name not in own:
            known = ", ".join(own) or "none"
            raise ReplyError(
                f"field reply_fields: expected fields of {rubric.ref} ({known}), got {name}"
            )
        try:
            TypeAdapter[Any](type_of(own[name])).validate_python(value)
        except ValidationError as error:
            why = error.errors()[0]["msg"]
            raise ReplyError(f"field reply_fields.{name}: {why}, got {shorten(value)}") from None
    return values or None


def _grade(stated: object, rubric: Rubric) -> float | None:
    if stated is None:
        return None
    is_number = isinstance(stated, int | float) and not isinstance(stated, bool)
    legal = rubric.scale.snap(float(cast("float", stated))) if is_number else None
    if legal is None:
        scale = ", ".join(map(str, rubric.scale.grades)) or "none"
        raise ReplyError(f"field grade: expected one of {scale}, got {shorten(stated)}")
    return legal
