"""Runs parts as tasks of a Ray cluster, which restarts tasks whose worker or node is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import OptionError, needs
from .parts import PAUSED, UNUSABLE, Ended, Part, run_in_worker

RETRIES = 3
"""Restarts of a task whose worker died."""


def run_parts(
    parts: Sequence[Part], at_once: int, retries: int = RETRIES
) -> Generator[tuple[Part, Ended]]:
    """Runs parts; see ``scale.Engine``.

    Joins the cluster that ``RAY_ADDRESS`` or an earlier ``ray.init`` names, else starts one on this
    machine, which ends with the parts. The working directory and all folders must be on a disk that
    the nodes share, and the models' keys in each node's environment.

    Raises:
        ModuleNotFoundError: If Ray is not installed.
        OptionError: If no cluster can be joined or started.
    """
    if find_spec("ray") is None:
        raise ModuleNotFoundError(needs("--engine ray", "ray"), name="ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else Ray sends usage statistics
    ray: Any = import_module("ray")
    is_ours = _begin(ray)
    task = ray.remote(num_cpus=1, max_retries=retries)(_run)
    waiting, running = list(reversed(parts)), dict[Any, Part]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                part = waiting.pop()
                running[task.remote(part, Path.cwd())] = part
            [ended], _ = ray.wait(list(running))
            part = running.pop(ended)
            try:
                yield part, ray.get(ended)
            except ray.exceptions.RayTaskError as error:  # a fault in our code, not of a node
                raise error.cause from error
            except ray.exceptions.RayError as error:
                yield part, Ended(PAUSED, str(error).splitlines()[0])
    finally:
        for ended in running:
            ray.cancel(ended, recursive=False)  # its worker then pauses the part
        if running:
            grace_s = max(part.grace_s for part in running.values())
            ray.wait(list(running), num_returns=len(running), timeout=grace_s)
        if is_ours:
            ray.shutdown()


def _begin(ray: Any) -> bool:
    """Joins or starts a cluster; False if the caller has done so already."""
    if ray.is_initialized():
        return False
    try:
        ray.init(include_dashboard=False)
    except Exception as error:  # noqa: BLE001 - Ray raises many kinds, among them Exception itself
        text = str(error).strip().partition("\n")[0] or type(error).__name__
        raise OptionError(f"--engine ray: expected a cluster to join or start: {text}") from None
    return True


def _run(part: Part, folder: Path) -> Ended:
    """Runs a part in a worker of Ray, whose directory and signal handlers it replaces."""
    try:
        os.chdir(folder)
    except OSError as error:
        expected = "expected the working directory of scale on every node"
        return Ended(UNUSABLE, f"{folder}: {error.strerror}: {expected}")
    before = {of: signal.getsignal(of) for of in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the part sets its own handler
    signal.signal(signal.SIGINT, lambda sign, frame: signal.raise_signal(signal.SIGTERM))
    try:
        return run_in_worker(part)
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
