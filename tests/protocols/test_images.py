"""Pictures of a case: only from inside the data folder, of bounded size and number."""

from __future__ import annotations

import base64
import json
import os
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import apbjudge
from apbjudge.errors import RowError
from apbjudge.protocols.images import is_image, load_images, sample
from apbjudge.records import FileRef, Item, Row

PICTURE = b"\x89PNG not really"


def row(*paths: str) -> dict[str, Any]:
    files = [{"type": "image", "path": path} for path in paths]
    fields = {"id": "a", "tested_model": "m", "query": "What is it?", "model_response": "x"}
    return {**fields, "files": files}


def item(*paths: str) -> Item:
    return Row(row(*paths), 1).to_item()


def load(root: Path, *paths: str, max_images: int = 16, max_bytes: int = 100) -> list[str]:
    """Contents of the loaded pictures, as data URLs."""
    results = load_images(item(*paths), [root], max_images=max_images, max_bytes=max_bytes)
    return [part.url for part in results]


def url(content: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with a picture, beside a secret that is none of its business."""
    folder = tmp_path / "data"
    (folder / "frames").mkdir(parents=True)
    (folder / "one.png").write_bytes(PICTURE)
    (folder / "frames" / "two.png").write_bytes(b"two")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "data-twin").mkdir()
    (tmp_path / "data-twin" / "one.png").write_bytes(b"secret")
    return folder


def test_a_picture_becomes_a_data_url_of_its_type(tmp_path: Path) -> None:
    names = "a.png a.PNG ü.png a.jpg a.jpeg many.dots.Jpg a.gif a.webp".split()
    types = ["png"] * 3 + ["jpeg"] * 3 + ["gif", "webp"]
    for name, kind in zip(names, types, strict=True):
        (tmp_path / name).write_bytes(PICTURE)
        assert load(tmp_path, name) == [url(PICTURE, f"image/{kind}")]


@pytest.mark.parametrize("name", ["a.txt", "a.png.zip", "png", "", "folder/"])
def test_other_files_are_no_pictures_and_are_not_read(name: str, tmp_path: Path) -> None:
    assert not is_image(FileRef(type="image", path=name))
    assert load(tmp_path, name) == []


def test_paths_and_links_inside_the_folder_are_followed(data: Path) -> None:
    (data / "9f86d0").write_bytes(PICTURE)
    (data / "link.png").symlink_to(data / "9f86d0")  # of the type of its own name
    for name in ("one.png", "./one.png", "frames//../one.png", "link.png"):
        assert load(data, name) == [url(PICTURE)]


@pytest.mark.parametrize(
    "name",
    ["../secret.png", "frames/../../secret.png", "../data-twin/one.png", "/etc/hostname.png",
     "one.png\x00.png", "link.png", "up/secret.png"],
    ids=ascii,
)  # fmt: skip
def test_a_path_that_leads_out_is_refused_with_its_field(name: str, data: Path) -> None:
    (data / "link.png").symlink_to(data.parent / "secret.png")
    (data / "up").symlink_to(data.parent)
    with pytest.raises(RowError, match="a path inside the data folder") as caught:
        load(data, "one.png", name)
    assert caught.value.field == "files[1].path"


@pytest.mark.parametrize(
    "name", ["missing.png", "one.png/two.png", f"{'x' * 300}.png", "folder.png", "loop.png"]
)
def test_a_picture_that_can_not_be_read_is_a_bad_row(name: str, data: Path) -> None:
    (data / "folder.png").mkdir()
    (data / "loop.png").symlink_to(data / "loop.png")
    with pytest.raises(RowError) as caught:
        load(data, name)
    assert caught.value.field == "files[0].path"


def test_a_pipe_with_the_name_of_a_picture_does_not_hang_the_run(data: Path) -> None:
    os.mkfifo(data / "pipe.png")
    refused: list[RowError] = []

    def read() -> None:
        with pytest.raises(RowError) as caught:
            load(data, "pipe.png")
        refused.append(caught.value)

    reading = Thread(target=read, daemon=True)
    reading.start()
    reading.join(10)
    assert refused


def test_the_size_limit_includes_its_own_value_and_nothing_is_none(data: Path) -> None:
    sizes = {"none.png": 0, "big.png": 100, "greater.png": 101}
    for name, size in sizes.items():
        (data / name).write_bytes(b"x" * size)
    assert load(data, "big.png", max_bytes=100) == [url(b"x" * 100)]
    with pytest.raises(RowError, match=r"files\[0\]\.path: .*at most 100 bytes.*101 bytes"):
        load(data, "greater.png", max_bytes=100)
    with pytest.raises(RowError, match=r"files\[0\]\.path: expected a picture .*, an empty file"):
        load(data, "none.png")


@settings(deadline=None, max_examples=200)
@given(length=st.integers(0, 300), n=st.integers(1, 40))
def test_a_sample_is_even_and_holds_first_and_last(length: int, n: int) -> None:
    frames = list(range(length))
    taken = sample(frames, n)
    assert len(taken) == min(length, n)
    assert taken == sorted(set(taken))
    if 1 < n < length:
        assert (taken[0], taken[-1]) == (0, length - 1)
        gaps = [b - a for a, b in pairwise(taken)]
        assert max(gaps) - min(gaps) <= 1
    elif length:
        assert taken[0] == 0


def test_a_bad_picture_leaves_its_row_unscored_and_the_others_graded(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data)
    rows = [row("../secret.png"), {**row("one.png"), "id": "b"}]
    codes = dict.fromkeys(("E1", "E2", "E3", "E4", "E5", "E6"), False)
    reply = json.dumps({"reasoning": "", **codes, "grade": 1, "is_correct": True})
    client = apbjudge.ScriptedClient(lambda _: reply)
    spec = apbjudge.JudgeSpec(model="scripted", vision="yes", evidence=False)
    run = apbjudge.grade(rows, protocol="holistic", judge=spec, client=client)
    kinds = {j.item_id: (j.kind, getattr(j, "reason", None)) for j in run.judgements}
    assert kinds == {"a": ("unscored", "bad_input"), "b": ("verdict", None)}
    (request,) = client.requests
    assert request.messages[1]["content"][1]["image_url"]["url"] == url(PICTURE)


def found_in(roots: list[Path], name: str) -> list[str]:
    results = load_images(item(name), roots, max_images=1, max_bytes=100)
    return [part.url for part in results]


def test_a_path_is_looked_for_in_every_folder_in_turn(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("first", "second")]
    for root in roots:
        root.mkdir()
        (root / "both.png").write_bytes(root.name.encode())
    (roots[1] / "one.png").write_bytes(PICTURE)
    assert found_in(roots, "both.png") == [url(b"first")]
    assert found_in(roots, "one.png") == [url(PICTURE)]
    with pytest.raises(RowError) as caught:
        found_in(roots, "two.png")
    assert f"a readable picture in {roots[0]} or {roots[1]} (--data-root" in caught.value.expected
    assert "--no-images judges without" in caught.value.expected
    assert caught.value.got == "'two.png: No such file or directory'"


def test_a_path_may_lead_from_one_folder_into_another_and_nowhere_else(data: Path) -> None:
    outputs = data / "outputs"
    outputs.mkdir()
    (outputs / "link.png").symlink_to(data.parent / "secret.png")
    assert found_in([data, outputs], "../one.png") == [url(PICTURE)]
    for roots, name in (
        ([outputs], "../one.png"),
        ([data, outputs], "../../secret.png"),
        ([data, outputs], "link.png"),
        ([data, outputs], str(data.parent / "secret.png")),
    ):
        with pytest.raises(RowError, match="a path inside the data folder"):
            found_in(roots, name)
