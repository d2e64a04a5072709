"""Every exception that apbjudge raises on purpose.

ApbJudgeError
├── UsageError            the command or call can't be carried out as asked
│   ├── OptionError       an option, a setting or a rubric file is unusable
│   │   ├── OtherRunError     the folder for the output holds another run
│   │   └── BusyError         another process is writing there
│   ├── InputError        an input file as a whole is unusable
│   └── PluginError       code of a plug-in, such as a protocol or a check, failed
├── GateError             a figure does not meet a condition; an AssertionError too
├── PausedError           a run was paused by a signal; the same call continues it
├── RowError              one row is unusable; the others are unaffected
│   └── InternalError     code of apbjudge failed at the row
└── JudgeError            a judge gave no usable reply for one item
    ├── TransportError    the endpoint could not be reached or failed
    │   ├── CallTimeoutError  no answer within the time allowed
    │   ├── RateLimitedError  the endpoint asks for fewer calls
    │   ├── UnreachableError  the connection was refused, or the host is unknown
    │   └── OutageError       the endpoints have failed for too long; calls have stopped
    ├── AccessError       the endpoint refuses every call: key, model name, permission
    ├── RefusalError      the model or its filter declined to answer
    ├── TruncatedError    the reply was cut off by its token limit
    ├── FormatUnsupportedError  the endpoint does not take the structured-reply request
    ├── BudgetError       the budget that the user set is used up
    ├── PendingError      the reply is part of a batch and has not arrived yet
    └── ReplyError        the reply is not a usable verdict
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from traceback import walk_tb
from types import FrameType
from typing import Any, ClassVar, Literal, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

UnscoredReason = Literal[
    "transport",
    "timeout",
    "refusal",
    "truncated",
    "unparsable",
    "inconsistent",
    "budget",
    "bad_input",
    "error",
    "missing",
    "infrastructure",
    "no_outcome",
]
"""Reason why there is no verdict; ``error``: the user's own judge function raised an exception;
``missing``: the log has no trajectory of the case, or the tested model no prediction;
``infrastructure``: the trajectory broke and the tested model is not to blame; ``no_outcome``: the
trajectory was measured, but nothing states whether it succeeded."""


class ApbJudgeError(Exception):
    """Root of the tree; its text can be shown to users."""


class UsageError(ApbJudgeError):
    """The request as a whole can't be carried out (exit code 2)."""


class OptionError(UsageError):
    """An option, setting or rubric is unusable."""


class OtherRunError(OptionError):
    """The folder for the output holds another run of ours, which ``overwrite`` would replace."""


class BusyError(OptionError):
    """Another process is writing what this one would write."""


class InputError(UsageError):
    """An input file as a whole is unusable."""


class PluginError(UsageError):
    """Code of a plug-in failed, and no row is to blame."""


class GateError(ApbJudgeError, AssertionError):
    """A figure does not meet a condition that it was checked against."""


class PausedError(ApbJudgeError):
    """A run was paused; the same call continues it."""


class RowError(ApbJudgeError):
    """One row of an input is unusable.

    Args:
        field: The field at fault, or ``"line"`` when the line itself is.
        expected: Description of a valid value.
        got: The value received; long ones are shortened.
    """

    def __init__(self, field: str, expected: str, got: object) -> None:
        self.field = field
        self.expected = expected
        self.got = shorten(got)
        super().__init__(f"field {field}: expected {expected}, got {self.got}")


class InternalError(RowError):
    """Code of apbjudge failed on a row: a bug of ours, not a fault of the row."""

    def __init__(self, error: Exception) -> None:
        text = fault_text(error, "apbjudge")
        super().__init__("row", "a row that apbjudge can read", text)
        self.args = (f"apbjudge failed at this row, please report it: {text}",)


class JudgeError(ApbJudgeError):
    """A judge gave no usable reply; becomes an unscored judgement."""

    reason: ClassVar[UnscoredReason] = "transport"

    def __init__(self, message: str, *, raw: str | None = None) -> None:
        self.raw = raw
        self.calls = 0  # made before giving up; `lost` of them were never answered
        self.lost = 0
        super().__init__(message)


class TransportError(JudgeError):
    """The endpoint failed; asking again later may help.

    Args:
        message: Description of the failure.
        retry_after_s: Seconds that the endpoint asked us to wait; None if it did not.
        answered: True if the endpoint answered that it failed; if not (no answer, or one that can't
            be used), it may have charged for the call.
    """

    def __init__(
        self, message: str, *, retry_after_s: float | None = None, answered: bool = True
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.answered = answered


class CallTimeoutError(TransportError):
    """No answer within the time allowed."""

    reason = "timeout"

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s=retry_after_s, answered=False)


class RateLimitedError(TransportError):
    """Too many calls: the endpoint works and asks for fewer."""


class UnreachableError(TransportError):
    """The connection was refused, or the host is unknown: nothing was sent."""


class OutageError(TransportError):
    """The endpoints count as down; no call was made."""


class AccessError(JudgeError):
    """Key, model name or permission is wrong: no call of this run can succeed."""


class RefusalError(JudgeError):
    """The model or a content filter declined."""

    reason = "refusal"


class TruncatedError(JudgeError):
    """The token limit cut the reply off, or the prompt does not fit the context."""

    reason = "truncated"


class FormatUnsupportedError(JudgeError):
    """The endpoint rejects the structured-reply request; plain text may work."""

    reason = "unparsable"


class BudgetError(JudgeError):
    """The budget is used up; no call was made."""

    reason = "budget"


class PendingError(JudgeError):
    """The reply is part of a batch and comes in a later round; nothing is recorded yet."""


class ReplyError(JudgeError):
    """The reply is malformed (``unparsable``) or contradicts itself (``inconsistent``)."""

    reason = "unparsable"


_INSTALLED_BY = {
    "av": ("av", '"apbjudge[video]"'),
    "pyarrow": ("pyarrow", '"apbjudge[parquet]"'),
    "yaml": ("pyyaml", "pyyaml"),
    "sklearn": ("scikit-learn", "scikit-learn"),
    "zstandard": ("zstandard", '"apbjudge[zstd]"'),
    "ray": ("ray", '"apbjudge[ray]"'),
    "deepeval": ("deepeval", '"apbjudge[deepeval]"'),
    "mlflow": ("mlflow", '"apbjudge[mlflow]"'),
    "fsspec": ("fsspec", '"apbjudge[remote]"'),
    "inspect_ai": ("inspect-ai", '"apbjudge[inspect]"'),
}
"""Modules whose package has another name, or comes with an extra."""


def needs(what: str, module: str) -> str:
    """A message that something needs a missing module, with the command that installs it."""
    module = module.partition(".")[0]
    package, source = _INSTALLED_BY.get(module, (module, module))
    return f"{what} needs {package}, which is not installed: pip install {source}"


def fault_text(error: BaseException, package: str) -> str:
    """An exception with the last place in the code of a package, as ``file:line``, that led to it.

    Args:
        error: The exception, which was raised.
        package: Name of the package or module; if none of its code was involved, the place is where
            the exception was raised.
    """
    text = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return f"{text}{code_place(walk_tb(error.__traceback__), package)}"


def code_place(frames: Iterable[tuple[FrameType, int]], package: str) -> str:
    """The last of these places, each a frame and its line, in the code of a package.

    If none is in its code, the last of all; empty if there are no places.
    """
    places = list(frames)
    named = [
        (frame, line)
        for frame, line in places
        if str(frame.f_globals.get("__name__")).partition(".")[0] == package
    ]
    return "".join(f" ({f.f_code.co_filename}:{line})" for f, line in (named or places)[-1:])


def guarded(plugin: str, code: F) -> F:
    """Wraps a plug-in's function so that its faults are blamed on the plug-in.

    Args:
        plugin: Owner of the function, such as ``protocol approvals``.
        code: The function; an iterator that it returns becomes a list.

    Returns:
        The function, which raises PluginError in place of all but our own errors; a function of
        apbjudge as it is.
    """
    module = str(getattr(code, "__module__", None)).partition(".")[0]
    if module == "apbjudge":
        return code
    name = getattr(code, "__qualname__", type(code).__name__)

    @wraps(code)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            result = code(*args, **kwargs)
            return list(cast("Iterator[Any]", result)) if isinstance(result, Iterator) else result
        except ApbJudgeError:
            raise
        except Exception as error:
            text = f"{plugin}: {name} failed: {fault_text(error, module)}"
            raise PluginError(text) from error

    run.__module__ = "apbjudge"  # guarded once
    return cast("F", run)


def plugin_names(group: str) -> list[str]:
    """The names under which installed packages add something to a group of entry points."""
    return [entry.name for entry in _entries_of(group)]


def load_plugin(group: str, name: str, kind: type[T], option: str) -> T | None:
    """The object that an installed package adds under a name to a group of entry points, or None.

    Args:
        group: The group, such as ``apbjudge.protocols``.
        name: The name.
        kind: The type that it must have.
        option: The option that names it, for messages.

    Raises:
        OptionError: If it has another type.
        PluginError: If it can't be imported.
    """
    entry = next((entry for entry in _entries_of(group) if entry.name == name), None)
    if entry is None:
        return None
    try:
        plugin = entry.load()
    except Exception as error:
        text = fault_text(error, str(entry.value).partition(":")[0].partition(".")[0])
        raise PluginError(f"{group}: {name} ({entry.value}) can't be imported: {text}") from error
    if not isinstance(plugin, kind):
        raise OptionError(f"{option}: {name!r} is not an apbjudge {kind.__name__}")
    return plugin


def _entries_of(group: str) -> Iterable[Any]:
    from importlib.metadata import entry_points  # slow, and few commands need it

    return entry_points(group=group)


def visible(text: str) -> str:
    """Text for a terminal or a log: characters that move the cursor or change colours are escaped.

    So are commands for GitHub's runners, at the beginning of or within a line.
    """
    if "::" in text or "##[" in text:
        text = _RUNNER_COMMAND.sub(lambda match: f"{match[0][:-1]}\\x{ord(match[0][-1]):x}", text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


FETCHED = "apbjudge-remote-"
"""Prefix of the names of folders that hold fetched files; see ``remote``."""
_FETCHED = re.compile(rf".*/{FETCHED}[^/]+/([^/:]+):/(.*)", re.DOTALL)


def path_text(path: str | os.PathLike[str]) -> str:
    """A path as text, whatever its bytes; for a fetched file, its address."""
    text = os.fsencode(path).decode(errors="backslashreplace")
    match = _FETCHED.fullmatch(text)
    if match is None:
        return text
    return f"{match[1]}:{'///' if match[1].lower() == 'file' else '//'}{match[2]}"


_RUNNER_COMMAND = re.compile(r"^\s*:(?=:)|#(?=#\[)")


def shorten(value: Any, limit: int = 80) -> str:
    """Renders a value for a message: type and at most ``limit`` characters."""
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else _start_of_repr(value, limit * 2)
    text = " ".join(text[: limit * 2].split())
    clipped = text if len(text) <= limit else text[: limit - 1] + "…"
    if isinstance(value, str):
        return f"{clipped!r}"
    return f"{clipped} ({type(value).__name__})"


def _start_of_repr(value: Any, limit: int) -> str:
    """At least the first ``limit`` characters of ``repr(value)``, without writing all of it."""
    if isinstance(value, str):
        return repr(value[: max(limit, 0)])
    if not isinstance(value, dict | list):
        return repr(value)
    if limit <= 0:  # however deep the value is
        return "…"
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    text = opening
    for entry in cast("dict[Any, Any] | list[Any]", value):
        if len(text) > limit:
            return text
        text += ", " if len(text) > 1 else ""
        text += _start_of_repr(entry, limit - len(text))
        if isinstance(value, dict):
            text += f": {_start_of_repr(value[entry], limit - len(text))}"
    return text + closing
