"""Values that a shell completes: choices, and names of what there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from ..config import STATIC, kinds


def completer(name: str, field: FieldInfo) -> Callable[[str], list[str]] | None:
    """What lists the values of a setting; None where the shell completes files by itself.

    Of several values in one text, separated by commas, the last one is completed.
    """
    kind = kinds(field)[0]
    is_list = get_origin(kind) is tuple
    part = get_args(kind)[0] if is_list else kind
    choices: Iterable[str] = map(str, get_args(part)) if get_origin(part) is Literal else ()
    choices = ("true", "false") if kind is bool else tuple(choices)
    if not choices and name not in _VALUES:
        return None

    def values(incomplete: str) -> list[str]:
        before, comma, _ = incomplete.rpartition(",") if is_list else ("", "", "")
        return [f"{before}{comma}{value}" for value in choices or _VALUES[name]()]

    return values


def _protocols() -> Iterable[str]:
    from ..protocols import AUTO, CASE, PROTOCOLS
    from ..trajectories.table import RUN_PROTOCOLS

    return AUTO, *PROTOCOLS, CASE.name, *RUN_PROTOCOLS


def _rubrics() -> Iterable[str]:
    from ..rubrics import rubric_names

    return rubric_names()


def _metrics() -> Iterable[str]:
    from ..judge.metrics import MEANINGS
    from ..records.judgements import ERROR_CODES
    from ..statistics.measures import MEANINGS as OF_JUDGES

    return *MEANINGS, *ERROR_CODES, *OF_JUDGES


def _fields() -> Iterable[str]:
    from ..records.judgement_table import BY_FIELDS

    return BY_FIELDS


def _judges() -> Iterable[str]:
    from .settings import project_judges

    return STATIC, *project_judges()


_VALUES: Mapping[str, Callable[[], Iterable[str]]] = {
    "protocol": _protocols,
    "rubric": _rubrics,
    "primary": _metrics,
    "fail_under": _metrics,
    "by": _fields,
    **dict.fromkeys(("judge", "judges", "escalate", "ask"), _judges),
}
