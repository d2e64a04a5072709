"""Commands made from configurations: each field is an option and a key of ``--config``."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, cast, get_args, get_origin

import click
from click.core import ParameterSource
from pydantic import Field
from pydantic.fields import FieldInfo

from ..config import Config, check_files, is_negated, is_switch, kinds, option_name, option_of
from ..errors import OptionError, visible

Values = dict[str, Any]
"""What the user set, by field name; what is missing has its default."""

C = TypeVar("C", bound=Config)

CONFIG_HELP = "KEY=VALUE or a TOML file; keys are names of options, such as {}."
_METAVARS = {int: "INTEGER", float: "NUMBER", bool: "true|false", Path: "PATH", dict: "TABLE"}


class ConfigCommand(click.Command):
    """A command whose parameters are the fields of its configurations.

    Args:
        run: Gets the values that were set, and returns the exit code; its docstring is the help.
        configs: The configurations; a field that two of them have is one option.
        omit: Fields that are no options.
        hide: Fields that are accepted, so that commands can share a file of settings, but that
            the help does not list.
    """

    def __init__(
        self,
        run: Callable[[Values], int],
        configs: Sequence[type[Config]],
        omit: Sequence[str],
        hide: Sequence[str],
    ) -> None:
        self.run = run
        self.fields = {
            name: field
            for config in configs
            for name, field in config.model_fields.items()
            if name not in omit
        }
        self.groups: dict[str, list[str]] = {}
        for config in configs:
            for title, names in config.groups.items():
                known = self.groups.setdefault(title, [])
                known += [n for n in names.split() if n in self.fields and n not in known]
        params: list[click.Parameter] = [_parameter(*item) for item in self.fields.items()]
        for param in params:
            if isinstance(param, click.Option) and param.name in hide:
                param.hidden = True
        own = [param.name for param in params if isinstance(param, click.Option)]
        known = CONFIG_HELP.format("max_cost" if "max_cost" in own else (own or ["out"])[-1])
        params.append(click.Option(["--config"], multiple=True, metavar="SETTING", help=known))
        super().__init__(
            name=None,
            params=params,
            callback=self._call,
            help=run.__doc__,
            context_settings={"token_normalize_func": _with_dashes},
        )

    def _call(self, config: Sequence[str] = (), **options: Any) -> None:
        ctx = click.get_current_context()
        values = read_config(config, self.fields)
        for name, value in options.items():
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                values[name] = _typed(value, self.fields[name])
        check_files(self.fields, values)
        for note in _unfinished(values):
            click.echo(f"warning: {note}", err=True)
        ctx.exit(self.run(values))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Everyday options come first, then each group under its heading."""
        grouped = {name for names in self.groups.values() for name in names}
        params = {param.name: param for param in self.get_params(ctx)}
        arguments = [
            (option_name(name, field), field.description or "")
            for name, field in self.fields.items()
            if option_of(field).is_argument
        ]
        everyday = [
            record
            for name, param in params.items()
            if name not in grouped
            and isinstance(param, click.Option)
            and (record := param.get_help_record(ctx))
        ]
        sections = {"Arguments": arguments, "Options": everyday}
        for title, names in self.groups.items():
            sections[title] = [
                record for name in names if (record := params[name].get_help_record(ctx))
            ]
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def command(
    *configs: type[Config], omit: Sequence[str] = (), hide: Sequence[str] = ()
) -> Callable[[Callable[[Values], int]], ConfigCommand]:
    """Makes a command of a function that takes the values that were set."""
    return lambda run: ConfigCommand(run, configs, omit, hide)


def take(config: type[C], values: Values, **more: Any) -> C:
    """A configuration from the values that belong to it.

    Raises:
        OptionError: If one of them is unusable.
    """
    return config(**{n: v for n, v in values.items() if n in config.model_fields} | more)


_READ = "predictions drafts cases plans rows run executed cheap strong source".split()
"""Settings that may be runs, of which nothing else says that they are not finished."""


def _unfinished(values: Values) -> Iterator[str]:
    """Says of each run that is read, and not continued, that it is not finished."""
    names = [name for name in _READ if name in values and not (name == "run" and "ask" in values)]
    for value in (values[name] for name in names):
        from ..records.run_folder import unfinished_in

        paths = cast("list[str | Path]", value if isinstance(value, list) else [value])
        yield from filter(None, (unfinished_in(Path(path)) for path in paths))


def _with_dashes(token: str) -> str:
    return token.replace("_", "-")


def _parameter(name: str, field: FieldInfo) -> click.Parameter:
    option, text, kind = option_of(field), option_name(name, field), kinds(field)[0]
    several = get_origin(kind) is tuple or option.is_log
    if option.is_argument:
        needed = field.is_required()
        return click.Argument(
            [name], nargs=-1 if several else 1, required=needed, metavar=text, type=str
        )
    described = option.help or field.description or ""
    if is_switch(field):
        value = not is_negated(name, field)
        return click.Option(
            [text, name], is_flag=True, flag_value=value, default=None, help=described
        )
    default: Any = field.default
    if isinstance(default, tuple):
        default = ",".join(map(str, cast("tuple[Any, ...]", default)))
    if isinstance(default, bool):
        default = str(default).lower()
    elif isinstance(default, float):
        default = f"{default:g}"
    shown = isinstance(default, str | int) and default != ""
    note = f" [default: {default}]" if shown else ""
    note = " [required]" if field.is_required() else note
    return click.Option(
        [text, name],
        type=str,
        multiple=several,
        metavar=option.metavar or _metavar(field),
        help=f"{described}{note}",
    )


def _metavar(field: FieldInfo) -> str:
    kind = kinds(field)[0]
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    return _METAVARS.get(get_origin(kind) or kind, "TEXT")


def _typed(value: Any, field: FieldInfo) -> Any:
    """Numbers, truth values and tables are read as in TOML; anything else is a path or text."""
    kind = kinds(field)[0]
    if option_of(field).is_log:
        from ..trajectories.files import log_path

        return log_path(value)
    if not isinstance(value, str):
        return [Path(each) for each in value] if get_args(kind)[:1] == (Path,) else value
    if kind is Path:
        return Path(value)
    return toml_value(value) if {kind, get_origin(kind)} & {int, float, bool, dict} else value


def toml_value(text: str) -> Any:
    """A TOML value; bare words are strings."""
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def read_config(entries: Sequence[str], fields: Mapping[str, FieldInfo]) -> Values:
    """Reads ``KEY=VALUE`` settings and TOML files; later ones win.

    A key is the name of a field or of its option, such as ``no_cache``.

    Raises:
        OptionError: If an entry is neither, a file is no TOML, or a key is unknown.
    """
    values: Values = {}
    for entry in entries:
        if entry.endswith(".toml") and "=" not in entry:
            values |= _toml(Path(entry))
        elif "=" in entry:
            key, _, text = entry.partition("=")
            values[key.strip()] = toml_value(text.strip())
        else:
            raise OptionError(f"--config: expected KEY=VALUE or a .toml file, got {entry!r}")
    return dict(_by_field(values, fields))


def _by_field(values: Values, fields: Mapping[str, FieldInfo]) -> Iterator[tuple[str, Any]]:
    options = {
        option_name(name, field).removeprefix("--").replace("-", "_"): name
        for name, field in fields.items()
        if not option_of(field).is_argument
    }
    for key, value in values.items():
        name = options.get(key, key)
        if name not in options.values():
            near = difflib.get_close_matches(key, options, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            known = ", ".join(sorted(options))
            raise OptionError(f"--config: expected one of {known}, got {key!r}{hint}")
        if key != name and is_negated(name, fields[name]):
            if not isinstance(value, bool):
                raise OptionError(f"--config {key}: expected true or false, got {value!r}")
            yield name, not value
        else:
            yield name, value


def _toml(path: Path) -> Values:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"--config: {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f"--config: {path}: {error}") from None


def shown(path: Path) -> str:
    """A path for a terminal, whatever bytes it has."""
    return os.fsencode(path).decode(errors="backslashreplace")


def json_text(values: Any) -> str:
    """A result as indented JSON; bytes of a path that are no UTF-8 are written as escapes."""
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
    """How a result is printed."""

    format: Literal["text", "json"] = Field(default="text", description="How to print the result.")


class _Result(Protocol):
    @property
    def problems(self) -> Sequence[str]: ...

    def to_json(self) -> Mapping[str, Any]: ...


R = TypeVar("R", bound=_Result)


def print_result(result: R, as_text: Callable[[R], str], output: Output) -> int:
    """Prints a result, and then as ``print_problems`` does what could not be used."""
    if output.format == "json":
        click.echo(json_text(result.to_json()))
    else:
        click.echo(as_text(result), nl=False)
    return print_problems(result.problems)


def print_problems(problems: Sequence[str]) -> int:
    """Prints the rows that could not be used; the exit code is 1 if there are any."""
    for problem in problems:
        click.echo(visible(problem), err=True)
    return 1 if problems else 0
