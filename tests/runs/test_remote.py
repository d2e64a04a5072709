"""Addresses: what is read from one equals what is read here, and a run goes on from its own."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import apbjudge
from apbjudge import JudgeSpec, OptionError, ScriptedClient
from apbjudge.errors import InputError
from apbjudge.llm.base import Completion, Request
from apbjudge.records import Usage
from apbjudge.records.run_folder import read_run
from apbjudge.remote import Store, here
from apbjudge.runs import mirror
from apbjudge.runs.mirror import Mirror, mirrored
from tests.support.commands import in_process
from tests.support.judging import plan_row, read_rows, verdict, write_rows
from tests.support.server import PATIENCE_S

fsspec = pytest.importorskip("fsspec")
EXAMPLES = Path(__file__).parents[2] / "examples"
RUN = "memory://b/run"
ROWS = [plan_row(f"r{n}", case_id=f"case-{n % 9}") for n in range(30)]
SPEC = JudgeSpec(model="scripted/judge", max_concurrency=1)
TIMES = {"latency_s", "started", "finished", "seconds"}


@pytest.fixture
def memory() -> Iterator[Any]:
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]
    yield files
    files.store.clear()


@pytest.fixture
def rows(tmp_path: Path, memory: Any) -> Path:
    path = write_rows(tmp_path / "rows.jsonl", ROWS)
    memory.pipe_file("/b/rows.jsonl", path.read_bytes())
    return path


def graded(rows: Path | str, out: Path | str, *, fails_at: int = -1, **options: Any) -> int:
    """Grades into a folder; returns how many requests were made."""

    def answer(request: Request) -> Completion:
        if len(client.requests) == fails_at:
            raise OptionError("the end")
        own = random.Random(str(request.messages))
        text = json.dumps(verdict("E3", grade=own.choice((0.8, 0.6, 0.4))))
        return Completion(text=text, finish_reason="stop", usage=Usage(calls=1), cost_usd=0.01)

    client = ScriptedClient(answer)
    apbjudge.grade(rows, judge=SPEC, client=client, out=out, **options)
    return len(client.requests)


def judged(folder: Path | str) -> list[dict[str, Any]]:
    own = [{k: v for k, v in row.items() if k not in TIMES} for row in read_rows(here(folder))]
    return sorted(own, key=lambda row: row["line"])


def test_a_run_from_and_to_an_address_is_the_run_here(
    tmp_path: Path, rows: Path, memory: Any
) -> None:
    assert graded(rows, tmp_path / "here") == len(ROWS)
    assert graded("memory://b/rows.jsonl", RUN, work=tmp_path / "one") == len(ROWS)
    assert judged(RUN) == judged(tmp_path / "here")
    summary = (tmp_path / "here/summary.json").read_bytes()
    assert memory.cat_file("/b/run/summary.json") == summary
    mark = json.loads(memory.cat_file("/b/run/manifest.json"))["inputs"]["predictions"]
    there = json.loads((tmp_path / "here/manifest.json").read_bytes())["inputs"]["predictions"]
    assert mark == there | {"path": "memory://b/rows.jsonl"}
    before = memory.find("/b/run")
    for work in ("one", "another machine"):  # nothing is left to be done
        assert graded("memory://b/rows.jsonl", RUN, work=tmp_path / work) == 0
    assert memory.find("/b/run") == before


def test_a_run_goes_on_elsewhere_after_a_kill_between_segment_and_manifest(
    tmp_path: Path, rows: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Store.put

    def dies(self: Store, path: Path, name: str) -> None:
        if name == "manifest.json" and self.has("judgements/part-00001/000001.jsonl.zst"):
            raise SystemExit
        put(self, path, name)

    pytest.importorskip("zstandard")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "put", dies)
        with pytest.raises(SystemExit):
            graded(rows, RUN, work=tmp_path / "one", fails_at=20)
    assert json.loads(memory.cat_file("/b/run/manifest.json"))["state"] == "running"
    n_up = len(judged(RUN))
    assert 15 <= n_up <= 20
    assert graded(rows, RUN, work=tmp_path / "another") == len(ROWS) - n_up
    graded(rows, tmp_path / "here")
    assert judged(RUN) == judged(tmp_path / "here")


def test_lines_that_were_not_up_yet_are_not_lost(tmp_path: Path, rows: Path, memory: Any) -> None:
    work = tmp_path / "one"
    with pytest.raises(OptionError, match="the end"):
        graded(rows, RUN, work=work, fails_at=10)
    up = {name: memory.cat_file(name) for name in memory.find("/b/run")}
    assert graded(rows, RUN, work=work) > 0
    for name in set(memory.find("/b/run")) - set(up):  # as if its uploads had failed
        memory.rm_file(name)
    for name, data in up.items():
        memory.pipe_file(name, data)
    assert graded(rows, RUN, work=work) == 0
    assert len(judged(RUN)) == len(ROWS)


@pytest.fixture
def copies(tmp_path: Path, memory: Any) -> Mirror:
    (tmp_path / "run").mkdir()
    return Mirror(tmp_path / "run", Store.at(RUN))


def restored(to: Path) -> dict[str, bytes]:
    """The files of the run, on a machine that has none of it."""
    to.mkdir()
    Mirror(to, Store.at(RUN)).restore()
    return {p.name: p.read_bytes() for p in to.iterdir() if p.name != ".lock"}


@pytest.mark.parametrize("library", ["zstandard", "gzip"])
def test_segments_hold_whole_lines_and_a_file_written_anew_is_another_part(
    tmp_path: Path,
    copies: Mirror,
    memory: Any,
    monkeypatch: pytest.MonkeyPatch,
    library: str,
) -> None:
    if library == "gzip":
        monkeypatch.setitem(sys.modules, "zstandard", None)
    else:
        pytest.importorskip("zstandard")
    file = tmp_path / "run/judgements.jsonl"
    file.write_bytes(b"1\n2\n3")
    copies.push()
    with file.open("ab") as more:
        more.write(b"3\n")
    copies.push()
    copies.push()
    assert restored(tmp_path / "a") == {"judgements.jsonl": b"1\n2\n33\n"}
    assert len(memory.find("/b/run")) == 2
    (tmp_path / "new").write_bytes(b"2\n")
    (tmp_path / "new").replace(file)
    copies.push()
    assert restored(tmp_path / "b") == {"judgements.jsonl": b"2\n"}
    assert len(memory.find("/b/run")) == 3
    file.unlink()
    copies.push()
    copies.push()
    assert restored(tmp_path / "c") == {}
    file.write_bytes(b"4\n")
    copies.push()
    assert restored(tmp_path / "d") == {"judgements.jsonl": b"4\n"}
    assert len(memory.find("/b/run")) == 5


def test_an_upload_whose_answer_was_lost_is_ours_and_another_one_is_not(
    tmp_path: Path, copies: Mirror, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run/judgements.jsonl"
    file.write_bytes(b"1\n")
    put = Store.put

    def lost(self: Store, path: Path, name: str) -> None:
        put(self, path, name)
        raise InputError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "put", lost)
        with pytest.raises(InputError, match="no answer"):
            copies.push()
    file.write_bytes(b"1\n2\n")
    copies.push()
    assert restored(tmp_path / "a") == {"judgements.jsonl": b"1\n2\n"}
    other = tmp_path / "other"
    other.mkdir()
    (other / "judgements.jsonl").write_bytes(b"9\n")
    with pytest.raises(OptionError, match="another process is writing memory://b/run"):
        Mirror(other, Store.at(RUN)).push()


def test_a_missing_segment_is_named(tmp_path: Path, copies: Mirror, memory: Any) -> None:
    file = tmp_path / "run/judgements.jsonl"
    for n in range(3):
        with file.open("ab") as more:
            more.write(b"%d\n" % n)
        copies.push()
    memory.rm_file(sorted(memory.find("/b/run"))[1])
    with pytest.raises(InputError, match=r"a segment of judgements.jsonl is missing in part 1"):
        restored(tmp_path / "a")


def test_uploads_come_in_the_interval_and_failures_are_tried_again(
    tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "apbjudge-upload/memory:/b/run"
    folder.mkdir(parents=True)
    waits, notes = list[float](), list[str]()
    is_written, are_done = Event(), Event()
    push = Mirror.push

    class Clock(Event):
        """Lets two intervals pass once there is something to bring up."""

        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0)
            if len(waits) > 2:
                are_done.set()
                return super().wait()
            return not is_written.wait(PATIENCE_S)

    def fails_once(self: Mirror) -> None:
        if not notes:
            raise InputError("no network")
        push(self)

    monkeypatch.setattr(Mirror, "push", fails_once)
    monkeypatch.setattr(mirror, "Event", Clock)
    with mirrored(folder, notes.append):
        (folder / "judgements.jsonl").write_bytes(b"1\n")
        is_written.set()
        assert are_done.wait(PATIENCE_S)
        assert len(memory.find("/b/run")) == 1
    assert (waits, notes[0]) == ([60.0] * 3, "no network; it is tried again in 60 s")


def test_what_can_not_be_brought_up_is_here(
    tmp_path: Path, rows: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> str:
        raise InputError("no network")

    with monkeypatch.context() as patch:
        patch.setattr(mirror, "_pack", fails)
        with pytest.raises(InputError, match=r"no network; all is in .*, and the same command"):
            graded(rows, RUN, work=tmp_path / "one")
    assert graded(rows, RUN, work=tmp_path / "one") == 0
    assert len(judged(RUN)) == len(ROWS)


# Commands ----------------------------------------------------------------------------------------


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], memory: Any
) -> Any:
    monkeypatch.chdir(tmp_path)
    for path in EXAMPLES.rglob("*"):
        if path.is_file():
            memory.pipe_file(f"/x/{path.relative_to(EXAMPLES)}", path.read_bytes())
    return in_process(monkeypatch, capsys)


PACKED = ["holistic.jsonl.gz", "holistic.jsonl.zst", "holistic.parquet"]


@pytest.mark.parametrize("name", PACKED)
def test_rows_are_read_as_they_are_here(shell: Any, memory: Any, name: str) -> None:
    data = (EXAMPLES / "holistic.jsonl").read_bytes()
    if name.endswith(".gz"):
        data = gzip.compress(data)
    elif name.endswith(".zst"):
        data = pytest.importorskip("zstandard").compress(data)
    else:
        pytest.importorskip("pyarrow")
        import pandas as pd

        names = "id case_id tested_model query reference model_response".split()
        read = map(json.loads, data.splitlines())
        frame = pd.DataFrame([{n: row[n] for n in names if n in row} for row in read])
        frame.astype(str).to_parquet(name)
        data = Path(name).read_bytes()
    Path(name).write_bytes(data)
    memory.pipe_file(f"/x/{name}", data)
    one = shell("grade", name, "--out", "here")
    other = shell("grade", f"memory://x/{name}", "--out", "memory://x/out", "--work", "w")
    there = other.err.replace("the run is at memory://x/out\n", "").replace("memory://x/", "")
    assert (one.code, one.err) == (other.code, there)
    summary = Path("here/summary.json").read_bytes()
    assert memory.cat_file("/x/out/summary.json") == summary


@pytest.mark.parametrize(
    "line",
    [
        "calibrate here X/labels/holistic.jsonl",
        "convert X/trajectories out.jsonl --to atif",
        "compare here here",
        "report here",
    ],
)
def test_commands_take_addresses(shell: Any, memory: Any, line: str) -> None:
    shell("grade", EXAMPLES / "holistic.jsonl", "--out", "here")
    shell("grade", EXAMPLES / "holistic.jsonl", "--out", "memory://x/here")
    words = line.split()
    local = shell(*(word.replace("X", str(EXAMPLES), 1) for word in words))
    remote = [w.replace("X", "memory://x", 1).replace("here", "memory://x/here") for w in words]
    far = shell(*remote)
    assert far.code == local.code
    assert len(far.out) == pytest.approx(len(local.out), abs=200)
    assert "no such file" not in far.err


def test_a_pattern_stands_for_files(shell: Any) -> None:
    path = here("memory://x/*.jsonl")
    there = sorted(each.name for each in path.parent.glob(path.name))
    assert there == sorted(each.name for each in EXAMPLES.glob("*.jsonl"))


def test_parts_at_addresses_are_merged(shell: Any, memory: Any, tmp_path: Path) -> None:
    rows = "memory://x/holistic.jsonl"
    for part in ("1/2", "2/2"):
        done = shell("grade", rows, "--shard", part, "--out", f"memory://x/part{part[0]}")
        assert done.code == 0
    assert shell("grade", rows, "--out", "whole").code == 0
    done = shell("shards", "merge", "memory://x/part1", "memory://x/part2", "--out", "merged")
    assert done.code == 0
    assert Path("merged/summary.json").read_bytes() == Path("whole/summary.json").read_bytes()


def test_parts_read_one_copy_of_what_was_fetched(tmp_path: Path, rows: Path, memory: Any) -> None:
    address, out = "memory://b/rows.jsonl", tmp_path / "parts"
    apbjudge.shards_split(address, out=out, parts=2)
    content = memory.cat_file("/b/rows.jsonl")
    memory.rm_file("/b/rows.jsonl")
    parts = [out / "part-1", out / "part-2"]
    for i, part in enumerate(parts, 1):
        graded(out / "index.rows.jsonl", part, shard=f"{out}/index.json#{i}")
    apbjudge.shards_merge(parts, out / "whole")
    mark = json.loads((out / "whole/manifest.json").read_bytes())["inputs"]["predictions"]
    assert (mark["path"], mark["bytes"]) == (address, len(content))
    graded(rows, tmp_path / "here")
    assert judged(out / "whole") == judged(tmp_path / "here")
    memory.pipe_file("/b/rows.jsonl", content)
    assert graded(address, out / "whole") == 0


@pytest.mark.parametrize("slashes", ["/", "//", "///"])
def test_an_address_of_this_machine_is_a_path(slashes: str, tmp_path: Path, rows: Path) -> None:
    address = f"file:{slashes}{str(rows)[1:]}"
    assert graded(address, tmp_path / "run") == len(ROWS)
    mark = json.loads((tmp_path / "run/manifest.json").read_bytes())["inputs"]["predictions"]
    assert mark["path"] == f"file://{rows}"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("grade nowhere://b/x", "nowhere://b/x: can't be opened: Protocol not known: nowhere"),
        ("grade memory://b/none.jsonl", "memory://b/none.jsonl: no such file or folder"),
        ("grade rows.jsonl --out nowhere://b/x", "nowhere://b/x: can't be opened"),
        ("report run --refined R=nowhere://b/x", "nowhere://b/x: can't be opened"),
        ("report run --out memory://b/x.html", "--out: expected a path on this machine"),
        ("shards merge a b --out memory://b/x", "--out: expected a path on this machine"),
        ("convert a.jsonl memory://b/x --to atif", "OUT: expected a path on this machine"),
    ],
)
def test_an_address_that_can_not_be_used_is_one_line(shell: Any, line: str, text: str) -> None:
    done = shell(*line.split())
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert text in done.err


def test_without_the_extra_one_line_says_what_installs_it(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    done = shell("grade", "s3://b/rows.jsonl")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "s3://b/rows.jsonl: opening it needs fsspec, which is not installed" in done.err
    assert 'pip install "apbjudge[remote]"' in done.err


def test_a_project_file_calls_no_address(shell: Any) -> None:
    settings = '[grade]\ncases = "memory://x/cases.jsonl"\n'
    Path("apbjudge.toml").write_text(settings, encoding="utf-8")
    done = shell("grade", EXAMPLES / "holistic.jsonl")
    assert done.code == 2
    assert "cases: expected a path in the folder of the file" in done.err


def test_names_there_lead_out_of_no_folder_here(memory: Any, tmp_path: Path) -> None:
    memory.store["/b/../../../up.jsonl"] = memory.open("/b/run/x.jsonl", "wb")
    memory.pipe_file("/b/run/x.jsonl", b"{}\n")
    folder = here("memory://b/run")
    assert all(path.is_relative_to(folder) for path in folder.rglob("*"))


# Parquet of judgements ---------------------------------------------------------------------------


def test_judgements_as_parquet_have_fixed_columns_and_the_same_figures(shell: Any) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    from apbjudge.records.judgement_parquet import scalar_columns

    rows = EXAMPLES / "holistic.jsonl"
    for part in ("1/2", "2/2"):
        shell("grade", rows, "--shard", part, "--out", f"part{part[0]}")
    done = shell("shards", "merge", "part1", "part2", "--out", "whole", "--as", "parquet")
    assert done.code == 0
    table = parquet.read_table("whole/judgements.parquet")
    assert table.schema.names == [*scalar_columns(), "json"]
    assert {"item_id", "tested_model", "grade", "is_correct", "line"} <= scalar_columns().keys()
    lines = Path("whole/judgements.jsonl").read_text(encoding="utf-8").splitlines()
    assert table.column("json").to_pylist() == lines
    for name in scalar_columns():
        assert table.column(name).to_pylist() == [json.loads(line)[name] for line in lines], name
    reported = shell("report", "whole").out
    shutil.copytree("whole", "packed/whole")
    Path("packed/whole/judgements.jsonl").unlink()
    assert shell("report", "packed/whole").out == reported
    run, own = read_run(Path("packed/whole")), read_run(Path("whole"))
    at = int(own.table.position[3])
    assert run.row_at(at) == own.row_at(at)
    assert [*run.table.item_id.values] == [*own.table.item_id.values]


def test_a_file_that_is_no_parquet_is_no_run(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "other.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="can't be read"):
        read_run(path)


# S3 ----------------------------------------------------------------------------------------------


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",  # pragma: allowlist secret
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    fsspec.filesystem("s3").mkdir("bucket")
    yield "s3://bucket"
    server.stop()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_run_from_and_to_s3_is_the_run_here(tmp_path: Path, rows: Path, bucket: str) -> None:
    files = fsspec.filesystem("s3")
    files.pipe_file("bucket/rows.jsonl", rows.read_bytes())
    graded(rows, tmp_path / "here")
    with pytest.raises(OptionError, match="the end"):
        graded(f"{bucket}/rows.jsonl", f"{bucket}/run", work=tmp_path / "one", fails_at=20)
    n_up = len(judged(f"{bucket}/run"))
    n = graded(f"{bucket}/rows.jsonl", f"{bucket}/run", work=tmp_path / "another")
    assert (n_up + n, n_up > 0) == (len(ROWS), True)
    assert judged(f"{bucket}/run") == judged(tmp_path / "here")
    summary = (tmp_path / "here/summary.json").read_bytes()
    assert files.cat_file("bucket/run/summary.json") == summary
