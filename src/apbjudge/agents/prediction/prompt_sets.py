"""Prompt sets: versioned files of templates, shipped or written by users."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, cast

from jinja2 import Template, TemplateSyntaxError, meta
from jinja2.sandbox import SandboxedEnvironment

from ...config import Config
from ...errors import OptionError, visible
from ...protocols.prompts import compiled

ToolOrder = Literal["given", "mixed"]
_FOLDER = resources.files(__name__.rpartition(".")[0]).joinpath("prompt_sets")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSet:
    """Templates and how they are used.

    Attributes:
        name: ``name@version`` of a shipped set, the path of a user's file.
        digest: SHA-256 of the file, in hex.
        texts: Templates by their path in the file, such as ``plan.system``.
        tool_order: ``given``, as the case lists them, or ``mixed``: an order that depends only on
            names and query, so that the place of a tool reveals nothing about it.
        shows_condition: True if the prompt shows if a case is solvable.
        continues: True if the review of a plan continues the exchange in which it was drafted.
    """

    name: str
    digest: str
    texts: Mapping[str, Template]
    tool_order: ToolOrder = "given"
    shows_condition: bool = False
    continues: bool = False

    @property
    def is_shipped(self) -> bool:
        """True for the shipped sets, which all demand the benchmark's output format."""
        return not self.name.endswith(".toml")

    def render(self, path: str, values: Mapping[str, Any]) -> str:
        """The rendered text, without blank lines at its ends.

        Raises:
            OptionError: If the template can't be filled.
        """
        try:
            return self.texts[path].render(values).strip()
        except Exception as error:  # noqa: BLE001 - a user's template can do anything
            detail = visible(f"{type(error).__name__}: {error}")
            raise OptionError(f"--prompts: {self.name}: {path}: {detail}") from None


def load_prompt_set(
    ref: str,
    *,
    kind: str,
    paths: Sequence[str],
    names: Sequence[str],
    optional: Sequence[str] = (),
    folder: Traversable = _FOLDER,
) -> PromptSet:
    """A shipped set by name, or a user's TOML file.

    Args:
        ref: ``name@version`` or a path.
        kind: Name of the option, such as ``review_prompts``.
        paths: The templates that it must have.
        names: The values that they may use.
        optional: Further templates that it may have.
        folder: Folder of the shipped sets, with a folder for each kind.

    Raises:
        OptionError: If there is no such set, or it can't be used; the text names the reason.
    """
    files, flag = folder.joinpath(kind).iterdir(), f"--{kind.replace('_', '-')}"
    shipped = sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml"))
    try:
        if ref in shipped:
            data = folder.joinpath(kind, f"{ref}.toml").read_bytes()
        elif ref.endswith(".toml"):
            data = Path(ref).read_bytes()
        else:
            known = ", ".join(shipped)
            raise OptionError(f"{flag}: expected one of {known}, or a .toml file, got {ref!r}")
        values = tomllib.loads(data.decode())
    except OSError as error:
        raise OptionError(f"{flag}: {ref}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or not a path
        raise OptionError(f"{flag}: {visible(ref)}: {error}") from None
    try:
        head = _Head(**{name: values.pop(name) for name in _Head.model_fields if name in values})
        texts = _texts(values, paths, (*paths, *optional), names)
    except ValueError as error:
        raise OptionError(f"{flag}: {ref}: {error}") from None
    except OptionError as error:  # about a key of the file, which is not an option
        key, _, detail = str(error).partition(": ")
        key = key.removeprefix("--").replace("-", "_")
        raise OptionError(f"{flag}: {ref}: {key}: {detail}") from None
    return PromptSet(
        name=ref,
        digest=sha256(data).hexdigest(),
        texts=texts,
        tool_order=head.tool_order,
        shows_condition=head.shows_condition,
        continues=head.continues,
    )


class _Head(Config):
    """The settings of a file besides its texts; see ``PromptSet``."""

    description: str = ""
    tool_order: ToolOrder = "given"
    shows_condition: bool = False
    continues: bool = False


def _texts(
    values: Mapping[str, Any], paths: Sequence[str], allowed: Sequence[str], names: Sequence[str]
) -> dict[str, Template]:
    """The templates by path; raises ValueError if one is missing, unknown or unusable."""
    sources = dict(_flat(values))
    if missing := [path for path in paths if path not in sources]:
        raise ValueError(f"expected the text {missing[0]}, got nothing")
    if unknown := [path for path in sources if path not in allowed]:
        raise ValueError(f"expected only {', '.join(allowed)}, got {unknown[0]}")
    texts: dict[str, Template] = {}
    for path, source in sources.items():
        try:
            used: set[str] = meta.find_undeclared_variables(SandboxedEnvironment().parse(source))
            texts[path] = compiled(source)
        except TemplateSyntaxError as error:
            raise ValueError(f"{path}, line {error.lineno}: {error.message}") from None
        if unknown := sorted(used.difference(names)):
            raise ValueError(f"{path}: expected only {', '.join(names)}, got {unknown[0]}")
    return texts


def _flat(values: Mapping[str, Any], above: str = "") -> list[tuple[str, str]]:
    """Texts of nested tables by dotted path."""
    texts: list[tuple[str, str]] = []
    for name, value in values.items():
        path = f"{above}{name}"
        if isinstance(value, dict):
            texts += _flat(cast("Mapping[str, Any]", value), f"{path}.")
        elif isinstance(value, str):
            texts.append((path, value))
        else:
            raise ValueError(f"{path}: expected text, got {value!r}")  # noqa: TRY004
    return texts
