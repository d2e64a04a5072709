"""Tables as LaTeX, ready to paste: booktabs and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..numbers import DASH, level_text
from .fitting import Lot, Piece, head_layout, long, pages, shown_in
from .formatting import best_note, scored
from .table import Table, TableRow
from .tex import tex

_WORD = 16.0
_HEAD = r"""% Tables made by apbjudge.
% Packages needed: \usepackage{booktabs}
% Characters that plain LaTeX lacks stand by their number, such as U+4F60.
"""


def tables_latex(tables: Iterable[Table], *, intervals: bool = True) -> str:
    r"""All tables as ``table*`` environments.

    Sections that do not fit side by side stand in tabulars below each other, as in the paper's
    Table 1, and what does not fit on a page goes on in another ``table*`` of the same number. The
    best set is bold; a column of ``scored/rows`` stands at the head of each section.

    Args:
        tables: The tables; texts from data are escaped.
        intervals: Whether intervals stand below the figures, as a line of their own in ``\tiny``.
    """
    return _HEAD + "".join("\n" + "\n".join(_table(t, intervals=intervals)) + "\n" for t in tables)


def _table(table: Table, *, intervals: bool) -> Iterator[str]:
    for i, page in enumerate(pages(table, intervals=intervals)):
        if i:
            yield r"\clearpage"  # LaTeX keeps no more than 52 floats waiting
        yield r"\begin{table*}"
        yield r"\centering"
        yield r"\scriptsize"
        yield r"\setlength{\tabcolsep}{2pt}"
        for at, piece in enumerate(page):
            if at:
                yield r"\par\vspace{1ex}"
            yield from _tabular(table, piece, intervals=intervals)
        if i:
            yield r"\addtocounter{table}{-1}"
            yield rf"\caption{{{tex(table.title)}, continued.}}"
        else:
            yield rf"\caption{{{_caption(table, intervals=intervals)}}}"
            yield rf"\label{{tab:apb-{table.key}}}"
        yield r"\end{table*}"


def _caption(table: Table, *, intervals: bool) -> str:
    parts = [table.title]
    if len(table.judges) == 1 and table.judges[0]:
        parts[0] += f", judge {table.judges[0]}"
    parts.append("Rates in %, differences of rates in points; n: scored of all rows")
    if intervals:
        parts.append(f"In brackets: {level_text(table.level)} intervals")
    parts.append("/n: a denominator that is not the scored rows")
    parts += filter(None, (best_note(table, "Bold:"), *table.notes))
    parts.append(f"Layout: {table.number} of arXiv:2606.04874")
    return " ".join(f"{tex(part)}." for part in parts)


def _tabular(table: Table, piece: Piece, *, intervals: bool) -> Iterator[str]:
    columns = piece.columns
    heads = len(table.heads)
    total = heads + sum(1 + len(of) for of in columns.values())
    layout = "".join(head_layout(table, i) for i in range(heads)) + "r" * (total - heads)
    yield rf"\begin{{tabular}}{{{layout}}}"
    yield r"\toprule"
    if any(columns):
        yield from _section_heads(columns, heads)
    yield _titles(table, columns)
    last = ("", "")
    for i, row in enumerate(piece.rows):
        if i == 0 or row.judge != last[0]:
            yield r"\midrule"
            if len(table.judges) > 1:
                yield rf"\multicolumn{{{total}}}{{l}}{{\emph{{Judge {tex(row.judge)}}}}} \\"
        same = i > 0 and (row.judge, row.heads[0]) == last
        yield from _row(row, columns, same=same, intervals=intervals)
        last = row.judge, row.heads[0]
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _section_heads(columns: Lot, heads: int) -> Iterator[str]:
    titles, rules, at = [""] * heads, list[str](), heads + 1
    for section, of in columns.items():
        wide = 1 + len(of)
        titles.append(rf"\multicolumn{{{wide}}}{{c}}{{{tex(section)}}}")
        rules.append(rf"\cmidrule(lr){{{at}-{at + wide - 1}}}")
        at += wide
    yield _line(titles)
    yield " ".join(rules)


def _titles(table: Table, columns: Lot) -> str:
    titles = [*map(tex, table.heads)]
    for of in columns.values():
        titles += ["n", *(column.latex or tex(column.title) for column in of)]
    return _line(titles)


def _row(row: TableRow, columns: Lot, *, same: bool, intervals: bool) -> Iterator[str]:
    """The figures, and below them what is small; the tested model once for all its rows."""
    cells = ["" if same and i == 0 else _head(head) for i, head in enumerate(row.heads)]
    below = [""] * len(row.heads)
    for section, of in columns.items():
        cells.append(scored(row, section))
        below.append("")
        for column in of:
            text = shown_in(row, column)
            value = rf"\textbf{{{_value(text.value)}}}" if text.best else _value(text.value)
            cells.append(value + _tiny(text.of))
            below.append(_tiny(text.interval))
    small = intervals and any(below)
    yield _line(cells) + ("[-2pt]" if small else "")
    if small:
        yield _line(below) + "[1pt]"


def _head(text: str) -> str:
    """A name, with places to go on in another line inside of words that are long."""
    words = re.split(r"(\s+)", text)
    return "".join(_breakable(word) if long(word) > _WORD else tex(word) for word in words)


def _breakable(word: str) -> str:
    return r"\allowbreak{}".join(map(tex, re.findall(r"[!-~]{1,6}|[^!-~]", word)))


def _value(text: str) -> str:
    """A figure with a real minus sign; a dash for a missing one."""
    return "--" if text == DASH else text.replace("-", "$-$").replace("+", "$+$")


def _tiny(text: str) -> str:
    return rf"{{\tiny {_value(text)}}}" if text else ""


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells).rstrip() + r" \\"
