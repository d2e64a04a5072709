"""``apbjudge`` and ``python -m apbjudge``: the command line as a process of its own."""

import _thread
import io
import signal
import sys
import threading
from typing import Any


def main() -> None:
    """Runs the command line; see ``cli.main``.

    What the terminal's encoding lacks is replaced, and an interrupt is not lost while modules are
    imported or where Python can't raise it.
    """
    if sys.platform == "win32":
        sys.stderr.write("apbjudge: expected Linux or macOS, got Windows (WSL works)\n")
        sys.exit(2)
    sys.unraisablehook = _interrupt_again
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace" if stream is sys.stdout else "backslashreplace")
    try:
        from .cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


def _interrupt_again(unraisable: Any) -> None:
    """Delivers an interrupt that came in a callback, where it would only be printed."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        threading.Timer(0.05, _interrupt).start()  # once this function has returned
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt() -> None:
    """Interrupts the main thread, also while it waits."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


if __name__ == "__main__":
    main()
