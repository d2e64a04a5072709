r"""Tables as LaTeX, ready to paste: booktabs and nothing else.

A page is taken to be 16 cm by 24 cm in ``\scriptsize``; what does not fit goes on below or on
another page.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import ceil

from ...errors import visible
from ..numbers import DASH, level_text
from .formatting import best_note, columns_of, figure_of, scored
from .table import Column, Table, TableRow

_HEAD = r"""% Tables made by apbjudge.
% Packages needed: \usepackage{booktabs}
% Characters that plain LaTeX lacks stand by their number, such as U+4F60.
"""
# Widths are in digits of the size of figures, heights in lines.
_PAGE_WIDTH = 104.0
_PAGE_HEIGHT = 66  # less a caption
_HEADING_HEIGHT = 5  # rules and titles of a tabular
_TINY = 0.86
_GAP = 0.95
_NAME_WIDTH = 34.0  # 4.5 cm
_WORD_WIDTH = 16.0  # longer words may break
_NARROW = frozenset(" .,:;/|[]()!'ijlt-")

_Columns = dict[str, tuple[Column, ...]]
"""Columns side by side, by section."""
_Piece = tuple[_Columns, list[TableRow]]
"""The columns and rows of one tabular."""


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
    for i, page in enumerate(_pages(table, intervals=intervals)):
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


def _tabular(table: Table, piece: _Piece, *, intervals: bool) -> Iterator[str]:
    columns, rows = piece
    names = [_name_width(table, i) for i in range(len(table.heads))]
    total = len(names) + sum(1 + len(of) for of in columns.values())
    layout = "".join("l" if width <= _NAME_WIDTH else "p{4.5cm}" for width in names)
    yield rf"\begin{{tabular}}{{{layout}{'r' * (total - len(names))}}}"
    yield r"\toprule"
    sections, rules, titles, at = (
        [""] * len(names),
        list[str](),
        [*map(tex, table.heads)],
        len(names),
    )
    for section, of in columns.items():
        sections.append(rf"\multicolumn{{{1 + len(of)}}}{{c}}{{{tex(section)}}}")
        rules.append(rf"\cmidrule(lr){{{at + 1}-{at + 1 + len(of)}}}")
        titles += ["n", *(column.latex or tex(column.title) for column in of)]
        at += 1 + len(of)
    if any(columns):
        yield _line(sections)
        yield " ".join(rules)
    yield _line(titles)
    last = ("", "")
    for i, row in enumerate(rows):
        if i == 0 or row.judge != last[0]:
            yield r"\midrule"
            if len(table.judges) > 1:
                yield rf"\multicolumn{{{total}}}{{l}}{{\emph{{Judge {tex(row.judge)}}}}} \\"
        same = i > 0 and (row.judge, row.heads[0]) == last
        yield from _row(row, columns, same=same, intervals=intervals)
        last = row.judge, row.heads[0]
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _row(row: TableRow, columns: _Columns, *, same: bool, intervals: bool) -> Iterator[str]:
    """The figures, and below them what is small; the tested model once for all its rows."""
    cells = ["" if same and i == 0 else _name(head) for i, head in enumerate(row.heads)]
    below = [""] * len(row.heads)
    for section, of in columns.items():
        cells.append(scored(row, section))
        below.append("")
        for column in of:
            figure = figure_of(row, column)
            value = _number(figure.value or DASH)
            cells.append((rf"\textbf{{{value}}}" if figure.best else value) + _tiny(figure.of))
            below.append(_tiny(figure.interval))
    small = intervals and any(below)
    yield _line(cells) + ("[-2pt]" if small else "")
    if small:
        yield _line(below) + "[1pt]"


def _name(text: str) -> str:
    """A name, with places to go on in another line inside of words that are long."""
    return "".join(
        tex(word)
        if text_width(word) <= _WORD_WIDTH
        else r"\allowbreak{}".join(map(tex, re.findall(r"[!-~]{1,6}|[^!-~]", word)))
        for word in re.split(r"(\s+)", text)
    )


def _number(text: str) -> str:
    """A figure with a real minus sign; a dash for a missing one."""
    return "--" if text == DASH else text.replace("-", "$-$").replace("+", "$+$")


def _tiny(text: str) -> str:
    return rf"{{\tiny {_number(text)}}}" if text else ""


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells).rstrip() + r" \\"


# What fits on a page -----------------------------------------------------------------------------


def _pages(table: Table, *, intervals: bool) -> Iterator[list[_Piece]]:
    """The tabulars of a table, those that fit on one page together.

    A section that is wider than a page is divided; the rows of one tested model by one judge are
    not.
    """
    per_row = 2 if intervals else 1
    page: list[_Piece] = []
    used = 0
    for columns in _side_by_side(table, intervals=intervals):
        rows = [row for row in table.rows if any(section in row.counts for section in columns)]
        for part, height in _parts(rows, per_row):
            if page and used + height > _PAGE_HEIGHT:
                yield page
                page, used = [], 0
            page.append((columns, part))
            used += height
    yield page


def _parts(rows: Sequence[TableRow], per_row: int) -> Iterator[tuple[list[TableRow], int]]:
    """Rows that fit on a page, with the height of their tabular."""
    part: list[TableRow] = []
    used = _HEADING_HEIGHT
    for _, same in groupby(rows, key=lambda row: (row.judge, row.heads[0])):
        group = list(same)  # the name of the tested model stands in the first alone
        names = [group[0].heads[0], *(head for row in group for head in row.heads[1:])]
        # a name too long for one line goes on in others, which hold less than they could
        more = sum(
            ceil(width / (0.7 * _NAME_WIDTH)) - 1
            for width in map(text_width, names)
            if width > _NAME_WIDTH
        )
        height = per_row * len(group) + more
        if part and used + height > _PAGE_HEIGHT:
            yield part, used
            part, used = [], _HEADING_HEIGHT
        part += group
        used += height
    yield part, used


def _side_by_side(table: Table, *, intervals: bool) -> Iterator[_Columns]:
    """The columns that go into one tabular; a section joins another only where all of it fits."""
    names = (_GAP + min(_name_width(table, i), _NAME_WIDTH) for i in range(len(table.heads)))
    room = _PAGE_WIDTH - sum(names)
    together: _Columns = {}
    left = room
    for section in table.sections:
        counts = _GAP + max(text_width(scored(row, section)) for row in table.rows)
        columns = columns_of(table, section)
        widths = [_width(table, column, intervals=intervals) for column in columns]
        n_parts = max(1, ceil(sum(widths) / max(room - counts, 1.0)))
        size = ceil(len(columns) / n_parts)
        for at in range(0, len(columns), size):
            needed = counts + sum(widths[at : at + size])
            if together and (section in together or needed > left):
                yield together
                together, left = {}, room
            together[section] = columns[at : at + size]
            left -= needed
    yield together


def _name_width(table: Table, i: int) -> float:
    """Of the i-th leading column."""
    return max(map(text_width, (table.heads[i], *(row.heads[i] for row in table.rows))))


def _width(table: Table, column: Column, *, intervals: bool) -> float:
    """Of a column: its title, figures with denominators, or intervals below them."""
    widest = text_width(column.title)
    for figure in (figure_of(row, column) for row in table.rows):
        above = 1.1 * text_width(figure.value) + _TINY * text_width(figure.of)
        below = _TINY * text_width(figure.interval) if intervals else 0.0
        widest = max(widest, above, below)
    return _GAP + widest


def text_width(text: str) -> float:
    """Width in digits: most letters are as wide as one, capitals wider, some marks narrow."""
    return sum(map(_character_width, visible(text)))


def _character_width(c: str) -> float:
    if ord(c) > 255 and r"\ttfamily" in tex(c):
        return 6.5  # stands by its number
    return 0.55 if c in _NARROW else 1.4 if c.isupper() or ord(c) > 255 else 1.0


# Texts -------------------------------------------------------------------------------------------

_CHARACTERS: Mapping[str, str] = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "{''}",
    "`": r"\`{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "–": "{--}",
    "—": "{---}",
    "‘": "{`}",
    "’": "{'}",
    "“": "{``}",
    "”": "{''}",
    "…": r"\ldots{}",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "→": r"$\rightarrow$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "π": r"$\pi$",
    "τ": r"$\tau$",
    "Δ": r"$\Delta$",
}
"""Marks that stand in braces would be joined with a neighbour, or read as an option after a row."""

_JOINED = re.compile(r"(?<=([-',]))(?=\1)")
"""Between two marks that TeX would make one of."""

_ACCENTS: Mapping[str, str] = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
}


def tex(text: str) -> str:
    r"""Text for LaTeX with any engine and no package.

    Args:
        text: Any text. What can't be printed comes out as by ``errors.visible``; a letter with
            one accent as ``\'{e}``; other characters that plain LaTeX lacks by their number, such
            as ``U+4F60``.
    """
    parts = _JOINED.split(visible(text))[::2]
    return "{}".join("".join(map(_one, part)) for part in parts)


def _one(character: str) -> str:
    if character in _CHARACTERS:
        return _CHARACTERS[character]
    if character.isascii():
        return character
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in _ACCENTS:
        return f"\\{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    return f"{{\\ttfamily U+{ord(character):04X}}}"
