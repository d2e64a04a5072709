"""People's own rows, in their kinds of files and under their names."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import apbjudge
from apbjudge import InputError, OptionError
from apbjudge.records.json_stream import array_members
from apbjudge.records.own_columns import OF_CASES, OF_JOINED, OF_PREDICTIONS, match_columns
from apbjudge.records.own_rows import kind_of
from tests.support.commands import CommandResult, in_process
from tests.support.rows import FIND_OK, TOOLS, plan

EXAMPLES = Path(__file__).parents[2] / "examples"
Json = dict[str, Any]
QUERIES = ("Find a train; cheap, please", "=Find a train\nto Rome", '"Find" one')
REPLY = json.dumps(plan(FIND_OK))
MESSAGE = {"role": "assistant", "content": REPLY}


def _lines(rows: Sequence[Json]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _csv(rows: Sequence[Json], delimiter: str = ",") -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _rows(query: str = "question", reply: str = "answer", **more: Any) -> list[Json]:
    return [{query: text, reply: REPLY, **more} for text in QUERIES]


def _pairs() -> list[Json]:
    asked = [{"messages": [{"role": "user", "content": text}], "tools": TOOLS} for text in QUERIES]
    return [{"request": of, "response": {"choices": [{"message": MESSAGE}]}} for of in asked]


def _deepeval() -> Json:
    rows = _rows("input", "actualOutput", expectedOutput="A train.", toolsCalled=[])
    return {"testCases": rows, "hyperparameters": {"model": "m"}}


def _chats() -> list[Json]:
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [call]}]
    return [{"messages": said}] * 3


FORMATS: Mapping[str, tuple[str, str, str]] = {
    "CSV": (
        "data.csv",
        _csv(_rows(latency=2, tools=json.dumps(TOOLS))),
        (
            "id=line number, tested_model=data, query=question, model_response=answer, tools; "
            "not read: latency"
        ),
    ),
    "question and answer": (
        "qa.jsonl",
        _lines(_rows()),
        "id=line number, tested_model=qa, query=question, model_response=answer",
    ),
    "chat export": ("chats.jsonl", _lines(_chats()), "messages"),
    "request and response": ("pairs.jsonl", _lines(_pairs()), "messages"),
    "DeepEval": (
        "deepeval.json",
        json.dumps(_deepeval(), indent=2),
        (
            "id=row number, tested_model=deepeval, query=input, model_response=actualOutput, "
            "reference=expectedOutput; not read: toolsCalled"
        ),
    ),
}


@pytest.fixture
def cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., CommandResult]:
    monkeypatch.chdir(tmp_path)
    return in_process(monkeypatch, capsys)


@pytest.mark.parametrize(("name", "text", "reading"), FORMATS.values(), ids=FORMATS)
def test_each_of_the_formats_that_people_have_needs_one_command(
    name: str, text: str, reading: str, tmp_path: Path, cli: Callable[..., CommandResult]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = cli("grade", name, "--out", "run")
    assert done.code == 0, done.err
    assert done.err.splitlines()[0] == f"{name}: read as{':' * (',' in reading)} {reading}"
    is_log = reading == "messages"
    assert ("not stated" if is_log else "no provable fault") in done.out
    run = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert run["totals"]["rows"] == 3
    if name == "data.csv":
        assert "3 rows" in cli("grade", name, "--out", "run").out
        other = cli("grade", name, "--out", "run", "--map", "query=")
        assert other.code == 2
        assert "holds a run with other settings (columns.query)" in other.err


def _written(folder: Path, kind: str, rows: Sequence[Json]) -> Path:
    """The rows in a file, or a data set, of a kind."""
    path, text = folder / f"rows.{kind}", _lines(rows)
    if kind == "csv.gz":
        path.write_bytes(gzip.compress(_csv(rows).encode("utf-8-sig")))
    elif kind in ("csv", "tsv"):
        path.write_text(_csv(rows, {"csv": ";", "tsv": "\t"}[kind]), encoding="utf-8-sig")
    elif kind == "json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif kind == "pretty.json":
        path.write_text("\n".join(json.dumps(row, indent=2) for row in rows), encoding="utf-8")
    elif kind == "jsonl":
        path.write_text(text, encoding="utf-8")
    elif kind in ORIENTS:
        pandas.DataFrame(rows).to_json(path, orient=ORIENTS[kind])
    else:
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.Table.from_pylist(rows)
        if kind == "parquet":
            pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=2)
        elif kind == "arrow":
            with pyarrow.ipc.new_file(path, table.schema) as file:
                file.write_table(table)
        else:
            state = {"_data_files": [{"filename": "data-0.arrow"}]}
            for part in ("train", "test"):
                (path / part).mkdir(parents=True)
                (path / part / "state.json").write_text(json.dumps(state))
                with pyarrow.ipc.new_stream(path / part / "data-0.arrow", table.schema) as file:
                    file.write_table(table)
            (path / "dataset_dict.json").write_text("{}")
    return path


ORIENTS: dict[str, Any] = {"columns.json": "columns", "split.json": "split"}
"""What pandas writes if it is not asked for records."""
KINDS = (*"jsonl csv tsv csv.gz json pretty.json parquet arrow".split(), *ORIENTS, "set")


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_file_changes_no_judgement(kind: str, tmp_path: Path) -> None:
    rows = [
        {"uid": f"u{n}", **row} for n, row in enumerate(_rows("Query", tools=json.dumps(TOOLS)))
    ]
    path = _written(tmp_path, kind, rows)
    settings: Json = {"data_split": "test"} if kind == "set" else {}
    run = apbjudge.grade(path, tested_model="alder", **settings)
    expected = apbjudge.grade(rows, tested_model="alder")
    assert [j.content_id for j in run.judgements] == [j.content_id for j in expected.judgements]
    assert [(j.item_id, j.tested_model) for j in run.judgements] == [
        (f"u{n}", "alder") for n in range(3)
    ]
    lines = {"csv": [2, 3, 5], "tsv": [2, 3, 5], "csv.gz": [2, 3, 5]}.get(kind, [1, 2, 3])
    assert [j.line for j in run.judgements] == lines


@pytest.mark.parametrize("by", ["csv", "pandas"])
@pytest.mark.parametrize("name", ["holistic", "efficiency", "step_wise", "tool_extraneous"])
def test_rows_saved_as_a_table_are_the_same_rows(name: str, by: str, tmp_path: Path) -> None:
    """Cells hold JSON, or what pandas makes of lists, truth and numbers beside empty cells."""
    rows = EXAMPLES / f"{name}.jsonl"
    table = pandas.read_json(rows, lines=True)
    if by == "csv":
        held = [json.loads(line) for line in rows.read_text().splitlines()]
        table = pandas.DataFrame([{n: _cell(v) for n, v in row.items()} for row in held])
    table.to_csv(tmp_path / "rows.csv", index=False)
    assert apbjudge.grade(tmp_path / "rows.csv").summary == apbjudge.grade(rows).summary


def _cell(value: object) -> object:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_labels_and_judgements_of_other_tools_are_read_in_each_kind_of_file(
    kind: str, tmp_path: Path
) -> None:
    rows = [{"item_id": f"u{n}", "rater": "ann", "is_correct": n % 3 > 0} for n in range(40)]
    judged = [{"id": f"u{n}", "verdict": "yes" if n % 4 else "no"} for n in range(40)]
    labels, results = tmp_path / "labels", tmp_path / "judged"
    labels.mkdir()
    results.mkdir()
    paths = _written(results, kind, judged), _written(labels, kind, rows)
    [judge] = apbjudge.calibrate(*paths, n_resamples=100).judges
    assert judge.n_scored == 40
    assert judge.whole.measures["agreement"].value == 0.6


def test_a_broken_row_of_a_table_costs_no_other(tmp_path: Path) -> None:
    path, faults = tmp_path / "r.csv", list[str]()
    path.write_bytes(b'question,answer\n"a\nb",c\nonly\nM\xfcnster,c\nd,e\n')
    run = apbjudge.grade(path, events=apbjudge.Events(lambda _: None, faults.append))
    assert [fault.split(": field ")[0] for fault in faults] == [f"{path}:4", f"{path}:5"]
    assert run.summary.scored == 2


def test_what_is_not_clear_is_refused_with_the_map(tmp_path: Path) -> None:
    misspelt = [{"question": "a", "anwser": "b"}]
    for rows, columns, message in (
        (_rows(prompt="b"), None, "any of the columns question, prompt: --map query=quest"),
        (misspelt, None, "name it with --map model_response=anwser;"),
        (_rows(), "query=ask", "got 'ask', which no row has"),
    ):
        for given_rows in (rows, _written(tmp_path, "csv", rows)):
            with pytest.raises(InputError, match=message):
                apbjudge.grade(given_rows, map=columns)


def test_a_column_may_be_a_part_and_first_stand_in_a_late_row() -> None:
    late = {"q": "Find", "out": {"choices": [{"text": REPLY}]}}
    rows = [{"q": "Find", "answer": "odd"}] * 300 + [late]
    run = apbjudge.grade(rows, map={"query": "q", "model_response": "out.choices[0].text"})
    assert (run.summary.totals.rows, run.summary.scored) == (301, 1)


def test_data_sets_need_a_split_and_tables_have_none(tmp_path: Path) -> None:
    path = _written(tmp_path, "set", _rows())
    with pytest.raises(OptionError, match=r"--split: expected one of test, train .*, got none"):
        apbjudge.grade(path)
    with pytest.raises(OptionError, match="--split: expected a data set on disk"):
        apbjudge.grade(_written(tmp_path, "json", _rows()), data_split="train")


def test_cases_have_columns_of_their_own(tmp_path: Path) -> None:
    case = {"case_id": "a", "goal": "Find", "tools": json.dumps(TOOLS)}
    cases = _written(tmp_path, "csv", [case])
    rows = [{"id": "a", "task": "another", "output": REPLY}]
    run = apbjudge.grade(_written(tmp_path, "json", rows), cases=cases)
    (judgement,) = run.judgements
    expected = apbjudge.grade([{"id": "a", "query": "Find", "tools": TOOLS, "output": REPLY}])
    assert judgement.content_id == next(iter(expected.judgements)).content_id
    assert run.manifest["identity"]["columns"] == {
        "id": "id",
        "model_response": "output",
        "cases.case_id": "case_id",
        "cases.query": "goal",
        "cases.tools": "tools",
    }


@given(
    st.lists(st.sampled_from(["query", "question", "id", "model", "response", "answer", "x"])),
    st.sampled_from([OF_PREDICTIONS, OF_CASES, OF_JOINED]),
)
def test_no_column_is_lost_or_read_twice(names: list[str], wanted: frozenset[str]) -> None:
    row = dict.fromkeys(names, "text")
    match = match_columns([row], wanted=wanted)
    columns = list(match.fields.values())
    assert len(columns) == len({*columns})
    assert sorted([*columns, *match.unread]) == sorted(row)
    if not match.complaint:
        assert len(match.rename(row)) == len(row)
        assert match.is_own or match.describe(id="line", tested_model="file")


def test_a_file_of_long_rows_is_not_scanned_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first row is longer than the head, as an object with all rows would be."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"id": "r{n}", "query": "{"x" * 20_000}"}}\n' for n in range(2)))
    monkeypatch.setattr("apbjudge.records.own_rows.array_members", lambda *of: 1 / 0)
    assert kind_of(path) == "lines"


def test_an_object_is_scanned_once_and_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, scan = tmp_path / "rows.json", Mock(wraps=array_members)
    monkeypatch.setattr("apbjudge.records.own_rows.array_members", scan)
    for values, kind in (({"data": [{}]}, "member"), ({"data": None}, "lines")):
        path.write_text(json.dumps(values))
        assert [kind_of(path), kind_of(path)] == [kind, kind]
    assert scan.call_count == 2


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("- id: a\n  query: b\n", "YAML"),
        ("---\nid: a\n", "YAML"),
        ("rows:\n  - id: a\n", "YAML"),
        ("<table>\n<tr><td>a</td></tr>\n", "an HTML or XML page"),
    ],
)
def test_a_file_in_another_language_is_one_message(text: str, got: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=f"got {got}: "):
        apbjudge.grade(path)
