"""Commands made from configurations: each field is an option and a key of ``--config``."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

import typer
from pydantic import Field, create_model
from pydantic.fields import FieldInfo
from typer.main import get_command

from ..config import Config, Option, is_switch, kinds, option_name, option_of, with_local_files
from ..errors import path_text, visible
from ..judge.config import JudgeSpec
from .completion import completer
from .help import Command
from .settings import Settings, Values, is_file

if TYPE_CHECKING:
    from ..document.model import Document

C = TypeVar("C", bound=Config)

CONFIG_HELP = "KEY=VALUE or a TOML file; keys are names of options, such as {}."
_BY_NAME = Parameter.KEYWORD_ONLY
_METAVARS = {int: "INTEGER", float: "NUMBER", bool: "true|false", Path: "PATH", dict: "TABLE"}


class ConfigCommand:
    """A command whose parameters are the fields of its configurations.

    Args:
        run: Gets the values that were set, and returns the exit code; its docstring is the help.
        configs: The configurations; a field that two of them have is one option.
        omit: Fields that are not options; ``JudgeSpec.model`` never is: other options name it.
        hide: Fields that are accepted, so that commands can share a file of settings, but not
            listed in the help.

    Attributes:
        more: Parameters that are not settings.
    """

    def __init__(
        self,
        run: Callable[[Values], int],
        configs: Sequence[type[Config]],
        omit: Sequence[str],
        hide: Sequence[str],
    ) -> None:
        self.run, self.configs, self.hide = run, configs, hide
        self.fields = {
            name: field
            for config in configs
            for name, field in config.model_fields.items()
            if name not in omit and (config, name) != (JudgeSpec, "model")
        }
        self.groups: dict[str, list[str]] = {}
        for config in configs:
            for title, names in config.groups.items():
                known = self.groups.setdefault(title, [])
                known += [n for n in names.split() if n in self.fields and n not in known]
        self.more: list[Parameter] = []

    def typer_command(self, path: str) -> Command:
        """The command as an object of typer.

        Typer passes values as text; the fields validate them and word the errors.

        Args:
            path: Its name, after the name of its group, such as ``batch export``.
        """

        def call(**options: Any) -> int:
            return self._call(path, options)

        panels = {name: title for title, names in self.groups.items() for name in names}
        ordered = dict.fromkeys([*(n for n in self.fields if n not in panels), *panels])
        params = [_parameter(n, self.fields[n], panels.get(n), n in self.hide) for n in ordered]
        own = [n for n in self.fields if not option_of(self.fields[n]).is_argument]
        if own:
            about = CONFIG_HELP.format("max_cost" if "max_cost" in own else own[-1])
            option = typer.Option("--config", metavar="SETTING", help=about)
            params.append(Parameter("config", _BY_NAME, default=None, annotation=_of(list, option)))
        call.__doc__ = self.run.__doc__
        call.__signature__ = Signature([*params, *self.more])  # type: ignore[attr-defined]
        app = typer.Typer(add_completion=False)
        settings = {"token_normalize_func": _with_dashes}
        app.command(path.rsplit(maxsplit=1)[-1], cls=Command, context_settings=settings)(call)
        return cast("Command", get_command(app))

    def _call(self, path: str, options: Values) -> int:
        settings = Settings(self.fields, path, asks_judge=JudgeSpec in self.configs)
        has_settings, entries = "config" in options, options.pop("config", None) or ()
        settings.add_line({n: v for n, v in options.items() if v is not None})
        settings.add_config(*entries)
        if has_settings and not any(map(is_file, entries)):
            settings.add_project()
        values = Values(with_local_files(self.fields, settings.values))
        for note in settings.notes():
            typer.echo(visible(note), err=True)
        for note in _unfinished(values):
            typer.echo(f"warning: {note}", err=True)
        code = self.run(values)
        if "upload_every" in self.fields and values.get("out") and not values.get("dry_run"):
            from ..runs.mirror import bring_up

            bring_up(Path(values["out"]))
        if values.get("dry_run"):  # ``run`` validated the values, so none is a secret
            typer.echo(f"\n{settings.origins_text()}", nl=False)
        return code


def command(
    *configs: type[Config], omit: Sequence[str] = (), hide: Sequence[str] = ()
) -> Callable[[Callable[[Values], int]], ConfigCommand]:
    """Decorator that makes a command of a function, which gets the values that were set."""
    return lambda run: ConfigCommand(run, configs, omit, hide)


def argument(name: str, description: str, kind: Any = Path, **about: Any) -> type[Config]:
    """A configuration with one positional argument; ``about`` goes to ``Option``.

    The argument is required unless ``kind`` allows None.
    """
    field = Field(default=None if type(None) in get_args(kind) else ..., description=description)
    stated = Annotated[kind, Option(is_argument=True, **about)]
    return create_model("Argument", __base__=Config, **cast("Any", {name: (stated, field)}))


_READ = "predictions drafts cases plans rows run executed cheap strong source".split()
"""Settings that may name an unfinished run, which nothing else would report."""


def _unfinished(values: Values) -> Iterator[str]:
    """Warnings about runs that are read, not continued, and that are unfinished."""
    names = [name for name in _READ if name in values and not (name == "run" and "ask" in values)]
    for value in (values[name] for name in names):
        from ..records.run_folder import unfinished_in

        paths = cast("list[str | Path]", value if isinstance(value, list) else [value])
        yield from filter(None, (unfinished_in(Path(path)) for path in paths))


def _with_dashes(token: str) -> str:
    return token.replace("_", "-")


def _of(kind: Any, about: object) -> Any:
    """A parameter's annotation: text, list of texts or flag, with its typer option or argument."""
    return Annotated[list[str] | None if kind is list else kind | None, about]


def flag(name: str, text: str = "", **about: Any) -> Parameter:
    """A parameter without a value; ``about`` goes to ``typer.Option``."""
    option = typer.Option(text or f"--{name}", metavar="", **about)
    return Parameter(name, _BY_NAME, default=None, annotation=_of(bool, option))


def _parameter(name: str, field: FieldInfo, panel: str | None, is_hidden: bool) -> Parameter:  # noqa: FBT001
    option, text, kind = option_of(field), option_name(name, field), kinds(field)[0]
    several: Any = list if get_origin(kind) is tuple or option.is_log else str
    about: Any
    described = option.help or field.description or ""
    if option.is_argument:
        about = typer.Argument(metavar=text, help=described, autocompletion=completer(name, field))
        default = Parameter.empty if field.is_required() else None
        return Parameter(name, _BY_NAME, default=default, annotation=_of(several, about))
    if is_switch(field):
        return flag(name, text, help=described, rich_help_panel=panel, hidden=is_hidden)
    default: Any = field.default
    if isinstance(default, tuple):
        default = ",".join(map(str, cast("tuple[Any, ...]", default)))
    if isinstance(default, bool):
        default = str(default).lower()
    elif isinstance(default, float):
        default = f"{default:g}"
    shown = isinstance(default, str | int) and default != ""
    note = f" [default: {default}]" if shown else ""
    about = typer.Option(
        text,
        metavar=option.metavar or _metavar(field),
        help=described + (" [required]" if field.is_required() else note),
        rich_help_panel=panel,
        hidden=is_hidden,
        autocompletion=completer(name, field),
    )
    return Parameter(name, _BY_NAME, default=None, annotation=_of(several, about))


def _metavar(field: FieldInfo) -> str:
    kind = kinds(field)[0]
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    return _METAVARS.get(get_origin(kind) or kind, "TEXT")


def print_next(*words: str | Path, err: bool = True) -> None:
    """Prints the command that usually follows, ready to be pasted; on standard error by default."""
    words = tuple(word if isinstance(word, str) else path_text(word) for word in words)
    typer.echo(visible(f"next: apbjudge {shlex.join(words)}"), err=err)


def json_text(values: Any) -> str:
    """A result as indented JSON; bytes of a path that are not UTF-8 are written as escapes."""
    import orjson

    try:
        return orjson.dumps(values, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        return orjson.dumps(_encodable(values), option=orjson.OPT_INDENT_2).decode()


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_encodable(k): _encodable(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_encodable(entry) for entry in cast("Sequence[Any]", value)]
    return value


class Output(Config):
    """Format of a result."""

    format: Literal["text", "json"] = Field(default="text", description="Format of the result.")


class AsJson(Protocol):
    """A result of a command with a JSON form."""

    def to_json(self) -> Mapping[str, Any]:
        """The result as JSON values."""
        ...


R = TypeVar("R", bound=AsJson)


def print_result(
    result: R,
    as_document: Callable[[R], Document],
    form: str,
    out: Path | None = None,
    page: Callable[[R], str] | None = None,
) -> None:
    """Prints or writes a result.

    Args:
        result: Result of a command.
        as_document: Converts it to a document, for text and Markdown.
        form: ``text``, ``md``, ``json`` or ``html``.
        out: File for it; None for standard output.
        page: Converts it to HTML; None if the command has no page.
    """
    from ..document.markdown import render_markdown
    from ..document.text import WIDTH, render_text

    if form == "text" and out is None:
        print_document(as_document(result))
        return
    match form:
        case "json":
            text = json_text(result.to_json()) + "\n"
        case "html" if page is not None:
            text = page(result)
        case "md":
            text = render_markdown(as_document(result))
        case _:
            text = render_text(as_document(result), width=WIDTH)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_file(out, text.encode(errors="backslashreplace"))


def print_files(folder: Path, *names: str) -> None:
    """Prints those of the names that are files of a folder, each once."""
    there = [name for name in dict.fromkeys(names) if (folder / name).exists()]
    typer.echo(f"\n{path_text(folder)}/: {' '.join(there)}")


def write_file(path: Path, data: bytes) -> None:
    """Writes a file and names it on stderr, since stdout may be a table or a page."""
    from ..jsonl import write_atomically

    write_atomically(path, data)
    print_written(path)


def print_written(path: Path, more: str = "") -> None:
    """Names a written file or folder on stderr."""
    typer.echo(f"written: {path_text(path)}{more}", err=True)


def print_document(document: Document) -> None:
    """Prints a document in the terminal's width and colours; without a terminal, unwrapped."""
    from ..document.text import WIDTH, render_text

    width, is_terminal = WIDTH, sys.stdout.isatty()
    if is_terminal:
        width = shutil.get_terminal_size().columns
    colour = is_terminal and "NO_COLOR" not in os.environ
    typer.echo(render_text(document, width=width, wraps=is_terminal, colour=colour), nl=False)


def print_problems(problems: Sequence[str]) -> int:
    """Prints unusable rows on stderr; returns the exit code, 1 if there are any."""
    for problem in problems:
        typer.echo(visible(problem), err=True)
    return 1 if problems else 0
