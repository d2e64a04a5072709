"""Any model in a running vLLM; docs/real-models.md says how to start one.

APBJUDGE_VLLM_URL        address, such as http://127.0.0.1:8000/v1
APBJUDGE_VLLM_MODEL      name of the model as the server knows it
APBJUDGE_VLLM_RUN_BATCH  a command that answers a batch file with the same model when -i FILE
                         and -o FILE are added to it; optional
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.real.claims import ROWS, Claims, Served, command_options, write_rows
from tests.support.commands import in_process

URL = os.environ.get("APBJUDGE_VLLM_URL")
MODEL = os.environ.get("APBJUDGE_VLLM_MODEL")
RUN_BATCH = os.environ.get("APBJUDGE_VLLM_RUN_BATCH")


@pytest.fixture(scope="module")
def served() -> Served:
    """The server that the environment names."""
    assert URL
    assert MODEL
    return Served(MODEL, URL)


@pytest.mark.skipif(not (URL and MODEL), reason="APBJUDGE_VLLM_URL and APBJUDGE_VLLM_MODEL not set")
class TestVllm(Claims):
    """The claims."""


@pytest.mark.skipif(not (RUN_BATCH and MODEL), reason="APBJUDGE_VLLM_RUN_BATCH not set")
def test_a_batch_file_answered_by_vllm_needs_no_further_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = in_process(monkeypatch, capsys)
    nobody = Served(MODEL or "", "http://127.0.0.1:9/v1")
    rows, options = write_rows(tmp_path), command_options(nobody, tmp_path)
    questions, answers = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"

    exported = command("batch", "export", rows, "--out", questions, *options)
    assert exported.out.startswith(f"{questions}: {len(ROWS)} requests")
    subprocess.run(
        [*shlex.split(RUN_BATCH or ""), "-i", questions, "-o", answers],
        check=True,
        capture_output=True,
    )
    imported = command("batch", "import", answers)
    assert imported.out.startswith(f"{len(ROWS)} replies taken, 0 failed")
    graded = command("grade", rows, *options, "--out", tmp_path / "run")
    assert graded.code == 0, graded.err
    assert f"0 calls, cost 0.0000 USD, {len(ROWS)} replies of earlier runs used again" in graded.out
