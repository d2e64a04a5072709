"""All figures of some tables: one of each kind for every judge that has something to draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..paper.table import Table
from .doubt import doubt_drafts, doubt_judges
from .drafts import Draft, drafts
from .figure import Figure
from .marks import distinct, drawn_texts
from .names import boxes_note, in_words, slugs

if TYPE_CHECKING:
    from pandas import DataFrame


def paper_figures(tables: Sequence[Table], doubt: DataFrame | None = None) -> tuple[Figure, ...]:
    """Figures for a paper, drawn from its tables.

    Args:
        tables: The tables; those that no figure is drawn from are passed over.
        doubt: How sure judges were, a row per judgement: ``judge``; ``p_correct``, the share of
            the judge's replies that said correct, 0 to 1, NaN where not measured;
            ``human_correct``, 0 or 1, NaN without label; ``is_correct``, 0 or 1, NaN without
            verdict; ``case_id``. None for no figures of doubt.

    Returns:
        The figures, those of one judge together; only those that have something to draw. Where
        there are several judges, the judge's name is part of the key.
    """
    by_key = {table.key: table for table in tables}
    judges = distinct([judge for table in tables for judge in table.judges if judge])
    sure = () if doubt is None else doubt_judges(doubt)
    everyone = distinct([*judges, *sure])
    endings = slugs(everyone) if len(everyone) > 1 else {}
    found: list[Figure] = []
    for judge in ("", *everyone):
        made: list[Draft] = list(drafts(by_key, judge))
        if doubt is not None and judge in sure:
            made += doubt_drafts(doubt, judge)
        found += _figures(made, judge, endings.get(judge))
    return tuple(found)


def _figures(made: Sequence[Draft], judge: str, ending: str | None) -> Iterator[Figure]:
    for draft in made:
        title = f"{draft.title} ({in_words(judge)})" if judge else draft.title
        yield Figure(
            key=draft.key if ending is None else f"{draft.key}-{ending}",
            title=title + boxes_note(drawn_texts(draft.data)),
            alt=draft.alt,
            data=draft.data,
            draw=draft.draw,
        )
