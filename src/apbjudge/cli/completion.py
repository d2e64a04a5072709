"""Values for shell completion: choices of a setting, names of protocols, rubrics and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from ..config import STATIC, kinds

_NAMED = "protocol rubric primary fail_under by judge judges escalate ask".split()


def completer(name: str, field: FieldInfo) -> Callable[[str], list[str]] | None:
    """The function that lists the values of a setting; None if the shell completes files itself.

    In a comma-separated list, it completes the last value.
    """
    kind = kinds(field)[0]
    is_list = get_origin(kind) is tuple
    part = get_args(kind)[0] if is_list else kind
    choices = tuple(map(str, get_args(part))) if get_origin(part) is Literal else ()
    choices = ("true", "false") if kind is bool else choices
    if not choices and name not in _NAMED:
        return None

    def values(incomplete: str) -> list[str]:
        before, comma, _ = incomplete.rpartition(",") if is_list else ("", "", "")
        return [f"{before}{comma}{value}" for value in choices or _names(name)]

    return values


def _names(setting: str) -> Iterable[str]:
    """The names that a setting can have; imports are local, so that only a TAB needs them."""
    match setting:
        case "protocol":
            from ..protocols import AUTO, CASE, PROTOCOLS
            from ..trajectories.table import TRAJECTORY_PROTOCOLS

            return AUTO, *PROTOCOLS, CASE.name, *TRAJECTORY_PROTOCOLS
        case "rubric":
            from ..rubrics import rubric_names

            return rubric_names()
        case "primary" | "fail_under":
            from ..judge.metrics import stated_kinds
            from ..records.judgements import ERROR_CODES
            from ..statistics import kinds
            from ..statistics.metric import kinds_among

            judge_metrics = kinds_among(vars(kinds).values())
            return tuple(dict.fromkeys((*stated_kinds(), *ERROR_CODES, *judge_metrics)))
        case "by":
            from ..records.judgement_table import BY_FIELDS, BY_OF_TRAJECTORIES

            return (*BY_FIELDS, *BY_OF_TRAJECTORIES)
        case _:
            from .settings import project_judges

            return STATIC, *project_judges()
