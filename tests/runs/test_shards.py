"""Parts of a run: they cover every row once, and put together they are the run without parts."""

from __future__ import annotations

import io
import json
import random
import shlex
import shutil
from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import apbjudge
from apbjudge import JudgeSpec, OptionError, ScriptedClient
from apbjudge.errors import InputError
from apbjudge.jsonl import read_lines
from apbjudge.judge import ItemSource, JudgeTask
from apbjudge.llm.base import Completion, Request
from apbjudge.records import Usage
from apbjudge.records.run_folder import MissingPredictions, read_run
from apbjudge.runs.shards import Shard, parse_shard, pieces_of
from tests.support.commands import in_process
from tests.support.judging import RIGHT, plan_row, read_rows, verdict, write_rows

EXAMPLES = Path(__file__).parents[2] / "examples"
SPEC = JudgeSpec(model="scripted/judge", max_concurrency=4)
ROWS: list[dict[str, Any]] = [
    *(plan_row(f"r{n}", case_id=f"case-{n % 9}", task_category="ab"[n % 2]) for n in range(40)),
    {"id": "bad"},
    plan_row("r3", case_id="another case"),  # again for the same tested model
    {"id": "bad as well"},
]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", ROWS)


def graded(rows: Path, out: Path, **options: Any) -> int:
    """Grades into a folder; returns how many requests were made."""

    def answer(request: Request) -> Completion:
        """A grade and a price of its own for each row, whatever the order."""
        own = random.Random(str(request.messages))
        grade = own.choice((0.8, 0.6, 0.4, 0.2))
        flagged = verdict("E3", grade=grade) if own.random() < 0.7 else json.loads(RIGHT)
        text, usage = json.dumps(flagged), Usage(calls=1)
        return Completion(text=text, finish_reason="stop", usage=usage, cost_usd=own.random())

    client = ScriptedClient(answer)
    apbjudge.grade(rows, judge=SPEC, client=client, out=out, by=["category"], **options)
    return len(client.requests)


def parts_of(rows: Path, folder: Path, n: int, **options: Any) -> Iterator[Path]:
    for i in range(1, n + 1):
        graded(rows, folder / f"part-{i}", shard=f"{i}/{n}", **options)
        yield folder / f"part-{i}"


def comparable(folder: Path) -> list[dict[str, Any]]:
    timed = {"latency_s": None}
    return sorted((row | timed for row in read_rows(folder)), key=lambda row: row["line"])


def _finish_in_another_order(folder: Path, seed: int) -> None:
    """As if the rows of a run had finished in some other order."""
    path = folder / "judgements.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    random.Random(seed).shuffle(lines)
    path.write_bytes(b"".join(lines))


def test_shards_put_together_are_the_whole_run(rows: Path, tmp_path: Path) -> None:
    """To the last byte, in whatever order rows and parts were finished."""
    n = 4
    graded(rows, tmp_path / "whole")
    parts = list(parts_of(rows, tmp_path, n))
    for seed, part in enumerate(parts):
        _finish_in_another_order(part, seed)
    run = apbjudge.shards_merge(parts[::-1], tmp_path / "merged")
    assert comparable(tmp_path / "merged") == comparable(tmp_path / "whole")
    for name in ("summary.json", "summary.csv"):
        merged = (tmp_path / "merged" / name).read_text()
        assert merged == (tmp_path / "whole" / name).read_text()
    whole = json.loads((tmp_path / "whole" / "manifest.json").read_text())
    timed = dict.fromkeys(("started", "finished", "parts", "seal"))
    assert run.manifest | timed == whole | timed
    assert [part["shard"] for part in run.manifest["parts"]] == [f"{i + 1}/{n}" for i in range(n)]
    assert sum(part["rows"] for part in run.manifest["parts"]) == len(ROWS)
    assert graded(rows, tmp_path / "merged") == 0  # it continues as the whole run


@pytest.fixture(scope="module", params=["I/N", "INDEX#I"])
def five_parts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    """Runs of parts, of cases of which some have no prediction; last, the merge of them all."""
    folder = tmp_path_factory.mktemp("five")
    answers = [("x", "{}"), ("y", "{}"), ("z", " ")]
    rows: list[dict[str, Any]] = [
        {"id": f"c{n}", "tested_model": m, "model_response": text}
        for n in range(8)
        for m, text in answers[n % 2 :]
    ]
    files = write_rows(folder / "rows.jsonl", [*rows, {"id": "bad"}]), nine_cases(folder)
    make = parts_of if request.param == "I/N" else _pieces
    parts = [*make(files[0], folder, 5, cases=files[1])]
    for seed, part in enumerate(parts):
        _finish_in_another_order(part, seed)
    run = apbjudge.shards_merge(parts, folder / "flat")
    missing = MissingPredictions.stated(run.manifest)
    assert missing is not None
    assert [of.missing for of in missing.by_model] == [5, 1, 1]
    return [*parts, folder / "flat"]


def _merged(tree: Any, parts: list[Path], folder: Path) -> Path:
    """The merge of the merges of its branches; a number is that of a part."""
    if isinstance(tree, int):
        return parts[tree]
    below = [_merged(each, parts, folder / str(n)) for n, each in enumerate(tree)]
    out = folder / "out"
    apbjudge.shards_merge(below, out, partial=True)
    return out


@pytest.mark.parametrize(
    "tree",
    [
        [[0, 2, 4], [3, 1]],
        [[[4, 0], 2], [1, 3]],
        [[1], [[2]], [0, 3, 4]],
        [4, 3, 2, 1, 0],
    ],
)
def test_a_tree_of_merges_is_one_merge(five_parts: list[Path], tmp_path: Path, tree: Any) -> None:
    """To the last byte, whichever parts are merged first, adjacent or not."""
    *parts, flat = five_parts
    whole = _merged(tree, parts, tmp_path)
    for name in ("judgements.jsonl", "summary.json", "summary.csv"):
        assert (whole / name).read_bytes() == (flat / name).read_bytes()
    manifests = [json.loads((of / "manifest.json").read_text()) for of in (whole, flat)]
    timed = dict.fromkeys(("finished", "seal"))
    assert manifests[0] | timed == manifests[1] | timed


def test_a_merge_does_not_make_a_strangers_part_the_users_own(rows: Path, tmp_path: Path) -> None:
    """Else the whole run would vouch for files that the stranger's manifest names."""
    parts = list(parts_of(rows, tmp_path, 2))
    manifest = parts[1] / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"data_root": "/"}))
    apbjudge.shards_merge(parts, tmp_path / "merged")
    with pytest.raises(InputError, match="not opened"):
        _ = read_run(tmp_path / "merged").predictions


_CASES = [{k: v for k, v in plan_row(f"c{n}").items() if k != "model_response"} for n in range(3)]
_CASES[2]["case_id"] = "c1"  # shared with another
_DAMAGES = [{}, {}, {"query": 7}, {"tested_model": None}, {"id": None}, {"case_id": " "}]


@st.composite
def _odd_rows(draw: st.DrawFn) -> dict[str, Any]:
    """A row whose id may come again, under the same case or another, usable or not."""
    row = plan_row(draw(st.sampled_from(["c0", "c1", "c2", "c1#2"])))
    row["tested_model"] = draw(st.sampled_from("mn"))
    row["case_id"] = draw(st.sampled_from([None, "", "c0", "c1", "other", 7]))
    if draw(st.booleans()):
        row = {name: row[name] for name in ("id", "tested_model", "case_id", "model_response")}
    return row | draw(st.sampled_from(_DAMAGES))


def _seen(source: ItemSource) -> list[tuple[Any, ...]]:
    return [
        (e.item.line, e.item.item_id, e.item.case_id, e.missing, e.digest)
        if isinstance(e, JudgeTask)
        else (e.line, e.item_id, str(e.error), e.place, e.digest)
        for e in source
    ]


@given(
    st.lists(_odd_rows(), min_size=1, max_size=12),
    st.integers(2, 5),
    st.booleans(),
    st.booleans(),
)
def test_parts_together_say_of_every_row_what_the_whole_says(
    cases_file: Path, rows: list[dict[str, Any]], n: int, joined: bool, counted: bool
) -> None:
    """Also of a row that repeats an id of another part, whose items are not made otherwise."""
    more: dict[str, Any] = {"finds": False, "counts_missing": joined and counted}
    if joined:
        more["cases"] = cases_file
    whole = ItemSource(rows, **more)
    parts = [ItemSource(rows, shard=Shard(i + 1, n), **more) for i in range(n)]
    seen = [entry for part in parts for entry in _seen(part)]
    assert sorted(seen, key=repr) == sorted(_seen(whole), key=repr)
    if joined:
        stated = [part.missing for part in parts]
        assert MissingPredictions.joined([each for each in stated if each]) == whole.missing
    else:
        cases = [{e.case_id for e in part if isinstance(e, JudgeTask)} for part in parts]
        assert sum(map(len, cases)) == len(set().union(*cases))  # a case is in one part


@pytest.fixture(scope="module")
def cases_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("cases") / "cases.jsonl", _CASES)


def test_a_merge_that_was_killed_is_made_again(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = list(parts_of(rows, tmp_path, 2))
    for step in ("summarize", "write_summary"):
        with monkeypatch.context() as patch:
            patch.setattr(f"apbjudge.judge.merge.{step}", lambda *a, **k: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                apbjudge.shards_merge(parts, tmp_path / "merged")
    apbjudge.shards_merge(parts, tmp_path / "merged")
    with pytest.raises(OptionError, match="holds a run already"):
        apbjudge.shards_merge(parts, tmp_path / "merged")


def test_what_was_superseded_in_a_part_is_still_there(rows: Path, tmp_path: Path) -> None:
    parts = list(parts_of(rows, tmp_path, 2))
    edited = [row | {"plan": "another"} if row["id"] == "r0" else row for row in ROWS]
    write_rows(rows, edited)
    assert sum(graded(rows, part, shard=f"{i}/2") for i, part in enumerate(parts, 1)) == 1
    apbjudge.shards_merge(parts, tmp_path / "merged")
    write_rows(rows, ROWS)
    assert graded(rows, tmp_path / "merged") == 0


def test_parts_that_do_not_belong_together_are_refused(rows: Path, tmp_path: Path) -> None:
    one, two, three = parts_of(rows, tmp_path, 3)
    out = tmp_path / "merged"

    def refused(match: str, *parts: Path) -> None:
        with pytest.raises(OptionError, match=match):
            apbjudge.shards_merge(parts, out)
        assert not out.exists()

    refused(r"shards are missing: 2/3 \(--partial", one, three)
    copy = shutil.copytree(two, tmp_path / "copy")
    refused("part-2 and .*copy both hold shard 2/3", one, two, copy, three)
    some = apbjudge.shards_merge([three, copy], tmp_path / "some", partial=True).folder
    assert some is not None
    refused("some and .*part-3 both hold shard 3/3", one, some, three)
    refused(r"shards are missing: 1/3 \(--partial", some)
    lines = (some / "judgements.jsonl").read_bytes().splitlines(keepends=True)
    (some / "judgements.jsonl").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(InputError, match=r"some.judgements.jsonl: expected \d+ lines of shard 3/3"):
        apbjudge.shards_merge([one, some], tmp_path / "cut off")
    refused("holds no run$", one, tmp_path)
    graded(rows, tmp_path / "half", shard="2/2")
    refused("is shard 1/3 and .*half is shard 2/2", one, tmp_path / "half", three)
    graded(rows, tmp_path / "whole")
    refused("whole holds no run of a shard", one, two, tmp_path / "whole")
    graded(rows, tmp_path / "other", shard="3/3", protocol="holistic")
    refused(r"different settings \(protocol\)", one, two, tmp_path / "other")
    shorter = write_rows(tmp_path / "shorter.jsonl", ROWS[:-1])
    graded(shorter, tmp_path / "shorter", shard="3/3")
    refused("are runs of different inputs", one, two, tmp_path / "shorter")
    stopped = shutil.copytree(three, tmp_path / "stopped")
    manifest = stopped / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"state": "done"', '"state": "interrupted"'))
    refused("stopped is not finished: run its shard 3/3", one, two, stopped)
    path = three / "judgements.jsonl"
    path.write_bytes(path.read_bytes() + b"{\n")
    with pytest.raises(InputError, match=r"part-3.judgements\.jsonl:\d+: .*; run this part again"):
        apbjudge.shards_merge([one, two, three], out)

    with pytest.raises(OptionError, match=r"other settings \(shard\)"):
        graded(rows, one, shard="2/3")
    with pytest.raises(OptionError, match="--shard: expected one judge"):
        apbjudge.grade(rows, judge=["a/b", "c/d"], shard="1/2", out=tmp_path / "out")
    for text in ("0/2", "3/2", "1"):
        with pytest.raises(OptionError, match="--shard: expected I/N"):
            parse_shard(text)


def nine_cases(folder: Path, *more: dict[str, Any]) -> Path:
    rows = [plan_row(f"c{n}") for n in range(9)]
    cases = [{k: v for k, v in row.items() if k != "model_response"} for row in rows]
    return write_rows(folder / "cases.jsonl", [*cases, *more])


def _pieces(rows: Path, folder: Path, n: int, **options: Any) -> list[Path]:
    """The runs of the pieces of a file."""
    apbjudge.shards_split(rows, out=folder / "pieces", parts=n)
    parts = [folder / f"piece-{i}" for i in range(1, n + 1)]
    for i, part in enumerate(parts, 1):
        graded(rows, part, shard=f"{folder}/pieces/index.json#{i}", **options)
    return parts


@given(
    st.lists(st.sampled_from(["a", "b", "b#2", "", "broken"]), min_size=1, max_size=30), st.data()
)
def test_pieces_are_the_file_and_cut_where_the_case_changes(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("pieces") / "rows.jsonl"
    texts = {"": "", "broken": "[1]"}
    lines = [
        texts.get(kind, json.dumps({"id": f"{kind}", "tested_model": f"m{n}"}))
        for n, kind in enumerate(kinds)
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    count = data.draw(st.integers(1, len(kinds)))
    whole = [(line.number, line.raw) for line in read_lines(path)]
    try:
        index, _ = pieces_of(path, count)
    except OptionError:
        assert count > 1
        return
    parts = [[*read_lines(path, span=part.span)] for part in index.parts]
    assert [(line.number, line.raw) for part in parts for line in part] == whole
    assert [part.rows for part in index.parts] == [len(part) for part in parts]
    content = path.read_bytes()
    assert [part.sha256 for part in index.parts] == [
        sha256(content[part.start : part.end]).hexdigest() for part in index.parts
    ]
    for before, after in pairwise(parts):
        kind, following = (kinds[line.number - 1] for line in (before[-1], after[0]))
        assert "broken" in (kind, following) or kind[0] != following[0]


def test_pieces_put_together_are_the_whole_run(tmp_path: Path) -> None:
    """A part reads its own lines alone: what the others hold is not even looked at."""
    answer = {"model_response": "{}"}
    rows = [{"id": f"c{n}", "tested_model": m, **answer} for n in range(7) for m in "xy"]
    files = write_rows(tmp_path / "rows.jsonl", rows), nine_cases(tmp_path)
    graded(files[0], tmp_path / "whole", cases=files[1])
    parts = _pieces(files[0], tmp_path, 3, cases=files[1])
    index = json.loads((tmp_path / "pieces" / "index.json").read_text())
    content = files[0].read_bytes()
    start, end = index["parts"][1]["start"], index["parts"][1]["end"]
    files[0].write_bytes(b"x" * start + content[start:end] + b"x" * (len(content) - end))
    again = {"shard": f"{tmp_path}/pieces/index.json#2", "cases": files[1]}
    assert graded(files[0], parts[1], **again) == 0
    with pytest.raises(InputError, match=r"the lines of part 1/3@\w+ have changed"):
        graded(files[0], tmp_path / "changed", shard=f"{tmp_path}/pieces/index.json#1")
    files[0].write_bytes(content)
    run = apbjudge.shards_merge(parts, tmp_path / "merged")
    assert comparable(tmp_path / "merged") == comparable(tmp_path / "whole")
    for name in ("summary.json", "summary.csv"):
        merged = (tmp_path / "merged" / name).read_text()
        assert merged == (tmp_path / "whole" / name).read_text()
    missing = MissingPredictions.stated(run.manifest)
    assert missing is not None
    assert [of.missing for of in missing.by_model] == [2, 2]
    assert graded(files[0], tmp_path / "merged", cases=files[1]) == 0
    with pytest.raises(OptionError, match="--missing count: expected --shard I/N"):
        graded(files[0], tmp_path / "counted", missing="count", **again)
    with pytest.raises(InputError, match="expected the file that the index divides"):
        graded(write_rows(tmp_path / "other.jsonl", rows[1:]), tmp_path / "other", **again)


@pytest.mark.parametrize("kind", ["csv", "jsonl.gz"])
def test_rows_that_can_not_be_cut_are_copied_once(kind: str, tmp_path: Path) -> None:
    """The parts read the copy; what is put together is the run of the rows as they were."""
    rows, out = tmp_path / f"rows.{kind}", tmp_path / "parts"
    table = pandas.DataFrame(ROWS[:40])
    options = {"map": "query=asked", "tested_model": "alder"} if kind == "csv" else {}
    if kind == "csv":
        named = table.drop(columns="tested_model").rename(columns={"query": "asked"})
        named.to_csv(rows, index=False)
    else:
        table.to_json(rows, orient="records", lines=True)
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    remark, *lines = apbjudge.shards_split(rows, words, out=out, parts=3)
    assert remark == f"# the parts read {out / 'index.rows.jsonl'}, a copy in our own format"
    parts = [out / f"part-{i}" for i in range(1, 4)]
    for i, part in enumerate(parts, 1):
        assert shlex.split(lines[i])[-1] == str(out / "index.rows.jsonl")
        graded(out / "index.rows.jsonl", part, shard=f"{out}/index.json#{i}", **options)
    assert not [*out.glob("part-*.jsonl")]
    apbjudge.shards_merge(parts, out / "whole")
    graded(rows, tmp_path / "alone", **options)
    assert comparable(out / "whole") == comparable(tmp_path / "alone")
    summaries = [(of / "summary.json").read_bytes() for of in (out / "whole", tmp_path / "alone")]
    assert summaries[0] == summaries[1]
    assert graded(rows, out / "whole", **options) == 0
    with pytest.raises(InputError, match=r"divides, .*rows.jsonl of \d+ bytes, got one of"):
        graded(rows, tmp_path / "other", shard=f"{out}/index.json#1", **options)


def test_rows_are_not_replaced_by_a_copy(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "index.rows.jsonl", [{"question": "a", "answer": "b"}] * 4)
    content = rows.read_bytes()
    remark, *_ = apbjudge.shards_split(rows, out=tmp_path, parts=2)
    assert remark == f"# every part reads all rows: a copy would replace them: {rows}"
    assert rows.read_bytes() == content


def test_a_piece_reads_little_more_than_its_own_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_bytes, opened = 0, io.open

    class Counted(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            nonlocal n_bytes
            n = super().readinto(buffer) or 0
            n_bytes += n
            return n

    def counted(path: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if mode == "rb" and path == rows:
            return io.BufferedReader(Counted(path))
        return opened(path, mode, *args, **options)

    rows = write_rows(
        tmp_path / "rows.jsonl", [plan_row(f"r{n}", query="word " * 6000) for n in range(60)]
    )
    apbjudge.shards_split(rows, out=tmp_path, parts=3)
    monkeypatch.setattr(io, "open", counted)
    for i in range(1, 4):
        apbjudge.grade(rows, shard=f"{tmp_path}/index.json#{i}", out=tmp_path / f"part-{i}")
    size = rows.stat().st_size
    assert size <= n_bytes <= 1.1 * size


def test_published_judgements_are_divided_by_case(tmp_path: Path) -> None:
    judged = {"judge_model": "other", "judgement": {"is_correct": True}}
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row(f"r{n}") | judged for n in range(20)])
    remark, *commands = apbjudge.shards_split(rows, out=tmp_path, parts=2)
    assert remark == "# every part reads all rows: they hold judgements too"
    assert not (tmp_path / "index.json").exists()
    shards = [command.partition("--shard ")[2].partition(" ")[0] for command in commands[:2]]
    assert shards == ["1/2", "2/2"]
    parts = [apbjudge.grade(rows, shard=shard, regrade=True) for shard in shards]
    assert sorted(row["line"] for part in parts for row in part.rows) == list(range(1, 21))


@pytest.mark.parametrize("is_cut", [True, False])
def test_the_commands(
    *,
    is_cut: bool,
    rows: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = in_process(monkeypatch, capsys)
    allowed = ("--config", "max_unscored=1")
    out = tmp_path / "in parts"
    if is_cut:
        write_rows(rows, ROWS[:40])
    lines = command("shards", "split", rows, "--parts", 2, "--out", out, "--", *allowed).out
    assert (out / "index.json").exists() is is_cut
    remark, *lines = lines.splitlines()
    expected = (
        "19 rows are in other parts" if is_cut else "every part reads all rows: 1 rows have the id"
    )
    assert remark.startswith(f"# {expected}")
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "apbjudge"
        done = command(*words)
        assert done.code == 0, done.err
    whole = command("grade", rows, "--out", tmp_path / "whole", *allowed)
    results, _, _ = whole.out.partition(f"{tmp_path / 'whole'}/: ")
    assert done.out.startswith(results)
    missing = command("shards", "merge", out / "part-1", "--out", tmp_path / "more")
    assert (missing.code, missing.err) == (
        2,
        "apbjudge: shards are missing: 2/2 (--partial merges the others)\n",
    )
    some = command("shards", "merge", out / "part-1", "--partial", "--out", tmp_path / "some")
    assert some.code == 0, some.err
    both = command("shards", "merge", tmp_path / "some", out / "part-2", "--out", tmp_path / "both")
    assert both.out.startswith(results)
    resumed = command("grade", rows, "--out", tmp_path / "some", *allowed)
    assert (resumed.code, "other settings (shard)" in resumed.err) == (2, True)
