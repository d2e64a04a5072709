"""Parts as tasks of a Ray cluster, which starts those anew whose worker or node is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ..errors import needs
from .parts import PAUSED, Ended, Part, run_part

RETRIES = 3
"""Starts of a task whose worker died, after the first."""


def run_parts(parts: Sequence[Part], at_once: int) -> Iterator[tuple[Part, Ended]]:
    """Runs parts; see ``scale.Engine``.

    Joins the cluster that ``RAY_ADDRESS`` or an earlier ``ray.init`` names, else starts one on this
    machine. Folders have to be on a disk that all nodes share.

    Raises:
        ModuleNotFoundError: If Ray is not installed.
    """
    if find_spec("ray") is None:
        raise ModuleNotFoundError(needs("--engine ray", "ray"), name="ray")
    ray: Any = import_module("ray")
    ray.init(ignore_reinit_error=True)
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(run_part)
    waiting, running = list(reversed(parts)), dict[Any, Part]()
    while waiting or running:
        while waiting and len(running) < at_once:
            part = waiting.pop()
            running[task.remote(part)] = part
        [ended], _ = ray.wait(list(running))
        part = running.pop(ended)
        try:
            yield part, ray.get(ended)
        except ray.exceptions.RayError as error:
            yield part, Ended(PAUSED, str(error).splitlines()[0])
