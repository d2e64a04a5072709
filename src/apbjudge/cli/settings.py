"""Settings of a command, and where each comes from: command line, ``--config``, project file."""

from __future__ import annotations

import difflib
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast, get_args, get_origin

from pydantic.fields import FieldInfo

from ..config import STATIC, is_negated, kinds, option_name, option_of
from ..errors import OptionError, visible

Values = dict[str, Any]
"""What the user set, by field name; what is missing has its default."""

PROJECT = "apbjudge.toml"
"""The project file: a ``--config`` file that is found rather than named."""
ASKED = ("judge", "model", "ask", "judges")
MODELS = (*ASKED, "escalate", "critic", "user_model")
"""Settings that name models; of the first ones a command has one, which ``api_base`` is about."""
ENDPOINT = ("api_base", "params")
"""Settings that say where a model is asked: ``params`` may hold addresses of other providers."""
_ONLY_NAMED = ("overwrite", "python", "sandbox")
"""Settings that destroy or start something: a file that nobody named does not have them."""


class Settings:
    """What the user set for a command. What is added first counts most.

    Args:
        fields: The command's settings.
        command: Its name, after that of its group; a file's table of that name is its own.
        asks_judge: Whether a file's table ``[judge]`` is read.

    Attributes:
        values: The values by field name.
        origins: Where each comes from, in words.
    """

    def __init__(
        self, fields: Mapping[str, FieldInfo], command: str = "", *, asks_judge: bool = False
    ) -> None:
        self.fields, self.command, self.asks_judge = fields, command, asks_judge
        self.values: Values = {}
        self.origins: dict[str, str] = {}
        self._project: Path | None = None
        self._found: set[str] = set()
        self._left_out: list[str] = []

    def _add(self, values: Values, origin: str) -> None:
        for name, value in values.items():
            if name not in self.values:
                self.values[name], self.origins[name] = value, origin

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
            OptionError: If an entry is neither, a file is no TOML, or a key is unknown.
        """
        for entry in reversed(entries):
            if is_file(entry):
                try:
                    data = Path(entry).read_bytes()
                except OSError as error:
                    raise OptionError(f"--config: {entry}: {error.strerror}") from None
                tables, rest = _tables(data, f"--config: {entry}")
                own, judge = self._own_tables(tables, entry)
                self._add(own, f"{entry} [{self.command}]")
                self._add(dict(_by_field(rest, self.fields)), entry)
                self._add(judge, f"{entry} [judge]")
            elif "=" in entry:
                key, _, text = entry.partition("=")
                values = {key.strip(): toml_value(text.strip())}
                self._add(dict(_by_field(values, self.fields)), f"--config {entry}")
            else:
                raise OptionError(f"--config: expected KEY=VALUE or a .toml file, got {entry!r}")

    def add_project(self) -> None:
        """Adds what the project file says, if there is one: see ``find_project``.

        Raises:
            OptionError: If it can't be trusted or read, or has a setting that it must not have.
        """
        if (found := find_project()) is None:
            return
        path, tables = found
        self._project = path
        own, judge = self._own_tables(tables, str(path))
        for values, table in ((own, self.command), (judge, "judge")):
            where = f"{path} [{table}]"
            if refused := [name for name in _ONLY_NAMED if name in values]:
                raise OptionError(f"{where}: {refused[0]}: expected on the command line only")
            self._found |= values.keys() - self.values.keys()
            self._add({n: self._beside(v, n, where) for n, v in values.items()}, where)

    def _own_tables(self, tables: Mapping[str, Values], where: str) -> tuple[Values, Values]:
        """The command's own table, and ``[judge]``.

        The latter describes one judge, or several: where other models are named, it is left out,
        and so are addresses in the command's table. A key is sent to no address that stands
        there for another model.
        """
        from ..judge.config import JudgeSpec

        named = [each for name in ASKED for each in _listed(self.values.get(name))]
        table = f"{where} [{self.command}]"
        own = dict(_by_field(tables.get(self.command, {}), self.fields, table))
        judge: Values = {}
        if self.asks_judge:
            of_judge = tables.get("judge", {})
            judge = dict(_by_field(of_judge, JudgeSpec.model_fields, f"{where} [judge]"))
        judges = _listed(judge.pop("model", None))
        models = [*judges, *(each for name in ASKED for each in _listed(own.get(name)))]
        if others := [each for each in named if each not in models]:
            left_out = [name for name in ENDPOINT if own.pop(name, None)]
            left_out += ["[judge]"] if judge else []
            if left_out:
                self._left_out.append(f"{where}: {' '.join(left_out)} not used for {others[0]}")
            return own, {}
        if judges and "judge" in self.fields:
            judge["judge"] = judges
        return own, {name: value for name, value in judge.items() if name in self.fields}

    def _beside(self, value: Any, name: str, where: str) -> Any:
        """A value in which paths start at the project file's folder, which they may not leave."""
        if isinstance(value, list):
            return [self._beside(each, name, where) for each in cast("list[Any]", value)]
        is_path = "Path" in str(self.fields[name].annotation)
        is_path = is_path or (name in ("rubric", "prompts") and ".toml" in str(value))
        if not isinstance(value, str) or not is_path or self._project is None:
            return value
        folder = self._project.parent
        path = os.path.realpath(folder / value)
        if not Path(path).is_relative_to(os.path.realpath(folder)):
            raise OptionError(
                f"{where}: {name}: expected a path in the folder of the file, got {value!r}; give "
                "others on the command line"
            )
        return os.path.relpath(folder / value)

    def notes(self) -> Iterator[str]:
        """What is said first: where prompts go, and with which key, by the project file alone."""
        ours = [name for name in (*MODELS, *ENDPOINT) if name in self._found]
        if said := ", ".join(f"{name} {_text(self.values[name])}" for name in ours):
            self._check_endpoints()
            models = [each for name in MODELS for each in _listed(self.values.get(name))]
            keys = dict.fromkeys(key for each in models if (key := key_of(each)) in os.environ)
            sent = f"; keys that are sent: {', '.join(keys)}" if keys else ""
            yield f"note: {self._project} sets {said}{sent}"
        yield from (f"note: {text}" for text in self._left_out)

    def origins_text(self) -> str:
        """Each value that was set, and where it comes from, a line each."""
        rows = [(n, _text(v), self.origins[n]) for n, v in self.values.items() if n != "dry_run"]
        widths = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
        lines = (f"  {n:<{widths[0]}}  {v:<{widths[1]}}  {where}" for n, v, where in rows)
        return "\n".join(["settings, and where they come from; others have defaults", *lines, ""])

    def _check_endpoints(self) -> None:
        """Refuses addresses and parameters that hold a secret, before they are printed."""
        from ..llm.model_spec import ModelSpec

        more = {name: self.values[name] for name in ENDPOINT if name in self.values}
        for name in MODELS:
            for model in _listed(self.values.get(name)):
                ModelSpec(model=model, **more)
        ModelSpec(model=STATIC, **more)


def is_file(entry: str) -> bool:
    """Whether an entry of ``--config`` names a file."""
    return entry.endswith(".toml") and "=" not in entry


def find_project() -> tuple[Path, Mapping[str, Values]] | None:
    """The project file and its tables: the nearest one up to the repository's root, or home.

    Outside both it is looked for in the working directory alone.

    Raises:
        OptionError: If it is someone else's, anybody can write it, or it can't be read.
    """
    try:
        here = Path.cwd()
    except OSError:
        return None
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # Path.home() raises without one
    folders = [here, *here.parents]
    ends = [n for n, each in enumerate(folders) if each == home or (each / ".git").exists()]
    for folder in folders[: ends[0] + 1 if ends else 1]:
        path = folder / PROJECT
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise OptionError(f"{path}: {error.strerror}") from None
        with open(descriptor, "rb") as file:  # noqa: PTH123
            facts = os.fstat(descriptor)
            is_other = facts.st_uid != os.geteuid()
            if is_other or facts.st_mode & stat.S_IWOTH or not stat.S_ISREG(facts.st_mode):
                why = f"it belongs to user {facts.st_uid}" if is_other else "anybody can write it"
                why = why if stat.S_ISREG(facts.st_mode) else "it is no file"
                raise OptionError(f"{path}: not read, since {why}; --config FILE.toml names another")
            tables, rest = _tables(file.read(), str(path))
        if rest:
            key = next(iter(rest))
            near = difflib.get_close_matches(key, _table_names(), n=1)
            hint = f" (did you mean [{near[0]}]?)" if near else ""
            known = ", ".join(_table_names())
            raise OptionError(f"{path}: expected tables among {known}, got {key!r}{hint}")
        return path, tables
    return None


def project_judges() -> list[str]:
    """The models in the table ``[judge]`` of the project file; none where it is unusable."""
    with suppress(OptionError):
        if found := find_project():
            return list(map(str, _listed(found[1].get("judge", {}).get("model"))))
    return []


def key_of(model: str) -> str:
    """The variable with a provider's key."""
    from ..llm.direct import KEYS

    provider = model.partition("/")[0]
    return KEYS.get(provider, f"{provider.upper()}_API_KEY")


def _table_names() -> list[str]:
    from .main import COMMANDS

    return ["judge", *COMMANDS]


def _tables(data: bytes, where: str) -> tuple[dict[str, Values], Values]:
    """The tables for judges and commands by name, such as ``batch export``, and what else is there.

    Raises:
        OptionError: If it is no TOML.
    """
    try:
        values: Values = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f"{where}: {error}") from None
    names, tables, rest = _table_names(), dict[str, Values](), Values()
    for key, value in values.items():
        parts = {key: value}
        if isinstance(value, dict) and key not in names:
            within = cast("Values", value)
            inner = {f"{key} {name}": each for name, each in within.items()}
            parts = inner if inner.keys() & {*names} else parts
        for name, each in parts.items():
            is_table = name in names and isinstance(each, dict)
            (tables if is_table else rest)[name] = each
    return tables, rest


def _listed(value: Any) -> list[Any]:
    """One or several values as a list; none for None."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    return [] if value is None else [value]


def _text(value: Any) -> str:
    """A value as the command line takes it."""
    if isinstance(value, list):
        return ", ".join(map(_text, cast("list[Any]", value)))
    return str(value).lower() if isinstance(value, bool) else visible(str(value))


def _typed(value: Any, field: FieldInfo) -> Any:
    """Numbers, truth values and tables are read as in TOML; anything else is a path or text."""
    kind = kinds(field)[0]
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


def _by_field(
    values: Values, fields: Mapping[str, FieldInfo], where: str = "--config"
) -> Iterator[tuple[str, Any]]:
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
            raise OptionError(f"{where}: expected one of {known}, got {key!r}{hint}")
        if key != name and is_negated(name, fields[name]):
            if not isinstance(value, bool):
                raise OptionError(f"{where} {key}: expected true or false, got {value!r}")
            yield name, not value
        else:
            yield name, value
