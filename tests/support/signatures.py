"""``functions.pyi``: the signatures of the public functions, made from the fields as they are.

``python -m tests.support.signatures`` writes it.
"""

from __future__ import annotations

import collections.abc
import inspect
import subprocess
import types
from inspect import Parameter
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import apbjudge
from apbjudge.config import Config
from apbjudge.functions import FUNCTIONS
from apbjudge.llm.model_spec import ModelSpec

FILE = Path(apbjudge.__file__).with_name("functions.pyi")
HEAD = '''"""Signatures of the public functions, made by ``python -m tests.support.signatures``."""

{}

_Path = str | PathLike[str]
_Rows = _Path | Iterable[Mapping[str, Any]] | DataFrame
'''
WRITTEN = ("out", "data_root", "findings", "run", "export_label_studio", "python", "cache")
"""Options with paths that no rows can stand for."""
OTHERS = {"judged": "str | PathLike[str] | Sequence[str | PathLike[str]]"}
"""Types of options whose field holds something else than what it takes."""


class Imports(dict[str, set[str]]):
    """Names by the module that they are imported from."""

    def text(self, annotation: Any) -> str:  # noqa: PLR0911
        """A type as source text."""
        if annotation in (None, type(None)):
            return "None"
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self.text(args[0])
        if origin in (Union, types.UnionType):
            return " | ".join(dict.fromkeys(map(self.text, args)))
        if annotation is Ellipsis or isinstance(annotation, list):
            return "..." if annotation is Ellipsis else f"[{', '.join(map(self.text, annotation))}]"
        if origin is Literal:
            self.setdefault("typing", set()).add("Literal")
            return f"Literal[{', '.join(map(repr, args))}]"
        if origin is not None:
            base = getattr(collections.abc, origin.__name__, origin)
            return f"{self.text(base)}[{', '.join(map(self.text, args))}]"
        if annotation.__module__ != "builtins":
            module = annotation.__module__
            if module.startswith("apbjudge"):
                module = module.removeprefix("apbjudge")
            self.setdefault(module.replace("pathlib._local", "pathlib"), set()).add(
                annotation.__name__
            )
        return annotation.__name__

    def option(self, name: str, annotation: Any) -> str:  # noqa: PLR0911
        """The type of what an option takes, of that of its field."""
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self.option(name, args[0])
        if origin in (Union, types.UnionType):
            return " | ".join(dict.fromkeys(self.option(name, each) for each in args))
        if origin is tuple and args[-1] is Ellipsis:
            part = self.option(name, args[0])
            self["collections.abc"].add("Sequence")
            one = {int: "str"}.get(args[0], part)
            return f"Sequence[str | {part}]" if "tuple" in part else f"{one} | Sequence[{part}]"
        if annotation is Path:
            return "_Path" if name in WRITTEN else "_Rows"
        if inspect.isclass(annotation) and issubclass(annotation, Config):
            return f"str | {self.text(annotation)}"
        if origin is tuple:
            return f"tuple[{', '.join(self.option(name, each) for each in args)}]"
        return self.text(annotation)


def stub() -> str:
    """The text of the file."""
    imports = Imports(
        {
            "collections.abc": {"Iterable", "Mapping"},
            "os": {"PathLike"},
            "pandas": {"DataFrame"},
            "typing": {"Any"},
        }
    )
    functions = [_function(name, imports) for name in FUNCTIONS]
    lines = [
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in sorted(imports.items())
    ]
    return "\n\n".join([HEAD.format("\n".join(lines)), *functions])


def _function(name: str, imports: Imports) -> str:
    function = getattr(apbjudge, name)
    of = apbjudge.grade if name == "agrade" else function  # which hands all to it
    hints = get_type_hints(inspect.unwrap(of))
    parts: list[str] = []
    is_named = False
    for each in inspect.signature(function).parameters.values():
        if each.kind is Parameter.KEYWORD_ONLY and not is_named:
            parts, is_named = [*parts, "*"], True
        own = hints.get(each.name)
        text = imports.option(each.name, each.annotation) if own is None else imports.text(own)
        if inspect.isclass(own) and issubclass(own, Config):
            text = imports.option(each.name, own) if issubclass(own, ModelSpec) else text
            text += " | None" if each.default is None else ""
        if "Iterable[Mapping[str, Any]]" in text:
            optional = " | None" if text.endswith("| None") else ""
            text = f"_Rows{optional}"
        text = OTHERS.get(each.name, text)
        default = _default(each.default, "None" in text)
        parts.append(f"{each.name}: {text}{default}")
    doc = indent(inspect.getdoc(function) or "", "    ").strip()
    kind = "async def" if inspect.iscoroutinefunction(function) else "def"
    return (
        f'{kind} {name}({", ".join(parts)}) -> {imports.text(hints["return"])}:\n    """{doc}"""\n'
    )


def _default(value: Any, may_be_none: bool) -> str:
    if value is Parameter.empty:
        return ""
    is_plain = (
        isinstance(value, str | int | float) or value == () or (value is None and may_be_none)
    )
    return f" = {value!r}" if is_plain else " = ..."


if __name__ == "__main__":
    FILE.write_text(stub(), encoding="utf-8")
    for command in ("format", "check --fix", "format"):
        subprocess.run(["ruff", *command.split(), "--quiet", str(FILE)], check=True)
