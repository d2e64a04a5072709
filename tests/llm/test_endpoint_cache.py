"""What is remembered of endpoints, and that a broken cache is no failure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apbjudge.llm.endpoint_cache import FILE, EndpointCache

ADDRESS = "http://127.0.0.1:8000/v1"


def test_what_was_noted_is_recalled_by_another_session(tmp_path: Path) -> None:
    EndpointCache(tmp_path).update("m", ADDRESS, {"format": "text"})
    assert EndpointCache(tmp_path).get("m", ADDRESS) == {"format": "text"}


def test_models_and_addresses_are_told_apart(tmp_path: Path) -> None:
    cache = EndpointCache(tmp_path)
    places = [("m", ADDRESS), ("m", None), ("n", ADDRESS), ("m", "http://127.0.0.1:8001/v1")]
    for number, place in enumerate(places):
        cache.update(*place, {"number": number})
    assert [cache.get(*place)["number"] for place in places] == [0, 1, 2, 3]
    assert cache.get("o", ADDRESS) == {}


def test_facts_are_added_to_those_that_are_known(tmp_path: Path) -> None:
    cache = EndpointCache(tmp_path)
    cache.update("m", ADDRESS, {"format": "text", "latency_s": 1.0})
    cache.update("m", ADDRESS, {"latency_s": 2.0})
    assert cache.get("m", ADDRESS) == {"format": "text", "latency_s": 2.0}


def test_what_is_known_already_is_not_written_again(tmp_path: Path) -> None:
    cache = EndpointCache(tmp_path)
    cache.update("m", ADDRESS, {"format": "text"})
    before = (tmp_path / FILE).stat()
    cache.update("m", ADDRESS, {"format": "text"})
    assert (tmp_path / FILE).stat().st_ino == before.st_ino
    cache.update("m", ADDRESS, {})
    assert (tmp_path / FILE).stat().st_ino == before.st_ino


def test_without_a_folder_nothing_is_remembered() -> None:
    cache = EndpointCache(None)
    cache.update("m", ADDRESS, {"format": "text"})
    assert cache.get("m", ADDRESS) == {}


BROKEN: dict[str, bytes] = {
    "empty": b"",
    "torn": b'{"m http://127.0.0.1:8000/v1": {"for',
    "no text": b"\xff\xfe",
    "null": b"null",
    "a list": b"[1]",
    "facts that are none": json.dumps({f"m {ADDRESS}": ["text"]}).encode(),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_knows_nothing_and_is_replaced(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE).write_bytes(data)
    cache = EndpointCache(tmp_path)
    assert cache.get("m", ADDRESS) == {}
    cache.update("m", ADDRESS, {"format": "tool"})
    assert cache.get("m", ADDRESS) == {"format": "tool"}


def test_a_folder_that_can_not_be_made_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = EndpointCache(tmp_path / "file" / "cache")
    cache.update("m", ADDRESS, {"format": "text"})
    assert cache.get("m", ADDRESS) == {}


def test_the_file_is_made_with_its_folder_and_left_whole_by_a_failed_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a" / "b"
    cache = EndpointCache(folder)
    cache.update("m", ADDRESS, {"format": "text"})

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("apbjudge.llm.endpoint_cache.write_atomically", full)
    cache.update("m", ADDRESS, {"format": "tool"})
    assert cache.get("m", ADDRESS) == {"format": "text"}
