"""Exports verdicts as scores of the traces that were judged, to the tools that store the traces.

The trace of a score is the judgement's ``case_id``: the trajectory's id in its log, for whole
trajectories and for steps. If a step's row names a span, the score belongs to that span. Each
score has a deterministic id, so that a server replaces a score that is sent again (OpenTelemetry
has no such ids).
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any
from uuid import NAMESPACE_URL, UUID, uuid5

import orjson
from pydantic import ValidationError

from ..config import STATIC
from ..document.display import Shown
from ..errors import InputError, JudgeError, OptionError, RowError, path_text, visible
from ..jsonl import read_lines, replacing
from ..judge.trajectory_metrics import CODE
from ..llm.posting import posted
from ..options import takes
from ..records.base import row_error
from ..records.judgements import MISSING, Unscored, Verdict, read_judgement
from ..records.loose_json import as_object
from ..records.run_folder import judgements_path, read_manifest
from ..runs.event_loops import block_on
from ..version import VERSION
from .config import ExportConfig, ScoreTarget

_HEX = re.compile(r"(?!0+$)(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{16})")
_TRACE, _SPAN = 32, 16
"""Lengths of OpenTelemetry's ids of traces and spans, in hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class _Score:
    """One fact of a judgement.

    Attributes:
        id: Deterministic: equal for the same fact of the same judgement.
        name: Protocol and fact, such as ``holistic.is_correct``.
        trace_id: In the form of the target tool.
        span_id: Likewise; empty if the whole trace is judged, or the span is unknown.
        value: The number, 1 or 0 for true and false; None for a category, or without a verdict.
        label: ``pass``, ``fail``, ``present``, ``absent``, a category; empty without.
        is_truth: True if the fact is a boolean.
        explanation: Reasoning of the judge, or why there is no verdict; only of ``is_correct``.
        failure: Reason why there is no verdict; empty with a verdict.
        is_by_rule: True if no model judged.
        about: Identifying fields of the judgement, such as ``item_id`` and ``judge``.
    """

    id: UUID
    name: str
    trace_id: str
    span_id: str
    value: float | None
    label: str
    is_truth: bool
    explanation: str
    failure: str
    is_by_rule: bool
    about: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Target:
    """A tool that accepts scores.

    Attributes:
        title: Its name.
        path: Path of its API, below the address of the server.
        size: Largest number of scores in a request.
        id: Converts an id to the tool's form; empty if it can't be an id of a trace or span. Gets
            the id, the format of the log, and the length of such ids in hexadecimal digits.
        body: Makes a request of scores. Gets the scores, the settings, and the time of the run.
        authorised: Makes the headers for a key.
        span_path: Path for scores of spans; empty if it is ``path``.
        needs_value: True if the tool can't represent a judgement without a verdict.
    """

    title: str
    path: str
    size: int
    id: Callable[[str, str, int], str]
    body: Callable[[Sequence[_Score], ExportConfig, datetime], Mapping[str, Any]]
    authorised: Callable[[str], Mapping[str, str]]
    span_path: str = ""
    needs_value: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class ScoreExport(Shown):
    """Counts of the scores exported from a run.

    Attributes:
        to: The tool.
        out: The file that was written; None for none.
        url: The address that the scores were sent to; None for none.
        judgements: Number of judgements of the run.
        scores: Number of scores.
        requests: Number of requests, which are the lines of the file.
        of_spans: Number of scores of spans.
        no_trace: Judgements left out: the case id is no trace id, or there was no prediction.
        no_value: Judgements left out: they have no verdict, and the tool needs one.
        problems: A line for each row that is not a judgement.
    """

    to: ScoreTarget
    out: Path | None
    url: str | None
    judgements: int
    scores: int
    requests: int
    of_spans: int
    no_trace: int
    no_value: int
    problems: tuple[str, ...] = ()

    def _printed(self) -> str:
        title = _TARGETS[self.to].title
        n = self.judgements
        lines = [f"{self.scores} scores of {n} judgements for {title}, {self.requests} requests"]
        if self.of_spans:
            lines.append(f"of spans: {self.of_spans} scores, the others of traces")
        if self.no_trace:
            lines.append(f"left out: {self.no_trace} of {n}, whose case is no trace of {title}")
        if self.no_value:
            lines.append(f"left out: {self.no_value} of {n} without a verdict: {title} needs one")
        lines += [f"written: {path_text(self.out)}"] if self.out else []
        lines += [f"sent: {visible(self.url)}"] if self.url else []
        return "".join(f"{line}\n" for line in lines)


@takes(config=ExportConfig)
def export(config: ExportConfig) -> ScoreExport:
    """Writes the verdicts of a run as scores of its traces, and sends them if an address is given.

    Args:
        config: The run, the tool, the file, and the address.

    Returns:
        Counts of the scores that were written and left out.

    Raises:
        InputError: If the run can't be read or has no judgement of a trace, or the server did not
            accept all scores.
        OptionError: If there is neither a file nor an address, the file exists, or there is no key.
    """
    target = _TARGETS[config.to]
    if config.out is None and config.url is None:
        raise OptionError("--out: expected a file, or an address as --url, got neither")
    if config.out is not None and config.out.exists() and not config.overwrite:
        raise OptionError(f"--out: {path_text(config.out)} exists; choose another name")
    if config.project is not None and config.to != "langsmith":
        raise OptionError(f"--project: expected --to langsmith with it, got --to {config.to}")
    headers = _headers(target, config)
    file = judgements_path(config.run)
    if config.out is not None and config.out.resolve() == file.resolve():
        raise OptionError("--out: expected another file than the judgements")
    reading = _Reading(file, target)
    when = _time_of(file)
    with replacing(config.out) if config.out else tempfile.TemporaryFile() as requests:
        n_requests = 0
        for _, rest in groupby(reading, key=lambda of: bool(of.span_id)):
            while scores := [*islice(rest, target.size)]:
                n_requests += 1
                requests.write(orjson.dumps(target.body(scores, config, when)) + b"\n")
        done = ScoreExport(
            to=config.to,
            out=config.out,
            url=config.url,
            judgements=reading.counts["judgements"],
            scores=reading.counts["scores"],
            requests=n_requests,
            of_spans=reading.counts["of spans"],
            no_trace=reading.counts["no trace"],
            no_value=reading.counts["no value"],
            problems=tuple(reading.problems),
        )
        if not done.scores:
            raise InputError(
                f"{path_text(file)}: expected judgements of traces of {target.title}, got "
                f"{done.no_trace} of {done.judgements} judgements whose case is none"
            )
        if config.out is None:
            _send(requests, n_requests, target, config, headers)
    if config.out is not None and config.url is not None:
        with config.out.open("rb") as written:
            _send(written, n_requests, target, config, headers)
    return done


class _Reading:
    """Iterates over the scores of a file of judgements; counts what it read and left out."""

    def __init__(self, file: Path, target: _Target) -> None:
        self._file, self._target = file, target
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def __iter__(self) -> Iterator[_Score]:
        for line in read_lines(self._file):
            try:
                row = line.values
                if isinstance(row, RowError):
                    raise row
                judgement = read_judgement(row)
            except (RowError, ValidationError) as error:
                problem = row_error(error) if isinstance(error, ValidationError) else error
                self.problems.append(f"{path_text(self._file)}:{line.number}: {problem}")
                continue
            self.counts["judgements"] += 1
            log = str(judgement.groups.get("dataset") or "")
            trace_id = self._target.id(judgement.case_id or "", log, _TRACE)
            span_id = self._target.id(str(judgement.groups.get("span_id") or ""), log, _SPAN)
            if not trace_id or judgement.reason == MISSING:
                self.counts["no trace"] += 1
            elif judgement.reason is not None and self._target.needs_value:
                self.counts["no value"] += 1
            else:
                for score in _scores(judgement, trace_id, span_id):
                    self.counts["scores"] += 1
                    self.counts["of spans"] += bool(span_id)
                    yield score


def _scores(judgement: Verdict | Unscored, trace_id: str, span_id: str) -> Iterator[_Score]:
    """The scores of a judgement: verdict, grade, error codes, category."""
    about = {
        name: value
        for name in "item_id tested_model protocol rubric judge decided_by fingerprint".split()
        if (value := getattr(judgement, name))
    }

    def score(fact: str, value: float | None, label: str = "", *, is_truth: bool = False) -> _Score:
        name = f"{judgement.protocol}.{fact}"
        is_first = fact == "is_correct"
        return _Score(
            id=uuid5(NAMESPACE_URL, "\n".join(("apbjudge", trace_id, name, *about.values()))),
            name=name,
            trace_id=trace_id,
            span_id=span_id,
            value=value,
            label=label,
            is_truth=is_truth,
            explanation=(judgement.detail or judgement.reasoning) if is_first else "",
            failure=judgement.reason or "",
            is_by_rule=judgement.judge in (STATIC, CODE),
            about=about,
        )

    if isinstance(judgement, Unscored):
        yield score("is_correct", None)
        return
    is_correct = judgement.is_correct
    yield score("is_correct", int(is_correct), "pass" if is_correct else "fail", is_truth=True)
    if judgement.grade is not None:
        yield score("grade", judgement.grade)
    for code, flag in (judgement.errors or {}).items():
        if judgement.judge == STATIC and not flag:  # rules prove faults, never that there is none
            continue
        yield score(code, int(flag), "present" if flag else "absent", is_truth=True)
    if judgement.category is not None:
        yield score("category", None, str(judgement.category))


def _time_of(file: Path) -> datetime:
    """The end of the run; if it is not recorded, the last change of the file."""
    try:
        return datetime.fromisoformat(str(read_manifest(file.parent).get("finished")))
    except ValueError:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)


# Sending ------------------------------------------------------------------------------------------


def _headers(target: _Target, config: ExportConfig) -> Mapping[str, str]:
    if config.key_env is None:
        return {}
    if not (key := os.environ.get(config.key_env, "")):
        raise OptionError(f"--key-env: expected a variable that holds a key, got {config.key_env}")
    return target.authorised(key)


def _send(
    requests: IO[bytes], n: int, target: _Target, config: ExportConfig, headers: Mapping[str, str]
) -> None:
    """Sends the lines of a file.

    Raises:
        InputError: If the server did not accept everything.
    """
    requests.seek(0)
    address = (config.url or "").rstrip("/")
    url, accepted = address, 0

    def is_of_spans(line: bytes) -> bool:  # in texts, quotes are escaped
        return bool(target.span_path) and b'"span_id":' in line

    async def send() -> None:
        nonlocal url, accepted
        for of_spans, lines in groupby(requests, key=is_of_spans):
            url = f"{address}{target.span_path if of_spans else target.path}"
            async for answer in posted((line.rstrip(b"\n") for line in lines), url, headers):
                partial = as_object((as_object(answer) or {}).get("partialSuccess")) or {}
                if (rejected := str(partial.get("rejectedLogRecords") or 0)) != "0":
                    why = partial.get("errorMessage") or "it does not say why"
                    raise JudgeError(f"the server rejected {rejected} events: {why}")
                accepted += 1

    try:
        block_on(send())
    except JudgeError as error:
        raise InputError(
            f"--url: {visible(url)}: {accepted} of {n} requests were taken, then: {error}"
        ) from None


def _bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _basic(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(key.encode()).decode()}"}


def _api_key(key: str) -> Mapping[str, str]:
    return {"x-api-key": key}


# Ids ----------------------------------------------------------------------------------------------


def _hex_id(stated: str, _: str, digits: int) -> str:
    """An id of OpenTelemetry: hexadecimal digits, not all of them 0; empty for other texts."""
    return stated.lower() if len(stated) == digits and _HEX.fullmatch(stated) else ""


def _uuid(stated: str, _: str, __: int) -> str:
    try:
        return str(UUID(stated))
    except ValueError:
        return ""


def _langfuse_id(stated: str, log: str, digits: int) -> str:
    """An id of Langfuse: any id in its own logs, as users choose them; else OpenTelemetry's."""
    return stated if log == "langfuse" or _hex_id(stated, log, digits) else ""


# Requests -----------------------------------------------------------------------------------------


def _attributes(values: Mapping[str, str | float | None]) -> list[dict[str, Any]]:
    """Values as attributes of OTLP; those that are None or empty are left out."""
    return [
        {"key": key, "value": {"stringValue" if isinstance(value, str) else "doubleValue": value}}
        for key, value in values.items()
        if value is not None and value != ""
    ]


def _otlp(scores: Iterable[_Score], _: ExportConfig, when: datetime) -> Mapping[str, Any]:
    """Log records that are events ``gen_ai.evaluation.result``."""
    time = str(int(when.timestamp() * 1e6) * 1000)
    records = [
        {
            "timeUnixNano": time,
            "observedTimeUnixNano": time,
            "eventName": "gen_ai.evaluation.result",
            "traceId": of.trace_id,
            **({"spanId": of.span_id} if of.span_id else {}),
            "attributes": _attributes(
                {
                    "gen_ai.evaluation.name": of.name,
                    "gen_ai.evaluation.score.value": of.value,
                    "gen_ai.evaluation.score.label": of.label,
                    "gen_ai.evaluation.explanation": of.explanation,
                    "error.type": of.failure,
                    **{f"apbjudge.{name}": value for name, value in of.about.items()},
                }
            ),
        }
        for of in scores
    ]
    scope = {"scope": {"name": "apbjudge", "version": VERSION}, "logRecords": records}
    resource = {"attributes": _attributes({"service.name": "apbjudge"})}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]}


def _langfuse(scores: Sequence[_Score], _: ExportConfig, __: datetime) -> Mapping[str, Any]:
    (of,) = scores
    is_number = of.value is not None
    return {
        "id": str(of.id),
        "traceId": of.trace_id,
        **({"observationId": of.span_id} if of.span_id else {}),
        "name": of.name,
        "value": of.value if is_number else of.label,
        "dataType": "BOOLEAN" if of.is_truth else "NUMERIC" if is_number else "CATEGORICAL",
        **({"comment": of.explanation} if of.explanation else {}),
        "metadata": dict(of.about),
    }


def _phoenix(scores: Iterable[_Score], _: ExportConfig, __: datetime) -> Mapping[str, Any]:
    return {
        "data": [
            {
                **({"span_id": of.span_id} if of.span_id else {"trace_id": of.trace_id}),
                "name": of.name,
                "annotator_kind": "CODE" if of.is_by_rule else "LLM",
                "result": {
                    "score": of.value,
                    "label": of.label or None,
                    "explanation": of.explanation or None,
                },
                "metadata": {**of.about, **({"unscored": of.failure} if of.failure else {})},
                "identifier": str(of.id),
            }
            for of in scores
        ]
    }


def _langsmith(scores: Sequence[_Score], config: ExportConfig, when: datetime) -> Mapping[str, Any]:
    """Feedback on a run: of the span, or else the root run, whose id is that of the trace."""
    (of,) = scores
    return {
        "id": str(of.id),
        "created_at": when.isoformat(),
        "run_id": of.span_id or of.trace_id,
        "trace_id": of.trace_id,
        "key": of.name,
        "score": of.value,
        "value": of.label or None,
        "comment": of.explanation or None,
        "feedback_source": {"type": "api" if of.is_by_rule else "model", "metadata": {**of.about}},
        **({"session_id": config.project} if config.project else {}),
        **({"error": True} if of.failure else {}),
    }


_TARGETS: Mapping[ScoreTarget, _Target] = {
    "otlp": _Target("OpenTelemetry", "/v1/logs", 500, _hex_id, _otlp, _bearer),
    "langfuse": _Target(
        "Langfuse", "/api/public/scores", 1, _langfuse_id, _langfuse, _basic, needs_value=True
    ),
    "phoenix": _Target(
        "Phoenix",
        "/v1/trace_annotations",
        500,
        _hex_id,
        _phoenix,
        _bearer,
        span_path="/v1/span_annotations",
    ),
    "langsmith": _Target("LangSmith", "/feedback", 1, _uuid, _langsmith, _api_key),
}
