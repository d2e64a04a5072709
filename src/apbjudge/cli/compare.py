"""``apbjudge compare``: two runs on the same items."""

from __future__ import annotations

from ..calibration.config import CompareConfig
from .options import Output, Values, command, print_result, take


@command(CompareConfig, Output)
def compare(values: Values) -> int:
    """Prints how two judges, tested models or rubrics differ on the same items.

    Exit code 0: done; 1: done, but some rows of the files were unusable; 2: unusable input.
    """
    from ..calibration.compare import compare_runs
    from ..reports.comparison import comparison_text

    config, output = take(CompareConfig, values), take(Output, values)
    return print_result(compare_runs(config), comparison_text, output)
