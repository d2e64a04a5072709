"""``apbjudge compare``: two runs on the same items."""

from __future__ import annotations

from dataclasses import replace

from ..calibration.config import CompareConfig
from .gates import RegressionGate, finish
from .options import Output, Values, command, print_problems, print_result


@command(CompareConfig, RegressionGate, Output)
def compare(values: Values) -> int:
    """Prints how two judges, tested models or rubrics differ on the same items.

    Exit code 0: done; 1: done, but some rows of the files were unusable; 2: unusable input;
    3: a regression beyond the margin can't be excluded (--fail-on-regression).
    """
    from ..calibration.compare import compare as compare_runs
    from ..calibration.comparison_text import comparison_document

    gate, result = RegressionGate.of(values), compare_runs(CompareConfig.of(values))
    if gate.fail_on_regression:
        gates = result.gate(
            margin=gate.margin, at=gate.gate, allow_unfinished=gate.allow_unfinished
        )
        result = replace(result, gates=gates)
    form, document = Output.of(values).format, comparison_document
    print_result(result, document, form)
    code = print_problems(result.problems)
    return finish(code, result.gates, gate, document(result), prints=form == "text")
