"""Settings of a command, and where each comes from: command line, ``--config``, project file."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast, get_args, get_origin

from pydantic.fields import FieldInfo

from ..config import PROJECT, is_negated, kinds, option_name, option_of, unknown_name
from ..errors import OptionError, visible
from ..remote import address_in

Values = dict[str, Any]
"""Values that the user set, by field name; what is missing has its default."""

ASKED = ("judge", "model", "ask", "judges")
MODELS = (*ASKED, "escalate", "critic", "user_model")
"""Settings that name models. A command has one of ``ASKED``; ``api_base`` is its address."""
ENDPOINT = ("api_base", "api_base_file", "params")
"""Settings of a model's address: ``params`` may hold addresses of other providers."""
_ONLY_NAMED = ("overwrite", "take_over", "python", "sandbox")
"""Settings that can delete data or start programs: the project file must not have them."""


class Settings:
    """Values that the user set for a command. Values added first take precedence.

    Args:
        fields: The command's settings.
        command: Its name, after that of its group; the name of its own table in a file.
        asks_judge: True if a file's table ``[judge]`` is read.

    Attributes:
        values: The values by field name.
        origins: The origin of each value, in words.
        from_project: The project file of each value that comes from it.
    """

    def __init__(
        self, fields: Mapping[str, FieldInfo], command: str = "", *, asks_judge: bool = False
    ) -> None:
        self.fields, self.command, self.asks_judge = fields, command, asks_judge
        self.values: Values = {}
        self.origins: dict[str, str] = {}
        self.from_project: dict[str, Path] = {}
        self._left_out: list[str] = []

    def _add(self, values: Values, origin: str) -> None:
        self.origins = dict.fromkeys(values, origin) | self.origins
        self.values = values | self.values

    def add_line(self, options: Values) -> None:
        """Adds the options of the command line, which are texts, lists of texts, or flags."""
        for name, value in options.items():
            field = self.fields[name]
            is_off = value is True and is_negated(name, field)
            self._add({name: False if is_off else _typed(value, field)}, "command line")

    def add_config(self, *entries: str) -> None:
        """Adds ``KEY=VALUE`` settings and TOML files; later ones win.

        A key is the name of a field or of its option, such as ``no_cache``.

        Raises:
            OptionError: If an entry is neither, a file is not TOML, or a key is unknown.
        """
        for entry in reversed(entries):
            where = f"--config {entry}"
            if is_file(entry):
                try:
                    self._add_file(*_tables(Path(entry).read_bytes(), where), where)
                except OSError as error:
                    raise OptionError(f"{where}: {error.strerror}") from None
            elif "=" in entry:
                key, _, text = entry.partition("=")
                values = {key.strip(): toml_value(text.strip())}
                self._add(_by_field(values, self.fields), where)
            else:
                raise OptionError(f"--config: expected KEY=VALUE or a .toml file, got {entry!r}")

    def add_project(self) -> None:
        """Adds the settings of the project file, if there is one: see ``find_project``.

        Raises:
            OptionError: If it can't be trusted or read, or has a setting that it must not have.
        """
        if project := find_project():
            self._add_file(project[1], {}, str(project[0]), project[0])

    def _add_file(
        self, tables: Mapping[str, Values], rest: Values, where: str, project: Path | None = None
    ) -> None:
        """Adds the command's own table, then entries outside of tables, then ``[judge]``.

        ``[judge]`` describes one or several judges. If the user named other models, it is left
        out, and so are the addresses in the command's table: no key is sent to an address that
        was written for another model.
        """
        from ..judge.config import JudgeSpec

        own_name, judge_name = f"{where} [{self.command}]", f"{where} [judge]"
        own, judge = _by_field(tables.get(self.command, {}), self.fields, own_name), Values()
        if self.asks_judge:
            judge = _by_field(tables.get("judge", {}), JudgeSpec.model_fields, judge_name)
        judges = _listed(judge.pop("model", None))
        models = [*judges, *_models(own, ASKED)]
        if others := [each for each in _models(self.values, ASKED) if each not in models]:
            left_out = [name for name in ENDPOINT if own.pop(name, None)]
            if left_out or judge:
                names = " ".join([*left_out, *(["[judge]"] if judge else [])])
                self._left_out.append(f"{where}: {names} not used for {others[0]}")
            judge = {}
        elif judges and "judge" in self.fields:
            judge["judge"] = judges
        judge = {name: value for name, value in judge.items() if name in self.fields}
        rest = _by_field(rest, self.fields, where)
        for values, origin in ((own, own_name), (rest, where), (judge, judge_name)):
            if project is not None:
                self.from_project |= dict.fromkeys(values.keys() - self.values.keys(), project)
                for name in values:
                    values[name] = self._inside(values[name], name, origin, project.parent)
            self._add(values, origin)

    def _inside(self, value: Any, name: str, where: str, folder: Path) -> Any:
        """A value of the project file; paths are relative to its folder and must stay in it."""
        if name in _ONLY_NAMED:
            raise OptionError(f"{where}: {name}: expected on the command line only")
        if isinstance(value, list):
            return [self._inside(v, name, where, folder) for v in cast("list[Any]", value)]
        kind = str(self.fields[name].annotation)
        may_be_path = name in ("rubric", "prompts") and ".toml" in str(value)
        if not isinstance(value, str) or not (may_be_path or "Path" in kind):
            return value
        before, is_named, text = value.partition("=") if "tuple[tuple" in kind else ("", "", value)
        is_elsewhere = address_in(value)  # a URL, which the user did not ask to call
        if is_elsewhere or not Path(os.path.realpath(folder / text)).is_relative_to(
            os.path.realpath(folder)
        ):
            raise OptionError(
                f"{where}: {name}: expected a path in the folder of the file, got {value!r}; give "
                "others on the command line"
            )
        return f"{before}{is_named}{os.path.relpath(folder / text)}"

    def notes(self) -> Iterator[str]:
        """Notes on models and addresses of the project file, keys sent, and left-out settings."""
        models = _models(self.values, MODELS)
        ours = [name for name in (*MODELS, *ENDPOINT) if name in self.from_project]
        if ours and models:
            from ..llm.model_spec import KEYS, ModelSpec

            more = {name: self.values[name] for name in ENDPOINT if name in self.values}
            keys: list[str] = []
            for model in models:
                spec = ModelSpec(model=model, **more)  # refuses values that must not be printed
                provider = spec.model.partition("/")[0]
                keys.append(KEYS.get(provider, f"{provider.upper()}_API_KEY"))
            stated = ", ".join(f"{name} {_text(self.values[name])}" for name in ours)
            sent = ", ".join(key for key in dict.fromkeys(keys) if key in os.environ)
            sent = sent and f"; keys that are sent: {sent}"
            yield f"note: {self.from_project[ours[0]]} sets {stated}{sent}"
        yield from (f"note: {text}" for text in self._left_out)

    def origins_text(self) -> str:
        """One line for each value that was set, with its origin."""
        rows = [(n, _text(v), self.origins[n]) for n, v in self.values.items() if n != "dry_run"]
        first, second = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
        lines = [f"  {name:<{first}}  {text:<{second}}  {where}" for name, text, where in rows]
        return "\n".join(["settings, and where they come from; others have defaults", *lines, ""])


def is_file(entry: str) -> bool:
    """True if an entry of ``--config`` names a file."""
    return entry.endswith(".toml") and "=" not in entry


def find_project() -> tuple[Path, Mapping[str, Values]] | None:
    """The project file and its tables: the nearest one up to the repository's root, or home.

    Outside both, only the working directory is searched.

    Raises:
        OptionError: If another user owns it, anybody can write it, or it can't be read.
    """
    folders: list[Path] = []
    with suppress(OSError):  # the working directory was deleted
        folders = [Path.cwd(), *Path.cwd().parents]
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111  # Path.home() may raise
    ends = [n for n, each in enumerate(folders) if str(each) == home or (each / ".git").exists()]
    for path in (each / PROJECT for each in folders[: ends[0] + 1 if ends else 1]):
        try:
            with open(path, "rb", opener=_open) as file:
                facts = os.fstat(file.fileno())
                why = "anybody can write it" if facts.st_mode & stat.S_IWOTH else ""
                why = f"it belongs to user {facts.st_uid}" if facts.st_uid != os.geteuid() else why
                why = why if stat.S_ISREG(facts.st_mode) else "it is no file"
                data = b"" if why else file.read()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise OptionError(f"{path}: {error.strerror}") from None
        if why:
            raise OptionError(f"{path}: not read, since {why}; --config FILE.toml names another")
        tables, rest = _tables(data, str(path))
        if rest:
            raise unknown_name(f"{path}: expected tables, ", next(iter(rest)), _table_names())
        return path, tables
    return None


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # does not wait for a writer if it is a pipe


def project_judges() -> list[str]:
    """The models in the table ``[judge]`` of the project file; empty if the file is unusable."""
    with suppress(OptionError):
        if project := find_project():
            return list(map(str, _listed(project[1].get("judge", {}).get("model"))))
    return []


def _table_names() -> list[str]:
    from .main import COMMANDS

    return ["judge", *COMMANDS]


def _tables(data: bytes, where: str) -> tuple[dict[str, Values], Values]:
    """The tables ``[judge]`` and of commands by name, and all other entries.

    Raises:
        OptionError: If the data is not TOML.
    """
    try:
        values: Values = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f"{where}: {error}") from None
    names, tables, rest = _table_names(), dict[str, Values](), Values()
    for name, value in values.items():
        (tables if name in names and isinstance(value, dict) else rest)[name] = value
    return tables, rest


def _models(values: Values, names: Iterable[str]) -> list[Any]:
    return [each for name in names for each in _listed(values.get(name))]


def _listed(value: Any) -> list[Any]:
    """One or several values as a list; empty for None."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    return [] if value is None else [value]


def _text(value: Any) -> str:
    """A value as text, in the form of the command line."""
    if isinstance(value, list):
        return ", ".join(map(_text, cast("list[Any]", value)))
    return str(value).lower() if isinstance(value, bool) else visible(str(value))


def _typed(value: Any, field: FieldInfo) -> Any:
    """Reads numbers, booleans and tables as in TOML; anything else is a path or text."""
    kind = kinds(field)[0]
    if option_of(field).is_log:
        from ..records.files import log_path

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


def _by_field(values: Values, fields: Mapping[str, FieldInfo], where: str = "--config") -> Values:
    """Values by field name; their keys may also be names of options.

    Raises:
        OptionError: If a key is unknown.
    """
    options = {
        option_name(name, field).removeprefix("--").replace("-", "_"): name
        for name, field in fields.items()
        if not option_of(field).is_argument
    }
    result: Values = {}
    for key, value in values.items():
        name = options.get(key, key)
        if name not in options.values():
            raise unknown_name(f"{where}: expected ", key, sorted(options))
        is_off = key != name and is_negated(name, fields[name])
        if is_off and not isinstance(value, bool):
            raise OptionError(f"{where} {key}: expected true or false, got {value!r}")
        result[name] = not value if is_off else value
    return result
