"""Changes one thing at a time in some files, and lists which tests fail for which change.

    python benchmarks/mutation.py src/apbjudge/statistics/scores.py
    python benchmarks/mutation.py src/apbjudge/statistics/*.py --sample 20 --json mutants.json

Tests are those of the folder that mirrors the file's, or ``--tests``. They are run once under a
trace, which shows the lines that each of them reaches. For each mutant a forked process replaces
the code of one function and runs every test that reaches the changed line; tests slower than
``--slow`` seconds only where no other one kills the mutant. A test kills it as well if it takes
ten times its own time and 5 s more. Tests in processes of their own reach nothing here.

What runs at import alone (constants, defaults, decorators) is not changed, and neither is text.
Some mutants compute the same as the code: a survivor is a place to look. Seeds are fixed, as
Hypothesis's are by the profile of the suite; it does not shrink here. Needs ``fork``.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import os
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from types import CodeType, FrameType, FunctionType
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # no fork copies threads

import pytest

ROOT = Path(__file__).resolve().parents[1]
_PAIRS = (
    "Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, Add Sub, Mult Div, BitAnd BitOr, And Or, "
    "FloorDiv Mod, Pow MatMult"
)
SWAPS: dict[Any, Any] = {
    getattr(ast, one): getattr(ast, other)
    for pair in map(str.split, _PAIRS.split(", "))
    for one, other in (pair, pair[::-1])
}


@dataclass(slots=True)
class Mutant:
    """A change: its place, the function's code with it, and the tests run and failed."""

    file: str
    function: tuple[str, str, int]
    lines: range
    change: str
    code: CodeType
    outcome: str = "not reached"
    n_tests: int = 0
    killed_by: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        return f"{self.file}:{self.lines.start} {self.change} ({self.outcome})"


def replacements(node: Any) -> Iterator[ast.AST]:
    """What may stand in place of a node of the syntax tree."""

    def changed(**fields: Any) -> ast.AST:
        return type(node)(**dict(ast.iter_fields(node)) | fields)

    match node:
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in SWAPS:
            yield changed(op=SWAPS[type(node.op)]())
        case ast.Compare():
            for at, op in enumerate(node.ops):
                yield changed(ops=[*node.ops[:at], SWAPS[type(op)](), *node.ops[at + 1 :]])
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node.operand
        case ast.Constant(value=bool() | int() | float() as value):
            yield ast.Constant(not value if isinstance(value, bool) else value + 1)
        case ast.If() | ast.IfExp() | ast.While():
            yield changed(test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Return(value=ast.expr()):
            yield changed(value=ast.Constant(None))
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield ast.Pass()


def slots(node: ast.AST, lines: range) -> Iterator[tuple[Any, Callable[[Any], None], range]]:
    """Every node below one, with what puts another one there and the lines of its statement."""
    for name, value in ast.iter_fields(node):
        is_list = isinstance(value, list)
        for at, child in enumerate(value if is_list else [value]):
            if not isinstance(child, ast.AST) or name in {"annotation", "returns"}:
                continue
            if isinstance(child, ast.stmt):
                end = min((each.lineno - 1 for each in getattr(child, "body", ())), default=None)
                last = child.end_lineno if end is None else end
                lines = range(child.lineno, max(child.lineno, last or 0) + 1)
            yield (
                child,
                partial(value.__setitem__, at) if is_list else partial(setattr, node, name),
                lines,
            )
            yield from slots(child, lines)


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The functions of a module and of its classes, by qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.stmt):
            is_class = isinstance(child, ast.ClassDef)
            yield from functions(child, f"{prefix}{child.name}." if is_class else prefix)


def codes(code: CodeType) -> Iterator[CodeType]:
    """A piece of code and all within."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def mutants_of(path: Path, n: int | None, seed: int) -> Iterator[Mutant]:
    """All changes of a file, or n of them drawn at random, in order of their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    places = [
        (name, function, *slot, new)
        for name, function in functions(tree)
        for slot in slots(ast.Module(function.body, []), range(0))
        for new in replacements(slot[0])
    ]
    at_most = len(places) if n is None else min(n, len(places))
    drawn = Random(seed).sample(range(len(places)), at_most)
    for name, function, node, put, lines, new in map(places.__getitem__, sorted(drawn)):
        first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
        texts = [ast.unparse(each).partition("\n")[0][:70] for each in (node, new)]
        put(ast.copy_location(new, node))
        module = compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)
        put(node)
        key = (str(path), name, first)
        code = next(c for c in codes(module) if (c.co_qualname, c.co_firstlineno) == key[1:])
        file = str(path.relative_to(ROOT))
        yield Mutant(file, key, lines, f"{name}: {' -> '.join(texts)}", code)


class Runner:
    """A plugin of pytest that runs the tests once, and for each mutant those that reach it."""

    def __init__(self, mutants: list[Mutant], slow: float) -> None:
        self._mutants, self._slow, self._failed = mutants, slow, False
        self._items: list[pytest.Item] = []
        self.seconds: dict[str, float] = {}

    def pytest_collection(self) -> None:
        """Turns shrinking off, before the tests take their settings from the profile."""
        from hypothesis import Phase, settings

        settings.register_profile("mutation", phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes a failure of the test that runs."""
        self._failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Runs what there is to run, each time in a process of its own."""
        session.config.pluginmanager.unregister(name="terminalreporter")
        self._items = session.items
        files = {mutant.function[0] for mutant in self._mutants}
        living: defaultdict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and (code := each.__code__).co_filename in files:
                living[code.co_filename, code.co_qualname, code.co_firstlineno].append(each)
        reached: defaultdict[tuple[str, int], set[int]] = defaultdict(set[int])
        for at, failed, seconds, lines in self._forked(
            range(len(self._items)), partial(_trace, files), 600
        ):
            self.seconds[self._items[at].nodeid] = seconds
            if failed:
                print("left out, as it fails without a change:", self._items[at].nodeid)
                continue
            for file, line in lines:
                reached[file, line].add(at)
        for mutant in self._mutants:
            tests = set[int]().union(*(reached[mutant.function[0], at] for at in mutant.lines))
            self._try(mutant, tests, partial(_put, living[mutant.function], mutant.code))
            print(f"{mutant} by {len(mutant.killed_by)} of {mutant.n_tests}", flush=True)
        return True

    def _try(self, mutant: Mutant, reaching: set[int], put: Callable[[], set[Any]]) -> None:
        seconds = {at: self.seconds[self._items[at].nodeid] for at in reaching}
        slow = {at for at in reaching if seconds[at] > self._slow}
        for tests in (reaching - slow, slow):
            if mutant.killed_by or not tests:
                continue
            waiting = sorted(tests)
            limit = 5 + 10 * max(seconds[at] for at in tests)
            for at, failed, *_ in self._forked(tuple(waiting), put, limit):
                mutant.n_tests += waiting.pop(0) == at
                if failed:
                    mutant.killed_by.append(self._items[at].nodeid)
            if waiting:  # the process died, or hung, in the first of these
                mutant.killed_by.append(self._items[waiting[0]].nodeid)
            mutant.outcome = "killed" if mutant.killed_by else "survived"

    def _forked(
        self, tests: Iterable[int], prepare: Callable[[], set[Any]], limit: float
    ) -> Iterator[Any]:
        """Yields number, failure, seconds and what is traced of each test."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            traced = prepare()
            signal.signal(signal.SIGALRM, _end)
            for at, following in pairwise([*tests, None]):
                self._failed, start = False, time.perf_counter()
                traced.clear()
                signal.setitimer(signal.ITIMER_REAL, limit, limit)
                item, after = self._items[at or 0], following and self._items[following]
                item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
                signal.setitimer(signal.ITIMER_REAL, 0)
                result = [at, self._failed, time.perf_counter() - start, [*traced]]
                os.write(write, json.dumps(result).encode() + b"\n")
            os._exit(0)
        os.close(write)
        buffer = b""
        while select.select([read], [], [], 2 * limit)[0] and (part := os.read(read, 1 << 16)):
            *lines, buffer = (buffer + part).split(b"\n")
            yield from map(json.loads, lines)
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _end(*_: object) -> None:
    raise TimeoutError


def _put(living: list[FunctionType], code: CodeType) -> set[Any]:
    for function in living:
        function.__code__ = code
    return set()


def _trace(files: set[str]) -> set[Any]:
    """Starts to list the lines of the files that are reached."""
    reached = set[tuple[str, int]]()

    def line(frame: FrameType, *_: object) -> Any:
        reached.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    sys.settrace(lambda frame, *_: line if frame.f_code.co_filename in files else None)
    return reached


def table(mutants: list[Mutant], seconds: dict[str, float], slow: float) -> Iterator[str]:
    """The result in lines: outcomes by file, survivors, and what test functions kill."""
    for file in dict.fromkeys(mutant.file for mutant in mutants):
        yield f"{file}: {dict(Counter(each.outcome for each in mutants if each.file == file))}"
    yield from ("\nnot killed:", *(str(each) for each in mutants if not each.killed_by))
    killed = {n: {test.partition("[")[0] for test in m.killed_by} for n, m in enumerate(mutants)}
    spent, left, needed = Counter[str](), dict(killed), dict[str, int]()
    star = dict[str, str]()
    for test, took in seconds.items():
        spent[test.partition("[")[0]] += took
        if took > slow:
            star[test.partition("[")[0]] = "*"
    while new := Counter(test for tests in left.values() for test in tests):
        best = max(new, key=lambda test: (new[test], -spent[test]))
        needed[best] = new[best]
        left = {n: tests for n, tests in left.items() if best not in tests}
    yield "\nseconds, mutants killed, killed by no other, new ones in a smallest set; test"
    yield "(*: slow, run only for what the others do not kill)"
    kills = Counter(test for tests in killed.values() for test in tests)
    alone = Counter(min(tests) for tests in killed.values() if len(tests) == 1)
    for test in sorted(spent, key=lambda test: (kills[test], test)):
        counts = f"{kills[test]:4} {alone[test]:4} {needed.get(test, 0):4}"
        yield f"{spent[test]:7.2f} {counts} {test}{star.get(test, '')}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--tests", nargs="+", help="files or folders of tests")
    parser.add_argument("--sample", type=int, metavar="N", help="mutants of each file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slow", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    files = [path.resolve() for path in options.files]
    mirrored = {f"tests/{path.relative_to(ROOT / 'src/apbjudge').parts[0]}" for path in files}
    tests = options.tests or [str(ROOT / folder) for folder in sorted(mirrored)]
    mutants = [each for path in files for each in mutants_of(path, options.sample, options.seed)]
    runner = Runner(mutants, options.slow)
    code = pytest.main(["-n", "0", "-p", "no:cacheprovider", *tests], plugins=[runner])
    print(*table(mutants, runner.seconds, options.slow), sep="\n")
    if options.json:
        names = ("file", "change", "outcome", "n_tests", "killed_by")
        rows = [{"line": m.lines.start} | {n: getattr(m, n) for n in names} for m in mutants]
        text = json.dumps({"mutants": rows, "seconds": runner.seconds}, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")
    sys.exit(code)


if __name__ == "__main__":
    main()
