"""Files of a judge's requests, which are answered elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..runs.batch_files import Export, write_requests
from .config import GradeConfig
from .session import RunConfig
from .source import Rows, source_of


def export_requests(
    rows: Rows, out: Path, config: GradeConfig | None = None, **settings: Any
) -> Export:
    """Writes a batch file of every request that the reply cache has no reply to.

    Export, have the file answered, import; the same ``grade`` then has every reply in its cache.
    The judge must have the settings and the address that it will get from ``grade``. An older
    batch file in the place of ``out`` is replaced, another file only with ``overwrite``. ``cache``
    may name the folder of the caches. The size of the file is not limited to what a service takes.
    """
    config = config or GradeConfig(**settings)
    judge, *others = config.judge
    if others:
        raise OptionError("batch export: expected one judge")
    if judge.is_static:
        raise OptionError("--judge: expected a model, got static")
    run = RunConfig(folder=out, source=source_of(rows, config), spec=judge)
    return write_requests(out, run, judge, cache=config.cache, overwrite=config.overwrite)


def export(rows: Rows, options: Mapping[str, Any]) -> Export:
    """Writes the requests of the judge among options; see ``export_requests``."""
    return export_requests(rows, out_of(options), GradeConfig.of(options, escalate=None))


def out_of(options: Mapping[str, Any]) -> Path:
    """The file for the requests that options name.

    Raises:
        OptionError: If they name none.
    """
    if options.get("out") is None:
        raise OptionError("--out: expected a path, got nothing")
    return Path(options["out"])
