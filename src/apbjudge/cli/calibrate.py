"""``apbjudge calibrate``: judges against human labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..calibration.config import CalibrationConfig
from ..errors import OptionError
from .gates import Gates, finish
from .options import Output, Values, argument, command, print_problems, print_result

FILES = argument(
    "files",
    "Judgements (files or folders of runs), one judge each; the labels, JSONL or CSV, come last.",
    tuple[Path, ...],
)


@command(FILES, CalibrationConfig, Gates, Output, omit=["judgements", "labels"])
def calibrate(values: Values) -> int:
    """Prints how far judges can be trusted, against human labels.

    Exit code 0: done; 1: done, but some rows of the files were unusable; 2: unusable input;
    3: a gate failed (--fail-under).
    """
    from ..calibration.calibrate import calibrate as calibrate_runs
    from ..calibration.reliability_text import reliability_document

    *judgements, labels = values["files"]
    if not judgements and values.get("raters"):
        judgements = [labels]  # judges and raters are columns of one file
    if not judgements:
        raise OptionError("calibrate: expected judgements and then labels, got one file")
    report = calibrate_runs(CalibrationConfig.of(values, judgements=judgements, labels=labels))
    gates = Gates.of(values)
    if gates.fail_under:
        checked = report.gate(
            *gates.fail_under, at=gates.gate, allow_unfinished=gates.allow_unfinished
        )
        report = replace(report, gates=checked)
    form, document = Output.of(values).format, reliability_document
    print_result(report, document, form)
    code = print_problems(report.problems)
    return finish(code, report.gates, gates, document(report), prints=form == "text")
