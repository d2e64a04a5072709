"""A plug-in for pytest: tests submit rows, and the session ends with one run of all of them.

A test gets a ``Run`` of its own rows at once, to assert conditions on. Its rows are sent with its
report, also by a worker of xdist, so that the controller can grade all rows of the session into
one folder, one record each; by then, the models' replies are in the cache. A test run that does
not use the plug-in imports only this file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from ..judge.session import Run
    from ..judge.summary import Summary
    from ..runs.loop import Events
    from ..statistics.gates import GateResult

OPTIONS = "apbjudge"
"""Name of the ini option, the marker, the plug-in, and the attribute of reports with rows."""
ROWS = "rows.jsonl"
Row = Mapping[str, Any]
Judged = Callable[[Row | Sequence[Row]], "Run"]
_ROWS = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option in the ini file."""
    parser.addini(
        OPTIONS,
        "options of apbjudge grade, one a line, such as judge=openai/gpt-5; also out, fail_under "
        "(any number of times), gate and max_unscored",
        type="linelist",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Adds the marker, and the collector of the session's rows."""
    config.addinivalue_line(
        "markers",
        f"{OPTIONS}(*conditions): conditions such as 'CR >= 0.8' on all rows that the test judges, "
        "whatever its parameters",
    )
    if not hasattr(config, "workerinput"):  # a worker of xdist reports to its controller
        config.pluginmanager.register(_Session(config), f"{OPTIONS}-session")


@pytest.fixture
def judged(request: pytest.FixtureRequest) -> Judged:
    """Judges a row, or several, and adds them to the run of the session.

    Returns:
        A function from a row of ``apbjudge grade`` to its ``Run``, on which ``check`` asserts
        conditions. A row without an id gets the name of the test.
    """
    from ..functions import grade
    from ..statistics.gates import parse_condition

    node: Any = request.node  # its type is not stated
    settings = settings_of(request.config)
    for condition in _conditions(node):
        parse_condition(condition)  # before any call is paid for
    texts = node.stash.setdefault(_ROWS, list[str]())

    def judge(rows: Row | Sequence[Row]) -> Run:
        own: list[dict[str, Any]] = []
        for row in [rows] if isinstance(rows, Mapping) else rows:
            number = len(texts) + 1
            name = node.nodeid if number == 1 else f"{node.nodeid}-{number}"
            own.append({"id": name, **row})
            texts.append(json.dumps(own[-1]))
        return grade(own, events=_events(_print), **settings.options)

    return judge


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, Any]:
    """Sends the rows that a test judged with its report."""
    report: Any = yield
    conditions = _conditions(item)
    if call.when == "call" and (conditions or _ROWS in item.stash):
        setattr(report, OPTIONS, [conditions, item.stash.get(_ROWS, list[str]())])
    return report


def _print(line: str) -> None:
    sys.stderr.write(f"{line}\n")  # pytest shows it if the test fails


def _events(say: Callable[[str], None]) -> Events:
    """Callbacks that print a run's bad rows and notes."""
    from ..errors import visible
    from ..runs.loop import Events

    def tell(text: str) -> None:
        say(visible(text))

    return Events(progress=lambda progress: None, bad_row=tell, note=tell)


def _conditions(item: Any) -> list[str]:
    marks = cast("pytest.Item", item).iter_markers(OPTIONS)
    return [condition for mark in marks for condition in mark.args]


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """The option in the ini file.

    Attributes:
        options: Options of ``grade``.
        fail_under: Conditions on the whole session.
        gate: ``point`` or ``low``: the value or the end of an interval that must meet conditions.
        max_unscored: Largest share of unscored rows, 0 to 1, with which the session passes.
    """

    out: Path
    options: Mapping[str, Any]
    fail_under: Sequence[str]
    gate: Any
    max_unscored: float


def settings_of(config: pytest.Config) -> _Settings:
    """The settings of the session.

    Raises:
        OptionError: If the option is unusable.
    """
    from ..errors import OptionError
    from .judging import check_options

    options, fail_under = dict[str, str](), list[str]()
    for line in config.getini(OPTIONS):
        name, sign, value = line.partition("=")
        if not sign:
            raise OptionError(f"{OPTIONS}: expected lines such as judge=static, got {line!r}")
        if name.strip() == "fail_under":
            fail_under.append(value.strip())
        else:
            options[name.strip()] = value.strip()
    check_options(options, OPTIONS)
    gate, unscored = options.pop("gate", "point"), options.pop("max_unscored", "0")
    if gate not in ("point", "low"):
        raise OptionError(f"{OPTIONS}: gate: expected point or low, got {gate!r}")
    try:
        max_unscored = float(unscored)
    except ValueError:
        expected = "expected a share from 0 to 1"
        raise OptionError(f"{OPTIONS}: max_unscored: {expected}, got {unscored!r}") from None
    return _Settings(
        out=config.invocation_params.dir / options.pop("out", "runs/pytest"),
        options=options,
        fail_under=fail_under,
        gate=gate,
        max_unscored=max_unscored,
    )


@dataclass(eq=False)  # pluggy hashes plug-ins
class _Session:
    """The tests of a session that judged rows, and their outcomes.

    Attributes:
        tests: Conditions and rows by test id; for a repeated test, those of the last attempt.
        lines: Lines of the terminal summary.
    """

    config: pytest.Config
    tests: dict[str, tuple[list[str], list[str]]] = field(
        default_factory=dict[str, tuple[list[str], list[str]]]
    )
    lines: list[str] = field(default_factory=list[str])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collects the rows that a test judged, in this process or another."""
        if not report.skipped and (sent := getattr(report, OPTIONS, None)) is not None:
            self.tests[report.nodeid] = sent

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Grades all rows into one folder and checks the conditions."""
        if not self.tests:
            return
        from ..errors import ApbJudgeError

        try:
            has_failed = self._finish()
        except ApbJudgeError as error:
            self.lines.append(f"error: {error}")
            has_failed = True
        if has_failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints the figures of the session and the outcomes of the conditions."""
        if self.lines:
            terminalreporter.section(OPTIONS)
            for line in self.lines:
                terminalreporter.line(line)

    def _finish(self) -> bool:
        """Grades all rows; True if a condition fails or too many rows are unscored."""
        from ..errors import path_text
        from ..functions import grade
        from ..judge.session import write_summary
        from ..judge.summary_text import summary_text
        from ..statistics.gates import check

        settings, functions = settings_of(self.config), dict[str, _Function]()
        for test, (conditions, rows) in sorted(self.tests.items()):  # tests end in any order
            function = functions.setdefault(test.partition("[")[0], _Function())
            function.conditions |= dict.fromkeys(conditions)
            function.rows |= dict.fromkeys(rows)
        numbers = {
            row: n for n, row in enumerate({r: 0 for f in functions.values() for r in f.rows}, 1)
        }
        folder, run = settings.out, None
        gates: list[GateResult] = []
        if numbers:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ROWS).write_text("".join(f"{row}\n" for row in numbers), encoding="utf-8")
            events = _events(self.lines.append)
            file = folder / ROWS
            run = grade(file, out=folder, overwrite=True, events=events, **settings.options)
            self.lines += summary_text(run.summary, wraps=True).splitlines()
            gates += run.summary.gate(*settings.fail_under, at=settings.gate)
        else:
            gates += check(settings.fail_under, (), at=settings.gate)
        for name, function in functions.items():
            if run is None or not function.rows:
                own = check([*function.conditions], (), at=settings.gate)
            else:
                lines = {numbers[row] for row in function.rows}
                own = _summary_of(run, lines, settings).gate(*function.conditions, at=settings.gate)
            gates += [replace(gate, group={"test": name, **gate.group}) for gate in own]
        if run is not None:
            write_summary(folder, replace(run.summary, gates=tuple(gates)))
        failed = sum(not gate.passed for gate in gates)
        self.lines += ["", *(gate.text for gate in gates)] if gates else []
        self.lines += [f"{failed} of {len(gates)} gates failed"] if failed else []
        unscored = 0.0 if run is None else run.unscored_fraction
        if unscored > settings.max_unscored:
            allowed = f"{settings.max_unscored:.2%} are allowed"
            self.lines.append(f"{unscored:.2%} of the rows are unscored; {allowed}")
        self.lines += [path_text(folder)] if run is not None else []
        return failed > 0 or unscored > settings.max_unscored


@dataclass
class _Function:
    """A test function with all its parameters: conditions and rows, in order, each once."""

    conditions: dict[str, None] = field(default_factory=dict[str, None])
    rows: dict[str, None] = field(default_factory=dict[str, None])


def _summary_of(run: Run, lines: Set[int], settings: _Settings) -> Summary:
    """The summary of the rows at some lines of a run's input."""
    from ..judge.summary import summarize
    from ..records.judgements import judgement_row
    from ..statistics.config import IntervalConfig

    return summarize(
        (judgement_row(each) for each in run.judgements if each.line in lines),
        judge=run.summary.judge,
        weights=run.manifest["weights"],
        intervals=IntervalConfig.of(settings.options).settings,
    )
