"""Any text as LaTeX that shows it and does nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from ...errors import visible

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
