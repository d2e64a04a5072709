"""The caches of replies and of endpoints' properties: content, damage, strangers' folders."""

from __future__ import annotations

import asyncio
import errno
import os
import pickle
import platform
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.llm import cache as module
from apbjudge.llm import cache_segments
from apbjudge.llm.cache import ReplyCache, default_cache_folder
from apbjudge.llm.cache_segments import SegmentCache
from apbjudge.llm.endpoint_cache import FILE, EndpointCache
from apbjudge.llm.limits import CacheKind
from apbjudge.llm.pool import Pool
from apbjudge.llm.resources import REPLIES, Resources, reply_cache
from apbjudge.records.files import unpacked

# The reply cache: what it keeps, what it survives, and what a stranger's folder can't do


VALUE = b'{"grade": 3}'


def _fail(message: str) -> None:
    raise AssertionError(message)


def _open(folder: Path, *, every: int = 64, warn: Callable[[str], None] = _fail) -> ReplyCache:
    return ReplyCache(folder, every=every, warn=warn)


def _made(folder: Path, **entries: bytes) -> Path:
    """A cache as this module leaves it."""
    with closing(_open(folder)) as cache:
        for key, value in (entries or {"k": VALUE}).items():
            cache.put(key, value)
    return folder


@contextmanager
def _database(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as con:
        yield con


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _tamper(folder: Path, sql: str, *values: object) -> None:
    with _database(folder) as con:
        con.execute(sql, values)


def _assert_off(folder: Path, reason: str) -> str:
    """The cache there finds and keeps nothing, raises nothing and says so once, as returned."""
    warnings: list[str] = []
    return _assert_is_off(_open(folder, warn=warnings.append), warnings, folder, reason)


def _assert_is_off(cache: ReplyCache, warnings: list[str], folder: Path, reason: str) -> str:
    for _ in range(3):
        cache.put("k", VALUE)
        cache.flush()
        assert cache.get("k") is None
    assert cache.stats().entries == 0
    assert cache.clear() == 0
    cache.close()
    (warning,) = warnings
    assert str(folder) in warning
    assert reason in warning
    return warning


# What it keeps


_OPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abcd"), st.binary(max_size=8)),
    st.tuples(st.sampled_from(["flush", "reopen", "clear"]), st.just(""), st.just(b"")),
)


@pytest.mark.parametrize("kind", [ReplyCache, SegmentCache])
@settings(max_examples=30)
@given(ops=st.lists(_OPS, max_size=12), every=st.integers(1, 4))
def test_it_behaves_like_a_dict(
    kind: type[ReplyCache], ops: list[tuple[str, str, bytes]], every: int
) -> None:
    expected: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as name:
        cache = kind(Path(name), every=every, warn=_fail)
        for op, key, value in ops:
            if op == "put":
                cache.put(key, value)
                expected[key] = value
            elif op == "flush":
                cache.flush()
            elif op == "clear":
                assert cache.clear() == len(expected)
                expected.clear()
            else:
                cache.close()
                cache = kind(Path(name), every=every, warn=_fail)
            assert {k: v for k in "abcd" if (v := cache.get(k)) is not None} == expected
        assert cache.stats().entries == len(expected)
        cache.close()


def test_clearing_gives_the_space_back(tmp_path: Path) -> None:
    with closing(_open(tmp_path)) as cache:
        cache.put("a", bytes(1_000_000))
        full = cache.stats()
        assert (full.entries, full.folder, full.bytes > 1_000_000) == (1, tmp_path, True)
        assert cache.clear() == 1
        assert cache.stats().bytes < 200_000


def test_the_folder_is_private_and_no_other_one_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELSEWHERE", "elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    _made(Path("~", "c"))
    _assert_off(Path("$ELSEWHERE"), "name")
    assert _names(tmp_path) == ["$ELSEWHERE", "~"]
    assert _names(tmp_path / "$ELSEWHERE") == []
    assert Path("~", "c").stat().st_mode & 0o077 == 0


# Where it is


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"APBJUDGE_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/x"}, "/a"),
        ({"APBJUDGE_CACHE_DIR": "~/a"}, "/home/me/a"),
        ({"APBJUDGE_CACHE_DIR": "", "XDG_CACHE_HOME": "/x"}, "/x/apbjudge"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/apbjudge"),
        ({"XDG_CACHE_HOME": ""}, "/home/me/.cache/apbjudge"),
    ],
)
def test_default_folder(
    variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("APBJUDGE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    assert default_cache_folder() == Path(folder)


# What it survives


@pytest.mark.parametrize(
    ("file", "content", "name", "reason"),
    [
        ("c", b"mine", "c/d", "Not a directory"),
        ("c/cache.db", b"not a database " * 1000, "c", "not a database"),
    ],
)
def test_a_place_that_can_hold_no_cache_is_left_as_it_is(
    tmp_path: Path, file: str, content: bytes, name: str, reason: str
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    _assert_off(tmp_path / name, reason)
    assert path.read_bytes() == content


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder with a cache that this process may only read, even if it is root's."""
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    _made(folder)
    (folder / "cache.db").chmod(0o444)
    folder.chmod(0o555)
    if root:
        os.seteuid(65534)
    yield folder
    if root:
        os.seteuid(0)
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX only")
def test_a_read_only_folder(read_only: Path) -> None:
    warnings: list[str] = []
    for _ in range(2):
        cache = _open(read_only, warn=warnings.append)
        cache.put("new", VALUE)
        cache.flush()
        assert [cache.get("k"), cache.get("new")] == [VALUE, None]
        cache.close()
    said = "can't be written: it is read, and new replies are not kept"
    assert warnings == [f"the reply cache in {read_only} {said}"] * 2


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("sound")
    _made(folder, **{f"k{i}": bytes([i]) * 3000 for i in range(40)})
    return (folder / "cache.db").read_bytes()


@settings(max_examples=60)
@given(data=st.data())
def test_no_damage_to_the_file_raises(sound: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(sound) - 1) | st.integers(0, 200))
    damage = data.draw(st.binary(min_size=1, max_size=64))
    damaged = sound[:at] + damage + sound[at + len(damage) :]
    if data.draw(st.booleans()):
        damaged = damaged[: at + len(damage)]
    warnings: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        Path(name, "cache.db").write_bytes(damaged)
        cache = _open(Path(name), every=2, warn=warnings.append)
        for i in range(40):
            assert cache.get(f"k{i}") in (bytes([i]) * 3000, None)
            cache.put(f"k{i}", b"new")
        cache.clear()
        cache.close()
    assert len(warnings) <= 2


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module._SETTINGS, "sqlite_max_page_count", 30)
    warnings: list[str] = []
    cache = _open(_made(tmp_path), warn=warnings.append)
    assert cache.get("k") == VALUE
    cache.put("large", bytes(500_000))
    cache.flush()
    _assert_is_off(cache, warnings, tmp_path, "disk is full")
    with closing(_open(tmp_path)) as again:
        assert again.get("k") == VALUE


@pytest.mark.parametrize("lock", [None, "IMMEDIATE", "EXCLUSIVE"])
def test_replies_are_kept_while_another_process_holds_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: str | None
) -> None:
    """From when it is opened, or later; until it lets go, or to the end of the run."""
    now, warnings = [0.0], list[str]()
    monkeypatch.setattr(module, "LOCK_WAIT_S", 0.01)
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    with _database(_made(tmp_path)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        if lock:
            other.execute(f"BEGIN {lock}")
        cache = _open(tmp_path, every=1, warn=warnings.append)
        if not lock:
            other.execute("BEGIN IMMEDIATE")
        cache.put("new", VALUE)
        now[0] += 0.001
        assert cache.get("new") == VALUE
        other.execute("ROLLBACK")
        cache.put("unwritten", VALUE)  # it rests after a try, as each may take 5 s
        with _database(tmp_path) as reader:
            assert reader.execute("SELECT count(*) FROM Cache").fetchone() == (1,)
        now[0] += module.LONGEST_REST_S
        cache.put("later", VALUE)
        assert cache.get("k") == VALUE
        other.execute("BEGIN IMMEDIATE")
        cache.put("lost", VALUE)
        cache.close()
        other.execute("ROLLBACK")
    assert [each.removeprefix(f"the reply cache in {tmp_path} ") for each in warnings] == [
        "is held by another process: new replies are kept in memory meanwhile",
        "lacks the last 1 replies: another process holds it",
    ]
    with closing(_open(tmp_path)) as cache:
        found = [cache.get(key) for key in ("new", "unwritten", "later", "lost")]
    assert found == [VALUE] * 3 + [None]


# Several processes

_WRITER = """
import sys
from pathlib import Path
from apbjudge.llm import cache as module
from apbjudge.llm.resources import reply_cache
module.LOCK_WAIT_S = 120.0  # the other writer may stand still for as long
def warn(message): raise SystemExit(message)
folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
cache = reply_cache(folder, sys.argv[4], every=7, warn=warn)
for i in range(count):
    cache.put(f"{name}-{i}", b"%d" % i * 1000)
    if i % 7 == 6:
        print(i, flush=True)
cache.close()
"""


@contextmanager
def _writer(folder: Path, name: str, count: int, kind: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _WRITER, str(folder), name, str(count), kind]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def _start(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "segments"])
def test_two_processes_fill_one_cache_and_what_a_killed_one_had_flushed_is_there(
    kind: CacheKind, tmp_path: Path
) -> None:
    begin = [("a", 300), ("b", 10_000_000)]
    with ExitStack() as stack:
        a, b = (stack.enter_context(_writer(tmp_path, *of, kind)) for of in begin)
        _start(a, b)
        a.communicate()
        assert a.returncode == 0
        assert b.stdout is not None
        last = [int(b.stdout.readline()) for _ in range(20)][-1]
        b.send_signal(signal.SIGKILL)
        b.communicate()
    with closing(reply_cache(tmp_path, kind, warn=_fail)) as cache:
        for name, count in (("a", 300), ("b", last + 1)):
            result = [cache.get(f"{name}-{i}") for i in range(count)]
            assert result == [b"%d" % i * 1000 for i in range(count)]
        cache.put("after", VALUE)
        cache.flush()
        assert cache.get("after") == VALUE


# A pool


@pytest.mark.parametrize("kind", ["sqlite", "segments"])
def test_a_pool_lends_an_open_cache_that_sees_what_others_did(
    kind: CacheKind, tmp_path: Path
) -> None:
    """Not one that is in use, and not one that could not be used."""
    pool, warnings = Pool(), list[str]()

    def lent() -> ReplyCache:
        cache = Resources(cache=tmp_path, cache_kind=kind, warn=warnings.append).open_cache()
        assert cache is not None
        return cache

    replies = tmp_path / REPLIES
    replies.touch()
    with pool.shared():
        lent().close()
        replies.unlink()
        first = lent()
        first.put("a", VALUE)
        first.close()
        with closing(reply_cache(tmp_path, kind, warn=_fail)) as other:
            assert other.get("a") == VALUE
            other.put("b", VALUE)
        again, beside = lent(), lent()
        assert again is first is not beside
        assert again.get("b") == VALUE
        beside.close()
        again.close()
        shutil.rmtree(replies)
        last = lent()
        last.put("c", VALUE)
        last.close()
    asyncio.run(pool.close())
    assert warnings == [f"the reply cache in {replies} is not used: there is no folder but a file"]
    assert _names(replies) == (["cache.db"] if kind == "sqlite" else _names(replies)[:1])
    with closing(reply_cache(tmp_path, kind, warn=_fail)) as cache:
        assert [cache.get(key) for key in "abc"] == [None, None, VALUE]


# Segments

zstandard: Any = import_module("zstandard") if find_spec("zstandard") else None
needs_zstd = pytest.mark.skipif(zstandard is None, reason="zstandard is not installed")
WITH_ZSTD = [pytest.param(True, marks=needs_zstd), False]


def _segment(folder: Path, entries: dict[str, bytes], every: int = 1) -> Path:
    """A segment with so many replies a block."""
    before = set(cache_segments.segments_in(folder))
    with closing(SegmentCache(folder, every=every, warn=_fail)) as cache:
        for key, value in entries.items():
            cache.put(key, value)
    (path,) = set(cache_segments.segments_in(folder)) - before
    return path


def _segment_values(folder: Path, keys: str, *warnings: str) -> list[bytes | None]:
    said: list[str] = []
    with closing(SegmentCache(folder, warn=said.append)) as cache:
        values = [cache.get(key) for key in keys]
    assert [each.removeprefix(f"the reply cache in {folder} ") for each in said] == [*warnings]
    return values


@pytest.mark.parametrize("with_zstd", WITH_ZSTD)
def test_each_process_has_its_own_segment_and_reads_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_zstd: bool
) -> None:
    if not with_zstd:
        monkeypatch.setitem(sys.modules, "zstandard", None)
    first, second = (_segment(tmp_path, {key: VALUE}) for key in "ab")
    name = f"replies-{platform.node()}-{os.getpid()}"
    suffix = ".jsonl.zst" if with_zstd else ".jsonl"
    assert (first.name, second.name) == (f"{name}{suffix}", f"{name}-1{suffix}")
    before = [path.read_bytes() for path in (first, second)]
    assert _segment_values(tmp_path, "abc") == [VALUE, VALUE, None]
    assert [path.read_bytes() for path in (first, second)] == before
    assert _names(tmp_path) == [second.name, first.name]  # reading makes no file
    if with_zstd:
        text = unpacked(first).read_bytes()  # the skipped frames don't disturb other readers
        assert orjson.loads(text)["reply"].encode() == VALUE
        monkeypatch.setitem(sys.modules, "zstandard", None)
        needs = "has segments that need zstandard: pip install 'apbjudge[zstd]'"
        assert _segment_values(tmp_path, "a", needs) == [None]


@pytest.mark.parametrize("with_zstd", WITH_ZSTD)
def test_a_segment_that_breaks_off_anywhere_has_its_whole_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_zstd: bool
) -> None:
    if not with_zstd:
        monkeypatch.setitem(sys.modules, "zstandard", None)
    path = _segment(tmp_path, dict.fromkeys("abc", VALUE))
    data, seen = path.read_bytes(), list[int]()
    for end in range(0, len(data), 3):
        path.write_bytes(data[:end])
        values = _segment_values(tmp_path, "abc")
        seen.append(values.count(VALUE))
        assert values == [VALUE] * seen[-1] + [None] * (3 - seen[-1])
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 2}


@needs_zstd
def test_a_damaged_block_costs_its_own_replies(tmp_path: Path) -> None:
    path = _segment(tmp_path, dict.fromkeys("abc", VALUE))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1  # within the frame of b
    path.write_bytes(data)
    assert _segment_values(tmp_path, "abc") == [VALUE, None, VALUE]
    path.write_bytes(b"no segment at all" * 9)
    assert _segment_values(tmp_path, "abc") == [None] * 3


@needs_zstd
def test_a_strangers_segments_open_nothing_else_and_do_not_fill_the_memory(tmp_path: Path) -> None:
    inside, outside = tmp_path / "c", tmp_path / "outside"
    target = _segment(outside, {"a": VALUE})
    inside.mkdir()
    (inside / "replies-x-1.jsonl.zst").symlink_to(target)
    os.mkfifo(inside / "replies-x-2.jsonl.zst")
    bomb = zstandard.ZstdCompressor().compress(bytes(cache_segments._LONGEST + 1))
    key = cache_segments._hash("b")
    head = cache_segments._HEAD.pack(cache_segments._SKIPPED, 12, len(bomb))
    (inside / "replies-x-3.jsonl.zst").write_bytes(head + key.to_bytes(8, "little") + bomb)
    assert _segment_values(inside, "ab") == [None, None]
    assert target.exists()


def test_segments_that_can_only_be_read_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _segment(tmp_path, {"a": VALUE})
    said: list[str] = []
    with closing(SegmentCache(tmp_path, every=1, warn=said.append)) as cache:

        def refused(*_: object, **__: object) -> None:
            raise PermissionError(errno.EACCES, "no")

        monkeypatch.setattr(Path, "open", refused)
        cache.put("b", VALUE)
        cache.put("c", VALUE)
        assert [cache.get(key) for key in "abc"] == [VALUE, None, None]
    (text,) = said
    assert text.endswith("can't be written: it is read, and new replies are not kept")


# What a stranger's folder can't do


_BOMB_MARKER = "marker"


class _Bomb:
    def __reduce__(self) -> tuple[Callable[..., None], tuple[str]]:
        return os.mkdir, (_BOMB_MARKER,)


_BOMB = pickle.dumps(_Bomb())
_PLANT = "INSERT INTO Cache (key, raw, mode, filename, value) VALUES (?, ?, ?, ?, ?)"


@pytest.mark.parametrize("value", [None, bytes(16) + VALUE, _BOMB], ids=repr)
def test_an_odd_entry_is_a_miss_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: object
) -> None:
    """Whatever its mode says: a raw value, bytes or text in a file, or a pickle."""
    monkeypatch.chdir(tmp_path)
    victim, folder, warnings = tmp_path / "victim", _made(tmp_path / "c"), list[str]()
    victim.write_bytes(_BOMB)
    for mode in range(6):
        _tamper(folder, _PLANT, f"bad-{mode}", 1, mode, "../victim", value)
        _tamper(folder, _PLANT, _BOMB + bytes([mode]), 0, mode, str(victim), value)
    swapped = "INSERT INTO Cache (key, raw, mode, value) SELECT 'swapped', 1, 1, value FROM Cache"
    _tamper(folder, f"{swapped} WHERE key = 'k'")
    with closing(_open(folder, warn=warnings.append)) as cache:
        for key in ("swapped", *(f"bad-{mode}" for mode in range(6))):
            assert cache.get(key) is None
            cache.put(key, VALUE)
            cache.flush()
            assert cache.get(key) == VALUE
        assert cache.get("k") == VALUE
        assert cache.stats().entries == cache.clear()
    said = "has damaged replies, which are asked for again"
    assert warnings == [f"the reply cache in {folder} {said}"]
    assert victim.read_bytes() == _BOMB
    assert not Path(_BOMB_MARKER).exists()


_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER INSERT ON Cache BEGIN DELETE FROM Cache; END",
        f"DROP TABLE Cache; CREATE VIEW Cache (key, value) AS SELECT i, i FROM ({_ENDLESS})",
        "ALTER TABLE Cache ADD COLUMN more DEFAULT (1)",
        "DROP TABLE Cache; CREATE TABLE Cache (key, value)",
        "INSERT INTO Settings VALUES ('sqlite_user_version', 7)",
        "INSERT INTO Settings VALUES ('_directory', '/nowhere')",
    ],
)
def test_foreign_tables_and_settings_turn_the_cache_off_untouched(tmp_path: Path, sql: str) -> None:
    with _database(_made(tmp_path)) as con:
        con.executescript(sql)
    before = (tmp_path / "cache.db").read_bytes()
    _assert_off(tmp_path, "something else")
    assert (tmp_path / "cache.db").read_bytes() == before


def test_an_escape_sequence_in_the_database_does_not_reach_the_terminal(tmp_path: Path) -> None:
    with _database(_made(tmp_path)) as con:
        con.execute("PRAGMA writable_schema = ON")
        con.execute("UPDATE sqlite_master SET sql = '\x1b[2J', name = '\x1b[2J' WHERE name='Cache'")
    assert "\x1b" not in _assert_off(tmp_path, "\\x1b[2J")


@pytest.mark.parametrize(
    ("suffix", "kind"), [("", "link"), ("", "pipe"), ("-wal", "dangling"), ("-shm", "folder")]
)
def test_only_regular_files_are_opened(tmp_path: Path, suffix: str, kind: str) -> None:
    name = f"cache.db{suffix}"
    folder, victim = _made(tmp_path / "c"), tmp_path / "victim"
    (folder / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(folder / name)
    elif kind == "folder":
        (folder / name).mkdir()
    else:
        (folder / name).symlink_to(victim)
    if kind == "link":
        victim.write_bytes(b"secret")
    _assert_off(folder, f"{name} is no regular file")
    assert (victim.read_bytes() == b"secret") if kind == "link" else not victim.exists()


# What is remembered of endpoints, and that a broken cache is no failure


ADDRESS = "http://127.0.0.1:8000/v1"


def test_properties_are_those_of_a_model_at_an_address_and_last(tmp_path: Path) -> None:
    cache = EndpointCache(tmp_path)
    places = [("m", ADDRESS), ("m", None), ("n", ADDRESS), ("m", "http://127.0.0.1:8001/v1")]
    for number, place in enumerate(places):
        cache.update(*place, {"number": number, "format": "text"})
    later = EndpointCache(tmp_path)
    assert [later.get(*place)["number"] for place in places] == [0, 1, 2, 3]
    assert later.get("o", ADDRESS) == {}
    later.update("m", ADDRESS, {"number": 7})
    assert cache.get("m", ADDRESS) == {"number": 7, "format": "text"}


@pytest.mark.parametrize("folder", [None, "file/cache"])
def test_without_a_usable_folder_nothing_is_stored(tmp_path: Path, folder: str | None) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = EndpointCache(tmp_path / folder if folder else None)
    cache.update("m", ADDRESS, {"format": "text"})
    assert cache.get("m", ADDRESS) == {}


@pytest.mark.parametrize(
    "data", [b'{"m http://127.0.0.1:8000/v1": {"for', b"\xff\xfe", b'{"m %s": ["text"]}']
)
def test_a_broken_file_knows_nothing_and_is_replaced(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE).write_bytes(data.replace(b"%s", ADDRESS.encode()))
    cache = EndpointCache(tmp_path)
    assert cache.get("m", ADDRESS) == {}
    cache.update("m", ADDRESS, {"format": "tool"})
    assert cache.get("m", ADDRESS) == {"format": "tool"}
