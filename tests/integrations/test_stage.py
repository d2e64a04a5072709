"""The CI stage of the adapters, with programs in place of Python, its installers and npm."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.server import PATIENCE_S

STAGE = Path(__file__).parents[2] / ".ci" / "integrations"
PROGRAM = """#!/usr/bin/env bash
if [ "$2" = venv ]; then
  for folder; do :; done # the last argument
  mkdir -p "$folder/bin"
  for name in python pip uv; do cp "$0" "$folder/bin/$name"; done
fi
for word; do [ "$word" != "$BROKEN" ] || exit 1; done
"""


@pytest.mark.parametrize(
    ("broken", "code", "outcome"),
    [
        ("", 0, "passed"),
        ("uv", 0, "passed"),
        ("mlflow", 0, "not shown: mlflow does not install here"),
        ("tests/integrations/test_mlflow.py", 1, "failed"),
    ],
)
def test_what_does_not_install_fails_nothing_and_what_fails_does(
    tmp_path: Path, broken: str, code: int, outcome: str
) -> None:
    for name in ("python3", "npm"):
        program = tmp_path / name
        program.write_text(PROGRAM, encoding="utf-8")
        program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(STAGE)],
        env=os.environ | {"PATH": path, "BROKEN": broken or "nothing", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == code, done.stdout + done.stderr
    table = done.stdout.partition("outcome\n")[2].splitlines()
    rows = {line.split()[0]: line for line in table if not line.startswith("failed: ")}
    assert list(rows) == ["pytest", "inspect", "deepeval", "mlflow", "promptfoo", "trl"]
    assert rows.pop("mlflow").endswith(outcome)
    assert all(line.endswith(" passed") for line in rows.values())
    assert ("failed: mlflow" in done.stdout) == (code == 1)
