"""The kinds of benchmarks, by name and by what a path holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...config import Config
from ...errors import OptionError, guarded, load_plugin
from .base import Benchmark
from .execution.benchmark import HostedBenchmark
from .execution.host import Host
from .execution.sandbox import HOSTED, Isolation
from .own_file import open_file
from .planbench.config import EpisodeConfig
from .planbench.tasks import PlanBenchTasks, holds_data, open_data
from .slate.config import SlateConfig
from .slate.tasks import SlateTasks, holds_cases, open_cases

ENTRY_POINT_GROUP = "apbjudge.benchmarks"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkKind:
    """A kind of benchmark; installed packages add theirs as entry points ``apbjudge.benchmarks``.

    ``simulate`` takes kinds with ``open``, whose code runs in this process, and ``branch`` those of
    them that open a ``PlanBenchmark``; ``execute`` those with ``adapter``, whose code runs in a
    sandbox.

    Attributes:
        name: As on the command line.
        holds: Test of a path for a benchmark of this kind, by its content.
        open: Opens it with its settings by name; raises InputError or OptionError.
        settings: Descriptions of settings by name.
        adapter: Program that the benchmark's process runs; see ``execution/hosted``.
        fixed: Settings of the adapter that the name fixes.
    """

    name: str
    holds: Callable[[Path], bool] = lambda path: False
    open: Callable[[Path, Mapping[str, str]], Benchmark] | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    adapter: Path | None = None
    fixed: Mapping[str, str] = field(default_factory=dict[str, str])


def _settings(config: type[Config]) -> dict[str, str]:
    return {name: field.description or "" for name, field in config.model_fields.items()}


BENCHMARK_KINDS: tuple[BenchmarkKind, ...] = (
    BenchmarkKind(
        name=PlanBenchTasks.name,
        holds=holds_data,
        open=open_data,
        settings=_settings(EpisodeConfig),
    ),
    BenchmarkKind(
        name=SlateTasks.name,
        holds=holds_cases,
        open=open_cases,
        settings=_settings(SlateConfig),
        adapter=HOSTED / "slate.py",
    ),
    *(
        BenchmarkKind(name=f"tau2-{each}", adapter=HOSTED / "tau2.py", fixed={"domain": each})
        for each in ("airline", "retail", "telecom")
    ),
    BenchmarkKind(name="bfcl", adapter=HOSTED / "bfcl.py"),
    BenchmarkKind(name="toolsandbox", adapter=HOSTED / "toolsandbox.py"),
)
"""The shipped ones: PlanBench-XL and SLATE in this process; SLATE and the others in a sandbox."""


def open_benchmark(
    path: Path, name: str | None = None, options: Mapping[str, str] = {}
) -> Benchmark:
    """Opens a benchmark whose code runs in this process.

    Args:
        path: A file or folder; of a Python file the class may follow, as in ``lamp.py:Lamp``.
        name: Its kind; None detects a shipped kind by content.
        options: Its settings by name.

    Raises:
        OptionError: If there is no such kind, none fits, or a setting is unknown or unusable.
        InputError: If its files are missing or contradict each other.
        PluginError: If the code of an installed kind fails.
    """
    if name is not None:
        kind = _kind(name, "--kind", " or an installed one", lambda kind: kind.open is not None)
    elif program := re.fullmatch(r"(.+\.py)(?::(\w*))?", str(path)):
        return open_file(Path(program[1]), program[2] or "", options)
    elif (kind := next((each for each in BENCHMARK_KINDS if each.holds(path)), None)) is None:
        known = ", ".join(kind.name for kind in BENCHMARK_KINDS if kind.open is not None)
        raise OptionError(
            f"BENCHMARK: expected {known} (--kind names others) or a .py file, got {path}"
        )
    if unknown := sorted(options.keys() - kind.settings.keys()):
        settings = ", ".join(kind.settings) or "no settings"
        raise OptionError(f"--with: expected {settings}, got {unknown[0]!r}")
    assert kind.open is not None  # noqa: S101 - of the kinds here all have one
    return guarded(f"environment {kind.name}", kind.open)(path, options)


def _kind(
    name: str, option: str, others: str, works: Callable[[BenchmarkKind], bool]
) -> BenchmarkKind:
    """The kind of a name, shipped or installed; raises OptionError if none works so."""
    shipped = {kind.name: kind for kind in BENCHMARK_KINDS if works(kind)}
    kind = shipped.get(name) or load_plugin(ENTRY_POINT_GROUP, name, BenchmarkKind, option)
    if kind is None or not works(kind):
        raise OptionError(f"{option}: expected {', '.join(shipped)}{others}, got {name!r}")
    return kind


def open_hosted(
    name: str,
    options: Mapping[str, str] = {},
    isolation: Isolation | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> HostedBenchmark:
    """Loads a benchmark in a process of its own; leave it as a context manager.

    Args:
        name: Its kind, or the path of its program.
        options: Its settings by name.
        isolation: Sandbox and limits of its episodes; None for the defaults.
        warn: Receives the reason if there is no sandbox.

    Raises:
        OptionError: If there is no such benchmark, its package is not installed, a setting is
            unusable, or there is no sandbox though one is required.
        InputError: If it can't be loaded.
    """
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise OptionError(f"BENCHMARK: expected a program, got no file {name!r}")
        kind = BenchmarkKind(name=Path(name).stem, adapter=Path(name))
    else:
        others = ", an installed one or a .py file"
        kind = _kind(name, "BENCHMARK", others, lambda kind: kind.adapter is not None)
    if fixed := sorted(options.keys() & kind.fixed.keys()):
        raise OptionError(f"--with: {fixed[0]} is fixed by the name {name}")
    assert kind.adapter is not None  # noqa: S101 - of the kinds here all have one
    host = Host(kind.adapter, {**kind.fixed, **options}, isolation or Isolation(), warn)
    try:
        return HostedBenchmark(kind.name, host, options)
    except BaseException:
        host.close()
        raise
