"""The only rule for opening a path that a manifest names.

A run folder may come from a stranger, and its manifest can name any file of the reader. So a path
may be opened if it lies in the run folder, or at or below a path that the user gave with the
command, or if a run of this user wrote the manifest. A seal proves the last: a keyed hash of the
manifest, whose key lies in the user's own state folder and in no run folder.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import orjson

from ..errors import InputError, visible
from ..remote import state_folder

SEAL = "seal"
_KEY_BYTES = 32


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest with this user's seal; one that has a seal came from a file and keeps it."""
    values = orjson.loads(orjson.dumps(manifest, default=str))
    return values if SEAL in values else {**values, SEAL: _seal(values)}


def is_own(manifest: Mapping[str, Any]) -> bool:
    """True if a run of this user wrote the manifest, and nobody changed it since."""
    stated = manifest.get(SEAL)
    try:
        return isinstance(stated, str) and hmac.compare_digest(
            stated.encode(), _seal(manifest).encode()
        )
    except TypeError:  # deeper nesting than any of ours
        return False


def named_path(
    folder: Path,
    manifest: Mapping[str, Any],
    stated: object,
    option: str,
    command_paths: Iterable[Path] = (),
) -> Path | None:
    """A file or folder that a manifest names, if it may be opened; None if it names none.

    Every path from a manifest goes through here. Links count as their targets.

    Args:
        folder: The run's folder.
        manifest: Its manifest.
        stated: The manifest's value for the path.
        option: The option that also names it, for the message.
        command_paths: Paths that came with the command.

    Raises:
        InputError: If it may not be opened, whether or not it exists.
    """
    if not isinstance(stated, str):
        return None
    if is_own(manifest):
        return Path(stated)
    with suppress(ValueError, OSError):  # a NUL byte; too long a name
        place = Path(os.path.realpath(stated))
        allowed = map(os.path.realpath, (folder, *command_paths))
        is_pattern = set("*?[{") & set(stated) and not place.exists()  # may lead anywhere
        if not is_pattern and any(place.is_relative_to(path) for path in allowed):
            return Path(stated)
    raise InputError(
        f"{visible(stated)}: not opened: it lies outside the folder of the run that names it, "
        f"{visible(str(folder))}, and no run of yours on this machine wrote that manifest "
        f"({option} names it)"
    )


def _seal(manifest: Mapping[str, Any]) -> str:
    values = {name: value for name, value in manifest.items() if name != SEAL}
    return hmac.digest(_key(), orjson.dumps(values, option=orjson.OPT_SORT_KEYS), "sha256").hex()


@cache
def _key() -> bytes:
    """The user's key, created when missing; if it can't be stored, one for this process only."""
    own = secrets.token_bytes(_KEY_BYTES)
    with suppress(OSError, RuntimeError):  # RuntimeError: no home folder is known
        folder = state_folder()
        path = folder / "seal.key"
        if not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, new = mkstemp(dir=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(own)
                with suppress(FileExistsError):  # of several processes the first one's counts
                    os.link(new, path)
            finally:
                Path(new).unlink()
        if len(stored := path.read_bytes()) == _KEY_BYTES:
            return stored
    return own
