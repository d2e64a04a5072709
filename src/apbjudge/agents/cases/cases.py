"""Rows in the published format, made from a seed: one writer for all transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson

from ...records import SPLITS, Construction, Tool
from .likeness import definition_of
from .seeds import Seed, draw

if TYPE_CHECKING:
    from .pool import ToolPool

Row = dict[str, Any]
"""A case as JSON values."""
EFFICIENCY = "efficiency"
"""Efficiency cases; the published splits have no name for them."""
BUILT_SPLITS = (*SPLITS, EFFICIENCY)


@dataclass(frozen=True, slots=True)
class Reject:
    """The reason why a seed became no case.

    Attributes:
        transform: The transform that did not work.
        reason: A short clause, the same for all rejects of one kind, to be counted.
        detail: Details of this reject.
    """

    transform: str = field(default="source", kw_only=True)
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """The input of transforms besides the seed.

    Attributes:
        seed: Seed of all random choices.
        pool: Tools of other tasks.
        levels: Numbers of distractors.
        horizons: Numbers of requested steps.
    """

    seed: int
    pool: ToolPool
    levels: tuple[int, ...] = (2, 4, 6, 8, 10)
    horizons: tuple[int, ...] = (1, 2, 3)


Transform = Callable[[Seed, Context], Iterator[Row | Reject]]
"""Makes cases from a seed, or rejects it; pure: equal arguments give equal rows."""
RowMaker = Callable[..., Row]
"""``case_row`` for a seed, a context, a split and the transform that makes it."""
Make = Callable[[Seed, Context, RowMaker], Row | Reject | Iterator[Row | Reject]]


def transform(split: str) -> Callable[[Make], Transform]:
    """Makes a transform of a function that builds the rows of seeds with a solution.

    Args:
        split: One of ``BUILT_SPLITS``; the function's name is that of the transform.
    """

    def decorate(make: Make) -> Transform:
        name = make.__name__

        @wraps(make)
        def made(seed: Seed, context: Context) -> Iterator[Row | Reject]:
            def row(**fields: Any) -> Row:
                return case_row(seed, context, split=split, transform=name, **fields)

            results = make(seed, context, row) if seed.calls else Reject("no calls in the solution")
            for result in [results] if isinstance(results, dict | Reject) else results:
                yield replace(result, transform=name) if isinstance(result, Reject) else result

        return made

    return decorate


def case_id(seed: Seed) -> str:
    """The id of the case that all rows of a seed share; it does not show the seed."""
    return "c" + _digest([seed.source, seed.seed_id])


def row_id(seed: Seed, *parts: object) -> str:
    """The id of a row: the id of its case, and a hash of the parts that distinguish the row."""
    return f"{case_id(seed)}-{_digest([*map(str, parts)])[:6]}"


def _digest(parts: Sequence[str]) -> str:
    return blake2b(orjson.dumps(parts), digest_size=6).hexdigest()


def case_row(
    seed: Seed,
    context: Context,
    *,
    split: str,
    transform: str,
    parts: Sequence[object] = (),
    tools: Sequence[Tool] | None = None,
    query: str | None = None,
    files: bool = True,
    claims: Mapping[str, Any] = MappingProxyType({}),
    **fields: Any,
) -> Row:
    """A case in the published format, with its construction.

    Args:
        seed: Seed of the case.
        context: The seed of the order in which the tools are listed.
        split: One of ``BUILT_SPLITS``.
        transform: Name of the transform that made it.
        parts: Parts that distinguish it from other rows of the same seed and transform.
        tools: The offered tools, in place of the seed's; they are listed in their own order.
        query: The query, in place of the seed's.
        files: True if it has the seed's files.
        claims: Further fields of ``Construction``.
        **fields: Further fields of the published format by their names there, such as ``plan`` and
            ``tool_chain``; lists and objects are written as JSON under ``…_json``.
    """
    own_id = row_id(seed, transform, *parts)
    listed = list(seed.toolset.tools if tools is None else tools)
    draw(context.seed, own_id, "tools").shuffle(listed)
    query = seed.trajectory.query if query is None else query
    construction = Construction(
        seed=seed.seed_id,
        transform=transform,
        source=seed.place,
        licence=seed.licence,
        repairs=seed.repairs,
        model=_model_of(seed, query, fields.get("plan", ""), listed),
        **claims,
    )
    row: Row = {
        "id": own_id,
        "case_id": case_id(seed),
        "split": None if split == EFFICIENCY else split,
        "planning_regime": "Step-wise" if "prediction_horizon" in fields else "Holistic",
        "task_category": seed.category,
        "source": seed.source,
        "query": query,
        "system_prompt": seed.trajectory.system_prompt,
        "files": [file.model_dump() for file in seed.files] if files else [],
        "tools_json": _json([definition_of(tool) for tool in listed]),
        "tool_names_json": _json([tool.name for tool in listed]),
        "ends": None if seed.ends is None else sorted(seed.ends),
    }
    for name, value in fields.items():
        is_text = isinstance(value, str | int)
        row[name if is_text else f"{name}_json"] = value if is_text else _json(value)
    row["construction"] = construction.model_dump(mode="json", exclude_defaults=True)
    return {name: value for name, value in row.items() if value not in (None, "")}


def _model_of(seed: Seed, query: str, plan: str, tools: Sequence[Tool]) -> str | None:
    """The model that wrote a part of a row; None if no model wrote any of it."""
    is_private = seed.private is not None and query == seed.private[0]
    is_text = seed.trajectory.query in seed.written or plan in seed.written
    invented = {tool.name for tool in seed.invented}
    is_tool = any(tool.name in invented for tool in tools)
    is_required = any(text in query for text in seed.requirements.values())
    return seed.model if is_private or is_text or is_tool or is_required else None


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
