"""What is imported when: a quick start is kept by not loading what is not needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from apbjudge import grade
from tests.support.commands import without_progress
from tests.support.server import PATIENCE_S

from .conftest import NAMES, example

HEAVY = set("litellm instructor openai matplotlib pandas sklearn statsmodels scipy".split())
NETWORK = {"httpx", "aiohttp", "requests"}
MEDIUM = {"numpy", "jinja2", "orjson", "jsonschema"}
_SHOWN = ["grade", "prompt", "rubric", "audit", "calibrate", "report", "label", "doctor", "convert"]
STAGES: dict[str, list[list[str]]] = {
    "package": [],
    "help": [["--help"]],
    "help of commands": [["--version"], *([name, "--help"] for name in _SHOWN)],
    "plans by rule": [["grade", str(example("holistic")), "--out", "by rule"]],
    "prompts and rubrics": [
        ["rubric", "list"],
        ["rubric", "show", "apb-holistic"],
        ["prompt", str(example("unsolvable")), "--id", "unsolv-info-03"],
    ],
    "static grading": [["grade", str(example(name)), "--out", name] for name in NAMES],
}
"""One after the other in one process: what an early one may not load, a later one may."""

_CODE = """
import json, sys
import apbjudge
apbjudge.__version__; dir(apbjudge)
loaded = {{}}
for stage, commands in {stages!r}.items():
    for arguments in commands:
        from apbjudge.cli.main import main
        sys.argv = ["apbjudge", *arguments]
        try:
            main()
        except SystemExit as ended:
            assert not ended.code, (arguments, ended.code)
    names = {{name.partition(".")[0] for name in sys.modules}}
    loaded[stage] = sorted(names | {{"scipy.stats"}} & set(sys.modules))
sys.stdout.flush()
with open("modules.json", "w") as file:
    json.dump(loaded, file)
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Top-level modules that a fresh interpreter has loaded after each stage."""
    folder = tmp_path_factory.mktemp("startup")
    done = subprocess.run(
        [sys.executable, "-c", _CODE.format(stages=STAGES)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    result = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    return {stage: set(names) for stage, names in result.items()}


def test_each_stage_loads_no_more_than_it_needs(loaded: dict[str, set[str]]) -> None:
    heavy = HEAVY | NETWORK
    assert loaded["package"] & (heavy | MEDIUM | {"pydantic", "typer"}) == set()
    assert loaded["help"] & (heavy | MEDIUM | {"pydantic", "rich"}) == set()
    assert loaded["help of commands"] & (heavy | MEDIUM) == set()
    heavy = heavy - {"scipy"} | {"scipy.stats"}  # intervals take scipy.special alone
    assert loaded["plans by rule"] & (heavy | {"jinja2", "jsonschema"}) == set()
    assert loaded["prompts and rubrics"] & (heavy | {"jsonschema"}) == set()
    assert loaded["static grading"] & heavy == set()
    assert {"apbjudge", "numpy", "pydantic"} <= loaded["static grading"]
    assert all("click" not in modules for modules in loaded.values())


_WITHOUT = """
import sys
sys.modules[sys.argv.pop(1)] = None
from apbjudge.cli.main import main
main()
"""
_ROWS = str(example("holistic"))


@pytest.mark.parametrize(
    ("module", "arguments", "package"),
    [
        ("pandas", ["report", "run", "--format", "html", "--out", "page.html"], "pandas"),
        ("matplotlib", ["report", "run", "--figures", "figures"], "matplotlib"),
        ("litellm", ["grade", _ROWS, "--judge", "openai/x", "--no-cache"], "litellm"),
        ("jsonschema", ["check", _ROWS], "jsonschema"),
    ],
)
@pytest.mark.slow
def test_what_is_not_installed_is_named_in_one_line(
    tmp_path: Path, module: str, arguments: list[str], package: str
) -> None:
    grade(_ROWS, judge="static", out=tmp_path / "run")
    command = [sys.executable, "-c", _WITHOUT, module, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("apbjudge: ")
    assert f"which is not installed: pip install {package}" in line
