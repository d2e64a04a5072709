"""A real ``promptfoo eval`` with its echo provider; the program is on the path, or skipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree, which

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "hosts" / "promptfoo"
PROGRAM = which("promptfoo")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="promptfoo is not on the path: npm i promptfoo"),
]
OFF = ("DISABLE_TELEMETRY", "DISABLE_UPDATE", "DISABLE_REMOTE_GENERATION", "DISABLE_SHARING")


def test_promptfoo_eval_takes_verdict_reason_and_codes(tmp_path: Path) -> None:
    copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    environment = {f"PROMPTFOO_{name}": "1" for name in OFF}
    environment |= {"PROMPTFOO_PYTHON": sys.executable, "PROMPTFOO_CONFIG_DIR": str(tmp_path)}
    command = [str(PROGRAM), "eval", "--no-cache", "--no-table", "-o", "out.json"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        text=True,
        timeout=200,
    )
    assert done.returncode == 100, done.stdout + done.stderr  # promptfoo's code for failed tests
    found = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
    right, wrong, bad = (
        next(of for of in found if of["testIdx"] == n)["gradingResult"] for n in range(3)
    )
    assert (right["pass"], right["score"]) == (True, 1)
    assert (wrong["pass"], wrong["score"]) == (False, 0)
    assert "find_plane" in wrong["reason"]
    assert wrong["namedScores"]["no E6"] == 0
    assert right["namedScores"]["no E6"] == wrong["namedScores"]["no E5"] == 1
    assert wrong["componentResults"][0]["metadata"]["codes"] == "E6"
    assert bad["reason"].startswith("not judged, bad_input")
    assert bad["namedScores"] == {"judged": 0}
