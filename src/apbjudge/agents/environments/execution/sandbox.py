"""The sandbox of a benchmark's process: bubblewrap (``bwrap``), and what of the machine is in it.

In it are the system's programs and libraries, the interpreter with its packages, the benchmark and
the files that its options name, all of them read-only. Nothing else is: no home, no ``/proc``, no
sockets, no place to write to, no network. Each episode has process ids, a network and shared memory
of its own besides (``hosted/host.py``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import Field

from ....errors import OptionError
from ..config import CallLimit

HOSTED = Path(__file__).parent / "hosted"

# As the superuser without a user namespace, so that the benchmark's process can go on as nobody:
# bounds on numbers of processes do not hold for the superuser.
_NAMESPACES = (
    "--unshare-all",
    "--unshare-ipc --unshare-net --unshare-pid --unshare-uts --cap-drop ALL "  # noqa: ISC004
    "--cap-add CAP_SETUID --cap-add CAP_SETGID",
)
_SYSTEM = (
    "/usr /bin /lib /lib32 /lib64 /libx32 /etc/alternatives /etc/ld.so.cache /etc/localtime".split()
)
_DEVICES = "/dev/full /dev/null /dev/random /dev/urandom /dev/zero".split()
_TOO_MUCH = "/ /dev /etc /home /media /mnt /proc /root /run /sys /tmp /var /var/tmp".split()
"""Folders that are never shown as a whole; nor is the user's home, or a folder above it."""


class Isolation(CallLimit):
    """Isolation of a benchmark's tools, and the limits of an episode."""

    sandbox: Literal["auto", "required", "none"] = Field(
        default="auto",
        description="Run the benchmark's tools in bubblewrap: auto: if it works here, with a "
        "warning if not; required: or run nothing; none: never.",
    )
    python: str | None = Field(
        default=None,
        description="Python interpreter with the benchmark's package; default: this one.",
    )
    cpu_seconds: int = Field(
        default=300, ge=1, le=10**9, description="CPU seconds that an episode's tools may use."
    )
    memory_mb: int = Field(
        default=4096,
        ge=256,
        le=1 << 30,
        description="Memory that an episode's tools may use, in MiB.",
    )


def sandboxed(
    isolation: Isolation, python: Sequence[str], places: Iterable[str], warn: Callable[[str], None]
) -> tuple[list[str], str]:
    """The command that puts another one into the sandbox.

    Args:
        isolation: States if a sandbox is required.
        python: Command of the benchmark's process: the interpreter, its options, ``host.py``.
        places: Files and folders needed besides what the interpreter finds by itself.
        warn: Receives the reason if there is no sandbox.

    Returns:
        The command, empty without a sandbox; what the manifest says of it.

    Raises:
        OptionError: If the interpreter is none, or there has to be a sandbox and can't be.
    """
    try:
        own = _answer(*python)
    except (OSError, ValueError) as error:
        raise OptionError(f"python: expected an interpreter, got {python[0]}: {error}") from None
    if isolation.sandbox == "none":
        return [], "none"
    try:
        command = list(_command([*own["places"], *places]))
        is_apart = _answer(*command, *python)["is_apart"]
    except (OSError, ValueError) as error:
        if isolation.sandbox == "required":
            raise OptionError(f"--sandbox required: bubblewrap can't be used: {error}") from None
        warn(
            f"tools run without a sandbox, as bubblewrap can't be used: {error}. They can read and "
            "change what you can, and use the network (docs/execution.md, Isolation)"
        )
        return [], "none"
    return command, "bubblewrap" if is_apart else "bubblewrap, one for all episodes"


@cache
def _answer(*command: str) -> Any:
    """Reply of ``host.py`` about its interpreter; OSError or ValueError if that doesn't work."""
    nothing = subprocess.DEVNULL
    done = subprocess.run(command, env={}, stdin=nothing, capture_output=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise OSError(done.stderr.decode(errors="replace").strip().rpartition("\n")[2])
    return orjson.loads(done.stdout.strip().rpartition(b"\n")[2])


def _command(places: Iterable[str]) -> Iterator[str]:
    if (program := shutil.which("bwrap")) is None:
        raise FileNotFoundError("bwrap is not installed")
    yield from (program, *_NAMESPACES[os.getuid() == 0].split(), "--die-with-parent")
    yield from ("--setenv", "PYTHONHASHSEED", "0")
    for path in _SYSTEM:
        yield from ("--ro-bind-try", path, path)
    for path in _DEVICES:
        yield from ("--dev-bind", path, path)
    shown = list(map(Path, _SYSTEM))
    for path in chain.from_iterable(map(_parts, places)):
        if not any(path.is_relative_to(each) for each in shown):
            shown.append(path)
            for name in dict.fromkeys((path, path.resolve())):
                # Parents that bubblewrap makes by itself only the superuser may enter.
                yield from ("--dir", str(name.parent), "--ro-bind", str(path), str(name))
    yield from ("--remount-ro", "/", "--chdir", "/")


def _parts(place: str) -> Iterator[Path]:
    """A file or packages as they are; of another folder what is neither hidden nor a socket."""
    path = Path(place)
    if not os.access(path, os.R_OK) or _is_too_much(path):
        return
    if path.is_file() or path.name == "site-packages":
        yield path
    elif path.is_dir():
        for each in path.iterdir():
            is_seen = not each.name.startswith(".") and (each.is_file() or each.is_dir())
            if is_seen and not _is_too_much(each):
                yield each


def _is_too_much(path: Path) -> bool:
    real, home = path.resolve(), Path(os.environ.get("HOME", "/"))
    return str(real) in _TOO_MUCH or home.is_relative_to(real)
