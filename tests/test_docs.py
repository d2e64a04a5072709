"""Every command and every snippet in README and docs runs; every link leads somewhere."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
import yaml

import apbjudge
from apbjudge.cli.main import COMMANDS as NAMES
from tests.support.commands import CommandResult, in_process

ROOT = Path(__file__).parent.parent
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


README = DOCS[:1]
"""The page whose commands everybody's test run tries; the others', which go on from what they
left, take minutes.
"""


def blocks(language: str, pages: Iterable[Path] = DOCS) -> Iterator[tuple[Path, str]]:
    for path in pages:
        for name, body in BLOCK.findall(path.read_text(encoding="utf-8")):
            if name == language:
                yield path, body


def command_lines(pages: Iterable[Path] = DOCS) -> list[str]:
    lines = [line for _, body in blocks("sh", pages) for line in body.splitlines() if line.strip()]
    return list(dict.fromkeys(lines))


SERVER = "$ apbjudge label "  # ends with Ctrl-C only
SHOWN = {
    path: [b for p, b in blocks("console") if p == path and b[0] == "$" and SERVER not in b]
    for path in DOCS
}
SHOWN = {path: shown for path, shown in SHOWN.items() if shown}
"""Commands with what they print, by page: ``…`` on a line of its own stands for any lines."""

SETUP = [line for line in command_lines() if " -m venv " in line]
COMMANDS = [line for line in command_lines() if line not in SETUP]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like a checkout, so that documented paths hold."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


@pytest.fixture(scope="module")
def judge_address() -> Iterator[str]:
    """The scripted judge of the examples, behind a real socket."""
    yield from address_of("scripted_judge.py")


@pytest.fixture(scope="module")
def servers(judge_address: str) -> Iterator[dict[int, str]]:
    """Addresses of the scripted judge and tested model, by the port that docs give them."""
    for model_address in address_of("scripted_model.py"):
        yield {8000: judge_address, 8001: model_address}


def address_of(program: str) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / program), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        match = re.search(r"http://127\.0\.0\.1:\d+(?:/v1)?", process.stdout.readline())
        assert match is not None
        yield f"{match.group().removesuffix('/v1')}/v1"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


Run = Callable[[str], CommandResult]
_RESULTS: dict[str, CommandResult] = {}


@pytest.fixture
def run(
    checkout: Path,
    servers: dict[int, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs a documented command, once for all tests that ask for it.

    It runs in this process: importing everything anew takes most of the time.
    """
    monkeypatch.chdir(checkout)
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, servers[8000])
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def result(line: str) -> CommandResult:
        if line not in _RESULTS:
            here = line
            for port, address in servers.items():
                here = here.replace(f"http://127.0.0.1:{port}/v1", address)
            program, *arguments = shlex.split(here)
            assert program in ("apbjudge", "python")
            _RESULTS[line] = (
                in_process(monkeypatch, capsys)(*arguments)
                if program == "apbjudge"
                else module(arguments)
                if arguments[0] == "-m"
                else script(arguments, monkeypatch, capsys)
            )
        return _RESULTS[line]

    return result


@pytest.mark.parametrize(
    "line",
    [
        *(line for line in command_lines(README) if line in COMMANDS),
        *(pytest.param(line, marks=pytest.mark.slow) for line in COMMANDS),
    ],
)
def test_a_documented_command_ends_with_0(line: str, run: Run) -> None:
    done = run(line)
    assert done.code == 0, done.err
    assert done.out.strip() or "written: " in done.err
    assert "Traceback" not in done.err


def module(arguments: list[str]) -> CommandResult:
    """Runs a module, such as pytest, which can't run within itself."""
    command = [sys.executable, *arguments, "-p", "no:cacheprovider"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return CommandResult(done.returncode, done.stdout, done.stderr)


def script(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandResult:
    """Runs a Python file as a program; modules that lie beside it are forgotten again."""
    path = Path(arguments[0]).resolve()
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    for beside in path.parent.glob("*.py"):
        monkeypatch.delitem(sys.modules, beside.stem, raising=False)
    code: object = 0
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as stop:
        code = stop.code or 0
    finally:
        for beside in path.parent.glob("*.py"):
            sys.modules.pop(beside.stem, None)
    assert isinstance(code, int), code
    output = capsys.readouterr()
    return CommandResult(code, output.out, output.err)


def test_the_readme_has_one_command_to_grade_and_one_to_test() -> None:
    grade, test = SETUP
    assert ".venv/bin/apbjudge grade examples/" in grade
    assert test.endswith(".venv/bin/python -m pytest")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert all(
        f"readme_command '{part}" in ci for part in ("pip install . &&", 'pip install ".[test]"')
    )


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.name)
def test_a_page_shows_what_its_commands_print(
    path: Path,
    tmp_path: Path,
    judge_address: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for shown in SHOWN[path]:
        first, *expected = shown.splitlines()
        command = first.replace("http://127.0.0.1:8000/v1", judge_address)
        done = in_process(monkeypatch, capsys)(*shlex.split(command)[2:])
        printed = done.out + done.err + (f"exit code {done.code}\n" if done.code else "")
        lines = [line.rstrip() for line in printed.splitlines() if line.strip()]
        pattern = "".join(
            r"(?:.*\n)*" if line == "…" else re.escape(line) + r"\n"
            for line in unwrapped(expected, lines)
        )
        assert re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)), printed


def unwrapped(shown: list[str], lines: list[str]) -> list[str]:
    """What a page shows; where it wraps a line as a terminal does, the line as it was printed."""
    result: list[str] = []
    for line in filter(None, shown):
        if line.startswith("  ") and line not in lines:
            result[-1] += f" {line.strip()}"
        else:
            result.append(line)
    return result


@pytest.mark.slow
def test_the_tutorial_quotes_what_its_commands_print(run: Run) -> None:
    tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    lines = [line for line in tutorial.splitlines() if " runs/t-judged" in line]
    printed = "\n".join(run(line).out for line in lines if "t-report" not in line)
    for quoted in ("84.6 [49.7, 96.8]", "51.9", "56.2 [7.7, 95.2]", "+44.4 [-17.3, +90.0]", "545"):
        assert quoted in printed
        for number in re.findall(r"\d+\.\d", quoted):
            assert number in tutorial


def test_every_public_name_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert set(apbjudge.__all__) <= set(re.findall(r"^::: apbjudge\.(\w+)$", text, re.MULTILINE))


def test_every_command_is_documented() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCS)
    assert [name for name in NAMES if f"apbjudge {name}" not in text] == []


def test_the_citation_has_the_version_and_licence_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert str(citation["version"]) == apbjudge.__version__
    assert citation["license"] == project["license"]


@pytest.mark.parametrize("snippet", [body for _, body in blocks("python")])
def test_a_documented_snippet_runs(
    snippet: str,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process everything may have been imported by others: names are what can be seen."""
    attributes = [node for node in ast.walk(ast.parse(snippet)) if isinstance(node, ast.Attribute)]
    parts = {node.attr for node in attributes if ast.unparse(node.value) == "apbjudge"}
    assert parts <= set(apbjudge.__all__)
    monkeypatch.chdir(checkout)
    exec(compile(snippet, "snippet", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_links_lead_to_files(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_the_page_on_coverage_has_the_tables_of_its_data() -> None:
    study = runpy.run_path(str(ROOT / "benchmarks" / "coverage_table.py"))
    text = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    assert study["page"](text) == text, "python benchmarks/coverage_table.py"
