r"""A document as LaTeX, ready to paste: booktabs, and longtable for what is longer than a page.

A page is taken to be 16 cm by 24 cm in ``\scriptsize``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil

from ..errors import visible
from .model import Cell, Document, Heading, MetricCell, Notes, Number, Paragraph, Table, packed
from .numbers import DASH

HEAD = r"""% Tables made by apbjudge.
% Packages needed: \usepackage{booktabs,longtable}
% Characters that plain LaTeX lacks are written by their number, such as U+4F60.
"""
"""Comment above all tables."""
# Widths are in digits of the size of figures, heights in lines.
_PAGE_WIDTH = 104.0
_PAGE_HEIGHT = 66  # less a caption
_HEADING_HEIGHT = 6  # rules and titles of a tabular
_TINY = 0.86
_GAP = 0.95
_NAME_WIDTH = 34.0  # 4.5 cm
_WORD_WIDTH = 16.0  # longer words may break
_NARROW = frozenset(" .,:;/|[]()!'ijlt-")


_ONE_COLUMN = r"""\makeatletter
\if@twocolumn\onecolumn\let\apbback\twocolumn\else\let\apbback\relax\fi
\makeatother"""
"""A longtable needs pages of one column; the document's own come back after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tabular:
    """A part of a table that is as wide as a page at most; lines, and its height in lines."""

    title: list[str]
    layout: str
    head: list[str]
    rows: list[str]
    height: float


def render_latex(document: Document, *, label: str = "", intervals: bool = True) -> str:
    r"""The document as one ``table*``: its title as caption, its texts and notes below, a label.

    Headings are titles of tabulars. Sections of columns that do not fit side by side are
    tabulars below each other. What is higher than a page is each a ``longtable``, all of the same
    number, on pages of one column. Figures of the best set are bold; ``intervals`` are below the
    figures, in a line of their own in ``\tiny``.
    """
    sentences: list[str] = []
    tabulars: list[_Tabular] = []
    title = ""
    for part in document.parts:
        match part:
            case Heading(title):
                pass
            case Paragraph(text):
                sentences.append(text)
            case Notes(texts):
                sentences += texts
            case _:
                tabulars += _tabulars(part, title, intervals=intervals)
    caption = rf"\caption{{{tex(document.title)}.}}"
    named = [rf"\label{{{label}}}"] if label else []
    notes = " ".join(f"{tex(text)}." for text in sentences)
    below = [rf"\par\vspace{{1ex}}\parbox{{\textwidth}}{{\scriptsize {notes}}}"] if notes else []
    size = r"\scriptsize\setlength{\tabcolsep}{2pt}"
    if sum(tabular.height for tabular in tabulars) <= _PAGE_HEIGHT:
        lines = [r"\begin{table*}", r"\centering" + size]
        for i, of in enumerate(tabulars):
            lines += [r"\par\vspace{1ex}"] if i else []
            lines += [*of.title, rf"\begin{{tabular}}{{{of.layout}}}", *of.head, *of.rows]
            lines += [r"\bottomrule", r"\end{tabular}"]
        return "\n".join([*lines, *below, caption, *named, r"\end{table*}"]) + "\n"
    lines = [_ONE_COLUMN, r"\begingroup" + size + r"\parindent0pt\LTcapwidth\textwidth"]
    again = rf"\caption[]{{{tex(document.title)}, continued.}}\\"
    for i, of in enumerate(tabulars):
        first = [] if i else [caption, *named, r"\\"]
        lines += [r"\addtocounter{table}{-1}"] if i else []
        lines += [*of.title, rf"\begin{{longtable}}{{{of.layout}}}", *first, *of.head]
        lines += [r"\endfirsthead", again, *of.head, r"\endhead", r"\bottomrule", r"\endfoot"]
        lines += [*of.rows, r"\end{longtable}"]
    return "\n".join([*lines, *below, r"\par\endgroup", r"\apbback"]) + "\n"


def figures_latex(figures: Iterable[tuple[str, str, str]], folder: str) -> str:
    r"""A ``figure`` for each PDF in a folder.

    Args:
        figures: The key, the title and the note of each.
        folder: As it is written in the document.
    """
    text = "% Packages needed: \\usepackage{graphicx}\n"
    for key, title, note in figures:
        path = rf"\detokenize{{{folder}/{key}.pdf}}"
        lines = [r"\begin{figure}", r"\centering", rf"\includegraphics{{{path}}}"]
        lines += [rf"\par\vspace{{1ex}}{{\scriptsize {tex(note)}.\par}}"] if note else []
        lines += [rf"\caption{{{tex(title)}.}}", rf"\label{{fig:apb-{key}}}", r"\end{figure}"]
        text += "\n" + "\n".join(lines) + "\n"
    return text


def _tabulars(table: Table, title: str, *, intervals: bool) -> Iterator[_Tabular]:
    """A table, divided where it is wider than a page."""
    widths = [_width(table, i, intervals=intervals) for i in range(len(table.columns))]
    room = _PAGE_WIDTH - sum(min(width, _GAP + _NAME_WIDTH) for width in widths[: table.leads])
    for sections in packed(_sections(table, widths, room), room):
        columns = [i for section in sections for i in section]
        rows = [row for row in table.rows if any(row[i] != "" for i in columns)]
        columns = [*range(table.leads), *columns]
        yield _Tabular(
            title=[rf"\emph{{{_name(title)}}}\par\nopagebreak"] if title else [],
            layout="".join(_layout(table, i) for i in columns),
            head=list(_head(table, columns)),
            rows=list(_rows(table, columns, rows, intervals=intervals)),
            height=_HEADING_HEIGHT
            + ceil(text_width(title) / _PAGE_WIDTH)
            + _height(rows, table.leads) * (2 if intervals else 1),
        )


def _sections(
    table: Table, widths: Sequence[float], room: float
) -> Iterator[tuple[list[int], float]]:
    """Columns of each section with their width; a section that is too wide, in parts."""
    rest = range(table.leads, len(table.columns))
    for _, section in groupby(rest, key=lambda i: table.columns[i].section):
        columns = list(section)
        size = ceil(len(columns) / ceil(sum(widths[i] for i in columns) / max(room, 1.0)))
        for at in range(0, len(columns), size):
            part = columns[at : at + size]
            yield part, sum(widths[i] for i in part)


def _height(rows: Sequence[tuple[Cell, ...]], leads: int) -> float:
    """The height in lines; a name too long for one goes on in others, which are less full."""
    widths = (text_width(str(cell)) for row in rows for cell in row[:leads])
    return len(rows) + sum(width // (0.7 * _NAME_WIDTH) for width in widths if width > _NAME_WIDTH)


def _head(table: Table, columns: Sequence[int]) -> Iterator[str]:
    leads = table.leads
    yield r"\toprule"
    if any(table.columns[i].section for i in columns):
        sections, rules, at = [""] * leads, list[str](), leads
        for section, own in groupby(columns[leads:], key=lambda i: table.columns[i].section):
            n = len(list(own))
            sections.append(rf"\multicolumn{{{n}}}{{c}}{{{tex(section)}}}")
            rules.append(rf"\cmidrule(lr){{{at + 1}-{at + n}}}")
            at += n
        yield _line(sections)
        yield " ".join(rules)
    yield _line(_title(table.columns[i].title) for i in columns)
    yield r"\midrule"


def _rows(
    table: Table, columns: Sequence[int], rows: Iterable[tuple[Cell, ...]], *, intervals: bool
) -> Iterator[str]:
    leads = table.leads
    last: Cell = ""
    for row in rows:
        names = [_name(str(cell)) for cell in row[:leads]]
        same, last = row[0] == last, row[0]
        pairs = [_figure(row[i]) for i in columns[leads:]]
        small = intervals and any(interval for _, interval in pairs)
        cells = ["" if same else names[0], *names[1:], *(cell for cell, _ in pairs)]
        yield _line(cells) + ("*[-2pt]" if small else "")
        if small:
            yield _line([*[""] * leads, *(interval for _, interval in pairs)]) + "[1pt]"


def _layout(table: Table, at: int) -> str:
    if table.columns[at].align != "left":
        return "r"
    return "p{4.5cm}" if _width(table, at, intervals=False) > _GAP + _NAME_WIDTH else "l"


def _figure(cell: Cell) -> tuple[str, str]:
    """A cell, and the interval below it."""
    if isinstance(cell, Number):
        return _number(tex(str(cell))), ""
    if not isinstance(cell, MetricCell):
        return tex(str(cell)), ""
    value = _number(cell.value or DASH)
    return (rf"\textbf{{{value}}}" if cell.best else value) + _tiny(cell.of), _tiny(cell.interval)


def _name(text: str) -> str:
    """A name, with places to go on in another line inside of words that are long."""
    return "".join(
        tex(word)
        if text_width(word) <= _WORD_WIDTH
        else r"\allowbreak{}".join(map(tex, re.findall(r"[!-~]{1,6}|[^!-~]", word)))
        for word in re.split(r"(\s+)", text)
    )


def _title(text: str) -> str:
    """A title of a column; what stands behind its underline is a subscript."""
    name, _, index = text.partition("_")
    is_symbol = name.isalpha() and index.isalpha()
    return rf"{tex(name)}\textsubscript{{{tex(index)}}}" if is_symbol else tex(text)


def _number(text: str) -> str:
    """A figure with a real minus sign, and its mark as a bound; a dash for a missing one."""
    return "--" if text == DASH else "".join(_SIGNS.get(c, c) for c in text)


_SIGNS = {"-": "$-$", "+": "$+$", "≤": r"$\leq$", "≥": r"$\geq$"}


def _tiny(text: str) -> str:
    return rf"{{\tiny {_number(text)}}}" if text else ""


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells).rstrip() + r" \\"


# Widths ------------------------------------------------------------------------------------------


def _width(table: Table, at: int, *, intervals: bool) -> float:
    """The width of a column: its title, figures with denominators, or intervals below them."""
    widest = text_width(table.columns[at].title)
    for row in table.rows:
        cell = row[at]
        if isinstance(cell, MetricCell):
            above = 1.1 * text_width(cell.value) + _TINY * text_width(cell.of)
            below = _TINY * text_width(cell.interval) if intervals else 0.0
            widest = max(widest, above, below)
        else:
            widest = max(widest, text_width(str(cell)))
    return _GAP + widest


def text_width(text: str) -> float:
    """Width in digits: most letters are as wide as one, capitals wider, some marks narrow."""
    by_number = 6.5

    def width(c: str) -> float:
        if ord(c) > 255:
            return by_number if "U+" in tex(c) else 1.4
        return 0.55 if c in _NARROW else 1.4 if c.isupper() else 1.0

    return sum(map(width, visible(text)))


# Texts -------------------------------------------------------------------------------------------

_ESCAPED: Mapping[str, str] = {
    **{c: "\\" + c for c in "{}$&#_%"},
    **{c: "{" + c + "}" for c in "[]*"},  # else read as an option after a row
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "{''}",
    "`": r"\`{}",
    "Δ": r"$\Delta$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "κ": r"$\kappa$",
    "μ": r"$\mu$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
}
_JOINED = re.compile(r"(?<=([-',]))(?=\1)")
"""Between two marks that TeX would make one of."""
_ACCENTS = frozenset("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327")
_PLAIN = frozenset("ßæÆœŒøØłŁ–—‘’“”…·×±→•§°µ€")
"""Characters that every LaTeX of 2018 or later sets, besides ASCII and letters with an accent."""


def tex(text: str) -> str:
    """Text for LaTeX with any engine and no package.

    What can't be printed comes out as by ``errors.visible``; characters that plain LaTeX lacks by
    their number, such as ``U+4F60``.
    """
    parts = _JOINED.split(visible(text))[::2]
    return "{}".join("".join(map(_escaped, part)) for part in parts)


def _escaped(character: str) -> str:
    if not (character.isascii() or character in _PLAIN or character in _ESCAPED):
        letter, *accents = unicodedata.normalize("NFD", character)
        is_latin = letter.isascii() and letter.isalpha() and ord(character) < 0x180
        if not (is_latin and len(accents) == 1 and accents[0] in _ACCENTS):
            return f"{{\\ttfamily U+{ord(character):04X}}}"
    return _ESCAPED.get(character, character)
