"""Runs parts as an array of Slurm jobs, followed by a job that merges them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ..errors import OptionError
from .config import ScaleConfig

SCRIPT = Path(__file__).with_name("slurm.sh")


def submit(plan: Path, parts: int, out: Path, config: ScaleConfig) -> str:
    """Submits the parts and the merge; returns a line that names the jobs.

    Resources, partition and account depend on the site: set them in ``SBATCH_*`` variables.

    Raises:
        OptionError: If a job can't be submitted.
    """
    logs = out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "apbjudge", "scale", str(plan.resolve())]
    states = {"APBJUDGE": shlex.join(command), "RESTARTS": str(config.starts - 1)}
    job = _sbatch(
        [
            "--job-name=apbjudge",
            f"--array=1-{parts}%{config.at_once}",
            "--requeue",
            "--open-mode=append",
            "--signal=B:TERM@120",
            f"--output={logs}/%a.log",
            str(SCRIPT),
        ],
        states,
    )
    merge = [f"--dependency=afterok:{job}", f"--output={logs}/merge.log"]
    after = _sbatch(["--job-name=apbjudge-merge", *merge, f"--wrap={states['APBJUDGE']}"], states)
    return f"submitted {parts} parts as job {job}, the merge as job {after}; logs in {logs}"


def _sbatch(words: list[str], states: Mapping[str, str]) -> str:
    """Submits a job; returns its number."""
    command = ["sbatch", "--parsable", *words]
    try:
        done = subprocess.run(  # noqa: S603 - the site's own program
            command, env={**os.environ, **states}, capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise OptionError(
            "--engine slurm: expected sbatch on the path, got no such program"
        ) from None
    except subprocess.CalledProcessError as error:
        raise OptionError(f"sbatch: {error.stderr.strip() or error.returncode}") from None
    return done.stdout.strip().partition(";")[0]  # with several clusters, ";name" follows
