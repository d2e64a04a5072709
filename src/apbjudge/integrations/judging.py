"""Shared by the adapters: converts a tool's example to a row, and a judgement to a result.

A row that can't be judged has no score, which each adapter reports in its tool's own way.
promptfoo knows no missing score: there, such a row fails with score 0.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import orjson

from ..config import STATIC
from ..errors import OptionError, needs
from ..judge.grade import agrade, grade
from ..judge.session import Run
from ..judge.worker import Judgement
from ..records import Verdict
from ..records.loose_json import as_list
from ..records.messages import Messages, is_message, read_messages
from ..records.parameters import parsed
from ..runs.loop import Events

OF_RUNS = ("batch", "max_calls", "max_cost", "max_seconds", "max_tokens", "shard")
"""Options for a whole run, which can't apply where rows are judged one at a time."""
_logger = logging.getLogger(__name__)
_EVENTS = Events(progress=lambda progress: None, bad_row=_logger.info, note=_logger.info)
"""Tools show the results themselves; bad rows and notes go to the log."""


class Result(NamedTuple):
    """A judgement in the form that other tools use.

    Attributes:
        score: The grade, 0 to 1; without a grade, 1 for correct and 0 for incorrect. None if the
            row could not be judged.
        is_correct: The verdict; None if the row could not be judged.
        reason: The judge's reasoning and the changes by rule; or why there is no verdict.
        codes: True for each error code of the rubric that is present; empty without codes.
        metadata: Texts by name: judge, protocol, rubric, error codes, category, fingerprint; or
            ``unscored``, the reason why there is no verdict.
        judgement: The judgement, for tools that use more of it.
    """

    score: float | None
    is_correct: bool | None
    reason: str
    codes: Mapping[str, bool]
    metadata: Mapping[str, str]
    judgement: Judgement


def row_of(
    output: object, fields: Mapping[str, Any], *, query: object = None, number: int = 1
) -> dict[str, Any]:
    """Converts an example of another tool to a row.

    Args:
        output: The tested model's reply: its text, its messages, or an object, which counts as
            JSON.
        fields: Fields of a row by their names or aliases (``docs/input.md``); fields that are None
            are left out.
        query: The task, as text or messages (also as JSON), if ``fields`` have none.
        number: Number of the example, for its id if ``fields`` have none.
    """
    row = {"id": f"example-{number}", "tested_model": "tested-model"}
    if chat := _chat(query):
        texts = {"query": chat.query, "system_prompt": chat.system_prompt}
        row |= {name: text for name, text in texts.items() if text}
    elif isinstance(query, str):
        row["query"] = query
    row |= {name: value for name, value in fields.items() if value is not None}
    return {**orjson.loads(_json(row)), "model_response": _response(output)}


def results_of(rows: Sequence[Mapping[str, Any]], **options: Any) -> list[Result]:
    """The results of rows, in their order, from one call of ``grade``.

    Args:
        rows: Rows as from ``row_of``; rows with the same id are samples of one case.
        **options: Options of ``grade``.

    Raises:
        OptionError: If a setting, the rubric or the judge's access is unusable.
        InputError: If the rows as a whole are unusable.
    """
    return _in_order(grade(_samples(rows), **{"events": _EVENTS, **options})) if rows else []


async def aresults_of(rows: Sequence[Mapping[str, Any]], **options: Any) -> list[Result]:
    """``results_of`` without blocking the event loop."""
    return _in_order(await agrade(_samples(rows), **{"events": _EVENTS, **options}))


def check_options(options: Mapping[str, Any], of: str) -> None:
    """Refuses options of ``grade`` that need a whole run.

    Args:
        options: The options by name.
        of: Name of the tool, for messages.

    Raises:
        OptionError: If one of them is stated.
    """
    if stated := [name for name in OF_RUNS if name in options]:
        raise OptionError(
            f"{of}: {stated[0]}: expected no limit of a whole run, since rows are judged one at a "
            "time: set it at the provider, or grade a file with apbjudge grade"
        )


def judge_name(options: Mapping[str, Any]) -> str:
    """The name of the judge in options of ``grade``."""
    judge = options.get("judge", STATIC)
    return judge if isinstance(judge, str) else str(getattr(judge, "__name__", judge))


def host(package: str, module: str = "") -> Any:
    """A module of an adapter's tool.

    Raises:
        ModuleNotFoundError: If the tool is not installed; the message has the command for it.
    """
    if find_spec(package) is None:
        raise ModuleNotFoundError(needs(f"apbjudge.integrations.{package}", package), name=package)
    return import_module(module or package)


def result_of(judgement: Judgement) -> Result:
    """Converts a judgement to the form that other tools use."""
    of = judgement
    facts = {"judge": of.judge, "protocol": of.protocol, "rubric": of.rubric}
    if not isinstance(of, Verdict):
        metadata = _texts({**facts, "unscored": of.reason})
        return Result(None, None, f"not judged, {of.reason}: {of.detail}", {}, metadata, of)
    codes = of.errors or {}
    facts |= {
        "codes": " ".join(code for code, is_set in codes.items() if is_set),
        "category": None if of.category is None else str(of.category),
        "fingerprint": of.fingerprint,
    }
    reason = "; ".join([of.reasoning, *(override.because for override in of.overrides)])
    score = float(of.is_correct) if of.grade is None else of.grade
    return Result(score, of.is_correct, reason, codes, _texts(facts), of)


def _texts(facts: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in facts.items() if text is not None}


def _in_order(run: Run) -> list[Result]:
    return [result_of(each) for each in sorted(run.judgements, key=lambda of: of.line)]


def _samples(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows, each with a unique id: samples are numbered as ``predict`` numbers them."""
    counts: dict[object, int] = {}
    samples: list[dict[str, Any]] = []
    for row in rows:
        case = row["id"]
        counts[case] = n = counts.get(case, 0) + 1
        own = {"id": case if n == 1 else f"{case}#{n}"}
        samples.append({"case_id": case, **row, **own})
    return samples


def _json(value: object) -> bytes:
    """A value as JSON; other arrays become lists, and values without a JSON type become text."""
    option = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(
        value, default=lambda of: of.tolist() if hasattr(of, "tolist") else str(of), option=option
    )


def _response(output: object) -> str:
    """A reply as text; an object, and messages that hold more than one text, as JSON."""
    if isinstance(output, str):
        return output
    chat = _chat(output)
    if chat and len(chat.messages) == 1 and chat.final_answer is not None:
        return chat.final_answer
    return "" if output is None else _json(output).decode()


def _chat(value: object) -> Messages | None:
    """Reads chat messages, also as JSON; None if the value is not a list of messages."""
    listed = as_list(parsed(value))
    if not listed or not all(map(is_message, listed)):
        return None
    return read_messages(listed, is_lenient=True)
