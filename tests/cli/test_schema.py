"""``apbjudge schema`` and ``export`` from the command line."""

from __future__ import annotations

import json

from apbjudge.integrations.schemas import SCHEMAS, schema

from .conftest import EXAMPLES, Command


def test_schemas_are_listed_and_printed(apbjudge: Command) -> None:
    listed = apbjudge("schema")
    assert [line.split()[0] for line in listed.out.splitlines()] == list(SCHEMAS)
    printed = apbjudge("schema", "labels")
    assert (printed.code, json.loads(printed.out)) == (0, schema("labels"))
    refused = apbjudge("schema", "label")
    assert (refused.code, "NAME: expected one of rows, cases" in refused.err) == (2, True)


def test_a_log_of_traces_is_judged_and_its_scores_are_written(apbjudge: Command) -> None:
    log = EXAMPLES / "trajectories" / "traces.json"
    assert apbjudge("convert", log, "steps.jsonl", "--to", "cases").code == 0
    apbjudge("grade", "steps.jsonl", "--protocol", "step-wise", "--out", "run")
    done = apbjudge("export", "run", "--to", "langfuse", "--out", "scores.jsonl")
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines()[-1] == "written: scores.jsonl"
    again = apbjudge("export", "run", "--to", "langfuse", "--out", "scores.jsonl")
    assert (again.code, "--out: scores.jsonl exists" in again.err) == (2, True)
