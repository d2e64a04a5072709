"""What is imported when: a quick start is kept by not loading what is not needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from .conftest import NAMES, example

HEAVY = set("litellm instructor openai matplotlib pandas sklearn statsmodels scipy".split())
NETWORK = {"httpx", "aiohttp", "requests"}
MEDIUM = {"numpy", "jinja2", "orjson", "jsonschema"}
_LISTING = """
import json, sys
sys.stdout.flush()
with open("modules.json", "w") as file:
    json.dump(sorted({name.partition(".")[0] for name in sys.modules}), file)
"""
_COMMAND = """
import sys
from apbjudge.cli.main import main
for arguments in {commands!r}:
    sys.argv = ["apbjudge", *arguments]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, (arguments, ended.code)
"""


def loaded_by(code: str, folder: Path) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after some code."""
    done = subprocess.run(
        [sys.executable, "-c", code + _LISTING],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return set(json.loads((folder / "modules.json").read_text(encoding="utf-8")))


def loaded_by_commands(folder: Path, *commands: list[str]) -> set[str]:
    return loaded_by(_COMMAND.format(commands=list(commands)), folder)


def test_importing_the_package_loads_next_to_nothing(tmp_path: Path) -> None:
    found = loaded_by("import apbjudge; apbjudge.__version__; dir(apbjudge)", tmp_path)
    assert found & (HEAVY | NETWORK | MEDIUM | {"pydantic", "typer"}) == set()
    assert "apbjudge" in found


def test_help_loads_neither_numpy_nor_pydantic(tmp_path: Path) -> None:
    found = loaded_by_commands(tmp_path, ["--help"])
    assert found & (HEAVY | NETWORK | MEDIUM | {"pydantic", "rich"}) == set()
    assert "typer" in found


def test_help_of_commands_loads_only_what_typer_itself_does(tmp_path: Path) -> None:
    helped = ["grade", "prompt", "rubric", "audit"]
    commands = [["--version"], *([name, "--help"] for name in helped)]
    assert loaded_by_commands(tmp_path, *commands) & (HEAVY | NETWORK | MEDIUM) == set()


def test_static_grading_loads_nothing_heavy(tmp_path: Path) -> None:
    grading = [["grade", str(example(name)), "--out", name] for name in NAMES]
    found = loaded_by_commands(tmp_path, *grading)
    assert found & (HEAVY | NETWORK) == set()
    assert {"apbjudge", "numpy", "pydantic"} <= found


def test_prompts_and_rubrics_load_nothing_heavy(tmp_path: Path) -> None:
    commands = [
        ["rubric", "list"],
        ["rubric", "show", "apb-holistic"],
        ["prompt", str(example("unsolvable")), "--id", "unsolv-info-03"],
    ]
    assert loaded_by_commands(tmp_path, *commands) & (HEAVY | NETWORK) == set()
