"""Files of a judge's requests, which are answered elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..runs.batching import Export, write_requests
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
